//! `--mode`: what happens to each problem.

use crate::language::value::BadValue;

/// What happens to each problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Prints it.
    List,
    /// Creates its primitive, without executing it.
    Initialize,
    /// Executes it once, unchecked.
    Execute,
    /// Checks it, times it, or both.
    Check(Checks),
}

/// The kinds of checks of [`Mode::Check`]; at least one is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checks {
    /// Results against the oracle.
    pub correctness: bool,
    /// Bits over levels, threads, placements and repeats.
    pub bitwise: bool,
    /// Time.
    pub performance: bool,
    /// Whether a short time is enough; only with performance alone.
    pub fast: bool,
}

impl Default for Mode {
    fn default() -> Mode {
        Mode::Check(Checks { correctness: true, ..Checks::default() })
    }
}

impl Mode {
    pub(super) fn parse(text: &str) -> Result<Mode, BadValue> {
        let bad = || {
            BadValue::new(format!(
                "'{text}' is none of L, I, R, F, C, B, P, or several of C, B and P"
            ))
        };
        let mut checks = Checks::default();
        for letter in text.chars() {
            match letter.to_ascii_uppercase() {
                'L' if text.len() == 1 => return Ok(Mode::List),
                'I' if text.len() == 1 => return Ok(Mode::Initialize),
                'R' if text.len() == 1 => return Ok(Mode::Execute),
                'F' if text.len() == 1 => (checks.performance, checks.fast) = (true, true),
                'C' => checks.correctness = true,
                'B' => checks.bitwise = true,
                'P' => checks.performance = true,
                _ => return Err(bad()),
            }
        }
        if checks == Checks::default() { Err(bad()) } else { Ok(Mode::Check(checks)) }
    }

    /// The checks; none in the other modes.
    pub fn checks(self) -> Checks {
        match self {
            Mode::Check(checks) => checks,
            _ => Checks::default(),
        }
    }

    /// The default of `--max-ms-per-prb`.
    pub fn default_ms(self) -> u64 {
        if self.checks().fast { 10 } else { 3000 }
    }

    /// The letters on the command line.
    pub fn letters(self) -> String {
        match self {
            Mode::List => "L".to_owned(),
            Mode::Initialize => "I".to_owned(),
            Mode::Execute => "R".to_owned(),
            Mode::Check(Checks { fast: true, .. }) => "F".to_owned(),
            Mode::Check(checks) => {
                [(checks.correctness, "C"), (checks.bitwise, "B"), (checks.performance, "P")]
                    .iter()
                    .filter_map(|&(set, letter)| set.then_some(letter))
                    .collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_one_letter_or_several_checks_in_any_case() {
        let both = Checks { correctness: true, performance: true, ..Checks::default() };
        assert_eq!(Mode::parse("cP"), Ok(Mode::Check(both)));
        assert_eq!(Mode::parse("l"), Ok(Mode::List));
        assert_eq!(Mode::parse("i"), Ok(Mode::Initialize));
        assert_eq!(Mode::parse("R"), Ok(Mode::Execute));
        let fast = Checks { performance: true, fast: true, ..Checks::default() };
        assert_eq!(Mode::parse("F"), Ok(Mode::Check(fast)));
        for text in ["", "LC", "X", "CR", "CF", "FP"] {
            assert!(Mode::parse(text).is_err(), "{text}");
        }
        for letters in ["L", "I", "R", "F", "CBP", "P"] {
            assert_eq!(Mode::parse(letters).expect("a mode").letters(), letters);
        }
    }
}
