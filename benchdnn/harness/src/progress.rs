//! The progress line on a terminal's standard error.
//!
//! A separate thread renews the line, so that it shows progress even during a single long problem. It
//! sleeps in between, and only exists if there is a terminal.

use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// When the line appears and how often it is renewed.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// How long the run lasts before the line appears.
    pub patience: Duration,
    /// The time between two renewals.
    pub renewal: Duration,
}

/// Rarely enough not to disturb measurements.
pub const PACE: Pace = Pace { patience: Duration::from_secs(2), renewal: Duration::from_secs(1) };

/// A running display.
pub struct Progress {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    /// The state has `done` set.
    ended: Condvar,
}

struct State {
    out: Box<dyn Write + Send>,
    pace: Pace,
    total: usize,
    tests: usize,
    failed: usize,
    started: Instant,
    /// When the current problem began; `None` between problems.
    problem: Option<Instant>,
    shown: bool,
    done: bool,
}

impl Progress {
    /// Begins the display for a run of `total` problems.
    pub fn new(out: Box<dyn Write + Send>, total: usize, pace: Pace) -> Progress {
        let state = State {
            out,
            pace,
            total,
            tests: 0,
            failed: 0,
            started: Instant::now(),
            problem: None,
            shown: false,
            done: false,
        };
        let shared = Arc::new(Shared { state: Mutex::new(state), ended: Condvar::new() });
        let of_thread = shared.clone();
        // If the thread cannot be started, there is no progress, but everything else works.
        let thread = std::thread::Builder::new().spawn(move || of_thread.renew()).ok();
        Progress { shared, thread }
    }

    /// Begins a problem, given the number of problems so far and of failures among them.
    pub fn begin(&self, tests: usize, failed: usize) {
        let mut state = self.shared.lock();
        (state.tests, state.failed, state.problem) = (tests, failed, Some(Instant::now()));
    }

    /// Ends the problem.
    pub fn end(&self) {
        self.shared.lock().problem = None;
    }

    /// Removes the line until it is renewed, so that it does not mix with other output.
    pub fn hide(&self) {
        self.shared.lock().hide();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.shared.lock().done = true;
        self.shared.ended.notify_all();
        if let Some(thread) = self.thread.take() {
            // The thread does not panic. If it did, only the line would be lost.
            let _ = thread.join();
        }
        self.hide();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn renew(&self) {
        let mut state = self.lock();
        while !state.done {
            let renewal = state.pace.renewal;
            let woken = self.ended.wait_timeout(state, renewal);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
            if !state.done && state.started.elapsed() >= state.pace.patience {
                state.show();
            }
        }
    }
}

impl State {
    fn show(&mut self) {
        let Some(problem) = self.problem else { return };
        let State { tests, total, failed, .. } = *self;
        let seconds = problem.elapsed().as_secs();
        let current = if seconds > 0 { format!(" ({seconds} s)") } else { String::new() };
        // Errors do not matter: progress is only a courtesy.
        let _ = write!(self.out, "\r\x1b[K{tests}/{total} failed:{failed}{current}");
        let _ = self.out.flush();
        self.shown = true;
    }

    fn hide(&mut self) {
        if std::mem::take(&mut self.shown) {
            let _ = write!(self.out, "\r\x1b[K");
            let _ = self.out.flush();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Default)]
    struct Screen(Arc<Mutex<Vec<u8>>>);

    impl Screen {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().expect("no panic").clone()).expect("UTF-8")
        }
    }

    impl Write for Screen {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("no panic").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn pace(patience: u64) -> Pace {
        Pace { patience: Duration::from_millis(patience), renewal: Duration::from_millis(1) }
    }

    #[test]
    fn a_single_long_problem_shows_progress() {
        let screen = Screen::default();
        let progress = Progress::new(Box::new(screen.clone()), 7, pace(5));
        progress.begin(3, 1);
        let line = "\r\x1b[K3/7 failed:1";
        while screen.text().matches(line).count() < 3 {
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(progress);
        assert!(screen.text().ends_with("\r\x1b[K"), "the line is removed at the end");
    }

    #[test]
    fn nothing_is_shown_early_or_between_problems() {
        let screen = Screen::default();
        let early = Progress::new(Box::new(screen.clone()), 1, pace(1_000_000));
        early.begin(0, 0);
        let between = Progress::new(Box::new(screen.clone()), 1, pace(0));
        between.begin(0, 0);
        between.end();
        between.hide();
        let before = screen.text();
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(screen.text(), before);
    }
}
