//! Values of options: lists, switches and numbers, and what is wrong with a bad one.

use std::ops::RangeInclusive;

/// Why a value (or a descriptor) is invalid, and at which byte of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadValue {
    /// Byte offset in the text that was being read.
    pub offset: usize,
    /// A sentence without a full stop that names what was found and what is allowed.
    pub message: String,
}

impl BadValue {
    /// A value that is wrong from its first byte.
    pub fn new(message: impl Into<String>) -> BadValue {
        BadValue { offset: 0, message: message.into() }
    }

    /// A value that is wrong from byte `offset` on.
    pub fn at(offset: usize, message: impl Into<String>) -> BadValue {
        BadValue { offset, message: message.into() }
    }

    /// The error relative to a text in which the value starts at `offset`.
    pub fn shifted(mut self, offset: usize) -> BadValue {
        self.offset += offset;
        self
    }
}

/// Reads the pieces of `text` between `separator`s; an empty text is one empty piece.
pub fn list<T>(
    text: &str,
    separator: char,
    mut item: impl FnMut(&str) -> Result<T, BadValue>,
) -> Result<Vec<T>, BadValue> {
    let mut offset = 0;
    let mut items = Vec::new();
    for piece in text.split(separator) {
        items.push(item(piece).map_err(|error| error.shifted(offset))?);
        offset += piece.len() + separator.len_utf8();
    }
    Ok(items)
}

/// The offsets of the pieces of `text` between `separator`s.
pub fn starts(text: &str, separator: char) -> impl Iterator<Item = usize> {
    let behind = move |(at, _)| at + separator.len_utf8();
    std::iter::once(0).chain(text.match_indices(separator).map(behind))
}

/// Reads `a` or `a:b`; `single` derives the second value from a single one.
pub fn pair<T>(
    text: &str,
    mut item: impl FnMut(&str) -> Result<T, BadValue>,
    single: impl FnOnce(&T) -> T,
) -> Result<(T, T), BadValue> {
    let mut items = list(text, ':', &mut item)?.into_iter();
    let first = items.next().expect("a list has at least one piece");
    match (items.next(), items.next()) {
        (None, _) => {
            let second = single(&first);
            Ok((first, second))
        }
        (Some(second), None) => Ok((first, second)),
        _ => Err(BadValue::new(format!("'{text}' is neither SRC:DST nor one value for both"))),
    }
}

/// The value whose name is `text`, ignoring case.
pub fn one_of<T: Copy>(text: &str, choices: &[(&str, T)]) -> Result<T, BadValue> {
    choices
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(text))
        .map(|&(_, value)| value)
        .ok_or_else(|| BadValue::new(none_of(text, choices)))
}

/// The value whose name is exactly `text`.
pub fn exactly_one_of<T: Copy>(text: &str, choices: &[(&str, T)]) -> Result<T, BadValue> {
    match choices.iter().find(|(name, _)| *name == text) {
        Some(&(_, value)) => Ok(value),
        None => Err(BadValue::new(none_of(text, choices))),
    }
}

fn none_of<T>(text: &str, choices: &[(&str, T)]) -> String {
    let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
    format!("'{text}' is none of {}", names.join(", "))
}

/// The name that `text` is most likely a misspelling of. clap's own measure finds nothing for short names such as `dri`
/// for `dir`.
pub fn nearest(text: &str, names: impl IntoIterator<Item = &'static str>) -> Option<&'static str> {
    let slips = |name: &str| strsim::damerau_levenshtein(text, name);
    let (slips, name) = names.into_iter().map(|name| (slips(name), name)).min_by_key(|it| it.0)?;
    (slips <= (text.chars().count() / 2).min(4)).then_some(name)
}

/// Reads `true`, `false`, `1` or `0`.
pub fn boolean(text: &str) -> Result<bool, BadValue> {
    one_of(text, &[("true", true), ("false", false), ("1", true), ("0", false)])
}

/// Reads an integer of the range.
pub fn integer(text: &str, range: RangeInclusive<u64>) -> Result<u64, BadValue> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match text.parse() {
        Ok(number) if digits && range.contains(&number) => Ok(number),
        _ => Err(BadValue::new(format!(
            "'{text}' is not an integer from {} to {}",
            range.start(),
            range.end()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_in_a_list_knows_its_offset() {
        let read = |text| list(text, ',', |item| pair(item, boolean, |&first| first));
        assert_eq!(read("1,0:1"), Ok(vec![(true, true), (false, true)]));
        assert_eq!(read("1,0:yes").expect_err("no boolean").offset, 4);
        assert_eq!(read("1,0,").expect_err("an empty piece").offset, 4);
        assert_eq!(read("1,1:1:1").expect_err("three").offset, 2);
    }

    #[test]
    fn bad_values_name_the_allowed_ones() {
        let error = one_of("left", &[("FWD", 1), ("BWD", 2)]).expect_err("unknown");
        assert_eq!(error.message, "'left' is none of FWD, BWD");
        assert_eq!(one_of("bwd", &[("FWD", 1), ("BWD", 2)]), Ok(2));
        assert!(exactly_one_of("fwd", &[("FWD", 1)]).is_err());
    }

    #[test]
    fn integers_are_digits_within_a_range() {
        assert_eq!(integer("007", 0..=7), Ok(7));
        for text in ["", "+1", "-1", "8", "1.", "99999999999999999999"] {
            assert!(integer(text, 0..=7).is_err(), "{text}");
        }
    }
}
