//! Loops that read lines of 64 bytes, combine them by exclusive or if more are read than written, and write them. They
//! use integers, so the data does not affect the speed.

use super::traffic::Traffic;

/// A kind of loop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kernel {
    pub(super) name: &'static str,
    /// Runs the steps from the first index to before the second.
    pub(super) run: unsafe fn(&Streams, usize, usize),
}

/// Addresses, and how many lines of each tensor a step processes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Streams {
    first: *const u8,
    second: *const u8,
    to: *mut u8,
    lines: Lines,
    steps: usize,
    /// Bytes of the first tensor and of the output after the last step.
    tail: (usize, usize),
}

// SAFETY: threads get ranges of steps that do not overlap.
unsafe impl Sync for Streams {}
// SAFETY: as above.
unsafe impl Send for Streams {}

/// Lines that a step reads from the first and the second tensor, and writes.
type Lines = (usize, usize, usize);

const LINE: usize = 64;

impl Streams {
    /// `None` if nothing is written.
    pub(super) fn new(traffic: &Traffic) -> Option<Streams> {
        let Traffic { first, second, to } = traffic;
        let second_bytes = second.map_or(usize::MAX, |region| region.bytes);
        let least = first.bytes.min(to.bytes).min(second_bytes);
        if least == 0 {
            return None;
        }
        // Types have one, two, four or eight bytes, so a step processes one line of the smallest type and a multiple of
        // it of the others.
        let lines = |bytes: usize| bytes / least;
        let lines = (lines(first.bytes), second.map_or(0, |s| lines(s.bytes)), lines(to.bytes));
        let steps = least / LINE;
        Some(Streams {
            first: first.pointer,
            second: second.map_or(std::ptr::null(), |region| region.pointer),
            to: to.pointer,
            lines,
            steps,
            tail: (first.bytes - lines.0 * steps * LINE, to.bytes - lines.2 * steps * LINE),
        })
    }

    pub(super) fn steps(&self) -> usize {
        self.steps
    }

    /// Copies what remains after the last step.
    unsafe fn finish(&self, upto: usize) {
        if upto == self.steps {
            let count = self.tail.0.min(self.tail.1);
            // SAFETY: both tails have that many bytes; in place they are the same bytes.
            unsafe {
                let from = self.first.add(self.lines.0 * self.steps * LINE);
                std::ptr::copy(from, self.to.add(self.lines.2 * self.steps * LINE), count);
            }
        }
    }
}

/// Sixty-four bytes in registers.
trait Line: Copy {
    unsafe fn load(from: *const u8) -> Self;
    unsafe fn store(self, to: *mut u8);
    /// Non-temporal store; the address is a multiple of 64.
    unsafe fn stream(self, to: *mut u8);
    unsafe fn xor(self, other: Self) -> Self;
}

// No closures here: one that is not inlined would be compiled for the baseline instruction set.
#[inline(always)]
unsafe fn step<L: Line, const A: usize, const B: usize, const W: usize>(
    streams: &Streams,
    step: usize,
) -> [L; W] {
    // SAFETY: the step is within the tensors.
    unsafe {
        let first = streams.first.add(step * A * LINE);
        let second = streams.second.wrapping_add(step * B * LINE);
        let mut lines = [L::load(first); W];
        for i in 1..A {
            let line = L::load(first.add(i * LINE));
            lines[i % W] = if i < W { line } else { lines[i % W].xor(line) };
        }
        if B > 0 {
            for i in 0..B.max(W) {
                let line = L::load(second.add(i % B.max(1) * LINE));
                lines[i % W] = lines[i % W].xor(line);
            }
        }
        lines
    }
}

#[inline(always)]
unsafe fn write<L: Line, const W: usize, const STREAM: bool>(
    streams: &Streams,
    step: usize,
    lines: [L; W],
) {
    let mut i = 0;
    while i < W {
        // SAFETY: the step is within the tensors; the caller chose STREAM for aligned ones.
        unsafe {
            let to = streams.to.add((step * W + i) * LINE);
            if STREAM { lines[i].stream(to) } else { lines[i].store(to) }
        }
        i += 1;
    }
}

#[inline(always)]
unsafe fn sweep<L: Line, const A: usize, const B: usize, const W: usize, const STREAM: bool>(
    streams: &Streams,
    from: usize,
    upto: usize,
) {
    // SAFETY: the steps are within the tensors; the caller chose STREAM for aligned ones.
    unsafe {
        let mut at = from;
        while at + 4 <= upto {
            // Four steps are read before the first is written.
            let a = step::<L, A, B, W>(streams, at);
            let b = step::<L, A, B, W>(streams, at + 1);
            let c = step::<L, A, B, W>(streams, at + 2);
            let d = step::<L, A, B, W>(streams, at + 3);
            write::<L, W, STREAM>(streams, at, a);
            write::<L, W, STREAM>(streams, at + 1, b);
            write::<L, W, STREAM>(streams, at + 2, c);
            write::<L, W, STREAM>(streams, at + 3, d);
            at += 4;
        }
        while at < upto {
            write::<L, W, STREAM>(streams, at, step::<L, A, B, W>(streams, at));
            at += 1;
        }
        streams.finish(upto);
    }
}

/// The loop of a function that is generic in the lines and the kind of store.
macro_rules! of_lines {
    ($function:ident, $lines:expr, $stream:literal) => {
        match $lines {
            (1, 0, 1) => Some($function::<1, 0, 1, $stream> as unsafe fn(&Streams, usize, usize)),
            (2, 0, 1) => Some($function::<2, 0, 1, $stream> as _),
            (1, 0, 2) => Some($function::<1, 0, 2, $stream> as _),
            (4, 0, 1) => Some($function::<4, 0, 1, $stream> as _),
            (1, 0, 4) => Some($function::<1, 0, 4, $stream> as _),
            (8, 0, 1) => Some($function::<8, 0, 1, $stream> as _),
            (1, 0, 8) => Some($function::<1, 0, 8, $stream> as _),
            (1, 1, 1) => Some($function::<1, 1, 1, $stream> as _),
            (2, 1, 2) => Some($function::<2, 1, 2, $stream> as _),
            (1, 2, 1) => Some($function::<1, 2, 1, $stream> as _),
            _ => None,
        }
    };
}

#[derive(Clone, Copy)]
struct Portable([u64; LINE / 8]);

impl Line for Portable {
    #[inline(always)]
    unsafe fn load(from: *const u8) -> Portable {
        // SAFETY: guaranteed by the caller.
        unsafe { Portable(from.cast::<[u64; LINE / 8]>().read_unaligned()) }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: guaranteed by the caller.
        unsafe { to.cast::<[u64; LINE / 8]>().write_unaligned(self.0) }
    }
    #[inline(always)]
    unsafe fn stream(self, to: *mut u8) {
        // SAFETY: guaranteed by the caller.
        unsafe { self.store(to) }
    }
    #[inline(always)]
    unsafe fn xor(self, other: Portable) -> Portable {
        let mut words = self.0;
        words.iter_mut().zip(other.0).for_each(|(a, b)| *a ^= b);
        Portable(words)
    }
}

unsafe fn portable<const A: usize, const B: usize, const W: usize, const STREAM: bool>(
    streams: &Streams,
    from: usize,
    upto: usize,
) {
    // SAFETY: guaranteed by the caller.
    unsafe { sweep::<Portable, A, B, W, STREAM>(streams, from, upto) }
}

unsafe fn memcpy(streams: &Streams, from: usize, upto: usize) {
    // SAFETY: the steps are within the tensors, which do not overlap.
    unsafe {
        let bytes = (upto - from) * LINE;
        let tail = if upto == streams.steps { streams.tail.1 } else { 0 };
        std::ptr::copy_nonoverlapping(
            streams.first.add(from * LINE),
            streams.to.add(from * LINE),
            bytes + tail,
        );
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{LINE, Line, Streams, sweep};
    use std::arch::x86_64::*;

    macro_rules! level {
        ($line:ident, $function:ident, $features:literal, $vector:ident, $count:literal,
         $load:ident, $store:ident, $stream:ident, $xor:ident) => {
            #[derive(Clone, Copy)]
            pub(super) struct $line([$vector; $count]);

            impl Line for $line {
                #[inline(always)]
                unsafe fn load(from: *const u8) -> $line {
                    // SAFETY: guaranteed by the caller, and the machine has the instructions.
                    unsafe {
                        let mut vectors = [$load(from.cast()); $count];
                        let mut i = 1;
                        while i < $count {
                            vectors[i] = $load(from.add(i * (LINE / $count)).cast());
                            i += 1;
                        }
                        $line(vectors)
                    }
                }
                #[inline(always)]
                unsafe fn store(self, to: *mut u8) {
                    let mut i = 0;
                    while i < $count {
                        // SAFETY: as above.
                        unsafe { $store(to.add(i * (LINE / $count)).cast(), self.0[i]) };
                        i += 1;
                    }
                }
                #[inline(always)]
                unsafe fn stream(self, to: *mut u8) {
                    let mut i = 0;
                    while i < $count {
                        // SAFETY: as above; the address is aligned.
                        unsafe { $stream(to.add(i * (LINE / $count)).cast(), self.0[i]) };
                        i += 1;
                    }
                }
                #[inline(always)]
                unsafe fn xor(self, other: $line) -> $line {
                    let mut vectors = self.0;
                    let mut i = 0;
                    while i < $count {
                        // SAFETY: the machine has the instructions.
                        vectors[i] = unsafe { $xor(vectors[i], other.0[i]) };
                        i += 1;
                    }
                    $line(vectors)
                }
            }

            #[target_feature(enable = $features)]
            pub(super) unsafe fn $function<
                const A: usize,
                const B: usize,
                const W: usize,
                const STREAM: bool,
            >(
                streams: &Streams,
                from: usize,
                upto: usize,
            ) {
                // SAFETY: guaranteed by the caller.
                unsafe { sweep::<$line, A, B, W, STREAM>(streams, from, upto) };
                if STREAM {
                    _mm_sfence();
                }
            }
        };
    }

    level!(
        Avx512,
        avx512,
        "avx512f",
        __m512i,
        1,
        _mm512_loadu_si512,
        _mm512_storeu_si512,
        _mm512_stream_si512,
        _mm512_xor_si512
    );
    level!(
        Avx2,
        avx2,
        "avx2",
        __m256i,
        2,
        _mm256_loadu_si256,
        _mm256_storeu_si256,
        _mm256_stream_si256,
        _mm256_xor_si256
    );
}

/// The loops that suit these buffers, which all have the same sizes, and this machine.
pub(super) fn suited(sets: &[Streams]) -> Vec<Kernel> {
    let lines = sets[0].lines;
    let apart = sets.iter().all(|set| set.first != set.to.cast_const());
    let mut kernels = Vec::new();
    let mut add = |name, run: Option<unsafe fn(&Streams, usize, usize)>| {
        kernels.extend(run.map(|run| Kernel { name, run }));
    };
    if lines == (1, 0, 1) && apart {
        add("memcpy", Some(memcpy as _));
    }
    #[cfg(target_arch = "x86_64")]
    {
        use x86::{avx2, avx512};
        let aligned = sets.iter().all(|set| (set.to as usize).is_multiple_of(LINE));
        if std::arch::is_x86_feature_detected!("avx512f") {
            add("an avx512 loop", of_lines!(avx512, lines, false));
            if aligned {
                add("an avx512 loop with non-temporal stores", of_lines!(avx512, lines, true));
            }
        }
        if std::arch::is_x86_feature_detected!("avx2") {
            add("an avx2 loop", of_lines!(avx2, lines, false));
            if aligned {
                add("an avx2 loop with non-temporal stores", of_lines!(avx2, lines, true));
            }
        }
    }
    add("a portable loop", of_lines!(portable, lines, false));
    kernels
}
