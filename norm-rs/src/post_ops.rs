//! Functions applied to each element of an output before it is rounded: [`PostOps`].

use std::fmt;

use norm_sys as sys;

use crate::error::{Result, check};
use crate::handle::Handle;
use crate::memory_desc::MemoryDesc;

macro_rules! algorithms {
    ($(#[$doc:meta])* $name:ident { $($(#[$row:meta])* $variant:ident = $constant:ident;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name { $($(#[$row])* $variant,)* }

        impl $name {
            pub(crate) fn to_c(self) -> sys::norm_alg_kind_t {
                match self { $(Self::$variant => sys::$constant,)* }
            }
        }
    };
}

algorithms! {
    /// A function of an element `x`, with the parameters `a` (alpha) and `b` (beta).
    Eltwise {
        /// `x > 0 ? x : a*x`
        Relu = norm_eltwise_relu;
        /// `tanh(x)`
        Tanh = norm_eltwise_tanh;
        /// `x > 0 ? x : a*(exp(x) - 1)`
        Elu = norm_eltwise_elu;
        /// `x*x`
        Square = norm_eltwise_square;
        /// `|x|`
        Abs = norm_eltwise_abs;
        /// `sqrt(x)`
        Sqrt = norm_eltwise_sqrt;
        /// `a*x + b`
        Linear = norm_eltwise_linear;
        /// `log(1 + exp(a*x))/a`
        SoftRelu = norm_eltwise_soft_relu;
        /// `max(0, min(1, a*x + b))`
        Hardsigmoid = norm_eltwise_hardsigmoid;
        /// `1/(1 + exp(-x))`
        Logistic = norm_eltwise_logistic;
        /// `exp(x)`
        Exp = norm_eltwise_exp;
        /// `x/2*(1 + tanh(sqrt(2/pi)*(x + 0.044715x^3)))`
        GeluTanh = norm_eltwise_gelu_tanh;
        /// `x/(1 + exp(-a*x))`
        Swish = norm_eltwise_swish;
        /// `log(x)`
        Log = norm_eltwise_log;
        /// `max(a, min(b, x))`
        Clip = norm_eltwise_clip;
        /// `a*x^b`
        Pow = norm_eltwise_pow;
        /// `x/2*(1 + erf(x/sqrt(2)))`
        GeluErf = norm_eltwise_gelu_erf;
        /// To the nearest integer, ties to even.
        Round = norm_eltwise_round;
        /// `x*tanh(log(1 + exp(x)))`
        Mish = norm_eltwise_mish;
        /// `x*max(0, min(1, a*x + b))`
        Hardswish = norm_eltwise_hardswish;
    }
}

algorithms! {
    /// A function of an element `x` and an element `y` of another tensor. Comparisons return 1 or 0.
    Binary {
        /// `x + y`
        Add = norm_binary_add;
        /// `x * y`
        Mul = norm_binary_mul;
        /// The larger.
        Max = norm_binary_max;
        /// The smaller.
        Min = norm_binary_min;
        /// `x / y`
        Div = norm_binary_div;
        /// `x - y`
        Sub = norm_binary_sub;
        /// `x >= y`
        Ge = norm_binary_ge;
        /// `x > y`
        Gt = norm_binary_gt;
        /// `x <= y`
        Le = norm_binary_le;
        /// `x < y`
        Lt = norm_binary_lt;
        /// `x == y`
        Eq = norm_binary_eq;
        /// `x != y`
        Ne = norm_binary_ne;
    }
}

/// A list of at most 32 post-operations, in execution order.
///
/// The operand of entry `i` is bound with [`Args::operand`](crate::primitive::Args::operand). It
/// has as many dimensions as the output; each has the output's size or 1, which broadcasts it.
///
/// ```
/// use norm_rs::post_ops::{Binary, Eltwise, PostOps};
/// use norm_rs::{DataType, MemoryDesc};
///
/// let residual = MemoryDesc::dense(&[8, 64], DataType::F32)?;
/// let list = PostOps::new()?
///     .binary(Binary::Add, &residual)?
///     .eltwise(Eltwise::Relu, 0.0, 0.0)?;
/// assert_eq!(list.len(), 2);
/// # Ok::<(), norm_rs::Error>(())
/// ```
pub struct PostOps(Handle<sys::norm_post_ops>);

impl PostOps {
    /// An empty list.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory).
    pub fn new() -> Result<Self> {
        // SAFETY: on success a list that the caller owns is stored.
        unsafe { Handle::create(|out| sys::norm_post_ops_create(out)) }.map(Self)
    }

    /// Appends an elementwise function.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments) if the bounds of a clip
    /// are in the wrong order. [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory) if the
    /// list is full; this also applies to the functions below.
    pub fn eltwise(self, algorithm: Eltwise, alpha: f32, beta: f32) -> Result<Self> {
        // SAFETY: the list is valid and not shared.
        check(unsafe {
            sys::norm_post_ops_append_eltwise(self.0.as_ptr(), algorithm.to_c(), alpha, beta)
        })?;
        Ok(self)
    }

    /// Appends a function of another tensor.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments) for an empty descriptor.
    pub fn binary(self, algorithm: Binary, operand: &MemoryDesc) -> Result<Self> {
        // SAFETY: the list is valid and not shared; the descriptor is valid and copied.
        check(unsafe {
            sys::norm_post_ops_append_binary(self.0.as_ptr(), algorithm.to_c(), operand.as_ptr())
        })?;
        Ok(self)
    }

    /// Appends `condition != 0 ? x : otherwise`. The condition is bound with
    /// [`Args::condition`](crate::primitive::Args::condition).
    ///
    /// # Errors
    /// As [`binary`](Self::binary).
    pub fn select(self, otherwise: &MemoryDesc, condition: &MemoryDesc) -> Result<Self> {
        // SAFETY: as for `binary`.
        check(unsafe {
            sys::norm_post_ops_append_binary_v2(
                self.0.as_ptr(),
                sys::norm_binary_select,
                otherwise.as_ptr(),
                condition.as_ptr(),
            )
        })?;
        Ok(self)
    }

    /// Appends `scale` times the previous content of the output.
    ///
    /// # Errors
    /// See [`eltwise`](Self::eltwise).
    pub fn sum(self, scale: f32) -> Result<Self> {
        // SAFETY: the list is valid and not shared.
        check(unsafe {
            sys::norm_post_ops_append_sum(self.0.as_ptr(), scale, 0, sys::norm_data_type_undef)
        })?;
        Ok(self)
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        // SAFETY: the list is valid.
        unsafe { sys::norm_post_ops_len(self.0.as_ptr()) as usize }
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn as_ptr(&self) -> sys::const_norm_post_ops_t {
        self.0.as_ptr()
    }
}

impl fmt::Debug for PostOps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostOps").field("len", &self.len()).finish()
    }
}
