//! What a second thread gains: times one thread against two, in turns, on f32 forward problems around the
//! size from which a problem is split. `cargo run --release --example hand_off [busy]`
//!
//! With `busy`, another process keeps every core busy meanwhile.

mod timing;

use norm as _;
use norm_sys as sys;
use std::process::{Child, Command};
use std::time::Instant;
use timing::{Problem, check, median};

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
const SECONDS: f64 = 0.6;

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
    let _neighbour = (argument.as_deref() == Some("busy")).then(Neighbour::start);
    let scale_shift = sys::norm_use_scale | sys::norm_use_shift;
    println!("median us on one thread and two, median one/two, share of calls that two ran");
    for &(rows, cols) in SIZES {
        let problem = Problem::new(rows, cols, scale_shift);
        problem.time(3);
        let (mut one, mut two, mut ratios) = (vec![], vec![], vec![]);
        let mut shared = 0;
        let begin = Instant::now();
        while begin.elapsed().as_secs_f64() < SECONDS {
            let mut times = [0.0; 2];
            for (threads, time) in (1..).zip(&mut times) {
                // SAFETY: no pointers.
                unsafe { check(sys::norm_set_num_threads(threads)) };
                // The first leaves both caches as an execution like it does.
                problem.execute();
                *time = problem.time(1) / 1e3;
            }
            // SAFETY: no pointers.
            shared += usize::from(unsafe { sys::norm_get_last_num_threads() } == 2);
            one.push(times[0]);
            two.push(times[1]);
            ratios.push(times[0] / times[1]);
        }
        let share = shared as f64 / one.len() as f64;
        let [one, two, ratio] = [one, two, ratios].map(median);
        println!("{rows:4}x{cols} {one:8.2} {two:8.2} {ratio:6.2} {share:6.2}");
    }
}
