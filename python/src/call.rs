//! A call of a normalization: its arrays, checked against each other, and its results.
//!
//! Inputs are added first, then outputs; [`Call::run`] joins dimensions, finds the primitive and
//! executes it without the interpreter's lock.

use arrayvec::ArrayVec;
use norm_rs::DataType;
use norm_rs::layer_normalization::Flags;
use norm_rs::primitive::{Arg, PropKind};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::arguments::shape_error;
use crate::errors::to_python;
use crate::layout::{MAX_JOINED, check_overlaps, join};
use crate::options::{Keywords, Options};
use crate::output::{Output, allocate, expect_out};
use crate::plan::{Addresses, Operand, Operation, Problem, Strides, execute};
use crate::scales::{SCALES, check_scales, group_of};
use crate::tensor::{Dims, Tensor, tuple};
use crate::wanted::{MAKE_CONTIGUOUS, NEW_CONTIGUOUS};

/// Element types of src and dst.
pub(crate) const FORWARD: &[DataType] = &[
    DataType::F32,
    DataType::Bf16,
    DataType::F16,
    DataType::F64,
    DataType::S8,
    DataType::U8,
    DataType::F8E4m3,
    DataType::F8E5m2,
];
/// Element types of the backward pass.
pub(crate) const BACKWARD: &[DataType] =
    &[DataType::F32, DataType::Bf16, DataType::F16, DataType::F64];
/// Element types of scale and shift.
const PARAMETERS: &[DataType] = &[DataType::F32, DataType::Bf16, DataType::F16];

/// An optional argument from Python.
pub(crate) type Given<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

/// Element types of gates and residuals.
pub(crate) const BESIDE: &[DataType] = PARAMETERS;
/// Element types that have dynamic scales.
pub(crate) const QUANTIZED: &[DataType] =
    &[DataType::S8, DataType::U8, DataType::F8E4m3, DataType::F8E5m2];

/// The most results: the gradients of src, scale, shift and gate.
const MAX_RESULTS: usize = 4;
/// The most inputs besides src: a gradient reads diff_dst, mean, variance, scale, shift, diff_sum and gate.
const MAX_INPUTS: usize = 7;

/// The arguments of one call.
pub(crate) struct Call<'a, 'py> {
    py: Python<'py>,
    prop_kind: PropKind,
    flags: Flags,
    epsilon: f32,
    options: Options,
    src: Tensor<'a, 'py>,
    inputs: ArrayVec<(Arg, Tensor<'a, 'py>), MAX_INPUTS>,
    outputs: ArrayVec<(Arg, Tensor<'a, 'py>), MAX_RESULTS>,
    /// In the order of `outputs`.
    results: ArrayVec<Output<'py>, MAX_RESULTS>,
}

impl<'a, 'py> Call<'a, 'py> {
    /// A call on `src`, whose last dimension is normalized.
    pub(crate) fn new(
        src: &'a Bound<'py, PyAny>,
        prop_kind: PropKind,
        flags: Flags,
        epsilon: f64,
    ) -> PyResult<Self> {
        let py = src.py();
        let forward = matches!(prop_kind, PropKind::ForwardTraining | PropKind::ForwardInference);
        let src = Tensor::read("src", if forward { FORWARD } else { BACKWARD }, src)?;
        if src.shape.is_empty() {
            return Err(PyValueError::new_err(
                "src has no dimensions: pass an array with at least one; the last one is normalized",
            ));
        }
        let epsilon = epsilon as f32; // the library rejects what is not finite or negative
        let (inputs, outputs, results) = Default::default();
        let options = Options::NONE;
        Ok(Self { py, prop_kind, flags, epsilon, options, src, inputs, outputs, results })
    }

    fn cols(&self) -> usize {
        *self.src.shape.last().expect("a dimension")
    }

    fn rows(&self) -> &[usize] {
        &self.src.shape[..self.src.shape.len() - 1]
    }

    fn is_backward(&self) -> bool {
        matches!(self.prop_kind, PropKind::Backward | PropKind::BackwardData)
    }

    fn expect_shape_of_src(&self, tensor: &Tensor<'_, '_>) -> PyResult<()> {
        tensor.expect_shape(&self.src.shape, "it is that of src")
    }

    fn expect_cols(&self, tensor: &Tensor<'_, '_>) -> PyResult<()> {
        tensor.expect_shape(&[self.cols()], "one element for each column of src")?;
        tensor.expect_dense()
    }

    /// Statistics: an element for each row, perhaps with a last dimension of 1.
    fn expect_rows(&self, tensor: &mut Tensor<'_, '_>) -> PyResult<()> {
        if tensor.shape.len() == self.src.shape.len() && tensor.shape.last() == Some(&1) {
            tensor.shape.pop();
            tensor.strides.pop();
        }
        let after_mean =
            tensor.name == Arg::Variance.name() && !self.flags.contains(Flags::RMS_NORM);
        let what = match after_mean {
            true => "one element for each row of src; mean comes before it",
            false => "one element for each row of src",
        };
        tensor.expect_shape(self.rows(), what)
    }

    /// Adds scale and shift.
    pub(crate) fn parameters(
        &mut self,
        scale: Given<'a, 'py>,
        shift: Given<'a, 'py>,
    ) -> PyResult<()> {
        let given = [(Arg::Scale, scale, Flags::SCALE), (Arg::Shift, shift, Flags::SHIFT)];
        for (arg, object, flag) in given {
            let Some(object) = object else { continue };
            let tensor = Tensor::read(arg.name(), PARAMETERS, object)
                .map_err(|error| shape_error(arg.name(), object, error))?;
            self.expect_cols(&tensor)?;
            if let Some((_, scale)) = self.inputs.iter().find(|(arg, _)| *arg == Arg::Scale) {
                tensor.expect_type_of(scale)?;
            }
            self.flags |= flag;
            self.inputs.push((arg, tensor));
        }
        Ok(())
    }

    /// Adds statistics that are inputs.
    pub(crate) fn statistics(
        &mut self,
        mean: Given<'a, 'py>,
        variance: Given<'a, 'py>,
    ) -> PyResult<()> {
        for (arg, object) in [(Arg::Mean, mean), (Arg::Variance, variance)] {
            let Some(object) = object else { continue };
            let mut tensor = Tensor::read(arg.name(), &[DataType::F32], object)?;
            self.expect_rows(&mut tensor)?;
            self.inputs.push((arg, tensor));
        }
        Ok(())
    }

    /// Adds the options.
    pub(crate) fn keywords(&mut self, keywords: &'a Keywords<'py>) -> PyResult<()> {
        self.flags |= keywords.flags;
        self.options = keywords.options;
        self.options.check_partial(self.flags.contains(Flags::RMS_NORM), "row", self.cols())?;
        if let Some((name, gate)) = &keywords.gate {
            self.input_like_src(Arg::Gate, name, gate)?;
        }
        Ok(())
    }

    /// Adds the residual, which is added to src.
    pub(crate) fn residual(
        &mut self,
        residual: &'a Bound<'py, PyAny>,
        exact: bool,
    ) -> PyResult<()> {
        self.options.exact = exact;
        self.input_like_src(Arg::Residual, "residual", residual)
    }

    /// Adds the gradient of the sum of src and residual that the forward pass stored. Here src is that sum.
    pub(crate) fn diff_sum(&mut self, diff_sum: Given<'a, 'py>) -> PyResult<()> {
        let Some(diff_sum) = diff_sum else { return Ok(()) };
        self.input_like_src(Arg::DiffResidualDst, "diff_sum", diff_sum)?;
        let (_, tensor) = self.inputs.last().expect("diff_sum");
        tensor.expect_type_of(&self.src)
    }

    fn input_like_src(
        &mut self,
        arg: Arg,
        name: &'static str,
        object: &'a Bound<'py, PyAny>,
    ) -> PyResult<()> {
        let tensor = Tensor::read(name, BESIDE, object)?;
        self.expect_shape_of_src(&tensor)?;
        self.inputs.push((arg, tensor));
        Ok(())
    }

    /// Computes a scale for every `group` elements of a row of dst; without `group`, one for the whole row.
    pub(crate) fn quantize(&mut self, group: Option<usize>) -> PyResult<()> {
        self.options.group = group_of(group, self.cols(), "src")?;
        Ok(())
    }

    /// The shape of dynamic scales.
    fn shape_of_scales(&self) -> Dims {
        self.rows().iter().copied().chain([self.cols() / self.options.group]).collect()
    }

    /// Adds the gradient of the result.
    pub(crate) fn diff_dst(&mut self, diff_dst: &'a Bound<'py, PyAny>) -> PyResult<()> {
        let tensor = Tensor::read("diff_dst", BACKWARD, diff_dst)?;
        self.expect_shape_of_src(&tensor)?;
        self.inputs.push((Arg::DiffDst, tensor));
        Ok(())
    }

    /// Adds an output: the caller's array, or a new one.
    pub(crate) fn output(
        &mut self,
        arg: Arg,
        name: &'static str,
        out: Given<'a, 'py>,
    ) -> PyResult<()> {
        let (tensor, result) = match out {
            Some(out) => {
                let mut tensor = Tensor::read_output(name, self.types_of_output(arg), out)?;
                self.check_output(arg, &mut tensor)?;
                (tensor, Output::Array(out.clone()))
            }
            None => {
                let input = |arg| {
                    let (_, tensor) =
                        self.inputs.iter().find(|(own, _)| *own == arg).expect("an input");
                    tensor
                };
                let scales = (self.options.group > 0).then(|| self.shape_of_scales());
                let scales = scales.as_deref().unwrap_or_default();
                let (like, data_type, shape) = match arg {
                    Arg::Mean | Arg::Variance => (&self.src, DataType::F32, self.rows()),
                    Arg::DiffScale | Arg::DiffShift => {
                        let of = if arg == Arg::DiffScale { Arg::Scale } else { Arg::Shift };
                        let like = input(of);
                        (like, like.data_type, &like.shape[..])
                    }
                    Arg::ResidualDst => {
                        let like = input(Arg::Residual);
                        (like, like.data_type, &like.shape[..])
                    }
                    Arg::DiffGate => {
                        let like = input(Arg::Gate);
                        (like, like.data_type, &like.shape[..])
                    }
                    Arg::DstScale => (&self.src, DataType::F32, scales),
                    Arg::DstZeroPoint => (&self.src, DataType::S32, scales),
                    _ => {
                        expect_out(name, &self.src, None)?;
                        (&self.src, self.src.data_type, &self.src.shape[..])
                    }
                };
                allocate(name, like, data_type, shape)?
            }
        };
        self.outputs.push((arg, tensor));
        self.results.push(result);
        Ok(())
    }

    fn types_of_output(&self, arg: Arg) -> &'static [DataType] {
        match arg {
            Arg::Mean | Arg::Variance => &[DataType::F32],
            Arg::DstScale => SCALES,
            Arg::DstZeroPoint => &[DataType::S32],
            Arg::DiffScale | Arg::DiffShift | Arg::DiffGate => PARAMETERS,
            Arg::ResidualDst => BESIDE,
            _ => match (self.options.group, self.is_backward()) {
                (0, false) => FORWARD,
                (0, true) => BACKWARD,
                _ => QUANTIZED,
            },
        }
    }

    fn check_output(&self, arg: Arg, tensor: &mut Tensor<'_, '_>) -> PyResult<()> {
        match arg {
            Arg::Mean | Arg::Variance => self.expect_rows(tensor),
            Arg::DiffScale | Arg::DiffShift => {
                self.expect_cols(tensor)?;
                let first = self.outputs.iter().find(|(own, _)| *own == Arg::DiffScale);
                first.map_or(Ok(()), |(_, diff_scale)| tensor.expect_type_of(diff_scale))
            }
            Arg::DiffGate => {
                let gate = self.inputs.iter().find(|(own, _)| *own == Arg::Gate);
                gate.map_or(Ok(()), |(_, gate)| tensor.expect_type_of(gate))?;
                self.expect_shape_of_src(tensor)
            }
            Arg::DstScale | Arg::DstZeroPoint => {
                tensor
                    .expect_shape(&self.shape_of_scales(), "one element for each group of src")?;
                tensor.expect_dense()?;
                match arg {
                    Arg::DstScale => check_scales(tensor, self.options.group, &self.outputs[0].1),
                    _ => Ok(()),
                }
            }
            _ => self.expect_shape_of_src(tensor),
        }
    }

    /// Computes, and returns the results in the order in which the outputs were added.
    pub(crate) fn run(self) -> PyResult<ArrayVec<Bound<'py, PyAny>, MAX_RESULTS>> {
        self.check_overlaps()?;
        let (problem, addresses) = self.problem()?;
        compute(self.py, &problem, &addresses)?;
        self.results.into_iter().map(Output::finish).collect()
    }

    fn check_overlaps(&self) -> PyResult<()> {
        let inputs: ArrayVec<_, { MAX_INPUTS + 1 }> =
            std::iter::once(&self.src).chain(self.inputs.iter().map(|(_, input)| input)).collect();
        let outputs: ArrayVec<_, MAX_RESULTS> =
            self.outputs.iter().map(|(_, output)| output).collect();
        let input = |arg| self.inputs.iter().find(|(own, _)| *own == arg).map(|(_, tensor)| tensor);
        let output =
            |arg| self.outputs.iter().find(|(own, _)| *own == arg).map(|(_, tensor)| tensor);
        // The residual stream and the gate may be updated in place, too.
        let pairs = [
            Some((input(Arg::DiffDst).unwrap_or(&self.src), outputs[0])),
            input(Arg::Residual).zip(output(Arg::ResidualDst)),
            input(Arg::Gate).zip(output(Arg::DiffGate)),
        ];
        let pairs: ArrayVec<_, 3> = pairs.into_iter().flatten().collect();
        check_overlaps(&outputs, &inputs, &pairs)
    }

    /// The key of the primitive, and the addresses of its arguments.
    fn problem(&self) -> PyResult<(Problem, Addresses)> {
        let all = || {
            // Gradients do not depend on the shift, except that of a gate of the result.
            let gated = self.flags.contains(Flags::GATE_OUTPUT);
            let unused = move |arg| arg == Arg::Shift && self.is_backward() && !gated;
            let others =
                self.inputs.iter().chain(&self.outputs).map(|(arg, tensor)| (*arg, tensor));
            std::iter::once((Arg::Src, &self.src))
                .chain(others)
                .filter(move |(arg, _)| !unused(*arg))
        };
        let has_rows = |arg| matches!(kind(arg), Kind::Rows | Kind::RowsAndCols);
        let by_rows: ArrayVec<_, MAX_JOINED> =
            all().filter(|(arg, _)| has_rows(*arg)).map(|(_, tensor)| tensor).collect();
        let joined = join(self.rows(), &by_rows)?;
        let mut strides = joined.strides.iter();
        let step = |tensor: &Tensor<'_, '_>| match self.cols() {
            0 | 1 => 1,
            _ => *tensor.strides.last().expect("a dimension"),
        };
        let mut operands = ArrayVec::new();
        let mut addresses = Addresses::new();
        for (arg, tensor) in all() {
            let mut own = || strides.next().expect("a tensor with rows").iter().copied();
            let strides = match kind(arg) {
                Kind::Cols => Strides::from_iter([1]),
                Kind::Groups => Strides::new(),
                Kind::Rows => own().collect(),
                // The stride of a single row is arbitrary: that of dense rows is used.
                Kind::RowsAndCols => match joined.sizes[..] {
                    [0 | 1] => own().map(|_| self.cols().max(1)).chain([step(tensor)]).collect(),
                    _ => own().chain([step(tensor)]).collect(),
                },
            };
            operands.push(Operand { arg, data_type: tensor.data_type, strides, dims: None });
            addresses.push(tensor.data);
        }
        self.check_pairs(&operands)?;
        let dims = joined.sizes.iter().copied().chain([self.cols()]).collect();
        let Self { prop_kind, flags, epsilon, options, .. } = *self;
        let operation = Operation::Normalization { flags, epsilon, options };
        Ok((Problem { prop_kind, operation, dims, operands }, addresses))
    }

    /// Rejects strides of two arguments that share a descriptor if they differ.
    fn check_pairs(&self, operands: &[Operand]) -> PyResult<()> {
        let strides = |arg| operands.iter().find(|operand| operand.arg == arg).map(|o| &o.strides);
        let tensor = |arg| {
            let all = self.inputs.iter().chain(&self.outputs);
            all.into_iter().find(|(own, _)| *own == arg).map(|(_, tensor)| tensor)
        };
        for (first, second) in [(Arg::Mean, Arg::Variance), (Arg::Gate, Arg::DiffGate)] {
            let (Some(one), Some(other)) = (tensor(first), tensor(second)) else { continue };
            if strides(first) != strides(second) {
                let pass = if other.is_output { NEW_CONTIGUOUS } else { MAKE_CONTIGUOUS };
                return Err(PyValueError::new_err(format!(
                    "{} and {} have different strides, {} and {}: {pass}",
                    one.name,
                    other.name,
                    tuple(&one.strides),
                    tuple(&other.strides),
                )));
            }
        }
        Ok(())
    }
}

/// The dimensions of an argument.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    RowsAndCols,
    Rows,
    Cols,
    Groups,
}

fn kind(arg: Arg) -> Kind {
    match arg {
        Arg::Mean | Arg::Variance => Kind::Rows,
        Arg::Scale | Arg::Shift | Arg::DiffScale | Arg::DiffShift => Kind::Cols,
        Arg::DstScale | Arg::DstZeroPoint => Kind::Groups,
        _ => Kind::RowsAndCols,
    }
}

/// Executes a problem without the interpreter's lock. Each address is that of an array with its operand's type and
/// layout; outputs are writable and overlap nothing else.
pub(crate) fn compute(py: Python<'_>, problem: &Problem, addresses: &Addresses) -> PyResult<()> {
    let work = Detached((problem, addresses));
    py.detach(move || work.run()).map_err(|error| to_python(&error))
}

/// Work that runs without the interpreter's lock.
struct Detached<'x>((&'x Problem, &'x Addresses));

// SAFETY: the work runs on the thread that created it and has no Python objects.
unsafe impl Send for Detached<'_> {}

impl Detached<'_> {
    fn run(self) -> norm_rs::Result<()> {
        let (problem, addresses) = self.0;
        // SAFETY: guaranteed by the callers of `compute`. The Python call holds references to the arrays; a program
        // that modifies them meanwhile has a data race in Python, too.
        unsafe { execute(problem, addresses) }
    }
}

/// The elements of `out` for a function with several results; each may be None.
pub(crate) fn outs<'py, const N: usize>(
    out: Given<'_, 'py>,
    results: &str,
) -> PyResult<[Option<Bound<'py, PyAny>>; N]> {
    let Some(out) = out else { return Ok([const { None }; N]) };
    let tuple = out.cast::<PyTuple>().ok().filter(|tuple| tuple.len() == N);
    let tuple = tuple.ok_or_else(|| {
        PyTypeError::new_err(format!(
            "out must be a tuple ({results}), each an array or None for a new one"
        ))
    })?;
    let mut outs = [const { None }; N];
    for (out, given) in outs.iter_mut().zip(tuple.iter()) {
        *out = (!given.is_none()).then_some(given);
    }
    Ok(outs)
}
