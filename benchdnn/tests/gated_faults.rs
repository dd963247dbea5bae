//! Known mistakes of a gated activation, made by a library under test. The harness must detect each.

mod sham;

use benchdnn::direction::Direction;
use benchdnn::drivers::gated::{self, GatedProblem, Packing, Request};
use benchdnn::harness;
use benchdnn::problem::{Data, Expected, Problem};
use benchdnn::tensor::Layout;
use sham::Faulty;
use std::any::Any;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// Gate and up are swapped.
    Swapped,
    /// Beyond the limit, the gradient is that inside it.
    LimitsGradient,
}

#[derive(Clone)]
struct Created {
    fault: Fault,
    request: Request,
}

impl Created {
    /// The problem that the library computes.
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

impl Faulty for Created {
    fn layout(&self, argument: i32) -> Option<Layout> {
        let spec = self.problem().own_tensors().into_iter().find(|spec| spec.id == argument)?;
        Some(Layout::dense(&spec.dims, spec.data_type))
    }

    fn outputs(&self, data: Data) -> Vec<(i32, Vec<f64>)> {
        let expected = self.problem().expected(&data);
        expected.into_iter().map(|Expected { id, values, .. }| (id, values.to_vec())).collect()
    }
}

/// Runs a command with the fault. Returns the exit status and the result lines.
fn run(fault: Fault, command: &str) -> (u8, Vec<String>) {
    let create = |request: &dyn Any| {
        let request: &Request = request.downcast_ref().expect("a request of the driver");
        Created { fault, request: request.clone() }
    };
    sham::run(vec![gated::ROW.driver()], create, command)
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
