//! The attributes of the steps around a normalization. Only this library has them; another one has no such functions,
//! so requests are refused.

use super::attributes::PrimitiveAttr;
use super::connection::Connection;
use super::functions::functions;
use super::wanted::TensorRequest;
use crate::executor::{Refusal, RefusalKind};
use crate::oracle::lnorm::Flags;
use crate::oracle::steps::GateFunction;
use norm_sys::*;
use std::ffi::c_uint;
use std::ptr;

functions! {
    /// The functions of these attributes.
    Functions {
        primitive_attr_set_residual = norm_primitive_attr_set_residual:
        fn(
            norm_primitive_attr_t,
            const_norm_memory_desc_t,
            const_norm_memory_desc_t,
            norm_residual_rounding_t
        ) -> norm_status_t;
        primitive_attr_set_gate = norm_primitive_attr_set_gate:
        fn(norm_primitive_attr_t, const_norm_memory_desc_t, norm_alg_kind_t, f32) -> norm_status_t;
        primitive_attr_set_partial_norm = norm_primitive_attr_set_partial_norm:
        fn(norm_primitive_attr_t, norm_dim_t) -> norm_status_t;
    }
}

/// The residual of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct ResidualRequest {
    /// What is added to src.
    pub residual: TensorRequest,
    /// The stored sum, if it is stored.
    pub sum: Option<TensorRequest>,
    /// Whether the f32 sum is normalized.
    pub exact: bool,
}

/// The steps of a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepsRequest {
    /// What is added to src.
    pub residual: Option<ResidualRequest>,
    /// The gate and its function.
    pub gate: Option<(TensorRequest, GateFunction)>,
    /// The number of elements in the mean square; 0 for all.
    pub partial: usize,
}

impl PrimitiveAttr {
    /// Adds the steps of a problem whose src has these dimensions.
    pub fn add_steps(
        &mut self,
        connection: &Connection,
        dims: &[usize],
        steps: &StepsRequest,
    ) -> Result<(), Refusal> {
        if *steps == StepsRequest::default() {
            return Ok(());
        }
        let functions = Functions::of(connection.source())?;
        let attr = self.or_created(connection)?;
        if let Some(ResidualRequest { residual, sum, exact }) = &steps.residual {
            let residual = residual.desc(connection, dims)?;
            let sum = sum.as_ref().map(|sum| sum.desc(connection, dims)).transpose()?;
            let sum = sum.as_ref().map_or(ptr::null(), |sum| sum.raw());
            let rounding = if *exact { norm_residual_exact } else { norm_residual_rounded };
            let set = functions.primitive_attr_set_residual;
            // SAFETY: the attributes and the descriptors are alive or NULL.
            let status = unsafe { set(attr, residual.raw(), sum, rounding) };
            connection.check("primitive_attr_set_residual", status)?;
        }
        if let Some((gate, function)) = &steps.gate {
            let gate = gate.desc(connection, dims)?;
            let (kind, alpha) = match *function {
                GateFunction::Swish { alpha } => (norm_eltwise_swish, alpha),
                GateFunction::Logistic => (norm_eltwise_logistic, 0.0),
            };
            let set = functions.primitive_attr_set_gate;
            // SAFETY: as above; any algorithm is checked.
            let status = unsafe { set(attr, gate.raw(), kind, alpha) };
            connection.check("primitive_attr_set_gate", status)?;
        }
        if steps.partial > 0 {
            let set = functions.primitive_attr_set_partial_norm;
            // SAFETY: the attributes are alive, and any number is checked.
            let status = unsafe { set(attr, steps.partial as norm_dim_t) };
            connection.check("primitive_attr_set_partial_norm", status)?;
        }
        Ok(())
    }
}

/// The flags as the C interface's bits. A library without the attributes above has none of this library's own flags,
/// and their bits may mean something else there.
pub fn flag_bits(connection: &Connection, flags: Flags) -> Result<c_uint, Refusal> {
    let own = [
        (flags.plus_one, norm_scale_plus_one),
        (flags.round_first, norm_round_before_scale),
        (flags.gate_output, norm_gate_output),
        (flags.gate_input, norm_gate_input),
    ];
    let bits = |rows: &[(bool, c_uint)]| {
        let set = rows.iter().filter_map(|&(set, bit)| set.then_some(bit));
        set.fold(norm_normalization_flags_none, |flags, bit| flags | bit)
    };
    if bits(&own) != norm_normalization_flags_none && Functions::of(connection.source()).is_err() {
        let message = "the library has none of the flags P, B, O and I".to_owned();
        return Err(Refusal { kind: RefusalKind::Unimplemented, message });
    }
    let shared = [
        (flags.global_stats, norm_use_global_stats),
        (flags.scale, norm_use_scale),
        (flags.shift, norm_use_shift),
        (flags.rms_norm, norm_rms_norm),
    ];
    Ok(bits(&shared) | bits(&own))
}
