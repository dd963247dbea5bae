//! Unrolled loops over arrays of vectors.
//!
//! An array that is indexed by a loop variable stays in memory unless the optimizer unrolls the loop before it splits
//! arrays into registers. In large functions it often does not.

/// `unroll!(r in R, { ... })` is `for r in 0..R { ... }` with a constant `r`. `R` is a constant up to 4, or up to 8 in
/// `unroll!(to 8: r in R, { ... })`; `to 16` always has 16 iterations.
macro_rules! unroll {
    ($i:ident in $n:expr, $body:block) => {{
        const { assert!($n <= 4) };
        $crate::simd::unroll!(@iteration $i, 0, $n, $body);
        $crate::simd::unroll!(@iteration $i, 1, $n, $body);
        $crate::simd::unroll!(@iteration $i, 2, $n, $body);
        $crate::simd::unroll!(@iteration $i, 3, $n, $body);
    }};
    (to 8: $i:ident in $n:expr, $body:block) => {{
        const { assert!($n <= 8) };
        $crate::simd::unroll!(@iteration $i, 0, $n, $body);
        $crate::simd::unroll!(@iteration $i, 1, $n, $body);
        $crate::simd::unroll!(@iteration $i, 2, $n, $body);
        $crate::simd::unroll!(@iteration $i, 3, $n, $body);
        $crate::simd::unroll!(@iteration $i, 4, $n, $body);
        $crate::simd::unroll!(@iteration $i, 5, $n, $body);
        $crate::simd::unroll!(@iteration $i, 6, $n, $body);
        $crate::simd::unroll!(@iteration $i, 7, $n, $body);
    }};
    (to 16: $i:ident in $n:expr, $body:block) => {{
        $crate::simd::unroll!(to 8: $i in 8, $body);
        const { assert!($n == 16) };
        $crate::simd::unroll!(@iteration $i, 8, $n, $body);
        $crate::simd::unroll!(@iteration $i, 9, $n, $body);
        $crate::simd::unroll!(@iteration $i, 10, $n, $body);
        $crate::simd::unroll!(@iteration $i, 11, $n, $body);
        $crate::simd::unroll!(@iteration $i, 12, $n, $body);
        $crate::simd::unroll!(@iteration $i, 13, $n, $body);
        $crate::simd::unroll!(@iteration $i, 14, $n, $body);
        $crate::simd::unroll!(@iteration $i, 15, $n, $body);
    }};
    (@iteration $i:ident, $value:expr, $n:expr, $body:block) => {
        #[allow(
            non_upper_case_globals,
            clippy::out_of_bounds_indexing,
            unconditional_panic,
            reason = "the constant replaces a loop variable, and iterations past the end are dead code"
        )]
        if const { $value < $n } {
            const $i: usize = $value;
            $body
        }
    };
}
pub(crate) use unroll;

/// A value of zeros, which is one instruction. `[zero; N]` is a loop until the optimizer unrolls it, and a kernel would have
/// a hundred of them.
///
/// # Safety
/// Zero bytes are a value of the type, as of numbers, vectors, raw pointers, and structures and arrays of them.
#[inline(always)]
pub(crate) unsafe fn zeroed<T>() -> T {
    // SAFETY: guaranteed by the caller.
    unsafe { std::mem::zeroed() }
}
