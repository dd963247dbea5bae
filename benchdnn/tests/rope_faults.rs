//! Known mistakes of a rope, made by a library under test. The harness must detect each, against the oracle.

mod sham;

use benchdnn::data_type::DataType;
use benchdnn::drivers::rope::{self, Request};
use benchdnn::harness;
use benchdnn::oracle::rope::{Norm, Pairing, rotated, through};
use benchdnn::problem::Data;
use benchdnn::tensor::Layout;
use norm_sys::{
    NORM_ARG_DIFF_DST, NORM_ARG_DIFF_SCALE, NORM_ARG_DIFF_SRC, NORM_ARG_DST, NORM_ARG_POSITIONS,
    NORM_ARG_ROPE_FREQUENCIES, NORM_ARG_SCALE, NORM_ARG_SRC,
};
use sham::Faulty;
use std::any::Any;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// Neighbours are used as halves, and halves as neighbours.
    OtherPairing,
    /// Backward rotates in the direction of forward.
    SameSign,
    /// Angles are products in f32.
    ShortAngles,
    /// Heads of a token have their own positions.
    PositionPerHead,
    /// The normalization's gradient lacks the term of the mean square.
    NoMeanSquare,
    /// The gradient of the scale includes the scale.
    ScaledDiffScale,
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
            NORM_ARG_SCALE | NORM_ARG_DIFF_SCALE => Layout::dense(&dims[2..], DataType::F32),
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
        match problem.flags.text().contains('M') && !forward {
            true => gradients(&data, &values, cols, fault),
            false => vec![(output, values)],
        }
    }
}

/// The gradients through the normalization, from gradients that are rotated back.
fn gradients(data: &Data, rotated: &[f64], cols: usize, fault: Fault) -> Vec<(i32, Vec<f64>)> {
    let scale = data.get(NORM_ARG_SCALE);
    let norm = Norm { epsilon: 1e-6, scale: Some(scale), plus_one: false };
    let (mut diff_src, mut diff_scale) = (Vec::new(), vec![0.0; cols]);
    for (src, d) in data.get(NORM_ARG_SRC).chunks(cols).zip(rotated.chunks(cols)) {
        let one = through(src, (d, &vec![0.0; cols]), &norm);
        let square = src.iter().map(|x| x * x).sum::<f64>() / cols as f64;
        let r = 1.0 / (square + norm.epsilon).sqrt();
        match fault {
            Fault::NoMeanSquare => diff_src.extend((0..cols).map(|c| r * scale[c] * d[c])),
            _ => diff_src.extend(one.diff_src),
        }
        for c in 0..cols {
            let factor = if fault == Fault::ScaledDiffScale { scale[c] } else { 1.0 };
            diff_scale[c] += one.diff_scale[c] * factor;
        }
    }
    vec![(NORM_ARG_DIFF_SRC, diff_src), (NORM_ARG_DIFF_SCALE, diff_scale)]
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
    for command in ["--dir=FWD_D,BWD_D", "--dir=BWD_DW --flags=MC"] {
        let command = format!("--pairing=INTERLEAVED,HALF {command} 6x3x16 9x2x34");
        let (status, results) = run(Fault::None, &command);
        for line in &results {
            assert!(line.contains(":PASSED "), "{line}");
        }
        assert_eq!(status, harness::FINE);
    }
}

#[test]
fn every_fault_fails() {
    for (fault, command) in [
        (Fault::OtherPairing, "--pairing=INTERLEAVED,HALF --dir=FWD_D,BWD_D 6x3x16 9x2x34"),
        (Fault::SameSign, "--pairing=INTERLEAVED,HALF --dir=BWD_D 6x3x16 9x2x34"),
        // The first position is 131071.
        (Fault::ShortAngles, "--pairing=INTERLEAVED,HALF --limit=131072 1x3x16 9x2x64"),
        (Fault::PositionPerHead, "--pairing=INTERLEAVED,HALF --dir=FWD_D,BWD_D 6x3x16 9x2x34"),
        (Fault::NoMeanSquare, "--pairing=INTERLEAVED,HALF --dir=BWD_DW --flags=MC 6x3x16 9x2x34"),
        (Fault::ScaledDiffScale, "--pairing=HALF --dir=BWD_DW --flags=MC 6x3x16 9x2x34"),
    ] {
        let (status, results) = run(fault, command);
        for line in &results {
            assert!(line.contains(":FAILED "), "{fault:?}: {line}");
        }
        assert_eq!(status, harness::FAILED, "{fault:?}");
    }
}
