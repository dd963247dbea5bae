//! How many lanes of a vector exist: all, or the first few at the end of a row. The loops choose the width; an
//! operation is written once for all widths.

#[cfg(all(test, unix))]
mod tests;

use super::{Element, LANES, Simd};

/// The lanes of a vector that exist in memory. Loads and stores access no others. The other lanes of a loaded vector
/// have arbitrary values.
///
/// # Safety
/// As for [`Simd`]: the elements exist.
pub(crate) trait Width: Copy {
    /// Whether all lanes exist, if the compiler knows.
    const FULL: bool = false;

    /// The number of lanes, 1 to 16.
    fn n(self) -> usize;
    unsafe fn load<S: Simd>(self, p: *const f32) -> S::F32x16;
    unsafe fn store<S: Simd>(self, p: *mut f32, v: S::F32x16);
    unsafe fn load_wide<S: Simd>(self, p: *const f64) -> S::F64x16;
    unsafe fn store_wide<S: Simd>(self, p: *mut f64, v: S::F64x16);
    /// The elements of a type at element `i`.
    unsafe fn load_as<S: Simd, E: Element>(self, element: E, p: *const u8, i: usize) -> S::F32x16;
    unsafe fn store_as<S: Simd, E: Element>(self, element: E, p: *mut u8, i: usize, v: S::F32x16);
}

/// All 16 lanes.
#[derive(Clone, Copy)]
pub(crate) struct Full;

/// The first lanes, 1 to 15.
#[derive(Clone, Copy)]
pub(crate) struct First(pub(crate) usize);

/// The first lanes, 1 to 16, for code that is compiled once for all widths.
#[derive(Clone, Copy)]
pub(crate) struct UpTo(pub(crate) usize);

// SAFETY of the blocks below: the trait's contract, passed through.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Width for Full {
    const FULL: bool = true;

    #[inline(always)]
    fn n(self) -> usize {
        LANES
    }
    #[inline(always)]
    unsafe fn load<S: Simd>(self, p: *const f32) -> S::F32x16 {
        unsafe { S::load(p) }
    }
    #[inline(always)]
    unsafe fn store<S: Simd>(self, p: *mut f32, v: S::F32x16) {
        unsafe { S::store(p, v) }
    }
    #[inline(always)]
    unsafe fn load_wide<S: Simd>(self, p: *const f64) -> S::F64x16 {
        unsafe { S::wide_load(p) }
    }
    #[inline(always)]
    unsafe fn store_wide<S: Simd>(self, p: *mut f64, v: S::F64x16) {
        unsafe { S::wide_store(p, v) }
    }
    #[inline(always)]
    unsafe fn load_as<S: Simd, E: Element>(self, element: E, p: *const u8, i: usize) -> S::F32x16 {
        unsafe { element.load::<S>(p, i) }
    }
    #[inline(always)]
    unsafe fn store_as<S: Simd, E: Element>(self, element: E, p: *mut u8, i: usize, v: S::F32x16) {
        unsafe { element.store_all::<S, 1>(p, i, &[v]) }
    }
}

#[allow(clippy::undocumented_unsafe_blocks)]
impl Width for First {
    #[inline(always)]
    fn n(self) -> usize {
        self.0
    }
    #[inline(always)]
    unsafe fn load<S: Simd>(self, p: *const f32) -> S::F32x16 {
        unsafe { S::load_n(p, self.0) }
    }
    #[inline(always)]
    unsafe fn store<S: Simd>(self, p: *mut f32, v: S::F32x16) {
        unsafe { S::store_n(p, v, self.0) }
    }
    #[inline(always)]
    unsafe fn load_wide<S: Simd>(self, p: *const f64) -> S::F64x16 {
        unsafe { S::wide_load_n(p, self.0) }
    }
    #[inline(always)]
    unsafe fn store_wide<S: Simd>(self, p: *mut f64, v: S::F64x16) {
        unsafe { S::wide_store_n(p, v, self.0) }
    }
    #[inline(always)]
    unsafe fn load_as<S: Simd, E: Element>(self, element: E, p: *const u8, i: usize) -> S::F32x16 {
        unsafe { element.load_n::<S>(p, i, self.0) }
    }
    #[inline(always)]
    unsafe fn store_as<S: Simd, E: Element>(self, element: E, p: *mut u8, i: usize, v: S::F32x16) {
        unsafe { element.store_n::<S>(p, i, v, self.0) }
    }
}

/// Calls a method with the width for a number of lanes.
macro_rules! by_lanes {
    ($n:expr, $width:ident => $call:expr) => {
        if $n == LANES {
            let $width = Full;
            unsafe { $call }
        } else {
            let $width = First($n);
            unsafe { $call }
        }
    };
}

#[allow(clippy::undocumented_unsafe_blocks)]
impl Width for UpTo {
    #[inline(always)]
    fn n(self) -> usize {
        self.0
    }
    #[inline(always)]
    unsafe fn load<S: Simd>(self, p: *const f32) -> S::F32x16 {
        by_lanes!(self.0, width => width.load::<S>(p))
    }
    #[inline(always)]
    unsafe fn store<S: Simd>(self, p: *mut f32, v: S::F32x16) {
        by_lanes!(self.0, width => width.store::<S>(p, v))
    }
    #[inline(always)]
    unsafe fn load_wide<S: Simd>(self, p: *const f64) -> S::F64x16 {
        by_lanes!(self.0, width => width.load_wide::<S>(p))
    }
    #[inline(always)]
    unsafe fn store_wide<S: Simd>(self, p: *mut f64, v: S::F64x16) {
        by_lanes!(self.0, width => width.store_wide::<S>(p, v))
    }
    #[inline(always)]
    unsafe fn load_as<S: Simd, E: Element>(self, element: E, p: *const u8, i: usize) -> S::F32x16 {
        by_lanes!(self.0, width => width.load_as::<S, E>(element, p, i))
    }
    #[inline(always)]
    unsafe fn store_as<S: Simd, E: Element>(self, element: E, p: *mut u8, i: usize, v: S::F32x16) {
        by_lanes!(self.0, width => width.store_as::<S, E>(element, p, i, v))
    }
}

/// The lanes after they are stored as an element type.
///
/// # Safety
/// The CPU supports the instruction set of `S`.
#[inline(always)]
pub(crate) unsafe fn rounded<S: Simd, E: Element>(
    element: E,
    value: S::F32x16,
    width: impl Width,
) -> S::F32x16 {
    let mut stored = [0u32; LANES];
    let place = stored.as_mut_ptr().cast::<u8>();
    // SAFETY: there is room for 16 elements of up to four bytes.
    unsafe {
        width.store_as::<S, E>(element, place, 0, value);
        width.load_as::<S, E>(element, place, 0)
    }
}

/// Adds vectors, one after another, to sums in memory.
///
/// # Safety
/// There are as many sums as the width has lanes, and the CPU supports the instruction set of `S`.
#[inline(always)]
pub(crate) unsafe fn add_wide<S: Simd, const R: usize>(
    sums: *mut f64,
    terms: [S::F64x16; R],
    width: impl Width,
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut sum = width.load_wide::<S>(sums);
        for term in terms {
            sum = S::wide_add(sum, term);
        }
        width.store_wide::<S>(sums, sum);
    }
}
