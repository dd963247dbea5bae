//! Known mistakes of a softmax, made by a library under test. The harness must detect each, and those of backward in
//! the gradient check along every axis.

mod sham;

use benchdnn::direction::Direction;
use benchdnn::drivers::softmax::{self, Algorithm, Request, SoftmaxProblem};
use benchdnn::harness;
use benchdnn::library::Wanted;
use benchdnn::problem::{Data, Expected, Problem};
use benchdnn::tensor::Layout;
use norm_sys::{
    NORM_ARG_DIFF_DST, NORM_ARG_DIFF_SRC, NORM_ARG_DST, NORM_ARG_SOFTMAX_STATS, NORM_ARG_SRC,
};
use sham::Faulty;
use std::any::Any;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// The gradient lacks the sum over the row.
    SumLost,
    /// The gradient is that of the other algorithm.
    OtherAlgorithm,
    /// Backward uses the last dimension as the axis.
    LastAxis,
    /// Forward adds in bf16.
    ShortSum,
    /// The stored logarithms lack the maximum of the row.
    StatsWithoutMaximum,
    /// Their part of the sum has base 2.
    StatsOfBase2,
    /// The sum whose logarithm is stored was rounded to bf16.
    ShortStats,
    /// f64 problems are computed in f32.
    Single,
}

/// A number in bf16, rounded toward zero.
fn short(number: f64) -> f64 {
    f64::from(f32::from_bits((number as f32).to_bits() & 0xffff_0000))
}

#[derive(Clone)]
struct Created {
    fault: Fault,
    request: Request,
}

impl Created {
    /// The problem that the library computes.
    fn problem(&self) -> SoftmaxProblem {
        let Request { direction, dims, .. } = &self.request;
        let (mut algorithm, mut axis) = (self.request.algorithm, self.request.axis);
        match self.fault {
            _ if direction.is_forward() => {}
            Fault::LastAxis => axis = dims.len() - 1,
            Fault::OtherAlgorithm if algorithm == Algorithm::Softmax => {
                algorithm = Algorithm::Logsoftmax;
            }
            Fault::OtherAlgorithm => algorithm = Algorithm::Softmax,
            _ => {}
        }
        let (src_dt, dst_dt) = (self.request.src.data_type, self.request.dst.data_type);
        let (direction, dims) = (*direction, dims.clone());
        SoftmaxProblem {
            dims,
            direction,
            algorithm,
            axis,
            src_dt,
            dst_dt,
            ..SoftmaxProblem::default()
        }
    }
}

impl Faulty for Created {
    fn layout(&self, argument: i32) -> Option<Layout> {
        let Request { dims, axis, src, dst, stats, .. } = &self.request;
        let data_type = match argument {
            NORM_ARG_SRC | NORM_ARG_DIFF_SRC => src.data_type,
            NORM_ARG_DST | NORM_ARG_DIFF_DST => dst.data_type,
            NORM_ARG_SOFTMAX_STATS if stats.wanted != Wanted::Null => {
                let mut dims = dims.clone();
                dims[*axis] = 1;
                return Some(Layout::dense(&dims, stats.data_type));
            }
            _ => return None,
        };
        Some(match &src.wanted {
            Wanted::Ordered(order) => Layout::ordered(dims, order, 0, data_type),
            _ => Layout::dense(dims, data_type),
        })
    }

    fn outputs(&self, data: Data) -> Vec<(i32, Vec<f64>)> {
        let problem = self.problem();
        if self.fault == Fault::Single {
            let single = |value: &f64| f64::from(*value as f32);
            let values = |it: Expected| (it.id, it.values.iter().map(single).collect());
            return problem.expected(&data).into_iter().map(values).collect();
        }
        if problem.direction.is_forward() {
            return self.forward(&problem, &data);
        }
        let lost = self.fault == Fault::SumLost && problem.direction == Direction::BackwardData;
        let values = |expected: Expected| {
            if !lost {
                return (expected.id, expected.values.to_vec());
            }
            let (dst, diff_dst) = (data.get(NORM_ARG_DST), data.get(NORM_ARG_DIFF_DST));
            let factor = |y: f64| if problem.algorithm == Algorithm::Softmax { y } else { 1.0 };
            (expected.id, dst.iter().zip(diff_dst).map(|(y, g)| factor(*y) * g).collect())
        };
        problem.expected(&data).into_iter().map(values).collect()
    }
}

impl Created {
    fn forward(&self, problem: &SoftmaxProblem, data: &Data) -> Vec<(i32, Vec<f64>)> {
        let src = data.get(NORM_ARG_SRC);
        let cols = problem.dims[problem.axis];
        let inner: usize = problem.dims[problem.axis + 1..].iter().product();
        let (mut dst, mut stats) = (vec![0.0; src.len()], Vec::new());
        for row in 0..src.len() / cols {
            let start = row / inner * cols * inner + row % inner;
            let places = || (0..cols).map(move |c| start + c * inner);
            let max = places().map(|at| src[at]).fold(f64::NEG_INFINITY, f64::max);
            let (mut sum, mut short_sum) = (0.0, 0.0);
            for at in places() {
                sum += (src[at] - max).exp();
                short_sum = short(short_sum + (src[at] - max).exp());
            }
            let of_dst = if self.fault == Fault::ShortSum { short_sum } else { sum };
            for at in places() {
                dst[at] = match problem.algorithm {
                    Algorithm::Logsoftmax => src[at] - max - of_dst.ln(),
                    _ => (src[at] - max).exp() / of_dst,
                };
            }
            stats.push(match self.fault {
                Fault::StatsWithoutMaximum => sum.ln(),
                Fault::StatsOfBase2 => max + sum.log2(),
                Fault::ShortStats => max + short(sum).ln(),
                _ => max + sum.ln(),
            });
        }
        vec![(NORM_ARG_DST, dst), (NORM_ARG_SOFTMAX_STATS, stats)]
    }
}

#[test]
fn f32_in_the_place_of_f64_fails() {
    let forward = "--dir=FWD_D --sdt=f64,f32 --ddt=f64 --axis=0,1 30x33";
    let command = format!("{ALL} {forward} --dir=BWD_D --sdt=f64 --ddt=f64,f32 30x33");
    for (fault, word) in [(Fault::None, ":PASSED "), (Fault::Single, ":FAILED ")] {
        let (_, results) = run(fault, &command);
        assert!(!results.is_empty());
        for line in &results {
            assert!(line.contains(word), "{fault:?}: {line}");
        }
    }
}

/// Runs a command with the fault. Returns the exit status and the result lines.
fn run(fault: Fault, command: &str) -> (u8, Vec<String>) {
    let create = |request: &dyn Any| {
        let request: &Request = request.downcast_ref().expect("a request of the driver");
        Created { fault, request: request.clone() }
    };
    sham::run(vec![softmax::ROW.driver()], create, command)
}

fn run_gradients(fault: Fault, command: &str) -> (u8, Vec<String>) {
    let all = "--check=grad --dir=BWD_D --sdt=f32,bf16,f16 --ddt=f32,bf16";
    run(fault, &format!("{all} {command}"))
}

const ALL: &str = "--alg=SOFTMAX,LOGSOFTMAX";

#[test]
fn without_a_fault_every_axis_passes() {
    let (status, results) = run_gradients(
        Fault::None,
        &format!("{ALL} --axis=0,1 15x3 30x17 --axis=0,1,2 --stag=abx,axb 4x9x5"),
    );
    for line in &results {
        assert!(line.contains(":PASSED "), "{line}");
    }
    assert_eq!(status, harness::FINE);
}

#[test]
fn wrong_gradients_fail_along_every_axis() {
    for (fault, command) in [
        (Fault::SumLost, format!("{ALL} --axis=0,1 15x4 30x17 --axis=0,1,2 --stag=abx,axb 4x9x5")),
        (Fault::OtherAlgorithm, format!("{ALL} --axis=0,1 15x4 30x17 --axis=0,1,2 4x9x5")),
        (Fault::LastAxis, format!("{ALL} --axis=0 15x4 30x17 --axis=0,1 4x9x5")),
    ] {
        let (status, results) = run_gradients(fault, &command);
        for line in &results {
            assert!(
                line.contains(":FAILED ") && line.contains("gradient has "),
                "{fault:?}: {line}"
            );
        }
        assert_eq!(status, harness::FAILED, "{fault:?}");
    }
}

#[test]
fn wrong_sums_fail() {
    let shapes = "--sdt=f32,bf16 --axis=0,1 30x33 --axis=0,1,2 4x9x5";
    for (fault, command) in [
        (Fault::None, format!("{ALL} {shapes}")),
        (Fault::None, format!("{ALL} --stats=abx {shapes}")),
        (Fault::ShortSum, format!("{ALL} --sdt=f32 --axis=0,1 30x33 --axis=1 4x40x5")),
        (Fault::ShortSum, "--sdt=bf16 --ddt=bf16 --axis=1 30x300".to_owned()),
        (Fault::StatsWithoutMaximum, format!("{ALL} --stats=abx {shapes}")),
        (Fault::StatsOfBase2, format!("{ALL} --stats=abx {shapes}")),
        (Fault::ShortStats, format!("{ALL} --stats=abx {shapes}")),
    ] {
        let (status, results) = run(fault, &format!("--dir=FWD_D {command}"));
        let right = fault == Fault::None;
        let word = if right { ":PASSED " } else { ":FAILED " };
        for line in &results {
            assert!(line.contains(word), "{fault:?}: {line}");
        }
        assert_eq!(status, if right { harness::FINE } else { harness::FAILED }, "{fault:?}");
    }
}
