//! Softmax: the objects and the functions on slices, compared with f64 loops.

use norm_rs::attr::Attr;
use norm_rs::post_ops::{Eltwise, PostOps};
use norm_rs::primitive::Arg;
use norm_rs::softmax::{Algorithm, Backward, BackwardArgs, Forward, ForwardArgs};
use norm_rs::{
    DataType, Engine, ErrorKind, Memory, MemoryDesc, Result, Stream, Tag, bf16, f16, log_softmax,
    log_softmax_backward, log_softmax_backward_in_place, log_softmax_in_place, softmax,
    softmax_backward, softmax_backward_in_place, softmax_in_place,
};

use crate::data::*;
use crate::oracle::Expected;

/// 4 ulp of f32, which is more than the documented error of a result.
const RESULT: f64 = 1.0 / (1u32 << 21) as f64;
/// The documented error of a gradient, relative to its terms.
const TERMS: f64 = 1.0 / (1u32 << 22) as f64;

/// dst of rows of `cols`.
fn forward(algorithm: Algorithm, src: &[f64], cols: usize) -> Vec<Expected> {
    let row = |x: &[f64]| {
        let max = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = x.iter().map(|x| (x - max).exp()).sum();
        let value = move |x: &f64| match algorithm {
            Algorithm::Log => ((x - max) - sum.ln(), RESULT * (1.0 + (x - max).abs())),
            _ => {
                let value = (x - max).exp() / sum;
                (value, RESULT * value * (1.0 + (x - max).abs()))
            }
        };
        x.iter().map(value).collect::<Vec<_>>()
    };
    src.chunks(cols).flat_map(row).collect()
}

/// diff_src of rows of `cols`.
fn backward(algorithm: Algorithm, dst: &[f64], diff_dst: &[f64], cols: usize) -> Vec<Expected> {
    let row = |(y, d): (&[f64], &[f64])| {
        let weight = |c: usize| if algorithm == Algorithm::Log { 1.0 } else { y[c] };
        let sum: f64 = (0..cols).map(|c| d[c] * weight(c)).sum();
        let terms: f64 = (0..cols).map(|c| (d[c] * weight(c)).abs()).sum();
        let value = |c: usize| match algorithm {
            Algorithm::Log => {
                (d[c] - y[c].exp() * sum, TERMS * (d[c].abs() + y[c].exp() * terms * 4.0))
            }
            _ => (y[c] * (d[c] - sum), TERMS * y[c].abs() * (d[c].abs() + terms)),
        };
        (0..cols).map(value).collect::<Vec<_>>()
    };
    dst.chunks(cols).zip(diff_dst.chunks(cols)).flat_map(row).collect()
}

/// The functions of one algorithm.
#[expect(clippy::type_complexity, reason = "each signature appears once, here")]
struct Functions<S, D> {
    algorithm: Algorithm,
    to: fn(&[S], usize, &mut [D]) -> Result<()>,
    in_place: fn(&mut [S], usize) -> Result<()>,
    backward: fn(&[D], usize, &[S], &mut [D]) -> Result<()>,
    backward_in_place: fn(&[D], usize, &mut [S]) -> Result<()>,
}

fn functions<S: Number, D: Number>() -> [Functions<S, D>; 2] {
    [
        Functions {
            algorithm: Algorithm::Accurate,
            to: softmax,
            in_place: softmax_in_place,
            backward: softmax_backward,
            backward_in_place: softmax_backward_in_place,
        },
        Functions {
            algorithm: Algorithm::Log,
            to: log_softmax,
            in_place: log_softmax_in_place,
            backward: log_softmax_backward,
            backward_in_place: log_softmax_backward_in_place,
        },
    ]
}

fn check_slices<S: Number, D: Number>() {
    for functions in functions::<S, D>() {
        let algorithm = functions.algorithm;
        for (rows, cols) in [(1, 1), (4, 3), (3, 16), (2, 33), (7, 130)] {
            let name = format!("{algorithm:?} {}:{} {rows}x{cols}", S::DATA_TYPE, D::DATA_TYPE);
            let src: Vec<S> = numbers(11, rows * cols, -4.0, 4.0);
            let expected = forward(algorithm, &f64s(&src), cols);
            let mut dst = vec![D::default(); src.len()];
            (functions.to)(&src, cols, &mut dst).unwrap();
            assert_close(&name, &dst, &expected);
            let mut src_dst = src.clone();
            (functions.in_place)(&mut src_dst, cols).unwrap();
            assert_close(&name, &src_dst, &expected);

            let diff_dst: Vec<S> = numbers(12, rows * cols, -1.0, 2.0);
            let expected = backward(algorithm, &f64s(&dst), &f64s(&diff_dst), cols);
            let mut diff_src = vec![D::default(); src.len()];
            (functions.backward)(&dst, cols, &diff_dst, &mut diff_src).unwrap();
            assert_close(&name, &diff_src, &expected);
            let mut diff = diff_dst.clone();
            (functions.backward_in_place)(&dst, cols, &mut diff).unwrap();
            assert_close(&name, &diff, &expected);
        }
    }
}

#[test]
fn slices() {
    check_slices::<f32, f32>();
    check_slices::<bf16, bf16>();
    check_slices::<f16, f16>();
    check_slices::<f32, bf16>();
    check_slices::<f16, f32>();
    check_slices::<f64, f64>();
    check_slices::<f64, f32>();
}

#[test]
fn wrong_lengths_are_named_and_nothing_is_written() {
    fn message(result: Result<()>) -> String {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArguments, "{error}");
        error.to_string()
    }
    let (src, mut dst) = ([1f32; 6], [9f32; 6]);
    let zero = message(softmax(&src, 0, &mut dst));
    assert_eq!(zero, "cols is 0; pass the number of elements of a row");
    let part = message(softmax(&src, 4, &mut dst));
    assert_eq!(part, "src has 6 elements; pass rows x 4 (cols)");
    let short = message(log_softmax(&src, 3, &mut dst[..3]));
    assert_eq!(short, "dst has 3 elements; pass 2 rows of 3, 6 elements");
    let short = message(softmax_backward(&src, 3, &src[..3], &mut dst));
    assert_eq!(short, "diff_dst has 3 elements; pass 2 rows of 3, 6 elements");
    let short = message(log_softmax_backward(&src, 3, &src, &mut dst[..3]));
    assert_eq!(short, "diff_src has 3 elements; pass 2 rows of 3, 6 elements");
    let part = message(softmax_in_place(&mut dst, 4));
    assert_eq!(part, "src_dst has 6 elements; pass rows x 4 (cols)");
    let short = message(softmax_backward_in_place(&src, 3, &mut dst[..3]));
    assert_eq!(short, "diff has 3 elements; pass 2 rows of 3, 6 elements");
    assert_eq!(dst, [9.0; 6]);
}

/// The elements of a column-major matrix in row-major order.
fn turned(elements: &[f32], rows: usize, cols: usize) -> Vec<f32> {
    (0..rows * cols).map(|i| elements[i % cols * rows + i / cols]).collect()
}

#[test]
fn objects_along_any_axis_and_layout() {
    let engine = Engine::cpu().unwrap();
    let stream = Stream::new(&engine).unwrap();
    let (rows, cols) = (5, 7);
    let x: Vec<f32> = numbers(13, rows * cols, -3.0, 3.0);
    let d: Vec<f32> = numbers(14, rows * cols, -1.0, 2.0);
    for algorithm in [Algorithm::Accurate, Algorithm::Log] {
        for axis in [0, 1] {
            // Axis 0 of the transposed tensor is axis 1 in memory.
            let (dims, tag) =
                if axis == 1 { ([rows, cols], Tag::Ab) } else { ([cols, rows], Tag::Ba) };
            let desc = MemoryDesc::with_tag(&dims, DataType::F32, tag).unwrap();
            let forward_pass =
                Forward::new(&engine, &desc, axis).algorithm(algorithm).build().unwrap();
            assert_eq!((forward_pass.algorithm(), forward_pass.axis()), (algorithm, axis));
            let src = Memory::from_slice(&engine, &desc, &x).unwrap();
            let mut dst = Memory::new(&engine, &desc).unwrap();
            forward_pass.execute(&stream, ForwardArgs::new(&src, &mut dst)).unwrap();
            let expected = forward(algorithm, &f64s(&x), cols);
            assert_close("dst", dst.as_slice::<f32>().unwrap(), &expected);

            let pass = Backward::new(&engine, &desc, axis).algorithm(algorithm).build().unwrap();
            assert_eq!((pass.algorithm(), pass.axis()), (algorithm, axis));
            assert!(!pass.primitive().writes(Arg::Dst) && pass.primitive().writes(Arg::DiffSrc));
            let diff_dst = Memory::from_slice(&engine, &desc, &d).unwrap();
            let mut diff_src = Memory::new(&engine, &desc).unwrap();
            let args = BackwardArgs::new(&dst, &diff_dst, &mut diff_src);
            pass.execute(&stream, args).unwrap();
            let y = f64s(dst.as_slice::<f32>().unwrap());
            let expected = backward(algorithm, &y, &f64s(&d), cols);
            assert_close("diff_src", diff_src.as_slice::<f32>().unwrap(), &expected);

            let mut in_place = Memory::new(&engine, &desc).unwrap();
            in_place.copy_from_slice(&d).unwrap();
            pass.execute(&stream, BackwardArgs::in_place(&dst, &mut in_place)).unwrap();
            let (got, wanted) = (in_place.as_slice::<f32>(), diff_src.as_slice::<f32>());
            assert_eq!(bits(got.unwrap()), bits(wanted.unwrap()));
            in_place.copy_from_slice(&x).unwrap();
            forward_pass.execute(&stream, ForwardArgs::in_place(&mut in_place)).unwrap();
            let (got, wanted) = (in_place.as_slice::<f32>(), dst.as_slice::<f32>());
            assert_eq!(bits(got.unwrap()), bits(wanted.unwrap()));
        }
    }
    // The other layout for dst.
    let row_major = dense::<f32>(&[rows, cols]);
    let other = MemoryDesc::with_tag(&[rows, cols], DataType::F32, Tag::Ba).unwrap();
    let pass = Forward::new(&engine, &row_major, 1).dst(&other).build().unwrap();
    let src = Memory::from_slice(&engine, &row_major, &x).unwrap();
    let mut dst = Memory::new(&engine, &other).unwrap();
    pass.execute(&stream, ForwardArgs::new(&src, &mut dst)).unwrap();
    let got = turned(dst.as_slice().unwrap(), rows, cols);
    assert_close("dst", &got, &forward(Algorithm::Accurate, &f64s(&x), cols));
}

#[test]
fn attributes() {
    let engine = Engine::cpu().unwrap();
    let stream = Stream::new(&engine).unwrap();
    let (desc, bytes) = (dense::<f32>(&[1, 4]), dense::<u8>(&[1, 4]));
    let mut attr = Attr::new().unwrap();
    attr.set_scales(Arg::Dst, 0).unwrap();
    let list = PostOps::new().unwrap().eltwise(Eltwise::Linear, 2.0, 0.0).unwrap();
    attr.set_post_ops(&list).unwrap();
    let pass = Forward::new(&engine, &desc, 1).dst(&bytes).attr(&attr).build().unwrap();
    let src = memory(&engine, &[1, 4], &[0f32; 4]);
    let scale = memory(&engine, &[1, 1], &[0.01f32]);
    let mut dst = Memory::new(&engine, &bytes).unwrap();
    pass.execute(&stream, ForwardArgs::new(&src, &mut dst).dst_scale(&scale)).unwrap();
    assert_eq!(elements::<u8>(&dst), [50; 4]);
}

#[test]
fn problems_that_do_not_exist_are_refused() {
    let engine = Engine::cpu().unwrap();
    let desc = dense::<f32>(&[2, 3]);
    let axis = Forward::new(&engine, &desc, 2).build().unwrap_err();
    assert_eq!(axis.kind(), ErrorKind::InvalidArguments);
    assert_eq!(
        axis.to_string(),
        "axis: 2 is not one of the 2 dimensions of src, which count from 0"
    );
    assert_eq!(axis.argument(), Some("axis"));
    let in_c = axis.c_message().unwrap_or_default();
    assert!(
        in_c.starts_with("norm_softmax_forward_primitive_desc_create: softmax_axis: 2"),
        "{in_c}"
    );
    let axis = Forward::new(&engine, &desc, usize::MAX).build().unwrap_err();
    assert_eq!(axis.argument(), Some("axis"), "{axis}");
    let dims = Forward::new(&engine, &desc, 1).dst(&dense::<f32>(&[3, 2])).build().unwrap_err();
    assert_eq!(dims.argument(), Some("dst"), "{dims}");
    let types = Backward::new(&engine, &dense::<u8>(&[2, 3]), 1).build().unwrap_err();
    assert_eq!(types.kind(), ErrorKind::Unimplemented, "{types}");
    let stream = Stream::new(&engine).unwrap();
    let pass = Backward::new(&engine, &desc, 1).build().unwrap();
    let (dst, mut diff_src) = (memory(&engine, &[2, 3], &[1f32; 6]), Memory::new(&engine, &desc));
    let diff_src = diff_src.as_mut().unwrap();
    let other = memory(&engine, &[3, 2], &[1f32; 6]);
    let error = pass.execute(&stream, BackwardArgs::new(&dst, &other, diff_src)).unwrap_err();
    assert_eq!(error.argument(), Some("diff_dst"), "{error}");
}
