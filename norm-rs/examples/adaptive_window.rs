//! A sliding window that follows the entropy of attention: a wide window if queries look at all keys, a narrow
//! one if they look at a few.
//! `cargo run --release -p norm-rs --example adaptive_window`

use norm_rs::sdpa::{Causal, Forward, ForwardArgs, Previous, Strategy, Window, adaptive_window};
use norm_rs::{DataType, Engine, Memory, MemoryDesc, Result, Stream, Tag};

const HEADS: usize = 2;
const TOKENS: usize = 256;
const SIZE: usize = 16;
const MIN: usize = 16;
const MAX: usize = 128;

/// The mean entropy of the attention weights in a window, for scores of this size.
fn entropy(window: usize, sharpness: f32) -> Result<f64> {
    let engine = Engine::cpu()?;
    let query = MemoryDesc::dense(&[1, HEADS, TOKENS, SIZE], DataType::F32)?;
    let key = MemoryDesc::with_tag(&[1, HEADS, SIZE, TOKENS], DataType::F32, Tag::Abdc)?;
    let builder = Forward::inference(&engine, &query, &key, &query);
    let builder = builder.causal(Causal::TopLeft).window(Window::WithSelf(window)).entropy();
    let attention = builder.scale(sharpness).build()?;

    let numbers: Vec<f32> =
        (0..HEADS * TOKENS * SIZE).map(|i| ((i * 7919) % 1009) as f32 / 504.0 - 1.0).collect();
    let queries = Memory::from_slice(&engine, &query, &numbers)?;
    let keys = Memory::from_slice(&engine, &key, &numbers)?;
    let mut dst = Memory::new(&engine, &query)?;
    let mut entropy = Memory::new(&engine, &MemoryDesc::dense(&[1, HEADS], DataType::F32)?)?;
    let args = ForwardArgs::new(&queries, &keys, &queries, &mut dst).entropy(&mut entropy);
    attention.execute(&Stream::new(&engine)?, args)?;
    let heads = entropy.as_slice::<f32>()?;
    Ok(heads.iter().map(|head| f64::from(*head)).sum::<f64>() / heads.len() as f64)
}

#[cfg_attr(test, test)]
fn main() -> Result<()> {
    // Equal weights: a query that sees n keys has the entropy ln(n).
    let seen = (1..=TOKENS).map(|query| (query.min(64) as f64).ln());
    let expected = seen.sum::<f64>() / TOKENS as f64;
    let found = entropy(64, 0.0)?;
    println!("even weights in a window of 64: {found:.4}, ln(64) is {:.4}", 64f64.ln());
    assert!((found - expected).abs() < 1e-5, "{found} is not {expected}");

    let mut ends = Vec::new();
    for (name, sharpness) in [("even", 0.0), ("usual", 0.25), ("sharp", 20.0)] {
        let mut window = 64;
        print!("{name:5}: {window}");
        for _ in 0..8 {
            let measured = entropy(window, sharpness)?;
            assert!((0.0..=(window as f64).ln()).contains(&measured));
            // Half the distance, but at most 24 keys per step.
            let previous = Previous { window, smoothing: 0.5, max_step: Some(24) };
            let strategy = Strategy::ByEntropy(Some(measured));
            let next = adaptive_window(strategy, TOKENS, MIN..=MAX, Some(previous))?;
            assert!(next.abs_diff(window) <= 24 && (MIN..=MAX).contains(&next));
            window = next;
            print!(" -> {window}");
        }
        println!();
        ends.push(window);
    }
    // Small scores make weights nearly equal.
    assert!(ends[0] > 100 && ends[1] > 90 && ends[2] < 40, "{ends:?}");
    Ok(())
}
