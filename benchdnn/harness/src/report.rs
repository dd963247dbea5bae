//! The output: result lines, details by verbosity, measured times, the summary.
//!
//! Result lines are commands: the text after `__REPRO:` runs the same problem again. The formats are
//! those of oneDNN's benchdnn, so scripts that read them still work. Measured times can go to a
//! separate file.

use crate::contest::Quartiles;
use crate::job::Job;
use crate::outcome::{Against, Compared, Creation, Halt, Outcome, Performance, Roof, Status};
use crate::progress::Progress;
use crate::summary::{Sections, Summary, Tally};
use crate::template::Facts;
use crate::timing::Timing;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Where results go, and their totals.
pub struct Reporter<'a> {
    out: &'a mut dyn Write,
    progress: Option<Progress>,
    started: Instant,
    verbosity: u32,
    summary: Summary,
    /// What the summary shows.
    sections: Sections,
    /// The header that was last printed to standard output.
    header: String,
    /// The files of `--output`.
    files: Vec<Table>,
    /// The first failure to write; everything after it is dropped.
    broken: io::Result<()>,
}

/// A file of measured times.
struct Table {
    path: Rc<str>,
    file: BufWriter<File>,
    /// The header that was printed last.
    header: String,
}

impl<'a> Reporter<'a> {
    /// A reporter.
    pub fn new(out: &'a mut dyn Write) -> Reporter<'a> {
        Reporter {
            out,
            progress: None,
            started: Instant::now(),
            verbosity: 0,
            summary: Summary::default(),
            sections: Sections::default(),
            header: String::new(),
            files: Vec::new(),
            broken: Ok(()),
        }
    }

    /// Shows progress from now on.
    pub fn show(&mut self, progress: Option<Progress>) {
        self.progress = progress;
    }

    /// Creates the file of an `--output`, unless that was done.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn open(&mut self, path: &Rc<str>) -> Result<(), Halt> {
        if self.files.iter().any(|table| table.path == *path) {
            return Ok(());
        }
        let file = File::create(&**path)
            .map_err(|error| Halt(format!("--output: cannot write {path}: {error}")))?;
        let file = BufWriter::new(file);
        self.files.push(Table { path: path.clone(), file, header: String::new() });
        Ok(())
    }

    /// Whether the verbosity includes this level for the current problem.
    pub fn shows(&self, level: u32) -> bool {
        level <= self.verbosity
    }

    /// Prints a line whatever the verbosity.
    pub fn say(&mut self, line: &str) {
        self.line(line);
    }

    /// Prints a line of detail if the verbosity includes its level.
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
            // The line identifies a problem that crashes, so it must be written before the problem runs.
            if self.broken.is_ok() {
                self.broken = self.out.flush();
            }
        }
        if let Some(progress) = &self.progress {
            let Tally { tests, failed, .. } = self.summary.tally();
            progress.begin(tests, failed);
        }
    }

    /// Ends a problem: prints its times and its result line.
    pub fn end(&mut self, job: &Job, outcome: &Outcome, time: Duration) {
        let line = job.line();
        let number = self.summary.tally().tests;
        if let Some(progress) = &self.progress {
            progress.end();
        }
        if let Some(performance) = &outcome.performance {
            self.times(job, &line, number, performance);
        }
        // A table has an empty field instead.
        let table = outcome.performance.is_some() && !job.run.template.is_default();
        if let Some(Compared::NotOffered(reason)) = &outcome.compared
            && (!table || self.shows(1))
        {
            self.line(&format!("  compare: not offered: {reason}"));
        }
        if let Some(creation) = &outcome.creation {
            self.line(&creation_line(creation));
        }
        let is_said = outcome.performance.is_some() && job.run.output.is_none();
        if outcome.status != Status::Executed || !is_said {
            let (said, time) = (outcome.said(), time.as_millis());
            self.line(&format!("{number}:{said} ({time} ms) __REPRO: {line}"));
        }
        self.summary.add(outcome, &line, job.run.mode.checks().bitwise);
    }

    /// Prints measured times as the template says.
    fn times(&mut self, job: &Job, line: &str, number: usize, performance: &Performance) {
        let template = &job.run.template;
        let driver = job.driver;
        let entry = |name: &str| job.problem.entry(name);
        let name = job.problem.name();
        let facts = Facts { performance, driver, name, line, number, entry: &entry };
        let (header, text) = (template.header(), template.line(&facts));
        let own = |table: &&mut Table| Some(&table.path) == job.run.output.as_ref();
        if let Some(table) = self.files.iter_mut().find(own) {
            let mut lines = vec![text];
            if !header.is_empty() && table.header != header {
                lines.insert(0, header.clone());
                table.header = header;
            }
            for line in lines {
                if self.broken.is_ok() {
                    self.broken = writeln!(table.file, "{line}");
                }
            }
        } else {
            if !header.is_empty() && self.header != header {
                self.line(&header);
                self.header = header;
            }
            self.line(&text);
        }
        if template.is_default() {
            performance_details(performance).iter().for_each(|detail| self.line(detail));
        }
    }

    /// Prints the summary.
    pub fn summary(&mut self) {
        self.summary.lines(self.sections).iter().for_each(|line| self.line(line));
        self.line(&format!("total: {:.2}s", self.started.elapsed().as_secs_f64()));
    }

    /// The counts so far.
    pub fn tally(&self) -> Tally {
        self.summary.tally()
    }

    /// Whether everything could be written.
    pub fn written(&mut self) -> io::Result<()> {
        std::mem::replace(&mut self.broken, Ok(()))?;
        self.files.iter_mut().try_for_each(|table| table.file.flush())?;
        self.out.flush()
    }

    /// Removes the progress line, so that it does not mix with what is printed next.
    pub fn hide_progress(&mut self) {
        if let Some(progress) = &self.progress {
            progress.hide();
        }
    }
}

/// A median in microseconds.
fn microseconds(timing: &Timing) -> String {
    format!("{:.3} us", 1e3 * timing.median_ms)
}

/// The line with both libraries' times of creation.
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

/// What the default template does not show.
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
