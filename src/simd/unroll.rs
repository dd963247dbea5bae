//! Loops over the vectors of an array, written out.
//!
//! An array whose index is a loop's variable goes through memory unless the optimiser unrolls the loop before it takes
//! arrays apart, which is a matter of luck in a large function.

/// `unroll!(r in R, { ... })` is `for r in 0..R { ... }` with a constant `r`; `R` is a constant up to 4.
macro_rules! unroll {
    ($i:ident in $n:expr, $body:block) => {{
        const { assert!($n <= 4) };
        $crate::simd::unroll!(@turn $i, 0, $n, $body);
        $crate::simd::unroll!(@turn $i, 1, $n, $body);
        $crate::simd::unroll!(@turn $i, 2, $n, $body);
        $crate::simd::unroll!(@turn $i, 3, $n, $body);
    }};
    (@turn $i:ident, $value:expr, $n:expr, $body:block) => {
        #[allow(non_upper_case_globals, reason = "it stands for a loop's variable")]
        if $value < $n {
            const $i: usize = $value;
            $body
        }
    };
}
pub(crate) use unroll;
