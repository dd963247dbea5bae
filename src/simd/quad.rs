//! Vectors of four f64 lanes, for the scalars of four rows.

use super::unroll;

/// Lanes of a [`Quad`].
pub(crate) const FOUR: usize = 4;

/// # Safety
/// Every function needs the instruction set of the level that uses the type. Loads and stores need four valid
/// elements, of any alignment.
pub(crate) trait Quad: Copy {
    unsafe fn splat(x: f64) -> Self;
    unsafe fn load(p: *const f64) -> Self;
    unsafe fn store(p: *mut f64, v: Self);
    /// Four f32, widened.
    unsafe fn load_widened(p: *const f32) -> Self;
    /// Rounded to f32, to nearest even.
    unsafe fn store_narrowed(p: *mut f32, v: Self);
    unsafe fn add(a: Self, b: Self) -> Self;
    unsafe fn sub(a: Self, b: Self) -> Self;
    unsafe fn mul(a: Self, b: Self) -> Self;
    unsafe fn div(a: Self, b: Self) -> Self;
    unsafe fn sqrt(v: Self) -> Self;
    /// Lane `i` is the sum of the lanes of row `i`: `(i) + (i + 2)`, then `(i) + (i + 1)`.
    unsafe fn sums(rows: [Self; FOUR]) -> Self;
    /// Whether `low <= v <= high` in all lanes; false for NaN.
    unsafe fn all_between(v: Self, low: Self, high: Self) -> bool;
}

// SAFETY of every block below: the trait's contract.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Quad for [f64; FOUR] {
    #[inline(always)]
    unsafe fn splat(x: f64) -> Self {
        [x; FOUR]
    }
    #[inline(always)]
    unsafe fn load(p: *const f64) -> Self {
        unsafe { p.cast::<Self>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store(p: *mut f64, v: Self) {
        unsafe { p.cast::<Self>().write_unaligned(v) }
    }
    #[inline(always)]
    unsafe fn load_widened(p: *const f32) -> Self {
        let [a, b, c, d] = unsafe { p.cast::<[f32; FOUR]>().read_unaligned() };
        [a.into(), b.into(), c.into(), d.into()]
    }
    #[inline(always)]
    unsafe fn store_narrowed(p: *mut f32, [a, b, c, d]: Self) {
        let narrow = [a as f32, b as f32, c as f32, d as f32];
        unsafe { p.cast::<[f32; FOUR]>().write_unaligned(narrow) }
    }
    #[inline(always)]
    unsafe fn add(a: Self, b: Self) -> Self {
        [a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3]]
    }
    #[inline(always)]
    unsafe fn sub(a: Self, b: Self) -> Self {
        [a[0] - b[0], a[1] - b[1], a[2] - b[2], a[3] - b[3]]
    }
    #[inline(always)]
    unsafe fn mul(a: Self, b: Self) -> Self {
        [a[0] * b[0], a[1] * b[1], a[2] * b[2], a[3] * b[3]]
    }
    #[inline(always)]
    unsafe fn div(a: Self, b: Self) -> Self {
        [a[0] / b[0], a[1] / b[1], a[2] / b[2], a[3] / b[3]]
    }
    #[inline(always)]
    unsafe fn sqrt([a, b, c, d]: Self) -> Self {
        [a.sqrt(), b.sqrt(), c.sqrt(), d.sqrt()]
    }
    #[inline(always)]
    unsafe fn sums(rows: [Self; FOUR]) -> Self {
        let mut sums = [0.0; FOUR];
        unroll!(i in FOUR, {
            let [a, b, c, d] = rows[i];
            sums[i] = (a + c) + (b + d);
        });
        sums
    }
    #[inline(always)]
    unsafe fn all_between(v: Self, low: Self, high: Self) -> bool {
        let mut all = true;
        unroll!(i in FOUR, {
            all &= (v[i] >= low[i]) & (v[i] <= high[i]);
        });
        all
    }
}
