//! What every operation shares: the primitive descriptor with its list of implementations, attributes,
//! execution arguments, the scratchpad, the instruction-set cap and verbose lines.
//!
//! An operation implements [`Op`] and lists its [`Implementation`]s; nothing here knows a formula, and
//! nothing knows C beyond its numbers.

mod attr;
mod desc;
mod enumerators;
mod environment;
mod isa;
mod padding;
mod scratchpad;
mod steps;
mod verbose;

pub(crate) use attr::{
    Accepted, Attr, Depthwise, MAX_POST_OPS, PostOp, PostOps, Quantized, default_fpmath_mode,
    set_default_fpmath_mode,
};
pub(crate) use desc::{
    Answer, Arguments, Execution, Implementation, Op, OpArgument, PrimitiveDesc, PropKind, Usage,
    Variant,
};
pub(crate) use enumerators::{
    AccumulationMode, BinaryAlgorithm, EltwiseAlgorithm, FpmathMode, RoundingMode, ScratchpadMode,
    enumerators,
};
#[cfg(feature = "onednn-abi")]
pub(crate) use isa::set_cap_once;
pub(crate) use isa::{CpuIsa, effective_level, set_cap};
pub(crate) use padding::Padding;
pub(crate) use scratchpad::with_scratchpad;
pub(crate) use steps::{BoundSteps, Rows, StepEntry, Steps, step_entry, take_steps};
pub(crate) use verbose::{Verbosity, set_verbosity, verbosity};
