//! The steps around a normalization: residual, gate, partial norm, flags, dynamic scales.

use norm_rs::attr::{DynamicScale, Gating, ResidualRounding};
use norm_rs::layer_normalization::{Backward, BackwardArgs, Flags, Forward, ForwardArgs};
use norm_rs::primitive::{Arg, Args, Primitive};
use norm_rs::{Attr, DataType, Engine, ErrorKind, Memory, MemoryDesc, Stream};

const ROWS: usize = 2;
const COLS: usize = 4;
const X: [f32; 8] = [1.0, -2.0, 3.0, 0.5, -1.5, 2.5, 0.25, 4.0];
const R: [f32; 8] = [0.5, 1.0, -1.0, 2.0, 3.0, -0.5, 1.0, -2.0];
const W: [f32; 8] = [0.25, 1.0, -0.5, 0.75, 1.5, -1.0, 0.5, 2.0];

struct World {
    engine: Engine,
    stream: Stream<'static>,
    rows: MemoryDesc,
    stats: MemoryDesc,
}

fn world() -> World {
    let engine = Engine::cpu().unwrap();
    let stream = Stream::new(&engine).unwrap();
    let rows = MemoryDesc::dense(&[ROWS, COLS], DataType::F32).unwrap();
    let stats = MemoryDesc::dense(&[ROWS], DataType::F32).unwrap();
    World { engine, stream, rows, stats }
}

impl World {
    fn rows<'a>(&self, values: &'a [f32]) -> Memory<'a, norm_rs::memory::ReadOnly> {
        Memory::from_slice(&self.engine, &self.rows, values).unwrap()
    }
}

fn silu(x: f32) -> f32 {
    x / (1.0 + (-x).exp())
}

#[track_caller]
fn close(got: &[f32], want: &[f32]) {
    assert_eq!(got.len(), want.len());
    for (got, want) in got.iter().zip(want) {
        assert!((got - want).abs() < 1e-5, "{got} is not {want}");
    }
}

/// diff_src is the gradient of the normalization plus that of the sum.
#[test]
fn a_residual_has_the_gradient_of_both_summands() {
    let w = world();
    let sum: Vec<f32> = X.iter().zip(R).map(|(x, r)| x + r).collect();
    let run = |attr: Option<&Attr>| {
        let forward = Forward::training(&w.engine, &w.rows).flags(Flags::RMS_NORM);
        let forward = attr.map_or(forward, |attr| forward.attr(attr)).build().unwrap();
        let (mut dst, mut variance) =
            (Memory::new(&w.engine, &w.rows).unwrap(), Memory::new(&w.engine, &w.stats).unwrap());
        let mut stored = Memory::new(&w.engine, &w.rows).unwrap();
        let (x, residual, s, diff) = (w.rows(&X), w.rows(&R), w.rows(&sum), w.rows(&W));
        let src = if attr.is_some() { &x } else { &s };
        let args = ForwardArgs::new(src, &mut dst).variance_out(&mut variance);
        let args = match attr {
            Some(_) => args.residual(&residual).residual_dst(&mut stored),
            None => args,
        };
        forward.execute(&w.stream, args).unwrap();
        if attr.is_some() {
            assert_eq!(stored.as_slice::<f32>().unwrap(), sum);
        }
        let backward = Backward::new(&w.engine, &w.rows).flags(Flags::RMS_NORM);
        let backward = attr.map_or(backward, |attr| backward.attr(attr)).build().unwrap();
        let mut diff_src = Memory::new(&w.engine, &w.rows).unwrap();
        let args = BackwardArgs::new(&s, &diff, &mut diff_src).variance(&variance);
        let args = if attr.is_some() { args.diff_residual_dst(&diff) } else { args };
        backward.execute(&w.stream, args).unwrap();
        let of = |memory: &Memory<'_>| memory.as_slice::<f32>().unwrap().to_vec();
        (of(&dst), of(&diff_src))
    };
    let mut attr = Attr::new().unwrap();
    attr.set_residual(&w.rows, Some(&w.rows), ResidualRounding::Rounded).unwrap();
    let (plain, fused) = (run(None), run(Some(&attr)));
    assert_eq!(plain.0, fused.0);
    let with_sum: Vec<f32> = plain.1.iter().zip(W).map(|(d, w)| d + w).collect();
    close(&fused.1, &with_sum);
}

#[test]
fn a_gate_multiplies_and_has_a_gradient() {
    let w = world();
    let mut attr = Attr::new().unwrap();
    attr.set_gate(&w.rows, Gating::Swish(1.0)).unwrap();
    let flags = Flags::RMS_NORM | Flags::GATE_OUTPUT;
    let forward = Forward::training(&w.engine, &w.rows).flags(flags).attr(&attr).build().unwrap();
    let plain = Forward::training(&w.engine, &w.rows).flags(Flags::RMS_NORM).build().unwrap();
    let (x, gate, diff) = (w.rows(&X), w.rows(&R), w.rows(&W));
    let new = |desc| Memory::new(&w.engine, desc).unwrap();
    let (mut dst, mut n, mut variance) = (new(&w.rows), new(&w.rows), new(&w.stats));
    let args = ForwardArgs::new(&x, &mut n).variance_out(&mut variance);
    plain.execute(&w.stream, args).unwrap();
    let args = ForwardArgs::new(&x, &mut dst).variance_out(&mut variance).gate(&gate);
    forward.execute(&w.stream, args).unwrap();
    let n = n.as_slice::<f32>().unwrap();
    let want: Vec<f32> = n.iter().zip(R).map(|(n, gate)| n * silu(gate)).collect();
    close(dst.as_slice::<f32>().unwrap(), &want);

    let backward = Backward::new(&w.engine, &w.rows).flags(flags).attr(&attr).build().unwrap();
    let (mut diff_src, mut diff_gate) = (new(&w.rows), new(&w.rows));
    let args = BackwardArgs::new(&x, &diff, &mut diff_src).variance(&variance);
    let args = args.gate(&gate).diff_gate(&mut diff_gate);
    backward.execute(&w.stream, args).unwrap();
    let slope = |gate: f32| {
        let s = 1.0 / (1.0 + (-gate).exp());
        s * (1.0 + gate * (1.0 - s))
    };
    let want: Vec<f32> = (0..8).map(|i| W[i] * n[i] * slope(R[i])).collect();
    close(diff_gate.as_slice::<f32>().unwrap(), &want);
}

const OUTPUTS: [Arg; 4] = [Arg::Dst, Arg::ResidualDst, Arg::DiffSrc, Arg::DiffGate];

/// The outputs of a primitive, one of which may overwrite an input.
fn outputs(w: &World, primitive: &Primitive, shared: Option<(Arg, Arg)>) -> [Option<Vec<f32>>; 4] {
    let inputs = [
        (Arg::Src, X),
        (Arg::Residual, R),
        (Arg::Gate, W),
        (Arg::DiffDst, R),
        (Arg::DiffResidualDst, W),
    ];
    let variance = Memory::from_slice(&w.engine, &w.stats, &[1.5f32, 0.5]).unwrap();
    let has = |arg: Arg| primitive.arg_desc(arg).unwrap().is_some();
    let mut memories = Vec::new();
    for (arg, values) in inputs.into_iter().filter(|(arg, _)| has(*arg)) {
        let mut memory = Memory::new(&w.engine, &w.rows).unwrap();
        memory.copy_from_slice(&values).unwrap();
        memories.push((arg, memory));
    }
    let own = |arg: &Arg| has(*arg) && shared.is_none_or(|(_, output)| output != *arg);
    for arg in OUTPUTS.into_iter().filter(own) {
        memories.push((arg, Memory::new(&w.engine, &w.rows).unwrap()));
    }
    let mut args = Args::new();
    for (arg, memory) in &mut memories {
        args = match shared {
            Some((input, output)) if input == *arg => args.in_place(input, output, memory),
            _ if primitive.writes(*arg) => args.output(*arg, memory),
            _ => args.input(*arg, memory),
        };
    }
    if has(Arg::Variance) {
        args = args.input(Arg::Variance, &variance);
    }
    primitive.execute(&w.stream, args).unwrap();
    OUTPUTS.map(|arg| {
        let place = shared.filter(|(_, output)| *output == arg).map_or(arg, |(input, _)| input);
        let found = memories.iter().find(|(arg, _)| *arg == place);
        found.map(|(_, memory)| memory.as_slice::<f32>().unwrap().to_vec())
    })
}

/// An output overwrites an input, with the same bits.
#[test]
fn outputs_overwrite_inputs() {
    let w = world();
    let mut attr = Attr::new().unwrap();
    attr.set_residual(&w.rows, Some(&w.rows), ResidualRounding::Exact).unwrap();
    attr.set_gate(&w.rows, Gating::Logistic).unwrap();
    let flags = Flags::RMS_NORM | Flags::GATE_OUTPUT;
    let forward = Forward::inference(&w.engine, &w.rows).flags(flags).attr(&attr).build().unwrap();
    let backward = Backward::new(&w.engine, &w.rows).flags(flags).attr(&attr).build().unwrap();
    let (forward, backward) = (forward.primitive(), backward.primitive());
    for (primitive, input, output) in [
        (forward, Arg::Src, Arg::Dst),
        (forward, Arg::Residual, Arg::Dst),
        (forward, Arg::Gate, Arg::Dst),
        (forward, Arg::Src, Arg::ResidualDst),
        (forward, Arg::Residual, Arg::ResidualDst),
        (backward, Arg::DiffDst, Arg::DiffSrc),
        (backward, Arg::DiffResidualDst, Arg::DiffSrc),
        (backward, Arg::Gate, Arg::DiffGate),
    ] {
        let shared = outputs(&w, primitive, Some((input, output)));
        assert_eq!(shared, outputs(&w, primitive, None), "{output:?} overwrites {input:?}");
    }
}

#[test]
fn flags_and_partial_norms_change_the_formula() {
    let w = world();
    let of_columns = MemoryDesc::dense(&[COLS], DataType::F32).unwrap();
    let scale = Memory::from_slice(&w.engine, &of_columns, &[0.5f32, 0.0, -1.0, 1.0]).unwrap();
    let mut attr = Attr::new().unwrap();
    attr.set_partial_norm(2).unwrap();
    let flags = Flags::RMS_NORM | Flags::SCALE | Flags::SCALE_PLUS_ONE;
    let norm = Forward::inference(&w.engine, &w.rows).flags(flags).epsilon(0.0);
    let norm = norm.attr(&attr).build().unwrap();
    let (x, mut dst) = (w.rows(&X), Memory::new(&w.engine, &w.rows).unwrap());
    norm.execute(&w.stream, ForwardArgs::new(&x, &mut dst).scale(&scale)).unwrap();
    let factors = [1.5, 1.0, 0.0, 2.0];
    let want: Vec<f32> = (0..8)
        .map(|i| {
            let row = &X[i / COLS * COLS..];
            X[i] / ((row[0] * row[0] + row[1] * row[1]) / 2.0).sqrt() * factors[i % COLS]
        })
        .collect();
    close(dst.as_slice::<f32>().unwrap(), &want);
    assert_eq!(format!("{flags:?}"), "SCALE | RMS_NORM | SCALE_PLUS_ONE");
}

#[test]
fn dynamic_zero_points_are_written() {
    let w = world();
    let bytes = MemoryDesc::dense(&[ROWS, COLS], DataType::U8).unwrap();
    let mut attr = Attr::new().unwrap();
    attr.set_dynamic_scales(DynamicScale::Largest(DataType::F32), COLS, 2).unwrap();
    attr.set_dynamic_zero_points(COLS, 2).unwrap();
    let norm = Forward::inference(&w.engine, &w.rows).dst(&bytes).attr(&attr).build().unwrap();
    let desc = |arg| norm.primitive().arg_desc(arg).unwrap().unwrap();
    assert!(norm.primitive().writes(Arg::DstScale) && norm.primitive().writes(Arg::DstZeroPoint));
    let (x, mut dst) = (w.rows(&X), Memory::new(&w.engine, &bytes).unwrap());
    let mut scales = Memory::new(&w.engine, &desc(Arg::DstScale)).unwrap();
    let mut points = Memory::new(&w.engine, &desc(Arg::DstZeroPoint)).unwrap();
    let args = ForwardArgs::new(&x, &mut dst);
    let error = norm.execute(&w.stream, args).unwrap_err();
    assert!(error.to_string().contains("dst_scale_out()"), "{error}");
    let args = ForwardArgs::new(&x, &mut dst).dst_scale_out(&mut scales);
    norm.execute(&w.stream, args.dst_zero_point_out(&mut points)).unwrap();
    let elements = dst.as_slice::<u8>().unwrap();
    for row in elements.chunks(COLS) {
        assert!(row.contains(&0) && row.contains(&255), "{row:?}");
    }
    assert!(points.as_slice::<i32>().unwrap().iter().all(|point| (1..255).contains(point)));
}

/// Errors have the names of this crate.
#[test]
fn contradictions_are_errors() {
    let w = world();
    let refused = |flags, attr: Option<&Attr>, names: &[&str]| {
        let norm = Forward::inference(&w.engine, &w.rows).flags(flags);
        let error = attr.map_or(norm, |attr| norm.attr(attr)).build().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArguments, "{error}");
        let said = error.to_string();
        assert!(names.iter().all(|name| said.contains(name)), "{said}");
        assert!(!said.contains("use_") && !said.contains("norm_"), "{said}");
    };
    refused(Flags::GATE_OUTPUT, None, &["Flags::GATE_OUTPUT", "Attr::set_gate"]);
    refused(Flags::SCALE_PLUS_ONE, None, &["flags: Flags::SCALE_PLUS_ONE needs Flags::SCALE"]);
    let mut gate = Attr::new().unwrap();
    gate.set_gate(&w.rows, Gating::Logistic).unwrap();
    refused(Flags::NONE, Some(&gate), &["attr: ", "Flags::GATE_INPUT", "Flags::GATE_OUTPUT"]);
    refused(Flags::GATE_OUTPUT | Flags::GATE_INPUT, Some(&gate), &["Flags::GATE_INPUT"]);
    let mut partial = Attr::new().unwrap();
    partial.set_partial_norm(COLS + 1).unwrap();
    refused(Flags::RMS_NORM, Some(&partial), &["attr: ", "5", "4"]);
    refused(Flags::NONE, Some(&partial), &["attr: ", "Flags::RMS_NORM"]);
    let mut scales = Attr::new().unwrap();
    let bytes = MemoryDesc::dense(&[ROWS, COLS], DataType::S8).unwrap();
    scales.set_dynamic_scales(DynamicScale::Largest(DataType::F32), 3, 2).unwrap();
    let norm = Forward::inference(&w.engine, &w.rows).dst(&bytes).attr(&scales);
    assert_eq!(norm.build().unwrap_err().kind(), ErrorKind::InvalidArguments);
}
