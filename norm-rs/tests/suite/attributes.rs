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

    // A missing condition, and an operand with other dimensions.
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

/// Host scalars as scales and parameters of dropout: the bits of the same numbers in buffers.
#[test]
fn host_scalars() {
    let engine = Engine::cpu().unwrap();
    let stream = Stream::new(&engine).unwrap();
    let rows = MemoryDesc::dense(&[ROWS, COLS], DataType::F32).unwrap();
    let scales = MemoryDesc::dense(&[1, 1], DataType::F32).unwrap();
    let one = MemoryDesc::dense(&[1], DataType::F32).unwrap();
    let long = MemoryDesc::dense(&[1], DataType::S64).unwrap();
    let src = numbers::<f32>(4, ROWS * COLS, -3.0, 5.0);
    let src = Memory::from_slice(&engine, &rows, &src).unwrap();
    let softmax =
        |attr: &Attr| norm_rs::softmax::Forward::new(&engine, &rows, 1).attr(attr).build().unwrap();

    let mut in_buffer = Attr::new().unwrap();
    in_buffer.set_scales(Arg::Src, 0).unwrap();
    in_buffer.set_dropout(None, false).unwrap();
    let in_buffer = softmax(&in_buffer);
    let mut on_host = Attr::new().unwrap();
    on_host.set_host_scale(Arg::Src, DataType::F32).unwrap();
    on_host.set_host_dropout(None, false).unwrap();
    let on_host = softmax(&on_host);

    let mut scalars = (
        Memory::host_scalar(0.0f32).unwrap(),
        Memory::host_scalar(0.25f32).unwrap(),
        Memory::host_scalar(3i64).unwrap(),
    );
    assert!(scalars.0.as_slice::<f32>().unwrap().is_empty());
    assert!(scalars.0.as_slice::<i64>().is_err());
    for scale in [0.75f32, -2.0] {
        let number = [scale];
        let buffers = (
            Memory::from_slice(&engine, &scales, &number).unwrap(),
            Memory::from_slice(&engine, &one, &[0.25f32]).unwrap(),
            Memory::from_slice(&engine, &long, &[3i64]).unwrap(),
        );
        let mut expected = Memory::new(&engine, &rows).unwrap();
        let args = norm_rs::softmax::ForwardArgs::new(&src, &mut expected).src_scale(&buffers.0);
        in_buffer.execute(&stream, args.dropout(&buffers.1, &buffers.2)).unwrap();

        scalars.0.set_host_scalar(scale).unwrap();
        let mut dst = Memory::new(&engine, &rows).unwrap();
        let args = norm_rs::softmax::ForwardArgs::new(&src, &mut dst).src_scale(&scalars.0);
        on_host.execute(&stream, args.dropout(&scalars.1, &scalars.2)).unwrap();
        let (dst, expected) = (dst.as_slice::<f32>().unwrap(), expected.as_slice::<f32>().unwrap());
        assert!(dst.iter().zip(expected).all(|(a, b)| a.to_bits() == b.to_bits()));
        assert!(dst.contains(&0.0) && dst.iter().any(|x| *x != 0.0));
    }

    // Neither can replace the other, and the type must match.
    let buffer = Memory::from_slice(&engine, &scales, &[1.0f32]).unwrap();
    let mut dst = Memory::new(&engine, &rows).unwrap();
    let args = norm_rs::softmax::ForwardArgs::new(&src, &mut dst).src_scale(&buffer);
    let error = on_host.execute(&stream, args.dropout(&scalars.1, &scalars.2)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArguments);
    let args = norm_rs::softmax::ForwardArgs::new(&src, &mut dst).src_scale(&scalars.0);
    let error = in_buffer.execute(&stream, args.dropout(&scalars.1, &scalars.2)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArguments);
    let error = scalars.0.set_host_scalar(1i64).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArguments);
    assert!(Memory::new(&engine, &one).unwrap().set_host_scalar(1.0f32).is_err());
    let error = Attr::new().unwrap().set_host_scale(Arg::Src, DataType::S8).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArguments);
}
