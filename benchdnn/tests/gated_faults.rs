//! Known mistakes of a gated activation, made by a library under test: the harness must detect each.

use benchdnn::direction::Direction;
use benchdnn::drivers::gated::{self, GatedProblem, Packing, Request};
use benchdnn::executor::{Argument, Bound, Control, CpuIsa, Prepared, Refusal};
use benchdnn::harness::{self, Streams};
use benchdnn::library::{self, Executor};
use benchdnn::problem::{Data, Expected, Problem};
use benchdnn::tensor::Layout;
use std::any::Any;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// Gate and up are taken for each other.
    Swapped,
    /// Beyond the limit the gradient is that of the inside.
    LimitsGradient,
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
    fn problem(&self) -> GatedProblem {
        let Request { direction, function, packing, numbers, dims, rewrites, .. } =
            self.request.clone();
        let [alpha, mut limit, shift] = numbers;
        let packing = match (self.fault, packing) {
            (Fault::Swapped, Packing::GateFirst) => Packing::UpFirst,
            (Fault::Swapped, Packing::UpFirst) => Packing::GateFirst,
            _ => packing,
        };
        if self.fault == Fault::LimitsGradient && direction == Direction::BackwardData {
            limit = f32::INFINITY;
        }
        let (src_dt, dst_dt) = (self.request.src.data_type, self.request.dst.data_type);
        GatedProblem {
            dims,
            direction,
            function,
            packing,
            src_dt,
            dst_dt,
            alpha,
            limit,
            shift,
            rewrites,
            ..GatedProblem::default()
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
        let spec = self.problem().own_tensors().into_iter().find(|spec| spec.id == argument)?;
        Some(Layout::dense(&spec.dims, spec.data_type))
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
            let argument = self.arguments.iter().find(|argument| argument.id == id);
            let Argument { layout, buffer, .. } = argument.expect("an output");
            buffer.put(layout, &layout.data_type.encode(&values));
        }
        Ok(())
    }
}

/// Runs the problems with the fault. Returns the exit status and the result lines.
fn run(fault: Fault, command: &str) -> (u8, Vec<String>) {
    let words = "--summary=no-failures".split_whitespace();
    let arguments: Vec<String> =
        words.chain(command.split_whitespace()).map(str::to_owned).collect();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let streams = Streams { out: &mut out, err: &mut err, progress: None };
    let status = harness::run(&arguments, vec![gated::ROW.driver()], &Sham(fault), streams)
        .expect("a vector takes everything");
    assert_eq!(String::from_utf8_lossy(&err), "", "{command}");
    let text = String::from_utf8(out).expect("UTF-8");
    let results: Vec<_> =
        text.lines().filter(|line| line.contains("__REPRO")).map(str::to_owned).collect();
    assert!(!results.is_empty(), "{command}");
    (status, results)
}

const ALL: &str =
    "--alg=SWISH,GELU_ERF,GELU_TANH,RELU,LOGISTIC --packing=gate_first,up_first --alpha=0.5";

#[test]
fn without_a_fault_everything_passes() {
    for check in ["--dir=FWD_D,BWD_D", "--check=grad --dir=BWD_D"] {
        let (status, results) = run(Fault::None, &format!("{check} {ALL} --limit=none,7 5x64"));
        for line in &results {
            assert!(line.contains(":PASSED "), "{line}");
        }
        assert_eq!(status, harness::FINE);
    }
}

#[test]
fn mistakes_fail() {
    for (fault, command) in [
        (Fault::Swapped, format!("--dir=FWD_D,BWD_D {ALL} 5x64")),
        (Fault::LimitsGradient, format!("--dir=BWD_D {ALL} --limit=2 5x64")),
        (Fault::LimitsGradient, format!("--check=grad --dir=BWD_D {ALL} --limit=2 5x64")),
    ] {
        let (status, results) = run(fault, &command);
        for line in &results {
            assert!(line.contains(":FAILED "), "{fault:?}: {line}");
        }
        assert_eq!(status, harness::FAILED, "{fault:?}");
    }
}
