//! Known mistakes of a softmax, made by a library under test: the harness must detect each, in the
//! gradient check along every axis.

mod sham;

use benchdnn::direction::Direction;
use benchdnn::drivers::softmax::{self, Algorithm, Request, SoftmaxProblem};
use benchdnn::harness;
use benchdnn::library::Wanted;
use benchdnn::problem::{Data, Expected, Problem};
use benchdnn::tensor::Layout;
use norm_sys::{NORM_ARG_DIFF_DST, NORM_ARG_DIFF_SRC, NORM_ARG_DST, NORM_ARG_SRC};
use sham::Faulty;
use std::any::Any;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// The gradient lacks the sum over the row.
    SumLost,
    /// The gradient is that of the other algorithm.
    OtherAlgorithm,
    /// Backward takes the last dimension for the axis.
    LastAxis,
}

#[derive(Clone)]
struct Created {
    fault: Fault,
    request: Request,
}

impl Created {
    /// What the library computes.
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
            Fault::None | Fault::SumLost => {}
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
        let Request { dims, src, dst, .. } = &self.request;
        let data_type = match argument {
            NORM_ARG_SRC | NORM_ARG_DIFF_SRC => src.data_type,
            NORM_ARG_DST | NORM_ARG_DIFF_DST => dst.data_type,
            _ => return None,
        };
        Some(match &src.wanted {
            Wanted::Ordered(order) => Layout::ordered(dims, order, 0, data_type),
            _ => Layout::dense(dims, data_type),
        })
    }

    fn outputs(&self, data: Data) -> Vec<(i32, Vec<f64>)> {
        let problem = self.problem();
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

/// Runs a command with the fault. Returns the exit status and the result lines.
fn run(fault: Fault, command: &str) -> (u8, Vec<String>) {
    let create = |request: &dyn Any| {
        let request: &Request = request.downcast_ref().expect("a request of the driver");
        Created { fault, request: request.clone() }
    };
    sham::run(
        vec![softmax::ROW.driver()],
        create,
        &format!("--check=grad --dir=BWD_D --sdt=f32,bf16,f16 --ddt=f32,bf16 {command}"),
    )
}

const ALL: &str = "--alg=SOFTMAX,LOGSOFTMAX";

#[test]
fn without_a_fault_every_axis_passes() {
    let (status, results) =
        run(Fault::None, &format!("{ALL} --axis=0,1 15x3 30x17 --axis=0,1,2 --stag=abx,axb 4x9x5"));
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
        let (status, results) = run(fault, &command);
        for line in &results {
            assert!(
                line.contains(":FAILED ") && line.contains("gradient has "),
                "{fault:?}: {line}"
            );
        }
        assert_eq!(status, harness::FAILED, "{fault:?}");
    }
}
