//! The command line program; everything is in the library of this package.

use benchdnn::library::Connection;
use benchdnn::{drivers, harness};
use std::io::{self, BufWriter, IsTerminal};
use std::process::ExitCode;
use std::rc::Rc;

fn main() -> ExitCode {
    die_of_a_broken_pipe();
    let mut arguments = Vec::new();
    for argument in std::env::args_os().skip(1) {
        match argument.into_string() {
            Ok(text) => arguments.push(text),
            Err(bytes) => {
                let index = arguments.len() + 1;
                eprintln!("benchdnn: argument {index}: {bytes:?} is not UTF-8");
                return ExitCode::from(harness::NOT_UNDERSTOOD);
            }
        }
    }
    let library = match Connection::linked() {
        Ok(library) => Rc::new(library),
        Err(refusal) => {
            eprintln!("benchdnn: the library cannot be used: {}", refusal.message);
            return ExitCode::from(harness::FAILED);
        }
    };
    let progress = io::stderr();
    let show = progress.is_terminal();
    let streams = harness::Streams {
        out: &mut BufWriter::new(io::stdout().lock()),
        err: &mut io::stderr(),
        progress: show.then(|| Box::new(progress) as Box<dyn io::Write + Send>),
    };
    match harness::run(&arguments, drivers::all(), &library, streams) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            eprintln!("benchdnn: cannot write: {error}");
            ExitCode::from(harness::FAILED)
        }
    }
}

/// Ends the program silently by the signal if its reader leaves early (`benchdnn ... | head -1`), like other programs.
/// Rust's runtime ignores the signal.
#[cfg(unix)]
fn die_of_a_broken_pipe() {
    // SAFETY: no other thread runs yet, and the default action calls no function of this program.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

#[cfg(not(unix))]
fn die_of_a_broken_pipe() {}
