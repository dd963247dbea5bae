//! `soak [SECONDS [THREADS]]` makes random calls, by default for 10 minutes on 2 threads. It fails if the resident
//! memory of the second half exceeds that of the first by more than 4 MB.

use norm_fuzz::{attention, calls, descriptors, random_bytes};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How much a process with flat memory may still grow, because of the allocator's arenas.
const SLACK: u64 = 4 << 20;
/// The interval at which resident memory is read.
const SAMPLING: Duration = Duration::from_millis(50);

/// The resident memory of this process, in bytes.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|word| word.parse::<u64>().ok());
    // SAFETY: no pointers.
    pages.unwrap_or(0) * unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64
}

fn main() -> ExitCode {
    let numbers: Vec<u64> =
        std::env::args().skip(1).map(|word| word.parse().expect("seconds, threads")).collect();
    let seconds = numbers.first().copied().unwrap_or(600);
    let threads = numbers.get(1).copied().unwrap_or(2).max(1);
    let (stop, inputs) = (AtomicBool::new(false), AtomicU64::new(0));
    let begin = Instant::now();
    let mut most = [0u64; 2];
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (stop, inputs) = (&stop, &inputs);
            scope.spawn(move || {
                for seed in (thread..).step_by(threads as usize) {
                    let data = random_bytes(seed);
                    calls::run(&data);
                    attention::run(&data);
                    descriptors::run(&data);
                    inputs.fetch_add(1, Ordering::Relaxed);
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
        }
        while begin.elapsed() < Duration::from_secs(seconds) {
            std::thread::sleep(SAMPLING);
            let half = usize::from(begin.elapsed() > Duration::from_secs(seconds) / 2);
            // The first tenth fills caches and arenas.
            if begin.elapsed() > Duration::from_secs(seconds) / 10 {
                most[half] = most[half].max(resident());
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    let inputs = inputs.into_inner();
    println!(
        "{inputs} inputs in {seconds} s on {threads} threads; at most {} kB resident in the first half, {} kB in the second",
        most[0] >> 10,
        most[1] >> 10
    );
    if inputs == 0 || most[1] > most[0] + SLACK {
        eprintln!("soak: memory grew");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
