//! Attention: the functions that Python calls.

use norm_rs::primitive::PropKind;
use pyo3::prelude::*;

use crate::arguments;
use crate::attention_arguments::Keywords;
use crate::attention_call::Call;

/// Scaled dot-product attention, softmax(mask(scale * q @ k.T)) @ v, in tiles.
///
/// The score of a query and a key is their product times scale; with soft_cap, soft_cap * tanh(score /
/// soft_cap); plus alibi_slopes[head] * (key - position); plus mask, in this order. The weights are the
/// exponentials of the scores of the keys that the query sees, divided by their sum. A query that sees no key
/// gives zeros.
///
/// Parameters
/// ----------
/// q : array of shape (B, H, S, D)
///     Sequences, heads, queries, elements of a head; float32, bfloat16 or float16, any non-negative strides.
/// k, v : arrays of shape (B, G, T, D) and (B, G, T, E), of the type of q
///     G divides H: head h of q uses head h // (H // G). Either may also be int8 with scales, or float8_e4m3fn
///     with or without scales.
/// causal : None, "top_left", "bottom_right" or bool
///     Query i sees the keys up to i, or up to i + T - S so that the last query sees the last key, with the
///     lengths of its sequence. True suffices if S is T and there are no lengths.
/// window : None, ("with_self", W) or ("before_self", W)
///     A query sees the W keys up to its own, or its own and the W keys before it. Implies causal. With a third
///     number N, keys 0 to N - 1 are also seen.
/// scale : float, optional
///     1 / sqrt(D) by default.
/// soft_cap : float, optional
///     0 or more; 0 is none.
/// sinks : float32 array of shape (H,), optional
///     The score of an additional key in each head, whose values are 0.
/// alibi_slopes : float32 array of shape (H,), optional
/// mask : array that broadcasts to (B, H, S, T), optional
///     float32, bfloat16 or float16 is added; bool or uint8 hides keys where it is False or 0.
/// query_lengths, key_lengths : int32 arrays of shape (B,), optional
///     How many of S and T belong to each sequence. Results beyond are zeros.
/// query_offsets, key_offsets : int32 arrays of shape (B + 1,), optional
///     Packed sequences (cu_seqlens): the queries of sequence b are the rows query_offsets[b] to
///     query_offsets[b + 1] - 1 of q, which has shape (1, H, S, D), as does the result; likewise for k and v.
///     Each works without the other. Rows that belong to no sequence are zeros in a new result, and unchanged
///     in out. Cannot be combined with lengths of the same arrays or a mask, nor key_offsets with page_table or
///     scales.
/// page_table : int32 array of shape (B, pages), optional
///     k and v then have shapes (N, G, P, D) and (N, G, P, E), and key j of sequence b is key j % P of page
///     page_table[b, j // P].
/// key_scales, value_scales : float32 arrays that broadcast to k and v, with 1 for elements, optional
///     Factors for quantized keys and values, of shape (1,) for all, (G, 1, 1) for each head, or (B, G, T, 1)
///     for each token and head; with pages (N, G, P, 1). Contiguous.
/// return_lse : bool
///     Also return the logarithms of the sums of exponentials, for attention_backward.
/// return_entropy : bool
///     Also return the mean entropy of the weights, for adaptive_window.
/// out : array of shape (B, H, S, E), optional
///     Where to write the result, in any of the types; pass q itself to work in place.
///
/// Returns
/// -------
/// out, or a new array of the library and element type of q; or a tuple of it, with return_lse
/// the logarithms, of shape (B, H, S), and with return_entropy the entropy, of shape (B, H), both float32.
///
/// Raises
/// ------
/// TypeError, ValueError
///     An argument is not an array, or has the wrong element type, shape or layout. Nothing is written.
#[pyfunction]
#[pyo3(signature = (q, k, v, *, causal=None, window=None, scale=None, soft_cap=None, sinks=None, alibi_slopes=None,
                    mask=None, query_lengths=None, key_lengths=None, query_offsets=None, key_offsets=None,
                    page_table=None, key_scales=None, value_scales=None, return_lse=false, return_entropy=false,
                    out=None),
       text_signature = "(q, k, v, *, causal=None, window=None, scale=None, soft_cap=None, sinks=None, \
                         alibi_slopes=None, mask=None, query_lengths=None, key_lengths=None, query_offsets=None, \
                         key_offsets=None, page_table=None, key_scales=None, value_scales=None, return_lse=False, \
                         return_entropy=False, out=None)")]
#[expect(clippy::too_many_arguments, reason = "the parameters of the Python function")]
pub(crate) fn attention<'py>(
    q: &Bound<'py, PyAny>,
    k: &Bound<'py, PyAny>,
    v: &Bound<'py, PyAny>,
    causal: Option<&Bound<'py, PyAny>>,
    window: Option<&Bound<'py, PyAny>>,
    #[pyo3(from_py_with = arguments::scale)] scale: Option<f64>,
    #[pyo3(from_py_with = arguments::soft_cap)] soft_cap: Option<f64>,
    sinks: Option<&Bound<'py, PyAny>>,
    alibi_slopes: Option<&Bound<'py, PyAny>>,
    mask: Option<&Bound<'py, PyAny>>,
    query_lengths: Option<&Bound<'py, PyAny>>,
    key_lengths: Option<&Bound<'py, PyAny>>,
    query_offsets: Option<&Bound<'py, PyAny>>,
    key_offsets: Option<&Bound<'py, PyAny>>,
    page_table: Option<&Bound<'py, PyAny>>,
    key_scales: Option<&Bound<'py, PyAny>>,
    value_scales: Option<&Bound<'py, PyAny>>,
    #[pyo3(from_py_with = arguments::return_lse)] return_lse: bool,
    #[pyo3(from_py_with = arguments::return_entropy)] return_entropy: bool,
    out: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let keywords = Keywords {
        causal,
        window,
        scale,
        soft_cap,
        sinks,
        alibi_slopes,
        mask,
        mask_tokens: None,
        query_lengths,
        key_lengths,
        query_offsets,
        key_offsets,
        page_table,
        key_scales,
        value_scales,
    };
    let mut call = Call::new([q, k, v], &keywords, true)?;
    call.add_results(out, [return_lse, return_entropy])?;
    call.run(q.py(), forward(return_lse))
}

/// The forward pass, with or without log-sum-exp.
pub(crate) fn forward(return_lse: bool) -> PropKind {
    if return_lse { PropKind::ForwardTraining } else { PropKind::ForwardInference }
}

/// The gradients of attention, from its result and the logarithms of its sums.
///
/// Parameters
/// ----------
/// diff_dst : array of the shape of dst and the type of q
///     The gradient of the result.
/// q, k, v
///     Those of attention.
/// dst : array of shape (B, H, S, E)
///     The result of attention: float32, bfloat16 or float16.
/// lse : float32 array of shape (B, H, S)
///     The logarithms that attention returned with return_lse.
/// causal, window, scale, soft_cap, sinks, alibi_slopes, mask, query_lengths, key_lengths, query_offsets, key_offsets
///     Those of attention.
/// return_diff_mask : bool
///     Also return the gradient of the mask, which must be additive: of the mask's shape and type, summed over
///     its broadcast dimensions. It takes another pass over the scores.
///
/// Returns
/// -------
/// (diff_q, diff_k, diff_v), with sinks also diff_sinks, and with return_diff_mask also
/// diff_mask, in this order: new arrays of the libraries and element types of q, k, v, sinks and mask.
/// Gradients of shared heads of k and v are sums.
///
/// Raises
/// ------
/// TypeError, ValueError
///     An argument is not an array, or has the wrong element type, shape or layout. Nothing is written.
#[pyfunction]
#[pyo3(signature = (diff_dst, q, k, v, dst, lse, *, causal=None, window=None, scale=None, soft_cap=None, sinks=None,
                    alibi_slopes=None, mask=None, query_lengths=None, key_lengths=None, query_offsets=None,
                    key_offsets=None, return_diff_mask=false),
       text_signature = "(diff_dst, q, k, v, dst, lse, *, causal=None, window=None, scale=None, soft_cap=None, \
                         sinks=None, alibi_slopes=None, mask=None, query_lengths=None, key_lengths=None, \
                         query_offsets=None, key_offsets=None, return_diff_mask=False)")]
#[expect(clippy::too_many_arguments, reason = "the parameters of the Python function")]
pub(crate) fn attention_backward<'py>(
    diff_dst: &Bound<'py, PyAny>,
    q: &Bound<'py, PyAny>,
    k: &Bound<'py, PyAny>,
    v: &Bound<'py, PyAny>,
    dst: &Bound<'py, PyAny>,
    lse: &Bound<'py, PyAny>,
    causal: Option<&Bound<'py, PyAny>>,
    window: Option<&Bound<'py, PyAny>>,
    #[pyo3(from_py_with = arguments::scale)] scale: Option<f64>,
    #[pyo3(from_py_with = arguments::soft_cap)] soft_cap: Option<f64>,
    sinks: Option<&Bound<'py, PyAny>>,
    alibi_slopes: Option<&Bound<'py, PyAny>>,
    mask: Option<&Bound<'py, PyAny>>,
    query_lengths: Option<&Bound<'py, PyAny>>,
    key_lengths: Option<&Bound<'py, PyAny>>,
    query_offsets: Option<&Bound<'py, PyAny>>,
    key_offsets: Option<&Bound<'py, PyAny>>,
    #[pyo3(from_py_with = arguments::return_diff_mask)] return_diff_mask: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let keywords = Keywords {
        causal,
        window,
        scale,
        soft_cap,
        sinks,
        alibi_slopes,
        mask,
        query_lengths,
        key_lengths,
        query_offsets,
        key_offsets,
        ..Keywords::default()
    };
    let mut call = Call::new([q, k, v], &keywords, false)?;
    call.add_gradients([dst, diff_dst, lse], return_diff_mask)?;
    call.run(q.py(), PropKind::Backward)
}
