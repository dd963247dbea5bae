//! Sums over positions for channels last, where the channels of a position are the lanes of vectors.
//!
//! The sums have the order of `simd::fold`, whose lanes are positions; here, 16 sums of vectors replace the lanes. A
//! tile is a group of the fold, 256 positions. For each of the 16 sums, its 16 vectors of the tile form four chains,
//! which are added in pairs and then to an f64 sum in memory. At the end of a block of the fold, the sums are added by
//! halves.

use super::kernel::Job;
use crate::simd::{BLOCK, CHAIN, GROUP, LANES, Simd, UpTo, Width, unroll, zeroed};
use std::mem::MaybeUninit;

/// Vectors of channels that are summed together: their sums stay in the first-level cache.
const VECTORS: usize = 4;

/// The f64 sums of a vector of channels, for 16 positions.
type LaneSums = [[f64; LANES]; LANES];

/// The two sums of channels.
struct Sums {
    first: [MaybeUninit<LaneSums>; VECTORS],
    second: [MaybeUninit<LaneSums>; VECTORS],
}

/// Sets the sums of `lanes` positions to 0.
///
/// # Safety
/// The CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn clear<S: Simd>(sums: &mut MaybeUninit<LaneSums>, lanes: usize) {
    let start = sums.as_mut_ptr().cast::<f64>();
    for lane in 0..lanes {
        // SAFETY: guaranteed by the caller.
        unsafe { S::wide_store(start.add(lane * LANES), S::wide_zero()) };
    }
}

/// Adds the sums of `lanes` positions by halves, and the result to `n` totals.
///
/// # Safety
/// They exist and are initialized, and the CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn halve<S: Simd>(
    sums: &mut MaybeUninit<LaneSums>,
    lanes: usize,
    totals: *mut f64,
    n: usize,
) {
    let start = sums.as_mut_ptr().cast::<f64>();
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut half = LANES / 2;
        while half > 0 {
            let mut lane = 0;
            // Missing sums are zeros.
            while lane < half && lane + half < lanes {
                let low = start.add(lane * LANES);
                let high = S::wide_load(start.add((lane + half) * LANES));
                S::wide_store(low, S::wide_add(S::wide_load(low), high));
                lane += 1;
            }
            half /= 2;
        }
        let sum = S::wide_load(start);
        UpTo(n).store_wide::<S>(totals, S::wide_add(UpTo(n).load_wide::<S>(totals), sum));
    }
}

/// What is summed for a vector of channels at a position.
pub(super) trait Summed<S: Simd>: Copy {
    /// Whether the first sum adds f64 values instead of f32 terms.
    const WIDE: bool;

    /// Prefetches a vector of channels at a position, which need not exist.
    ///
    /// # Safety
    /// The CPU supports the instruction set of `S`.
    unsafe fn prefetch(&self, position: usize);
    /// The value of the first sum, and the factors of the second.
    ///
    /// # Safety
    /// The position exists, with `n` channels, 16 for a full vector, and so does the instruction set of `S`.
    unsafe fn terms(&self, position: usize, n: usize) -> (S::F32x16, S::F32x16, S::F32x16);
}

/// The f32 sums of `J` lanes.
type Chains<S, const J: usize> = [[<S as Simd>::F32x16; 2]; J];

/// # Safety
/// The CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn join<S: Simd, const J: usize>(a: &Chains<S, J>, b: &Chains<S, J>) -> Chains<S, J> {
    let mut sums = *a;
    // SAFETY: guaranteed by the caller.
    unsafe {
        unroll!(j in J, {
            sums[j] = [S::add(a[j][0], b[j][0]), S::add(a[j][1], b[j][1])];
        });
    }
    sums
}

/// Adds the terms of `count` vectors of each of `J` neighbouring lanes from `lane` to their sums. `first` is the first
/// position of the tile, and `ahead` the distance to the next one, or 0. One loop makes all chains, because copies of
/// it would be most of the operation's code.
///
/// # Safety
/// The positions exist, with `n` channels, and the CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn lanes<S: Simd, T: Summed<S>, const J: usize>(
    terms: &T,
    (first, ahead): (usize, usize),
    (lane, count): (usize, usize),
    n: usize,
    sums: [*mut f64; 2],
) {
    let (one, two) = (sums[0].wrapping_add(lane * LANES), sums[1].wrapping_add(lane * LANES));
    // SAFETY: guaranteed by the caller.
    unsafe {
        let zero: [[S::F32x16; 2]; J] = zeroed();
        let mut wide: [S::F64x16; J] = zeroed();
        unroll!(j in J, {
            wide[j] = S::wide_load(one.add(j * LANES));
        });
        let (mut even, mut group) = (zero, zero);
        let mut k = 0;
        while k * CHAIN < count {
            let mut chain = zero;
            let end = count.min((k + 1) * CHAIN);
            let mut i = k * CHAIN;
            while i < end {
                let at = first + lane + i * LANES;
                unroll!(j in J, {
                    // The next tile, whose cache lines are too far apart for the hardware prefetcher.
                    terms.prefetch(at + j + ahead);
                    let (value, a, b) = terms.terms(at + j, n);
                    if T::WIDE {
                        wide[j] = S::wide_add(wide[j], S::widen(value));
                    } else {
                        chain[j][0] = S::add(chain[j][0], value);
                    }
                    chain[j][1] = S::fma(a, b, chain[j][1]);
                });
                i += 1;
            }
            // (c0 + c1) + (c2 + c3)
            if k % 2 == 0 {
                even = chain;
            } else {
                group = join::<S, J>(&group, &join::<S, J>(&even, &chain));
                even = zero;
            }
            k += 1;
        }
        let group = join::<S, J>(&group, &even);
        unroll!(j in J, {
            if !T::WIDE {
                wide[j] = S::wide_add(wide[j], S::widen(group[j][0]));
            }
            S::wide_store(one.add(j * LANES), wide[j]);
            let two = two.add(j * LANES);
            S::wide_store(two, S::wide_add(S::wide_load(two), S::widen(group[j][1])));
        });
    }
}

/// Adds the terms of a tile of a vector of `n` channels, given its first position, its number of positions, and the
/// distance to the next tile.
///
/// # Safety
/// As [`lanes`].
#[inline(always)]
unsafe fn tile<S: Simd, T: Summed<S>>(
    terms: &T,
    (first, len, ahead): (usize, usize, usize),
    n: usize,
    sums: [*mut f64; 2],
) {
    let mut lane = 0;
    while lane < len.min(LANES) {
        let count = (len - lane).div_ceil(LANES);
        let together = S::MANY_REGISTERS && n == LANES && lane + 4 <= len.min(LANES);
        // SAFETY: guaranteed by the caller.
        unsafe {
            if together && (len - lane - 3).div_ceil(LANES) == count {
                lanes::<S, T, 4>(terms, (first, ahead), (lane, count), LANES, sums);
                lane += 4;
            } else {
                lanes::<S, T, 1>(terms, (first, ahead), (lane, count), n, sums);
                lane += 1;
            }
        }
    }
}

/// The sums over at most 16 positions, one per lane, of `n` channels.
///
/// # Safety
/// As [`lanes`].
#[inline(always)]
unsafe fn few<S: Simd, T: Summed<S>>(terms: &T, positions: usize, n: usize, sums: [*mut f64; 2]) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let zero = S::wide_zero();
        // Sums of two, four, eight and all lanes. The pairs of lanes `lane` and `lane + 8` come in the order of adding
        // by halves.
        let (mut two, mut four, mut sum) = ([zero; 2], [zero; 2], [zero; 2]);
        let mut i = 0;
        while i < LANES / 2 {
            let lane = (i & 1) << 2 | i & 2 | i >> 2;
            let mut pair = [zero; 2];
            let mut at = lane;
            while at < positions {
                let (value, a, b) = terms.terms(at, n);
                pair[0] = S::wide_add(pair[0], S::widen(value));
                pair[1] = S::wide_add(pair[1], S::widen(S::mul(a, b)));
                at += LANES / 2;
            }
            if i & 1 == 0 {
                two = pair;
            } else {
                pair = [S::wide_add(two[0], pair[0]), S::wide_add(two[1], pair[1])];
                if i & 2 == 0 {
                    four = pair;
                } else {
                    pair = [S::wide_add(four[0], pair[0]), S::wide_add(four[1], pair[1])];
                    sum = [S::wide_add(sum[0], pair[0]), S::wide_add(sum[1], pair[1])];
                }
            }
            i += 1;
        }
        unroll!(k in 2, {
            UpTo(n).store_wide::<S>(sums[k], sum[k]);
        });
    }
}

/// The sums over all positions of each channel; `terms(channel, n)` are those of a vector of channels.
///
/// # Safety
/// As [`lanes`]; the outputs have a value per channel.
#[inline(always)]
pub(super) unsafe fn sum<S: Simd, T: Summed<S>>(job: &Job, terms: impl Fn(usize, usize) -> T) {
    let mut all = Sums {
        first: [const { MaybeUninit::uninit() }; VECTORS],
        second: [const { MaybeUninit::uninit() }; VECTORS],
    };
    let mut channel = 0;
    while channel < job.channels {
        let end = job.channels.min(channel + VECTORS * LANES);
        // SAFETY: guaranteed by the caller.
        unsafe {
            if job.positions <= LANES {
                let mut at = channel;
                while at < end {
                    let n = LANES.min(end - at);
                    let outputs = [job.first.add(at), job.second.add(at)];
                    few::<S, T>(&terms(at, n), job.positions, n, outputs);
                    at += n;
                }
            } else {
                for at in channel..end {
                    job.first.add(at).write(0.0);
                    job.second.add(at).write(0.0);
                }
                let mut first = 0;
                while first < job.positions {
                    let last = job.positions.min(first + BLOCK);
                    block::<S, T>(job, &terms, (channel, end), (first, last), &mut all);
                    first = last;
                }
            }
        }
        channel = end;
    }
}

/// Adds the sums over a block of positions of at most [`VECTORS`] vectors of channels to the outputs.
///
/// # Safety
/// As [`sum`].
#[inline(always)]
unsafe fn block<S: Simd, T: Summed<S>>(
    job: &Job,
    terms: &impl Fn(usize, usize) -> T,
    (channel, end): (usize, usize),
    (mut first, last): (usize, usize),
    all: &mut Sums,
) {
    let used = (last - first).min(LANES);
    let vectors = (end - channel).div_ceil(LANES);
    // SAFETY: guaranteed by the caller.
    unsafe {
        for v in 0..vectors {
            clear::<S>(&mut all.first[v], used);
            clear::<S>(&mut all.second[v], used);
        }
        while first < last {
            let len = GROUP.min(last - first);
            let ahead = if first + len < last { GROUP } else { 0 };
            for v in 0..vectors {
                let at = channel + v * LANES;
                let n = LANES.min(end - at);
                let sums = [all.first[v].as_mut_ptr().cast(), all.second[v].as_mut_ptr().cast()];
                tile::<S, T>(&terms(at, n), (first, len, ahead), n, sums);
            }
            first += len;
        }
        for v in 0..vectors {
            let at = channel + v * LANES;
            let n = LANES.min(end - at);
            halve::<S>(&mut all.first[v], used, job.first.add(at), n);
            halve::<S>(&mut all.second[v], used, job.second.add(at), n);
        }
    }
}
