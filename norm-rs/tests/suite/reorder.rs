//! Reorder and the attributes that it supports.

use norm_rs::post_ops::{Binary, Eltwise, PostOps};
use norm_rs::primitive::Arg;
use norm_rs::reorder::{Reorder, ReorderArgs};
use norm_rs::{Attr, DataType, Engine, ErrorKind, Memory, MemoryDesc, Stream, Tag, bf16};

use crate::data::*;

#[test]
fn rows_are_transposed_and_rounded() {
    let engine = Engine::cpu().unwrap();
    let stream = Stream::new(&engine).unwrap();
    let (rows, cols) = (37, 53);
    let from = MemoryDesc::dense(&[rows, cols], DataType::F32).unwrap();
    let to = MemoryDesc::with_tag(&[rows, cols], DataType::Bf16, Tag::Ba).unwrap();
    let x: Vec<f32> = numbers(1, rows * cols, -3.0, 3.0);
    let src = Memory::from_slice(&engine, &from, &x).unwrap();
    let mut dst = Memory::new(&engine, &to).unwrap();
    let reorder = Reorder::new(&engine, &from, &to).unwrap();
    reorder.execute(&stream, ReorderArgs::new(&src, &mut dst)).unwrap();
    let got = dst.as_slice::<bf16>().unwrap();
    for (i, x) in x.iter().enumerate() {
        assert_eq!(got[i % cols * rows + i / cols], bf16::from_f32(*x));
    }
}

#[test]
fn scales_and_sum_are_applied() {
    let engine = Engine::cpu().unwrap();
    let stream = Stream::new(&engine).unwrap();
    let from = MemoryDesc::dense(&[2, 3], DataType::S8).unwrap();
    let to = MemoryDesc::dense(&[2, 3], DataType::F32).unwrap();
    let mut attr = Attr::new().unwrap();
    attr.set_scales(Arg::Src, 0b10).unwrap();
    attr.set_scales(Arg::Dst, 0).unwrap();
    attr.set_post_ops(&PostOps::new().unwrap().sum(2.0).unwrap()).unwrap();
    let reorder = Reorder::with_attr(&engine, &from, &to, &attr).unwrap();
    let of_columns = reorder.primitive().arg_desc(Arg::SrcScale).unwrap().unwrap();
    let of_dst = reorder.primitive().arg_desc(Arg::DstScale).unwrap().unwrap();
    assert_eq!(of_columns.dims()[..], [1, 3]);

    let src = Memory::from_slice(&engine, &from, &[1i8, 2, 3, -4, -5, -6]).unwrap();
    let mut y = [1.0f32; 6];
    let mut dst = Memory::from_mut_slice(&engine, &to, &mut y).unwrap();
    let columns = Memory::from_slice(&engine, &of_columns, &[1.0f32, 10.0, 100.0]).unwrap();
    let scale = Memory::from_slice(&engine, &of_dst, &[0.5f32]).unwrap();
    let args = ReorderArgs::new(&src, &mut dst).src_scale(&columns);
    let error = reorder.execute(&stream, args).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArguments);
    assert!(error.to_string().contains("dst_scale"), "{error}");
    let args = ReorderArgs::new(&src, &mut dst).src_scale(&columns).dst_scale(&scale);
    reorder.execute(&stream, args).unwrap();
    assert_eq!(y, [6.0, 44.0, 604.0, -4.0, -96.0, -1196.0]);
}

#[test]
fn other_attributes_are_rejected() {
    let engine = Engine::cpu().unwrap();
    let desc = MemoryDesc::dense(&[2, 3], DataType::F32).unwrap();
    let lists = [
        PostOps::new().unwrap().eltwise(Eltwise::Relu, 0.0, 0.0),
        PostOps::new().unwrap().binary(Binary::Add, &desc),
        PostOps::new().unwrap().select(&desc, &desc),
    ];
    for list in lists {
        let mut attr = Attr::new().unwrap();
        attr.set_post_ops(&list.unwrap()).unwrap();
        let error = Reorder::with_attr(&engine, &desc, &desc, &attr).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unimplemented);
    }
    let mut attr = Attr::new().unwrap();
    assert_eq!(attr.set_scales(Arg::Mean, 0).unwrap_err().kind(), ErrorKind::InvalidArguments);
    let clip = PostOps::new().unwrap().eltwise(Eltwise::Clip, 2.0, 1.0).unwrap_err();
    assert_eq!(clip.kind(), ErrorKind::InvalidArguments);
}
