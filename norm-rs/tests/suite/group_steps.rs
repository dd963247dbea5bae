//! The steps around a group normalization: residual, gate, partial norm, `1 + scale`, dynamic scales.

use norm_rs::attr::{DynamicScale, Gating, ResidualRounding};
use norm_rs::group_normalization::{Backward, BackwardArgs, Flags, Forward, ForwardArgs};
use norm_rs::primitive::Arg;
use norm_rs::{Attr, DataType, Engine, Memory, MemoryDesc, Stream};

/// A sample of 4 channels with 2 positions, in 2 groups of 4 elements.
const DIMS: [usize; 3] = [1, 4, 2];
const GROUPS: usize = 2;
const SIZE: usize = 4;
/// The elements in the mean square: one channel.
const PARTIAL: usize = 2;
const ALPHA: f32 = 1.5;
const EPSILON: f32 = 0.25;

const X: [f32; 8] = [1.0, -2.0, 3.0, 0.5, -1.5, 2.5, 0.25, 4.0];
const R: [f32; 8] = [0.5, 1.0, -1.0, 2.0, 3.0, -0.5, 1.0, -2.0];
const G: [f32; 8] = [1.0, 2.0, -1.0, 0.5, 3.0, -2.0, 0.25, 1.0];
const SCALE: [f32; 4] = [0.5, -0.25, 1.0, 2.0];
/// The gradients of dst and of the sum.
const DY: [f32; 8] = [0.25, 1.0, -0.5, 0.75, 1.5, -1.0, 0.5, 2.0];
const DSUM: [f32; 8] = [1.0, -0.75, 0.5, 0.25, -2.0, 1.25, 0.75, -0.5];

/// What a loss depends on.
#[derive(Clone)]
struct Inputs {
    sum: Vec<f64>,
    gate: Vec<f64>,
    scale: Vec<f64>,
}

fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&value| f64::from(value)).collect()
}

fn inputs() -> Inputs {
    let sum = X.iter().zip(R).map(|(x, r)| f64::from(x + r)).collect();
    Inputs { sum, gate: wide(&G), scale: wide(&SCALE) }
}

/// dst and the mean squares. The gate opens the input or the output.
fn formula(of: &Inputs, flags: Flags) -> (Vec<f64>, Vec<f64>) {
    let opened = |i: usize| of.gate[i] / (1.0 + (-f64::from(ALPHA) * of.gate[i]).exp());
    let (before, after): (Vec<f64>, Vec<f64>) = if flags.contains(Flags::GATE_INPUT) {
        (0..8).map(|i| (of.sum[i] * opened(i), 1.0)).unzip()
    } else {
        (0..8).map(|i| (of.sum[i], opened(i))).unzip()
    };
    let squares = |group: &[f64]| group[..PARTIAL].iter().map(|x| x * x).sum::<f64>();
    let variance: Vec<f64> =
        before.chunks(SIZE).map(|group| squares(group) / PARTIAL as f64).collect();
    let root = |i: usize| (variance[i / SIZE] + f64::from(EPSILON)).sqrt();
    let dst = (0..8).map(|i| before[i] / root(i) * (1.0 + of.scale[i / 2]) * after[i]).collect();
    (dst, variance)
}

/// The derivative of the loss by one of the inputs, from its difference quotient.
fn slope(flags: Flags, change: impl Fn(&mut Inputs, f64)) -> f64 {
    let step = 1e-5;
    let loss = |by: f64| -> f64 {
        let mut of = inputs();
        change(&mut of, by);
        let (dst, _) = formula(&of, flags);
        let dot =
            |a: &[f64], b: &[f32]| -> f64 { a.iter().zip(b).map(|(a, b)| a * f64::from(*b)).sum() };
        dot(&dst, &DY) + dot(&of.sum, &DSUM)
    };
    (loss(step) - loss(-step)) / (2.0 * step)
}

#[track_caller]
fn close(memory: &Memory<'_>, want: &[f64]) {
    let got = memory.as_slice::<f32>().unwrap();
    assert_eq!(got.len(), want.len());
    for (got, want) in got.iter().zip(want) {
        assert!((f64::from(*got) - want).abs() < 1e-5 * (1.0 + want.abs()), "{got} is not {want}");
    }
}

fn steps(rows: &MemoryDesc, rounding: ResidualRounding) -> Attr {
    let mut attr = Attr::new().unwrap();
    attr.set_residual(rows, Some(rows), rounding).unwrap();
    attr.set_gate(rows, Gating::Swish(ALPHA)).unwrap();
    attr.set_partial_norm(PARTIAL).unwrap();
    attr
}

/// Forward and the gradients of everything, with the gate before or after the normalization.
#[test]
fn a_training_step_has_the_gradients_of_the_formula() {
    let engine = Engine::cpu().unwrap();
    let stream = Stream::new(&engine).unwrap();
    let rows = MemoryDesc::dense(&DIMS, DataType::F32).unwrap();
    let stats = MemoryDesc::dense(&[1, GROUPS], DataType::F32).unwrap();
    let channels = MemoryDesc::dense(&DIMS[1..2], DataType::F32).unwrap();
    let new = |desc| Memory::new(&engine, desc).unwrap();
    let given = |values: &'static [f32]| Memory::from_slice(&engine, &rows, values).unwrap();
    let (x, r, gate, dy, dsum) = (given(&X), given(&R), given(&G), given(&DY), given(&DSUM));
    let scale = Memory::from_slice(&engine, &channels, &SCALE).unwrap();
    for place in [Flags::GATE_INPUT, Flags::GATE_OUTPUT] {
        let flags = Flags::RMS_NORM | Flags::SCALE | Flags::SCALE_PLUS_ONE | place;
        for rounding in [ResidualRounding::Rounded, ResidualRounding::Exact] {
            let attr = steps(&rows, rounding);
            let forward = Forward::training(&engine, &rows, GROUPS as i64).epsilon(EPSILON);
            let forward = forward.flags(flags).attr(&attr).build().unwrap();
            let (mut dst, mut sum, mut variance) = (new(&rows), new(&rows), new(&stats));
            let args = ForwardArgs::new(&x, &mut dst).scale(&scale).variance_out(&mut variance);
            let args = args.residual(&r).residual_dst(&mut sum).gate(&gate);
            forward.execute(&stream, args).unwrap();
            let (of_dst, of_variance) = formula(&inputs(), flags);
            close(&dst, &of_dst);
            close(&variance, &of_variance);
            close(&sum, &inputs().sum);

            let backward = Backward::new(&engine, &rows, GROUPS as i64).epsilon(EPSILON);
            let backward = backward.flags(flags).attr(&attr).build().unwrap();
            let (mut diff_src, mut diff_gate) = (new(&rows), new(&rows));
            let mut diff_scale = new(&channels);
            let args = BackwardArgs::new(&sum, &dy, &mut diff_src).variance(&variance);
            let args = args.scale(&scale).diff_scale(&mut diff_scale).gate(&gate);
            let args = args.diff_gate(&mut diff_gate).diff_residual_dst(&dsum);
            backward.execute(&stream, args).unwrap();
            let by = |change: fn(&mut Inputs) -> &mut Vec<f64>, count: usize| -> Vec<f64> {
                (0..count).map(|i| slope(flags, |of, step| change(of)[i] += step)).collect()
            };
            close(&diff_src, &by(|of| &mut of.sum, 8));
            close(&diff_gate, &by(|of| &mut of.gate, 8));
            close(&diff_scale, &by(|of| &mut of.scale, 4));
        }
    }
}

/// A scale for every 2 positions of a channel.
#[test]
fn dynamic_scales_are_written() {
    let engine = Engine::cpu().unwrap();
    let stream = Stream::new(&engine).unwrap();
    let rows = MemoryDesc::dense(&DIMS, DataType::F32).unwrap();
    let bytes = MemoryDesc::dense(&DIMS, DataType::S8).unwrap();
    let channels = MemoryDesc::dense(&DIMS[1..2], DataType::F32).unwrap();
    let flags = Flags::RMS_NORM | Flags::SCALE | Flags::SCALE_PLUS_ONE | Flags::GATE_OUTPUT;
    let mut attr = steps(&rows, ResidualRounding::Rounded);
    attr.set_dynamic_scales(DynamicScale::Largest(DataType::F32), 2, DIMS.len()).unwrap();
    let norm = Forward::inference(&engine, &rows, GROUPS as i64).dst(&bytes).epsilon(EPSILON);
    let norm = norm.flags(flags).attr(&attr).build().unwrap();
    let of_scales = norm.primitive().arg_desc(Arg::DstScale).unwrap().unwrap();
    assert!(norm.primitive().writes(Arg::DstScale));
    let given = |values: &'static [f32]| Memory::from_slice(&engine, &rows, values).unwrap();
    let (x, r, gate) = (given(&X), given(&R), given(&G));
    let scale = Memory::from_slice(&engine, &channels, &SCALE).unwrap();
    let (mut dst, mut sum) =
        (Memory::new(&engine, &bytes).unwrap(), Memory::new(&engine, &rows).unwrap());
    let mut scales = Memory::new(&engine, &of_scales).unwrap();
    let args = ForwardArgs::new(&x, &mut dst).scale(&scale).residual(&r).residual_dst(&mut sum);
    let args = args.gate(&gate).dst_scale_out(&mut scales);
    norm.execute(&stream, args).unwrap();
    let (want, _) = formula(&inputs(), flags);
    let largest: Vec<f64> =
        want.chunks(2).map(|pair| pair[0].abs().max(pair[1].abs()) / 127.0).collect();
    close(&scales, &largest);
    for (i, code) in dst.as_slice::<i8>().unwrap().iter().enumerate() {
        let exact = want[i] / largest[i / 2];
        assert!((f64::from(*code) - exact).abs() < 0.501, "{code} is not {exact}");
    }
}
