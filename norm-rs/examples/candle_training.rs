//! Trains the scale and shift of a layer in candle's graph: libnorm computes the layer and its
//! gradients. `cargo run --release -p norm-rs --features candle --example candle_training`

use candle_core::{Device, Result, Tensor, Var};
use norm_rs::candle::{layer_norm, log_softmax};

const ROWS: usize = 64;
const COLS: usize = 32;
const STEPS: usize = 60;
const LEARNING_RATE: f64 = 0.3;

fn main() -> Result<()> {
    let device = Device::Cpu;
    let numbers: Vec<f32> = (0..ROWS * COLS).map(|i| (i as f32 * 0.7).sin() + 2.0).collect();
    let x = Tensor::from_vec(numbers, (ROWS, COLS), &device)?;
    let target = layer_norm(
        &x,
        Some(&Tensor::full(2f32, COLS, &device)?),
        Some(&Tensor::full(-1f32, COLS, &device)?),
        1e-5,
    )?;

    let scale = Var::ones(COLS, x.dtype(), &device)?;
    let shift = Var::zeros(COLS, x.dtype(), &device)?;
    let mut loss = f32::INFINITY;
    for step in 0..STEPS {
        let y = layer_norm(&x, Some(&scale), Some(&shift), 1e-5)?;
        let distance = ((y - &target)?.sqr()?.sum_all()? / (2 * ROWS) as f64)?;
        loss = distance.to_scalar()?;
        if step % 10 == 0 {
            println!("step {step:2}  loss {loss:.6}");
        }
        let gradients = distance.backward()?;
        for parameter in [&scale, &shift] {
            let gradient = gradients.get(parameter).expect("every variable has a gradient");
            parameter.set(&(parameter.as_tensor() - (gradient * LEARNING_RATE)?)?)?;
        }
    }
    println!("loss {loss:.9}");
    assert!(loss < 1e-6, "the layer has learned");

    // Cross entropy with libnorm's logsoftmax: the gradient of a row sums to 0.
    let logits = Var::from_tensor(&x)?;
    let loss = log_softmax(&logits, 1)?.narrow(1, 3, 1)?.mean_all()?.neg()?;
    let gradient = loss.backward()?.get(&logits).expect("logits are a variable").sum(1)?;
    let largest = gradient.abs()?.max_all()?.to_scalar::<f32>()?;
    println!("largest sum of a row's gradient: {largest:.1e}");
    assert!(largest < 1e-6);
    Ok(())
}
