//! Several primitives in one call.

use norm_rs::layer_normalization::{Backward, BackwardArgs, Flags, Forward, ForwardArgs};
use norm_rs::{Engine, ErrorKind, Memory, MemoryDesc, Stream, bf16};
use norm_rs::{group_normalization, softmax};

use crate::data::*;

/// Norms of queries, keys and values, a softmax and a backward pass: the bits of running them one after another.
#[test]
fn together_as_one_by_one() {
    let engine = Engine::cpu().unwrap();
    let stream = Stream::new(&engine).unwrap();
    let mut pooled = Stream::new(&engine).unwrap();
    pooled.set_parallel_for(3, |count, body| (0..count).rev().for_each(body)).unwrap();
    let heads = [32, 8, 8].map(|heads| dense::<bf16>(&[heads, 16, 128]));
    let norms = heads.each_ref().map(|desc: &MemoryDesc| {
        Forward::inference(&engine, desc).flags(Flags::RMS_NORM).build().unwrap()
    });
    let src = heads.each_ref().map(|desc| {
        let x: Vec<bf16> = numbers(3, desc.dims().iter().product(), -1.0, 3.0);
        memory(&engine, &desc.dims(), &x)
    });
    let (rows, scores) = (dense::<f32>(&[300, 257]), numbers::<f32>(4, 300 * 257, -5.0, 5.0));
    let scores = memory(&engine, &[300, 257], &scores);
    let softmax = softmax::Forward::new(&engine, &rows, 1).build().unwrap();
    let backward = Backward::data(&engine, &rows).flags(Flags::RMS_NORM).build().unwrap();
    let variance = memory(&engine, &[300], &numbers::<f32>(5, 300, 0.5, 2.0));

    let outputs = || {
        let heads = heads.each_ref().map(|desc| Memory::new(&engine, desc).unwrap());
        (heads, [&rows, &rows].map(|desc| Memory::new(&engine, desc).unwrap()))
    };
    let (mut apart, [mut weights, mut diff]) = outputs();
    for ((norm, src), dst) in norms.iter().zip(&src).zip(&mut apart) {
        norm.execute(&stream, ForwardArgs::new(src, dst)).unwrap();
    }
    softmax.execute(&stream, softmax::ForwardArgs::new(&scores, &mut weights)).unwrap();
    let args = BackwardArgs::new(&scores, &scores, &mut diff).variance(&variance);
    backward.execute(&stream, args).unwrap();

    for stream in [&stream, &pooled] {
        let (mut heads, [mut their_weights, mut their_diff]) = outputs();
        let [q, k, v] = &mut heads;
        let calls = [
            norms[0].with(ForwardArgs::new(&src[0], q)).unwrap(),
            norms[1].with(ForwardArgs::new(&src[1], k)).unwrap(),
            norms[2].with(ForwardArgs::new(&src[2], v)).unwrap(),
            softmax.with(softmax::ForwardArgs::new(&scores, &mut their_weights)).unwrap(),
            backward
                .with(BackwardArgs::new(&scores, &scores, &mut their_diff).variance(&variance))
                .unwrap(),
        ];
        for _ in 0..3 {
            stream.execute_many(&calls).unwrap();
        }
        drop(calls);
        for (one, other) in apart.iter().zip(&heads) {
            assert_eq!(bits(&elements::<bf16>(one)), bits(&elements::<bf16>(other)));
        }
        for (one, other) in [(&weights, &their_weights), (&diff, &their_diff)] {
            assert_eq!(bits(&elements::<f32>(one)), bits(&elements::<f32>(other)));
        }
    }
    stream.execute_many(&[]).unwrap();
}

/// Both directions of a group normalization.
#[test]
fn group_normalizations_together() {
    use group_normalization::{Backward, Forward};
    let engine = Engine::cpu().unwrap();
    let stream = Stream::new(&engine).unwrap();
    let (desc, shape, flags) = (dense::<f32>(&[4, 6, 35]), [4, 6, 35], Flags::RMS_NORM);
    let src = memory(&engine, &shape, &numbers::<f32>(6, 4 * 6 * 35, -2.0, 2.0));
    let variance = memory(&engine, &[4, 3], &numbers::<f32>(7, 12, 0.5, 2.0));
    let forward = Forward::inference(&engine, &desc, 3).flags(flags).build().unwrap();
    let backward = Backward::data(&engine, &desc, 3).flags(flags).build().unwrap();
    let outputs = || [&desc, &desc].map(|desc| Memory::new(&engine, desc).unwrap());

    let [mut dst, mut diff] = outputs();
    forward.execute(&stream, ForwardArgs::new(&src, &mut dst)).unwrap();
    let args = BackwardArgs::new(&src, &src, &mut diff).variance(&variance);
    backward.execute(&stream, args).unwrap();
    let [mut their_dst, mut their_diff] = outputs();
    let args = BackwardArgs::new(&src, &src, &mut their_diff).variance(&variance);
    stream
        .execute_many(&[
            forward.with(ForwardArgs::new(&src, &mut their_dst)).unwrap(),
            backward.with(args).unwrap(),
        ])
        .unwrap();
    for (one, other) in [(&dst, &their_dst), (&diff, &their_diff)] {
        assert_eq!(bits(&elements::<f32>(one)), bits(&elements::<f32>(other)));
    }
    let error = backward.with(BackwardArgs::new(&src, &src, &mut diff)).unwrap_err();
    assert_eq!(error.argument(), Some("variance"));
}

/// A call is checked when it is made.
#[test]
fn arguments_are_checked_before() {
    let engine = Engine::cpu().unwrap();
    let desc = dense::<f32>(&[4, 8]);
    let norm = Forward::inference(&engine, &desc).flags(Flags::SCALE).build().unwrap();
    let src = memory(&engine, &[4, 8], &[1.0f32; 32]);
    let mut dst = Memory::new(&engine, &desc).unwrap();
    let error = norm.with(ForwardArgs::new(&src, &mut dst)).unwrap_err();
    assert_eq!((error.kind(), error.argument()), (ErrorKind::InvalidArguments, Some("scale")));
}
