//! Measures how many f32 operations one thread executes in a second if it does nothing but fused multiply-adds of whole
//! vectors. No kernel of dot products can be faster. A multiply-add counts as two operations.
//!
//! `cargo run --release -p norm-benches --bin multiply_adds`

use std::hint::black_box;
use std::time::Instant;

/// Independent sums: enough to hide the latency of a multiply-add, and few enough for the registers.
const SUMS: usize = 12;
const STEPS: usize = 1 << 20;
const ROUNDS: usize = 50;

/// Adds products to the sums, [`STEPS`] times.
#[inline(always)]
fn add_products<const LANES: usize>() {
    let mut sums = black_box([[1.0f32; LANES]; SUMS]);
    let (x, y) = black_box(([0.5f32; LANES], [0.5f32; LANES]));
    for _ in 0..STEPS {
        for sum in &mut sums {
            for lane in 0..LANES {
                sum[lane] = sum[lane].mul_add(x[lane], y[lane]);
            }
        }
    }
    black_box(sums);
}

#[cfg(target_arch = "x86_64")]
mod kernels {
    #[target_feature(enable = "avx512f")]
    pub(super) fn avx512() {
        super::add_products::<16>();
    }

    #[target_feature(enable = "avx2,fma")]
    pub(super) fn avx2() {
        super::add_products::<8>();
    }
}

/// The most operations in a second of several runs, in thousand millions.
fn measure(lanes: usize, kernel: impl Fn()) -> f64 {
    let operations = (2 * lanes * SUMS * STEPS) as f64;
    let seconds = (0..ROUNDS).map(|_| {
        let begin = Instant::now();
        kernel();
        begin.elapsed().as_secs_f64()
    });
    operations / seconds.fold(f64::INFINITY, f64::min) / 1e9
}

#[cfg(target_arch = "x86_64")]
fn main() {
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        // SAFETY: the processor has the instructions.
        println!("avx2: {:.1} GFLOP/s", measure(8, || unsafe { kernels::avx2() }));
    }
    if is_x86_feature_detected!("avx512f") {
        // SAFETY: as above.
        println!("avx512: {:.1} GFLOP/s", measure(16, || unsafe { kernels::avx512() }));
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn main() {
    println!("{:.1} GFLOP/s", measure(4, add_products::<4>));
}
