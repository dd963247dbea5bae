//! The options of one driver as a clap command, which recognizes a word and prints help.
//!
//! The order of options and problems matters, but clap's matches do not preserve it. So each word
//! is parsed by itself: clap recognizes names and values and prints the help, and the state machine
//! sees the words in order.

use super::options::Info;
use super::value::{BadValue, nearest};
use clap::ValueHint::{FilePath, Other};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, Command};

/// Names that users of other tools write, and options of that meaning.
const ALIASES: &[(&str, &str)] = &[
    ("epsilon", "eps"),
    ("direction", "dir"),
    ("isa", "cpu-isa"),
    ("num-threads", "threads"),
    ("nthr", "threads"),
    ("library", "compare"),
    ("dtype", "dt"),
    ("type", "dt"),
    ("algorithm", "alg"),
    ("fix-times", "fix-times-per-prb"),
];

/// Drivers of oneDNN's benchdnn, which are not misspelled options.
const ELSEWHERE: &[&str] = &[
    "binary",
    "bnorm",
    "brgemm",
    "concat",
    "conv",
    "deconv",
    "eltwise",
    "gnorm",
    "graph",
    "ip",
    "lnorm",
    "lrn",
    "matmul",
    "pool",
    "prelu",
    "reduction",
    "reorder",
    "resampling",
    "rnn",
    "sdpa",
    "self",
    "shuffle",
    "softmax",
    "sum",
    "zeropad",
];

/// The placeholder of an option with an optional value, `true` by default.
const SWITCH: &str = "[BOOL]";

/// The placeholders of paths, for which completions offer files.
const FILES: [&str; 3] = ["FILE", "LIB[,NAME=VALUE...]", "PREFIX"];

/// An option as written: its name and, unless it is a switch, its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The long name, even if the short one was written.
    pub name: String,
    /// The value and its offset in the word.
    pub value: Option<(usize, String)>,
}

/// The options that are valid at one point of the command line.
#[derive(Debug)]
pub struct Grammar {
    command: Command,
    infos: Vec<Info>,
    /// Options of other drivers, and the names of those.
    others: Vec<(&'static str, &'static str)>,
}

impl Grammar {
    /// A grammar of the given options. `usage`, `about` and `after` go into the help.
    pub fn new(infos: Vec<Info>, usage: &str, about: &str, after: &str) -> Grammar {
        let mut command = Command::new("benchdnn")
            .disable_help_flag(true)
            .disable_version_flag(true)
            .override_usage(usage.to_owned())
            .about(about.to_owned())
            .after_help(after.to_owned());
        for info in &infos {
            command = command.arg(argument(info));
        }
        Grammar { command, infos, others: Vec::new() }
    }

    /// The same, which also explains options of other drivers: their names, and the drivers'.
    pub fn beside(self, others: Vec<(&'static str, &'static str)>) -> Grammar {
        Grammar { others, ..self }
    }

    /// The options, for a manual page and completions.
    pub fn command(&self) -> &Command {
        &self.command
    }

    /// The help text.
    pub fn help(&self) -> String {
        self.command.clone().render_help().to_string()
    }

    /// Reads one word that starts with `-`.
    pub fn read(&mut self, word: &str) -> Result<Written, BadValue> {
        let matches = match self.command.try_get_matches_from_mut(["benchdnn", word]) {
            Ok(matches) => matches,
            Err(error) => return Err(BadValue::new(self.explain(word, &error))),
        };
        let written = self
            .infos
            .iter()
            .find(|info| {
                matches.value_source(info.name) == Some(clap::parser::ValueSource::CommandLine)
            })
            .ok_or_else(|| BadValue::new(format!("'{word}' is not an option")))?;
        let value = (!written.value.is_empty()).then(|| {
            if written.value == SWITCH && !word.contains('=') {
                return (word.len(), "true".to_owned());
            }
            let value = matches.get_one::<String>(written.name).cloned().unwrap_or_default();
            (word.len() - value.len(), value)
        });
        Ok(Written { name: written.name.to_owned(), value })
    }

    fn explain(&self, word: &str, error: &clap::Error) -> String {
        let name = word.split('=').next().unwrap_or(word);
        let is_short = |info: &Info| info.short.is_some_and(|letter| name == format!("-{letter}"));
        let row = self
            .infos
            .iter()
            .find(|info| name.strip_prefix("--") == Some(info.name) || is_short(info));
        match (error.kind(), row) {
            (ErrorKind::TooManyValues, _) => format!("'{name}' takes no value"),
            (_, Some(row)) if !row.value.is_empty() => {
                let between = if is_short(row) { "" } else { "=" };
                format!("'{name}' needs a value: {name}{between}{}", row.value)
            }
            _ if name.strip_prefix("--").is_some_and(|name| ELSEWHERE.contains(&name)) => {
                format!("unknown driver '{name}'; --help lists the drivers")
            }
            _ => {
                let name_alone = name.trim_start_matches('-');
                let names = self.infos.iter().map(|info| info.name);
                let alias = ALIASES.iter().find(|(other, _)| *other == name_alone);
                let known =
                    alias.map(|(_, ours)| *ours).filter(|ours| names.clone().any(|n| n == *ours));
                let having = self.others.iter().filter(|(option, _)| *option == name_alone);
                let having: Vec<_> = having.map(|(_, driver)| format!("--{driver}")).collect();
                if known.is_none() && !having.is_empty() {
                    let having = having.join(", ");
                    return format!("'{name}' is not an option of this driver, but of {having}");
                }
                match known.or_else(|| nearest(name_alone, names)) {
                    Some(nearest) => {
                        format!("unknown option '{name}'; the nearest is '--{nearest}'")
                    }
                    None => format!("unknown option '{name}'; --help lists them all"),
                }
            }
        }
    }
}

fn argument(info: &Info) -> Arg {
    let mut help = info.help.to_owned();
    if !info.default.is_empty() {
        help.push_str(&format!(" [{}]", info.default));
    }
    let argument = Arg::new(info.name).long(info.name).help(help).help_heading(info.topic);
    let argument = match info.short {
        Some(letter) => argument.short(letter),
        None => argument,
    };
    if info.value.is_empty() {
        argument.action(ArgAction::SetTrue)
    } else if info.value == SWITCH {
        argument.action(ArgAction::Set).num_args(0..=1).require_equals(true).value_name("BOOL")
    } else {
        // `-v5` has no equals sign, so only options without a letter can require one.
        argument
            .action(ArgAction::Set)
            .num_args(1)
            .value_name(info.value)
            .value_hint(if FILES.contains(&info.value) { FilePath } else { Other })
            .require_equals(info.short.is_none())
            .allow_hyphen_values(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grammar() -> Grammar {
        let row = |name, value| Info {
            name,
            short: None,
            value,
            topic: "Topic",
            default: "",
            help: "Text",
        };
        let verbose = Info { short: Some('v'), ..row("verbose", "N") };
        let rows = vec![row("dir", "DIR"), row("reset", ""), row("roof", "[BOOL]"), verbose];
        Grammar::new(rows, "usage", "about", "after")
    }

    fn value(name: &str, value: &str, offset: usize) -> Written {
        Written { name: name.into(), value: Some((offset, value.into())) }
    }

    #[test]
    fn words_are_read_one_by_one() {
        let mut grammar = grammar();
        assert_eq!(grammar.read("--dir=FWD_D"), Ok(value("dir", "FWD_D", 6)));
        assert_eq!(grammar.read("--dir="), Ok(value("dir", "", 6)));
        assert_eq!(grammar.read("--dir=-1"), Ok(value("dir", "-1", 6)));
        assert_eq!(grammar.read("-v15"), Ok(value("verbose", "15", 2)));
        assert_eq!(grammar.read("--roof"), Ok(value("roof", "true", 6)));
        assert_eq!(grammar.read("--roof=0"), Ok(value("roof", "0", 7)));
        assert_eq!(grammar.read("--verbose=7"), Ok(value("verbose", "7", 10)));
        assert_eq!(grammar.read("--reset"), Ok(Written { name: "reset".into(), value: None }));
    }

    #[test]
    fn mistakes_are_explained() {
        let mut grammar = grammar().beside(vec![("hot", "a"), ("hot", "b")]);
        let mut message = |word| grammar.read(word).expect_err(word).message;
        assert_eq!(message("--dri=x"), "unknown option '--dri'; the nearest is '--dir'");
        assert_eq!(message("-v"), "'-v' needs a value: -vN");
        assert_eq!(message("--rest"), "unknown option '--rest'; the nearest is '--reset'");
        assert_eq!(message("--zzz=1"), "unknown option '--zzz'; --help lists them all");
        assert_eq!(message("--matmul"), "unknown driver '--matmul'; --help lists the drivers");
        assert_eq!(message("--dir"), "'--dir' needs a value: --dir=DIR");
        assert_eq!(message("--reset=1"), "'--reset' takes no value");
        assert_eq!(message("--"), "'--' is not an option");
        assert_eq!(message("--hot=1"), "'--hot' is not an option of this driver, but of --a, --b");
        assert!(message("-5x3").starts_with("unknown option '-5x3'"));
    }

    #[test]
    fn help_is_made_of_the_rows() {
        let help = grammar().help();
        for part in ["--dir=<DIR>", "-v, --verbose", "Topic", "Text", "about", "after"] {
            assert!(help.contains(part), "{part} in {help}");
        }
    }
}
