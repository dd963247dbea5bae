//! Trains scale and shift of a normalization layer: forward, loss, backward, update, with objects that
//! are created once and used in every step. `cargo run --release -p norm-rs --example training_step`.

use norm_rs::layer_normalization::{Backward, BackwardArgs, Flags, Forward, ForwardArgs};
use norm_rs::{DataType, Engine, Memory, MemoryDesc, Result, Stream};

const ROWS: usize = 64;
const COLS: usize = 48;
const EPSILON: f32 = 1e-5;
const STEPS: usize = 60;
const LEARNING_RATE: f32 = 0.3;
/// A loss this small changes by rounding alone.
const ROUNDING: f32 = 1e-9;

#[cfg_attr(test, test)]
fn main() -> Result<()> {
    let engine = Engine::cpu()?;
    let stream = Stream::new(&engine)?;

    // The problem: dense rows in f32, a scale and a shift for each column.
    let rows = MemoryDesc::dense(&[ROWS, COLS], DataType::F32)?;
    let stats = MemoryDesc::dense(&[ROWS], DataType::F32)?;
    let params = MemoryDesc::dense(&[COLS], DataType::F32)?;
    let flags = Flags::SCALE | Flags::SHIFT;
    let forward =
        Forward::training(&engine, &rows).stats(&stats).epsilon(EPSILON).flags(flags).build()?;
    let backward =
        Backward::new(&engine, &rows).stats(&stats).epsilon(EPSILON).flags(flags).build()?;

    // The target has scale 2 and shift -1.
    let x: Vec<f32> = (0..ROWS * COLS).map(|i| (i as f32 * 0.7).sin() + (i as f32).cos()).collect();
    let mut target = vec![0f32; x.len()];
    norm_rs::layer_norm(&x, COLS, Some(&[2f32; COLS]), Some(&[-1.0; COLS]), EPSILON, &mut target)?;

    // Inputs are borrowed; outputs are allocated by the library.
    let src = Memory::from_slice(&engine, &rows, &x)?;
    let mut dst = Memory::new(&engine, &rows)?;
    let (mut mean, mut variance) = (Memory::new(&engine, &stats)?, Memory::new(&engine, &stats)?);
    let (mut scale, mut shift) = (Memory::new(&engine, &params)?, Memory::new(&engine, &params)?);
    scale.copy_from_slice(&[1.0f32; COLS])?;
    let mut diff = Memory::new(&engine, &rows)?;
    let mut diff_scale = Memory::new(&engine, &params)?;
    let mut diff_shift = Memory::new(&engine, &params)?;

    let mut loss = f32::INFINITY;
    for step in 0..STEPS {
        let args = ForwardArgs::new(&src, &mut dst)
            .scale(&scale)
            .shift(&shift)
            .mean_out(&mut mean)
            .variance_out(&mut variance);
        forward.execute(&stream, args)?;

        // Half the squared distance, averaged over the rows; its gradient is the difference.
        let before = std::mem::take(&mut loss);
        let gradient = diff.as_mut_slice::<f32>()?;
        for ((diff_dst, dst), target) in
            gradient.iter_mut().zip(dst.as_slice::<f32>()?).zip(&target)
        {
            let difference = dst - target;
            *diff_dst = difference / ROWS as f32;
            loss += 0.5 * difference * difference / ROWS as f32;
        }

        assert!(loss < before || loss < ROUNDING, "step {step}: {before} to {loss}");

        // In place: `diff` holds diff_dst before and diff_src after the call.
        let args = BackwardArgs::in_place(&src, &mut diff)
            .mean(&mean)
            .variance(&variance)
            .scale(&scale)
            .diff_scale(&mut diff_scale)
            .diff_shift(&mut diff_shift);
        backward.execute(&stream, args)?;

        for (parameter, gradient) in [(&mut scale, &diff_scale), (&mut shift, &diff_shift)] {
            let gradient = gradient.as_slice::<f32>()?;
            for (p, g) in parameter.as_mut_slice::<f32>()?.iter_mut().zip(gradient) {
                *p -= LEARNING_RATE * g;
            }
        }
        if step % 10 == 0 {
            println!("step {step:2}  loss {loss:.6}");
        }
    }

    let (scale, shift) = (scale.as_slice::<f32>()?, shift.as_slice::<f32>()?);
    println!("loss {loss:.9}, scale {:.4}, shift {:.4}", scale[0], shift[0]);
    assert!(loss < 1e-6, "the layer has learned");
    assert!(scale.iter().all(|s| (s - 2.0).abs() < 1e-3));
    assert!(shift.iter().all(|s| (s + 1.0).abs() < 1e-3));
    Ok(())
}
