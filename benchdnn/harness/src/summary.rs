//! The totals of a run, and the lines that report them.

use crate::language::value::{BadValue, starts};
use crate::outcome::{Compared, Outcome, Side, Status};
use std::collections::BTreeMap;

/// Counts of statuses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Problems run or listed.
    pub tests: usize,
    /// PASSED, EXECUTED and INITIALIZED.
    pub passed: usize,
    /// SKIPPED.
    pub skipped: usize,
    /// MISTRUSTED.
    pub mistrusted: usize,
    /// UNIMPLEMENTED; also among the failed.
    pub unimplemented: usize,
    /// INVALID_ARGUMENTS; also among the failed.
    pub invalid_arguments: usize,
    /// Problems that make the exit status 1.
    pub failed: usize,
    /// LISTED.
    pub listed: usize,
    /// Mode B: problems on which several threads took part.
    pub shared: usize,
}

impl Tally {
    fn add(&mut self, outcome: &Outcome) {
        self.tests += 1;
        match outcome.status {
            Status::Passed | Status::Executed | Status::Initialized => self.passed += 1,
            Status::Skipped => self.skipped += 1,
            Status::Mistrusted => self.mistrusted += 1,
            Status::Unimplemented => self.unimplemented += 1,
            Status::InvalidArguments => self.invalid_arguments += 1,
            Status::Listed => self.listed += 1,
            Status::Failed => {}
        }
        self.failed += usize::from(outcome.status.is_failure());
        self.shared += usize::from(outcome.shared);
    }
}

/// The sections that `--summary` chooses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sections {
    failures: bool,
    implementations: bool,
    implementations_csv: bool,
}

impl Sections {
    /// Reads `[no-]NAME[+[no-]NAME...]`. Sections that are not named stay unchanged.
    pub fn set(&mut self, text: &str) -> Result<(), BadValue> {
        for (item, at) in text.split('+').zip(starts(text, '+')) {
            let (name, shown) = match item.strip_prefix("no-") {
                Some(name) => (name, false),
                None => (item, true),
            };
            match name {
                "failures" => self.failures = shown,
                "impl" => self.implementations = shown,
                "impl-csv" => self.implementations_csv = shown,
                _ => {
                    let names = "failures, impl, impl-csv, or one of these after no-";
                    return Err(BadValue::at(at, format!("'{item}' is none of {names}")));
                }
            }
        }
        Ok(())
    }
}

/// The number of failures that the summary shows.
const SHOWN: usize = 10;

/// The problems of a run, added up.
#[derive(Debug, Default)]
pub struct Summary {
    tally: Tally,
    /// The first failures: status, reason and line.
    failures: Vec<String>,
    /// How many problems each implementation ran.
    implementations: BTreeMap<String, usize>,
    /// Sums of the minimum and the mean times, in milliseconds.
    measured: Option<(f64, f64)>,
    /// Whether any problem was compared bit by bit.
    bitwise: bool,
    comparison: Comparison,
    /// The problems' fractions of the speed of a plain copy.
    roofs: Vec<f64>,
    /// Ratios of creation times, theirs over ours, of the first creation and of later ones, with
    /// the problem's line.
    creations: [Vec<(f64, String)>; 2],
}

/// The results of `--compare`.
#[derive(Debug, Default)]
struct Comparison {
    compared: usize,
    not_offered: usize,
    /// Problems whose results have the same bits.
    equal: usize,
    nearer: [usize; 2],
    /// Problems for which the other library's results exceed the tolerance.
    wrong: usize,
    /// Measured problems that the other library ran by a reference implementation.
    reference: usize,
    /// Their time over ours, and the problem's line.
    ratios: Vec<(f64, String)>,
}

impl Summary {
    /// Adds a problem. `line` reproduces it.
    pub fn add(&mut self, outcome: &Outcome, line: &str, bitwise: bool) {
        self.tally.add(outcome);
        self.bitwise |= bitwise;
        if outcome.status.is_failure() && self.failures.len() < SHOWN {
            self.failures.push(format!("{} __REPRO: {line}", outcome.said()));
        }
        if let Some(implementation) = &outcome.implementation {
            *self.implementations.entry(implementation.clone()).or_default() += 1;
        }
        match &outcome.compared {
            None => {}
            Some(Compared::NotOffered(_)) => self.comparison.not_offered += 1,
            Some(Compared::Offered { equal, nearer, wrong }) => {
                self.comparison.wrong += usize::from(*wrong);
                self.comparison.compared += 1;
                self.comparison.equal += usize::from(*equal == Some(true));
                match nearer {
                    Some(Side::Ours) => self.comparison.nearer[0] += 1,
                    Some(Side::Theirs) => self.comparison.nearer[1] += 1,
                    None => {}
                }
            }
        }
        if let Some(creation) = &outcome.creation {
            let ratios = [creation.first_ratio(), creation.ratio.median];
            for (ratio, all) in ratios.into_iter().zip(&mut self.creations) {
                all.push((ratio, line.to_owned()));
            }
        }
        if let Some(performance) = &outcome.performance {
            let (min, avg) = self.measured.unwrap_or_default();
            let timing = &performance.timing;
            self.measured = Some((min + timing.min_ms, avg + timing.avg_ms));
            if let Some(against) = &performance.against {
                let reference = against.implementation.contains("ref");
                self.comparison.reference += usize::from(reference);
                self.comparison.ratios.push((against.ratio.median, line.to_owned()));
            }
            self.roofs.extend(performance.roof.as_ref().map(|roof| roof.share.median));
        }
    }

    /// The counts so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// The lines that end a run.
    pub fn lines(&self, sections: Sections) -> Vec<String> {
        let mut lines = Vec::new();
        if sections.failures && !self.failures.is_empty() {
            let more = self.tally.failed - self.failures.len();
            lines.push("= failures (--summary=no-failures leaves this out)".to_owned());
            lines.extend(self.failures.iter().map(|failure| format!("| {failure}")));
            if more > 0 {
                lines.push(format!("| and {more} more"));
            }
        }
        let problems: usize = self.implementations.values().sum();
        if sections.implementations && problems > 0 {
            lines.push("= implementations (--summary=no-impl leaves this out)".to_owned());
            for (name, count) in self.most_used() {
                let share = 100.0 * *count as f64 / problems as f64;
                lines.push(format!("| {name} : {count} ({share:.0}%)"));
            }
        }
        if sections.implementations_csv && problems > 0 {
            lines.push("impl,problems".to_owned());
            lines.extend(self.most_used().iter().map(|(name, count)| format!("{name},{count}")));
        }
        lines.push(self.counts());
        if self.bitwise {
            let shared = self.tally.shared;
            lines
                .push(format!("total bits: problems on which 2 and 3 threads all worked:{shared}"));
        }
        if let Some((min, avg)) = self.measured {
            lines.push(format!("total perf: min(ms):{min:.6} avg(ms):{avg:.6}"));
        }
        if let Some(mean) = geometric_mean(self.roofs.iter().copied()) {
            let count = self.roofs.len();
            lines.push(format!("total roofline: problems:{count} geometric mean:{mean:.4}"));
        }
        lines.extend(self.comparison.lines());
        for (ratios, which) in self.creations.iter().zip(["first", "again"]) {
            if let Some((mean, lowest)) = ratios_said(ratios) {
                lines.push(format!("total creation, {which}: {mean} {lowest}"));
            }
        }
        lines
    }

    fn counts(&self) -> String {
        let Tally { tests, passed, skipped, mistrusted, failed, listed, .. } = self.tally;
        let Tally { unimplemented, invalid_arguments, .. } = self.tally;
        format!(
            "tests:{tests} passed:{passed} skipped:{skipped} mistrusted:{mistrusted} \
             unimplemented:{unimplemented} invalid_arguments:{invalid_arguments} \
             failed:{failed} listed:{listed}"
        )
    }

    /// Implementations and counts, the largest first.
    fn most_used(&self) -> Vec<(&String, &usize)> {
        let mut counts: Vec<_> = self.implementations.iter().collect();
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        counts
    }
}

impl Comparison {
    fn lines(&self) -> Vec<String> {
        let Comparison { compared, not_offered, equal, nearer, wrong, reference, ratios } = self;
        if compared + not_offered == 0 {
            return Vec::new();
        }
        let mut lines = vec![format!(
            "total compare: compared:{compared} not_offered:{not_offered} equal:{equal} \
             ours_nearer:{} theirs_nearer:{} theirs_wrong:{wrong}",
            nearer[0], nearer[1]
        )];
        if let Some((mean, lowest)) = ratios_said(ratios) {
            lines.push(format!("total ratio: {mean} theirs_ref:{reference} {lowest}"));
        }
        lines
    }
}

/// Summarizes ratios, each with its problem's line: their number, their mean, and the lowest one.
/// `None` without ratios.
fn ratios_said(ratios: &[(f64, String)]) -> Option<(String, String)> {
    let (lowest, line) = ratios.iter().min_by(|a, b| a.0.total_cmp(&b.0))?;
    let mean = geometric_mean(ratios.iter().map(|(ratio, _)| *ratio))?;
    let below = ratios.iter().filter(|(ratio, _)| *ratio < 1.0).count();
    let count = ratios.len();
    let all = format!("problems:{count} geometric mean:{mean:.4} below_1:{below}");
    Some((all, format!("lowest:{lowest:.4} ({line})")))
}

/// `None` without numbers.
fn geometric_mean(numbers: impl ExactSizeIterator<Item = f64>) -> Option<f64> {
    let count = numbers.len();
    let sum: f64 = numbers.map(f64::ln).sum();
    (count > 0).then(|| (sum / count as f64).exp())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contest::Quartiles;
    use crate::outcome::{Against, Creation, Performance, Roof};
    use crate::timing::Timing;

    fn all() -> Sections {
        let mut sections = Sections::default();
        sections.set("failures+impl+impl-csv").expect("names");
        sections
    }

    fn measured(ratio: f64, theirs: &str) -> Outcome {
        let timing = Timing::of_seconds(&[0.001, 0.003]);
        let quartiles = |median| Quartiles { low: median, median, high: median };
        Outcome {
            compared: Some(Compared::Offered { equal: None, nearer: None, wrong: false }),
            performance: Some(Box::new(Performance {
                against: Some(Against {
                    implementation: theirs.to_owned(),
                    timing,
                    ratio: quartiles(ratio),
                }),
                roof: Some(Roof {
                    copy: "memcpy".to_owned(),
                    timing,
                    share: quartiles(ratio / 4.0),
                }),
                ..Performance::of_timing("simd:x".to_owned(), timing)
            })),
            ..Outcome::new(Status::Executed)
        }
    }

    #[test]
    fn ratios_have_a_geometric_mean_over_what_was_compared() {
        let mut summary = Summary::default();
        summary.add(&measured(0.5, "jit:x"), "slow", false);
        summary.add(&measured(2.0, "jit:x"), "fast", false);
        summary.add(&measured(8.0, "ref:any"), "faster", false);
        let not_offered = Some(Compared::NotOffered("unimplemented".to_owned()));
        let outcome = Outcome { compared: not_offered, ..Outcome::new(Status::Executed) };
        summary.add(&outcome, "alone", false);
        let lines = summary.lines(Sections::default());
        assert_eq!(
            lines[1..],
            [
                "total perf: min(ms):3.000000 avg(ms):6.000000",
                "total roofline: problems:3 geometric mean:0.5000",
                "total compare: compared:3 not_offered:1 equal:0 ours_nearer:0 theirs_nearer:0 theirs_wrong:0",
                "total ratio: problems:3 geometric mean:2.0000 below_1:1 theirs_ref:1 lowest:0.5000 (slow)",
            ]
        );
    }

    #[test]
    fn creations_have_means_of_their_own() {
        let mut summary = Summary::default();
        for (name, first, again) in [("slow", 50.0, 0.5), ("fast", 200.0, 8.0)] {
            let timing = Timing::of_seconds(&[0.001]);
            let creation = Creation {
                first_ms: [2.0, 2.0 * first],
                again: [timing; 2],
                ratio: Quartiles { low: again, median: again, high: again },
            };
            let creation = Some(Box::new(creation));
            let outcome = Outcome { creation, ..Outcome::new(Status::Initialized) };
            summary.add(&outcome, name, false);
        }
        assert_eq!(
            summary.lines(Sections::default())[1..],
            [
                "total creation, first: problems:2 geometric mean:100.0000 below_1:0 lowest:50.0000 (slow)",
                "total creation, again: problems:2 geometric mean:2.0000 below_1:1 lowest:0.5000 (slow)",
            ]
        );
    }

    #[test]
    fn failures_and_implementations_are_listed() {
        let mut summary = Summary::default();
        let with = |name: &str, status| Outcome {
            implementation: Some(name.to_owned()),
            ..Outcome::because(status, "why")
        };
        (0..12).for_each(|i| summary.add(&with("a", Status::Failed), &i.to_string(), false));
        (0..4).for_each(|_| summary.add(&with("b", Status::Passed), "x", false));
        let lines = summary.lines(all());
        assert_eq!(lines[1], "| FAILED (why) __REPRO: 0");
        assert_eq!(lines[10], "| FAILED (why) __REPRO: 9");
        assert_eq!(lines[11], "| and 2 more");
        assert_eq!(lines[13..15], ["| a : 12 (75%)", "| b : 4 (25%)"]);
        assert_eq!(lines[15..18], ["impl,problems", "a,12", "b,4"]);
        assert_eq!(summary.lines(Sections::default()).len(), 1);
    }

    #[test]
    fn sections_are_named_alone_or_negated() {
        let mut sections = all();
        sections.set("no-impl+no-failures").expect("names");
        assert_eq!(sections, Sections { implementations_csv: true, ..Sections::default() });
        let error = sections.set("impl+nothing").expect_err("no name");
        assert_eq!(error.offset, 5);
    }
}
