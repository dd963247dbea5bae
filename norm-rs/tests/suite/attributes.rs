//! Layer normalization with scales and post-operations.

use norm_rs::layer_normalization::{Flags, Forward, ForwardArgs};
use norm_rs::post_ops::{Binary, Eltwise, PostOps};
use norm_rs::primitive::Arg;
use norm_rs::{Attr, DataType, Engine, ErrorKind, Memory, MemoryDesc, Stream, Tag};

use crate::data::*;

const ROWS: usize = 5;
const COLS: usize = 21;

/// `clip(max(xhat*src_scale + residual, floor), -1, 2) / dst_scale` as s8, selected by a condition.
#[test]
fn post_ops_are_applied_in_order() {
    let engine = Engine::cpu().unwrap();
    let stream = Stream::new(&engine).unwrap();
    let rows = MemoryDesc::dense(&[ROWS, COLS], DataType::F32).unwrap();
    let out = MemoryDesc::dense(&[ROWS, COLS], DataType::S8).unwrap();
    let any = MemoryDesc::with_tag(&[ROWS, COLS], DataType::F32, Tag::Any).unwrap();
    let of_columns = MemoryDesc::dense(&[1, COLS], DataType::F32).unwrap();
    let of_rows = MemoryDesc::dense(&[ROWS, 1], DataType::S8).unwrap();
    let list = PostOps::new()
        .and_then(|list| list.binary(Binary::Add, &any))
        .and_then(|list| list.binary(Binary::Max, &of_columns))
        .and_then(|list| list.select(&of_columns, &of_rows))
        .and_then(|list| list.eltwise(Eltwise::Clip, -1.0, 2.0))
        .unwrap();
    let mut attr = Attr::new().unwrap();
    attr.set_scales(Arg::Src, 0).unwrap();
    attr.set_scales(Arg::Dst, 0).unwrap();
    attr.set_post_ops(&list).unwrap();
    let layer_norm = Forward::inference(&engine, &rows)
        .dst(&out)
        .flags(Flags::NONE)
        .attr(&attr)
        .build()
        .unwrap();
    let residual_desc = layer_norm.primitive().operand_desc(0).unwrap().unwrap();
    assert_eq!(residual_desc, rows);
    assert!(layer_norm.primitive().operand_desc(3).unwrap().is_none());

    let x: Vec<f32> = numbers(1, ROWS * COLS, -3.0, 5.0);
    let r: Vec<f32> = numbers(2, ROWS * COLS, -1.0, 1.0);
    let floor: Vec<f32> = numbers(3, COLS, -1.5, 0.5);
    let condition: Vec<i8> = (0..ROWS as i8).map(|row| row % 3).collect();
    let one = layer_norm.primitive().arg_desc(Arg::SrcScale).unwrap().unwrap();
    let src = Memory::from_slice(&engine, &rows, &x).unwrap();
    let residual = Memory::from_slice(&engine, &rows, &r).unwrap();
    let floors = Memory::from_slice(&engine, &of_columns, &floor).unwrap();
    let conditions = Memory::from_slice(&engine, &of_rows, &condition).unwrap();
    let src_scale = Memory::from_slice(&engine, &one, &[0.75f32]).unwrap();
    let dst_scale = Memory::from_slice(&engine, &one, &[0.02f32]).unwrap();
    let mut dst = Memory::new(&engine, &out).unwrap();

    // A missing condition, and an operand of other dimensions.
    let args = ForwardArgs::new(&src, &mut dst).src_scale(&src_scale).dst_scale(&dst_scale);
    let args = args.operand(0, &residual).operand(1, &floors).operand(2, &floors);
    let error = layer_norm.execute(&stream, args).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArguments);
    assert!(error.to_string().contains("post-operation 2"), "{error}");
    let args = ForwardArgs::new(&src, &mut dst).src_scale(&src_scale).dst_scale(&dst_scale);
    let args = args.operand(0, &floors);
    let error = layer_norm.execute(&stream, args).unwrap_err();
    assert!(error.to_string().contains("post-operation 0"), "{error}");

    let args = ForwardArgs::new(&src, &mut dst).src_scale(&src_scale).dst_scale(&dst_scale);
    let args = args.operand(0, &residual).operand(1, &floors).operand(2, &floors);
    layer_norm.execute(&stream, args.condition(2, &conditions)).unwrap();
    let got = dst.as_slice::<i8>().unwrap();
    for row in 0..ROWS {
        let x: Vec<f64> = x[row * COLS..][..COLS].iter().map(|x| f64::from(*x)).collect();
        let mean = x.iter().sum::<f64>() / COLS as f64;
        let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / COLS as f64;
        for col in 0..COLS {
            let at = row * COLS + col;
            let (r, floor) = (f64::from(r[at]), f64::from(floor[col]));
            let xhat = (x[col] - mean) / (variance + 1e-5).sqrt();
            let kept = (xhat * 0.75 + r).max(floor);
            let chosen = if condition[row] != 0 { kept } else { floor };
            let want = chosen.clamp(-1.0, 2.0) / 0.02;
            assert!((f64::from(got[at]) - want).abs() <= 0.5001, "{row} {col}: {want}");
        }
    }
}

#[test]
fn unused_operands_are_rejected() {
    let engine = Engine::cpu().unwrap();
    let stream = Stream::new(&engine).unwrap();
    let rows = MemoryDesc::dense(&[2, 4], DataType::F32).unwrap();
    let layer_norm = Forward::inference(&engine, &rows).build().unwrap();
    let src = Memory::new(&engine, &rows).unwrap();
    let mut dst = Memory::new(&engine, &rows).unwrap();
    for index in [0, 31, 32, usize::MAX] {
        let args = ForwardArgs::new(&src, &mut dst).operand(index, &src);
        let error = layer_norm.execute(&stream, args).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArguments);
    }
}
