//! The forward descriptor that backward gets as a hint: both must describe the same problem.

use super::Flags;
use crate::error::{Error, Result};
use crate::primitive::{Around, Gate, PropKind, Residual};
use crate::tensor::{DataType, MemoryDesc};

/// What backward compares.
pub(crate) struct Hint<'a> {
    pub(crate) prop_kind: PropKind,
    pub(crate) src: &'a MemoryDesc,
    pub(crate) flags: Flags,
    pub(crate) epsilon: f32,
    pub(crate) around: &'a Around,
}

impl Hint<'_> {
    /// oneDNN compares neither dimensions, flags, epsilon, nor the propagation kind.
    const AS_ONEDNN: bool = cfg!(feature = "onednn-abi");

    /// Checks the parameters of backward against those of forward.
    pub(crate) fn check(
        &self,
        src: &MemoryDesc,
        (flags, epsilon): (u32, f32),
        around: &Around,
    ) -> Result<()> {
        let theirs = if Self::AS_ONEDNN { !Flags::own(!0) } else { 0 };
        Flags::check_hint(flags & !theirs, self.flags.bits() & !theirs)?;
        if !Self::AS_ONEDNN {
            self.check_kind()?;
            if src.dims() != self.src.dims() {
                return Err(Error::invalid(format_args!(
                    "src_desc: dimensions {:?}, but hint_fwd_pd was created for {:?}",
                    src.dims(),
                    self.src.dims()
                )));
            }
            if epsilon.to_bits() != self.epsilon.to_bits() {
                return Err(Error::invalid(format_args!(
                    "epsilon: {epsilon}, but hint_fwd_pd was created with {}",
                    self.epsilon
                )));
            }
        }
        self.check_around(around)
    }

    /// Backward reads the statistics that forward stored, or those that both get.
    fn check_kind(&self) -> Result<()> {
        if self.prop_kind == PropKind::ForwardInference && !self.flags.global_stats() {
            return Err(Error::invalid(
                "hint_fwd_pd: forward_inference stores no statistics; create it with forward_training",
            ));
        }
        Ok(())
    }

    fn check_around(&self, around: &Around) -> Result<()> {
        let forward = self.around;
        let presences = [
            ("residual", around.residual.is_some(), forward.residual.is_some()),
            ("gate", around.gate.is_some(), forward.gate.is_some()),
            ("partial norm", around.partial.is_some(), forward.partial.is_some()),
        ];
        for (name, ours, theirs) in presences {
            if ours != theirs {
                let with = if theirs { "with" } else { "without" };
                return Err(Error::invalid(format_args!(
                    "attr: hint_fwd_pd was created {with} a {name}; pass the attributes that it has"
                )));
            }
        }
        if let [Some(ours), Some(theirs)] = [around, forward].map(|a| a.residual.as_deref()) {
            check_residual(ours, theirs)?;
        }
        if let [Some(ours), Some(theirs)] = [around, forward].map(|a| a.gate.as_deref()) {
            check_gate(ours, theirs)?;
        }
        if let (Some(ours), Some(theirs)) = (around.partial, forward.partial)
            && ours != theirs
        {
            return Err(Error::invalid(format_args!(
                "attr: a partial norm of {ours} elements, but hint_fwd_pd was created with {theirs}"
            )));
        }
        Ok(())
    }
}

/// What forward stored as the sum must be what backward reads. Layouts may differ.
fn check_residual(ours: &Residual, theirs: &Residual) -> Result<()> {
    let [our_sum, their_sum] = [ours, theirs].map(|residual| residual.sum.as_ref());
    check_type("residual", Some(&ours.desc), Some(&theirs.desc))?;
    check_type("sum", our_sum, their_sum)?;
    if ours.rounding != theirs.rounding {
        return Err(Error::invalid(format_args!(
            "attr: a residual that is {}, but hint_fwd_pd was created with {}; pass the attributes that it has",
            ours.rounding.name(),
            theirs.rounding.name()
        )));
    }
    Ok(())
}

fn check_gate(ours: &Gate, theirs: &Gate) -> Result<()> {
    check_type("gate", Some(&ours.desc), Some(&theirs.desc))?;
    let function = |gate: &Gate| (gate.algorithm, gate.alpha.to_bits());
    if function(ours) != function(theirs) {
        return Err(Error::invalid(
            "attr: the gate's function is not that with which hint_fwd_pd was created",
        ));
    }
    Ok(())
}

fn check_type(name: &str, ours: Option<&MemoryDesc>, theirs: Option<&MemoryDesc>) -> Result<()> {
    let [ours, theirs] = [ours, theirs].map(|desc| desc.and_then(MemoryDesc::data_type));
    if ours == theirs {
        return Ok(());
    }
    let [ours, theirs] = [ours, theirs].map(|found| found.map_or("none", DataType::name));
    Err(Error::invalid(format_args!(
        "attr: the {name} is {ours}, but hint_fwd_pd was created with {theirs}; pass the attributes that it has"
    )))
}
