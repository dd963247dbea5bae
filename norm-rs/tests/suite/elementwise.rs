//! Eltwise and binary, compared with f64 loops.

use norm_rs::attr::Attr;
use norm_rs::binary::{Binary, BinaryArgs, BinaryPrimitive};
use norm_rs::eltwise::{Backward, BackwardArgs, Eltwise, Forward, ForwardArgs};
use norm_rs::post_ops::PostOps;
use norm_rs::primitive::Arg;
use norm_rs::{DataType, Engine, ErrorKind, Memory, MemoryDesc, Stream, Tag, bf16};

const ROWS: usize = 3;
const COLS: usize = 37;

fn numbers(shift: usize) -> Vec<f32> {
    (0..ROWS * COLS).map(|i| ((i * 29 + shift) % 61) as f32 / 8.0 - 3.5).collect()
}

fn rows() -> MemoryDesc {
    MemoryDesc::dense(&[ROWS, COLS], DataType::F32).unwrap()
}

fn assert_close(got: &[f32], want: impl Iterator<Item = f64>) {
    let mut count = 0;
    for (got, want) in got.iter().zip(want) {
        assert!((f64::from(*got) - want).abs() <= 1e-6 * (1.0 + want.abs()), "{got}, not {want}");
        count += 1;
    }
    assert_eq!(count, got.len());
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

#[test]
fn swish_and_its_gradient() {
    let (engine, desc) = (Engine::cpu().unwrap(), rows());
    let stream = Stream::new(&engine).unwrap();
    let (x, dy) = (numbers(0), numbers(5));
    let src = Memory::from_slice(&engine, &desc, &x).unwrap();
    let mut dst = Memory::new(&engine, &desc).unwrap();
    let swish = Forward::new(&engine, &desc, Eltwise::Swish).alpha(2.0).build().unwrap();
    swish.execute(&stream, ForwardArgs::new(&src, &mut dst)).unwrap();
    let value = |x: &f32| f64::from(*x) * sigmoid(2.0 * f64::from(*x));
    assert_close(dst.as_slice::<f32>().unwrap(), x.iter().map(value));

    let slope = |(x, dy): (&f32, &f32)| {
        let (x, s) = (f64::from(*x), sigmoid(2.0 * f64::from(*x)));
        f64::from(*dy) * s * (1.0 + 2.0 * x * (1.0 - s))
    };
    let backward = Backward::new(&engine, &desc, Eltwise::Swish).alpha(2.0).build().unwrap();
    let mut copy = dy.clone();
    let mut diff = Memory::from_mut_slice(&engine, &desc, &mut copy).unwrap();
    backward.execute(&stream, BackwardArgs::in_place(&backward, &src, &mut diff)).unwrap();
    assert_close(diff.as_slice::<f32>().unwrap(), x.iter().zip(&dy).map(slope));
    assert!(format!("{backward:?} {swish:?}").contains("Swish"));
}

#[test]
fn gradients_from_dst_after_a_function_in_place() {
    let (engine, desc) = (Engine::cpu().unwrap(), rows());
    let stream = Stream::new(&engine).unwrap();
    let (x, dy) = (numbers(0), numbers(5));
    let mut copy = x.clone();
    let mut data = Memory::from_mut_slice(&engine, &desc, &mut copy).unwrap();
    let tanh = Forward::new(&engine, &desc, Eltwise::Tanh).build().unwrap();
    tanh.execute(&stream, ForwardArgs::in_place(&mut data)).unwrap();
    assert_close(data.as_slice::<f32>().unwrap(), x.iter().map(|x| f64::from(*x).tanh()));
    let backward = Backward::new(&engine, &desc, Eltwise::Tanh).from_dst().build().unwrap();
    let diff_dst = Memory::from_slice(&engine, &desc, &dy).unwrap();
    let mut diff_src = Memory::new(&engine, &desc).unwrap();
    let args = BackwardArgs::new(&backward, &data, &diff_dst, &mut diff_src);
    backward.execute(&stream, args).unwrap();
    let slope = |(x, dy): (&f32, &f32)| f64::from(*dy) * (1.0 - f64::from(*x).tanh().powi(2));
    assert_close(diff_src.as_slice::<f32>().unwrap(), x.iter().zip(&dy).map(slope));
    assert!(backward.primitive().arg_desc(Arg::Src).unwrap().is_none());
}

#[test]
fn broadcasts_scales_and_post_operations() {
    let (engine, desc) = (Engine::cpu().unwrap(), rows());
    let stream = Stream::new(&engine).unwrap();
    let column = MemoryDesc::dense(&[ROWS, 1], DataType::Bf16).unwrap();
    let one = MemoryDesc::dense(&[1, 1], DataType::F32).unwrap();
    let (x, y) = (numbers(0), [0.5f32, 2.0, -3.0].map(bf16::from_f32));
    let src0 = Memory::from_slice(&engine, &column, &y).unwrap();
    let src1 = Memory::from_slice(&engine, &desc, &x).unwrap();
    let scale = Memory::from_slice(&engine, &one, &[4.0f32]).unwrap();
    let mut attr = Attr::new().unwrap();
    attr.set_scales(Arg::Src1, 0).unwrap();
    let list = PostOps::new().unwrap().sum(0.5).unwrap().eltwise(Eltwise::Abs, 0.0, 0.0).unwrap();
    attr.set_post_ops(&list).unwrap();
    let subtract = BinaryPrimitive::new(&engine, Binary::Sub, &column, &desc)
        .dst(&desc)
        .attr(&attr)
        .build()
        .unwrap();
    let mut eights = vec![8.0f32; x.len()];
    let mut dst = Memory::from_mut_slice(&engine, &desc, &mut eights).unwrap();
    let args = BinaryArgs::new(&src0, &src1, &mut dst).src1_scale(&scale);
    subtract.execute(&stream, args).unwrap();
    let want = x
        .iter()
        .enumerate()
        .map(|(i, x)| (f64::from(y[i / COLS].to_f32()) - 4.0 * f64::from(*x) + 4.0).abs());
    assert_close(dst.as_slice::<f32>().unwrap(), want);
}

#[test]
fn a_choice_in_place() {
    let (engine, desc) = (Engine::cpu().unwrap(), rows());
    let stream = Stream::new(&engine).unwrap();
    let mask = MemoryDesc::with_tag(&[ROWS, COLS], DataType::S8, Tag::Ab).unwrap();
    let (x, y) = (numbers(0), numbers(5));
    let chosen: Vec<i8> = (0..x.len()).map(|i| (i % 3) as i8 - 1).collect();
    let condition = Memory::from_slice(&engine, &mask, &chosen).unwrap();
    let src1 = Memory::from_slice(&engine, &desc, &y).unwrap();
    let mut copy = x.clone();
    let mut data = Memory::from_mut_slice(&engine, &desc, &mut copy).unwrap();
    let choice = BinaryPrimitive::select(&engine, &mask, &desc, &desc).build().unwrap();
    choice.execute(&stream, BinaryArgs::in_place(&mut data, &src1).select(&condition)).unwrap();
    let want = (0..x.len()).map(|i| f64::from(if chosen[i] == 0 { y[i] } else { x[i] }));
    assert_close(data.as_slice::<f32>().unwrap(), want);
    let missing = choice.execute(&stream, BinaryArgs::in_place(&mut data, &src1)).unwrap_err();
    assert!(missing.to_string().contains("src2"), "{missing}");
}

#[test]
fn what_is_refused() {
    let (engine, desc) = (Engine::cpu().unwrap(), rows());
    let kind = |result: norm_rs::Result<Backward>| result.unwrap_err().kind();
    let of_dst = Backward::new(&engine, &desc, Eltwise::GeluErf).from_dst().build();
    assert_eq!(kind(of_dst), ErrorKind::InvalidArguments);
    let round = Backward::new(&engine, &desc, Eltwise::Round).build();
    assert_eq!(kind(round), ErrorKind::InvalidArguments);
    let clip = Forward::new(&engine, &desc, Eltwise::Clip).alpha(1.0).build().unwrap_err();
    assert!(clip.to_string().contains("beta"), "{clip}");
    let wide = MemoryDesc::dense(&[ROWS, COLS], DataType::F64).unwrap();
    let wide = BinaryPrimitive::new(&engine, Binary::Add, &wide, &desc).build().unwrap_err();
    assert_eq!(wide.kind(), ErrorKind::Unimplemented);
    let other = MemoryDesc::dense(&[2, COLS], DataType::F32).unwrap();
    let other = BinaryPrimitive::new(&engine, Binary::Add, &desc, &other).build().unwrap_err();
    assert_eq!(other.kind(), ErrorKind::InvalidArguments);
}
