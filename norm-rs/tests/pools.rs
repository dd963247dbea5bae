//! Streams on rayon's threads.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use norm_rs::{Engine, Stream, info, on_stream};
use rayon::iter::{IntoParallelIterator, ParallelIterator};

const ROWS: usize = 2048;
const COLS: usize = 256;

fn numbers() -> Vec<f32> {
    (0..ROWS * COLS).map(|i| (i as f32 * 0.73).sin() * 3.0 + 0.5).collect()
}

fn normalized(x: &[f32]) -> Vec<u32> {
    let mut y = vec![0f32; x.len()];
    norm_rs::rms_norm(x, COLS, None::<&[f32]>, None, 1e-5, &mut y).unwrap();
    y.into_iter().map(f32::to_bits).collect()
}

#[test]
fn a_pool_computes_the_same_bits() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    let engine = Engine::cpu().unwrap();
    let stream = Stream::on_rayon_pool(&engine, &pool).unwrap();
    let x = numbers();
    let expected = normalized(&x);
    // The pool's threads run the pieces, and the caller waits.
    let took_part = AtomicUsize::new(0);
    for _ in 0..20 {
        assert_eq!(on_stream(&stream, || normalized(&x)), expected);
        took_part.fetch_max(info::last_num_threads(), Relaxed);
    }
    assert!((1..=3).contains(&took_part.load(Relaxed)));
    // Inside the pool, and on the current pool.
    assert_eq!(pool.install(|| on_stream_of_current_pool(&x)), expected);
    assert_eq!(on_stream_of_current_pool(&x), expected);
}

fn on_stream_of_current_pool(x: &[f32]) -> Vec<u32> {
    let stream = Stream::on_rayon(&Engine::cpu().unwrap()).unwrap();
    on_stream(&stream, || normalized(x))
}

/// A thread that waits for its pieces may begin another call.
#[test]
fn calls_from_many_tasks_of_one_pool() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build().unwrap();
    let x = numbers();
    let expected = normalized(&x);
    pool.install(|| {
        (0..24).into_par_iter().for_each(|_| {
            assert_eq!(on_stream_of_current_pool(&x), expected);
        });
    });
}

#[test]
fn the_stream_is_restored() {
    let engine = Engine::cpu().unwrap();
    let calls = AtomicUsize::new(0);
    let mut stream = Stream::new(&engine).unwrap();
    stream
        .set_parallel_for(2, |count, body| {
            calls.fetch_add(1, Relaxed);
            (0..count).for_each(body);
        })
        .unwrap();
    let x = numbers();
    let inner = Stream::new(&engine).unwrap();
    on_stream(&stream, || {
        on_stream(&inner, || normalized(&x));
        assert_eq!(calls.load(Relaxed), 0);
        // Another thread has its own stream.
        std::thread::scope(|s| {
            s.spawn(|| normalized(&x));
        });
        assert_eq!(calls.load(Relaxed), 0);
        normalized(&x);
        assert!(calls.load(Relaxed) > 0);
    });
    let inside = calls.load(Relaxed);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        on_stream(&stream, || panic!("inside"));
    }));
    assert!(panicked.is_err());
    normalized(&x);
    assert_eq!(calls.load(Relaxed), inside);
}
