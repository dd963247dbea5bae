//! Strides, tags, more than two dimensions.

use norm_rs::layer_normalization::{Backward, BackwardArgs, Flags, Forward, ForwardArgs};
use norm_rs::primitive::Arg;
use norm_rs::{DataType, Engine, Memory, MemoryDesc, Stream, Tag};

use crate::data::*;
use crate::oracle::Problem;

const GAP: f32 = -77.0;
const EPSILON: f32 = 1e-3;

/// The offset of each element, in logical order.
fn offsets(dims: &[usize], strides: &[usize]) -> Vec<usize> {
    dims.iter().zip(strides).fold(vec![0], |offsets, (&dim, &stride)| {
        offsets.iter().flat_map(|base| (0..dim).map(move |i| base + i * stride)).collect()
    })
}

/// Memory with the elements of a dense tensor in the layout of a descriptor, and `GAP` in the gaps.
fn laid_out(engine: &Engine, desc: &MemoryDesc, dense: &[f32]) -> Memory<'static> {
    let mut memory = Memory::new(engine, desc).unwrap();
    let buffer = memory.as_mut_slice::<f32>().unwrap();
    buffer.fill(GAP);
    for (offset, &x) in offsets(&desc.dims(), &desc.strides().unwrap()).into_iter().zip(dense) {
        buffer[offset] = x;
    }
    memory
}

/// The elements in logical order. Asserts that the gaps are unchanged.
fn gathered(memory: &Memory<'_>) -> Vec<f32> {
    let desc = memory.desc().unwrap();
    let buffer = memory.as_slice::<f32>().unwrap();
    let offsets = offsets(&desc.dims(), &desc.strides().unwrap());
    for (i, &x) in buffer.iter().enumerate() {
        assert!(offsets.contains(&i) || x == GAP, "the gap at {i} of {desc} was overwritten");
    }
    offsets.into_iter().map(|offset| buffer[offset]).collect()
}

/// Forward and backward with these layouts, and in place.
fn check(src: &MemoryDesc, dst: &MemoryDesc, stats: &MemoryDesc) {
    let dims = src.dims();
    let cols = *dims.last().unwrap();
    let rows = dims.iter().product::<usize>() / cols;
    let flags = Flags::SCALE | Flags::SHIFT;
    let x: Vec<f32> = numbers(1, rows * cols, -1.0, 4.0);
    let diff: Vec<f32> = numbers(2, rows * cols, -1.0, 2.0);
    let (scale, shift): (Vec<f32>, Vec<f32>) =
        (numbers(3, cols, 0.5, 2.5), numbers(4, cols, -3.0, 1.0));
    let problem = Problem {
        flags,
        epsilon: EPSILON.into(),
        cols,
        src: &f64s(&x),
        scale: &f64s(&scale),
        shift: &f64s(&shift),
        mean: &[],
        variance: &[],
    };
    let name = format!("from {src} to {dst}, statistics {stats}");

    let engine = Engine::cpu().unwrap();
    let stream = Stream::new(&engine).unwrap();
    let forward = Forward::training(&engine, src)
        .dst(dst)
        .stats(stats)
        .epsilon(EPSILON)
        .flags(flags)
        .build()
        .unwrap();
    assert_eq!(forward.primitive().arg_desc(Arg::Mean).unwrap().as_ref(), Some(stats));
    let src_memory = laid_out(&engine, src, &x);
    let scale_memory = memory(&engine, &[cols], &scale);
    let shift_memory = memory(&engine, &[cols], &shift);
    let mut dst_memory = laid_out(&engine, dst, &vec![0.0; rows * cols]);
    let mut mean = laid_out(&engine, stats, &vec![0.0; rows]);
    let mut variance = laid_out(&engine, stats, &vec![0.0; rows]);
    let args = ForwardArgs::new(&src_memory, &mut dst_memory)
        .scale(&scale_memory)
        .shift(&shift_memory)
        .mean_out(&mut mean)
        .variance_out(&mut variance);
    forward.execute(&stream, args).unwrap();
    let expected = problem.forward();
    assert_close(&format!("dst {name}"), &gathered(&dst_memory), &expected.dst);
    assert_close(&format!("mean {name}"), &gathered(&mean), &expected.mean);
    assert_close(&format!("variance {name}"), &gathered(&variance), &expected.variance);

    // In backward, diff_src and diff_dst have the layouts of src and dst swapped.
    let backward = Backward::new(&engine, src)
        .diff_dst(dst)
        .diff_src(src)
        .stats(stats)
        .epsilon(EPSILON)
        .flags(flags)
        .build()
        .unwrap();
    let diff_dst = laid_out(&engine, dst, &diff);
    let mut diff_src = laid_out(&engine, src, &vec![0.0; rows * cols]);
    let mut diff_scale = memory(&engine, &[cols], &vec![0f32; cols]);
    let mut diff_shift = memory(&engine, &[cols], &vec![0f32; cols]);
    let args = BackwardArgs::new(&src_memory, &diff_dst, &mut diff_src)
        .mean(&mean)
        .variance(&variance)
        .scale(&scale_memory)
        .diff_scale(&mut diff_scale)
        .diff_shift(&mut diff_shift);
    backward.execute(&stream, args).unwrap();
    let problem =
        Problem { mean: &f64s(&gathered(&mean)), variance: &f64s(&gathered(&variance)), ..problem };
    let expected = problem.backward(&f64s(&diff));
    assert_close(&format!("diff_src {name}"), &gathered(&diff_src), &expected.diff_src);
    assert_close(
        &format!("diff_scale {name}"),
        &elements::<f32>(&diff_scale),
        &expected.diff_scale,
    );
    assert_close(
        &format!("diff_shift {name}"),
        &elements::<f32>(&diff_shift),
        &expected.diff_shift,
    );

    // In place if supported, otherwise rejected.
    let mut src_dst = laid_out(&engine, src, &x);
    let args = ForwardArgs::in_place(&mut src_dst)
        .scale(&scale_memory)
        .shift(&shift_memory)
        .mean_out(&mut mean)
        .variance_out(&mut variance);
    if src == dst {
        forward.execute(&stream, args).unwrap();
        assert_eq!(bits(&gathered(&src_dst)), bits(&gathered(&dst_memory)), "in place {name}");
    } else {
        let error = forward.execute(&stream, args).unwrap_err();
        assert_eq!(error.argument(), Some("dst"), "{error}");
        assert_eq!(gathered(&src_dst), x, "nothing was written");
    }
}

fn strided(dims: &[usize], strides: &[usize]) -> MemoryDesc {
    MemoryDesc::with_strides(dims, DataType::F32, strides).unwrap()
}

fn tagged(dims: &[usize], tag: Tag) -> MemoryDesc {
    MemoryDesc::with_tag(dims, DataType::F32, tag).unwrap()
}

#[test]
fn padded_rows() {
    let stats = stats_desc(&[3]);
    check(&strided(&[3, 21], &[40, 1]), &strided(&[3, 21], &[23, 1]), &stats);
    check(&strided(&[3, 21], &[40, 1]), &strided(&[3, 21], &[40, 1]), &stats);
}

#[test]
fn strided_elements() {
    let stats = strided(&[3], &[2]);
    check(&strided(&[3, 21], &[64, 3]), &strided(&[3, 21], &[21, 1]), &stats);
    check(&strided(&[3, 21], &[1, 5]), &strided(&[3, 21], &[1, 5]), &stats);
}

#[test]
fn tags_in_two_to_five_dimensions() {
    check(&tagged(&[4, 18], Tag::Ba), &tagged(&[4, 18], Tag::Ab), &stats_desc(&[4]));
    let dims = [2, 3, 19];
    check(&tagged(&dims, Tag::TNC), &tagged(&dims, Tag::TNC), &tagged(&[2, 3], Tag::Ab));
    check(&tagged(&dims, Tag::NTC), &tagged(&dims, Tag::Abc), &tagged(&[2, 3], Tag::Ba));
    check(&tagged(&dims, Tag::Cab), &tagged(&dims, Tag::Cab), &tagged(&[2, 3], Tag::Ab));
    let dims = [2, 3, 2, 17];
    check(&tagged(&dims, Tag::Abcd), &tagged(&dims, Tag::Acdb), &tagged(&[2, 3, 2], Tag::Abc));
    check(&tagged(&dims, Tag::Bacd), &tagged(&dims, Tag::Bacd), &tagged(&[2, 3, 2], Tag::Bac));
    let dims = [2, 1, 3, 2, 16];
    let stats = tagged(&[2, 1, 3, 2], Tag::Abcd);
    check(&tagged(&dims, Tag::Abcde), &tagged(&dims, Tag::Abdec), &stats);
}

#[test]
fn broadcast_source_row() {
    // A stride of 0 broadcasts the row, which is valid for an input.
    let engine = Engine::cpu().unwrap();
    let stream = Stream::new(&engine).unwrap();
    let src_desc = strided(&[3, 5], &[0, 1]);
    let dst_desc = dense::<f32>(&[3, 5]);
    let x: Vec<f32> = numbers(1, 5, -1.0, 4.0);
    let src = Memory::from_slice(&engine, &src_desc, &x).unwrap();
    let mut dst = Memory::new(&engine, &dst_desc).unwrap();
    let forward = Forward::inference(&engine, &src_desc).dst(&dst_desc).build().unwrap();
    forward.execute(&stream, ForwardArgs::new(&src, &mut dst)).unwrap();
    let row = Problem {
        flags: Flags::NONE,
        epsilon: 1e-5f32.into(),
        cols: 5,
        src: &f64s(&x),
        scale: &[],
        shift: &[],
        mean: &[],
        variance: &[],
    }
    .forward()
    .dst;
    assert_close("dst", &elements::<f32>(&dst), &[&row[..], &row, &row].concat());

    let error = Forward::inference(&engine, &dst_desc).dst(&src_desc).build().unwrap_err();
    assert_eq!(error.kind(), norm_rs::ErrorKind::InvalidArguments, "{error}");
}
