//! One problem to run in one way, and the line that reproduces it.

use crate::problem::Problem;
use crate::run::Run;
use std::rc::Rc;

/// One problem to run in one way.
#[derive(Clone)]
pub struct Job {
    /// How.
    pub run: Rc<Run>,
    /// What.
    pub problem: Rc<dyn Problem>,
    /// The name of the problem's driver.
    pub driver: &'static str,
}

impl Job {
    /// The words that reproduce this job, without options at their defaults.
    pub fn line(&self) -> String {
        let mut words = self.run.words();
        words.push(format!("--{}", self.driver));
        words.extend(self.run.filter.word(self.run.canonical));
        words.push(self.problem.line(self.run.canonical));
        words.join(" ")
    }
}
