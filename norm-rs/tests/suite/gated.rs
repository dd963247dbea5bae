//! Gated activations against the formula in f64: every function and packing, the limits of GPT-OSS, both directions.

use norm_rs::gated::{Activation, Backward, BackwardArgs, Forward, ForwardArgs, Packing};
use norm_rs::primitive::Arg;
use norm_rs::{DataType, Engine, ErrorKind, Memory, MemoryDesc, Stream};

const ROWS: usize = 3;
const COLS: usize = 37;
const COUNT: usize = ROWS * COLS;

/// f and its slope.
fn value(activation: Activation, g: f64) -> (f64, f64) {
    let logistic = |x: f64| 1.0 / (1.0 + (-x).exp());
    match activation {
        Activation::Swish(alpha) => {
            let (a, s) = (f64::from(alpha), logistic(f64::from(alpha) * g));
            (g * s, s + a * g * s * (1.0 - s))
        }
        Activation::Relu(alpha) if g <= 0.0 => (f64::from(alpha) * g, f64::from(alpha)),
        Activation::Relu(_) => (g, 1.0),
        Activation::Logistic => (logistic(g), logistic(g) * (1.0 - logistic(g))),
        Activation::Linear(alpha) => (f64::from(alpha) * g, f64::from(alpha)),
        other => panic!("{other:?}"),
    }
}

/// gate, up and diff_dst.
fn data() -> [Vec<f32>; 3] {
    let of = |a: usize, b: usize| {
        (0..COUNT).map(|i| ((i * a % b) as f32 - b as f32 / 2.0) / 8.0).collect()
    };
    [of(37, 151), of(53, 149), of(29, 61)]
}

fn packed(packing: Packing, gate: &[f32], up: &[f32]) -> Vec<f32> {
    let row = |(gate, up): (&[f32], &[f32])| -> Vec<f32> {
        match packing {
            Packing::GateFirst => gate.iter().chain(up).copied().collect(),
            Packing::UpFirst => up.iter().chain(gate).copied().collect(),
            Packing::Interleaved => gate.iter().zip(up).flat_map(|(g, u)| [*g, *u]).collect(),
        }
    };
    gate.chunks(COLS).zip(up.chunks(COLS)).flat_map(row).collect()
}

fn close(actual: &[f32], expected: &[f32]) {
    for (a, e) in actual.iter().zip(expected) {
        assert!((a - e).abs() <= 2e-6 * (1.0 + e.abs()), "{a} instead of {e}");
    }
}

#[test]
fn every_packing_matches_the_formula() {
    let engine = Engine::cpu().unwrap();
    let stream = Stream::new(&engine).unwrap();
    let half = MemoryDesc::dense(&[ROWS, COLS], DataType::F32).unwrap();
    let both = MemoryDesc::dense(&[ROWS, 2 * COLS], DataType::F32).unwrap();
    let [gate, up, diff] = data();
    let new = |desc| Memory::new(&engine, desc).unwrap();
    let functions = [
        (Activation::Swish(1.0), f32::INFINITY, 0.0),
        (Activation::Swish(1.702), 7.0, 1.0),
        (Activation::Relu(0.25), f32::INFINITY, 0.0),
        (Activation::Logistic, f32::INFINITY, 0.0),
        (Activation::Linear(1.0), 3.0, 0.5),
    ];
    for (activation, limit, shift) in functions {
        let (mut dst, mut diff_gate, mut diff_up) = (Vec::new(), Vec::new(), Vec::new());
        for ((g, u), d) in gate.iter().zip(&up).zip(&diff) {
            let (f, slope) = value(activation, f64::from(g.min(limit)));
            let factor = f64::from(u.clamp(-limit, limit) + shift);
            let d = f64::from(*d);
            dst.push((f * factor) as f32);
            diff_gate.push(if *g > limit { 0.0 } else { (d * factor * slope) as f32 });
            diff_up.push(if u.abs() > limit { 0.0 } else { (d * f) as f32 });
        }
        for packing in [Packing::GateFirst, Packing::UpFirst, Packing::Interleaved] {
            let values = packed(packing, &gate, &up);
            let src = Memory::from_slice(&engine, &both, &values).unwrap();
            let (mut result, mut again, mut diff_src) = (new(&half), new(&half), new(&both));
            let forward = Forward::packed(&engine, activation, &both, packing, &half);
            let forward = forward.limit(limit).shift(shift).build().unwrap();
            forward.execute(&stream, ForwardArgs::new(&src, &mut result)).unwrap();
            close(result.as_slice::<f32>().unwrap(), &dst);
            let backward = Backward::packed(&engine, activation, &both, packing, &half);
            let backward = backward.limit(limit).shift(shift).dst(&half).build().unwrap();
            let diff_dst = Memory::from_slice(&engine, &half, &diff).unwrap();
            let args = BackwardArgs::new(&src, &diff_dst, &mut diff_src).dst(&mut again);
            backward.execute(&stream, args).unwrap();
            let want = packed(packing, &diff_gate, &diff_up);
            close(diff_src.as_slice::<f32>().unwrap(), &want);
            assert_eq!(again.as_slice::<f32>().unwrap(), result.as_slice::<f32>().unwrap());
        }
        let its_gate = Memory::from_slice(&engine, &half, &gate).unwrap();
        let its_up = Memory::from_slice(&engine, &half, &up).unwrap();
        let mut result = new(&half);
        let forward = Forward::separate(&engine, activation, &half, &half, &half);
        let forward = forward.limit(limit).shift(shift).build().unwrap();
        forward.execute(&stream, ForwardArgs::new(&its_gate, &mut result).up(&its_up)).unwrap();
        close(result.as_slice::<f32>().unwrap(), &dst);
        assert!(forward.primitive().arg_desc(Arg::Src1).unwrap().is_some());
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let engine = Engine::cpu().unwrap();
    let half = MemoryDesc::dense(&[ROWS, COLS], DataType::F32).unwrap();
    let odd = Forward::packed(&engine, Activation::Logistic, &half, Packing::UpFirst, &half);
    assert_eq!(odd.build().unwrap_err().kind(), ErrorKind::InvalidArguments);
    let limit = Forward::separate(&engine, Activation::GeluErf, &half, &half, &half).limit(-1.0);
    let error = limit.build().unwrap_err();
    assert!(error.to_string().contains("limit"), "{error}");
    let forward = Forward::separate(&engine, Activation::GeluTanh, &half, &half, &half);
    let stream = Stream::new(&engine).unwrap();
    let (src, mut dst) =
        (Memory::new(&engine, &half).unwrap(), Memory::new(&engine, &half).unwrap());
    let args = ForwardArgs::new(&src, &mut dst);
    let error = forward.build().unwrap().execute(&stream, args).unwrap_err();
    assert!(error.to_string().contains("src1"), "{error}");
}
