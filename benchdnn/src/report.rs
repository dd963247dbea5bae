//! What is printed: result lines, details by verbosity, measured times, progress, the summary.
//!
//! Result lines are commands: what follows `__REPRO:` runs the same problem again. The formats are
//! benchdnn's, so that scripts which read them keep working.

use crate::language::machine::Job;
use crate::outcome::{Outcome, Performance, Status};
use std::io::{self, Write};
use std::time::{Duration, Instant};

/// How long a run goes on before progress is shown, and how often it is renewed.
const PATIENCE: Duration = Duration::from_secs(2);
const RENEWAL: Duration = Duration::from_millis(200);

/// Counts of statuses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Problems run or listed.
    pub tests: usize,
    /// PASSED and EXECUTED.
    pub passed: usize,
    /// SKIPPED.
    pub skipped: usize,
    /// MISTRUSTED.
    pub mistrusted: usize,
    /// UNIMPLEMENTED; also among the failed.
    pub unimplemented: usize,
    /// INVALID_ARGUMENTS; also among the failed.
    pub invalid_arguments: usize,
    /// Everything that makes the exit status 1.
    pub failed: usize,
    /// LISTED.
    pub listed: usize,
    /// In mode B: problems on which several threads were seen to share the work.
    pub shared: usize,
}

impl Tally {
    fn add(&mut self, outcome: &Outcome) {
        self.tests += 1;
        match outcome.status {
            Status::Passed | Status::Executed => self.passed += 1,
            Status::Skipped => self.skipped += 1,
            Status::Mistrusted => self.mistrusted += 1,
            Status::Unimplemented => self.unimplemented += 1,
            Status::InvalidArguments => self.invalid_arguments += 1,
            Status::Listed => self.listed += 1,
            Status::Failed => {}
        }
        self.failed += usize::from(outcome.status.is_failure());
        self.shared += usize::from(outcome.shared);
    }
}

/// Where results go, and what they add up to.
pub struct Reporter<'a> {
    out: &'a mut dyn Write,
    progress: Option<&'a mut dyn Write>,
    progress_shown: bool,
    renewed: Instant,
    started: Instant,
    total: usize,
    verbosity: u32,
    tally: Tally,
    /// Sums of the quickest and the mean times, in milliseconds.
    measured: Option<(f64, f64)>,
    /// Whether any problem was compared bit by bit.
    bitwise: bool,
    /// The first failure to write; everything after it is dropped.
    broken: io::Result<()>,
}

impl<'a> Reporter<'a> {
    /// A reporter for `total` problems. `progress` is where progress is shown, if anywhere.
    pub fn new(
        out: &'a mut dyn Write,
        progress: Option<&'a mut dyn Write>,
        total: usize,
    ) -> Reporter<'a> {
        let now = Instant::now();
        Reporter {
            out,
            progress,
            progress_shown: false,
            renewed: now,
            started: now,
            total,
            verbosity: 0,
            tally: Tally::default(),
            measured: None,
            bitwise: false,
            broken: Ok(()),
        }
    }

    /// Whether details of this level are wanted for the current problem.
    pub fn shows(&self, level: u32) -> bool {
        level <= self.verbosity
    }

    /// Prints a line of detail if its level is wanted.
    pub fn detail(&mut self, level: u32, line: &str) {
        if self.shows(level) {
            self.line(line);
        }
    }

    fn line(&mut self, line: &str) {
        self.hide_progress();
        if self.broken.is_ok() {
            self.broken = writeln!(self.out, "{line}");
        }
    }

    /// Begins a problem.
    pub fn begin(&mut self, job: &Job) {
        self.verbosity = job.run.verbosity;
        if self.shows(1) {
            self.line(&format!("run: {}", job.line()));
            // The line is for finding what crashed, so it must be out before the problem runs.
            if self.broken.is_ok() {
                self.broken = self.out.flush();
            }
        }
        self.show_progress();
    }

    /// Ends a problem: prints its result line and its times.
    pub fn end(&mut self, job: &Job, outcome: &Outcome, time: Duration) {
        let line = job.line();
        if let Some(performance) = &outcome.performance {
            if self.measured.is_none() {
                self.line(
                    "perf,engine,impl,name,prb,bytes,min_ms,min_GBps,avg_ms,avg_GBps,\
                     median_ms,median_GBps",
                );
            }
            self.line(&performance_line(performance, job.problem.name(), &line));
            let (min, avg) = self.measured.unwrap_or_default();
            let timing = &performance.timing;
            self.measured = Some((min + timing.min_ms, avg + timing.avg_ms));
        }
        // A measured problem that was not checked has said everything in its own line.
        if !(outcome.status == Status::Executed && outcome.performance.is_some()) {
            let reason = match outcome.reason.as_str() {
                "" => String::new(),
                reason => format!(" ({reason})"),
            };
            let (number, status) = (self.tally.tests, outcome.status.name());
            self.line(&format!(
                "{number}:{status}{reason} ({} ms) __REPRO: {line}",
                time.as_millis()
            ));
        }
        self.bitwise |= job.run.mode.is_bitwise();
        self.tally.add(outcome);
    }

    /// Prints the summary.
    pub fn summary(&mut self) {
        let Tally { tests, passed, skipped, mistrusted, failed, listed, .. } = self.tally;
        let Tally { unimplemented, invalid_arguments, shared, .. } = self.tally;
        self.line(&format!(
            "tests:{tests} passed:{passed} skipped:{skipped} mistrusted:{mistrusted} \
             unimplemented:{unimplemented} invalid_arguments:{invalid_arguments} \
             failed:{failed} listed:{listed}"
        ));
        if self.bitwise {
            self.line(&format!(
                "total bits: problems on which 2 and 3 threads all worked:{shared}"
            ));
        }
        if let Some((min, avg)) = self.measured {
            self.line(&format!("total perf: min(ms):{min:.6} avg(ms):{avg:.6}"));
        }
        self.line(&format!("total: {:.2}s", self.started.elapsed().as_secs_f64()));
    }

    /// What the problems have come to so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Whether everything could be written.
    pub fn written(&mut self) -> io::Result<()> {
        std::mem::replace(&mut self.broken, Ok(())).and_then(|()| self.out.flush())
    }

    fn show_progress(&mut self) {
        let now = Instant::now();
        if now - self.started < PATIENCE || now - self.renewed < RENEWAL {
            return;
        }
        if let Some(progress) = &mut self.progress {
            let Tally { tests, failed, .. } = self.tally;
            // Progress is a courtesy: if it cannot be shown, nothing is lost.
            let _ = write!(progress, "\r\x1b[K{tests}/{} failed:{failed}", self.total);
            let _ = progress.flush();
            self.progress_shown = true;
            self.renewed = now;
        }
    }

    /// Removes the progress line, so that what is printed next stands alone.
    pub fn hide_progress(&mut self) {
        if std::mem::take(&mut self.progress_shown)
            && let Some(progress) = &mut self.progress
        {
            let _ = write!(progress, "\r\x1b[K");
            let _ = progress.flush();
        }
    }
}

fn performance_line(performance: &Performance, name: &str, line: &str) -> String {
    let Performance { implementation, bytes, timing } = performance;
    let rate = |ms: f64| if ms > 0.0 { *bytes as f64 / ms / 1e6 } else { 0.0 };
    let mut text = format!("perf,cpu,{implementation},{name:?},{line},{bytes}");
    for ms in [timing.min_ms, timing.avg_ms, timing.median_ms] {
        text.push_str(&format!(",{ms:.6},{:.3}", rate(ms)));
    }
    text
}
