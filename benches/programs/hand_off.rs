//! Measures the gain of a second thread: times one thread against two on f32 LayerNorm problems around the size
//! from which the library splits a problem.
//!
//! `cargo run --release -p norm-benches --bin hand_off [busy] [apart]`
//!
//! With `busy`, another process keeps every core busy. With `apart`, the caller works on something else between two
//! calls, for longer than an idle worker spins. This is not a criterion benchmark: criterion times one function after
//! the other, and here only neighbouring samples of one and two threads are comparable.

use norm_rs::layer_normalization::{Flags, Forward, ForwardArgs};
use norm_rs::{DataType, Engine, Memory, MemoryDesc, Result, Stream, info};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// Rows and columns.
const SIZES: &[[usize; 2]] = &[
    [4, 1024],
    [8, 1024],
    [16, 1024],
    [24, 1024],
    [32, 1024],
    [48, 1024],
    [64, 1024],
    [96, 1024],
    [128, 1024],
    [32, 4096],
    [64, 4096],
    [128, 4096],
    [256, 4096],
    [512, 4096],
];
/// The last line only counts problems that take one thread this many microseconds.
const COUNTED: std::ops::RangeInclusive<f64> = 10.0..=500.0;
/// How long a size is measured.
const SECONDS: f64 = 1.0;
/// Calls in a row before the number of threads changes.
const CALLS: usize = 20;
/// The time between two calls with `apart`.
const APART: Duration = Duration::from_micros(200);

fn spin(time: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < time {}
}

/// Keeps every core busy, for at most two minutes.
fn burn() {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| spin(Duration::from_secs(120)));
        }
    });
}

/// The process that keeps the cores busy; killed with this one.
struct Neighbour(Child);

impl Neighbour {
    fn start() -> Self {
        let own = std::env::current_exe().expect("the example knows its executable");
        Self(Command::new(own).arg("burn").spawn().expect("the example can be started"))
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        self.0.kill().expect("the neighbour can be killed");
        self.0.wait().expect("the neighbour ends");
    }
}

/// LayerNorm forward with scale and shift.
struct Problem {
    stream: Stream<'static>,
    /// For one thread and for two.
    passes: [Forward; 2],
    src: Memory<'static>,
    dst: Memory<'static>,
    scale: Memory<'static>,
    shift: Memory<'static>,
}

impl Problem {
    fn new([rows, cols]: [usize; 2]) -> Result<Self> {
        let engine = Engine::cpu()?;
        let rows = MemoryDesc::dense(&[rows, cols], DataType::F32)?;
        let params = MemoryDesc::dense(&[cols], DataType::F32)?;
        let pass = |threads| {
            info::set_num_threads(threads)?;
            Forward::inference(&engine, &rows).flags(Flags::SCALE | Flags::SHIFT).build()
        };
        let numbers = |desc: &MemoryDesc| -> Result<Memory<'static>> {
            let mut memory = Memory::new(&engine, desc)?;
            for (i, value) in memory.as_mut_slice::<f32>()?.iter_mut().enumerate() {
                *value = (i * 37 % 101) as f32 / 50.0 - 1.0;
            }
            Ok(memory)
        };
        Ok(Self {
            stream: Stream::new(&engine)?,
            passes: [pass(1)?, pass(2)?],
            src: numbers(&rows)?,
            dst: Memory::new(&engine, &rows)?,
            scale: numbers(&params)?,
            shift: numbers(&params)?,
        })
    }

    fn execute(&mut self, pass: usize) -> Result<()> {
        let args = ForwardArgs::new(&self.src, &mut self.dst).scale(&self.scale).shift(&self.shift);
        self.passes[pass].execute(&self.stream, args)
    }
}

/// The times of a problem on one thread and on two.
struct Times {
    /// Medians in microseconds.
    one: f64,
    two: f64,
    /// The median of the ratios two/one of neighbouring groups of calls.
    ratio: f64,
    /// The 95th percentile of two over the median of one.
    worst: f64,
    /// The share of calls in which two threads took part.
    shared: f64,
}

/// Times a problem on one thread and on two, alternating.
fn measure(size: [usize; 2], apart: bool) -> Result<Times> {
    let mut problem = Problem::new(size)?;
    let (mut times, mut ratios) = ([vec![], vec![]], vec![]);
    let mut shared = 0;
    let begin = Instant::now();
    while begin.elapsed().as_secs_f64() < SECONDS {
        let mut medians = [0.0; 2];
        for (index, (times, of_group)) in times.iter_mut().zip(&mut medians).enumerate() {
            info::set_num_threads(index + 1)?;
            // The first call restores the caches after the other number of threads.
            problem.execute(index)?;
            let mut group = vec![];
            for _ in 0..CALLS {
                if apart {
                    spin(APART);
                }
                let begin = Instant::now();
                problem.execute(index)?;
                group.push(begin.elapsed().as_secs_f64() * 1e6);
                shared += usize::from(info::last_num_threads() == 2);
            }
            times.extend(&group);
            *of_group = percentile(group, 0.5);
        }
        ratios.push(medians[1] / medians[0]);
    }
    let shared = shared as f64 / times[1].len() as f64;
    let worst = percentile(times[1].clone(), 0.95) / percentile(times[0].clone(), 0.5);
    let [one, two] = times.map(|times| percentile(times, 0.5));
    Ok(Times { one, two, ratio: percentile(ratios, 0.5), worst, shared })
}

/// The value with a share of all values below it.
fn percentile(mut values: Vec<f64>, share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * share) as usize]
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |word: &str| arguments.iter().any(|argument| argument == word);
    if has("burn") {
        burn();
        return Ok(());
    }
    let _neighbour = has("busy").then(Neighbour::start);
    println!(
        "rows x columns, us on one thread, on two, two/one, its 95th percentile, share of calls on two"
    );
    let mut largest = 0.0_f64;
    for &size in SIZES {
        let Times { one, two, ratio, worst, shared } = measure(size, has("apart"))?;
        let [rows, cols] = size;
        println!("{rows:4}x{cols} {one:8.2} {two:8.2} {ratio:6.2} {worst:6.2} {shared:6.2}");
        if COUNTED.contains(&one) {
            largest = largest.max(ratio);
        }
    }
    let (least, most) = (COUNTED.start(), COUNTED.end());
    println!("largest two/one where one thread takes {least} to {most} us: {largest:.2}");
    Ok(())
}
