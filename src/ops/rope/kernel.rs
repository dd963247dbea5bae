//! The rotation of a run of heads, directly on the tensors' types.
//!
//! ```text
//! x  = src, or src * r * scale with a normalization
//! a' = product(a, cos) - b*sin      b' = product(b, cos) + a*sin
//! ```
//!
//! For f32 results the first product is exact: its rounded value and the rounding error. A product may be larger than
//! both elements of the result, and its rounding error may then be a unit in their last place. Without that error, the
//! cosine and the sine contribute at most one unit, and the two sums half a unit each. Results of 16 bits are not
//! corrected, because their own rounding is far larger.
//!
//! Distant pairs are two vectors; neighbours are the lanes of one, swapped. A step loads all its elements before it
//! stores one, so src may be dst.

use crate::simd::{
    Bf16, Bf16InTurn, Element, F16, F32, LANES, Level, Runtime, Simd, UpTo, Width, entry_points,
    rounded, unroll,
};
use crate::tensor::DataType;
use std::hint::black_box;

/// The parameters common to all heads of a problem.
pub(super) struct Rotation {
    pub(super) src_type: DataType,
    pub(super) dst_type: DataType,
    pub(super) cols: usize,
    pub(super) pairs: usize,
    /// The distance between the elements of a pair; 1 for neighbours.
    pub(super) distance: usize,
    pub(super) interleaved: bool,
    /// The number of cosines, or of sines, of a token.
    pub(super) width: usize,
    /// Whether to copy the elements that are not rotated.
    pub(super) copies: bool,
    /// Whether dst is stored non-temporally where its alignment allows.
    pub(super) streams: bool,
    /// Whether normalized values are rounded to the type of dst.
    pub(super) rounded: bool,
    /// The scale of each normalized column.
    pub(super) scale: *const f32,
}

// SAFETY: the scale is only read.
unsafe impl Sync for Rotation {}

/// Equally spaced heads.
#[derive(Clone, Copy)]
pub(super) struct Run {
    pub(super) src: *const u8,
    pub(super) dst: *mut u8,
    /// Row strides, in bytes.
    pub(super) src_step: usize,
    pub(super) dst_step: usize,
    /// The angles of the first head, and the stride to those of the next.
    pub(super) angles: *const f32,
    pub(super) angle_step: usize,
    pub(super) count: usize,
    /// With a normalization, the reciprocal RMS of each head.
    pub(super) r: *const f32,
}

/// Clears the highest exponent bit of a rounding error. Errors below 2 in magnitude stay the same; larger ones, NaN and
/// infinities become small. So products above 2^25, NaN and infinities are not corrected.
const FINITE: u32 = 0xbfff_ffff;

/// The mask for a product's rounding error in results of this type. It is 0 for types of 16 bits, whose own rounding
/// error is 2^13 times as large.
#[inline(always)]
pub(super) fn kept_excess(dst: DataType) -> u32 {
    if dst == DataType::F32 { FINITE } else { 0 }
}

/// A head to rotate.
struct Head<'a, Src, Dst> {
    job: &'a Rotation,
    src_type: Src,
    dst_type: Dst,
    src: *const u8,
    dst: *mut u8,
    cos: *const f32,
    sin: *const f32,
    r: f32,
}

// SAFETY of the blocks below: the head exists and belongs to this thread, and the CPU supports the instruction set of
// `S`, by the contract of `rotate`.
#[allow(clippy::undocumented_unsafe_blocks)]
impl<Src: Element, Dst: Element> Head<'_, Src, Dst> {
    /// `n` elements from `i`, normalized with `NORM`.
    #[inline(always)]
    unsafe fn load<S: Simd, const NORM: bool>(&self, i: usize, n: usize) -> S::F32x16 {
        unsafe {
            let width = UpTo(n);
            let x = width.load_as::<S, _>(self.src_type, self.src, i);
            if !NORM {
                return x;
            }
            let scale = width.load::<S>(self.job.scale.add(i));
            let value = S::mul(S::mul(x, S::splat(self.r)), scale);
            if self.job.rounded { rounded::<S, Dst>(self.dst_type, value, width) } else { value }
        }
    }

    #[inline(always)]
    unsafe fn store<S: Simd, const STREAMS: bool, const N: usize>(
        &self,
        i: usize,
        values: &[S::F32x16; N],
    ) {
        unsafe {
            if STREAMS {
                self.dst_type.stream_all::<S, N>(self.dst, i, values);
            } else {
                self.dst_type.store_all::<S, N>(self.dst, i, values);
            }
        }
    }

    /// The sum of the product of `a` and `b` and another term. If dst is f32, subtracts the product's rounding error.
    #[inline(always)]
    unsafe fn corrected<S: Simd>(
        &self,
        sum: S::F32x16,
        [a, b]: [S::F32x16; 2],
        product: S::F32x16,
    ) -> S::F32x16 {
        unsafe {
            if Dst::HALF {
                return sum;
            }
            let kept = S::splat(f32::from_bits(kept_excess(self.job.dst_type)));
            S::sub(sum, S::bits_and(S::fnma(a, b, product), kept))
        }
    }

    /// Rotates the two vectors of distant pairs.
    #[inline(always)]
    unsafe fn turned_pair<S: Simd>(
        &self,
        [a, b]: [S::F32x16; 2],
        cos: S::F32x16,
        sin: S::F32x16,
    ) -> [S::F32x16; 2] {
        unsafe {
            let (first, second) = (S::mul(a, cos), S::mul(b, cos));
            [
                self.corrected::<S>(S::fnma(b, sin, first), [a, cos], first),
                self.corrected::<S>(S::fma(a, sin, second), [b, cos], second),
            ]
        }
    }

    /// Rotates `N` vectors of distant pairs.
    #[inline(always)]
    unsafe fn distant<S: Simd, const NORM: bool, const STREAMS: bool, const N: usize>(
        &self,
        i: usize,
    ) {
        unsafe {
            let (mut first, mut second) = (S::zeros::<N>(), S::zeros::<N>());
            unroll!(v in N, {
                let at = i + v * LANES;
                let a = self.load::<S, NORM>(at, LANES);
                let b = self.load::<S, NORM>(self.job.distance + at, LANES);
                let (cos, sin) = (S::load(self.cos.add(at)), S::load(self.sin.add(at)));
                [first[v], second[v]] = self.turned_pair::<S>([a, b], cos, sin);
            });
            self.store::<S, STREAMS, N>(i, &first);
            self.store::<S, STREAMS, N>(self.job.distance + i, &second);
        }
    }

    /// Rotates `n` distant pairs, fewer than a vector.
    #[inline(always)]
    unsafe fn distant_n<S: Simd, const NORM: bool>(&self, i: usize, n: usize) {
        unsafe {
            let a = self.load::<S, NORM>(i, n);
            let b = self.load::<S, NORM>(self.job.distance + i, n);
            let (cos, sin) = (S::load(self.cos.add(i)), S::load(self.sin.add(i)));
            let [first, second] = self.turned_pair::<S>([a, b], cos, sin);
            self.dst_type.store_n::<S>(self.dst, i, first, n);
            self.dst_type.store_n::<S>(self.dst, self.job.distance + i, second, n);
        }
    }

    /// Rotates `n` elements of neighbours.
    #[inline(always)]
    unsafe fn turned<S: Simd, const NORM: bool>(&self, i: usize, n: usize) -> S::F32x16 {
        unsafe {
            let x = self.load::<S, NORM>(i, n);
            let (cos, sin) = (S::load(self.cos.add(i)), S::load(self.sin.add(i)));
            let product = S::mul(x, cos);
            let other = if n == LANES { self.src_type.swapped::<S>(x) } else { S::swap::<1>(x) };
            self.corrected::<S>(S::fma(other, sin, product), [x, cos], product)
        }
    }

    /// Rotates `N` vectors of neighbours.
    #[inline(always)]
    unsafe fn neighbours<S: Simd, const NORM: bool, const STREAMS: bool, const N: usize>(
        &self,
        i: usize,
    ) {
        unsafe {
            let mut values = S::zeros::<N>();
            unroll!(v in N, {
                values[v] = self.turned::<S, NORM>(i + v * LANES, LANES);
            });
            self.store::<S, STREAMS, N>(i, &values);
        }
    }

    /// Copies the elements that are not rotated.
    #[inline(always)]
    unsafe fn copy<S: Simd, const NORM: bool>(&self, first: usize, end: usize) {
        let mut i = first;
        while i < end {
            let n = LANES.min(end - i);
            unsafe {
                let value = self.load::<S, NORM>(i, n);
                UpTo(n).store_as::<S, _>(self.dst_type, self.dst, i, value);
            }
            i += LANES;
        }
    }

    /// Rotates the whole vectors of `rotated` elements, or of the first elements of as many distant pairs. Returns
    /// their number of elements.
    #[inline(always)]
    unsafe fn whole<S: Simd, const NORM: bool, const STREAMS: bool>(
        &self,
        rotated: usize,
    ) -> usize {
        let mut i = 0;
        unsafe {
            if self.job.interleaved {
                while S::UNROLLS && i + 2 * LANES <= rotated {
                    self.neighbours::<S, NORM, STREAMS, 2>(i);
                    i += 2 * LANES;
                }
                while i + LANES <= rotated {
                    self.neighbours::<S, NORM, STREAMS, 1>(i);
                    i += LANES;
                }
            } else {
                while S::MANY_REGISTERS && i + 2 * LANES <= rotated {
                    self.distant::<S, NORM, STREAMS, 2>(i);
                    i += 2 * LANES;
                }
                while i + LANES <= rotated {
                    self.distant::<S, NORM, STREAMS, 1>(i);
                    i += LANES;
                }
            }
        }
        i
    }

    #[inline(always)]
    unsafe fn rotate<S: Simd, const NORM: bool>(&self, streams: bool) {
        let job = self.job;
        let rotated = if job.interleaved { 2 * job.pairs } else { job.pairs };
        unsafe {
            // A separate loop for each kind of store.
            let i = match streams {
                true => self.whole::<S, NORM, true>(rotated),
                false => self.whole::<S, NORM, false>(rotated),
            };
            let n = rotated - i;
            if n > 0 && job.interleaved {
                let value = self.turned::<S, NORM>(i, n);
                self.dst_type.store_n::<S>(self.dst, i, value, n);
            } else if n > 0 {
                self.distant_n::<S, NORM>(i, n);
            }
            if !job.copies {
                return;
            }
            if job.interleaved {
                self.copy::<S, NORM>(rotated, job.cols);
            } else {
                self.copy::<S, NORM>(job.pairs, job.distance);
                self.copy::<S, NORM>(job.distance + job.pairs, job.cols);
            }
        }
    }
}

/// Rotates the heads of a run. With non-temporal stores, a fence must follow the last run.
///
/// # Safety
/// The heads and their angles exist, the heads belong to this thread, and the CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn rotate<S: Simd, Src: Element, Dst: Element, const NORM: bool>(job: &Rotation, run: &Run) {
    let (src_type, dst_type) = (Src::of(job.src_type), Dst::of(job.dst_type));
    for head in 0..run.count {
        // Otherwise the compiler advances an address per loop from head to head, and spills them to the stack.
        let src = black_box(run.src.wrapping_add(head * run.src_step));
        let dst = black_box(run.dst.wrapping_add(head * run.dst_step));
        let cos = black_box(run.angles.wrapping_add(head * run.angle_step));
        // SAFETY: guaranteed by the caller.
        unsafe {
            let head = Head {
                job,
                src_type,
                dst_type,
                src,
                dst,
                cos,
                sin: cos.wrapping_add(job.width),
                r: if NORM { *run.r.add(head) } else { 1.0 },
            };
            head.rotate::<S, NORM>(job.streams && dst_type.streams(dst));
        }
    }
}

entry_points! {
    /// Rotations, per level.
    mod entries: rotate<Src: Element, Dst: Element; const NORM: bool>(
        job: &Rotation, run: &Run
    ) -> ();
}

pub(super) type Entry = unsafe fn(&Rotation, &Run);

/// Whether the kernel for types of src and dst reads the angles of whole vectors in the order of [`Bf16InTurn`].
pub(super) fn in_turn(types: (DataType, DataType), norm: bool) -> bool {
    types == (DataType::Bf16, DataType::Bf16) && !norm
}

/// The kernel for types of src and dst, with or without a normalization.
pub(super) fn entry(level: Level, types: (DataType, DataType), norm: bool) -> Entry {
    fn typed<Src: Element, Dst: Element>(level: Level, norm: bool) -> Option<Entry> {
        if norm {
            entries::at::<Src, Dst, true>(level)
        } else {
            entries::at::<Src, Dst, false>(level)
        }
    }
    use DataType::{Bf16 as B, F16 as H, F32 as F};
    let found = match types {
        (F, F) => typed::<F32, F32>(level, norm),
        (B, B) if in_turn(types, norm) => entries::at::<Bf16InTurn, Bf16InTurn, false>(level),
        (B, B) => entries::at::<Bf16, Bf16, true>(level),
        (H, H) => typed::<F16, F16>(level, norm),
        _ => typed::<Runtime, Runtime>(level, norm),
    };
    // The portable level has only kernels that look types up at run time.
    found.unwrap_or(match norm {
        true => entries::portable::entry_portable::<Runtime, Runtime, true>,
        false => entries::portable::entry_portable::<Runtime, Runtime, false>,
    })
}
