//! Normalizes the heads of a packed tensor and applies softmax along another axis, on views of
//! `ndarray` without a copy. `cargo run --release -p norm-rs --features ndarray --example arrays`

use ndarray::{Array, Array3, Axis, s};
use norm_rs::ndarray::{layer_norm, rms_norm, softmax};

// ANCHOR: neither
/// Layer normalization of the last axis, with neither scale nor shift.
fn plain(x: &Array3<f32>) -> norm_rs::Result<Array3<f32>> {
    let mut y = Array3::zeros(x.dim());
    layer_norm(x, None::<&ndarray::ArrayRef1<f32>>, None, 1e-5, &mut y)?;
    Ok(y)
}
// ANCHOR_END: neither

const TOKENS: usize = 6;
const HEADS: usize = 2;
const WIDTH: usize = 16;

fn main() -> norm_rs::Result<()> {
    // Each token has the query, key and value of each head, one after the other.
    let packed = Array::from_shape_fn((TOKENS, 3 * HEADS, WIDTH), |(t, h, c)| {
        ((t * 31 + h * 7 + c) as f32 * 0.3).sin()
    });
    let scale = Array::from_elem(WIDTH, 2f32);

    // The queries are a part of every token: a view with gaps.
    let queries = packed.slice(s![.., ..HEADS, ..]);
    let mut normalized = Array3::<f32>::zeros(queries.dim());
    rms_norm(&queries, Some(&scale), None, 1e-5, &mut normalized)?;
    let head = normalized.slice(s![3, 1, ..]);
    let rms = (head.iter().map(|x| x * x).sum::<f32>() / WIDTH as f32).sqrt();
    println!("RMS of a head: {rms:.4}");
    assert!((rms - 2.0).abs() < 1e-3);

    // Weights over the tokens, and a transposed result.
    let mut weights = Array3::<f32>::zeros((WIDTH, HEADS, TOKENS));
    softmax(&queries, 0, &mut weights.view_mut().reversed_axes())?;
    let normalized = plain(&normalized)?;
    assert!(normalized.slice(s![3, 1, ..]).sum().abs() < 1e-4);
    let sums = weights.sum_axis(Axis(2));
    println!("sums over tokens: {:.4} ... {:.4}", sums[[0, 0]], sums[[WIDTH - 1, HEADS - 1]]);
    assert!(sums.iter().all(|sum| (sum - 1.0).abs() < 1e-5));
    Ok(())
}
