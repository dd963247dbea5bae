//! Normalization over several trailing dimensions and along other axes, compared with loops.

use norm_rs::layer_normalization::{Flags, Forward, ForwardArgs};
use norm_rs::{Engine, ErrorKind, Memory, MemoryDesc, Stream, bf16};

use crate::data::*;

/// RMS or layer normalization of one row in f64.
fn normalized(row: &[f64], rms_norm: bool, epsilon: f64) -> Vec<f64> {
    let count = row.len() as f64;
    let mean = if rms_norm { 0.0 } else { row.iter().sum::<f64>() / count };
    let square = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
    row.iter().map(|x| (x - mean) / (square + epsilon).sqrt()).collect()
}

/// The elements of a dense tensor along an axis, for each index of the others.
fn lines(dims: &[usize], axis: usize) -> Vec<Vec<usize>> {
    let inner: usize = dims[axis + 1..].iter().product();
    let outer: usize = dims[..axis].iter().product();
    let line = |o: usize, i: usize| {
        (0..dims[axis]).map(|at| (o * dims[axis] + at) * inner + i).collect::<Vec<_>>()
    };
    (0..outer).flat_map(|o| (0..inner).map(move |i| (o, i))).map(|(o, i)| line(o, i)).collect()
}

#[test]
fn along_every_axis() {
    let dims = [2, 5, 3, 4];
    let src: Vec<f32> = numbers(1, 120, -2.0, 3.0);
    for axis in 0..4 {
        let scale: Vec<f32> = numbers(2, dims[axis], 0.5, 2.0);
        let shift: Vec<f32> = numbers(3, dims[axis], -1.0, 1.0);
        for rms_norm in [false, true] {
            let mut dst = [0f32; 120];
            let run = if rms_norm { norm_rs::rms_norm_axis } else { norm_rs::layer_norm_axis };
            run(&src, &dims, axis, Some(&scale), Some(&shift), 1e-3, &mut dst).unwrap();
            for line in lines(&dims, axis) {
                let row: Vec<f64> = line.iter().map(|at| src[*at].into()).collect();
                for ((at, x), i) in line.iter().zip(normalized(&row, rms_norm, 1e-3)).zip(0..) {
                    let expected = x * f64::from(scale[i]) + f64::from(shift[i]);
                    assert!((f64::from(dst[*at]) - expected).abs() < 1e-5, "axis {axis} at {at}");
                }
            }
        }
    }
}

/// The last axis gives the bits of rows, and descriptors with the axis last those of the slices.
#[test]
fn axes_and_rows_have_the_same_bits() {
    let (dims, engine) = ([3, 40, 7], Engine::cpu().unwrap());
    let src: Vec<bf16> = numbers(1, 840, -2.0, 3.0);
    let none = None::<&[f32]>;
    let [mut rows, mut axis] = [(); 2].map(|()| vec![bf16::ZERO; 840]);
    norm_rs::rms_norm(&src, 7, none, None, 1e-5, &mut rows).unwrap();
    norm_rs::rms_norm_axis(&src, &dims, 2, none, None, 1e-5, &mut axis).unwrap();
    assert_eq!(bits(&rows), bits(&axis));

    norm_rs::rms_norm_axis(&src, &dims, 1, none, None, 1e-5, &mut axis).unwrap();
    let desc = dense::<bf16>(&dims).with_axis_last(1).unwrap();
    assert_eq!(&*desc.dims(), [3, 7, 40]);
    let norm = Forward::inference(&engine, &desc).flags(Flags::RMS_NORM).build().unwrap();
    let src = Memory::from_slice(&engine, &desc, &src).unwrap();
    let mut dst = Memory::from_mut_slice(&engine, &desc, &mut rows).unwrap();
    norm.execute(&Stream::new(&engine).unwrap(), ForwardArgs::new(&src, &mut dst)).unwrap();
    drop(dst);
    assert_eq!(bits(&rows), bits(&axis));
}

#[test]
fn over_trailing_dimensions() {
    let src: Vec<f32> = numbers(1, 120, -2.0, 3.0);
    for (shape, cols) in [(&[4][..], 4), (&[3, 4], 12), (&[5, 3, 4], 60), (&[2, 5, 3, 4], 120)] {
        let scale: Vec<f32> = numbers(2, cols, 0.5, 2.0);
        let [mut rows, mut shaped] = [[0f32; 120]; 2];
        norm_rs::layer_norm(&src, cols, Some(&scale), None, 1e-5, &mut rows).unwrap();
        let scale = Some(&scale[..]);
        norm_rs::layer_norm_normalized_shape(&src, shape, scale, None, 1e-5, &mut shaped).unwrap();
        assert_eq!(bits(&rows), bits(&shaped));
        norm_rs::rms_norm(&src, cols, scale, None, 1e-5, &mut rows).unwrap();
        norm_rs::rms_norm_normalized_shape(&src, shape, scale, None, 1e-5, &mut shaped).unwrap();
        assert_eq!(bits(&rows), bits(&shaped));
    }
    let desc = dense::<f32>(&[2, 5, 3, 4]);
    assert_eq!(&*desc.normalized_shape(2).unwrap().dims(), [2, 5, 12]);
    assert_eq!(&*desc.normalized_shape(4).unwrap().dims(), [120]);
}

#[test]
fn what_does_not_fit_is_refused() {
    let (src, mut dst, none) = ([1f32; 12], [0f32; 12], None::<&[f32]>);
    let refused = |result: norm_rs::Result<()>, argument: &str| {
        let error = result.unwrap_err();
        assert_eq!((error.kind(), error.argument()), (ErrorKind::InvalidArguments, Some(argument)));
    };
    refused(norm_rs::layer_norm_axis(&src, &[3, 4], 2, none, None, 0.0, &mut dst), "axis");
    let error = norm_rs::layer_norm_axis(&src, &[3, 4], 2, none, None, 0.0, &mut dst).unwrap_err();
    assert_eq!(error.to_string(), "axis is 2, but dims has 2 dimensions; pass 0 to 1");
    refused(norm_rs::layer_norm_axis(&src, &[], 0, none, None, 0.0, &mut dst), "dims");
    refused(norm_rs::layer_norm_axis(&src, &[3, 5], 1, none, None, 0.0, &mut dst), "src");
    refused(norm_rs::rms_norm_axis(&src, &[3, 4], 1, none, None, 0.0, &mut dst[1..]), "dst");
    let short = Some(&[1f32; 3][..]);
    refused(norm_rs::rms_norm_axis(&src, &[3, 4], 1, short, None, 0.0, &mut dst), "scale");
    let huge = [usize::MAX, 2, 4];
    refused(norm_rs::rms_norm_axis(&src, &huge, 2, none, None, 0.0, &mut dst), "dims");
    refused(
        norm_rs::rms_norm_normalized_shape(&src, &[], none, None, 0.0, &mut dst),
        "normalized_shape",
    );
    refused(norm_rs::rms_norm_normalized_shape(&src, &[5], none, None, 0.0, &mut dst), "src");
    assert_eq!(dst, [0f32; 12]);
    let desc: MemoryDesc = dense::<f32>(&[3, 4]);
    for error in [
        desc.normalized_shape(0).unwrap_err(),
        desc.normalized_shape(3).unwrap_err(),
        desc.with_axis_last(2).unwrap_err(),
        desc.permute_axes(&[0]).unwrap_err(),
        desc.permute_axes(&[0, 0]).unwrap_err(),
        desc.reshape(&[5]).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::InvalidArguments, "{error}");
    }
}
