//! What is printed: result lines, details by verbosity, measured times, progress, the summary.
//!
//! Result lines are commands: what follows `__REPRO:` runs the same problem again. The formats are
//! benchdnn's, so that scripts which read them keep working.

use crate::contest::Quartiles;
use crate::language::machine::Job;
use crate::outcome::{Against, Compared, Creation, Outcome, Performance, Roof, Status};
use crate::summary::{Sections, Summary, Tally};
use crate::template::Facts;
use crate::timing::Timing;
use std::io::{self, Write};
use std::time::{Duration, Instant};

/// How long a run goes on before progress is shown, and how often it is renewed.
const PATIENCE: Duration = Duration::from_secs(2);
const RENEWAL: Duration = Duration::from_millis(200);

/// Where results go, and what they add up to.
pub struct Reporter<'a> {
    out: &'a mut dyn Write,
    progress: Option<&'a mut dyn Write>,
    progress_shown: bool,
    renewed: Instant,
    started: Instant,
    total: usize,
    verbosity: u32,
    summary: Summary,
    /// What the summary shows.
    sections: Sections,
    /// The header that was printed last.
    header: String,
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
            summary: Summary::default(),
            sections: Sections::default(),
            header: String::new(),
            broken: Ok(()),
        }
    }

    /// Whether details of this level are wanted for the current problem.
    pub fn shows(&self, level: u32) -> bool {
        level <= self.verbosity
    }

    /// Prints a line whatever the verbosity.
    pub fn say(&mut self, line: &str) {
        self.line(line);
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
        self.sections = job.run.sections;
        if self.shows(1) {
            self.line(&format!("run: {}", job.line()));
            // The line is for finding what crashed, so it must be out before the problem runs.
            if self.broken.is_ok() {
                self.broken = self.out.flush();
            }
        }
        self.show_progress();
    }

    /// Ends a problem: prints its times and its result line.
    pub fn end(&mut self, job: &Job, outcome: &Outcome, time: Duration) {
        let line = job.line();
        let number = self.summary.tally().tests;
        if let Some(performance) = &outcome.performance {
            let template = &job.run.template;
            let header = template.header();
            if !header.is_empty() && self.header != header {
                self.line(&header);
                self.header = header;
            }
            let driver = job.driver;
            let entry = |name: &str| job.problem.entry(name);
            let name = job.problem.name();
            let (line, threads) = (line.as_str(), job.run.threads);
            let facts = Facts { performance, driver, name, line, threads, number, entry: &entry };
            self.line(&template.line(&facts));
            if template.is_default() {
                performance_details(performance).iter().for_each(|detail| self.line(detail));
            }
        }
        // A table has an empty field for it.
        let table = outcome.performance.is_some() && !job.run.template.is_default();
        if let Some(Compared::NotOffered(reason)) = &outcome.compared
            && (!table || self.shows(1))
        {
            self.line(&format!("  compare: not offered: {reason}"));
        }
        if let Some(creation) = &outcome.creation {
            self.line(&creation_line(creation));
        }
        if outcome.status != Status::Executed || outcome.performance.is_none() {
            let (said, time) = (outcome.said(), time.as_millis());
            self.line(&format!("{number}:{said} ({time} ms) __REPRO: {line}"));
        }
        self.summary.add(outcome, &line, job.run.mode.checks().bitwise);
    }

    /// Prints the summary.
    pub fn summary(&mut self) {
        self.summary.lines(self.sections).iter().for_each(|line| self.line(line));
        self.line(&format!("total: {:.2}s", self.started.elapsed().as_secs_f64()));
    }

    /// What the problems have come to so far.
    pub fn tally(&self) -> Tally {
        self.summary.tally()
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
        let Tally { tests, failed, .. } = self.tally();
        if let Some(progress) = &mut self.progress {
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

/// A median.
fn microseconds(timing: &Timing) -> String {
    format!("{:.3} us", 1e3 * timing.median_ms)
}

/// What creating takes, here and there.
fn creation_line(creation: &Creation) -> String {
    let Creation { first_ms: [ours, theirs], again, ratio } = creation;
    let Quartiles { low, median, high } = ratio;
    format!(
        "  compare: creation: first {:.3} us against {:.3} us, ratio {:.3}; again {} against {}, ratio \
         {median:.3} [{low:.3} {high:.3}]",
        1e3 * ours,
        1e3 * theirs,
        creation.first_ratio(),
        microseconds(&again[0]),
        microseconds(&again[1])
    )
}

/// What the default template has no entries for.
fn performance_details(performance: &Performance) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(Against { implementation, timing, ratio }) = &performance.against {
        let Quartiles { low, median, high } = ratio;
        lines.push(format!(
            "  compare: ratio {median:.3} [{low:.3} {high:.3}]: {} against {} of {implementation}",
            microseconds(&performance.timing),
            microseconds(timing)
        ));
    }
    if let Some(Roof { copy, timing, share }) = &performance.roof {
        let Quartiles { low, median, high } = share;
        lines.push(format!(
            "  roofline: {median:.3} [{low:.3} {high:.3}] of the speed of {copy}, which takes {}",
            microseconds(timing)
        ));
    }
    lines
}
