//! The drivers: one folder and one row of [`all`] each.
//!
//! A driver owns the options and the descriptor of its primitive, and knows how to check and time a
//! problem. The language, the result lines and the harness know only the two traits here.

pub mod end;
pub mod lnorm;
pub mod reorder;

use crate::executor::Refusal;
use crate::language::options::Info;
use crate::language::value::BadValue;
use crate::library::Connection;
use crate::outcome::{Halt, Outcome};
use crate::report::Reporter;
use crate::run::Run;
use std::fmt;
use std::rc::Rc;

/// Every driver, at its default options; the first is the default driver.
pub fn all() -> Result<Vec<Box<dyn Driver>>, Refusal> {
    let linked = Rc::new(Connection::linked()?);
    let lnorm = lnorm::LibraryExecutor::new(linked.clone())?;
    let reorder = reorder::LibraryExecutor::new(linked)?;
    Ok(vec![
        Box::new(lnorm::Lnorm::new(Rc::new(lnorm))),
        Box::new(reorder::Reorder::new(Rc::new(reorder))),
    ])
}

/// One driver and the state of its options.
pub trait Driver {
    /// The name after `--`.
    fn name(&self) -> &'static str;

    /// One line for the help.
    fn about(&self) -> &'static str;

    /// The end of the help: what a descriptor looks like, and examples.
    fn manual(&self) -> &'static str;

    /// The driver's own options.
    fn options(&self) -> Vec<Info>;

    /// Names of the library's implementations on this machine, best first; empty if they cannot
    /// be known without a problem.
    fn implementations(&self) -> Vec<String>;

    /// Sets an option; `None` if the driver has none of this name.
    fn set(&mut self, name: &str, value: &str) -> Option<Result<(), BadValue>>;

    /// Sets all options back to their defaults.
    fn reset(&mut self);

    /// The problems that the descriptor and the options' lists make.
    fn problems(&self, descriptor: &str) -> Result<Vec<Rc<dyn Problem>>, BadValue>;
}

/// One problem of a driver. Its debug text shows everything that its line should make again.
pub trait Problem: fmt::Debug {
    /// The driver's options that are not at their defaults, or all if `canonical`, and the
    /// descriptor.
    fn line(&self, canonical: bool) -> String;

    /// An entry of the performance template that is the driver's own, such as `dt`; `None` if it
    /// has no such entry.
    fn entry(&self, name: &str) -> Option<String>;

    /// A layout of the problem that the interface has no tag for, as a sentence says it.
    fn unlisted_tag(&self) -> Option<String> {
        None
    }

    /// The name that the descriptor gives the problem; often empty.
    fn name(&self) -> &str;

    /// Runs the problem and says what came of it. An error ends the whole run.
    fn run(&self, run: &Run, reporter: &mut Reporter<'_>) -> Result<Outcome, Halt>;
}
