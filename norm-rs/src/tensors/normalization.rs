//! Layer and RMS normalization of borrowed tensors, along the last dimension.

use super::cache::{Operation, Plan, Problem, plan};
use super::statistics::Statistics;
use super::view::{Input, Output, Pair, expect_len};
use crate::data_type::DataType;
use crate::error::{Error, Result};
use crate::layer_normalization::Flags;
use crate::memory::{Memory, ReadOnly, ReadWrite};
use crate::primitive::{Arg, Args, PropKind};

/// The arguments of a forward call.
pub(crate) struct Forward<'a> {
    /// `NONE` or `RMS_NORM`.
    pub(crate) norm: Flags,
    pub(crate) epsilon: f32,
    /// Vectors.
    pub(crate) scale: Option<Input<'a>>,
    pub(crate) shift: Option<Input<'a>>,
}

/// The memories of an execution, until they are bound.
#[derive(Default)]
struct Bindings<'a> {
    inputs: Vec<(Arg, Memory<'a, ReadOnly>)>,
    outputs: Vec<(Arg, Memory<'a, ReadWrite>)>,
    /// The input that shares the memory of an output.
    in_place: Option<(Arg, Arg)>,
}

impl<'a> Bindings<'a> {
    fn execute(mut self, plan: &Plan) -> Result<()> {
        let mut args = Args::new();
        for (arg, memory) in &self.inputs {
            args = args.input(*arg, memory);
        }
        for (arg, memory) in &mut self.outputs {
            args = match self.in_place {
                Some((input, output)) if output == *arg => args.in_place(input, output, memory),
                _ => args.output(*arg, memory),
            };
        }
        plan.execute(args)
    }

    /// Binds a pair of tensors with the plan's descriptors.
    fn pair(&mut self, plan: &Plan, pair: Pair<'a>, [from, to]: [Arg; 2]) -> Result<()> {
        let (from_desc, to_desc) = match from {
            Arg::Src => (&plan.data, &plan.dst),
            _ => (&plan.dst, &plan.diff_src),
        };
        let output = match pair {
            Pair::Apart(input, output) => {
                self.inputs.push((from, input.memory(&plan.engine, from_desc)?));
                output
            }
            Pair::InPlace(both) => {
                self.in_place = Some((from, to));
                both
            }
        };
        self.outputs.push((to, output.memory(&plan.engine, to_desc)?));
        Ok(())
    }
}

impl<'a> Forward<'a> {
    /// Without statistics.
    pub(crate) fn inference(&self, data: Pair<'a>) -> Result<()> {
        self.run(PropKind::ForwardInference, data, &mut [], &mut [])
    }

    /// With the statistics that backward needs.
    pub(crate) fn training(&self, data: Pair<'a>) -> Result<Statistics> {
        let shape = data.tensors()[0].shape;
        let rows = shape.outer().iter().product();
        let &Self { norm, epsilon, .. } = self;
        let mean = vec![0.0; if norm == Flags::NONE { rows } else { 0 }];
        let variance = vec![0.0; rows];
        let mut statistics = Statistics { cols: shape.cols(), epsilon, norm, mean, variance };
        let Statistics { mean, variance, .. } = &mut statistics;
        self.run(PropKind::ForwardTraining, data, mean, variance)?;
        Ok(statistics)
    }

    /// `mean` and `variance` are only used in training.
    fn run<'b>(
        &self,
        prop_kind: PropKind,
        data: Pair<'b>,
        mean: &'b mut [f32],
        variance: &'b mut [f32],
    ) -> Result<()>
    where
        'a: 'b,
    {
        let &Self { norm, epsilon, scale, shift } = self;
        let [src, dst] = data.tensors();
        let params = parameters(src.shape.cols(), scale, shift)?;
        let flags =
            norm | flag_if(scale.is_some(), Flags::SCALE) | flag_if(shift.is_some(), Flags::SHIFT);
        let operation =
            Operation::Normalization { flags, epsilon, params, diff_params: DataType::F32 };
        let plan = plan(&Problem { operation, prop_kind, data: src, dst, diff_src: None })?;

        let mut bindings = Bindings::default();
        bindings.pair(&plan, data, [Arg::Src, Arg::Dst])?;
        for (arg, parameter) in [(Arg::Scale, scale), (Arg::Shift, shift)] {
            if let Some(parameter) = parameter {
                bindings.inputs.push((arg, parameter.memory(&plan.engine, &plan.params)?));
            }
        }
        if prop_kind == PropKind::ForwardTraining {
            let variance = Memory::from_mut_slice(&plan.engine, &plan.stats, variance)?;
            bindings.outputs.push((Arg::Variance, variance));
            if norm == Flags::NONE {
                let mean = Memory::from_mut_slice(&plan.engine, &plan.stats, mean)?;
                bindings.outputs.push((Arg::Mean, mean));
            }
        }
        bindings.execute(&plan)
    }
}

/// The arguments of a backward call.
pub(crate) struct Backward<'a> {
    /// `NONE` or `RMS_NORM`.
    pub(crate) norm: Flags,
    pub(crate) src: Input<'a>,
    pub(crate) statistics: &'a Statistics,
    /// Vectors.
    pub(crate) scale: Option<Input<'a>>,
    pub(crate) diff_scale: Option<Output<'a>>,
    pub(crate) diff_shift: Option<Output<'a>>,
}

impl<'a> Backward<'a> {
    /// From diff_dst to diff_src.
    pub(crate) fn run(self, data: Pair<'a>) -> Result<()> {
        let [diff_dst, diff_src] = data.tensors();
        let src = self.src.tensor;
        self.check(src.shape.cols(), src.shape.outer().iter().product())?;
        let diff_params = self.diff_type()?;
        let Self { norm, statistics, scale, diff_scale, diff_shift, .. } = self;
        let frozen = diff_scale.is_none() && diff_shift.is_none();
        let flags = norm
            | flag_if(scale.is_some(), Flags::SCALE)
            | flag_if(diff_shift.is_some(), Flags::SHIFT);
        let params = scale.map_or(DataType::F32, |scale| scale.tensor.data_type);
        let epsilon = statistics.epsilon;
        let plan = plan(&Problem {
            operation: Operation::Normalization { flags, epsilon, params, diff_params },
            prop_kind: if frozen { PropKind::BackwardData } else { PropKind::Backward },
            data: src,
            dst: diff_dst,
            diff_src: Some(diff_src),
        })?;

        let engine = &plan.engine;
        let mut bindings = Bindings::default();
        bindings.inputs.push((Arg::Src, self.src.memory(engine, &plan.data)?));
        let variance = Memory::from_slice(engine, &plan.stats, &statistics.variance)?;
        bindings.inputs.push((Arg::Variance, variance));
        if norm == Flags::NONE {
            let mean = Memory::from_slice(engine, &plan.stats, &statistics.mean)?;
            bindings.inputs.push((Arg::Mean, mean));
        }
        bindings.pair(&plan, data, [Arg::DiffDst, Arg::DiffSrc])?;
        if let Some(scale) = scale {
            bindings.inputs.push((Arg::Scale, scale.memory(engine, &plan.params)?));
            if !frozen {
                // The primitive writes both gradients or neither; an unrequested one is discarded.
                let diff_scale = match diff_scale {
                    Some(diff_scale) => diff_scale.memory(engine, &plan.diff_params)?,
                    None => Memory::new(engine, &plan.diff_params)?,
                };
                bindings.outputs.push((Arg::DiffScale, diff_scale));
            }
        }
        if let Some(diff_shift) = diff_shift {
            let diff_shift = diff_shift.memory(engine, &plan.diff_params)?;
            bindings.outputs.push((Arg::DiffShift, diff_shift));
        }
        bindings.execute(&plan)
    }

    fn check(&self, cols: usize, rows: usize) -> Result<()> {
        let statistics = self.statistics;
        if statistics.norm != self.norm {
            let (is, should) = if self.norm == Flags::NONE {
                ("RMS normalization", "layer normalization")
            } else {
                ("layer normalization", "RMS normalization")
            };
            return Err(Error::invalid(
                "statistics",
                format_args!("belong to {is}; pass those of {should}, as its training returns"),
            ));
        }
        if (statistics.cols, statistics.rows()) != (cols, rows) {
            return Err(Error::invalid(
                "statistics",
                format_args!(
                    "are those of {} rows of {}, but src has {rows} rows of {cols}; pass those of \
                     the forward pass of this src",
                    statistics.rows(),
                    statistics.cols
                ),
            ));
        }
        parameters(cols, self.scale, None)?;
        let outputs = [("diff_scale", &self.diff_scale), ("diff_shift", &self.diff_shift)];
        for (name, output) in outputs {
            let len = output.as_ref().map_or(cols, |output| output.tensor.shape.cols());
            expect_len(name, len, cols)?;
        }
        if self.diff_scale.is_some() && self.scale.is_none() {
            return Err(Error::invalid(
                "diff_scale",
                "needs a scale; pass the forward pass's scale, or None for diff_scale",
            ));
        }
        Ok(())
    }

    /// The type of the gradients of both parameters.
    fn diff_type(&self) -> Result<DataType> {
        let data_type = |output: &Option<Output<'_>>| output.as_ref().map(|o| o.tensor.data_type);
        one_type(
            "diff_shift",
            data_type(&self.diff_shift),
            "diff_scale",
            data_type(&self.diff_scale),
        )
    }
}

/// Checks the lengths of scale and shift, and returns the type of both.
fn parameters(cols: usize, scale: Option<Input<'_>>, shift: Option<Input<'_>>) -> Result<DataType> {
    for (name, parameter) in [("scale", scale), ("shift", shift)] {
        expect_len(name, parameter.map_or(cols, |p| p.tensor.shape.cols()), cols)?;
    }
    let data_type = |parameter: Option<Input<'_>>| parameter.map(|p| p.tensor.data_type);
    one_type("shift", data_type(shift), "scale", data_type(scale))
}

/// The common type of the tensors that are present; f32 if neither is.
fn one_type(
    name: &'static str,
    data_type: Option<DataType>,
    other: &str,
    others: Option<DataType>,
) -> Result<DataType> {
    match (data_type, others) {
        (Some(own), Some(others)) if own != others => Err(Error::invalid(
            name,
            format_args!("is {own} and {other} {others}; convert one to the other's type"),
        )),
        (own, others) => Ok(own.or(others).unwrap_or(DataType::F32)),
    }
}

/// `flag` if an argument is present.
fn flag_if(given: bool, flag: Flags) -> Flags {
    if given { flag } else { Flags::NONE }
}
