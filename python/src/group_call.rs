//! A call of group normalization: its arrays, checked against each other, and its results.

use arrayvec::ArrayVec;
use norm_rs::DataType;
use norm_rs::layer_normalization::Flags;
use norm_rs::primitive::{Arg, PropKind};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arguments;
use crate::call::{BACKWARD, BESIDE, FORWARD, Given, QUANTIZED, compute};
use crate::layout::check_overlaps;
use crate::options::{Keywords, Options};
use crate::output::{Output, allocate, expect_out};
use crate::plan::{Addresses, Groups, Operand, Operation, Problem};
use crate::scales::{SCALES, check_scales, group_of};
use crate::tensor::{Dims, Tensor, tuple};
use crate::wanted::MAKE_CONTIGUOUS;

/// The most dimensions that the library accepts.
const MAX_DIMS: usize = 5;
/// The most arguments.
const MAX_TENSORS: usize = 10;

/// What all functions have in common.
pub(crate) struct Common<'a, 'py> {
    pub(crate) src: &'a Bound<'py, PyAny>,
    pub(crate) groups: usize,
    pub(crate) scale: Given<'a, 'py>,
    pub(crate) shift: Given<'a, 'py>,
    pub(crate) epsilon: f64,
    pub(crate) rms: bool,
    pub(crate) keywords: &'a Keywords<'py>,
}

impl<'a, 'py> Common<'a, 'py> {
    pub(crate) fn call(self, prop_kind: PropKind, flags: Flags) -> PyResult<Call<'a, 'py>> {
        let rms = if self.rms { Flags::RMS_NORM } else { Flags::NONE };
        let mut call = Call::new(self.src, self.groups, prop_kind, rms | flags, self.epsilon)?;
        call.input(Arg::Scale, Flags::SCALE, self.scale)?;
        call.input(Arg::Shift, Flags::SHIFT, self.shift)?;
        call.keywords(self.keywords)?;
        Ok(call)
    }
}

/// The arguments of one call.
pub(crate) struct Call<'a, 'py> {
    py: Python<'py>,
    prop_kind: PropKind,
    flags: Flags,
    epsilon: f64,
    groups: usize,
    options: Options,
    types: &'static [DataType],
    /// src, then the other inputs.
    inputs: ArrayVec<(Arg, Tensor<'a, 'py>), MAX_TENSORS>,
    outputs: ArrayVec<(Arg, Tensor<'a, 'py>), MAX_TENSORS>,
    results: Vec<Output<'py>>,
}

impl<'a, 'py> Call<'a, 'py> {
    fn new(
        src: &'a Bound<'py, PyAny>,
        groups: usize,
        prop_kind: PropKind,
        flags: Flags,
        epsilon: f64,
    ) -> PyResult<Self> {
        let py = src.py();
        let forward = matches!(prop_kind, PropKind::ForwardTraining | PropKind::ForwardInference);
        let types = if forward { FORWARD } else { BACKWARD };
        let src = Tensor::read("src", types, src)?;
        if !(2..=MAX_DIMS).contains(&src.shape.len()) {
            return Err(PyValueError::new_err(format!(
                "src has the shape {}: pass (samples, channels, ...) of 2 to {MAX_DIMS} dimensions; neighbouring \
                 positions can be one dimension",
                tuple(&src.shape)
            )));
        }
        let inputs = ArrayVec::from_iter([(Arg::Src, src)]);
        let (options, (outputs, results)) = (Options::NONE, Default::default());
        Ok(Self { py, prop_kind, flags, epsilon, groups, options, types, inputs, outputs, results })
    }

    fn src(&self) -> &Tensor<'a, 'py> {
        &self.inputs[0].1
    }

    /// The required shape of an argument, and the reason.
    fn shape(&self, arg: Arg) -> (Dims, &'static str) {
        let shape = &self.src().shape;
        match arg {
            Arg::Mean | Arg::Variance => {
                (Dims::from_iter([shape[0], self.groups]), "one element for each group of a sample")
            }
            Arg::Scale | Arg::Shift | Arg::DiffScale | Arg::DiffShift => {
                (Dims::from_iter([shape[1]]), "one element for each channel of src")
            }
            Arg::DstScale | Arg::DstZeroPoint => {
                let mut shape = shape.clone();
                if let Some(last) = shape.last_mut() {
                    *last /= self.options.group;
                }
                (shape, "one element for each group of the last dimension of src")
            }
            _ => (shape.clone(), "it is that of src"),
        }
    }

    fn types(&self, arg: Arg) -> &'static [DataType] {
        match arg {
            Arg::Dst if self.options.group > 0 => QUANTIZED,
            Arg::Dst | Arg::DiffDst | Arg::DiffSrc => self.types,
            Arg::DstScale => SCALES,
            Arg::DstZeroPoint => &[DataType::S32],
            _ if is_beside(arg) => BESIDE,
            _ => &[DataType::F32],
        }
    }

    fn check(&self, arg: Arg, tensor: &Tensor<'_, '_>) -> PyResult<()> {
        let (shape, because) = self.shape(arg);
        tensor.expect_shape(&shape, because)?;
        if is_like_src(arg) || is_beside(arg) { Ok(()) } else { tensor.expect_dense() }
    }

    fn found(&self, arg: Arg) -> Option<&Tensor<'a, 'py>> {
        self.inputs.iter().find(|(own, _)| *own == arg).map(|(_, tensor)| tensor)
    }

    /// Adds the options.
    fn keywords(&mut self, keywords: &'a Keywords<'py>) -> PyResult<()> {
        self.flags |= keywords.flags;
        self.options = keywords.options;
        let rms = self.flags.contains(Flags::RMS_NORM);
        let (channels, positions) = (self.src().shape[1], self.src().shape[2..].iter().product());
        // Other numbers of groups are refused by the library.
        if self.groups > 0 && channels.is_multiple_of(self.groups) {
            let size = channels / self.groups * positions;
            self.options.check_partial(rms, "group", size)?;
            self.options.check_channels(positions)?;
        }
        let Some((name, gate)) = &keywords.gate else { return Ok(()) };
        self.beside(Arg::Gate, name, gate)
    }

    /// Adds the residual, which is added to src.
    pub(crate) fn residual(
        &mut self,
        residual: &'a Bound<'py, PyAny>,
        exact: bool,
    ) -> PyResult<()> {
        self.options.exact = exact;
        self.beside(Arg::Residual, "residual", residual)
    }

    /// Adds the gradient of the sum of src and residual that the forward pass stored. Here src is that sum.
    pub(crate) fn diff_sum(&mut self, diff_sum: Given<'a, 'py>) -> PyResult<()> {
        let Some(diff_sum) = diff_sum else { return Ok(()) };
        self.beside(Arg::DiffResidualDst, "diff_sum", diff_sum)?;
        let (_, tensor) = self.inputs.last().expect("diff_sum");
        tensor.expect_type_of(self.src())
    }

    fn beside(
        &mut self,
        arg: Arg,
        name: &'static str,
        object: &'a Bound<'py, PyAny>,
    ) -> PyResult<()> {
        let tensor = Tensor::read(name, self.types(arg), object)?;
        self.check(arg, &tensor)?;
        self.inputs.push((arg, tensor));
        Ok(())
    }

    /// Computes a scale for every `group` elements along the last dimension of dst; without `group`, for all of them.
    pub(crate) fn quantize(&mut self, group: Option<usize>) -> PyResult<()> {
        let last = self.src().shape.last().copied().unwrap_or(0);
        self.options.group = group_of(group, last, "src")?;
        Ok(())
    }

    /// Whether dst is unsigned, so that it has zero points.
    pub(crate) fn has_zero_points(&self) -> bool {
        self.outputs.iter().any(|(arg, dst)| *arg == Arg::Dst && dst.data_type == DataType::U8)
    }

    pub(crate) fn input(&mut self, arg: Arg, flag: Flags, object: Given<'a, 'py>) -> PyResult<()> {
        let Some(object) = object else { return Ok(()) };
        let name = arg.name();
        let tensor = Tensor::read(name, self.types(arg), object).map_err(|error| match arg {
            Arg::Scale | Arg::Shift => arguments::parameter_error(name, object, error),
            _ => error,
        })?;
        self.check(arg, &tensor)?;
        self.flags |= flag;
        self.inputs.push((arg, tensor));
        Ok(())
    }

    pub(crate) fn output(
        &mut self,
        arg: Arg,
        name: &'static str,
        out: Given<'a, 'py>,
    ) -> PyResult<()> {
        let (tensor, result) = match out {
            Some(out) => {
                let tensor = Tensor::read_output(name, self.types(arg), out)?;
                self.check(arg, &tensor)?;
                (tensor, Output::Array(out.clone()))
            }
            None => {
                if is_like_src(arg) {
                    expect_out(name, self.src(), None)?;
                }
                let like = match arg {
                    Arg::ResidualDst => self.found(Arg::Residual),
                    Arg::DiffGate => self.found(Arg::Gate),
                    _ => None,
                };
                let like = like.unwrap_or(self.src());
                let data_type = match arg {
                    Arg::DstZeroPoint => DataType::S32,
                    _ if is_like_src(arg) || is_beside(arg) => like.data_type,
                    _ => DataType::F32,
                };
                allocate(name, like, data_type, &self.shape(arg).0)?
            }
        };
        match arg {
            Arg::DstScale => check_scales(&tensor, self.options.group, &self.outputs[0].1)?,
            Arg::DiffGate => self.check_gradient_of_gate(&tensor)?,
            _ => {}
        }
        self.outputs.push((arg, tensor));
        self.results.push(result);
        Ok(())
    }

    /// Refuses a gradient of the gate that has another type or layout than the gate.
    fn check_gradient_of_gate(&self, diff_gate: &Tensor<'_, '_>) -> PyResult<()> {
        let Some(gate) = self.found(Arg::Gate) else { return Ok(()) };
        diff_gate.expect_type_of(gate)?;
        let differs =
            |dim: usize| gate.shape[dim] > 1 && gate.strides[dim] != diff_gate.strides[dim];
        if (0..gate.shape.len()).any(differs) {
            return Err(PyValueError::new_err(format!(
                "{} and {} have different strides, {} and {}: {MAKE_CONTIGUOUS}",
                gate.name,
                diff_gate.name,
                tuple(&gate.strides),
                tuple(&diff_gate.strides),
            )));
        }
        Ok(())
    }

    pub(crate) fn run(self) -> PyResult<Vec<Bound<'py, PyAny>>> {
        self.check_overlaps()?;
        // Gradients do not depend on the shift, except that of a gate of the result.
        let gated = self.flags.contains(Flags::GATE_OUTPUT);
        let backward = matches!(self.prop_kind, PropKind::Backward | PropKind::BackwardData);
        let (mut operands, mut addresses) = (ArrayVec::new(), Addresses::new());
        let all = self.inputs.iter().chain(&self.outputs);
        for (arg, tensor) in all.filter(|(arg, _)| !(backward && !gated && *arg == Arg::Shift)) {
            let strides = tensor.strides.clone();
            operands.push(Operand { arg: *arg, data_type: tensor.data_type, strides, dims: None });
            addresses.push(tensor.data);
        }
        let operation = Operation::GroupNormalization(Groups {
            flags: self.flags,
            epsilon: self.epsilon as f32, // the library rejects what is not finite or negative
            groups: self.groups,
            options: self.options,
        });
        let dims = self.src().shape.clone();
        let problem = Problem { prop_kind: self.prop_kind, operation, dims, operands };
        compute(self.py, &problem, &addresses)?;
        self.results.into_iter().map(Output::finish).collect()
    }

    fn check_overlaps(&self) -> PyResult<()> {
        let inputs: Vec<_> = self.inputs.iter().map(|(_, tensor)| tensor).collect();
        let outputs: Vec<_> = self.outputs.iter().map(|(_, tensor)| tensor).collect();
        let source = self.found(Arg::DiffDst).unwrap_or(self.src());
        let written = |arg| self.outputs.iter().find(|(own, _)| *own == arg).map(|(_, own)| own);
        // The residual stream and the gate may be updated in place, too.
        let pairs = [
            Some((source, outputs[0])),
            self.found(Arg::Residual).zip(written(Arg::ResidualDst)),
            self.found(Arg::Gate).zip(written(Arg::DiffGate)),
        ];
        let pairs: ArrayVec<_, 3> = pairs.into_iter().flatten().collect();
        check_overlaps(&outputs, &inputs, &pairs)
    }
}

/// Whether an argument has the shape and the types of src.
fn is_like_src(arg: Arg) -> bool {
    matches!(arg, Arg::Dst | Arg::DiffDst | Arg::DiffSrc)
}

/// Whether an argument has the shape of src and types of its own.
fn is_beside(arg: Arg) -> bool {
    matches!(
        arg,
        Arg::Residual | Arg::ResidualDst | Arg::DiffResidualDst | Arg::Gate | Arg::DiffGate
    )
}
