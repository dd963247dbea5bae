//! Attention: the functions that Python calls.

use arrayvec::ArrayVec;
use norm_rs::DataType;
use norm_rs::primitive::{Arg, PropKind};
use norm_rs::sdpa::Causal;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::call::{Given, compute};
use crate::elementwise::{named, output};
use crate::layout::check_overlaps;
use crate::output::{Output, allocate};
use crate::plan::{Addresses, Attention, Operand, Operation, Problem};
use crate::tensor::{Dims, MAKE_CONTIGUOUS, Tensor, tuple};
use crate::windows::window;

/// Element types of queries, keys, values and results.
const FLOATS: &[DataType] = &[DataType::F32, DataType::Bf16, DataType::F16];
/// Element types of masks.
const MASKS: &[DataType] = &[DataType::F32, DataType::Bf16, DataType::F16, DataType::U8];

/// The keywords of both directions.
struct Keywords<'a, 'py> {
    causal: Given<'a, 'py>,
    window: Given<'a, 'py>,
    scale: Option<f64>,
    soft_cap: Option<f64>,
    sinks: Given<'a, 'py>,
    alibi_slopes: Given<'a, 'py>,
    mask: Given<'a, 'py>,
    query_lengths: Given<'a, 'py>,
    key_lengths: Given<'a, 'py>,
    page_table: Given<'a, 'py>,
}

/// An argument with the sizes and strides that the library sees.
struct Bound4<'a, 'py> {
    arg: Arg,
    tensor: Tensor<'a, 'py>,
    dims: Dims,
    strides: Dims,
}

impl<'a, 'py> Bound4<'a, 'py> {
    fn new(arg: Arg, tensor: Tensor<'a, 'py>) -> Self {
        let (dims, strides) = (tensor.shape.clone(), tensor.strides.clone());
        Self { arg, tensor, dims, strides }
    }

    /// Keys and their gradients, the last two dimensions of which the library has exchanged.
    fn keys(arg: Arg, tensor: Tensor<'a, 'py>) -> Self {
        let mut bound = Self::new(arg, tensor);
        bound.dims.swap(2, 3);
        bound.strides.swap(2, 3);
        bound
    }

    /// Log-sum-exp, which has a last dimension of 1 in the library.
    fn sums(tensor: Tensor<'a, 'py>) -> Self {
        let mut bound = Self::new(Arg::Workspace, tensor);
        bound.dims.push(1);
        bound.strides.push(1);
        bound
    }
}

/// The arguments of a call.
struct Call<'a, 'py> {
    attention: Attention,
    inputs: ArrayVec<Bound4<'a, 'py>, 12>,
    outputs: ArrayVec<Bound4<'a, 'py>, 4>,
    results: ArrayVec<Output<'py>, 4>,
}

/// An array of four dimensions.
fn four<'a, 'py>(name: &'static str, object: &'a Bound<'py, PyAny>) -> PyResult<Tensor<'a, 'py>> {
    let tensor = Tensor::read(name, object)?;
    tensor.expect_type(FLOATS)?;
    if tensor.shape.len() == 4 {
        return Ok(tensor);
    }
    Err(PyValueError::new_err(format!(
        "{name} has the shape {}: pass four dimensions: sequences, heads, tokens, elements of a head",
        tuple(&tensor.shape)
    )))
}

/// A contiguous array of a type and a shape.
fn dense<'a, 'py>(
    name: &'static str,
    object: &'a Bound<'py, PyAny>,
    (data_type, shape, why): (DataType, &[usize], &str),
) -> PyResult<Tensor<'a, 'py>> {
    let tensor = Tensor::read(name, object)?;
    tensor.expect_type(&[data_type])?;
    tensor.expect_shape(shape, why)?;
    if tensor.is_dense() {
        return Ok(tensor);
    }
    Err(PyValueError::new_err(format!("{name} is not contiguous: {MAKE_CONTIGUOUS}")))
}

impl Keywords<'_, '_> {
    /// The causal mask; True is enough where both kinds are the same.
    fn causal(&self, queries: usize, keys: usize) -> PyResult<Causal> {
        let Some(given) = self.causal else { return Ok(Causal::No) };
        if let Ok(name) = given.extract::<String>() {
            let kinds = [("top_left", Causal::TopLeft), ("bottom_right", Causal::BottomRight)];
            return named("causal", &name, &kinds);
        }
        let lengths = self.query_lengths.is_some() || self.key_lengths.is_some();
        match given.extract::<bool>() {
            Ok(false) => Ok(Causal::No),
            Ok(true) if queries == keys && !lengths => Ok(Causal::TopLeft),
            Ok(true) => Err(PyValueError::new_err(
                "causal is True, but queries and keys may differ in number: pass \"bottom_right\", with which the last \
                 query sees the last key, or \"top_left\", with which the first query sees the first key alone",
            )),
            Err(_) => Err(PyTypeError::new_err(
                "causal must be None, a bool, \"top_left\" or \"bottom_right\"",
            )),
        }
    }
}

impl<'a, 'py> Call<'a, 'py> {
    /// The arguments that both directions have.
    fn new([q, k, v]: [&'a Bound<'py, PyAny>; 3], keywords: &Keywords<'a, 'py>) -> PyResult<Self> {
        let (q, k, v) = (four("q", q)?, four("k", k)?, four("v", v)?);
        k.expect_type_of(&q)?;
        v.expect_type_of(&q)?;
        let [batch, heads, queries, size] = [0, 1, 2, 3].map(|at| q.shape[at]);
        let [groups, page] = [1, 2].map(|at| k.shape[at]);
        let pages = keywords.page_table.map(|table| pages(table, batch)).transpose()?;
        let sequences = if pages.is_some() { k.shape[0] } else { batch };
        k.expect_shape(&[sequences, groups, page, size], "sequences and elements are those of q")?;
        v.expect_shape(
            &[sequences, groups, page, v.shape[3]],
            "sequences, heads and tokens are those of k",
        )?;
        if groups == 0 && heads > 0 || groups > 0 && heads % groups > 0 {
            return Err(PyValueError::new_err(format!(
                "q has {heads} heads and k {groups}: pass a multiple, such as {groups} or {}",
                2 * groups
            )));
        }
        let keys = page * pages.as_ref().map_or(1, |pages| pages.shape[1]);
        let (window, first_keys) = window(keywords.window)?;
        let attention = Attention {
            causal: keywords.causal(queries, keys)?,
            window,
            first_keys,
            scale: keywords.scale.map(|scale| scale as f32),
            soft_cap: keywords.soft_cap.unwrap_or(0.0) as f32,
        };
        let mut inputs: ArrayVec<_, 12> = ArrayVec::new();
        inputs.push(Bound4::new(Arg::Queries, q));
        inputs.push(Bound4::keys(Arg::Keys, k));
        inputs.push(Bound4::new(Arg::Values, v));
        inputs.extend(pages.map(|pages| Bound4::new(Arg::PageTable, pages)));
        if let Some(mask) = keywords.mask {
            inputs.push(mask4(mask, [batch, heads, queries, keys])?);
        }
        let per_head = (DataType::F32, &[heads][..], "one element for each head of q");
        let per_sequence = (DataType::S32, &[batch][..], "one element for each sequence of q");
        for (arg, name, object, expected) in [
            (Arg::Sinks, "sinks", keywords.sinks, per_head),
            (Arg::AlibiSlopes, "alibi_slopes", keywords.alibi_slopes, per_head),
            (Arg::QueryLengths, "query_lengths", keywords.query_lengths, per_sequence),
            (Arg::KeyLengths, "key_lengths", keywords.key_lengths, per_sequence),
        ] {
            let tensor = object.map(|object| dense(name, object, expected)).transpose()?;
            inputs.extend(tensor.map(|tensor| Bound4::new(arg, tensor)));
        }
        Ok(Self { attention, inputs, outputs: ArrayVec::new(), results: ArrayVec::new() })
    }

    fn q(&self) -> &Tensor<'a, 'py> {
        &self.inputs[0].tensor
    }

    /// The sizes of the result, and of log-sum-exp without the last.
    fn shape_of_dst(&self) -> [usize; 4] {
        let [batch, heads, queries] = [0, 1, 2].map(|at| self.q().shape[at]);
        [batch, heads, queries, self.inputs[2].tensor.shape[3]]
    }

    fn add(&mut self, bound: Bound4<'a, 'py>, result: Output<'py>) {
        self.outputs.push(bound);
        self.results.push(result);
    }

    fn run(self, py: Python<'py>, prop_kind: PropKind) -> PyResult<Bound<'py, PyAny>> {
        let written: ArrayVec<_, 4> = self.outputs.iter().map(|bound| &bound.tensor).collect();
        let read: ArrayVec<_, 12> = self.inputs.iter().map(|bound| &bound.tensor).collect();
        let in_place = (self.q(), written[0]);
        let in_place = if prop_kind == PropKind::Backward { &[][..] } else { &[in_place] };
        check_overlaps(&written, &read, in_place)?;
        let (mut operands, mut addresses) = (ArrayVec::new(), Addresses::new());
        for Bound4 { arg, tensor, dims, strides } in self.inputs.iter().chain(&self.outputs) {
            let (strides, dims) = (strides.clone(), Some(dims.clone()));
            operands.push(Operand { arg: *arg, data_type: tensor.data_type, strides, dims });
            addresses.push(tensor.data);
        }
        let (operation, dims) = (Operation::Attention(self.attention), self.q().shape.clone());
        compute(py, &Problem { prop_kind, operation, dims, operands }, &addresses)?;
        let mut results = ArrayVec::<_, 4>::new();
        for result in self.results {
            results.push(result.finish()?);
        }
        if results.len() == 1 {
            return Ok(results.remove(0));
        }
        Ok(pyo3::types::PyTuple::new(py, results)?.into_any())
    }
}

/// The pages of each sequence.
fn pages<'a, 'py>(table: &'a Bound<'py, PyAny>, batch: usize) -> PyResult<Tensor<'a, 'py>> {
    let of = Tensor::read("page_table", table)?;
    let count = of.shape.get(1).copied().unwrap_or(0);
    let why = "a row of pages for each sequence of q";
    dense("page_table", table, (DataType::S32, &[batch, count], why))
}

/// A mask with leading dimensions of 1 as far as it has none.
fn mask4<'a, 'py>(object: &'a Bound<'py, PyAny>, full: [usize; 4]) -> PyResult<Bound4<'a, 'py>> {
    let tensor = Tensor::read_mask("mask", object)?;
    tensor.expect_type(MASKS)?;
    let mut mask = Bound4::new(Arg::AttnMask, tensor);
    while mask.dims.len() < 4 {
        mask.dims.insert(0, 1);
        mask.strides.insert(0, 0);
    }
    if mask.dims.len() > 4 || mask.dims.iter().zip(full).any(|(&own, all)| own != 1 && own != all) {
        return Err(PyValueError::new_err(format!(
            "mask has the shape {}, but the scores have {}: pass those sizes, or 1 where they share it",
            tuple(&mask.tensor.shape),
            tuple(&full)
        )));
    }
    Ok(mask)
}

/// Scaled dot-product attention, softmax(mask(scale * q @ k.T)) @ v, in tiles.
///
/// For each query, in this order: the products with the keys times scale; with soft_cap
/// soft_cap * tanh(score / soft_cap); plus alibi_slopes[head] * (key - position); plus mask. The weights are
/// the exponentials of the scores of the keys that the query sees, divided by their sum. A query that sees no
/// key gives zeros.
///
/// Parameters
/// ----------
/// q : array of shape (B, H, S, D)
///     Sequences, heads, queries, elements of a head; float32, bfloat16 or float16, any strides but negative
///     ones.
/// k, v : arrays of shape (B, G, T, D) and (B, G, T, E), of the type of q
///     G divides H: head h of q uses head h // (H // G).
/// causal : None, "top_left", "bottom_right" or bool
///     Query i sees the keys to i, or to i + T - S, so that the last query sees the last key; both by the
///     lengths of its sequence. True is enough if S is T and there are no lengths.
/// window : None, ("with_self", W) or ("before_self", W)
///     A query sees the W keys to its own, or W keys before its own and that. It implies causal. With a third
///     number N, keys 0 to N - 1 are seen too.
/// scale : float, optional
///     1 / sqrt(D) by default.
/// soft_cap : float, optional
///     Above 0.
/// sinks : float32 array of shape (H,), optional
///     The score of one more key of each head, with values of 0.
/// alibi_slopes : float32 array of shape (H,), optional
/// mask : array that broadcasts to (B, H, S, T), optional
///     float32, bfloat16 or float16 is added; bool or uint8 hides keys where it is False or 0.
/// query_lengths, key_lengths : int32 arrays of shape (B,), optional
///     How many of S and T a sequence has. Results beyond are zeros.
/// page_table : int32 array of shape (B, pages), optional
///     Then k and v have shapes (N, G, P, D) and (N, G, P, E), and key j of sequence b is key j % P of page
///     page_table[b, j // P].
/// return_lse : bool
///     Whether the logarithms of the sums of exponentials are returned, for attention_backward.
/// return_entropy : bool
///     Whether the mean entropy of the weights is returned, for adaptive_window.
/// out : array of shape (B, H, S, E), optional
///     Where the result is written, in any of the types; q itself computes in place.
///
/// Returns
/// -------
/// out, or a new array of the library and element type of q; or a tuple of that, with return_lse the
/// logarithms of shape (B, H, S), with return_entropy the entropy of shape (B, H), both float32.
///
/// Raises
/// ------
/// TypeError, ValueError
///     An argument is not an array, or has the wrong element type, shape or layout. Nothing is written.
#[pyfunction]
#[pyo3(signature = (q, k, v, *, causal=None, window=None, scale=None, soft_cap=None, sinks=None, alibi_slopes=None,
                    mask=None, query_lengths=None, key_lengths=None, page_table=None, return_lse=false,
                    return_entropy=false, out=None),
       text_signature = "(q, k, v, *, causal=None, window=None, scale=None, soft_cap=None, sinks=None, \
                         alibi_slopes=None, mask=None, query_lengths=None, key_lengths=None, page_table=None, \
                         return_lse=False, return_entropy=False, out=None)")]
#[expect(clippy::too_many_arguments, reason = "the parameters of the Python function")]
pub(crate) fn attention<'py>(
    q: &Bound<'py, PyAny>,
    k: &Bound<'py, PyAny>,
    v: &Bound<'py, PyAny>,
    causal: Option<&Bound<'py, PyAny>>,
    window: Option<&Bound<'py, PyAny>>,
    scale: Option<f64>,
    soft_cap: Option<f64>,
    sinks: Option<&Bound<'py, PyAny>>,
    alibi_slopes: Option<&Bound<'py, PyAny>>,
    mask: Option<&Bound<'py, PyAny>>,
    query_lengths: Option<&Bound<'py, PyAny>>,
    key_lengths: Option<&Bound<'py, PyAny>>,
    page_table: Option<&Bound<'py, PyAny>>,
    return_lse: bool,
    return_entropy: bool,
    out: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = q.py();
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
        page_table,
    };
    let mut call = Call::new([q, k, v], &keywords)?;
    let shape = call.shape_of_dst();
    let expected = (FLOATS, &shape[..], "heads and tokens are those of q, elements those of v");
    let (dst, result) = output("out", out, call.q(), expected)?;
    call.add(Bound4::new(Arg::Dst, dst), result);
    if return_lse {
        let (sums, result) = allocate("lse", call.q(), DataType::F32, &shape[..3])?;
        call.add(Bound4::sums(sums), result);
    }
    if return_entropy {
        let (entropy, result) = allocate("entropy", call.q(), DataType::F32, &shape[..2])?;
        call.add(Bound4::new(Arg::Entropy, entropy), result);
    }
    let training = if return_lse { PropKind::ForwardTraining } else { PropKind::ForwardInference };
    call.run(py, training)
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
///     What attention returned with return_lse.
/// causal, window, scale, soft_cap, sinks, alibi_slopes, mask, query_lengths, key_lengths
///     Those of attention.
///
/// Returns
/// -------
/// (diff_q, diff_k, diff_v), with sinks (diff_q, diff_k, diff_v, diff_sinks): new arrays of the libraries and
/// element types of q, k, v and sinks. Gradients of shared heads of k and v are sums.
#[pyfunction]
#[pyo3(signature = (diff_dst, q, k, v, dst, lse, *, causal=None, window=None, scale=None, soft_cap=None, sinks=None,
                    alibi_slopes=None, mask=None, query_lengths=None, key_lengths=None))]
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
    scale: Option<f64>,
    soft_cap: Option<f64>,
    sinks: Option<&Bound<'py, PyAny>>,
    alibi_slopes: Option<&Bound<'py, PyAny>>,
    mask: Option<&Bound<'py, PyAny>>,
    query_lengths: Option<&Bound<'py, PyAny>>,
    key_lengths: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = q.py();
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
        page_table: None,
    };
    let mut call = Call::new([q, k, v], &keywords)?;
    let shape = call.shape_of_dst();
    let why = "it is that of the result of attention";
    let dst = four("dst", dst)?;
    dst.expect_shape(&shape, why)?;
    let gradient = four("diff_dst", diff_dst)?;
    gradient.expect_type_of(call.q())?;
    gradient.expect_shape(&shape, why)?;
    let sums = dense("lse", lse, (DataType::F32, &shape[..3], "one element for each query"))?;
    for (index, name, arg) in [
        (0, "diff_q", Arg::DiffQueries),
        (1, "diff_k", Arg::DiffKeys),
        (2, "diff_v", Arg::DiffValues),
    ] {
        let like = &call.inputs[index].tensor;
        let (tensor, result) = allocate(name, like, like.data_type, &like.shape)?;
        let bound = if index == 1 { Bound4::keys } else { Bound4::new };
        call.add(bound(arg, tensor), result);
    }
    if let Some(sinks) = call.inputs.iter().find(|bound| bound.arg == Arg::Sinks) {
        let like = &sinks.tensor;
        let (tensor, result) = allocate("diff_sinks", like, DataType::F32, &like.shape)?;
        call.add(Bound4::new(Arg::DiffSinks, tensor), result);
    }
    call.inputs.push(Bound4::new(Arg::Dst, dst));
    call.inputs.push(Bound4::new(Arg::DiffDst, gradient));
    call.inputs.push(Bound4::sums(sums));
    call.run(py, PropKind::Backward)
}
