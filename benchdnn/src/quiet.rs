//! Waiting until no other thread of the process runs.
//!
//! Threads that wait for work look for it for a while before they sleep: OpenMP's for some
//! milliseconds. As long as they do, they keep a core from whoever is timed next.
//!
//! What counts is whether a thread can run, not the processor time it uses: Linux counts that of a
//! thread on another core only when its clock ticks, every few milliseconds, and a thread that looks
//! uses none while another process has its core.

use std::fs;
use std::time::{Duration, Instant};

/// How long it waits for threads that never sleep.
const LIMIT: Duration = Duration::from_millis(50);
/// Between two looks.
const PAUSE: Duration = Duration::from_micros(100);
/// Where the system does not tell of threads: longer than most of them look for work.
const BLIND: Duration = Duration::from_millis(10);

/// Waits until the other threads sleep, but not for long.
pub fn wait() {
    wait_for(LIMIT);
}

/// Waits until the other threads sleep, or until the limit is over; says whether none was seen
/// running at the end.
pub fn wait_for(limit: Duration) -> bool {
    let begin = Instant::now();
    loop {
        match others_run() {
            Some(false) => return true,
            Some(true) if begin.elapsed() >= limit => return false,
            Some(true) => pause(),
            None => {
                std::thread::sleep(BLIND.min(limit));
                return false;
            }
        }
    }
}

/// Lets others run, but does not sleep: a system may count a core whose thread sleeps as free, and
/// wake the next one's workers there.
fn pause() {
    let begin = Instant::now();
    while begin.elapsed() < PAUSE {
        std::thread::yield_now();
    }
}

/// Whether a thread of the process other than this one runs or could run; none where the system has
/// no such files.
fn others_run() -> Option<bool> {
    let own = fs::read_link("/proc/thread-self").ok()?;
    for thread in fs::read_dir("/proc/self/task").ok()? {
        let thread = thread.ok()?;
        if Some(thread.file_name().as_os_str()) == own.file_name() {
            continue;
        }
        // A thread that has ended since has no such file.
        if fs::read_to_string(thread.path().join("stat")).is_ok_and(|stat| runs(&stat)) {
            return Some(true);
        }
    }
    Some(false)
}

/// Reads `1234 (name) R ...`, where the name may be anything.
fn runs(stat: &str) -> bool {
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('R'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_stands_behind_the_name() {
        assert!(runs("12 (worker) R 1 12 0"));
        assert!(!runs("12 (worker) S 1 12 0"));
        assert!(!runs("12 (a) R b) S 1 12 0"));
        assert!(runs("12 (a) S b) R 1 12 0"));
        assert!(!runs(""));
    }
}
