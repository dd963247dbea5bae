//! Format tags: each names an order of the dimensions, outermost first, and the inner blocks.
//!
//! In `aBc16b` the second dimension is divided into blocks of 16, which are innermost. `AB16b16a`
//! is a matrix of tiles of 16 times 16, each with 16 rows of `b` by `a`.

use super::MAX_NDIMS;
use super::tag_names::{FIRST, NAMES};
use crate::text::shown;
use arrayvec::ArrayVec;
use norm_sys as sys;
use std::ffi::CStr;
use std::fmt::{self, Write};

/// The letters of a tag; `None` for `undef`, `any` and unknown values.
pub(crate) fn letters_of(tag: sys::norm_format_tag_t) -> Option<&'static str> {
    NAMES.split_ascii_whitespace().nth(tag.checked_sub(FIRST)? as usize)
}

/// [`NAMES`] with a NUL after each name.
static C_NAMES: [u8; NAMES.len()] = {
    let mut bytes = [0; NAMES.len()];
    let mut i = 0;
    while i < bytes.len() {
        let byte = NAMES.as_bytes()[i];
        bytes[i] = if byte.is_ascii_whitespace() { 0 } else { byte };
        i += 1;
    }
    bytes
};

/// The letters of a tag for C.
pub(crate) fn c_letters_of(tag: sys::norm_format_tag_t) -> Option<&'static CStr> {
    let at = letters_of(tag)?.as_ptr().addr() - NAMES.as_ptr().addr();
    CStr::from_bytes_until_nul(&C_NAMES[at..]).ok()
}

/// Every tag with a layout, and its letters.
#[cfg(test)]
pub(crate) fn all_tags() -> impl Iterator<Item = (sys::norm_format_tag_t, &'static str)> {
    (FIRST..).zip(NAMES.split_ascii_whitespace())
}

/// An order of dimensions and of inner blocks, both outermost first.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) dims: ArrayVec<usize, MAX_NDIMS>,
    /// Dimension and size.
    pub(super) blocks: ArrayVec<(usize, i64), MAX_NDIMS>,
}

impl Order {
    /// Parses letters that need not be a tag: each dimension once, outermost first, then sizes and
    /// dimensions of blocks. Case does not matter. `None` if the text is not valid.
    pub(super) fn parse(letters: &str) -> Option<Self> {
        let bytes = letters.as_bytes();
        // Limits the digits of a size.
        let mut sizes = bytes.split(u8::is_ascii_alphabetic);
        if sizes.any(|digits| digits.len() > 9) {
            return None;
        }
        if !bytes.iter().all(u8::is_ascii_alphanumeric) || bytes.last()?.is_ascii_digit() {
            return None;
        }
        let mut order = Self::read(letters)?;
        let mut sorted = order.dims.clone();
        sorted.sort_unstable();
        let once = sorted.iter().enumerate().all(|(i, dim)| i == *dim);
        let known = order.blocks.iter().all(|(dim, size)| *dim < sorted.len() && *size > 0);
        // A block of one element has no effect.
        order.blocks.retain(|(_, size)| *size > 1);
        (once && known && !sorted.is_empty()).then_some(order)
    }

    /// Parses letters that are valid.
    pub(super) fn of(letters: &str) -> Self {
        Self::read(letters).unwrap_or_default()
    }

    /// Reads letters and sizes; `None` if there are more than a descriptor can have.
    fn read(letters: &str) -> Option<Self> {
        let dim = |letter: u8| usize::from(letter.to_ascii_lowercase() - b'a');
        let outer = letters.find(|c: char| c.is_ascii_digit()).unwrap_or(letters.len());
        let (outer, inner) = letters.split_at(outer);
        let mut order = Self::default();
        for letter in outer.bytes() {
            order.dims.try_push(dim(letter)).ok()?;
        }
        let mut size = 0;
        for byte in inner.bytes() {
            if byte.is_ascii_digit() {
                size = size * 10 + i64::from(byte - b'0');
            } else {
                order.blocks.try_push((dim(byte), size)).ok()?;
                size = 0;
            }
        }
        Some(order)
    }

    /// The letters; the inverse of [`of`](Order::of).
    pub(super) fn letters(&self) -> impl fmt::Display {
        let letter = |dim: usize| char::from(b'a' + dim as u8);
        let is_cut = |dim| self.blocks.iter().any(|(d, _)| *d == dim);
        shown(move |f| {
            for &d in &self.dims {
                f.write_char(if is_cut(d) { letter(d).to_ascii_uppercase() } else { letter(d) })?;
            }
            self.blocks.iter().try_for_each(|&(d, size)| write!(f, "{size}{}", letter(d)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_parsed_and_unique() {
        let all: Vec<_> = all_tags().collect();
        for (i, (value, letters)) in all.iter().enumerate() {
            let order = Order::of(letters);
            assert_eq!(order.letters().to_string(), *letters);
            let mut sorted = order.dims.clone();
            sorted.sort_unstable();
            assert!(sorted.iter().copied().eq(0..order.dims.len()), "{letters}");
            assert!(order.blocks.iter().all(|(d, size)| sorted.contains(d) && *size > 1));
            assert!(all[..i].iter().all(|(_, l)| l != letters), "{letters}");
            assert_eq!(letters_of(*value), Some(*letters));
            assert_eq!(c_letters_of(*value).and_then(|l| l.to_str().ok()), Some(*letters));
        }
        assert_eq!(letters_of(sys::norm_dabc), Some("dabc"));
        assert_eq!(letters_of(sys::norm_ABcd16b16a), Some("ABcd16b16a"));
        assert_eq!(letters_of(sys::norm_format_tag_any), None);
        assert_eq!(letters_of(1000), None);
    }

    #[test]
    fn letters_without_a_tag_are_parsed() {
        for (letters, dims, blocks) in [
            ("ba", vec![1, 0], vec![]),
            ("BcA7b3a", vec![1, 2, 0], vec![(1, 7), (0, 3)]),
            ("bca7b3a", vec![1, 2, 0], vec![(1, 7), (0, 3)]),
            ("Ab1a8a", vec![0, 1], vec![(0, 8)]),
        ] {
            let (dims, blocks) = (dims.into_iter().collect(), blocks.into_iter().collect());
            assert_eq!(Order::parse(letters), Some(Order { dims, blocks }), "{letters}");
        }
        let wrong = [
            "",
            "b",
            "aa",
            "ac",
            "a-b",
            "a b",
            "16a",
            "ab16",
            "ab16c",
            "ab0b",
            "ab8b8",
            "aß",
            "any",
            "ab9999999999b",
            "a2a2a2a2a2a2a2a2a2a2a2a2a2a",
            "abcdefghijklm",
            "ab8ab",
            "ab8aaaaaaaaaaaaaaaaaaaa",
        ];
        for letters in wrong {
            assert_eq!(Order::parse(letters), None, "{letters}");
        }
        assert!(all_tags().all(|(_, letters)| Order::parse(letters) == Some(Order::of(letters))));
    }

    /// `include/norm_tags.h` has the same names with the same values.
    #[test]
    fn the_header_has_the_same_tags() {
        let header = include_str!("../../include/norm_tags.h");
        let mut found: Vec<(u32, String)> = header
            .split([',', '\n', '{'])
            .filter_map(|item| item.trim().strip_prefix("norm_")?.split_once(" = "))
            .filter_map(|(name, value)| Some((value.parse().ok()?, name.to_owned())))
            .collect();
        found.sort();
        let ours: Vec<_> = all_tags().map(|(value, name)| (value, name.to_owned())).collect();
        assert_eq!(found[2..], ours);
    }
}
