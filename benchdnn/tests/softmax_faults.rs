//! Known mistakes of a softmax, made by a library under test: the harness must detect each, in the
//! gradient check along every axis.

use benchdnn::direction::Direction;
use benchdnn::drivers::softmax::{self, Algorithm, Request, SoftmaxProblem};
use benchdnn::executor::{Argument, Bound, Control, CpuIsa, Prepared, Refusal};
use benchdnn::harness::{self, Streams};
use benchdnn::library::{self, Executor, Wanted};
use benchdnn::problem::{Data, Expected, Problem};
use benchdnn::tensor::Layout;
use norm_sys::{NORM_ARG_DIFF_DST, NORM_ARG_DIFF_SRC, NORM_ARG_DST, NORM_ARG_SRC};
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

struct Sham(Fault);

impl Control for Sham {
    fn set_cpu_isa(&self, isa: CpuIsa) -> Result<bool, Refusal> {
        Ok(isa == CpuIsa::Default)
    }

    fn set_threads(&self, _: u64) -> Result<(), Refusal> {
        Ok(())
    }

    fn threads(&self) -> u64 {
        1
    }

    fn last_threads(&self) -> u64 {
        1
    }
}

impl Executor for Sham {
    fn prepare(&self, request: &dyn library::Request) -> Result<Box<dyn Prepared>, Refusal> {
        let request: &dyn Any = request;
        let request: &Request = request.downcast_ref().expect("a request of the driver");
        Ok(Box::new(Created { fault: self.0, request: request.clone() }))
    }
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

impl Prepared for Created {
    fn implementation(&self) -> String {
        "sham".to_owned()
    }

    fn next_implementation(&mut self) -> Result<bool, Refusal> {
        Ok(false)
    }

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

    fn bind<'a>(&self, arguments: &[Argument<'a>]) -> Result<Box<dyn Bound + 'a>, Refusal> {
        Ok(Box::new(Execution { created: self.clone(), arguments: arguments.to_vec() }))
    }
}

struct Execution<'a> {
    created: Created,
    arguments: Vec<Argument<'a>>,
}

impl Bound for Execution<'_> {
    fn execute(&self) -> Result<(), Refusal> {
        let problem = self.created.problem();
        let mut data = Data::default();
        for Argument { id, layout, buffer } in &self.arguments {
            data.set(*id, layout.data_type.decode(&buffer.elements(layout)));
        }
        for Expected { id, values, .. } in problem.expected(&data) {
            let mut values = values.to_vec();
            if self.created.fault == Fault::SumLost && problem.direction == Direction::BackwardData
            {
                let (dst, diff_dst) = (data.get(NORM_ARG_DST), data.get(NORM_ARG_DIFF_DST));
                let factor = |y: f64| if problem.algorithm == Algorithm::Softmax { y } else { 1.0 };
                values = dst.iter().zip(diff_dst).map(|(y, g)| factor(*y) * g).collect();
            }
            let argument = self.arguments.iter().find(|argument| argument.id == id);
            let Argument { layout, buffer, .. } = argument.expect("an output");
            buffer.put(layout, &layout.data_type.encode(&values));
        }
        Ok(())
    }
}

/// Runs the gradient check with the fault. Returns the exit status and the result lines.
fn run(fault: Fault, command: &str) -> (u8, Vec<String>) {
    let words = "--summary=no-failures --check=grad --dir=BWD_D --sdt=f32,bf16,f16 --ddt=f32,bf16"
        .split_whitespace();
    let arguments: Vec<String> =
        words.chain(command.split_whitespace()).map(str::to_owned).collect();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let streams = Streams { out: &mut out, err: &mut err, progress: None };
    let status = harness::run(&arguments, vec![softmax::ROW.driver()], &Sham(fault), streams)
        .expect("a vector takes everything");
    assert_eq!(String::from_utf8_lossy(&err), "", "{command}");
    let text = String::from_utf8(out).expect("UTF-8");
    let results: Vec<_> =
        text.lines().filter(|line| line.contains("__REPRO")).map(str::to_owned).collect();
    assert!(!results.is_empty(), "{command}");
    (status, results)
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
