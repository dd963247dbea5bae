//! Which output of an operation may overwrite which input.

use norm_sys as sys;

use crate::args::Arg;

/// Whether an output of an operation may overwrite an input of the same descriptor: the table of
/// `docs/programming-model.md`.
pub(crate) fn is_allowed(kind: sys::norm_primitive_kind_t, input: Arg, output: Arg) -> bool {
    use Arg::{
        DiffDst, DiffGate, DiffResidualDst, DiffSrc, DiffSrc1, Dst, Gate, Queries, Residual,
        ResidualDst, Src, Src1,
    };
    let pair = (input, output);
    match kind {
        sys::norm_layer_normalization | sys::norm_group_normalization => matches!(
            pair,
            (Src | Residual, Dst | ResidualDst)
                | (Gate, Dst | DiffGate)
                | (DiffDst | DiffResidualDst, DiffSrc)
        ),
        sys::norm_softmax => matches!(pair, (Src, Dst) | (DiffDst | Dst, DiffSrc)),
        sys::norm_eltwise => matches!(pair, (Src, Dst) | (DiffDst | Src | Dst, DiffSrc)),
        sys::norm_binary => matches!(pair, (Src | Src1, Dst)),
        sys::norm_gated => matches!(pair, (Src | Src1 | DiffDst, Dst | DiffSrc | DiffSrc1)),
        sys::norm_rope => matches!(pair, (Src, Dst) | (DiffDst | Src, DiffSrc)),
        sys::norm_sdpa => pair == (Queries, Dst),
        sys::norm_reorder => pair == (Src, Dst),
        _ => false,
    }
}
