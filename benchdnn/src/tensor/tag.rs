//! Layout tags as they are written: letters (`acb`), names (`tnc`), patterns that fit any number
//! of dimensions (`axb`), `any` and `undef`.

use crate::language::value::BadValue;
use std::fmt;

/// Names that stand for letters: n batch, t time, c channels, w h d space.
const NAMES: [(&str, &str); 14] = [
    ("nc", "ab"),
    ("cn", "ba"),
    ("tn", "ab"),
    ("nt", "ba"),
    ("tnc", "abc"),
    ("ntc", "bac"),
    ("ncw", "abc"),
    ("nwc", "acb"),
    ("nchw", "abcd"),
    ("nhwc", "acdb"),
    ("chwn", "bcda"),
    ("ncdhw", "abcde"),
    ("ndhwc", "acdeb"),
    ("ldnc", "abcd"),
];

/// Letters of the dimensions; no tensor has more.
const LETTERS: &str = "abcdefghijkl";

/// A layout tag.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Tag {
    /// The library chooses.
    Any,
    /// No memory descriptor is given.
    Undef,
    /// Letters, one of which may be an `x` for all dimensions that the others leave out.
    Plain {
        /// As written.
        written: String,
        /// The letters that it stands for.
        letters: String,
    },
}

impl Tag {
    /// Reads a tag. Blocked layouts (upper-case letters and numbers) are refused.
    pub fn parse(text: &str) -> Result<Tag, BadValue> {
        match text {
            "any" => return Ok(Tag::Any),
            "undef" => return Ok(Tag::Undef),
            _ => {}
        }
        let letters = NAMES.iter().find(|(name, _)| *name == text).map_or(text, |row| row.1);
        let named = letters.replacen('x', "", 1);
        let distinct = named.char_indices().all(|(i, c)| !named[..i].contains(c));
        let known = named.chars().all(|c| LETTERS.contains(c));
        // Without an x the letters must be the first ones of the alphabet, in some order.
        let complete = letters.contains('x')
            || LETTERS.chars().take(named.len()).all(|letter| named.contains(letter));
        if letters.is_empty() || !known || !distinct || !complete {
            return Err(BadValue::new(format!(
                "'{text}' is no layout: abx, axb, xba and the like, letters (acb), \
                 a name (tnc), any or undef"
            )));
        }
        Ok(Tag::Plain { written: text.to_owned(), letters: letters.to_owned() })
    }

    /// The order of the dimensions in memory, outermost first; `None` for `any` and `undef`.
    pub fn order(&self, ndims: usize) -> Result<Option<Vec<usize>>, String> {
        let Tag::Plain { written, letters } = self else { return Ok(None) };
        let index = |letter| LETTERS.find(letter).expect("a parsed tag has known letters");
        if !letters.contains('x') {
            if letters.len() != ndims {
                let (names, count) = (letters.len(), ndims);
                return Err(format!("tag {written} is for {names} dimensions, not {count}"));
            }
            return Ok(Some(letters.chars().map(index).collect()));
        }
        let mut order = Vec::new();
        for letter in letters.chars() {
            if letter == 'x' {
                let rest = LETTERS.chars().filter(|&letter| !letters.contains(letter));
                order.extend(rest.map(index).filter(|&dimension| dimension < ndims));
            } else {
                order.extend(Some(index(letter)).filter(|&dimension| dimension < ndims));
            }
        }
        Ok(Some(order))
    }

    /// The letters of an order of dimensions.
    pub fn letters(order: &[usize]) -> String {
        order.iter().map(|&dimension| char::from(LETTERS.as_bytes()[dimension])).collect()
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Tag::Any => "any",
            Tag::Undef => "undef",
            Tag::Plain { written, .. } => written,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(tag: &str, ndims: usize) -> String {
        let tag = Tag::parse(tag).expect(tag);
        Tag::letters(&tag.order(ndims).expect("dimensions that fit").expect("a layout"))
    }

    #[test]
    fn patterns_fit_any_number_of_dimensions() {
        let rows = [
            ("abx", ["a", "ab", "abc", "abcd", "abcde"]),
            ("axb", ["a", "ab", "acb", "acdb", "acdeb"]),
            ("xba", ["a", "ba", "cba", "cdba", "cdeba"]),
            ("abxc", ["a", "ab", "abc", "abdc", "abdec"]),
        ];
        for (tag, expected) in rows {
            for (i, expected) in expected.into_iter().enumerate() {
                assert_eq!(order(tag, i + 1), expected, "{tag} in {} dimensions", i + 1);
            }
        }
    }

    #[test]
    fn names_and_letters_fit_one_number() {
        assert_eq!(order("ntc", 3), "bac");
        assert_eq!(order("tn", 2), "ab");
        assert_eq!(order("bcda", 4), "bcda");
        let error = Tag::parse("ntc").expect("a name").order(2).expect_err("two dimensions");
        assert_eq!(error, "tag ntc is for 3 dimensions, not 2");
    }

    #[test]
    fn other_tags_are_refused() {
        for text in ["", "aBx16b", "aa", "ac", "bcd", "axx", "abz", "ABX", "16"] {
            assert!(Tag::parse(text).is_err(), "{text}");
        }
        assert_eq!(Tag::parse("any"), Ok(Tag::Any));
        assert_eq!(Tag::parse("undef"), Ok(Tag::Undef));
    }
}
