//! Format tags: each names an order of the dimensions, outermost first.

use norm_sys as sys;

/// Every tag with a layout: its C value and its letters.
const TAGS: &[(sys::norm_format_tag_t, &str)] = &[
    (sys::norm_a, "a"),
    (sys::norm_ab, "ab"),
    (sys::norm_abc, "abc"),
    (sys::norm_abcd, "abcd"),
    (sys::norm_abcde, "abcde"),
    (sys::norm_abcdef, "abcdef"),
    (sys::norm_ba, "ba"),
    (sys::norm_acb, "acb"),
    (sys::norm_bac, "bac"),
    (sys::norm_bca, "bca"),
    (sys::norm_cab, "cab"),
    (sys::norm_cba, "cba"),
    (sys::norm_abdc, "abdc"),
    (sys::norm_acbd, "acbd"),
    (sys::norm_acdb, "acdb"),
    (sys::norm_adbc, "adbc"),
    (sys::norm_adcb, "adcb"),
    (sys::norm_bacd, "bacd"),
    (sys::norm_bcda, "bcda"),
    (sys::norm_cdab, "cdab"),
    (sys::norm_cdba, "cdba"),
    (sys::norm_dcab, "dcab"),
    (sys::norm_abced, "abced"),
    (sys::norm_abdec, "abdec"),
    (sys::norm_acbde, "acbde"),
    (sys::norm_acdeb, "acdeb"),
    (sys::norm_adecb, "adecb"),
    (sys::norm_bacde, "bacde"),
    (sys::norm_bcdea, "bcdea"),
    (sys::norm_cdeab, "cdeab"),
    (sys::norm_cdeba, "cdeba"),
    (sys::norm_decab, "decab"),
    (sys::norm_abcdfe, "abcdfe"),
    (sys::norm_abdefc, "abdefc"),
    (sys::norm_abdfce, "abdfce"),
    (sys::norm_acbdef, "acbdef"),
    (sys::norm_adefcb, "adefcb"),
    (sys::norm_defcab, "defcab"),
    (sys::norm_bcad, "bcad"),
    (sys::norm_cabd, "cabd"),
    (sys::norm_dabc, "dabc"),
];

/// The letters of a tag that names a layout; `None` for `undef`, `any` and unknown values.
pub(crate) fn letters_of(tag: sys::norm_format_tag_t) -> Option<&'static str> {
    TAGS.iter().find(|(value, _)| *value == tag).map(|(_, letters)| *letters)
}

/// The tag whose order of dimensions this is, if it has a name.
pub(crate) fn tag_name(order: &[usize]) -> Option<&'static str> {
    let same = |letters: &str| {
        letters.len() == order.len()
            && letters.bytes().zip(order).all(|(l, &d)| usize::from(l - b'a') == d)
    };
    TAGS.iter().map(|(_, letters)| *letters).find(|letters| same(letters))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tag_is_a_permutation_and_stands_once() {
        for (i, (value, letters)) in TAGS.iter().enumerate() {
            let mut sorted = letters.as_bytes().to_vec();
            sorted.sort_unstable();
            assert_eq!(sorted, &b"abcdef"[..letters.len()], "{letters}");
            assert!(TAGS[..i].iter().all(|(v, l)| v != value && l != letters), "{letters}");
        }
        assert_eq!(tag_name(&[0, 2, 1]), Some("acb"));
        assert_eq!(tag_name(&[2, 0, 1, 3, 4]), None);
    }
}
