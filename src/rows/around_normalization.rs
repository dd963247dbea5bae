//! The steps around the kernels of a normalization, from its flags and attributes.

use super::around::{AddedRows, Around, GateRows, GradientRows};
use super::quantize::Quantize;
use super::rows_of::RowsOf;
use crate::primitive::Gating;
use crate::primitive::normalization::Normalization;
use crate::tensor::{DataType, MemoryDesc};
use norm_sys as sys;

impl Around {
    /// The steps of a normalization, if it has any. `view` reshapes tensors so that their last dimension is the
    /// columns; rows have an order of the other dimensions.
    pub(crate) fn of(
        p: &Normalization,
        view: impl Fn(&MemoryDesc) -> MemoryDesc,
        order: &[usize],
    ) -> Option<Self> {
        if !p.has_steps() {
            return None;
        }
        let cols = view(&p.src).dims().last().map_or(0, |cols| *cols as usize);
        let rows = |id| RowsOf::new(id, &view(p.argument(id)), order);
        let rows_if = |id| p.has_argument(id).then(|| rows(id));
        let forward = p.prop_kind.is_forward();
        let gate = p.around.gate.as_deref().filter(|_| p.flags.gate_input() || !forward);
        Some(Self {
            cols,
            src: rows(sys::NORM_ARG_SRC),
            residual: rows_if(sys::NORM_ARG_RESIDUAL).map(|residual| AddedRows {
                residual,
                sum: rows_if(sys::NORM_ARG_RESIDUAL_DST),
                sum_type: p.sum_type().unwrap_or(DataType::F32),
                exact: !p.rounds_sum(),
            }),
            gate: gate.map(|gate| GateRows {
                gate: rows(sys::NORM_ARG_GATE),
                function: Gating::of(gate),
                input: p.flags.gate_input(),
            }),
            gradient: (!forward).then(|| GradientRows {
                diff_dst: rows(sys::NORM_ARG_DIFF_DST),
                diff_src: rows(sys::NORM_ARG_DIFF_SRC),
                diff_gate: rows_if(sys::NORM_ARG_DIFF_GATE),
                diff_residual: rows_if(sys::NORM_ARG_DIFF_RESIDUAL_DST),
            }),
            quantize: p.dynamic_scales().map(|scales| Quantize {
                dst: rows(sys::NORM_ARG_DST),
                scales: rows(sys::NORM_ARG_ATTR_SCALES | sys::NORM_ARG_DST),
                zero_points: rows_if(sys::NORM_ARG_ATTR_ZERO_POINTS | sys::NORM_ARG_DST),
                group: scales.group.map_or(cols, |group| group as usize),
                mode: scales.mode,
            }),
        })
    }
}
