//! Code shared by all operations: primitive descriptors and their implementation lists, attributes,
//! execution arguments, the scratchpad, the instruction-set limit and verbose lines.
//!
//! An operation implements [`Op`] and lists its [`Implementation`]s. This module contains no
//! formulas and knows C only by its constants.

mod argument;
mod attr;
#[cfg(test)]
mod chain_tests;
mod chunk;
mod desc;
mod dropout;
mod dynamic;
mod enumerators;
#[cfg(test)]
pub(crate) mod exact_tests;
mod gating;
mod gradient;
mod half_rows;
mod isa;
pub(crate) mod normalization;
mod operand;
mod outputs;
mod padding;
mod post_op_chain;
mod scratchpad;
mod step;
#[cfg(test)]
mod tests;
mod verbose;
mod wide_function;

pub(crate) use argument::{ArgumentName, OpArgument, Usage};
pub(crate) use attr::{
    Accepted, Around, Attr, Depthwise, Dropout, Gate, MAX_POST_OPS, PostOp, PostOps,
    QuantizationMode, Quantized, Residual, check_tensor, default_fpmath_mode,
    set_default_fpmath_mode,
};
pub(crate) use chunk::Ahead;
pub(crate) use desc::{
    Answer, Arguments, Execution, Implementation, Op, PrimitiveDesc, PropKind, Variant,
    check_shared_layouts,
};
pub(crate) use dynamic::checked_quantization;
pub(crate) use enumerators::{
    AccumulationMode, BinaryAlgorithm, EltwiseAlgorithm, FpmathMode, ResidualRounding,
    RoundingMode, ScratchpadMode, check_known_flags, enumerators, unknown_enumerator,
};
pub(crate) use gating::Gating;
pub(crate) use gradient::Gradient;
pub(crate) use half_rows::{HalfEntry, HalfRows, half_entry};
#[cfg(feature = "onednn-abi")]
pub(crate) use isa::set_cap_once;
pub(crate) use isa::{CpuIsa, effective_level, set_cap};
pub(crate) use operand::INPUTS;
pub(crate) use outputs::check_outputs_apart;
pub(crate) use padding::Padding;
pub(crate) use post_op_chain::{
    BoundChain, ChainEntry, InputRows, Inputs, PostOpChain, Rows, chain_entry,
};
pub(crate) use scratchpad::with_scratchpad;
pub(crate) use step::{BeforePostOps, Start};
pub(crate) use verbose::{Verbosity, set_verbosity, verbosity};
pub(crate) use wide_function::WideFunction;
