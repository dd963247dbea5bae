//! What a use of the library takes besides the work: executing one row of 64, through the objects
//! and through the functions on slices, and creating descriptors and primitives.
//!
//! `cargo bench -p norm-benches --bench calls`

use criterion::{Criterion, criterion_group, criterion_main};
use norm_rs::layer_normalization::{Backward, Forward, ForwardArgs};
use norm_rs::{DataType, Engine, Memory, MemoryDesc, Stream};

const COLS: usize = 64;

fn execution(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("call_1x64");
    let legal = "a legal problem";
    let engine = Engine::cpu().expect(legal);
    let stream = Stream::new(&engine).expect(legal);
    let desc = MemoryDesc::dense(&[1, COLS], DataType::F32).expect(legal);
    let pass = Forward::inference(&engine, &desc).build().expect(legal);
    let row: Vec<f32> = (0..COLS).map(|i| i as f32).collect();
    let src = Memory::from_slice(&engine, &desc, &row).expect(legal);
    let mut dst = Memory::new(&engine, &desc).expect(legal);
    group.bench_function("objects", |bencher| {
        bencher.iter(|| pass.execute(&stream, ForwardArgs::new(&src, &mut dst)));
    });
    let mut dst = vec![0.0; COLS];
    group.bench_function("slices", |bencher| {
        bencher.iter(|| norm_rs::layer_norm(&row, COLS, None, None, 1e-5, &mut dst));
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
