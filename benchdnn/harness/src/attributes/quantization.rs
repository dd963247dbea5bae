//! `--attr-scales` and `--attr-zero-points`: `ARG:POLICY[:VALUE[:TYPE]]` or
//! `ARG:POLICY[:TYPE[:GROUPS]]`, several joined by `+`.

use super::arguments::{Policy, argument};
use crate::data_type::DataType;
use crate::language::value::{BadValue, integer, list, starts};

/// The value, for policies with a single one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A given value.
    Given(f32),
    /// Values that the harness fills in.
    Filled,
}

/// Scales or zero points of one tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantization {
    /// The argument id of the tensor.
    pub argument: i32,
    /// How they are broadcast.
    pub policy: Policy,
    /// The value.
    pub value: Value,
    /// Their type.
    pub data_type: DataType,
    /// The name of their type if the library does not have it.
    pub absent: Option<&'static str>,
    /// How many elements along each dimension share one; empty without groups.
    pub groups: Vec<usize>,
}

/// The differences between the two options.
pub(super) struct Kind {
    /// The value that changes nothing.
    pub(super) neutral: f32,
    /// The default type.
    pub(super) data_type: DataType,
    /// Checks a value.
    pub(super) check: fn(f32) -> Result<(), &'static str>,
}

/// Scales.
pub(super) const SCALES: Kind = Kind {
    neutral: 1.0,
    data_type: DataType::F32,
    check: |value| if value >= 0.0 { Ok(()) } else { Err("a scale is not negative") },
};

/// Zero points.
pub(super) const ZERO_POINTS: Kind = Kind {
    neutral: 0.0,
    data_type: DataType::S32,
    check: |value| {
        if value.fract() == 0.0 { Ok(()) } else { Err("a zero point is an integer") }
    },
};

pub(super) fn parse(text: &str, kind: &Kind) -> Result<Vec<Quantization>, BadValue> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let entries = list(text, '+', |entry| one(entry, kind))?;
    for (i, (entry, at)) in entries.iter().zip(starts(text, '+')).enumerate() {
        if entries[..i].iter().any(|other| other.argument == entry.argument) {
            return Err(BadValue::at(at, "an argument that was already given"));
        }
    }
    Ok(entries)
}

fn one(text: &str, kind: &Kind) -> Result<Quantization, BadValue> {
    let mut pieces = text.split(':').zip(starts(text, ':'));
    let mut next = || pieces.next();
    let (name, _) = next().expect("a split has at least one piece");
    let argument = argument(name)?;
    let Some((policy, at)) = next() else {
        return Err(BadValue::at(text.len(), "the policy is missing: ARG:POLICY[:...]"));
    };
    let policy = Policy::parse(policy).map_err(|error| error.shifted(at))?;
    let mut result = Quantization {
        argument,
        policy,
        value: Value::Filled,
        data_type: kind.data_type,
        absent: None,
        groups: Vec::new(),
    };
    if policy.is_single() {
        result.value = Value::Given(match next() {
            None => kind.neutral,
            Some((text, at)) => value(text, kind).map_err(|error| error.shifted(at))?,
        });
    }
    if let Some((text, at)) = next() {
        (result.data_type, result.absent) =
            DataType::among_any(&DataType::ALL)(text).map_err(|error| error.shifted(at))?;
    }
    if let Some((text, at)) = next() {
        if policy.is_single() {
            return Err(BadValue::at(at, "groups need a policy with several values"));
        }
        let read = |item: &str| integer(item, 1..=1 << 31).map(|group| group as usize);
        result.groups = list(text, 'x', read).map_err(|error| error.shifted(at))?;
    }
    match next() {
        None => Ok(result),
        Some((text, at)) => Err(BadValue::at(at, format!("'{text}' is one value too many"))),
    }
}

fn value(text: &str, kind: &Kind) -> Result<f32, BadValue> {
    let value = number(text)?;
    (kind.check)(value).map(|()| value).map_err(BadValue::new)
}

/// Reads a finite number.
pub fn number(text: &str) -> Result<f32, BadValue> {
    match text.parse::<f32>() {
        Ok(number) if number.is_finite() => Ok(number),
        _ => Err(BadValue::new(format!("'{text}' is not a finite number"))),
    }
}
