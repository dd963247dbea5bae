//! Waits until no other thread of the process runs.
//!
//! Idle worker threads spin for a while before they sleep, OpenMP's for some milliseconds. While
//! they spin, they occupy cores that the next contestant needs.
//!
//! The criterion is whether a thread is runnable, not its processor time. Linux updates the time of
//! a thread on another core only at that core's clock tick, every few milliseconds, and a spinning
//! thread uses none while another process has its core.

use std::fs;
use std::time::{Duration, Instant};

/// The longest wait, in case threads never sleep.
const LIMIT: Duration = Duration::from_millis(50);
/// The time between two checks.
const PAUSE: Duration = Duration::from_micros(100);
/// The wait if the system does not list threads: longer than most threads spin.
const BLIND: Duration = Duration::from_millis(10);

/// Waits, for a limited time, until the other threads sleep.
pub fn wait() {
    wait_for(LIMIT);
}

/// Waits until the other threads sleep, or up to the limit. Returns whether they slept at the end.
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

/// Yields instead of sleeping: a scheduler may treat the core of a sleeping thread as free and wake the next
/// contestant's workers there.
fn pause() {
    let begin = Instant::now();
    while begin.elapsed() < PAUSE {
        std::thread::yield_now();
    }
}

/// Whether another thread of the process is runnable; `None` if the system has no such files.
fn others_run() -> Option<bool> {
    let own = fs::read_link("/proc/thread-self").ok()?;
    for thread in fs::read_dir("/proc/self/task").ok()? {
        let thread = thread.ok()?;
        if Some(thread.file_name().as_os_str()) == own.file_name() {
            continue;
        }
        // A thread that has just ended has no such file.
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
    fn the_state_follows_the_name() {
        assert!(runs("12 (worker) R 1 12 0"));
        assert!(!runs("12 (worker) S 1 12 0"));
        assert!(!runs("12 (a) R b) S 1 12 0"));
        assert!(runs("12 (a) S b) R 1 12 0"));
        assert!(!runs(""));
    }
}
