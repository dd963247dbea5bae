//! Layout tags: letters (`acb`), names (`tnc`), patterns for any number of dimensions (`axb`),
//! `any` and `undef`.

use crate::language::value::{BadValue, integer};
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

/// Dimensions of data and of weights, in oneDNN's names of layouts: g groups, o output channels, i input channels.
const SPELLINGS: [(char, &str); 2] = [('n', "ncdhw"), ('o', "goidhw")];

/// The letters of a name such as `nChw16c` or `gOIhw16i16o`, in which each dimension has its own letter; `None` for
/// other tags.
fn spelled(text: &str) -> Option<String> {
    let outer = text.find(|c: char| c.is_ascii_digit()).unwrap_or(text.len());
    let has = |letter| text[..outer].to_ascii_lowercase().contains(letter);
    let (_, all) = SPELLINGS.iter().find(|(letter, _)| has(*letter))?;
    let there: String = all.chars().filter(|letter| has(*letter)).collect();
    let letter = |c: char| {
        let place = there.find(c.to_ascii_lowercase())?;
        let letter = LETTERS.as_bytes()[place] as char;
        Some(if c.is_ascii_uppercase() { letter.to_ascii_uppercase() } else { letter })
    };
    text.chars().map(|c| if c.is_ascii_digit() { Some(c) } else { letter(c) }).collect()
}

/// A layout tag.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Tag {
    /// The library chooses.
    Any,
    /// No memory descriptor is passed.
    Undef,
    /// Letters. An `x` stands for all dimensions that the other letters omit.
    Plain {
        /// As written.
        written: String,
        /// The letters in lower case, without the blocks.
        letters: String,
        /// Dimension and size of the blocks, outermost first.
        blocks: Vec<(usize, usize)>,
    },
}

impl Tag {
    /// Reads a tag that may be blocked. Blocked dimensions have capital letters, and the sizes and letters of the
    /// blocks follow, as in `AB16b16a` and `aBx8b`.
    pub fn parse_blocked(text: &str) -> Result<Tag, BadValue> {
        if let Some(letters) = spelled(text) {
            let tag = Tag::parse_blocked(&letters).map_err(|error| {
                BadValue::at(error.offset, format!("'{text}', {}", error.message))
            })?;
            return Ok(match tag {
                Tag::Plain { letters, blocks, .. } => {
                    Tag::Plain { written: text.to_owned(), letters, blocks }
                }
                other => other,
            });
        }
        let outer = text.find(|c: char| c.is_ascii_digit()).unwrap_or(text.len());
        let (outer, inner) = text.split_at(outer);
        let mut blocks = Vec::new();
        let bad = |at: usize, what: &str| BadValue::at(at, format!("'{text}': {what}"));
        let mut rest = inner;
        while !rest.is_empty() {
            let at = text.len() - rest.len();
            let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let size = integer(&rest[..digits], 1..=1 << 20).map_err(|error| error.shifted(at))?;
            let letter = rest[digits..].chars().next();
            let letter = letter.filter(|letter| LETTERS.contains(*letter) && digits > 0);
            let Some(dimension) = letter.and_then(|letter| LETTERS.find(letter)) else {
                return Err(bad(at + digits, "a block is a number and a small letter"));
            };
            blocks.push((dimension, size as usize));
            rest = &rest[digits + 1..];
        }
        for (at, letter) in outer.char_indices().filter(|(_, c)| *c != 'x') {
            let cut = LETTERS.find(letter.to_ascii_lowercase());
            let cut = cut.is_some_and(|d| blocks.iter().any(|block| block.0 == d));
            if letter.is_ascii_uppercase() != cut {
                return Err(bad(at, "capitals name the blocked dimensions"));
            }
        }
        let named =
            |dimension: usize| outer.to_ascii_lowercase().contains(&LETTERS[dimension..=dimension]);
        if !blocks.iter().all(|block| named(block.0)) {
            return Err(bad(outer.len(), "blocks must be of dimensions named before them"));
        }
        if inner.is_empty() {
            return Tag::parse(text);
        }
        match Tag::parse(&outer.to_ascii_lowercase())? {
            Tag::Plain { letters, .. } => {
                Ok(Tag::Plain { written: text.to_owned(), letters, blocks })
            }
            other => Ok(other),
        }
    }

    /// Reads a tag. Blocked layouts (capitals and numbers) are refused.
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
        // Without an x, the letters are the first ones of the alphabet in some order.
        let complete = letters.contains('x')
            || LETTERS.chars().take(named.len()).all(|letter| named.contains(letter));
        if letters.is_empty() || !known || !distinct || !complete {
            return Err(BadValue::new(format!(
                "'{text}' is not a layout: letters (acb), with x for the dimensions without a letter \
                 (abx, axb, xba), a name (tnc), any or undef"
            )));
        }
        let (written, letters) = (text.to_owned(), letters.to_owned());
        Ok(Tag::Plain { written, letters, blocks: Vec::new() })
    }

    /// The order of the dimensions in memory, outermost first; `None` for `any` and `undef`.
    pub fn order(&self, ndims: usize) -> Result<Option<Vec<usize>>, String> {
        let Tag::Plain { written, letters, blocks } = self else { return Ok(None) };
        if let Some((dimension, _)) = blocks.iter().find(|block| block.0 >= ndims) {
            let letter = &LETTERS[*dimension..=*dimension];
            return Err(format!(
                "tag {written} blocks dimension {letter}, but the number of dimensions is {ndims}"
            ));
        }
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

    /// The blocks, outermost first.
    pub fn blocks(&self) -> &[(usize, usize)] {
        match self {
            Tag::Plain { blocks, .. } => blocks,
            Tag::Any | Tag::Undef => &[],
        }
    }

    /// The letters of an order of dimensions with these blocks.
    pub fn blocked_letters(order: &[usize], blocks: &[(usize, usize)]) -> String {
        let cut = |dimension: &usize| blocks.iter().any(|block| block.0 == *dimension);
        let outer = order.iter().map(|dimension| {
            let letter = Tag::letters(&[*dimension]);
            if cut(dimension) { letter.to_ascii_uppercase() } else { letter }
        });
        let inner =
            blocks.iter().map(|(dimension, size)| format!("{size}{}", Tag::letters(&[*dimension])));
        outer.chain(inner).collect()
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

    #[test]
    fn blocks_follow_the_dimensions() {
        for (text, ndims, letters) in [
            ("AB16b16a", 2, "AB16b16a"),
            ("aBx8b", 4, "aBcd8b"),
            ("ABx4b8a2b", 3, "ABc4b8a2b"),
            ("aCBx2c8b", 4, "aCBd2c8b"),
            ("axb", 3, "acb"),
        ] {
            let tag = Tag::parse_blocked(text).expect(text);
            let order = tag.order(ndims).expect(text).expect("a layout");
            assert_eq!(Tag::blocked_letters(&order, tag.blocks()), letters);
            assert_eq!(tag.to_string(), text);
        }
        for (text, ndims, letters) in [
            ("nChw16c", 4, "aBcd16b"),
            ("gOIhw16i16o", 5, "aBCde16c16b"),
            ("OIdhw4i16o4i", 5, "ABcde4b16a4b"),
            ("nwc", 3, "acb"),
            ("hwio", 4, "cdba"),
            ("goiw", 4, "abcd"),
            ("tnc", 3, "abc"),
        ] {
            let tag = Tag::parse_blocked(text).expect(text);
            let order = tag.order(ndims).expect(text).expect("a layout");
            assert_eq!(Tag::blocked_letters(&order, tag.blocks()), letters);
            assert_eq!(tag.to_string(), text);
        }
        assert!(Tag::parse_blocked("nChw16o").is_err() && Tag::parse_blocked("OIhw").is_err());
        assert_eq!(Tag::parse_blocked("any"), Ok(Tag::Any));
        let error = Tag::parse_blocked("aBx8b").expect("a tag").order(1).expect_err("no b");
        assert_eq!(error, "tag aBx8b blocks dimension b, but the number of dimensions is 1");
        for (text, at) in [
            ("ab16b", 1),
            ("aB", 1),
            ("AB16a", 1),
            ("aB0b", 2),
            ("aB16", 4),
            ("aB16B", 4),
            ("aB8b8", 5),
            ("ab8c", 2),
            ("aB8bb", 4),
            ("aB8b-8b", 4),
        ] {
            let error = Tag::parse_blocked(text).expect_err(text);
            assert_eq!(error.offset, at, "{text}: {}", error.message);
        }
    }
}
