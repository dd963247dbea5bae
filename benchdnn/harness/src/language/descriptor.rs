//! Descriptors of problems: dimensions and a name.

use super::token::quote;
use super::value::{BadValue, list};
use std::ops::RangeInclusive;

/// More elements than fit any machine's memory, but few enough that no product overflows. Larger problems are skipped.
pub(crate) const MOST_ELEMENTS: usize = 1 << 44;

/// Dimensions and name, as written: `8x128x1024_n"name"`.
#[derive(Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// The dimensions.
    pub dims: Vec<usize>,
    /// The name; often empty.
    pub name: String,
}

impl Descriptor {
    /// Reads a descriptor whose number of dimensions is in the range.
    pub fn parse(text: &str, dimensions: &RangeInclusive<usize>) -> Result<Descriptor, BadValue> {
        let (dims, name) = match text.find('n') {
            Some(at) => (&text[..at], Some((at + 1, &text[at + 1..]))),
            None => (text, None),
        };
        let dims = match name {
            Some(_) => dims.strip_suffix('_').unwrap_or(dims),
            None => dims,
        };
        let read = |item: &str| {
            let digits = item.bytes().take_while(u8::is_ascii_digit).count();
            dimension(item).map_err(|_| {
                let hint = hint(dims);
                BadValue::at(
                    digits,
                    format!(
                        "'{text}' is not a problem such as 8x128x1024 or 8x128x1024_n\"name\"{hint}"
                    ),
                )
            })
        };
        let (pieces, dims) = (dims, list(dims, 'x', read)?);
        if !dimensions.contains(&dims.len()) {
            let (fewest, most) = (dimensions.start(), dimensions.end());
            // At the first extra dimension, or where the next one is missing.
            let at = pieces.match_indices('x').nth(most - 1).map_or(pieces.len(), |(at, _)| at + 1);
            let message = match dims.len() {
                1 if *fewest == 2 => {
                    format!(
                        "'{text}' is 1 dimension, not {fewest} to {most}; a row is 1x{text}, without spaces"
                    )
                }
                1 => format!("'{text}' is 1 dimension, not {fewest} to {most}"),
                count => format!("'{text}' has {count} dimensions, not {fewest} to {most}"),
            };
            return Err(BadValue::at(at, message));
        }
        let name = match name {
            None => String::new(),
            Some((at, name)) => Descriptor::name(name).map_err(|error| error.shifted(at))?,
        };
        Ok(Descriptor { dims, name })
    }

    /// A name, with or without the quotes that a shell may have removed.
    pub(crate) fn name(text: &str) -> Result<String, BadValue> {
        let name = match text.strip_prefix('"') {
            Some(quoted) => quoted
                .strip_suffix('"')
                .ok_or_else(|| BadValue::at(text.len(), "the quote of a name does not end"))?,
            None => text,
        };
        match name.find(|c: char| c == '"' || c == '\'' || c.is_control()) {
            None => Ok(name.to_owned()),
            Some(at) => Err(BadValue::at(
                at + text.len() - text.trim_start_matches('"').len(),
                "a name holds no quotes and no control characters",
            )),
        }
    }
}

/// Reads a dimension. Digits that no integer holds give the largest one: the problem is too large in either case.
pub(crate) fn dimension(text: &str) -> Result<usize, BadValue> {
    match !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        true => Ok(text.parse().unwrap_or(usize::MAX)),
        false => Err(BadValue::new(format!("'{text}' is not a dimension"))),
    }
}

/// Whether a tensor of these dimensions is too large for any machine. A dimension of 0 does not make it smaller, because
/// some products leave that dimension out.
pub(crate) fn is_too_large(dims: &[usize]) -> bool {
    let product = dims.iter().try_fold(1_usize, |product, &dim| product.checked_mul(dim.max(1)));
    product.is_none_or(|product| product > MOST_ELEMENTS)
}

/// A guess at the meaning of wrong dimensions.
fn hint(dims: &str) -> String {
    let joined = dims.replace([',', '*', 'X', '\u{d7}'], "x");
    let is_right = joined.split('x').all(|dim| dimension(dim).is_ok());
    if joined != dims && is_right {
        return format!(": dimensions are joined by x, as in {joined}");
    }
    match dims.strip_suffix('x').and_then(|_| dims.trim_end_matches('x').chars().last()) {
        Some(last) if last.is_ascii_digit() => {
            ": a dimension is missing after the last x".to_owned()
        }
        _ => String::new(),
    }
}

/// The descriptor of these dimensions and this name.
pub fn text(dims: &[usize], name: &str) -> String {
    let dims: Vec<String> = dims.iter().map(usize::to_string).collect();
    named(&dims.join("x"), name)
}

/// A descriptor with a name, if there is one.
pub(crate) fn named(sizes: &str, name: &str) -> String {
    if name.is_empty() {
        return sizes.to_owned();
    }
    // A shell interprets these inside double quotes.
    if name.contains(['$', '`', '\\', '!']) {
        return quote(&format!("{sizes}_n{name}"));
    }
    format!("{sizes}_n\"{name}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_dimensions_and_a_name() {
        let parse = |text| Descriptor::parse(text, &(2..=5)).expect(text);
        assert_eq!(parse("15x3"), Descriptor { dims: vec![15, 3], name: String::new() });
        for text in ["6x2x0x1024_n\"ci 0d:0*\"", "6x2x0x1024nci 0d:0*", "6x2x0x1024_nci 0d:0*"] {
            let descriptor = parse(text);
            assert_eq!(descriptor.dims, [6, 2, 0, 1024], "{text}");
            assert_eq!(descriptor.name, "ci 0d:0*", "{text}");
        }
    }

    #[test]
    fn malformed_descriptors_are_pointed_at() {
        let offset = |text| Descriptor::parse(text, &(2..=5)).expect_err(text).offset;
        assert_eq!(offset("15y3"), 2);
        assert_eq!(offset("15xx3"), 3);
        assert_eq!(offset("15x3x"), 5);
        assert_eq!(offset("15x-3"), 3);
        assert_eq!(offset("15"), 2);
        assert_eq!(offset("1x1x1x1x1x1"), 10);
        assert_eq!(offset("1x3n\"a'b\""), 6);
        assert_eq!(offset("1x3_n\"ab"), 8);
        let message = |text| Descriptor::parse(text, &(2..=5)).expect_err(text).message;
        for text in ["4096,4096", "4096X4096", "4096*4096"] {
            let hint = "dimensions are joined by x, as in 4096x4096";
            assert!(message(text).ends_with(hint), "{}", message(text));
        }
        assert!(message("4096x").ends_with("a dimension is missing after the last x"));
        assert!(message("15y3").ends_with("_n\"name\""));
    }

    #[test]
    fn sizes_beyond_any_memory_are_read_and_seen() {
        for (text, too_large) in [
            ("17592186044416x1", false),
            ("4398046511104x4", false),
            ("4398046511104x5", true),
            ("0x17592186044417", true),
            ("4x4611686018427387904", true),
            ("99999999999999999999x0", true),
        ] {
            let Descriptor { dims, .. } = Descriptor::parse(text, &(2..=5)).expect(text);
            assert_eq!(is_too_large(&dims), too_large, "{text}");
        }
    }
}
