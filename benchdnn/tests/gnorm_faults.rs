//! Known mistakes of a group normalization, made by a library under test. The harness must detect each, against the
//! oracle or in the gradient check.

mod sham;

use benchdnn::data_type::DataType;
use benchdnn::direction::Direction;
use benchdnn::drivers::gnorm::{self, GnormProblem, Request};
use benchdnn::harness;
use benchdnn::library::Wanted;
use benchdnn::oracle::lnorm::Flags;
use benchdnn::oracle::steps::GateFunction;
use benchdnn::problem::{Data, Expected, Problem};
use benchdnn::steps::{Gate, Partial, Residual, Steps};
use benchdnn::tensor::Layout;
use norm_sys::*;
use sham::Faulty;
use std::any::Any;

const SCALES: i32 = NORM_ARG_ATTR_SCALES | NORM_ARG_DST;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// The statistics are those of all channels of a sample.
    OneGroup,
    /// The scale of a channel is that of its index in the group.
    ScaleOfPlace,
    /// The gradient of RMS normalization has the derivative of a mean.
    MeanOfRms,
    /// The gradient lacks the derivative of the mean.
    MeanLost,
    /// The variance is divided by one element less.
    Unbiased,
    /// diff_scale and diff_shift are sums over the first sample only.
    FirstSample,
    /// The exact sum is normalized instead of the stored one.
    OtherSum,
    /// diff_src lacks the gradient of the stored sum.
    SumGradientLost,
    /// `1 + scale` is added in bf16.
    PlusOneInBf16,
    /// The normalized value is not rounded before the scale.
    RoundFirstIgnored,
    /// The gradient of the gate uses the derivative of the sigmoid instead of SiLU's.
    SigmoidForSilu,
    /// The gate of the input multiplies the output.
    GateAtTheOtherEnd,
    /// The mean square of a partial norm is divided by all elements.
    PartialOverAll,
    /// The gradient of a partial norm is that of the whole one.
    PartialIgnored,
    /// All dynamic scales of a channel are that of its first positions.
    FirstScale,
    /// Dynamic scales are twice the right ones, and elements half.
    DoubledScale,
}

#[derive(Clone)]
struct Created {
    fault: Fault,
    request: Request,
}

impl Created {
    /// The requested problem.
    fn problem(&self) -> GnormProblem {
        let Request { direction, dims, groups, diff_src, dst, epsilon, flags, steps, .. } =
            &self.request;
        let steps = Steps {
            residual: steps.residual.as_ref().map(|step| Residual {
                data_type: step.residual.data_type,
                sum: step.sum.as_ref().map(|sum| sum.data_type),
                exact: step.exact,
            }),
            gate: (steps.gate.as_ref())
                .map(|(gate, function)| Gate { data_type: gate.data_type, function: *function }),
            partial: match steps.partial {
                0 => Partial::Whole,
                count => Partial::Elements(count),
            },
            ..Steps::default()
        };
        GnormProblem {
            steps,
            direction: *direction,
            dims: dims.clone(),
            groups: *groups,
            src_dt: diff_src.data_type,
            dst_dt: dst.data_type,
            epsilon: *epsilon,
            flags: *flags,
            attributes: self.request.attributes.clone(),
            ..GnormProblem::default()
        }
    }

    /// The results that the library computes.
    fn results(&self, data: &Data) -> Vec<(i32, Vec<f64>)> {
        let mut data = data.clone();
        let right = self.problem();
        let sizes = right.sizes();
        let mut wrong = right.clone();
        let channels_of_group = sizes.channels / sizes.groups;
        match self.fault {
            Fault::OneGroup if right.direction.is_forward() => wrong.groups = 1,
            Fault::ScaleOfPlace => data.change(NORM_ARG_SCALE, |scale| {
                let given = scale.clone();
                for (channel, scale) in scale.iter_mut().enumerate() {
                    *scale = given[channel % channels_of_group];
                }
            }),
            Fault::OtherSum => {
                wrong.steps.residual.iter_mut().for_each(|step| step.exact = !step.exact);
            }
            Fault::SumGradientLost => {
                data.change(NORM_ARG_DIFF_RESIDUAL_DST, |values| values.fill(0.0));
            }
            Fault::PlusOneInBf16 => data.change(NORM_ARG_SCALE, |scale| {
                scale
                    .iter_mut()
                    .for_each(|scale| *scale = DataType::Bf16.round(1.0 + *scale) - 1.0);
            }),
            Fault::PartialIgnored if !right.direction.is_forward() => {
                wrong.steps.partial = Partial::Whole;
            }
            Fault::RoundFirstIgnored => wrong.flags.round_first = false,
            Fault::GateAtTheOtherEnd => {
                let Flags { gate_input, gate_output, .. } = right.flags;
                (wrong.flags.gate_input, wrong.flags.gate_output) = (gate_output, gate_input);
            }
            _ => {}
        }
        let plain = wrong.expected(&data);
        let mut results: Vec<(i32, Vec<f64>)> = wrong
            .with_attributes(&data, &plain)
            .into_iter()
            .map(|Expected { id, values, .. }| (id, values.to_vec()))
            .collect();
        for (id, values) in &mut results {
            let statistics = matches!(*id, NORM_ARG_MEAN | NORM_ARG_VARIANCE);
            match (self.fault, *id) {
                (Fault::OneGroup, _) if statistics && wrong.groups == 1 => {
                    *values = values.iter().flat_map(|v| vec![*v; sizes.groups]).collect();
                }
                (Fault::Unbiased, NORM_ARG_VARIANCE) => {
                    let count = sizes.elements() as f64;
                    values.iter_mut().for_each(|v| *v *= count / (count - 1.0));
                }
                (Fault::PartialOverAll, NORM_ARG_VARIANCE) => {
                    let share = right.shape().steps.partial as f64 / sizes.elements() as f64;
                    values.iter_mut().for_each(|v| *v *= share);
                }
                (Fault::SigmoidForSilu, NORM_ARG_DIFF_GATE) => {
                    let silu = GateFunction::Swish { alpha: 1.0 };
                    for (value, gate) in values.iter_mut().zip(data.get(NORM_ARG_GATE)) {
                        let sigmoid = GateFunction::Logistic.derivative(*gate).value;
                        *value *= sigmoid / silu.derivative(*gate).value;
                    }
                }
                (Fault::FirstScale, SCALES) => {
                    let of_channel = sizes.positions / right.shape().steps.group;
                    values.chunks_mut(of_channel).for_each(|scales| scales.fill(scales[0]));
                }
                (Fault::DoubledScale, SCALES) => values.iter_mut().for_each(|v| *v *= 2.0),
                (Fault::DoubledScale, NORM_ARG_DST) => values.iter_mut().for_each(|v| *v /= 2.0),
                (Fault::MeanOfRms, NORM_ARG_DIFF_SRC) => add_mean(&right, &data, values, -1.0),
                (Fault::MeanLost, NORM_ARG_DIFF_SRC) => add_mean(&right, &data, values, 1.0),
                (Fault::FirstSample, NORM_ARG_DIFF_SCALE | NORM_ARG_DIFF_SHIFT) => {
                    let mut first = data.clone();
                    let sample = sizes.channels * sizes.positions;
                    first.change(NORM_ARG_DIFF_DST, |values| values[sample..].fill(0.0));
                    let expected = right.expected(&first);
                    let own = expected.iter().find(|expected| expected.id == *id);
                    *values = own.expect("the output").values.to_vec();
                }
                _ => {}
            }
        }
        results
    }
}

/// Adds `sign*r*sum(d)/M` to each group's gradient.
fn add_mean(problem: &GnormProblem, data: &Data, diff_src: &mut [f64], sign: f64) {
    let sizes = problem.sizes();
    let (diff_dst, scale) = (data.get(NORM_ARG_DIFF_DST), data.get(NORM_ARG_SCALE));
    for (group, values) in diff_src.chunks_mut(sizes.elements()).enumerate() {
        let first = group * sizes.elements();
        let d = |i: usize| {
            let channel = (first + i) / sizes.positions % sizes.channels;
            scale.get(channel).unwrap_or(&1.0) * diff_dst[first + i]
        };
        let mean = (0..values.len()).map(d).sum::<f64>() / values.len() as f64;
        let variance = data.get(NORM_ARG_VARIANCE)[group] + f64::from(problem.epsilon);
        values.iter_mut().for_each(|value| *value += sign * mean / variance.sqrt());
    }
}

impl Faulty for Created {
    fn layout(&self, argument: i32) -> Option<Layout> {
        let Request { direction, dims, groups, src, diff_src, dst, flags, steps, .. } =
            &self.request;
        let (residual, gate) = (steps.residual.as_ref(), steps.gate.as_ref());
        let (forward, full) = (direction.is_forward(), *direction == Direction::Backward);
        let only_if = |used: bool, dims: &[usize]| used.then(|| Layout::dense(dims, DataType::F32));
        let (stat, channels) = ([dims[0], *groups], &dims[1..2]);
        let data_type = match argument {
            NORM_ARG_SRC => src.data_type,
            NORM_ARG_DST if forward => dst.data_type,
            NORM_ARG_DIFF_SRC if !forward => diff_src.data_type,
            NORM_ARG_RESIDUAL if forward => residual?.residual.data_type,
            NORM_ARG_RESIDUAL_DST if forward => residual?.sum.as_ref()?.data_type,
            NORM_ARG_DIFF_RESIDUAL_DST if !forward => residual?.sum.as_ref()?.data_type,
            NORM_ARG_GATE => gate?.0.data_type,
            NORM_ARG_DIFF_GATE if !forward => gate?.0.data_type,
            NORM_ARG_DIFF_DST if !forward => dst.data_type,
            NORM_ARG_MEAN => return only_if(!flags.rms_norm, &stat),
            NORM_ARG_VARIANCE => return only_if(true, &stat),
            NORM_ARG_SCALE => return only_if(flags.scale, channels),
            NORM_ARG_SHIFT => {
                return only_if(flags.shift && (forward || flags.gate_output), channels);
            }
            NORM_ARG_DIFF_SCALE => return only_if(flags.scale && full, channels),
            NORM_ARG_DIFF_SHIFT => return only_if(flags.shift && full, channels),
            SCALES => {
                let scale = self.request.attributes.scale(NORM_ARG_DST)?;
                let mut dims = dims.clone();
                *dims.last_mut()? /= self.problem().shape().steps.group;
                return Some(Layout::dense(&dims, scale.data_type));
            }
            _ => return None,
        };
        Some(match &src.wanted {
            Wanted::Ordered(order) => Layout::ordered(dims, order, 0, data_type),
            _ => Layout::dense(dims, data_type),
        })
    }

    fn outputs(&self, data: Data) -> Vec<(i32, Vec<f64>)> {
        self.results(&data)
    }
}

/// Runs a command with the fault. Returns the exit status and the result lines.
fn run(fault: Fault, command: &str) -> (u8, Vec<String>) {
    let create = |request: &dyn Any| {
        let request: &Request = request.downcast_ref().expect("a request of the driver");
        Created { fault, request: request.clone() }
    };
    sham::run(
        vec![gnorm::ROW.driver()],
        create,
        &format!("{command} --tag=abx,axb g2mb2ic6iw9 g3mb2ic9ih2iw3"),
    )
}

const FORWARD: &str = "--dir=FWD_D --flags=C,CHM,CH";
const BACKWARD: &str = "--dir=BWD_DW --flags=CHM,CH";
const DYNAMIC: &str = "--dt=f32:s8,bf16:f8_e4m3 --dir=FWD_D --flags=CH,CM \
                       --attr-scales=dst:dynamic_fp:f32:1x3,dst:dynamic_fp:f8_e4m3:1x3";
const STEPS: [&str; 7] = [
    DYNAMIC,
    "--dt=f32,bf16 --dir=FWD_D,BWD_DW --residual=f32,bf16,f32:bf16:exact --flags=CH,CM",
    "--dt=f32,bf16 --dir=FWD_D,BWD_DW --gate=f32,bf16:logistic --flags=CHO,CHI,CMO,MI",
    "--dt=f32,bf16 --dir=FWD_D,BWD_DW --flags=CP,CMPH,CB,CHMB",
    "--dt=bf16 --dir=FWD_D,BWD_DW --residual=bf16:f32 --gate=f32 --flags=CHMPBO,CHMPBI",
    "--dt=f32,bf16 --dir=FWD_D,BWD_DW --partial=50% --flags=M,CHM",
    "--check=grad --dir=BWD_DW --partial=50% --flags=M,CHM",
];

#[test]
fn without_a_fault_everything_passes() {
    let gradients = format!("--check=grad {BACKWARD}");
    for command in [FORWARD, BACKWARD, &gradients].into_iter().chain(STEPS) {
        let (status, results) = run(Fault::None, command);
        for line in &results {
            assert!(line.contains(":PASSED "), "{line}");
        }
        assert_eq!(status, harness::FINE, "{command}");
    }
}

#[test]
fn faults_fail() {
    const RESIDUAL: &str = "--dt=bf16 --residual=bf16";
    for (fault, command) in [
        (Fault::OtherSum, format!("{RESIDUAL} --dir=FWD_D --flags=CH,CHM")),
        (Fault::SumGradientLost, format!("{RESIDUAL} --dir=BWD_D,BWD_DW --flags=CH,M")),
        (Fault::SumGradientLost, "--check=grad --residual=f32 --dir=BWD_D --flags=CH".to_owned()),
        (Fault::PlusOneInBf16, "--dir=FWD_D,BWD_D --flags=CP,CMP".to_owned()),
        (Fault::RoundFirstIgnored, "--dt=bf16:f32 --dir=FWD_D --flags=CB,CHMB".to_owned()),
        (Fault::SigmoidForSilu, "--gate=f32 --dir=BWD_DW --flags=CHO,CMI".to_owned()),
        (Fault::SigmoidForSilu, "--check=grad --gate=f32 --dir=BWD_D --flags=CHO,MI".to_owned()),
        (Fault::GateAtTheOtherEnd, "--gate=f32 --dir=FWD_D,BWD_DW --flags=CHO,CMI".to_owned()),
        (Fault::PartialOverAll, "--dir=FWD_D --partial=50% --flags=M,CHM".to_owned()),
        (Fault::PartialIgnored, "--dir=BWD_DW --partial=50% --flags=M,CHM".to_owned()),
        (Fault::PartialIgnored, "--check=grad --dir=BWD_D --partial=50% --flags=M".to_owned()),
        (Fault::FirstScale, DYNAMIC.to_owned()),
        (Fault::DoubledScale, DYNAMIC.to_owned()),
        (Fault::OneGroup, FORWARD.to_owned()),
        (Fault::ScaleOfPlace, FORWARD.to_owned()),
        (Fault::ScaleOfPlace, BACKWARD.to_owned()),
        (Fault::Unbiased, FORWARD.to_owned()),
        (Fault::FirstSample, BACKWARD.to_owned()),
        (Fault::FirstSample, format!("--check=grad {BACKWARD}")),
        (Fault::MeanOfRms, "--dir=BWD_D,BWD_DW --flags=M,CM".to_owned()),
        (Fault::MeanOfRms, "--check=grad --dir=BWD_D,BWD_DW --flags=M,CM".to_owned()),
        (Fault::MeanLost, "--dir=BWD_D,BWD_DW --flags=,CH".to_owned()),
        (Fault::MeanLost, "--check=grad --dir=BWD_D,BWD_DW --flags=,CH".to_owned()),
    ] {
        let (status, results) = run(fault, &command);
        for line in &results {
            // A wrong result, not an error of the sham.
            let compared = line.contains(":FAILED (") && line.contains(" wrong of ");
            assert!(compared, "{fault:?}: {line}");
        }
        assert_eq!(status, harness::FAILED, "{fault:?}");
    }
}
