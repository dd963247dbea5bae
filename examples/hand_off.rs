//! What a second thread gains: times one thread against two, in turns, on f32 forward problems around the
//! size from which a problem is split. `cargo run --release --example hand_off [busy|apart]`
//!
//! With `busy`, another process keeps every core busy meanwhile. With `apart`, the caller does something
//! else between two calls, for longer than a worker looks for work.

mod timing;

use norm as _;
use norm_sys as sys;
use std::process::{Child, Command};
use std::time::{Duration, Instant};
use timing::{Problem, check, median, percentile};

/// Rows and columns.
const SIZES: &[(usize, usize)] = &[
    (4, 1024),
    (8, 1024),
    (16, 1024),
    (24, 1024),
    (32, 1024),
    (48, 1024),
    (64, 1024),
    (96, 1024),
    (128, 1024),
    (32, 4096),
    (64, 4096),
    (128, 4096),
    (256, 4096),
    (512, 4096),
];
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

fn main() {
    let argument = std::env::args().nth(1);
    if argument.as_deref() == Some("burn") {
        return burn();
    }
    let apart = argument.as_deref() == Some("apart");
    let _neighbour = (argument.as_deref() == Some("busy")).then(Neighbour::start);
    let scale_shift = sys::norm_use_scale | sys::norm_use_shift;
    println!(
        "median us on one thread and two, two/one and its 95th percentile, calls that two ran"
    );
    for &(rows, cols) in SIZES {
        let problem = Problem::new(rows, cols, scale_shift);
        let (mut times, mut ratios) = ([vec![], vec![]], vec![]);
        let mut shared = 0;
        let begin = Instant::now();
        while begin.elapsed().as_secs_f64() < SECONDS {
            let mut medians = [0.0; 2];
            for (index, (times, of_group)) in times.iter_mut().zip(&mut medians).enumerate() {
                // SAFETY: no pointers.
                unsafe { check(sys::norm_set_num_threads(index as i32 + 1)) };
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
        let share = shared as f64 / times[1].len() as f64;
        let worst = percentile(times[1].clone(), 0.95) / percentile(times[0].clone(), 0.5);
        let [one, two] = times.map(median);
        let ratio = median(ratios);
        println!("{rows:4}x{cols} {one:8.2} {two:8.2} {ratio:6.2} {worst:6.2} {share:6.2}");
    }
}
