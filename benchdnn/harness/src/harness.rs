//! A whole run: reads the command line, runs the jobs, prints results, and determines the exit status.

use crate::driver::Driver;
use crate::job::Job;
use crate::library::Executor;
use crate::machine::{self, Request};
use crate::modes::{self, Bench};
use crate::outcome::{Halt, Outcome, Status};
use crate::peer::Peer;
use crate::progress::{PACE, Progress};
use crate::report::Reporter;
use crate::run::Mode;
use crate::summary::Tally;
use std::cell::RefCell;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::time::Instant;

/// Nothing failed.
pub const FINE: u8 = 0;
/// A problem failed.
pub const FAILED: u8 = 1;
/// The command line, a batch file or a data file cannot be used.
pub const NOT_UNDERSTOOD: u8 = 2;

/// Where a run writes.
pub struct Streams<'a> {
    /// Results.
    pub out: &'a mut dyn Write,
    /// Errors and warnings about the command line.
    pub err: &'a mut dyn Write,
    /// Progress, if it is shown.
    pub progress: Option<Box<dyn Write + Send>>,
}

/// Runs a command line, given without the program's name, and returns the exit status. The first
/// driver is the default one.
///
/// # Errors
/// If results cannot be written.
pub fn run(
    arguments: &[String],
    drivers: Vec<Box<dyn Driver>>,
    library: &dyn Executor,
    streams: Streams<'_>,
) -> io::Result<u8> {
    let Streams { out, err, progress } = streams;
    let (jobs, remarks) = match machine::read(arguments, drivers, library) {
        Ok(Request::Help(text)) => {
            out.write_all(text.as_bytes())?;
            out.flush()?;
            return Ok(FINE);
        }
        Ok(Request::Jobs { jobs, remarks }) => (jobs, remarks),
        Err(error) => {
            writeln!(err, "benchdnn: {error}")?;
            return Ok(NOT_UNDERSTOOD);
        }
    };
    for remark in remarks {
        writeln!(err, "benchdnn: warning: {remark}")?;
    }
    // Libraries are opened before other threads exist, because opening them sets environment variables.
    let mut reporter = Reporter::new(out);
    let opened = open_peers(&jobs, &mut reporter).and_then(|()| {
        let mut outputs = jobs.iter().filter_map(|job| job.run.output.as_ref());
        outputs.try_for_each(|path| reporter.open(path))
    });
    if let Err(halt) = opened {
        writeln!(err, "benchdnn: {halt}")?;
        return Ok(NOT_UNDERSTOOD);
    }
    reporter.show(progress.map(|progress| Progress::new(progress, jobs.len(), PACE)));
    let bench = Bench { library, cache: RefCell::default() };
    for (number, job) in (0..).zip(&jobs) {
        if let Err(halt) = run_job(number, job, &bench, &mut reporter) {
            reporter.hide_progress();
            reporter.written()?;
            writeln!(err, "benchdnn: {halt}")?;
            return Ok(NOT_UNDERSTOOD);
        }
        reporter.written()?;
    }
    reporter.summary();
    reporter.written()?;
    let Tally { tests, skipped, failed, .. } = reporter.tally();
    if tests > 0 && skipped == tests {
        writeln!(err, "benchdnn: warning: no problem was run: {skipped} of {tests} skipped")?;
    }
    Ok(if failed > 0 { FAILED } else { FINE })
}

/// Opens the libraries to compare with before any problem runs, and prints their names.
fn open_peers(jobs: &[Job], reporter: &mut Reporter<'_>) -> Result<(), Halt> {
    let mut named: Vec<&Rc<Peer>> = Vec::new();
    for job in jobs.iter().filter(|job| job.run.mode != Mode::List) {
        let Some(peer) = &job.run.peer else { continue };
        peer.open(job.run.threads)?;
        if !named.iter().any(|known| Rc::ptr_eq(known, peer)) {
            reporter.say(&format!("compare: {}", peer.about()?));
            named.push(peer);
            let own_peer =
                |other: &&Job| other.run.peer.as_ref().is_some_and(|other| Rc::ptr_eq(other, peer));
            let wanted = jobs.iter().filter(own_peer).any(|job| job.run.threads > 0);
            if wanted && !peer.open(0)?.sets_threads() {
                reporter.say(
                    "compare: --threads does not reach that library: it has threads of another \
                     kind than OpenMP's, as many as its environment says",
                );
            }
        }
    }
    Ok(())
}

fn run_job(
    number: u64,
    job: &Job,
    bench: &Bench<'_>,
    reporter: &mut Reporter<'_>,
) -> Result<(), Halt> {
    reporter.begin(job);
    let start = Instant::now();
    let outcome = match job.run.mode {
        _ if number < job.run.start => Outcome::because(Status::Skipped, "before --start"),
        Mode::List => Outcome::new(Status::Listed),
        _ => survived(|| modes::run(&*job.problem, bench, &job.run, reporter))?,
    };
    reporter.end(job, &outcome, start.elapsed());
    Ok(())
}

/// Turns a panic, which is a defect of the harness, into a failed problem. The rest of the batch still runs, and the
/// summary is printed.
fn survived(run: impl FnOnce() -> Result<Outcome, Halt>) -> Result<Outcome, Halt> {
    // A panic leaves no state that is used again: buffers and tensors belong to the problem, and the cache only
    // contains complete entries.
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no reason");
        Ok(Outcome::because(Status::Failed, format!("benchdnn panicked: {text}")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_fails_its_problem_alone() {
        let outcome = survived(|| panic!("index {} of 3", 7)).expect("no end of the run");
        assert_eq!(outcome.said(), "FAILED (benchdnn panicked: index 7 of 3)");
        let outcome = survived(|| Ok(Outcome::new(Status::Passed))).expect("no end of the run");
        assert_eq!(outcome.status, Status::Passed);
    }
}
