//! Enumerations that C passes as integers: each variant with its C value and its name.

use crate::error::{Error, Result};
use crate::text::joined;
use norm_sys as sys;

/// The refusal of a C value that is none of the enumerators of its type.
pub(crate) fn unknown_enumerator(argument: &str, code: i32, names: &[&str]) -> Error {
    let names = joined(names.iter(), ", ");
    Error::invalid(format_args!("{argument}: {code} is none of {names}"))
}

/// Refuses flags that are not in a list of bits and names.
pub(crate) fn check_known_flags(flags: u32, known: &[(u32, &str)]) -> Result<()> {
    let other = known.iter().fold(flags, |left, (bit, _)| left & !bit);
    if other == 0 {
        return Ok(());
    }
    let names = joined(known.iter().map(|(_, name)| name), ", ");
    Err(Error::invalid(format_args!("flags: {other:#x} is not among {names}")))
}

/// Defines an enumeration from rows of Rust name, C constant and text.
macro_rules! enumerators {
    ($(#[$meta:meta])* $name:ident: $code:ident {
        $($(#[$row:meta])* $variant:ident = $value:ident, $text:literal;)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum $name { $($(#[$row])* $variant,)* }

        impl $name {
            /// The enumerator of a C value.
            pub(crate) fn of_code(code: sys::$code) -> Option<Self> {
                Some(match code {
                    $(sys::$value => Self::$variant,)*
                    _ => return None,
                })
            }

            /// The enumerator of the C value that was passed as `argument`.
            #[allow(dead_code, reason = "C does not set all of them")]
            pub(crate) fn given(code: sys::$code, argument: &str) -> crate::error::Result<Self> {
                let names = [$(stringify!($value),)*];
                Self::of_code(code).ok_or_else(|| {
                    crate::primitive::unknown_enumerator(argument, code as i32, &names)
                })
            }

            #[allow(dead_code, reason = "C does not ask for all of them")]
            pub(crate) fn code(self) -> sys::$code {
                match self { $(Self::$variant => sys::$value,)* }
            }

            #[allow(dead_code, reason = "not all of them are printed")]
            pub(crate) fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            #[allow(dead_code, reason = "C does not ask for all of them")]
            pub(crate) fn c_name(self) -> &'static std::ffi::CStr {
                match self {
                    $(Self::$variant => const { crate::text::c_str(concat!($text, "\0")) },)*
                }
            }
        }
    };
}

pub(crate) use enumerators;

enumerators! {
    /// Who provides the scratchpad.
    #[derive(Default)]
    ScratchpadMode: norm_scratchpad_mode_t {
        #[default]
        Library = norm_scratchpad_mode_library, "library";
        User = norm_scratchpad_mode_user, "user";
    }
}

enumerators! {
    /// Whether f32 may be computed in a narrower type.
    #[derive(Default)]
    FpmathMode: norm_fpmath_mode_t {
        #[default]
        Strict = norm_fpmath_mode_strict, "strict";
        Bf16 = norm_fpmath_mode_bf16, "bf16";
        F16 = norm_fpmath_mode_f16, "f16";
        Any = norm_fpmath_mode_any, "any";
        Tf32 = norm_fpmath_mode_tf32, "tf32";
    }
}

enumerators! {
    /// The type of accumulators.
    #[derive(Default)]
    AccumulationMode: norm_accumulation_mode_t {
        #[default]
        Strict = norm_accumulation_mode_strict, "strict";
        Relaxed = norm_accumulation_mode_relaxed, "relaxed";
        Any = norm_accumulation_mode_any, "any";
        S32 = norm_accumulation_mode_s32, "s32";
        F32 = norm_accumulation_mode_f32, "f32";
        F16 = norm_accumulation_mode_f16, "f16";
    }
}

enumerators! {
    /// The rounding of an output.
    #[derive(Default)]
    RoundingMode: norm_rounding_mode_t {
        #[default]
        Environment = norm_rounding_mode_environment, "environment";
        Stochastic = norm_rounding_mode_stochastic, "stochastic";
    }
}

enumerators! {
    /// An elementwise function; see `norm_types.h` for the formulas.
    EltwiseAlgorithm: norm_alg_kind_t {
        Relu = norm_eltwise_relu, "eltwise_relu";
        Tanh = norm_eltwise_tanh, "eltwise_tanh";
        Elu = norm_eltwise_elu, "eltwise_elu";
        Square = norm_eltwise_square, "eltwise_square";
        Abs = norm_eltwise_abs, "eltwise_abs";
        Sqrt = norm_eltwise_sqrt, "eltwise_sqrt";
        Linear = norm_eltwise_linear, "eltwise_linear";
        SoftRelu = norm_eltwise_soft_relu, "eltwise_soft_relu";
        Hardsigmoid = norm_eltwise_hardsigmoid, "eltwise_hardsigmoid";
        Logistic = norm_eltwise_logistic, "eltwise_logistic";
        Exp = norm_eltwise_exp, "eltwise_exp";
        GeluTanh = norm_eltwise_gelu_tanh, "eltwise_gelu_tanh";
        Swish = norm_eltwise_swish, "eltwise_swish";
        Log = norm_eltwise_log, "eltwise_log";
        Clip = norm_eltwise_clip, "eltwise_clip";
        ClipV2 = norm_eltwise_clip_v2, "eltwise_clip_v2";
        Pow = norm_eltwise_pow, "eltwise_pow";
        GeluErf = norm_eltwise_gelu_erf, "eltwise_gelu_erf";
        Round = norm_eltwise_round, "eltwise_round";
        Mish = norm_eltwise_mish, "eltwise_mish";
        Hardswish = norm_eltwise_hardswish, "eltwise_hardswish";
    }
}

enumerators! {
    /// A function of two or three elements.
    BinaryAlgorithm: norm_alg_kind_t {
        Add = norm_binary_add, "binary_add";
        Mul = norm_binary_mul, "binary_mul";
        Max = norm_binary_max, "binary_max";
        Min = norm_binary_min, "binary_min";
        Div = norm_binary_div, "binary_div";
        Sub = norm_binary_sub, "binary_sub";
        Ge = norm_binary_ge, "binary_ge";
        Gt = norm_binary_gt, "binary_gt";
        Le = norm_binary_le, "binary_le";
        Lt = norm_binary_lt, "binary_lt";
        Eq = norm_binary_eq, "binary_eq";
        Ne = norm_binary_ne, "binary_ne";
        Select = norm_binary_select, "binary_select";
    }
}

enumerators! {
    /// The sum that is normalized when a residual is added.
    ResidualRounding: norm_residual_rounding_t {
        Rounded = norm_residual_rounded, "rounded";
        Exact = norm_residual_exact, "exact";
    }
}
