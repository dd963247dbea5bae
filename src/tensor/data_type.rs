//! The table of element types.

use norm_sys as sys;
use std::ffi::CStr;

/// How much of the library supports a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Support {
    /// Every operation, both directions.
    Full,
    /// Every operation, forward.
    Forward,
    /// Operations that compute in f64.
    Wide,
    /// Scales and reorders.
    Scale,
}

/// Defines [`DataType`] and `for_type!` from the rows of the table. The first argument is a dollar sign, for the macro
/// that this one defines.
macro_rules! data_types {
    (($d:tt) $($(#[$meta:meta])* $variant:ident = $code:ident, $name:literal, $raw:ty, $integer:literal, $support:ident;)*) => {
        /// The type of a tensor's elements.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(crate) enum DataType { $($(#[$meta])* $variant,)* }

        impl DataType {
            /// All types. The position of a type is its number in serialized descriptors.
            pub(crate) const ALL: [Self; [$($name),*].len()] = [$(Self::$variant,)*];

            /// The C value.
            pub(crate) const fn code(self) -> sys::norm_data_type_t {
                match self { $(Self::$variant => sys::$code,)* }
            }

            pub(crate) const fn c_name(self) -> &'static CStr {
                match self { $(Self::$variant => $name,)* }
            }

            /// Bytes of an element.
            #[inline(always)]
            pub(crate) const fn size(self) -> usize {
                match self { $(Self::$variant => size_of::<$raw>(),)* }
            }

            pub(crate) const fn is_integer(self) -> bool {
                match self { $(Self::$variant => $integer,)* }
            }

            pub(crate) const fn support(self) -> Support {
                match self { $(Self::$variant => Support::$support,)* }
            }
        }

        /// `for_type!(data_type, |TYPE, Raw| body)` is the body with the constant `TYPE` for a type known at run time,
        /// and `Raw`, the unsigned integer of its size. The type is matched once, outside the loops of the body.
        macro_rules! for_type {
            ($d data_type:expr, |$d constant:ident $d(, $d bits:ident)?| $d body:expr) => {
                match $d data_type {
                    $($crate::tensor::DataType::$variant => {
                        const $d constant: $crate::tensor::DataType = $crate::tensor::DataType::$variant;
                        $d(type $d bits = $raw;)?
                        $d body
                    })*
                }
            };
        }
        pub(crate) use for_type;
    };
}

// Add new types at the end: serialized descriptors store the position.
data_types! { ($)
    // C value, name, unsigned integer of the size, integer, support
    F16 = norm_f16, c"f16", u16, false, Full;
    Bf16 = norm_bf16, c"bf16", u16, false, Full;
    F32 = norm_f32, c"f32", u32, false, Full;
    S32 = norm_s32, c"s32", u32, true, Wide;
    S8 = norm_s8, c"s8", u8, true, Forward;
    U8 = norm_u8, c"u8", u8, true, Forward;
    F64 = norm_f64, c"f64", u64, false, Wide;
    F8E5m2 = norm_f8_e5m2, c"f8_e5m2", u8, false, Forward;
    F8E4m3 = norm_f8_e4m3, c"f8_e4m3", u8, false, Forward;
    E8m0 = norm_e8m0, c"e8m0", u8, false, Scale;
    S64 = norm_s64, c"s64", u64, true, Wide;
}

impl DataType {
    pub(crate) fn name(self) -> &'static str {
        self.c_name().to_str().unwrap_or_default()
    }

    /// The type of a C value.
    pub(crate) fn of_code(code: sys::norm_data_type_t) -> Option<Self> {
        Self::ALL.into_iter().find(|data_type| data_type.code() == code)
    }

    /// The distance from 1 to the next larger number; 0 for types without one.
    pub(crate) fn epsilon(self) -> f64 {
        let bits = match self {
            Self::F64 => f64::MANTISSA_DIGITS as i32 - 1,
            Self::F32 => f32::MANTISSA_DIGITS as i32 - 1,
            Self::F16 => 10,
            Self::Bf16 => 7,
            Self::F8E4m3 => 3,
            Self::F8E5m2 => 2,
            _ => return 0.0,
        };
        2f64.powi(-bits)
    }

    /// Whether it is a 16-bit floating-point type.
    pub(crate) fn is_half(self) -> bool {
        matches!(self, Self::F16 | Self::Bf16)
    }

    /// Whether operations in f32 support it in a direction.
    pub(crate) fn is_supported(self, forward: bool) -> bool {
        match self.support() {
            Support::Full => true,
            Support::Forward => forward,
            Support::Wide | Support::Scale => false,
        }
    }
}
