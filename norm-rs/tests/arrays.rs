//! Functions on arrays give the bits of the functions on slices, for any strides.

use ndarray::{
    Array, Array1, Array2, Array3, ArrayD, ArrayRef, ArrayRef1, ArrayView2, Dimension, IxDyn,
    array, s,
};
use norm_rs::ndarray::{
    Gradients, layer_norm, layer_norm_backward, layer_norm_training, log_softmax,
    log_softmax_backward, rms_norm, rms_norm_backward, rms_norm_training, softmax,
    softmax_backward,
};
use norm_rs::{ErrorKind, Result, Statistics, bf16};

const EPSILON: f32 = 1e-3;
const NONE: Option<&ArrayRef1<f32>> = None;

fn number(i: usize) -> f32 {
    (i as f32 * 0.73).sin() * 3.0 + 0.5
}

fn numbers<D: Dimension>(dim: impl ndarray::ShapeBuilder<Dim = D>) -> Array<f32, D> {
    let mut next = 0;
    Array::from_shape_simple_fn(dim, || {
        next += 1;
        number(next)
    })
}

fn bits(elements: impl IntoIterator<Item = f32>) -> Vec<u32> {
    elements.into_iter().map(f32::to_bits).collect()
}

/// The elements in the order of the indices.
fn dense<D: Dimension>(array: &ArrayRef<f32, D>) -> Vec<f32> {
    array.iter().copied().collect()
}

fn scale_and_shift(cols: usize) -> (Array1<f32>, Array1<f32>) {
    (numbers(cols), numbers(cols).mapv(|x| 1.0 - x))
}

/// Checks forward and backward of both normalizations on a view, with results in views of another
/// layout.
fn check<D: Dimension>(
    src: &ArrayRef<f32, D>,
    diff_dst: &ArrayRef<f32, D>,
    dst: &mut ArrayRef<f32, D>,
) {
    let cols = *src.shape().last().unwrap();
    let (scale, shift) = scale_and_shift(cols);
    let (x, d) = (dense(src), dense(diff_dst));
    let (gamma, beta) = (Some(scale.as_slice().unwrap()), Some(shift.as_slice().unwrap()));
    for rms in [false, true] {
        let mut expected = vec![0f32; x.len()];
        let mut sums = [vec![0f32; cols], vec![0f32; cols]];
        let mut own = [Array1::zeros(cols), Array1::zeros(cols)];
        let [scale_sum, shift_sum] = &mut sums;
        let flat = norm_rs::Gradients {
            diff_scale: Some(&mut scale_sum[..]),
            diff_shift: Some(&mut shift_sum[..]),
        };
        let [own_scale, own_shift] = &mut own;
        let gradients = Gradients { diff_scale: Some(own_scale), diff_shift: Some(own_shift) };
        let (s, b) = (Some(&*scale), Some(&*shift));
        let statistics: Statistics;
        if rms {
            let wanted =
                norm_rs::rms_norm_training(&x, cols, gamma, beta, EPSILON, &mut expected).unwrap();
            statistics = rms_norm_training(src, s, b, EPSILON, dst).unwrap();
            assert_eq!(statistics, wanted);
            assert_eq!(bits(dense(dst)), bits(expected.clone()));
            dst.fill(9.0);
            rms_norm(src, s, b, EPSILON, dst).unwrap();
            assert_eq!(bits(dense(dst)), bits(expected.clone()));
            norm_rs::rms_norm_backward(&x, &wanted, gamma, &d, &mut expected, flat).unwrap();
            rms_norm_backward(src, &statistics, s, diff_dst, dst, gradients).unwrap();
        } else {
            let wanted =
                norm_rs::layer_norm_training(&x, cols, gamma, beta, EPSILON, &mut expected)
                    .unwrap();
            statistics = layer_norm_training(src, s, b, EPSILON, dst).unwrap();
            assert_eq!(statistics, wanted);
            assert_eq!(bits(dense(dst)), bits(expected.clone()));
            dst.fill(9.0);
            layer_norm(src, s, b, EPSILON, dst).unwrap();
            assert_eq!(bits(dense(dst)), bits(expected.clone()));
            norm_rs::layer_norm_backward(&x, &wanted, gamma, &d, &mut expected, flat).unwrap();
            layer_norm_backward(src, &statistics, s, diff_dst, dst, gradients).unwrap();
        }
        assert_eq!(bits(dense(dst)), bits(expected));
        for (own, sum) in own.iter().zip(sums) {
            assert_eq!(bits(dense(own)), bits(sum));
        }
    }
}

#[test]
fn dense_arrays_of_one_to_five_dimensions() {
    for dims in [&[24][..], &[5, 24], &[2, 3, 24], &[2, 1, 3, 24], &[2, 1, 3, 2, 7]] {
        let shape = IxDyn(dims);
        check(&numbers(shape.clone()), &numbers(shape.clone()), &mut ArrayD::zeros(shape));
    }
}

#[test]
fn views_with_strides() {
    // Rows and columns of a larger array. The result omits every other column.
    let whole = numbers((9, 40));
    let part = whole.slice(s![1..;2, 3..20]);
    let mut room = Array2::from_elem((4, 34), 9f32);
    check(&part, &whole.slice(s![..4, 20..37]), &mut room.slice_mut(s![.., ..;2]));
    assert!(room.slice(s![.., 1..;2]).iter().all(|&x| x == 9.0), "gaps are the caller's");

    // Transposed and permuted.
    check(&whole.t(), &numbers((40, 9)), &mut numbers((9, 40)).reversed_axes());
    let cube = numbers((4, 5, 6));
    let turned = cube.view().permuted_axes([2, 0, 1]);
    check(&turned, &numbers((6, 4, 5)), &mut numbers((5, 6, 4)).permuted_axes([1, 2, 0]));

    // One row, repeated.
    let row = numbers(12);
    let rows: ArrayView2<'_, f32> = row.broadcast((3, 12)).unwrap();
    check(&rows, &rows, &mut Array2::zeros((3, 12)));
}

#[test]
fn softmax_along_each_axis() {
    let x = numbers((4, 5, 6));
    let d = numbers((4, 5, 6)).mapv(|x| x - 1.0);
    for axis in 0..3 {
        // The axis last, and dense.
        let mut order = vec![0, 1, 2];
        order.remove(axis);
        order.push(axis);
        let last = |array: &Array3<f32>| {
            let order = [order[0], order[1], order[2]];
            dense(&array.view().permuted_axes(order))
        };
        let cols = x.shape()[axis];
        let (mut y, mut g) = (Array3::<f32>::zeros(x.dim()), Array3::<f32>::zeros(x.dim()));
        let (mut flat_y, mut flat_g) = (vec![0f32; x.len()], vec![0f32; x.len()]);

        softmax(&x, axis, &mut y).unwrap();
        norm_rs::softmax(&last(&x), cols, &mut flat_y).unwrap();
        assert_eq!(bits(last(&y)), bits(flat_y.clone()), "axis {axis}");
        softmax_backward(&y, axis, &d, &mut g).unwrap();
        norm_rs::softmax_backward(&flat_y, cols, &last(&d), &mut flat_g).unwrap();
        assert_eq!(bits(last(&g)), bits(flat_g.clone()), "axis {axis}");

        log_softmax(&x, axis, &mut y).unwrap();
        norm_rs::log_softmax(&last(&x), cols, &mut flat_y).unwrap();
        assert_eq!(bits(last(&y)), bits(flat_y.clone()), "axis {axis}");
        log_softmax_backward(&y, axis, &d, &mut g).unwrap();
        norm_rs::log_softmax_backward(&flat_y, cols, &last(&d), &mut flat_g).unwrap();
        assert_eq!(bits(last(&g)), bits(flat_g), "axis {axis}");
    }
}

#[test]
fn types_apart() {
    let x = array![[1f32, 7.0], [-7.0, 1.0]];
    let half = x.mapv(bf16::from_f32);
    let mut y = Array2::<f64>::zeros((2, 2));
    rms_norm(&half, Some(&array![1f32, 2.0]), None, 0.0, &mut y).unwrap();
    let expected = array![[0.2, 2.8], [-1.4, 0.4]];
    assert!((y - expected).iter().all(|x| x.abs() < 1e-6));
}

#[track_caller]
fn refused<T>(result: Result<T>, expected: &str) {
    let error = result.err().expect("a mistake");
    assert_eq!(error.kind(), ErrorKind::InvalidArguments, "{error}");
    assert_eq!(error.to_string(), expected);
}

#[test]
fn mistakes_are_named_and_nothing_is_written() {
    let x = numbers((2, 3));
    let mut y = Array2::from_elem((2, 3), 9f32);
    let mut turned = Array2::from_elem((3, 2), 9f32);
    refused(
        rms_norm(&x, NONE, None, 1e-5, &mut turned),
        "dst is [3, 2], but src [2, 3]; pass equal shapes",
    );
    refused(
        softmax_backward(&x, 0, &turned, &mut y),
        "diff_dst is [3, 2], but dst [2, 3]; pass equal shapes",
    );
    refused(
        layer_norm(&x.slice(s![..;-1, ..]), NONE, None, 1e-5, &mut y),
        "src has axis 0 backwards; copy it with as_standard_layout()",
    );
    refused(
        softmax(&x, 1, &mut y.slice_mut(s![.., ..;-1])),
        "dst has axis 1 backwards; copy it with as_standard_layout()",
    );
    let every_other = numbers(6);
    refused(
        rms_norm(&x, Some(&every_other.slice(s![..;2])), None, 1e-5, &mut y),
        "scale is not contiguous; copy it with as_standard_layout()",
    );
    refused(
        rms_norm(&x, NONE, Some(&numbers(2)), 1e-5, &mut y),
        "shift has 2 elements; pass one for each of the 3 columns",
    );
    let deep = ArrayD::<f32>::zeros(IxDyn(&[1, 1, 1, 1, 2, 3]));
    refused(
        rms_norm(&deep, NONE, None, 1e-5, &mut deep.clone()),
        "src has 6 dimensions, not 1 to 5; change them with into_shape_with_order()",
    );
    let point = ArrayD::<f32>::zeros(IxDyn(&[]));
    refused(
        softmax(&point, 0, &mut point.clone()),
        "src has 0 dimensions, not 1 to 6; change them with into_shape_with_order()",
    );
    let other = Statistics::of_rms_norm(3, 1e-5, vec![1.0]).unwrap();
    refused(
        rms_norm_backward(&x, &other, NONE, &x, &mut y, Gradients::none()),
        "statistics are those of 1 rows of 3, but src has 2 rows of 3; pass those of the forward \
         pass of this src",
    );
    let axis = softmax(&x, 2, &mut y);
    assert_eq!(axis.as_ref().unwrap_err().argument(), Some("axis"));
    refused(axis, "axis: 2 is not one of the 2 dimensions of src, which count from 0");
    assert!(y.iter().chain(&turned).all(|&x| x == 9.0));
}
