//! Format tags: each names an order of the dimensions, outermost first, and the blocks that some of them
//! are cut into.
//!
//! The letters say it all: in `aBc16b` the second dimension is cut into blocks of 16, whose elements lie
//! innermost; in `AB16b16a` tiles of 16 times 16 follow each other, each with 16 rows of `b` by `a`.

use super::tag_names::{FIRST, NAMES};
use norm_sys as sys;

/// The letters of a tag that names a layout; `None` for `undef`, `any` and unknown values.
pub(crate) fn letters_of(tag: sys::norm_format_tag_t) -> Option<&'static str> {
    NAMES.split_ascii_whitespace().nth(tag.checked_sub(FIRST)? as usize)
}

/// Every tag that names a layout, with its letters.
pub(crate) fn all_tags() -> impl Iterator<Item = (sys::norm_format_tag_t, &'static str)> {
    (FIRST..).zip(NAMES.split_ascii_whitespace())
}

/// An order of dimensions and the blocks within, both outermost first.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) dims: Vec<usize>,
    /// Dimension and size.
    pub(super) blocks: Vec<(usize, i64)>,
}

impl Order {
    /// What letters mean; they are those of a tag.
    pub(super) fn of(letters: &str) -> Self {
        let dim = |letter: u8| usize::from(letter.to_ascii_lowercase() - b'a');
        let outer = letters.find(|c: char| c.is_ascii_digit()).unwrap_or(letters.len());
        let (outer, inner) = letters.split_at(outer);
        let mut blocks = Vec::new();
        let mut size = 0;
        for byte in inner.bytes() {
            if byte.is_ascii_digit() {
                size = size * 10 + i64::from(byte - b'0');
            } else {
                blocks.push((dim(byte), size));
                size = 0;
            }
        }
        Self { dims: outer.bytes().map(dim).collect(), blocks }
    }

    /// The letters: [`of`](Order::of) backwards.
    pub(super) fn letters(&self) -> String {
        let letter = |dim: usize| char::from(b'a' + dim as u8);
        let is_cut = |dim| self.blocks.iter().any(|(d, _)| *d == dim);
        let outer = self
            .dims
            .iter()
            .map(|&d| if is_cut(d) { letter(d).to_ascii_uppercase() } else { letter(d) });
        let inner = self.blocks.iter().map(|&(d, size)| format!("{size}{}", letter(d)));
        outer.collect::<String>() + &inner.collect::<String>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tag_is_read_and_stands_once() {
        let all: Vec<_> = all_tags().collect();
        for (i, (value, letters)) in all.iter().enumerate() {
            let order = Order::of(letters);
            assert_eq!(order.letters(), *letters);
            let mut sorted = order.dims.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..order.dims.len()).collect::<Vec<_>>(), "{letters}");
            assert!(order.blocks.iter().all(|(d, size)| sorted.contains(d) && *size > 1));
            assert!(all[..i].iter().all(|(_, l)| l != letters), "{letters}");
            assert_eq!(letters_of(*value), Some(*letters));
        }
        assert_eq!(letters_of(sys::norm_dabc), Some("dabc"));
        assert_eq!(letters_of(sys::norm_ABcd16b16a), Some("ABcd16b16a"));
        assert_eq!(letters_of(sys::norm_format_tag_any), None);
        assert_eq!(letters_of(1000), None);
    }

    /// `include/norm_tags.h` has the same names at the same values.
    #[test]
    fn the_header_has_the_same_tags() {
        let header = concat!(env!("CARGO_MANIFEST_DIR"), "/include/norm_tags.h");
        let header = std::fs::read_to_string(header).unwrap();
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
