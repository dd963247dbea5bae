//! Times of the passes: LayerNorm with scale and shift and RMSNorm with scale, forward and backward, f32 and
//! bf16, by shape. The throughput counts the bytes that a pass must move: src and dst, or src, diff_dst and
//! diff_src, each once.
//!
//! `cargo bench -p norm-benches --bench normalization -- rms_norm_forward`

use std::time::Duration;

use criterion::{Bencher, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use norm_rs::layer_normalization::{Backward, BackwardArgs, Flags, Forward, ForwardArgs};
use norm_rs::{DataType, Element, Engine, Memory, MemoryDesc, Result, Stream, bf16};

/// One row; tensors that fit the first, second and third level of cache; one that fits none; narrow rows.
const SHAPES: [[usize; 2]; 6] =
    [[1, 4096], [4, 1024], [64, 1024], [512, 4096], [4096, 4096], [16384, 64]];

/// An element type of the rows.
trait Row: Element {
    const TYPE: DataType;
    fn of(value: f32) -> Self;
}

impl Row for f32 {
    const TYPE: DataType = DataType::F32;
    fn of(value: f32) -> Self {
        value
    }
}

impl Row for bf16 {
    const TYPE: DataType = DataType::Bf16;
    fn of(value: f32) -> Self {
        bf16::from_f32(value)
    }
}

/// The common parts of forward and backward.
struct Problem {
    engine: Engine,
    flags: Flags,
    rows: MemoryDesc,
    stats: MemoryDesc,
    params: MemoryDesc,
}

impl Problem {
    fn new<T: Row>(flags: Flags, [rows, cols]: [usize; 2]) -> Result<Self> {
        Ok(Self {
            engine: Engine::cpu()?,
            flags,
            rows: MemoryDesc::dense(&[rows, cols], T::TYPE)?,
            stats: MemoryDesc::dense(&[rows], DataType::F32)?,
            params: MemoryDesc::dense(&[cols], DataType::F32)?,
        })
    }

    /// A tensor in memory that the library allocated, aligned to 64 bytes.
    fn numbers<T: Row>(&self, desc: &MemoryDesc) -> Result<Memory<'static>> {
        let mut memory = Memory::new(&self.engine, desc)?;
        for (i, value) in memory.as_mut_slice::<T>()?.iter_mut().enumerate() {
            *value = T::of((i * 37 % 101) as f32 / 50.0 - 1.0);
        }
        Ok(memory)
    }

    fn forward<T: Row>(&self, bencher: &mut Bencher<'_>) -> Result<()> {
        let stream = Stream::new(&self.engine)?;
        let pass = Forward::inference(&self.engine, &self.rows).flags(self.flags).build()?;
        let src = self.numbers::<T>(&self.rows)?;
        let (scale, shift) =
            (self.numbers::<f32>(&self.params)?, self.numbers::<f32>(&self.params)?);
        let mut dst = Memory::new(&self.engine, &self.rows)?;
        bencher.iter(|| {
            let mut args = ForwardArgs::new(&src, &mut dst).scale(&scale);
            if self.flags.contains(Flags::SHIFT) {
                args = args.shift(&shift);
            }
            pass.execute(&stream, args)
        });
        Ok(())
    }

    fn backward<T: Row>(&self, bencher: &mut Bencher<'_>) -> Result<()> {
        let stream = Stream::new(&self.engine)?;
        let pass = Backward::new(&self.engine, &self.rows).flags(self.flags).build()?;
        let (src, diff_dst) = (self.numbers::<T>(&self.rows)?, self.numbers::<T>(&self.rows)?);
        let (mean, mut variance) =
            (Memory::new(&self.engine, &self.stats)?, Memory::new(&self.engine, &self.stats)?);
        variance.as_mut_slice::<f32>()?.fill(1.0 / 3.0);
        let scale = self.numbers::<f32>(&self.params)?;
        let mut diff_src = Memory::new(&self.engine, &self.rows)?;
        let mut diff_scale = Memory::new(&self.engine, &self.params)?;
        let mut diff_shift = Memory::new(&self.engine, &self.params)?;
        bencher.iter(|| {
            let mut args = BackwardArgs::new(&src, &diff_dst, &mut diff_src)
                .variance(&variance)
                .scale(&scale)
                .diff_scale(&mut diff_scale);
            if self.flags.contains(Flags::SHIFT) {
                args = args.mean(&mean).diff_shift(&mut diff_shift);
            }
            pass.execute(&stream, args)
        });
        Ok(())
    }
}

fn of_type<T: Row>(criterion: &mut Criterion) {
    let operations =
        [("layer_norm", Flags::SCALE | Flags::SHIFT), ("rms_norm", Flags::SCALE | Flags::RMS_NORM)];
    for (operation, flags) in operations {
        for (pass, tensors) in [("forward", 2), ("backward", 3)] {
            let mut group = criterion.benchmark_group(format!("{operation}_{pass}"));
            for [rows, cols] in SHAPES {
                let bytes = rows * cols * T::TYPE.size() * tensors;
                group.throughput(Throughput::Bytes(bytes as u64));
                let id = BenchmarkId::new(T::TYPE.to_string(), format!("{rows}x{cols}"));
                group.bench_function(id, |bencher| {
                    let problem = Problem::new::<T>(flags, [rows, cols]).expect("a legal problem");
                    let done = match pass {
                        "forward" => problem.forward::<T>(bencher),
                        _ => problem.backward::<T>(bencher),
                    };
                    done.expect("a legal problem");
                });
            }
            group.finish();
        }
    }
}

/// Two seconds per case are enough to see a change of some per cent and keep the total under four minutes.
/// criterion's options (`--measurement-time`, ...) override them.
fn quick() -> Criterion {
    Criterion::default()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .sample_size(50)
}

criterion_group! {
    name = passes;
    config = quick();
    targets = of_type::<f32>, of_type::<bf16>
}
criterion_main!(passes);
