//! Vectors with operators, so an elementary function reads like its formula.
//!
//! A value exists only if its instruction set is available. [`Lanes::load`] is the unsafe step; everything computed
//! from its result is safe. An operand is a vector, or one number for all lanes.

use super::{LANES, Simd};

/// 16 lanes of f32.
#[derive(Clone, Copy)]
pub(crate) struct Lanes<S: Simd>(S::F32x16);

/// 16 lanes of f64.
#[derive(Clone, Copy)]
pub(crate) struct Wide<S: Simd>(S::F64x16);

/// 16 lanes of true or false.
#[derive(Clone, Copy)]
pub(crate) struct Mask<S: Simd>(S::M);

/// The other operand of an operation on f32 vectors.
pub(crate) trait Operand<S: Simd>: Copy {
    /// # Safety
    /// The instruction set of `S` is available.
    unsafe fn vector(self) -> S::F32x16;
}

impl<S: Simd> Operand<S> for f32 {
    #[inline(always)]
    unsafe fn vector(self) -> S::F32x16 {
        // SAFETY: the caller's.
        unsafe { S::splat(self) }
    }
}

impl<S: Simd> Operand<S> for Lanes<S> {
    #[inline(always)]
    unsafe fn vector(self) -> S::F32x16 {
        self.0
    }
}

/// The other operand of an operation on f64 vectors.
pub(crate) trait WideOperand<S: Simd>: Copy {
    /// # Safety
    /// The instruction set of `S` is available.
    unsafe fn vector(self) -> S::F64x16;
}

impl<S: Simd> WideOperand<S> for f64 {
    #[inline(always)]
    unsafe fn vector(self) -> S::F64x16 {
        // SAFETY: the caller's.
        unsafe { S::wide_splat(self) }
    }
}

impl<S: Simd> WideOperand<S> for Wide<S> {
    #[inline(always)]
    unsafe fn vector(self) -> S::F64x16 {
        self.0
    }
}

/// Safe functions on vectors. That a vector exists proves that its instruction set is available.
macro_rules! methods {
    ($operand:ident: $($(#[$doc:meta])* fn $name:ident(self $(, $arg:ident)*) -> $result:ident = $operation:ident;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $name(self $(, $arg: impl $operand<S>)*) -> $result<S> {
            // SAFETY: the vector exists, so its instruction set is there.
            $result(unsafe { S::$operation(self.0 $(, $arg.vector())*) })
        }
    )*};
}

macro_rules! operators {
    ($vector:ident, $operand:ident: $($trait:ident $method:ident = $operation:ident;)*) => {$(
        impl<S: Simd, T: $operand<S>> std::ops::$trait<T> for $vector<S> {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: T) -> Self {
                // SAFETY: the vector exists, so its instruction set is there.
                Self(unsafe { S::$operation(self.0, other.vector()) })
            }
        }
    )*};
}

operators! { Lanes, Operand:
    Add add = add;
    Sub sub = sub;
    Mul mul = mul;
    Div div = div;
}

operators! { Wide, WideOperand:
    Add add = wide_add;
    Sub sub = wide_sub;
    Mul mul = wide_mul;
    Div div = wide_div;
}

const SIGN: f32 = -0.0;

impl<S: Simd> std::ops::Neg for Lanes<S> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        self.bits_xor(SIGN)
    }
}

impl<S: Simd> Lanes<S> {
    /// # Safety
    /// The instruction set of `S` is available.
    #[inline(always)]
    pub(crate) unsafe fn new(v: S::F32x16) -> Self {
        Self(v)
    }

    #[inline(always)]
    pub(crate) fn vector(self) -> S::F32x16 {
        self.0
    }

    /// The first `n` lanes, and zeros.
    ///
    /// # Safety
    /// `n` elements, 1 to 16, exist, and the instruction set of `S` is available.
    #[inline(always)]
    pub(crate) unsafe fn load(p: *const f32, n: usize) -> Self {
        // SAFETY: the caller's.
        Self(unsafe { if n == LANES { S::load(p) } else { S::load_n(p, n) } })
    }

    /// # Safety
    /// `n` elements, 1 to 16, may be written.
    #[inline(always)]
    pub(crate) unsafe fn store(self, p: *mut f32, n: usize) {
        // SAFETY: the caller's.
        unsafe { if n == LANES { S::store(p, self.0) } else { S::store_n(p, self.0, n) } }
    }

    /// [`store`](Self::store), non-temporal with `streams` if all lanes are stored.
    ///
    /// # Safety
    /// As [`store`](Self::store); streamed, the address is a multiple of 64.
    #[inline(always)]
    pub(crate) unsafe fn put(self, p: *mut f32, n: usize, streams: bool) {
        // SAFETY: the caller's.
        unsafe { if streams && n == LANES { S::stream(p, self.0) } else { self.store(p, n) } }
    }

    /// One number in all lanes.
    #[inline(always)]
    pub(crate) fn all(self, x: f32) -> Self {
        // SAFETY: the vector exists, so its instruction set is there.
        Self(unsafe { S::splat(x) })
    }

    methods! { Operand:
        /// `self * b + c`, rounded once.
        fn mul_add(self, b, c) -> Lanes = fma;
        /// `c - self * b`, rounded once.
        fn neg_mul_add(self, b, c) -> Lanes = fnma;
        fn sqrt(self) -> Lanes = sqrt;
        /// As [`Simd::max`].
        fn max(self, b) -> Lanes = max;
        /// As [`Simd::min`].
        fn min(self, b) -> Lanes = min;
        fn lt(self, b) -> Mask = lt;
        fn le(self, b) -> Mask = le;
        fn eq(self, b) -> Mask = eq;
        fn bits_and(self, b) -> Lanes = bits_and;
        fn bits_and_not(self, b) -> Lanes = bits_and_not;
        fn bits_xor(self, b) -> Lanes = bits_xor;
        fn bits_add(self, b) -> Lanes = bits_add;
        fn bits_sub(self, b) -> Lanes = bits_sub;
        /// As [`Simd::times_power_of_2`].
        fn times_power_of_2(self, n, integer) -> Lanes = times_power_of_2;
        /// The bits as a signed integer, rounded to f32.
        fn as_integer(self) -> Lanes = from_integer;
        fn widen(self) -> Wide = widen;
    }

    /// As [`Simd::within`].
    #[inline(always)]
    pub(crate) fn within(self, low: f32, high: f32) -> Self {
        // SAFETY: the vector exists, so its instruction set is there.
        Self(unsafe { S::within(self.0, low, high) })
    }

    /// The bits shifted left; zeros are shifted in.
    #[inline(always)]
    pub(crate) fn shift_left(self, n: i32) -> Self {
        // SAFETY: the vector exists, so its instruction set is there.
        Self(unsafe { S::shift_left(self.0, n) })
    }

    /// The bits shifted right; copies of the sign bit are shifted in.
    #[inline(always)]
    pub(crate) fn shift_right(self, n: i32) -> Self {
        // SAFETY: the vector exists, so its instruction set is there.
        Self(unsafe { S::shift_right(self.0, n) })
    }

    #[inline(always)]
    pub(crate) fn abs(self) -> Self {
        self.bits_and_not(SIGN)
    }

    /// Where the sign bit is set: negative numbers, -0, and NaN with a sign.
    #[inline(always)]
    pub(crate) fn negative(self) -> Mask<S> {
        // SAFETY: the vector exists, so its instruction set is there.
        Mask(unsafe { S::negative(self.0) })
    }

    /// Only the sign bit.
    #[inline(always)]
    pub(crate) fn sign(self) -> Self {
        self.bits_and(SIGN)
    }

    #[inline(always)]
    pub(crate) fn copysign(self, sign: Self) -> Self {
        self.abs().bits_xor(sign.sign())
    }

    /// The largest lane. If a lane is NaN, any lane that is not.
    #[inline(always)]
    pub(crate) fn largest(self) -> f32 {
        let mut lane = [0.0];
        // SAFETY: the vector exists, so its instruction set is there; one lane is stored.
        unsafe {
            let v = S::max(self.0, S::swap::<8>(self.0));
            let v = S::max(v, S::swap::<4>(v));
            let v = S::max(v, S::swap::<2>(v));
            S::store_n(lane.as_mut_ptr(), S::max(v, S::swap::<1>(v)), 1);
        }
        lane[0]
    }
}

impl<S: Simd> Lanes<S> {
    /// The sum of the lanes: `(i) + (i + 8)`, then `(i) + (i + 4)`, and so on.
    #[inline(always)]
    pub(crate) fn total(self) -> f32 {
        let mut lane = [0.0];
        // SAFETY: the vector exists, so its instruction set is there; one lane is stored.
        unsafe {
            let v = S::add(self.0, S::swap::<8>(self.0));
            let v = S::add(v, S::swap::<4>(v));
            let v = S::add(v, S::swap::<2>(v));
            S::store_n(lane.as_mut_ptr(), S::add(v, S::swap::<1>(v)), 1);
        }
        lane[0]
    }
}

impl<S: Simd> Mask<S> {
    /// `a` where the mask is true, else `b`.
    #[inline(always)]
    pub(crate) fn select(self, a: impl Operand<S>, b: impl Operand<S>) -> Lanes<S> {
        // SAFETY: the mask exists, so its instruction set is there.
        Lanes(unsafe { S::select(self.0, a.vector(), b.vector()) })
    }
}

impl<S: Simd> Wide<S> {
    /// # Safety
    /// The instruction set of `S` is available.
    #[inline(always)]
    pub(crate) unsafe fn new(v: S::F64x16) -> Self {
        Self(v)
    }

    methods! { WideOperand:
        /// `self * b + c`, rounded once.
        fn mul_add(self, b, c) -> Wide = wide_fma;
        fn bits_add(self, b) -> Wide = wide_bits_add;
        fn bits_sub(self, b) -> Wide = wide_bits_sub;
        /// Rounded to nearest even.
        fn narrow(self) -> Lanes = narrow;
        /// The lower 32 bits of each lane.
        fn low_bits(self) -> Lanes = wide_low_bits;
    }

    /// As [`Simd::within`].
    #[inline(always)]
    pub(crate) fn within(self, low: f64, high: f64) -> Self {
        // SAFETY: the vector exists, so its instruction set is there.
        Self(unsafe { S::wide_within(self.0, low, high) })
    }

    /// The bits shifted left; zeros are shifted in.
    #[inline(always)]
    pub(crate) fn shift_left(self, n: i32) -> Self {
        // SAFETY: the vector exists, so its instruction set is there.
        Self(unsafe { S::wide_shift_left(self.0, n) })
    }

    /// The bits shifted right; zeros are shifted in.
    #[inline(always)]
    pub(crate) fn shift_right(self, n: i32) -> Self {
        // SAFETY: the vector exists, so its instruction set is there.
        Self(unsafe { S::wide_shift_right(self.0, n) })
    }
}
