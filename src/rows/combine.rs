//! The elementwise steps around a kernel, over chunks of f32.

use crate::primitive::Gating;
use crate::simd::lanes::Lanes;
use crate::simd::{LANES, Level, Simd, entry_points};

/// One step over chunks x, y and z.
pub(super) enum Combine {
    /// `x += y`.
    Add,
    /// `x *= f(y)`.
    Gate(Gating),
    /// x is the gradient of `z*f(y)`. Computes the gradient of y, `y = x*z*f'(y)`, then that of z, `x *= f(y)`.
    GateGradient(Gating),
    /// `x = (x - mean)*r*scale + shift`. Absent parameters are null.
    Normalize { mean: f32, r: f32, scale: *const f32, shift: *const f32 },
    /// The same with mean, r, scale and shift for each element or, with step 0, shared by all.
    NormalizeChannels { numbers: [*const f32; 4], step: usize },
}

/// Runs `$step` over all vectors of the chunks: `$i` is the first element of a vector, `$n` its length.
macro_rules! vectors {
    ($len:expr, |$i:ident, $n:ident| $step:expr) => {{
        let mut $i = 0;
        while $i + LANES <= $len {
            let $n = LANES;
            $step;
            $i += LANES;
        }
        if $i < $len {
            let $n = $len - $i;
            $step;
        }
    }};
}

/// # Safety
/// The elements exist, and the CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn load<S: Simd>(p: *const f32, i: usize, n: usize) -> Lanes<S> {
    // SAFETY: guaranteed by the caller.
    unsafe { Lanes::load(p.add(i), n) }
}

/// # Safety
/// The chunks that the step uses have `len` elements, and the CPU supports the instruction set of `S`.
#[inline(always)]
#[allow(clippy::undocumented_unsafe_blocks)]
unsafe fn combine<S: Simd>(step: &Combine, [x, y, z]: [*mut f32; 3], len: usize) {
    // SAFETY of all blocks: guaranteed by the caller.
    match *step {
        Combine::Add => vectors!(len, |i, n| unsafe {
            (load::<S>(x, i, n) + load::<S>(y, i, n)).store(x.add(i), n);
        }),
        Combine::Gate(gating) => vectors!(len, |i, n| unsafe {
            (load::<S>(x, i, n) * gating.value(load::<S>(y, i, n))).store(x.add(i), n);
        }),
        Combine::GateGradient(gating) => vectors!(len, |i, n| unsafe {
            let (gradient, other) = (load::<S>(x, i, n), load::<S>(z, i, n));
            let (value, derivative) = gating.derived(load::<S>(y, i, n));
            (gradient * other * derivative).store(y.add(i), n);
            (gradient * value).store(x.add(i), n);
        }),
        Combine::Normalize { mean, r, scale, shift } => vectors!(len, |i, n| unsafe {
            let mut value = (load::<S>(x, i, n) - mean) * r;
            if !scale.is_null() {
                value = value * load::<S>(scale, i, n);
            }
            if !shift.is_null() {
                value = value + load::<S>(shift, i, n);
            }
            value.store(x.add(i), n);
        }),
        Combine::NormalizeChannels { numbers: [mean, r, scale, shift], step: 0 } => {
            let (mean, r) = unsafe { (mean.read_unaligned(), r.read_unaligned()) };
            let (scale, shift) = unsafe { (scale.read_unaligned(), shift.read_unaligned()) };
            vectors!(len, |i, n| unsafe {
                let value = (load::<S>(x, i, n) - mean) * r * scale + shift;
                value.store(x.add(i), n);
            });
        }
        Combine::NormalizeChannels { numbers: [mean, r, scale, shift], .. } => {
            vectors!(len, |i, n| unsafe {
                let xhat = (load::<S>(x, i, n) - load::<S>(mean, i, n)) * load::<S>(r, i, n);
                let value = xhat * load::<S>(scale, i, n) + load::<S>(shift, i, n);
                value.store(x.add(i), n);
            });
        }
    }
}

entry_points! {
    /// A step over chunks, per level.
    mod entries: combine<>(step: &Combine, chunks: [*mut f32; 3], len: usize) -> ();
}

/// A step over chunks; see [`Combine`].
pub(super) type CombineEntry = unsafe fn(&Combine, [*mut f32; 3], usize);

pub(super) fn combine_entry(level: Level) -> CombineEntry {
    entries::at(level).unwrap_or(entries::portable::entry_portable)
}
