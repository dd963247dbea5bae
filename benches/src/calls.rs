//! The overhead of a call: executing one row of 64 and no row at all through the objects, one row through the functions
//! on slices, and creating descriptors and primitives.
//!
//! `cargo bench -p norm-benches --bench calls`

use criterion::{Criterion, criterion_group, criterion_main};
use norm_rs::layer_normalization::{Backward, Flags, Forward, ForwardArgs};
use norm_rs::{DataType, Engine, Memory, MemoryDesc, Stream};

const COLS: usize = 64;

fn execution(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("call");
    let legal = "a legal problem";
    let engine = Engine::cpu().expect(legal);
    let stream = Stream::new(&engine).expect(legal);
    let params = MemoryDesc::dense(&[COLS], DataType::F32).expect(legal);
    let row: Vec<f32> = (0..COLS).map(|i| i as f32).collect();
    let scale = Memory::from_slice(&engine, &params, &row).expect(legal);
    // Without rows only the call itself remains.
    for rows in [1, 0] {
        let desc = MemoryDesc::dense(&[rows, COLS], DataType::F32).expect(legal);
        let src = Memory::from_slice(&engine, &desc, &row[..rows * COLS]).expect(legal);
        let mut dst = Memory::new(&engine, &desc).expect(legal);
        let with_both = Flags::SCALE | Flags::SHIFT;
        for (name, flags) in
            [("layer_norm", with_both), ("rms_norm", Flags::SCALE | Flags::RMS_NORM)]
        {
            let pass = Forward::inference(&engine, &desc).flags(flags).build().expect(legal);
            group.bench_function(format!("objects/{name}/{rows}x{COLS}"), |bencher| {
                bencher.iter(|| {
                    let mut args = ForwardArgs::new(&src, &mut dst).scale(&scale);
                    if flags.contains(Flags::SHIFT) {
                        args = args.shift(&scale);
                    }
                    pass.execute(&stream, args)
                });
            });
        }
    }
    let mut dst = vec![0f32; COLS];
    group.bench_function(format!("slices/layer_norm/1x{COLS}"), |bencher| {
        bencher.iter(|| norm_rs::layer_norm(&row, COLS, Some(&row), Some(&row), 1e-5, &mut dst));
    });
    group.finish();
}

fn creation(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("creation");
    let legal = "a legal problem";
    let engine = Engine::cpu().expect(legal);
    for [rows, cols] in [[1, 64], [4096, 4096], [1, 1 << 20]] {
        let desc = MemoryDesc::dense(&[rows, cols], DataType::F32).expect(legal);
        let shape = format!("{rows}x{cols}");
        group.bench_function(format!("forward/{shape}"), |bencher| {
            bencher.iter(|| Forward::inference(&engine, &desc).build());
        });
        group.bench_function(format!("backward/{shape}"), |bencher| {
            bencher.iter(|| Backward::new(&engine, &desc).build());
        });
    }
    group.bench_function("memory_desc", |bencher| {
        bencher.iter(|| MemoryDesc::dense(&[4096, 4096], DataType::F32));
    });
    group.finish();
}

criterion_group!(calls, execution, creation);
criterion_main!(calls);
