//! Element types: [`DataType`] at run time, [`Element`] and [`Float`] at compile time.

use std::fmt;

#[cfg(feature = "half")]
use half::{bf16, f16};
use norm_sys as sys;

/// The type of a tensor's elements.
///
/// See [`layer_normalization`](crate::layer_normalization) and [`reorder`](crate::reorder) for the
/// types that operations support. Descriptors and memory support all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DataType {
    /// IEEE 754 binary16.
    F16,
    /// The upper half of a binary32, rounded to nearest even.
    Bf16,
    /// IEEE 754 binary32.
    F32,
    /// Signed, 32 bits.
    S32,
    /// Signed, 8 bits.
    S8,
    /// Unsigned, 8 bits.
    U8,
    /// IEEE 754 binary64.
    F64,
    /// The upper half of a binary16, rounded to nearest even.
    F8E5m2,
    /// 8 bits with a 4-bit exponent and no infinity (OCP).
    F8E4m3,
    /// Powers of two from 2^-127 to 2^127 in 8 bits: scales (OCP MX).
    E8m0,
    /// Signed, 64 bits: positions and slots of [`rope`](crate::rope).
    S64,
}

impl DataType {
    /// Size of an element in bytes.
    pub fn size(self) -> usize {
        match self {
            Self::S8 | Self::U8 | Self::F8E5m2 | Self::F8E4m3 | Self::E8m0 => 1,
            Self::F16 | Self::Bf16 => 2,
            Self::F32 | Self::S32 => 4,
            Self::F64 | Self::S64 => 8,
        }
    }

    /// The machine epsilon, the distance from 1 to the next larger number; `None` for integers.
    ///
    /// PyTorch's `rms_norm` uses it if `eps` is `None`. It is never a default here: that of bf16 makes outputs 0.4%
    /// smaller at an RMS of 1, and 9 times smaller at 0.01.
    ///
    /// ```
    /// use norm_rs::DataType;
    /// assert_eq!(DataType::F32.machine_epsilon(), Some(f32::EPSILON));
    /// assert_eq!(DataType::Bf16.machine_epsilon(), Some(0.0078125));
    /// assert_eq!(DataType::S8.machine_epsilon(), None);
    /// ```
    pub fn machine_epsilon(self) -> Option<f32> {
        // SAFETY: any value is allowed.
        let epsilon = unsafe { sys::norm_data_type_epsilon(self.to_c()) };
        (epsilon > 0.0).then_some(epsilon as f32)
    }

    /// The type in Rust that is an [`Element`] of this type, if there is one.
    pub(crate) fn rust_name(self) -> Option<&'static str> {
        match self {
            Self::F32 => Some("f32"),
            Self::F64 => Some("f64"),
            Self::S8 => Some("i8"),
            Self::U8 => Some("u8"),
            Self::S32 => Some("i32"),
            Self::S64 => Some("i64"),
            Self::F16 if cfg!(feature = "half") => Some("f16"),
            Self::Bf16 if cfg!(feature = "half") => Some("bf16"),
            _ => None,
        }
    }

    pub(crate) fn to_c(self) -> sys::norm_data_type_t {
        match self {
            Self::F16 => sys::norm_f16,
            Self::Bf16 => sys::norm_bf16,
            Self::F32 => sys::norm_f32,
            Self::S32 => sys::norm_s32,
            Self::S8 => sys::norm_s8,
            Self::U8 => sys::norm_u8,
            Self::F64 => sys::norm_f64,
            Self::F8E5m2 => sys::norm_f8_e5m2,
            Self::F8E4m3 => sys::norm_f8_e4m3,
            Self::E8m0 => sys::norm_e8m0,
            Self::S64 => sys::norm_s64,
        }
    }

    /// `None` for "undef" and unknown values.
    pub(crate) fn from_c(data_type: sys::norm_data_type_t) -> Option<Self> {
        Some(match data_type {
            sys::norm_f16 => Self::F16,
            sys::norm_bf16 => Self::Bf16,
            sys::norm_f32 => Self::F32,
            sys::norm_s32 => Self::S32,
            sys::norm_s8 => Self::S8,
            sys::norm_u8 => Self::U8,
            sys::norm_f64 => Self::F64,
            sys::norm_f8_e5m2 => Self::F8E5m2,
            sys::norm_f8_e4m3 => Self::F8E4m3,
            sys::norm_e8m0 => Self::E8m0,
            sys::norm_s64 => Self::S64,
            _ => return None,
        })
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::F32 => "f32",
            Self::S32 => "s32",
            Self::S8 => "s8",
            Self::U8 => "u8",
            Self::F64 => "f64",
            Self::F8E5m2 => "f8_e5m2",
            Self::F8E4m3 => "f8_e4m3",
            Self::E8m0 => "e8m0",
            Self::S64 => "s64",
        })
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A Rust type for a tensor's elements: `f32`, `f64`, [`bf16`], [`f16`](struct@f16), `i64`, `i32`,
/// `i8`, `u8`.
///
/// Sealed, because memory safety depends on it: every bit pattern of these types is a valid value,
/// and their size and alignment match the C library's types.
pub trait Element: sealed::Sealed + Copy + Send + Sync + fmt::Debug + 'static {
    /// The corresponding run-time type.
    const DATA_TYPE: DataType;
}

/// An [`Element`] of rows for the functions on [slices](crate::slices): `f32`, `f64`, and with the
/// feature `half` [`bf16`] and [`f16`](struct@f16).
#[diagnostic::on_unimplemented(
    message = "rows of `{Self}` are not supported",
    note = "rows are `f32`, `f64`, `bf16` or `f16`; for integers use `norm_rs::layer_normalization`"
)]
pub trait Float: Element + Default {}

/// An [`Element`] of scale, shift and their gradients: `f32`, and with the feature `half` [`bf16`]
/// and [`f16`](struct@f16).
#[diagnostic::on_unimplemented(
    message = "scale, shift and their gradients cannot be `{Self}`",
    note = "they are `f32`, `bf16` or `f16`; rows of `f64` take `f32`"
)]
pub trait Parameter: Element + Default {}

macro_rules! elements {
    ($($element:ty => $data_type:ident;)*) => {$(
        impl sealed::Sealed for $element {}
        impl Element for $element {
            const DATA_TYPE: DataType = DataType::$data_type;
        }
    )*};
}
elements! {
    f32 => F32;
    i32 => S32;
    i64 => S64;
    i8 => S8;
    u8 => U8;
    f64 => F64;
}
impl Float for f32 {}
impl Float for f64 {}
impl Parameter for f32 {}
#[cfg(feature = "half")]
mod half_types {
    use super::{DataType, Element, Float, Parameter, bf16, f16, sealed};

    elements! {
        f16 => F16;
        bf16 => Bf16;
    }
    impl Float for bf16 {}
    impl Float for f16 {}
    impl Parameter for bf16 {}
    impl Parameter for f16 {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_agree_with_the_library() {
        fn same<T: Element>(name: &str) {
            let c = T::DATA_TYPE.to_c();
            assert_eq!(DataType::from_c(c), Some(T::DATA_TYPE));
            assert_eq!(T::DATA_TYPE.size(), size_of::<T>());
            // SAFETY: any value is allowed; the string is static.
            let (size, text) = unsafe {
                (sys::norm_data_type_size(c), std::ffi::CStr::from_ptr(sys::norm_dt2str(c)))
            };
            assert_eq!(size, size_of::<T>());
            assert_eq!(text.to_str(), Ok(name));
            assert_eq!(T::DATA_TYPE.to_string(), name);
        }
        #[cfg(feature = "half")]
        {
            same::<f16>("f16");
            same::<bf16>("bf16");
        }
        same::<f32>("f32");
        same::<i32>("s32");
        same::<i64>("s64");
        same::<i8>("s8");
        same::<u8>("u8");
        same::<f64>("f64");
        assert_eq!(DataType::from_c(sys::norm_data_type_undef), None);
        assert_eq!(DataType::from_c(99), None);
    }
}
