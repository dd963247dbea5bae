//! Drivers: the options and the descriptor of an operation, and the table row that names them.

use crate::attributes::{ATTRIBUTES, AttributeSettings};
use crate::language::options::{Info, Opt, defaults, set, word};
use crate::language::value::BadValue;
use crate::problem::Problem;
use crate::tensor::Tag;
use std::rc::Rc;

/// The problems of a command line.
pub type Problems = Result<Vec<Rc<dyn Problem>>, BadValue>;

/// One driver and the state of its options.
pub trait Driver {
    /// The name after `--`.
    fn name(&self) -> &'static str;

    /// One line for the help.
    fn about(&self) -> &'static str;

    /// The end of the help: the form of a descriptor, and examples.
    fn manual(&self) -> &'static str;

    /// The driver's own options.
    fn options(&self) -> Vec<Info>;

    /// A problem that every implementation supports.
    fn sample(&self) -> Rc<dyn Problem>;

    /// Sets an option; `None` if the driver has no option of this name.
    fn set(&mut self, name: &str, value: &str) -> Option<Result<(), BadValue>>;

    /// Resets all options to their defaults.
    fn reset(&mut self);

    /// The problems for a descriptor and the options' lists.
    fn problems(&self, descriptor: &str) -> Problems;
}

/// A row of the driver table. `S` is the state behind the options.
#[derive(Debug)]
pub struct Row<S: 'static> {
    /// The name after `--`.
    pub name: &'static str,
    /// One line for the help.
    pub about: &'static str,
    /// The end of the help.
    pub manual: &'static str,
    /// The operation's own options. Those of attributes are added.
    pub options: &'static [Opt<S>],
    /// Every combination of the options for a descriptor.
    pub problems: fn(&S, &AttributeSettings, &str) -> Problems,
    /// A problem that every implementation supports.
    pub sample: fn() -> Rc<dyn Problem>,
}

impl<S: Default> Row<S> {
    /// The driver, with its options at their defaults.
    pub fn driver(self) -> Box<dyn Driver> {
        let settings = defaults(self.options);
        Box::new(Table { row: self, settings, attributes: defaults(ATTRIBUTES) })
    }
}

/// A row with the state of its options.
struct Table<S: 'static> {
    row: Row<S>,
    settings: S,
    attributes: AttributeSettings,
}

impl<S: Default> Driver for Table<S> {
    fn name(&self) -> &'static str {
        self.row.name
    }

    fn about(&self) -> &'static str {
        self.row.about
    }

    fn manual(&self) -> &'static str {
        self.row.manual
    }

    fn options(&self) -> Vec<Info> {
        let own = self.row.options.iter().map(|option| option.info);
        own.chain(ATTRIBUTES.iter().map(|option| option.info)).collect()
    }

    fn sample(&self) -> Rc<dyn Problem> {
        (self.row.sample)()
    }

    fn set(&mut self, name: &str, value: &str) -> Option<Result<(), BadValue>> {
        set(self.row.options, &mut self.settings, name, value)
            .or_else(|| set(ATTRIBUTES, &mut self.attributes, name, value))
    }

    fn reset(&mut self) {
        self.settings = defaults(self.row.options);
        self.attributes = defaults(ATTRIBUTES);
    }

    fn problems(&self, descriptor: &str) -> Problems {
        (self.row.problems)(&self.settings, &self.attributes, descriptor)
    }
}

/// Checks that the tags of an option match a number of dimensions.
pub fn check_tags<'t>(
    option: &str,
    tags: impl IntoIterator<Item = &'t Tag>,
    ndims: usize,
) -> Result<(), BadValue> {
    tags.into_iter().try_for_each(|tag| {
        let bad = |message| BadValue::new(format!("--{option}: {message}"));
        tag.order(ndims).map(drop).map_err(bad)
    })
}

/// The line of a problem: the words of its own options, those of its attributes and contexts, and its end.
pub fn line<const N: usize>(
    problem: &dyn Problem,
    canonical: bool,
    own: [Option<String>; N],
    end: impl IntoIterator<Item = Option<String>>,
) -> String {
    let mut words: Vec<String> = own.into_iter().flatten().collect();
    words.extend(problem.attributes().words(canonical));
    for (name, context) in ["ctx-init", "ctx-exe"].into_iter().zip(problem.contexts()) {
        words.extend(word(ATTRIBUTES, name, &context.text(), canonical));
    }
    words.extend(end.into_iter().flatten());
    words.join(" ")
}

/// Wraps a driver's problems for the modes.
pub fn erased<P: Problem + 'static>(problems: Vec<P>) -> Vec<Rc<dyn Problem>> {
    problems.into_iter().map(|problem| Rc::new(problem) as Rc<dyn Problem>).collect()
}
