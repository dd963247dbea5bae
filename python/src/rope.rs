//! Rotary position embedding.

use arrayvec::ArrayVec;
use norm_rs::DataType;
use norm_rs::primitive::{Arg, PropKind};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arguments;
use crate::call::{Given, compute, outs};
use crate::layout::check_overlaps;
use crate::output::{Output, allocate};
use crate::plan::{Addresses, Operand, Operation, Problem, Rotation};
use crate::rope_angles::{Angles, FLOATS};
use crate::rope_norm::{HeadNorm, without_epsilon};
use crate::rope_positions::Positions;
use crate::tensor::{Tensor, tuple};

/// The arguments of both directions.
struct Call<'a, 'py> {
    arg: Arg,
    input: &'a Bound<'py, PyAny>,
    positions: Positions<'a, 'py>,
    angles: Angles<'a, 'py>,
    norm: HeadNorm<'a, 'py>,
}

/// Tensors with their arguments: src, positions, angles, scale, and slots or diff_dst.
type Inputs<'a, 'py> = ArrayVec<(Arg, Tensor<'a, 'py>), 7>;

impl<'a, 'py> Call<'a, 'py> {
    /// What both directions read, the heads first, and the operation.
    fn read(&self) -> PyResult<(Inputs<'a, 'py>, Rotation)> {
        let name = if self.arg == Arg::Src { "src" } else { "diff_dst" };
        let input = Tensor::read(name, FLOATS, self.input)?;
        let (positions, sections) = self.positions.read(&input)?;
        let size = input.shape.last().copied().unwrap_or(0);
        let rotation = self.angles.rotation(name, size)?;
        let angles = self.angles.tables(rotation.rotary_dims)?;
        let (norm, scale) = self.norm.read(size)?;
        let mut inputs = Inputs::new();
        inputs.extend([(self.arg, input), (Arg::Positions, positions)]);
        inputs.extend(angles);
        inputs.extend(scale.map(|scale| (Arg::Scale, scale)));
        let index_dim = self.positions.index_dim;
        Ok((inputs, Rotation { sections, index_dim, norm, ..rotation }))
    }
}

/// Computes outputs, which may be one of the arguments in `in_place` for the first of them.
fn run(
    py: Python<'_>,
    rotation: Rotation,
    inputs: &Inputs<'_, '_>,
    outputs: &[(Arg, &Tensor<'_, '_>)],
    in_place: &[Arg],
) -> PyResult<()> {
    let read: ArrayVec<_, 7> = inputs.iter().map(|(_, tensor)| tensor).collect();
    let written: ArrayVec<_, 2> = outputs.iter().map(|(_, tensor)| *tensor).collect();
    let may_be_shared = inputs.iter().filter(|(arg, _)| in_place.contains(arg));
    let pairs: ArrayVec<_, 2> = may_be_shared.map(|(_, tensor)| (tensor, written[0])).collect();
    check_overlaps(&written, &read, &pairs)?;
    let (mut operands, mut addresses) = (ArrayVec::new(), Addresses::new());
    let all = inputs.iter().map(|(arg, tensor)| (*arg, tensor)).chain(outputs.iter().copied());
    for (arg, tensor) in all {
        let (strides, dims) = (tensor.strides.clone(), Some(tensor.shape.clone()));
        operands.push(Operand { arg, data_type: tensor.data_type, strides, dims });
        addresses.push(tensor.data);
    }
    // Both directions have no statistics.
    let (operation, prop_kind) = (Operation::Rope(rotation), PropKind::ForwardInference);
    let dims = read[0].shape.clone();
    compute(py, &Problem { prop_kind, operation, dims, operands }, &addresses)
}

/// An output that is like an input: the caller's array, or a new one.
fn like<'a, 'py>(
    name: &'static str,
    input: &Tensor<'a, 'py>,
    out: Given<'a, 'py>,
) -> PyResult<(Tensor<'a, 'py>, Output<'py>)> {
    let Some(out) = out else { return allocate(name, input, input.data_type, &input.shape) };
    let tensor = Tensor::read_output(name, FLOATS, out)?;
    tensor.expect_shape(&input.shape, &format!("it is that of {}", input.name))?;
    Ok((tensor, Output::Array(out.clone())))
}

/// The array that has the rows which slots name.
fn cache<'a, 'py>(
    input: &Tensor<'_, '_>,
    out: Given<'a, 'py>,
) -> PyResult<(Tensor<'a, 'py>, Output<'py>)> {
    let out = out.ok_or_else(|| {
        PyValueError::new_err(
            "out is missing, but slots names rows of it: pass the array to write them to",
        )
    })?;
    let tensor = Tensor::read_output("out", FLOATS, out)?;
    let of_token = &input.shape[1..];
    let fits = |outer: usize| tensor.shape.get(outer..).is_some_and(|own| own == of_token);
    if !fits(1) && !fits(2) {
        let list: String = of_token.iter().map(|size| format!(", {size}")).collect();
        return Err(PyValueError::new_err(format!(
            "out has the shape {}, but must have (slots{list}) or (pages, slots of a page{list}): its rows are tokens \
             of src",
            tuple(&tensor.shape)
        )));
    }
    Ok((tensor, Output::Array(out.clone())))
}

/// The slots, one for each token of `input`, which has one position.
fn read_slots<'a, 'py>(
    (input, positions): (&Tensor<'_, '_>, &Tensor<'_, '_>),
    slots: &'a Bound<'py, PyAny>,
) -> PyResult<Tensor<'a, 'py>> {
    let slots = Tensor::read("slots", &[DataType::S64], slots)?;
    slots.expect_shape(&input.shape[..1], "one for each token, dimension 0 of src")?;
    slots.expect_dense()?;
    let tokens = input.shape.len() - 1;
    if positions.shape.iter().take(tokens).skip(1).any(|size| *size != 1) {
        return Err(PyValueError::new_err(format!(
            "positions has the shape {}, but with slots a token of dimension 0 has one position: pass the size 1 in \
             the dimensions after it",
            tuple(&positions.shape)
        )));
    }
    Ok(slots)
}

/// src of the gradient, if heads were normalized.
fn read_src<'a, 'py>(
    diff_dst: &Tensor<'_, '_>,
    src: Given<'a, 'py>,
    normalized: bool,
) -> PyResult<Option<Tensor<'a, 'py>>> {
    let src = src.map(|src| Tensor::read("src", FLOATS, src)).transpose()?;
    match (&src, normalized) {
        (Some(src), true) => src.expect_shape(&diff_dst.shape, "it is that of diff_dst")?,
        (Some(_), false) => return Err(without_epsilon("src")),
        (None, true) => {
            return Err(PyValueError::new_err(
                "src is missing, but epsilon is given: pass the src of rope, whose heads it normalized",
            ));
        }
        (None, false) => {}
    }
    Ok(src)
}

/// Rotary position embedding: rotates the pairs of each head by angles that grow with the position.
///
///     angle = positions * frequencies[i]
///     a' = (a * cos(angle) - b * sin(angle)) * magnitude
///     b' = (a * sin(angle) + b * cos(angle)) * magnitude
///
/// for pair i of a head, the last dimension of src (Su and others, RoFormer, 2021). Angles are computed in
/// float64. With epsilon, each head is first normalized: src / sqrt(mean(src**2) + epsilon) * scale.
///
/// Parameters
/// ----------
/// src : array of shape (..., D), 2 to 6 dimensions
///     float32, bfloat16 or float16; the last dimension is contiguous.
/// positions : int32 or int64 array
///     The dimensions of src without the last, with 1 where positions are shared, for example by heads.
/// frequencies : float64 array of shape (rotary_dims / 2,), or list of float
///     Radians per position, as from rope_frequencies.
/// pairing : str
///     Which of a head's D elements form a pair; R of them are rotated. "interleaved": 2i and 2i + 1;
///     "half_split": i and i + R/2 (Hugging Face); "half_split_of_head": i and i + D/2.
/// rotary_dims : int, optional
///     R, the elements of a head that are rotated; the others are copied. D by default.
/// magnitude : float
///     A factor for the rotated elements, as from rope_frequencies.
/// cos, sin : array of shape (positions, rotary_dims / 2), optional
///     Tables instead of frequencies: float32, bfloat16 or float16.
/// sections : list of int, optional
///     How many pairs each part of a position rotates, such as time, row and column of an image: 2 to 4 numbers,
///     together R/2. positions then has one more dimension, of the parts. The first sections[0] pairs use part
///     0, and so on (Qwen2-VL).
/// interleaved_sections : bool
///     Pair i uses part i % n of n while that part has pairs, else part 0 (Qwen3-VL).
/// index_dim : int, optional
///     A dimension of src whose index is added to positions, which have 1 there.
/// epsilon : float, optional
///     Normalize each head, with this number added to the mean square; finite, 0 or more.
/// scale : array of shape (D,), optional
///     Of the normalization: float32, bfloat16 or float16; contiguous.
/// scale_plus_one : bool
///     Use 1 + scale, added in float32.
/// rounded : bool
///     Round normalized values to the type of the result before the rotation.
/// slots : int64 array of shape (tokens,), optional
///     Write token t, an element of dimension 0 of src, to row slots[t] of out, or nowhere for -1. Slots differ;
///     other rows are not changed.
/// out : array of the shape of src, optional
///     Where to write the result; pass src itself to work in place. With slots, out is required and has slots,
///     or pages and slots of a page, instead of tokens.
///
/// Returns
/// -------
/// out, or a new array of the library, shape and element type of src.
///
/// Raises
/// ------
/// TypeError, ValueError
///     An argument is not an array, or has the wrong element type, shape or layout. Nothing is written.
#[pyfunction]
#[pyo3(signature = (src, positions, frequencies=None, *, pairing, rotary_dims=None, magnitude=1.0, cos=None,
                    sin=None, sections=None, interleaved_sections=false, index_dim=None, epsilon=None, scale=None,
                    scale_plus_one=false, rounded=false, slots=None, out=None))]
#[expect(clippy::too_many_arguments, reason = "the parameters of the Python function")]
pub(crate) fn rope<'py>(
    src: &Bound<'py, PyAny>,
    positions: &Bound<'py, PyAny>,
    frequencies: Option<&Bound<'py, PyAny>>,
    #[pyo3(from_py_with = arguments::pairing)] pairing: &str,
    #[pyo3(from_py_with = arguments::rotated)] rotary_dims: Option<usize>,
    #[pyo3(from_py_with = arguments::magnitude)] magnitude: f64,
    cos: Option<&Bound<'py, PyAny>>,
    sin: Option<&Bound<'py, PyAny>>,
    #[pyo3(from_py_with = arguments::sections)] sections: Option<Vec<usize>>,
    #[pyo3(from_py_with = arguments::interleaved_sections)] interleaved_sections: bool,
    #[pyo3(from_py_with = arguments::index_dim)] index_dim: Option<usize>,
    #[pyo3(from_py_with = arguments::optional_epsilon)] epsilon: Option<f64>,
    scale: Option<&Bound<'py, PyAny>>,
    #[pyo3(from_py_with = arguments::scale_plus_one)] scale_plus_one: bool,
    #[pyo3(from_py_with = arguments::rounded)] rounded: bool,
    slots: Option<&Bound<'py, PyAny>>,
    out: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let call = Call {
        arg: Arg::Src,
        input: src,
        positions: Positions { array: positions, sections, interleaved_sections, index_dim },
        angles: Angles::new(frequencies, [cos, sin], pairing, rotary_dims, magnitude)?,
        norm: HeadNorm { epsilon, scale, scale_plus_one, rounded },
    };
    let (mut inputs, rotation) = call.read()?;
    let read = |slots| read_slots((&inputs[0].1, &inputs[1].1), slots);
    let slots = slots.map(read).transpose()?;
    let in_place: &[Arg] = if slots.is_some() { &[] } else { &[Arg::Src] };
    let (dst, result) = match &slots {
        Some(_) => cache(&inputs[0].1, out)?,
        None => like("out", &inputs[0].1, out)?,
    };
    inputs.extend(slots.map(|slots| (Arg::Slots, slots)));
    run(src.py(), rotation, &inputs, &[(Arg::Dst, &dst)], in_place)?;
    result.finish()
}

/// The gradient of rope: the rotation back, and with epsilon the gradient of the normalization.
///
/// Parameters
/// ----------
/// diff_dst : array of shape (..., D)
///     The gradient of the result: float32, bfloat16 or float16; with epsilon, 2 to 5 dimensions.
/// positions, frequencies, pairing, rotary_dims, magnitude, cos, sin, sections, interleaved_sections, index_dim
///     As in the forward pass.
/// epsilon, scale, scale_plus_one, rounded
///     As in the forward pass. rounded has no effect: the gradient of rounding is taken as 1.
/// src : array of the shape of diff_dst
///     The source of the forward pass, with epsilon only.
/// return_diff_scale : bool
///     Also return the gradient of scale, the sum over all heads.
/// out : array of the shape of diff_dst, optional
///     Where to write the result; pass diff_dst or src itself to work in place. With return_diff_scale a tuple
///     (diff_src, diff_scale), with None for a new array.
///
/// Returns
/// -------
/// out, or a new array of the library, shape and element type of diff_dst; with return_diff_scale
/// (diff_src, diff_scale), the second in the element type of scale.
///
/// Raises
/// ------
/// TypeError, ValueError
///     An argument is not an array, or has the wrong element type, shape or layout. Nothing is written.
#[pyfunction]
#[pyo3(signature = (diff_dst, positions, frequencies=None, *, pairing, rotary_dims=None, magnitude=1.0, cos=None,
                    sin=None, sections=None, interleaved_sections=false, index_dim=None, epsilon=None, scale=None,
                    scale_plus_one=false, rounded=false, src=None, return_diff_scale=false, out=None))]
#[expect(clippy::too_many_arguments, reason = "the parameters of the Python function")]
pub(crate) fn rope_backward<'py>(
    diff_dst: &Bound<'py, PyAny>,
    positions: &Bound<'py, PyAny>,
    frequencies: Option<&Bound<'py, PyAny>>,
    #[pyo3(from_py_with = arguments::pairing)] pairing: &str,
    #[pyo3(from_py_with = arguments::rotated)] rotary_dims: Option<usize>,
    #[pyo3(from_py_with = arguments::magnitude)] magnitude: f64,
    cos: Option<&Bound<'py, PyAny>>,
    sin: Option<&Bound<'py, PyAny>>,
    #[pyo3(from_py_with = arguments::sections)] sections: Option<Vec<usize>>,
    #[pyo3(from_py_with = arguments::interleaved_sections)] interleaved_sections: bool,
    #[pyo3(from_py_with = arguments::index_dim)] index_dim: Option<usize>,
    #[pyo3(from_py_with = arguments::optional_epsilon)] epsilon: Option<f64>,
    scale: Option<&Bound<'py, PyAny>>,
    #[pyo3(from_py_with = arguments::scale_plus_one)] scale_plus_one: bool,
    #[pyo3(from_py_with = arguments::rounded)] rounded: bool,
    src: Option<&Bound<'py, PyAny>>,
    #[pyo3(from_py_with = arguments::return_diff_scale)] return_diff_scale: bool,
    out: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = diff_dst.py();
    if return_diff_scale && scale.is_none() {
        return Err(PyValueError::new_err(
            "return_diff_scale is True, but there is no scale: pass scale, or leave it out",
        ));
    }
    let call = Call {
        arg: Arg::DiffDst,
        input: diff_dst,
        positions: Positions { array: positions, sections, interleaved_sections, index_dim },
        angles: Angles::new(frequencies, [cos, sin], pairing, rotary_dims, magnitude)?,
        norm: HeadNorm { epsilon, scale, scale_plus_one, rounded },
    };
    let (mut inputs, rotation) = call.read()?;
    let src = read_src(&inputs[0].1, src, rotation.norm.is_some())?;
    let in_place = &[Arg::DiffDst, Arg::Src];
    inputs.extend(src.map(|src| (Arg::Src, src)));
    if !return_diff_scale {
        let (diff_src, result) = like("out", &inputs[0].1, out)?;
        run(py, rotation, &inputs, &[(Arg::DiffSrc, &diff_src)], in_place)?;
        return result.finish();
    }
    let [first, second] = outs(out, "diff_src, diff_scale")?;
    let (diff_src, result) = like("out[0]", &inputs[0].1, first.as_ref())?;
    let (_, scale) = inputs.iter().find(|(arg, _)| *arg == Arg::Scale).expect("a scale");
    let (diff_scale, of_scale) = like("out[1]", scale, second.as_ref())?;
    diff_scale.expect_dense()?;
    let outputs = [(Arg::DiffSrc, &diff_src), (Arg::DiffScale, &diff_scale)];
    run(py, rotation, &inputs, &outputs, in_place)?;
    Ok((result.finish()?, of_scale.finish()?).into_pyobject(py)?.into_any())
}
