//! Runs normalization on a rayon pool that the program already has.
//! `cargo run --release -p norm-rs --features rayon --example host_pool`

use norm_rs::{Engine, Result, Stream, on_stream};

const COLS: usize = 1024;

fn main() -> Result<()> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().expect("threads can start");
    let stream = Stream::on_rayon_pool(&Engine::cpu()?, &pool)?;

    let x: Vec<f32> = (0..4096 * COLS).map(|i| (i as f32 * 0.01).sin()).collect();
    let scale = vec![1f32; COLS];
    let (mut own, mut pooled) = (vec![0f32; x.len()], vec![0f32; x.len()]);
    norm_rs::layer_norm(&x, COLS, Some(&scale), None, 1e-5, &mut own)?;
    on_stream(&stream, || norm_rs::layer_norm(&x, COLS, Some(&scale), None, 1e-5, &mut pooled))?;

    let same = own.iter().zip(&pooled).all(|(a, b)| a.to_bits() == b.to_bits());
    println!("same bits on both pools: {same}");
    assert!(same);
    Ok(())
}
