//! Names of tensors and broadcast policies in the values of `--attr-*` options.

use crate::language::value::{BadValue, integer, one_of};
use norm_sys::{NORM_ARG_DIFF_SRC, NORM_ARG_DST, NORM_ARG_SRC, NORM_ARG_SRC_1};

/// Argument ids of oneDNN that no primitive of this library uses.
const WEIGHTS: i32 = 33;
const BIAS: i32 = 41;
const DIFF_WEIGHTS: i32 = 161;
/// The id of the first of several sources.
const MULTIPLE_SRC: i32 = 1024;

/// Names and ids; the first name of an id is printed.
const NAMES: &[(&str, i32)] = &[
    ("src", NORM_ARG_SRC),
    ("src0", NORM_ARG_SRC),
    ("src1", NORM_ARG_SRC_1),
    ("wei", WEIGHTS),
    ("bia", BIAS),
    ("dst", NORM_ARG_DST),
    ("diff_src", NORM_ARG_DIFF_SRC),
    ("diff_weights", DIFF_WEIGHTS),
    ("diff_wei", DIFF_WEIGHTS),
];

/// The id of a named argument.
pub(super) fn argument(text: &str) -> Result<i32, BadValue> {
    if let Some(&(_, id)) = NAMES.iter().find(|(name, _)| *name == text) {
        return Ok(id);
    }
    if let Some(index) = text.strip_prefix("msrc") {
        let index = integer(index, 0..=1023).map_err(|error| error.shifted("msrc".len()))?;
        return Ok(MULTIPLE_SRC + index as i32);
    }
    let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
    Err(BadValue::new(format!(
        "'{text}' is not an argument: {} or msrc and a number",
        names.join(", ")
    )))
}

/// The name of an argument id.
pub fn argument_name(id: i32) -> String {
    match NAMES.iter().find(|(_, known)| *known == id) {
        Some((name, _)) => (*name).to_owned(),
        None => format!("msrc{}", id - MULTIPLE_SRC),
    }
}

/// The broadcast of a tensor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// One value for all.
    #[default]
    Common,
    /// One value for all, passed from the host.
    HostScalar,
    /// One for each index of the channels.
    PerOc,
    /// One for each index of the first two dimensions.
    PerOcic,
    /// One for each index of dimension 0.
    PerDim0,
    /// One for each index of dimension 1.
    PerDim1,
    /// One for each pair of indices of dimensions 0 and 1.
    PerDim01,
    /// One for each index of dimension 2.
    PerDim2,
    /// One for each index of dimension 3.
    PerDim3,
    /// One for each element.
    PerTensor,
    /// Computed by the primitive as specified by OCP MX.
    Mx,
    /// Computed by the primitive from the largest value.
    DynamicFp,
}

const POLICIES: [(&str, Policy); 12] = [
    ("common", Policy::Common),
    ("host_scalar", Policy::HostScalar),
    ("per_oc", Policy::PerOc),
    ("per_ocic", Policy::PerOcic),
    ("per_dim_0", Policy::PerDim0),
    ("per_dim_1", Policy::PerDim1),
    ("per_dim_01", Policy::PerDim01),
    ("per_dim_2", Policy::PerDim2),
    ("per_dim_3", Policy::PerDim3),
    ("per_tensor", Policy::PerTensor),
    ("mx", Policy::Mx),
    ("dynamic_fp", Policy::DynamicFp),
];

impl Policy {
    pub(super) fn parse(text: &str) -> Result<Policy, BadValue> {
        one_of(text, &POLICIES)
    }

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        POLICIES[self as usize].0
    }

    /// Whether there is one value for all.
    pub fn is_single(self) -> bool {
        matches!(self, Policy::Common | Policy::HostScalar)
    }

    /// The bits of the dimensions along which the values differ. `per_oc` is the primitive's
    /// channel dimension.
    pub fn mask(self, ndims: usize, per_oc: usize) -> u32 {
        match self {
            Policy::Common | Policy::HostScalar => 0,
            Policy::PerOc => 1 << per_oc,
            Policy::PerDim0 => 1,
            Policy::PerDim1 => 1 << 1,
            Policy::PerOcic | Policy::PerDim01 => 0b11,
            Policy::PerDim2 => 1 << 2,
            Policy::PerDim3 => 1 << 3,
            Policy::PerTensor | Policy::Mx | Policy::DynamicFp => (1 << ndims) - 1,
        }
    }
}
