//! `--perf-template`: how times are printed.
//!
//! A template is text with entries between per cent signs. An entry may start with a letter for the
//! time (`-` minimum, `0` mean, `+` maximum, `~` median) and one for the unit (`K`, `M`, `G`), as
//! in `%-Gbw%`. `def`, `csv` and `json` are templates too.

use crate::language::value::BadValue;
use crate::outcome::Performance;
use crate::timing::Timing;

/// The meaning of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Problem,
    Name,
    Implementation,
    Engine,
    DriverName,
    Index,
    Threads,
    /// The problem's own: dt, dir, ...
    OfProblem,
    Time,
    Bandwidth,
    InputBytes,
    OutputBytes,
    Bytes,
    DescriptorTime,
    PrimitiveTime,
    CreationTime,
    PeerImplementation,
    PeerTime,
    Ratio,
    RatioLow,
    RatioHigh,
    Copy,
    CopyTime,
    Roof,
}

/// Every entry by name.
const ENTRIES: &[(&str, What)] = &[
    ("prb", What::Problem),
    ("name", What::Name),
    ("impl", What::Implementation),
    ("engine", What::Engine),
    ("driver", What::DriverName),
    ("idx", What::Index),
    ("threads", What::Threads),
    ("attr", What::OfProblem),
    ("desc", What::OfProblem),
    ("dir", What::OfProblem),
    ("dt", What::OfProblem),
    ("flags", What::OfProblem),
    ("residual", What::OfProblem),
    ("gate", What::OfProblem),
    ("partial", What::OfProblem),
    ("ss_dt", What::OfProblem),
    ("stat_tag", What::OfProblem),
    ("tag", What::OfProblem),
    ("time", What::Time),
    ("bw", What::Bandwidth),
    ("ibytes", What::InputBytes),
    ("obytes", What::OutputBytes),
    ("iobytes", What::Bytes),
    ("cpdtime", What::DescriptorTime),
    ("cptime", What::PrimitiveTime),
    ("ctime", What::CreationTime),
    ("peer_impl", What::PeerImplementation),
    ("peer_time", What::PeerTime),
    ("ratio", What::Ratio),
    ("ratio_low", What::RatioLow),
    ("ratio_high", What::RatioHigh),
    ("copy", What::Copy),
    ("copy_time", What::CopyTime),
    ("roof", What::Roof),
];

const DEFAULT: &str = "perf,%engine%,%impl%,%name%,%prb%,%iobytes%,%-time%,%-Gbw%,%0time%,\
                       %0Gbw%,%~time%,%~Gbw%";

/// The entries of `csv` and `json`, in this order.
const TABLE: &str = "%engine%,%threads%,%impl%,%name%,%dir%,%dt%,%tag%,%stat_tag%,%ss_dt%,%flags%,%desc%,\
                     %iobytes%,%+ctime%,%-time%,%-Gbw%,%0time%,%0Gbw%,%~time%,%~Gbw%,%peer_impl%,\
                     %~peer_time%,%ratio%,%ratio_low%,%ratio_high%,%copy%,%~copy_time%,%roof%,\
                     %driver%,%prb%";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    Unsaid,
    Least,
    Mean,
    Most,
    Median,
}

#[derive(Clone, Debug, PartialEq)]
struct Entry {
    name: &'static str,
    what: What,
    which: Which,
    /// The letter, if any.
    unit: Option<char>,
}

#[derive(Clone, Debug, PartialEq)]
enum Piece {
    Text(String),
    Entry(Entry),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Style {
    #[default]
    Default,
    Custom,
    Csv,
    Json,
}

/// A way of printing times.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Template {
    style: Style,
    pieces: Vec<Piece>,
}

/// The facts in a line.
pub struct Facts<'a> {
    /// What was measured.
    pub performance: &'a Performance,
    /// The driver's name.
    pub driver: &'a str,
    /// The name that the descriptor gives the problem.
    pub name: &'a str,
    /// The line that reproduces it.
    pub line: &'a str,
    /// The number of earlier problems.
    pub number: usize,
    /// The problem's own entries.
    pub entry: &'a dyn Fn(&str) -> Option<String>,
}

enum Value {
    Text(String),
    /// With this many decimal places.
    Number(f64, usize),
    /// Not measured.
    Missing,
}

impl Template {
    /// Reads `def`, `csv`, `json` or a text with entries.
    pub fn parse(text: &str) -> Result<Template, BadValue> {
        let (style, text) = match text {
            "def" => (Style::Default, DEFAULT),
            "csv" => (Style::Csv, TABLE),
            "json" => (Style::Json, TABLE),
            text => (Style::Custom, text),
        };
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some(start) = rest.find('%') {
            let at = text.len() - rest.len() + start;
            if start > 0 {
                pieces.push(Piece::Text(rest[..start].to_owned()));
            }
            let entry = &rest[start + 1..];
            let Some(end) = entry.find('%') else {
                return Err(BadValue::at(at, "an entry without a second '%'"));
            };
            pieces.push(Piece::Entry(
                Entry::parse(&entry[..end]).map_err(|error| error.shifted(at + 1))?,
            ));
            rest = &entry[end + 1..];
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest.to_owned()));
        }
        if !pieces.iter().any(|piece| matches!(piece, Piece::Entry(_))) {
            let message =
                format!("'{text}' is none of def, csv, json, and has no entry like %prb%");
            return Err(BadValue::new(message));
        }
        Ok(Template { style, pieces })
    }

    /// Whether this is `def`, the readable template.
    pub fn is_default(&self) -> bool {
        self.style == Style::Default
    }

    /// The header line; empty for none.
    pub fn header(&self) -> String {
        match self.style {
            Style::Json => String::new(),
            _ => self.join(Entry::title),
        }
    }

    /// The line of a problem.
    pub fn line(&self, facts: &Facts<'_>) -> String {
        match self.style {
            Style::Json => {
                let entries = self.pieces.iter().filter_map(|piece| match piece {
                    Piece::Entry(entry) => {
                        Some(format!("{}:{}", json_text(&entry.title()), entry.value(facts).json()))
                    }
                    Piece::Text(_) => None,
                });
                format!("{{{}}}", entries.collect::<Vec<_>>().join(","))
            }
            Style::Csv => self.join(|entry| entry.value(facts).csv()),
            Style::Default | Style::Custom => self.join(|entry| match entry.what {
                // As in oneDNN's benchdnn.
                What::Name => format!("\"{}\"", facts.name),
                _ => entry.value(facts).plain(),
            }),
        }
    }

    fn join(&self, entry: impl Fn(&Entry) -> String) -> String {
        let piece = |piece: &Piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Entry(it) => entry(it),
        };
        self.pieces.iter().map(piece).collect()
    }
}

impl Entry {
    fn parse(text: &str) -> Result<Entry, BadValue> {
        let mut name = text;
        let mut first = |letters: &str| {
            let letter = name.chars().next().filter(|letter| letters.contains(*letter))?;
            name = &name[1..];
            Some(letter)
        };
        let which = match first("-0+~") {
            Some('-') => Which::Least,
            Some('0') => Which::Mean,
            Some('+') => Which::Most,
            Some(_) => Which::Median,
            None => Which::Unsaid,
        };
        let unit = first("KMG");
        match ENTRIES.iter().find(|(known, _)| *known == name) {
            Some(&(name, what)) => Ok(Entry { name, what, which, unit }),
            None => {
                let names: Vec<&str> = ENTRIES.iter().map(|(name, _)| *name).collect();
                let names = names.join(", ");
                Err(BadValue::new(format!(
                    "'{text}' is not an entry: optionally -, 0, + or ~ and K, M or G, then one of \
                     {names}"
                )))
            }
        }
    }

    fn title(&self) -> String {
        let which = match self.which {
            Which::Unsaid => "",
            Which::Least => "min_",
            Which::Mean => "avg_",
            Which::Most => "max_",
            Which::Median => "median_",
        };
        format!("{which}{}{}", self.unit.map(String::from).unwrap_or_default(), self.name)
    }

    fn value(&self, facts: &Facts<'_>) -> Value {
        let performance = facts.performance;
        let most = |timing: &Timing| self.time(timing, Which::Most);
        let bytes = performance.input_bytes + performance.output_bytes;
        let count = |count: u64| self.number(count as f64, if self.unit.is_some() { 6 } else { 0 });
        match self.what {
            What::Problem => Value::Text(facts.line.to_owned()),
            What::Name => Value::Text(facts.name.to_owned()),
            What::Implementation => Value::Text(performance.implementation.clone()),
            What::Engine => Value::Text("cpu".to_owned()),
            What::DriverName => Value::Text(facts.driver.to_owned()),
            What::Index => Value::Number(facts.number as f64, 0),
            What::Threads => Value::Number(performance.threads as f64, 0),
            What::OfProblem => Value::Text((facts.entry)(self.name).unwrap_or_default()),
            What::Time => self.least(&performance.timing),
            What::Bandwidth => {
                let ms = self.time(&performance.timing, Which::Least);
                self.number(if ms > 0.0 { bytes as f64 / ms * 1e3 } else { 0.0 }, 3)
            }
            What::InputBytes => count(performance.input_bytes),
            What::OutputBytes => count(performance.output_bytes),
            What::Bytes => count(bytes),
            // Without a letter, the slow first creation.
            What::DescriptorTime => self.number(most(&performance.descriptor), 6),
            What::PrimitiveTime => self.number(most(&performance.primitive), 6),
            What::CreationTime => {
                self.number(most(&performance.descriptor) + most(&performance.primitive), 6)
            }
            _ => self.beside(performance).unwrap_or(Value::Missing),
        }
    }

    /// The entries of `--compare` and `--roofline`; `None` if they were not measured.
    fn beside(&self, performance: &Performance) -> Option<Value> {
        let Performance { against, roof, .. } = performance;
        let (against, roof) = (against.as_ref(), roof.as_ref());
        Some(match self.what {
            What::PeerImplementation => Value::Text(against?.implementation.clone()),
            What::PeerTime => self.least(&against?.timing),
            What::Ratio => self.number(against?.ratio.median, 4),
            What::RatioLow => self.number(against?.ratio.low, 4),
            What::RatioHigh => self.number(against?.ratio.high, 4),
            What::Copy => Value::Text(roof?.copy.clone()),
            What::CopyTime => self.least(&roof?.timing),
            What::Roof => self.number(roof?.share.median, 4),
            _ => return None,
        })
    }

    /// One of the times; `unsaid` if the entry has no letter for it.
    fn time(&self, timing: &Timing, unsaid: Which) -> f64 {
        match self.which {
            Which::Unsaid => pick(timing, unsaid),
            which => pick(timing, which),
        }
    }

    /// A time; the minimum if the entry has no letter.
    fn least(&self, timing: &Timing) -> Value {
        self.number(self.time(timing, Which::Least), 6)
    }

    /// A number in the entry's unit, with a number of decimals.
    fn number(&self, value: f64, decimals: usize) -> Value {
        let unit = match self.unit {
            None => 1.0,
            Some('K') => 1e3,
            Some('M') => 1e6,
            Some(_) => 1e9,
        };
        Value::Number(value / unit, decimals)
    }
}

fn pick(timing: &Timing, which: Which) -> f64 {
    match which {
        Which::Unsaid | Which::Least => timing.min_ms,
        Which::Mean => timing.avg_ms,
        Which::Most => timing.max_ms,
        Which::Median => timing.median_ms,
    }
}

impl Value {
    fn plain(self) -> String {
        match self {
            Value::Text(text) => text,
            Value::Number(number, digits) => format!("{number:.digits$}"),
            Value::Missing => String::new(),
        }
    }

    fn csv(self) -> String {
        let text = self.plain();
        if text.contains([',', '"', '\n']) {
            return format!("\"{}\"", text.replace('"', "\"\""));
        }
        text
    }

    fn json(self) -> String {
        match self {
            Value::Text(text) => json_text(&text),
            Value::Number(number, digits) if number.is_finite() => format!("{number:.digits$}"),
            Value::Number(..) | Value::Missing => "null".to_owned(),
        }
    }
}

fn json_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contest::Quartiles;
    use crate::outcome::{Against, Roof};

    fn line(text: &str, performance: &Performance) -> (String, String) {
        let template = Template::parse(text).expect(text);
        let entry = |name: &str| (name == "dt").then(|| "bf16:f32".to_owned());
        let facts = Facts {
            performance,
            driver: "lnorm",
            name: "a, \"b\"",
            line: "--lnorm 2x3",
            number: 7,
            entry: &entry,
        };
        (template.header(), template.line(&facts))
    }

    fn performance() -> Performance {
        let timing = Timing::of_seconds(&[0.001, 0.002, 0.006]);
        Performance {
            input_bytes: 3_000_000,
            output_bytes: 1_000_000,
            threads: 2,
            ..Performance::of_timing("simd:x".to_owned(), timing)
        }
    }

    fn compared() -> Performance {
        let quartiles = |median| Quartiles { low: median - 0.5, median, high: median + 0.5 };
        let timing = Timing::of_seconds(&[0.004]);
        let implementation = "theirs".to_owned();
        let against = Against { implementation, timing, ratio: quartiles(4.0) };
        let roof = Roof { copy: "memcpy".to_owned(), timing, share: quartiles(0.5) };
        Performance { against: Some(against), roof: Some(roof), ..performance() }
    }

    #[test]
    fn entries_have_times_and_units() {
        let (header, text) = line("%-time%|%0time%|%+time%|%~time%|%Ktime%", &performance());
        assert_eq!(header, "min_time|avg_time|max_time|median_time|Ktime");
        assert_eq!(text, "1.000000|3.000000|6.000000|2.000000|0.001000");
        let (header, text) = line("%-Gbw% %Mbw% %iobytes% %Kibytes% %obytes%", &performance());
        assert_eq!(header, "min_Gbw Mbw iobytes Kibytes obytes");
        assert_eq!(text, "4.000 4000.000 4000000 3000.000000 1000000");
        let (_, text) = line("%idx%,%driver%,%impl%,%dt%,%attr%,%prb%,%name%", &performance());
        assert_eq!(text, "7,lnorm,simd:x,bf16:f32,,--lnorm 2x3,\"a, \"b\"\"");
        // Creation means the first one, unless another is requested.
        assert_eq!(line("%ctime% %-cptime%", &performance()).1, "12.000000 1.000000");
        let ratios = "%ratio%/%ratio_low%/%peer_time%/%peer_impl%/%roof%/%copy%";
        assert_eq!(line(ratios, &compared()).1, "4.0000/3.5000/4.000000/theirs/0.5000/memcpy");
        assert_eq!(line(ratios, &performance()).1, "/////");
    }

    #[test]
    fn tables_have_as_many_columns_as_titles() {
        let (header, text) = line("csv", &compared());
        assert!(
            header.starts_with("engine,threads,impl,name,dir,dt,")
                && header.ends_with(",roof,driver,prb")
        );
        assert!(text.starts_with("cpu,2,simd:x,\"a, \"\"b\"\"\",,bf16:f32,"), "{text}");
        assert!(text.ends_with(",0.5000,lnorm,--lnorm 2x3"), "{text}");
        let (_, text) = line("json", &compared());
        assert!(
            text.starts_with(r#"{"engine":"cpu","threads":2,"impl":"simd:x","name":"a, \"b\"","#)
        );
        assert!(text.contains(r#""ratio":4.0000,"#), "{text}");
        assert!(text.ends_with(r#""roof":0.5000,"driver":"lnorm","prb":"--lnorm 2x3"}"#), "{text}");
        assert!(line("json", &performance()).1.contains(r#""ratio":null,"#));
        assert_eq!(line("def", &performance()).0.split(',').count(), 12);
    }

    #[test]
    fn every_entry_is_documented() {
        let text = include_str!("../../../docs/benchdnn.md");
        let columns = line("csv", &performance()).0.replace(',', ", ");
        let unwrapped = text.replace('\n', " ");
        assert!(unwrapped.contains(&format!("`{columns}`")), "{columns}");
        for (name, _) in ENTRIES {
            let (plain, timed) = (format!("`%{name}%`"), format!("`%@{name}%`"));
            assert!(text.contains(&plain) || text.contains(&timed), "{name}");
        }
    }

    #[test]
    fn mistakes_are_pointed_at() {
        let offset = |text| Template::parse(text).expect_err(text).offset;
        assert_eq!(offset("%prb%,%tme%"), 7);
        assert_eq!(offset("%prb%,%time"), 6);
        assert_eq!(offset("%G-time%"), 1);
        assert_eq!(offset("cvs"), 0);
    }
}
