//! RMS normalization in one line: `cargo run --release -p norm-rs --example rms_norm`.

fn main() -> norm_rs::Result<()> {
    let src = [3.0f32, -1.0, 2.0, 5.0, 0.5, 1.0]; // two rows of three
    let scale = [1.0f32, 0.5, 2.0];
    let mut dst = [0.0f32; 6];

    norm_rs::rms_norm(&src, 3, Some(&scale), None, 1e-5, &mut dst)?;

    for (src, dst) in src.chunks(3).zip(dst.chunks(3)) {
        println!("{src:?} -> {dst:?}");
    }
    Ok(())
}
