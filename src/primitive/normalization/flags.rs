//! The normalization flags.

use crate::error::{Error, Result};
use norm_sys as sys;
use std::fmt::{self, Write};

/// The normalization flags, as their C bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flags(u32);

impl Flags {
    const LETTERS: [(u32, char); 8] = [
        (sys::norm_use_global_stats, 'G'),
        (sys::norm_use_scale, 'C'),
        (sys::norm_use_shift, 'H'),
        (sys::norm_rms_norm, 'M'),
        (sys::norm_scale_plus_one, 'P'),
        (sys::norm_round_before_scale, 'B'),
        (sys::norm_gate_output, 'O'),
        (sys::norm_gate_input, 'I'),
    ];
    const PARAMETERS: u32 = sys::norm_use_scale | sys::norm_use_shift;
    const GATES: u32 = sys::norm_gate_input | sys::norm_gate_output;

    pub(crate) fn new(bits: u32) -> Result<Self> {
        let known: u32 = Self::LETTERS.iter().map(|(bit, _)| bit).sum();
        match bits & !known {
            0 => Ok(Self(bits)),
            other => Err(Error::invalid(format_args!(
                "flags: {other:#x} is not among use_global_stats, use_scale, use_shift, rms_norm, scale_plus_one, \
                 round_before_scale, gate_output and gate_input"
            ))),
        }
    }

    pub(crate) fn bits(self) -> u32 {
        self.0
    }
    pub(crate) fn global_stats(self) -> bool {
        self.0 & sys::norm_use_global_stats != 0
    }
    pub(crate) fn scale(self) -> bool {
        self.0 & sys::norm_use_scale != 0
    }
    pub(crate) fn shift(self) -> bool {
        self.0 & sys::norm_use_shift != 0
    }
    pub(crate) fn rms(self) -> bool {
        self.0 & sys::norm_rms_norm != 0
    }
    pub(crate) fn plus_one(self) -> bool {
        self.0 & sys::norm_scale_plus_one != 0
    }
    pub(crate) fn round_before_scale(self) -> bool {
        self.0 & sys::norm_round_before_scale != 0
    }
    pub(crate) fn gate_output(self) -> bool {
        self.0 & sys::norm_gate_output != 0
    }
    pub(crate) fn gate_input(self) -> bool {
        self.0 & sys::norm_gate_input != 0
    }

    /// The same without scale and shift.
    pub(super) fn without_parameters(self) -> Self {
        Self(self.0 & !Self::PARAMETERS)
    }

    /// Flags that contradict each other or the presence of a gate.
    pub(super) fn check(self, has_gate: bool) -> Result<()> {
        let gates = self.0 & Self::GATES;
        if gates == Self::GATES {
            return Err(Error::invalid("flags: gate_input and gate_output exclude each other"));
        }
        match (gates != 0, has_gate) {
            (true, false) => Err(Error::invalid(
                "flags: gate_input and gate_output need a gate; see norm_primitive_attr_set_gate()",
            )),
            (false, true) => Err(Error::invalid(
                "attr: a gate needs the flag gate_input or gate_output, which says where it \
                 applies",
            )),
            _ if self.plus_one() && !self.scale() => {
                Err(Error::invalid("flags: scale_plus_one needs use_scale"))
            }
            _ => Ok(()),
        }
    }

    /// The flags that oneDNN does not have.
    pub(crate) fn own(bits: u32) -> u32 {
        bits & !((1 << 24) - 1)
    }
}

/// The letters of benchdnn's command line.
impl fmt::Display for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut letters = Self::LETTERS.iter().filter(|(bit, _)| self.0 & bit != 0);
        letters.try_for_each(|(_, letter)| f.write_char(*letter))
    }
}
