//! What a wrong keyword or a wrong name probably means: the names that PyTorch, Keras, JAX and others use, and spelling
//! mistakes.

use crate::hint_tables::{KEYWORDS, Meaning, NEEDED, VALUES};

/// A function, as far as the hints need it.
pub(crate) struct Signature {
    /// As in a message: `rms_norm`, or `KvCache.extend`.
    pub(crate) name: String,
    /// What can be passed without a name.
    unnamed: Vec<String>,
    /// What can be passed by name.
    keywords: Vec<String>,
}

impl Signature {
    /// Reads `help()`'s form of a signature, such as `($self, sequence, /, out=None, *, rms=False, **options)`.
    pub(crate) fn new(name: String, text: &str, options: &[&str]) -> Self {
        let text = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')).unwrap_or(text);
        let (mut unnamed, mut keywords): (Vec<String>, Vec<String>) = Default::default();
        let mut needs_name = false;
        for parameter in text.split(", ").filter(|parameter| !parameter.is_empty()) {
            match parameter {
                "/" => keywords.clear(),
                "**options" => keywords.extend(options.iter().map(ToString::to_string)),
                _ if parameter.starts_with('$') => {}
                _ if parameter.starts_with('*') => needs_name = true,
                _ => {
                    let own = parameter.split('=').next().unwrap_or_default();
                    keywords.push(own.to_owned());
                    unnamed.extend((!needs_name).then(|| own.to_owned()));
                }
            }
        }
        Self { name, unnamed, keywords }
    }

    pub(crate) fn has(&self, keyword: &str) -> bool {
        self.keywords.iter().any(|own| own == keyword)
    }

    /// The message about those of the given keywords that the function does not have.
    pub(crate) fn unknown(&self, given: &[String]) -> Option<String> {
        let unknown: Vec<&str> =
            given.iter().map(String::as_str).filter(|name| !self.has(name)).collect();
        let names = match unknown.split_last()? {
            (last, []) => format!("keyword {last}"),
            (last, others) => format!("keywords {} and {last}", others.join(", ")),
        };
        let hints = unknown.iter().filter_map(|name| self.hint(name));
        let hints: String = hints.map(|hint| format!("; {hint}")).collect();
        let own = match &self.keywords[..] {
            [] => "its arguments are passed without names".to_owned(),
            all => format!("its keywords are {}", all.join(", ")),
        };
        Some(format!("{}() has no {names}{hints}; {own}", self.name))
    }

    /// The message about arguments that are missing, if `said`, that of pyo3, is about them.
    pub(crate) fn missing(&self, said: &str) -> Option<String> {
        let list = said.strip_prefix(&self.name)?.strip_prefix("() missing ")?;
        // The names are in quotation marks.
        let names: Vec<&str> = list.split('\'').skip(1).step_by(2).collect();
        let needed = names.iter().map(|name| {
            let mut rows = NEEDED.iter();
            let row = rows.find(|(part, own, _)| self.name.contains(part) && own == name);
            row.map_or_else(|| (*name).to_owned(), |(.., what)| format!("{name}: {what}"))
        });
        Some(format!("{}() needs {}", self.name, needed.collect::<Vec<_>>().join("; ")))
    }

    /// The message about more arguments without names than the function has.
    pub(crate) fn too_many(&self, given: usize) -> Option<String> {
        let (name, most) = (&self.name, self.unnamed.len());
        if given <= most {
            return None;
        }
        let own = self.unnamed.join(", ");
        let shape = match self.unnamed.iter().any(|own| own == "scale") && !self.has("groups") {
            true => {
                "; there is no normalized_shape, because the last dimension of src is normalized"
            }
            false => "",
        };
        let others = self.keywords.iter().filter(|keyword| !self.unnamed.contains(keyword));
        let others: Vec<&str> = others.map(String::as_str).collect();
        let pass = match &others[..] {
            [] => String::new(),
            others => format!("; pass these by name: {}", others.join(", ")),
        };
        Some(format!(
            "{name}() takes no more arguments without names than {own}, and {given} are given{shape}{pass}"
        ))
    }

    fn hint(&self, name: &str) -> Option<String> {
        let lower = name.to_lowercase();
        let rows = KEYWORDS.iter().filter(|(elsewhere, _)| elsewhere.contains(&&*lower));
        let mut meanings = rows.flat_map(|(_, meanings)| meanings.iter());
        let meaning = meanings.find(|meaning| {
            self.name.contains(meaning.function)
                && (meaning.keyword.is_empty() || self.has(meaning.keyword))
        });
        match meaning {
            Some(Meaning { sentence: "", keyword, .. }) => Some(format!("{name} is {keyword}")),
            Some(meaning) => Some(format!("{name}: {}", meaning.sentence)),
            None => {
                let own = nearest(&lower, self.keywords.iter().map(String::as_str))?;
                Some(format!("{name} is perhaps {own}"))
            }
        }
    }
}

/// What to say about a value that is none of `names`.
pub(crate) fn of_value(name: &str, names: &[&str]) -> Option<String> {
    let lower = name.to_lowercase().replace('-', "_");
    let row = VALUES
        .iter()
        .find(|(elsewhere, own, _)| elsewhere.contains(&&*lower) && names.contains(own));
    match row {
        Some((_, own, more)) => Some(format!("{name} is {own}{more}")),
        None => nearest(&lower, names.iter().copied()).map(|own| format!("did you mean {own}?")),
    }
}

/// The name that differs in the fewest letters, if they are few.
fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let most = if name.len() < 3 { 0 } else { name.len().div_ceil(4) };
    let found =
        names.map(|own| (strsim::osa_distance(name, own), own)).min_by_key(|(letters, _)| *letters);
    found.filter(|(letters, _)| *letters <= most).map(|(_, own)| own)
}
