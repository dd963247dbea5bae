//! What a second thread gains: times one thread against two, in turns, on f32 forward problems around the
//! size from which a problem is split. `cargo run --release --example hand_off [busy|apart] [LIB]`
//!
//! With `busy`, another process keeps every core busy meanwhile. With `apart`, the caller does something
//! else between two calls, for longer than a worker looks for work. LIB is another library with oneDNN's C
//! interface and OpenMP's threads, which is timed the same way.

mod timing;

use norm as _;
use norm_sys as sys;
use std::process::{Child, Command};
use std::time::{Duration, Instant};
use timing::{Library, Problem, median, percentile};

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
/// Microseconds on one thread of the problems that the last line is about.
const COUNTED: std::ops::RangeInclusive<f64> = 10.0..=500.0;
/// How long a size is measured.
const SECONDS: f64 = 1.0;
/// Calls in a row before the number of threads changes.
const CALLS: usize = 20;

/// What lies between two calls.
const APART: Duration = Duration::from_micros(200);

/// Spins on every core until it is killed, or has not been for a while.
fn burn() {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| while begin.elapsed().as_secs() < 120 {});
        }
    });
}

/// The process that burns; ended with this one.
struct Neighbour(Child);

impl Neighbour {
    fn start() -> Self {
        let own = std::env::current_exe().expect("the example knows its executable");
        Self(Command::new(own).arg("burn").spawn().expect("the example can be started"))
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        self.0.kill().expect("the neighbour can be ended");
        self.0.wait().expect("the neighbour can be ended");
    }
}

/// What one thread and two take for a problem.
struct Times {
    /// Medians in microseconds.
    one: f64,
    two: f64,
    /// The median of their ratios, turn by turn.
    ratio: f64,
    /// The 95th percentile of two over the median of one.
    worst: f64,
    /// The share of calls that two threads ran.
    shared: f64,
}

/// Times a problem on one thread and on two, in turns.
fn measure(library: Library, [rows, cols]: [usize; 2], apart: bool) -> Times {
    let problem = Problem::new(library, rows, cols, sys::norm_use_scale | sys::norm_use_shift);
    let problems = [1, 2].map(|threads| {
        library.set_num_threads(threads);
        problem.again()
    });
    let (mut times, mut ratios) = ([vec![], vec![]], vec![]);
    let mut shared = 0;
    let begin = Instant::now();
    while begin.elapsed().as_secs_f64() < SECONDS {
        let mut medians = [0.0; 2];
        for (index, (times, of_group)) in times.iter_mut().zip(&mut medians).enumerate() {
            library.set_num_threads(index as i32 + 1);
            let problem = &problems[index];
            // The first finds what another number of threads left in the caches.
            problem.execute();
            let mut group = vec![];
            for _ in 0..CALLS {
                if apart {
                    let begin = Instant::now();
                    while begin.elapsed() < APART {}
                }
                group.push(problem.time(1) / 1e3);
                // SAFETY: no pointers.
                shared += usize::from(unsafe { sys::norm_get_last_num_threads() } == 2);
            }
            times.extend(&group);
            *of_group = median(group);
        }
        ratios.push(medians[1] / medians[0]);
    }
    let shared = shared as f64 / times[1].len() as f64;
    let worst = percentile(times[1].clone(), 0.95) / percentile(times[0].clone(), 0.5);
    let [one, two] = times.map(median);
    Times { one, two, ratio: median(ratios), worst, shared }
}

fn main() {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut said = |word: &str| {
        let place = arguments.iter().position(|argument| argument == word);
        place.map(|place| arguments.remove(place)).is_some()
    };
    if said("burn") {
        return burn();
    }
    let (busy, apart) = (said("busy"), said("apart"));
    let theirs = arguments.pop().map(|path| Library::open(&path));
    let _neighbour = busy.then(Neighbour::start);
    println!(
        "median us on one thread and two, two/one and its 95th percentile, calls that two ran;"
    );
    println!("of another library the same without the last");
    let mut largest = [0.0_f64; 2];
    for &size in SIZES {
        let Times { one, two, ratio, worst, shared } = measure(Library::linked(), size, apart);
        let [rows, cols] = size;
        print!("{rows:4}x{cols} {one:8.2} {two:8.2} {ratio:6.2} {worst:6.2} {shared:6.2}");
        let counts = COUNTED.contains(&one);
        if counts {
            largest[0] = largest[0].max(ratio);
        }
        if let Some(theirs) = theirs {
            let Times { one, two, ratio, worst, .. } = measure(theirs, size, apart);
            print!("   {one:8.2} {two:8.2} {ratio:6.2} {worst:6.2}");
            if counts {
                largest[1] = largest[1].max(ratio);
            }
        }
        println!();
    }
    let [ours, others] = largest;
    print!(
        "largest two/one where one takes {} to {} us: {ours:.2}",
        COUNTED.start(),
        COUNTED.end()
    );
    println!("{}", theirs.map_or(String::new(), |_| format!(", of the other library {others:.2}")));
}
