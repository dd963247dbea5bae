//! Known mistakes of a rope, made by a library under test: the harness must detect each, against the oracle.

mod sham;

use benchdnn::data_type::DataType;
use benchdnn::drivers::rope::{self, Request};
use benchdnn::harness;
use benchdnn::oracle::rope::{Pairing, rotated};
use benchdnn::problem::Data;
use benchdnn::tensor::Layout;
use norm_sys::{
    NORM_ARG_DIFF_DST, NORM_ARG_DIFF_SRC, NORM_ARG_DST, NORM_ARG_POSITIONS,
    NORM_ARG_ROPE_FREQUENCIES, NORM_ARG_SRC,
};
use sham::Faulty;
use std::any::Any;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// Neighbours for halves, and halves for neighbours.
    OtherPairing,
    /// Backward turns the way of forward.
    SameSign,
    /// Angles are products in f32.
    ShortAngles,
    /// Heads of a token have positions of their own.
    PositionPerHead,
}

#[derive(Clone)]
struct Created {
    fault: Fault,
    request: Request,
}

impl Faulty for Created {
    fn layout(&self, argument: i32) -> Option<Layout> {
        let problem = &self.request.problem;
        let dims = &problem.dims;
        Some(match argument {
            NORM_ARG_SRC | NORM_ARG_DIFF_SRC => Layout::dense(dims, problem.src_dt),
            NORM_ARG_DST | NORM_ARG_DIFF_DST => Layout::dense(dims, problem.dst_dt),
            NORM_ARG_POSITIONS => Layout::dense(&[dims[0], 1], problem.position_dt),
            NORM_ARG_ROPE_FREQUENCIES => Layout::dense(&[dims[2] / 2], DataType::F64),
            _ => return None,
        })
    }

    fn outputs(&self, data: Data) -> Vec<(i32, Vec<f64>)> {
        let (problem, fault) = (&self.request.problem, self.fault);
        let forward = problem.direction.is_forward();
        let (input, output) = match forward {
            true => (NORM_ARG_SRC, NORM_ARG_DST),
            false => (NORM_ARG_DIFF_DST, NORM_ARG_DIFF_SRC),
        };
        let pairing = match (fault, problem.pairing) {
            (Fault::OtherPairing, Pairing::Interleaved) => Pairing::Half,
            (Fault::OtherPairing, _) => Pairing::Interleaved,
            (_, pairing) => pairing,
        };
        let sign = if forward || fault == Fault::SameSign { 1.0 } else { -1.0 };
        let positions = data.get(NORM_ARG_POSITIONS);
        let frequencies = data.get(NORM_ARG_ROPE_FREQUENCIES);
        let (heads, cols) = (problem.dims[1], problem.dims[2]);
        let turned = |(row, head): (usize, &[f64])| {
            let token = match fault {
                Fault::PositionPerHead => row % positions.len(),
                _ => row / heads,
            };
            let angle = |frequency: &f64| {
                let exact = positions[token] * frequency;
                let short = f64::from(positions[token] as f32 * *frequency as f32);
                let angle = if fault == Fault::ShortAngles { short } else { exact };
                (angle.cos(), angle.sin() * sign)
            };
            let angles: Vec<_> = frequencies.iter().map(angle).collect();
            rotated(head, &[], pairing, &angles).0
        };
        let src = data.get(input);
        let values: Vec<f64> = src.chunks(cols).enumerate().flat_map(turned).collect();
        vec![(output, values)]
    }
}

/// Runs a command with the fault. Returns the exit status and the result lines.
fn run(fault: Fault, command: &str) -> (u8, Vec<String>) {
    let create = |request: &dyn Any| {
        let request: &Request = request.downcast_ref().expect("a request of the driver");
        Created { fault, request: request.clone() }
    };
    sham::run(vec![rope::ROW.driver()], create, &format!("--sdt=f32,bf16 --ddt=f32,f16 {command}"))
}

#[test]
fn without_a_fault_every_problem_passes() {
    let (status, results) =
        run(Fault::None, "--pairing=INTERLEAVED,HALF --dir=FWD_D,BWD_D 6x3x16 9x2x34");
    for line in &results {
        assert!(line.contains(":PASSED "), "{line}");
    }
    assert_eq!(status, harness::FINE);
}

#[test]
fn every_fault_fails() {
    for (fault, command) in [
        (Fault::OtherPairing, "--pairing=INTERLEAVED,HALF --dir=FWD_D,BWD_D 6x3x16 9x2x34"),
        (Fault::SameSign, "--pairing=INTERLEAVED,HALF --dir=BWD_D 6x3x16 9x2x34"),
        // The first position is 131071.
        (Fault::ShortAngles, "--pairing=INTERLEAVED,HALF --limit=131072 1x3x16 9x2x64"),
        (Fault::PositionPerHead, "--pairing=INTERLEAVED,HALF --dir=FWD_D,BWD_D 6x3x16 9x2x34"),
    ] {
        let (status, results) = run(fault, command);
        for line in &results {
            assert!(line.contains(":FAILED "), "{fault:?}: {line}");
        }
        assert_eq!(status, harness::FAILED, "{fault:?}");
    }
}
