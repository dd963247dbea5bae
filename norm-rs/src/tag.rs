//! Names of layouts: [`Tag`].

use std::ffi::CStr;
use std::fmt;

use norm_sys as sys;

macro_rules! tags {
    ($($variant:ident = $constant:ident,)*) => {
        /// The layout of a tensor in memory.
        ///
        /// The letters are the logical dimensions, outermost in memory first: in a 2D tensor with
        /// [`Tag::Ba`] the first dimension is contiguous. Semantic names (batch `N`, time `T`,
        /// channels `C`, and depth, height, width) are constants: [`Tag::TNC`] is [`Tag::Abc`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs)] // The letters are the documentation.
        #[non_exhaustive]
        pub enum Tag {
            /// The primitive chooses the layout.
            Any,
            $($variant,)*
        }

        impl Tag {
            pub(crate) fn to_c(self) -> sys::norm_format_tag_t {
                match self {
                    Self::Any => sys::norm_format_tag_any,
                    $(Self::$variant => sys::$constant,)*
                }
            }

            #[cfg(test)]
            const ALL: &[(Tag, &str)] = &[
                (Self::Any, "Any"),
                $((Self::$variant, stringify!($variant)),)*
            ];
        }
    };
}
tags! {
    A = norm_a,
    Ab = norm_ab,
    Abc = norm_abc,
    Abcd = norm_abcd,
    Abcde = norm_abcde,
    Abcdef = norm_abcdef,
    Ba = norm_ba,
    Acb = norm_acb,
    Bac = norm_bac,
    Bca = norm_bca,
    Cab = norm_cab,
    Cba = norm_cba,
    Abdc = norm_abdc,
    Acbd = norm_acbd,
    Acdb = norm_acdb,
    Adbc = norm_adbc,
    Adcb = norm_adcb,
    Bacd = norm_bacd,
    Bcda = norm_bcda,
    Cdab = norm_cdab,
    Cdba = norm_cdba,
    Dcab = norm_dcab,
    Abced = norm_abced,
    Abdec = norm_abdec,
    Acbde = norm_acbde,
    Acdeb = norm_acdeb,
    Adecb = norm_adecb,
    Bacde = norm_bacde,
    Bcdea = norm_bcdea,
    Cdeab = norm_cdeab,
    Cdeba = norm_cdeba,
    Decab = norm_decab,
    Abcdfe = norm_abcdfe,
    Abdefc = norm_abdefc,
    Abdfce = norm_abdfce,
    Acbdef = norm_acbdef,
    Adefcb = norm_adefcb,
    Defcab = norm_defcab,
    Bcad = norm_bcad,
    Cabd = norm_cabd,
    Dabc = norm_dabc,
}

/// Semantic names.
#[allow(missing_docs)] // The letters are the documentation.
impl Tag {
    pub const X: Self = Self::A;
    pub const NC: Self = Self::Ab;
    pub const CN: Self = Self::Ba;
    pub const TN: Self = Self::Ab;
    pub const NT: Self = Self::Ba;
    pub const TNC: Self = Self::Abc;
    pub const NTC: Self = Self::Bac;
    pub const NCW: Self = Self::Abc;
    pub const NWC: Self = Self::Acb;
    pub const NCHW: Self = Self::Abcd;
    pub const NHWC: Self = Self::Acdb;
    pub const CHWN: Self = Self::Bcda;
    pub const NCDHW: Self = Self::Abcde;
    pub const NDHWC: Self = Self::Acdeb;
    pub const LDNC: Self = Self::Abcd;
}

impl fmt::Display for Tag {
    /// The letters ("abc") or "any".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: any value is allowed; the string returned is static.
        let name = unsafe { CStr::from_ptr(sys::norm_fmt_tag2str(self.to_c())) };
        f.write_str(&name.to_string_lossy())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_agree_with_the_library() {
        for (tag, name) in Tag::ALL {
            assert_eq!(tag.to_string(), name.to_lowercase());
        }
    }

    #[test]
    fn semantic_names_match_the_header() {
        for (tag, c) in [
            (Tag::X, sys::norm_x),
            (Tag::NC, sys::norm_nc),
            (Tag::CN, sys::norm_cn),
            (Tag::TN, sys::norm_tn),
            (Tag::NT, sys::norm_nt),
            (Tag::TNC, sys::norm_tnc),
            (Tag::NTC, sys::norm_ntc),
            (Tag::NCW, sys::norm_ncw),
            (Tag::NWC, sys::norm_nwc),
            (Tag::NCHW, sys::norm_nchw),
            (Tag::NHWC, sys::norm_nhwc),
            (Tag::CHWN, sys::norm_chwn),
            (Tag::NCDHW, sys::norm_ncdhw),
            (Tag::NDHWC, sys::norm_ndhwc),
            (Tag::LDNC, sys::norm_ldnc),
        ] {
            assert_eq!(tag.to_c(), c, "{tag:?}");
        }
    }
}
