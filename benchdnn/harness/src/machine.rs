//! The state machine: words in, jobs out.
//!
//! Options set the state; a descriptor multiplies out the state's lists into jobs. `--batch` reads
//! a file's words in place, so their effects remain. `--reset` resets the options of problems and
//! keeps those of the run.

use crate::driver::Driver;
use crate::job::Job;
use crate::language::batch::{self, Folder, Unusable};
use crate::language::grammar::{Grammar, Written};
use crate::language::options::{Info, defaults, set};
use crate::language::token::{Place, Token};
use crate::language::value::{BadValue, starts};
use crate::library::Executor;
use crate::problem::Problem;
use crate::run::{ColdCache, Mode, RUN, Run, RunSettings, SELECTION, Selection};
use std::fmt;
use std::rc::Rc;

/// What a command line requests.
pub enum Request {
    /// Print this text, the help or the version.
    Help(String),
    /// Run these jobs.
    Jobs {
        /// The jobs in order, including repeats.
        jobs: Vec<Job>,
        /// Remarks about the command line itself, such as an option without effect.
        remarks: Vec<String>,
    },
}

/// A command line or batch file that is not valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageError {
    /// The position, if there is a single one.
    pub place: Option<Place>,
    /// What is wrong.
    pub message: String,
    /// The `--batch` options that led there, innermost first.
    pub included_from: Vec<Place>,
}

impl fmt::Display for UsageError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(out, "{place}: {}", self.message)?,
            None => out.write_str(&self.message)?,
        }
        self.included_from.iter().try_for_each(|place| write!(out, "\n  included from {place}"))
    }
}

impl std::error::Error for UsageError {}

const BATCH: Info = Info {
    name: "batch",
    short: None,
    value: "FILE",
    topic: "Problems",
    default: "",
    help: "Read options and problems from a file or a pipe (/dev/stdin): a path relative to the\n\
           file that includes it, or one of the driver's batches (shapes_*, test_*, perf_*)",
};
const RESET: Info = Info {
    name: "reset",
    short: None,
    value: "",
    topic: "Problems",
    default: "",
    help: "Restore the defaults of the driver's options, --match, --impl and --skip-impl",
};
const HELP: Info = Info {
    name: "help",
    short: Some('h'),
    value: "",
    topic: "Drivers and help",
    default: "",
    help: "Print this text; after a driver's name, the help of that driver",
};
const VERSION: Info = Info {
    name: "version",
    short: Some('V'),
    value: "",
    topic: "Drivers and help",
    default: "",
    help: "Print the version",
};

/// Reads a command line (without the program's name). The first driver is the default one.
pub fn read(
    arguments: &[String],
    drivers: Vec<Box<dyn Driver>>,
    library: &dyn Executor,
) -> Result<Request, UsageError> {
    let mut machine = Machine::new(drivers, library);
    let tokens: Vec<Token> = arguments
        .iter()
        .enumerate()
        .map(|(index, argument)| Token::argument(index + 1, argument))
        .collect();
    match machine.words(&tokens, &Folder::Disk("".into())) {
        Ok(()) => {}
        Err(Stop::Help) => return Ok(Request::Help(machine.help())),
        Err(Stop::Version) => {
            let version = concat!("benchdnn ", env!("CARGO_PKG_VERSION"), "\n");
            return Ok(Request::Help(version.to_owned()));
        }
        Err(Stop::Error(error)) => return Err(error),
    }
    if machine.descriptors == 0 {
        return Err(UsageError {
            place: None,
            message: NO_PROBLEM.to_owned(),
            included_from: Vec::new(),
        });
    }
    let mut remarks = Vec::new();
    if machine.jobs.is_empty() {
        remarks.push("--match leaves out every problem".to_owned());
    }
    if let Some(place) = tokens.last().filter(|token| is_setting(token)).map(|t| t.place(0)) {
        remarks.push(format!("{place}: an option after the last problem has no effect"));
    }
    Ok(Request::Jobs { jobs: machine.jobs, remarks })
}

const NO_PROBLEM: &str = "no problem given\n\
    usage: benchdnn [driver] [options] problem ...\n  \
    benchdnn --flags=CM 4096x4096     checks RMS normalization of 4096 rows\n  \
    benchdnn --batch=test_lnorm_ci    checks the problems of a file\n  \
    benchdnn --help                   lists all options";

fn is_setting(token: &Token) -> bool {
    token.text.starts_with('-') && !token.text.starts_with("--batch=")
}

enum Stop {
    Help,
    Version,
    Error(UsageError),
}

struct Machine<'l> {
    drivers: Vec<Box<dyn Driver>>,
    library: &'l dyn Executor,
    active: usize,
    /// Whether a driver was named, so that `--help` is about it.
    named: bool,
    grammar: Grammar,
    settings: RunSettings,
    selection: Selection,
    jobs: Vec<Job>,
    descriptors: usize,
    /// The open `--batch` options, outermost first, and the names of their files.
    open: Vec<(Place, String)>,
}

impl<'l> Machine<'l> {
    fn new(drivers: Vec<Box<dyn Driver>>, library: &'l dyn Executor) -> Machine<'l> {
        let grammar = grammar(&drivers, 0, false);
        Machine {
            drivers,
            library,
            active: 0,
            named: false,
            grammar,
            settings: defaults(RUN),
            selection: defaults(SELECTION),
            jobs: Vec::new(),
            descriptors: 0,
            open: Vec::new(),
        }
    }

    fn help(&self) -> String {
        grammar(&self.drivers, self.active, self.named).help()
    }

    fn words(&mut self, tokens: &[Token], folder: &Folder) -> Result<(), Stop> {
        tokens.iter().try_for_each(|token| self.word(token, folder))
    }

    fn word(&mut self, token: &Token, folder: &Folder) -> Result<(), Stop> {
        if !token.text.starts_with('-') {
            return self.descriptor(token);
        }
        let written = self.grammar.read(&token.text).map_err(|error| self.stop(token, error))?;
        let Written { name, value } = written;
        let Some((offset, value)) = value else {
            return self.switch(&name);
        };
        if name == BATCH.name {
            return self.batch(token, offset, &value, folder);
        }
        let filter = self.selection.filter.clone();
        set(RUN, &mut self.settings, &name, &value)
            .or_else(|| set(SELECTION, &mut self.selection, &name, &value))
            .or_else(|| self.drivers[self.active].set(&name, &value))
            .expect("the grammar is made of these tables")
            .map_err(|error| {
                let message = format!("--{name}: {}", error.message);
                self.stop(token, BadValue::at(offset + error.offset, message))
            })?;
        if self.selection.filter != filter {
            self.implementations_exist(&name, &value)
                .map_err(|error| self.stop(token, error.shifted(offset)))?;
        }
        Ok(())
    }

    /// Refuses a text that is not part of any implementation's name, because it would skip all problems, or none,
    /// without an explanation. oneDNN's batches skip an implementation of its reorder.
    fn implementations_exist(&self, option: &str, value: &str) -> Result<(), BadValue> {
        let mut known: Vec<String> = Vec::new();
        let samples = self.drivers.iter().map(|driver| driver.sample());
        for name in samples.flat_map(|problem| implementations(self.library, &*problem)) {
            if !known.contains(&name) {
                known.push(name);
            }
        }
        let texts = self.selection.filter.texts();
        let is_onednn = |text: &str| option == "skip-impl" && text == "simple";
        let exists = |text: &str| is_onednn(text) || known.iter().any(|name| name.contains(text));
        match texts.iter().position(|text| !exists(text)) {
            Some(index) if !known.is_empty() => {
                let (text, known) = (&texts[index], known.join(", "));
                Err(BadValue::at(
                    starts(value, ',').nth(index).unwrap_or(0),
                    format!("--{option}: '{text}' matches none of {known}"),
                ))
            }
            _ => Ok(()),
        }
    }

    fn switch(&mut self, name: &str) -> Result<(), Stop> {
        if name == HELP.name {
            return Err(Stop::Help);
        }
        if name == VERSION.name {
            return Err(Stop::Version);
        }
        if name == RESET.name {
            self.selection = defaults(SELECTION);
            self.drivers[self.active].reset();
        } else {
            self.active = self
                .drivers
                .iter()
                .position(|driver| driver.name() == name)
                .expect("the grammar's other switches are drivers");
            self.named = true;
            self.grammar = grammar(&self.drivers, self.active, true);
        }
        Ok(())
    }

    fn batch(
        &mut self,
        token: &Token,
        offset: usize,
        file: &str,
        folder: &Folder,
    ) -> Result<(), Stop> {
        if file.is_empty() {
            return Err(self.stop(token, BadValue::at(offset, "--batch: a file name is missing")));
        }
        let batch = match batch::open(file, folder, self.drivers[self.active].name()) {
            Ok(batch) => batch,
            Err(Unusable::Missing(message)) => {
                return Err(self.stop(token, BadValue::at(offset, message)));
            }
            Err(Unusable::OpenQuote(place)) => {
                self.open.push((token.place(0), file.to_owned()));
                return Err(self.error(place, "a quote that is never closed".to_owned()));
            }
        };
        if self.open.iter().any(|(_, name)| *name == batch.name) {
            let message = format!("{} includes itself", batch.name);
            return Err(self.stop(token, BadValue::at(offset, message)));
        }
        self.open.push((token.place(0), batch.name));
        self.words(&batch.tokens, &batch.folder)?;
        self.open.pop();
        Ok(())
    }

    fn descriptor(&mut self, token: &Token) -> Result<(), Stop> {
        self.descriptors += 1;
        let driver = &self.drivers[self.active];
        let name = driver.name();
        let problems = driver.problems(&token.text).map_err(|error| self.stop(token, error))?;
        for run in self.settings.runs(&self.selection) {
            let run = Rc::new(run);
            for problem in &problems {
                makes_sense(&run, &**problem)
                    .map_err(|message| self.stop(token, BadValue::new(message)))?;
                let line = problem.line(false);
                if self.selection.pattern.as_ref().is_some_and(|regex| !regex.is_match(&line)) {
                    continue;
                }
                let job = Job { run: run.clone(), problem: problem.clone(), driver: name };
                self.jobs.extend((0..run.repeats).map(|_| job.clone()));
            }
        }
        Ok(())
    }

    fn stop(&self, token: &Token, error: BadValue) -> Stop {
        self.error(token.place(error.offset), error.message)
    }

    fn error(&self, place: Place, message: String) -> Stop {
        let included_from = self.open.iter().rev().map(|(place, _)| place.clone()).collect();
        Stop::Error(UsageError { place: Some(place), message, included_from })
    }
}

/// The options as clap commands, for manual pages and completions: first the program's, with those of
/// the default driver, then each driver's.
pub fn commands(drivers: &[Box<dyn Driver>]) -> Vec<clap::Command> {
    let program = grammar(drivers, 0, false);
    let each = (0..drivers.len()).map(|index| grammar(drivers, index, true));
    std::iter::once(program).chain(each).map(|grammar| grammar.command().clone()).collect()
}

/// The names of the library's implementations of a problem, best first; none if it has none.
pub fn implementations(library: &dyn Executor, problem: &dyn Problem) -> Vec<String> {
    let Ok(mut prepared) = library.prepare(&*problem.request()) else { return Vec::new() };
    let mut names = vec![prepared.implementation()];
    while prepared.next_implementation() == Ok(true) {
        names.push(prepared.implementation());
    }
    names
}

/// Refuses options without effect in the run's mode, and those that do not fit the problem.
fn makes_sense(run: &Run, problem: &dyn Problem) -> Result<(), String> {
    has_effect(run)?;
    // A problem that is skipped in any case has no layouts and gradients to look at.
    if problem.too_large().is_some() {
        return Ok(());
    }
    if run.gradient && run.mode != Mode::List {
        problem.gradients()?;
    }
    match problem.unlisted_tag().filter(|_| run.enum_tags_only) {
        Some(tag) => Err(format!("--allow-enum-tags-only: {tag}")),
        None => Ok(()),
    }
}

/// Refuses options without effect in the run's mode.
fn has_effect(run: &Run) -> Result<(), String> {
    if run.mode == Mode::List {
        return Ok(());
    }
    let (checks, letters) = (run.mode.checks(), run.mode.letters());
    let timing = [
        ("roofline", run.roofline),
        ("output", run.output.is_some()),
        ("perf-template", !run.template.is_default()),
        ("max-ms-per-prb", run.max_ms.is_some()),
        ("cold-cache", run.cold_cache != ColdCache::None),
        ("fix-times-per-prb", run.fix_times > 0 && !run.times_creation()),
    ];
    if let Some((name, _)) = timing.iter().find(|(_, is_set)| *is_set && !checks.performance) {
        let creation = if *name == "fix-times-per-prb" { " (or I with --compare)" } else { "" };
        return Err(format!(
            "--{name} needs a mode that measures, P or F{creation}, not {letters}"
        ));
    }
    let compares = checks.correctness || checks.performance || run.mode == Mode::Initialize;
    if run.peer.is_some() && !compares {
        return Err(format!("--compare needs mode C, P, F or I, not {letters}"));
    }
    if run.explain && run.mode == Mode::Initialize {
        return Err("--explain needs a mode that executes, not I".to_owned());
    }
    match run.gradient && !checks.correctness {
        true => Err(format!("--check=grad needs mode C, not {letters}")),
        false => Ok(()),
    }
}

/// The options that are valid while the driver at `active` is.
pub fn options(drivers: &[Box<dyn Driver>], active: usize) -> Vec<Info> {
    let mut infos = drivers[active].options();
    infos.extend([BATCH, RESET]);
    infos.extend(RUN.iter().map(|option| option.info));
    infos.extend(SELECTION.iter().map(|option| option.info));
    infos.extend(drivers.iter().map(|driver| Info {
        name: driver.name(),
        short: None,
        value: "",
        topic: HELP.topic,
        default: "",
        help: driver.about(),
    }));
    infos.extend([HELP, VERSION]);
    infos
}

/// The grammar of these options. Unless the driver was `named`, the help is about the whole program, with the default
/// driver's options.
fn grammar(drivers: &[Box<dyn Driver>], active: usize, named: bool) -> Grammar {
    let (driver, infos) = (&drivers[active], options(drivers, active));
    let (usage, about) = if named {
        (format!("benchdnn --{} [options] problem ...", driver.name()), driver.about())
    } else {
        (
            "benchdnn [driver] [options] problem ... [options] problem ...".to_owned(),
            "Checks and times primitives. Options apply to the problems after them; if options\n\
             have lists (a,b), every combination runs. Exit status: 0 if nothing failed, even if\n\
             problems were skipped, 1 if something failed, 2 if the command line was not\n\
             understood.",
        )
    };
    let others = drivers
        .iter()
        .flat_map(|driver| driver.options().into_iter().map(|info| (info.name, driver.name())));
    Grammar::new(infos, &usage, about, driver.manual()).beside(others.collect())
}
