//! One training step of RMS normalization with bf16 rows and an f32 scale.
//! `cargo run --release -p norm-rs --example mixed_precision`

use norm_rs::{Gradients, Result, bf16, rms_norm_backward, rms_norm_training};

const ROWS: usize = 8;
const COLS: usize = 64;
const EPSILON: f32 = 1e-5;

fn main() -> Result<()> {
    let x: Vec<bf16> = (0..ROWS * COLS).map(|i| bf16::from_f32((i as f32 * 0.37).sin())).collect();
    let mut scale = vec![1f32; COLS];

    // Arithmetic is f32, and each result is rounded once.
    let mut y = vec![bf16::ZERO; x.len()];
    let statistics = rms_norm_training(&x, COLS, Some(&scale), None, EPSILON, &mut y)?;

    // The loss is half the sum of the squares of y; its gradient is y.
    let mut diff_x = vec![bf16::ZERO; x.len()];
    let mut diff_scale = vec![0f32; COLS];
    let gradients = Gradients { diff_scale: Some(&mut diff_scale), diff_shift: None };
    rms_norm_backward(&x, &statistics, Some(&scale), &y, &mut diff_x, gradients)?;
    for (scale, diff) in scale.iter_mut().zip(&diff_scale) {
        *scale -= 0.01 * diff;
    }

    let loss = |y: &[bf16]| y.iter().map(|y| y.to_f32().powi(2) / 2.0).sum::<f32>();
    let before = loss(&y);
    norm_rs::rms_norm(&x, COLS, Some(&scale), None, EPSILON, &mut y)?;
    println!("loss {before:.2} -> {:.2}", loss(&y));
    assert!((before - (ROWS * COLS) as f32 / 2.0).abs() < 2.0, "the rows have unit RMS");
    assert!(loss(&y) < 0.9 * before, "a step reduces the loss");
    Ok(())
}
