//! The normalization flags.

use crate::error::{Error, Result};
use crate::primitive::check_known_flags;
use crate::text::shown;
use norm_sys as sys;
use std::fmt::{self, Write};

/// The normalization flags, as their C bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flags(u32);

impl Flags {
    /// Their letters in benchdnn's language, and their names.
    const ALL: [(u32, char, &str); 8] = [
        (sys::norm_use_global_stats, 'G', "use_global_stats"),
        (sys::norm_use_scale, 'C', "use_scale"),
        (sys::norm_use_shift, 'H', "use_shift"),
        (sys::norm_rms_norm, 'M', "rms_norm"),
        (sys::norm_scale_plus_one, 'P', "scale_plus_one"),
        (sys::norm_round_before_scale, 'B', "round_before_scale"),
        (sys::norm_gate_output, 'O', "gate_output"),
        (sys::norm_gate_input, 'I', "gate_input"),
    ];
    const PARAMETERS: u32 = sys::norm_use_scale | sys::norm_use_shift;
    const GATES: u32 = sys::norm_gate_input | sys::norm_gate_output;

    pub(crate) fn new(bits: u32) -> Result<Self> {
        check_known_flags(bits, &Self::ALL.map(|(bit, _, name)| (bit, name)))?;
        Ok(Self(bits))
    }

    /// The names of the known flags among `bits`.
    fn names(bits: u32) -> impl fmt::Display {
        shown(move |f| {
            let mut separator = "";
            for (_, _, name) in Self::ALL.iter().filter(|(bit, ..)| bits & bit != 0) {
                write!(f, "{separator}{name}")?;
                separator = ", ";
            }
            Ok(())
        })
    }

    /// Checks that backward has the flags of the forward problem, those of the hint.
    pub(crate) fn check_hint(flags: u32, hint: u32) -> Result<()> {
        let (added, missing) = (Self::new(flags)?.bits() & !hint, hint & !flags);
        if added != 0 {
            let names = Self::names(added);
            return Err(Error::invalid(format_args!(
                "flags: hint_fwd_pd was created without {names}"
            )));
        }
        if missing != 0 {
            let names = Self::names(missing);
            return Err(Error::invalid(format_args!(
                "flags: hint_fwd_pd was created with {names}, too"
            )));
        }
        Ok(())
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
        let mut letters = Self::ALL.iter().filter(|(bit, ..)| self.0 & bit != 0);
        letters.try_for_each(|(_, letter, _)| f.write_char(*letter))
    }
}
