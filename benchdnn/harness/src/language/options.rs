//! Tables of options: one row has an option's name, help, default and meaning.
//!
//! The parser, the help text and the default state are all derived from these rows (by
//! [`Grammar`](super::grammar::Grammar) and [`defaults`]), so they cannot disagree. A table belongs
//! to the state `S` that its options set; each driver has its own.

use super::value::BadValue;

/// The documentation of an option, and the data that the parser needs to recognize it.
#[derive(Clone, Copy, Debug)]
pub struct Info {
    /// The name after `--`.
    pub name: &'static str,
    /// The letter after `-`, if there is one.
    pub short: Option<char>,
    /// The placeholder of the value (`DIR`); `[BOOL]` if the value may be omitted, empty for a switch.
    pub value: &'static str,
    /// The heading under which the help lists it.
    pub topic: &'static str,
    /// The default as it would be written; empty for none.
    pub default: &'static str,
    /// What it does.
    pub help: &'static str,
}

impl Info {
    /// A list of values by which a driver's problems are multiplied.
    pub const fn list(
        topic: &'static str,
        name: &'static str,
        default: &'static str,
        help: &'static str,
    ) -> Info {
        Info { name, short: None, value: "LIST", topic, default, help }
    }
}

/// An option that changes a state of type `S`.
#[derive(Debug)]
pub struct Opt<S: 'static> {
    /// Name, help and default.
    pub info: Info,
    /// Reads a value into the state.
    pub set: fn(&mut S, &str) -> Result<(), BadValue>,
}

/// The state before any option: every row's default, read as if it had been written.
///
/// # Panics
/// If a row cannot read its own default, which is a defect of the table.
pub fn defaults<S: Default>(table: &[Opt<S>]) -> S {
    let mut state = S::default();
    for option in table {
        if let Err(error) = (option.set)(&mut state, option.info.default) {
            panic!("the default of --{}: {}", option.info.name, error.message);
        }
    }
    state
}

/// Replaces each item by one item for each of the values. This is how lists multiply out.
pub fn multiply<P: Clone, T>(items: &mut Vec<P>, values: &[T], set: impl Fn(&mut P, &T)) {
    repeat(items, values.len(), &|item, i| set(item, &values[i]));
}

/// Replaces each item by `count` copies, changed by `set` according to their index. Not generic over `set`, so that
/// this is compiled once for a driver and not for each of its options.
fn repeat<P: Clone>(items: &mut Vec<P>, count: usize, set: &dyn Fn(&mut P, usize)) {
    let mut all = Vec::with_capacity(items.len() * count);
    for item in &*items {
        for i in 0..count {
            all.push(item.clone());
            set(all.last_mut().expect("just pushed"), i);
        }
    }
    *items = all;
}

/// Sets the option `name`; `None` if the table has no such option. An empty value means the default for lists, as in
/// oneDNN's batch files, and for options that are empty by default.
pub fn set<S>(
    table: &[Opt<S>],
    state: &mut S,
    name: &str,
    value: &str,
) -> Option<Result<(), BadValue>> {
    let option = table.iter().find(|option| option.info.name == name)?;
    let Info { default, value: kind, .. } = option.info;
    if value.is_empty() && !default.is_empty() && kind != "LIST" {
        let message = format!("a value is missing; the default is {default}");
        return Some(Err(BadValue::new(message)));
    }
    Some((option.set)(state, if value.is_empty() { default } else { value }))
}

/// The word that sets the option `name` to `text`; `None` if that is its default, unless
/// `canonical`.
///
/// # Panics
/// If the table has no such option.
pub fn word<S>(table: &[Opt<S>], name: &str, text: &str, canonical: bool) -> Option<String> {
    let option = table.iter().find(|option| option.info.name == name).expect("a row of the table");
    let said = canonical || text != option.info.default;
    said.then(|| super::token::quote(&format!("--{name}={text}")))
}
