//! One primitive on many threads, and the caller's threads in one execution.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;

use norm_rs::layer_normalization::{Backward, BackwardArgs, Flags, Forward, ForwardArgs};
use norm_rs::{Attr, Engine, Memory, MemoryDesc, Stream};

use crate::data::*;
use crate::oracle::Problem;

/// Which types are Send and which are Sync.
#[test]
fn send_and_sync() {
    fn send<T: Send>() {}
    fn sync<T: Sync>() {}
    send::<Engine>();
    sync::<Engine>();
    send::<MemoryDesc>();
    sync::<MemoryDesc>();
    send::<Memory<'static>>();
    sync::<Memory<'static>>();
    send::<Attr>();
    sync::<Attr>();
    send::<Forward>();
    sync::<Forward>();
    send::<Backward>();
    sync::<Backward>();
    send::<norm_rs::Error>();
    sync::<norm_rs::Error>();
    send::<Stream<'static>>(); // not Sync: a compile_fail example of Stream
}

#[test]
fn eight_threads_execute_one_primitive() {
    const THREADS: usize = 8;
    const DIMS: [usize; 2] = [37, 129];
    let engine = Engine::cpu().unwrap();
    let desc = dense::<f32>(&DIMS);
    let forward = Forward::training(&engine, &desc).flags(Flags::SCALE).build().unwrap();
    let scale: Vec<f32> = numbers(100, DIMS[1], 0.5, 2.5);
    let shared_scale = memory(&engine, &[DIMS[1]], &scale);
    let start = Barrier::new(THREADS);
    thread::scope(|s| {
        for seed in 0..THREADS as u64 {
            let (engine, desc, forward, start) = (&engine, &desc, &forward, &start);
            let (scale, shared_scale) = (&scale, &shared_scale);
            s.spawn(move || {
                let x: Vec<f32> = numbers(seed, DIMS[0] * DIMS[1], -1.0, 4.0);
                let expected = Problem {
                    flags: Flags::SCALE,
                    epsilon: 1e-5f32.into(),
                    cols: DIMS[1],
                    src: &f64s(&x),
                    scale: &f64s(scale),
                    shift: &[],
                    mean: &[],
                    variance: &[],
                }
                .forward();
                let stream = Stream::new(engine).unwrap();
                let src = Memory::from_slice(engine, desc, &x).unwrap();
                let stats = stats_desc(&DIMS[..1]);
                start.wait();
                for _ in 0..50 {
                    let mut dst = Memory::new(engine, desc).unwrap();
                    let mut mean = Memory::new(engine, &stats).unwrap();
                    let mut variance = Memory::new(engine, &stats).unwrap();
                    let args = ForwardArgs::new(&src, &mut dst).scale(shared_scale);
                    let args = args.mean_out(&mut mean).variance_out(&mut variance);
                    forward.execute(&stream, args).unwrap();
                    assert_close("dst", &elements::<f32>(&dst), &expected.dst);
                    assert_close("mean", &elements::<f32>(&mean), &expected.mean);
                    assert_close("variance", &elements::<f32>(&variance), &expected.variance);
                }
            });
        }
    });
}

/// A backward pass large enough to be split, with its data allocated once.
struct Large {
    engine: Engine,
    backward: Backward,
    src: Memory<'static>,
    diff_dst: Memory<'static>,
    scale: Memory<'static>,
    stats: Memory<'static>,
}

impl Large {
    const ROWS: usize = 1500;
    const COLS: usize = 1024;

    fn new() -> Self {
        let engine = Engine::cpu().unwrap();
        let (rows, cols) = (Self::ROWS, Self::COLS);
        let desc = dense::<f32>(&[rows, cols]);
        let flags = Flags::SCALE | Flags::RMS_NORM;
        Self {
            backward: Backward::new(&engine, &desc).flags(flags).build().unwrap(),
            src: memory(&engine, &[rows, cols], &numbers::<f32>(1, rows * cols, -1.0, 4.0)),
            diff_dst: memory(&engine, &[rows, cols], &numbers::<f32>(2, rows * cols, -1.0, 2.0)),
            scale: memory(&engine, &[cols], &numbers::<f32>(3, cols, 0.5, 2.5)),
            stats: memory(&engine, &[rows], &numbers::<f32>(4, rows, 1.0, 3.0)),
            engine,
        }
    }

    /// The outputs, zeroed.
    fn outputs(&self) -> [Memory<'static>; 2] {
        [&[Self::ROWS, Self::COLS][..], &[Self::COLS]]
            .map(|dims| Memory::new(&self.engine, &dense::<f32>(dims)).unwrap())
    }

    fn run(&self, stream: &Stream<'_>, [diff_src, diff_scale]: &mut [Memory<'static>; 2]) {
        let args = BackwardArgs::new(&self.src, &self.diff_dst, diff_src)
            .variance(&self.stats)
            .scale(&self.scale)
            .diff_scale(diff_scale);
        self.backward.execute(stream, args).unwrap();
    }

    /// The bits of the outputs.
    fn bits(&self, stream: &Stream<'_>) -> Vec<u64> {
        let mut outputs = self.outputs();
        self.run(stream, &mut outputs);
        all_bits(&outputs)
    }
}

fn all_bits(outputs: &[Memory<'static>; 2]) -> Vec<u64> {
    outputs.iter().flat_map(|memory| bits(&elements::<f32>(memory))).collect()
}

/// Runs the pieces on `num_threads` threads, including the calling one.
fn on_threads(num_threads: usize, count: usize, body: &(dyn Fn(usize) + Sync)) {
    let next = AtomicUsize::new(0);
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                break;
            }
            body(index);
        }
    };
    thread::scope(|s| {
        for _ in 1..num_threads {
            s.spawn(work);
        }
        work();
    });
}

#[test]
fn caller_threads_give_the_same_bits() {
    let large = Large::new();
    let expected = large.bits(&Stream::new(&large.engine).unwrap());
    let oracle = Problem {
        flags: Flags::SCALE | Flags::RMS_NORM,
        epsilon: 1e-5f32.into(),
        cols: Large::COLS,
        src: &f64s(&elements::<f32>(&large.src)),
        scale: &f64s(&elements::<f32>(&large.scale)),
        shift: &[],
        mean: &[],
        variance: &f64s(&elements::<f32>(&large.stats)),
    }
    .backward(&f64s(&elements::<f32>(&large.diff_dst)));

    for num_threads in [1, 2, 3] {
        // The stream borrows the pool, which outlives it.
        let calls = AtomicUsize::new(0);
        let most = AtomicUsize::new(0);
        let workers = Mutex::new(HashSet::new());
        let mut stream = Stream::new(&large.engine).unwrap();
        stream
            .set_parallel_for(num_threads, |count, body| {
                calls.fetch_add(1, Ordering::Relaxed);
                most.fetch_max(count, Ordering::Relaxed);
                on_threads(num_threads, count, &|index| {
                    workers.lock().unwrap().insert(thread::current().id());
                    body(index);
                });
            })
            .unwrap();
        let mut outputs = large.outputs();
        large.run(&stream, &mut outputs);
        assert_eq!(all_bits(&outputs), expected, "{num_threads} threads");
        assert_close("diff_src", &elements::<f32>(&outputs[0]), &oracle.diff_src);
        assert_close("diff_scale", &elements::<f32>(&outputs[1]), &oracle.diff_scale);
        if num_threads > 1 {
            assert!(calls.load(Ordering::Relaxed) > 0, "the closure was not called");
            assert!(most.load(Ordering::Relaxed) > 1, "the work was not split");
        }

        // With the library's threads the closure is not called.
        let before = calls.load(Ordering::Relaxed);
        stream.use_library_threads().unwrap();
        assert_eq!(large.bits(&stream), expected);
        assert_eq!(calls.load(Ordering::Relaxed), before);
    }
}

#[test]
fn incorrect_pools_are_harmless() {
    let large = Large::new();
    let mut stream = Stream::new(&large.engine).unwrap();
    let expected = large.bits(&stream);

    stream.set_parallel_for(4, |_, _| ()).unwrap();
    assert_eq!(large.bits(&stream), expected, "a pool that does nothing");

    let twice = |count, body: &(dyn Fn(usize) + Sync)| {
        on_threads(4, 2 * count + 5, &|index| body(index % (count + 1)));
    };
    stream.set_parallel_for(4, twice).unwrap();
    assert_eq!(large.bits(&stream), expected, "a pool that repeats and exceeds");
}

#[test]
fn a_pool_panic_is_raised_after_completion() {
    let large = Large::new();
    let mut stream = Stream::new(&large.engine).unwrap();
    let expected = large.bits(&stream);
    stream
        .set_parallel_for(2, |count, body| {
            (0..count / 2).for_each(body);
            panic!("the pool is closed");
        })
        .unwrap();
    let mut outputs = large.outputs();
    let outcome = catch_unwind(AssertUnwindSafe(|| large.run(&stream, &mut outputs)));
    let payload = outcome.expect_err("the panic goes on");
    assert_eq!(payload.downcast_ref::<&str>(), Some(&"the pool is closed"));
    assert_eq!(all_bits(&outputs), expected);

    // The stream is still usable, and the panic is not raised again.
    stream.set_parallel_for(2, |count, body| (0..count).for_each(body)).unwrap();
    assert_eq!(large.bits(&stream), expected);
}

#[test]
fn a_stream_moves_with_its_pool() {
    let large = Large::new();
    let expected = large.bits(&Stream::new(&large.engine).unwrap());
    let calls = AtomicUsize::new(0);
    let mut stream = Stream::new(&large.engine).unwrap();
    stream
        .set_parallel_for(2, |count, body| {
            calls.fetch_add(1, Ordering::Relaxed);
            on_threads(2, count, body);
        })
        .unwrap();
    let boxed = Box::new(stream);
    thread::scope(|s| {
        let large = &large;
        s.spawn(move || assert_eq!(large.bits(&boxed), expected));
    });
    assert!(calls.load(Ordering::Relaxed) > 0);
}

#[test]
fn invalid_thread_counts_are_rejected() {
    let engine = Engine::cpu().unwrap();
    let mut stream = Stream::new(&engine).unwrap();
    for num_threads in [0, usize::MAX] {
        let error = stream.set_parallel_for(num_threads, |_, _| ()).unwrap_err();
        assert_eq!(error.kind(), norm_rs::ErrorKind::InvalidArguments, "{error}");
    }
    stream.wait().unwrap();
}
