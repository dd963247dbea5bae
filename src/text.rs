//! Texts that need no allocation: buffers of a fixed size, and values that display what a function
//! writes.

use std::ffi::CStr;
use std::fmt;

/// A text of at most `N - 1` bytes. Text that does not fit is cut off, and nothing is appended after that. A NUL
/// follows the text, so that C can read it; NULs in the text become question marks.
#[derive(Clone, Copy)]
pub(crate) struct Text<const N: usize> {
    bytes: [u8; N],
    len: usize,
    is_cut: bool,
}

impl<const N: usize> Text<N> {
    pub(crate) const fn new() -> Self {
        Self { bytes: [0; N], len: 0, is_cut: false }
    }

    pub(crate) fn as_str(&self) -> &str {
        // `write_str` stores whole characters only.
        std::str::from_utf8(&self.bytes[..self.len]).unwrap_or_default()
    }

    pub(crate) fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }

    /// Whether a part did not fit.
    #[cfg(any(target_os = "linux", test))]
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut
    }
}

impl<const N: usize> fmt::Write for Text<N> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = N - 1 - self.len;
        let mut fits = if self.is_cut { 0 } else { text.len().min(room) };
        while !text.is_char_boundary(fits) {
            fits -= 1;
        }
        self.is_cut |= fits < text.len();
        let end = self.len + fits;
        for (to, &byte) in self.bytes[self.len..end].iter_mut().zip(text.as_bytes()) {
            *to = if byte == 0 { b'?' } else { byte };
        }
        self.bytes[end] = 0;
        self.len = end;
        Ok(())
    }
}

/// A text that ends with its only NUL, as a C string.
pub(crate) const fn c_str(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("the text does not end with its only NUL"),
    }
}

/// Displays what a function writes.
pub(crate) struct Shown<F>(F);

/// A value that displays what `write` writes.
pub(crate) fn shown<F: Fn(&mut fmt::Formatter<'_>) -> fmt::Result>(write: F) -> Shown<F> {
    Shown(write)
}

impl<F: Fn(&mut fmt::Formatter<'_>) -> fmt::Result> fmt::Display for Shown<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (self.0)(f)
    }
}

/// Displays items with a separator between them.
pub(crate) fn joined<T: fmt::Display>(
    items: impl Iterator<Item = T> + Clone,
    separator: &str,
) -> impl fmt::Display {
    shown(move |f| {
        for (at, item) in items.clone().enumerate() {
            let before = if at == 0 { "" } else { separator };
            write!(f, "{before}{item}")?;
        }
        Ok(())
    })
}

/// Displays a value in capitals.
pub(crate) struct Capitals<T>(pub(crate) T);

impl<T: fmt::Display> fmt::Display for Capitals<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        struct Raised<'a, 'b>(&'a mut fmt::Formatter<'b>);
        impl fmt::Write for Raised<'_, '_> {
            fn write_str(&mut self, text: &str) -> fmt::Result {
                text.chars().try_for_each(|c| self.0.write_char(c.to_ascii_uppercase()))
            }
        }
        fmt::Write::write_fmt(&mut Raised(f), format_args!("{}", self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;

    #[test]
    fn texts_are_cut_between_characters() {
        let mut text = Text::<8>::new();
        text.write_str("ab\0").unwrap();
        write!(text, "{}", 1).unwrap();
        assert_eq!((text.as_str(), text.as_c_str(), text.is_cut()), ("ab?1", c"ab?1", false));
        // Three bytes remain. The two bytes of ß do not fit the last one, and nothing is appended after that.
        text.write_str("cdßx").unwrap();
        text.write_str("y").unwrap();
        assert_eq!((text.as_str(), text.as_c_str(), text.is_cut()), ("ab?1cd", c"ab?1cd", true));
    }

    #[test]
    fn items_are_joined_and_raised() {
        assert_eq!(joined([1, 2, 3].iter(), "x").to_string(), "1x2x3");
        assert_eq!(joined([0; 0].iter(), "x").to_string(), "");
        assert_eq!(Capitals(format_args!("a{}_b", 'c')).to_string(), "AC_B");
    }
}
