//! Words of the language, and the source position of each of their characters.
//!
//! The shell has split the command line. Batch files are split here by similar rules: white space
//! separates words, `#` at the start of a word comments out the rest of the line, quotes group and
//! are removed, and a backslash at the end of a line joins the next word to the previous one. A
//! word remembers the line and column of every byte, so that errors can point into it.

use std::fmt;
use std::rc::Rc;

/// Where a word was read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The command line; arguments count from 1.
    Argument(usize),
    /// A batch file, by its name in messages.
    File(Rc<str>),
}

/// A position that an error message can name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// File or argument.
    pub source: Source,
    /// Line, from 1; always 1 in an argument.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            Source::Argument(index) => {
                write!(out, "command line, argument {index}, column {}", self.column)
            }
            Source::File(name) => write!(out, "{name}:{}:{}", self.line, self.column),
        }
    }
}

/// One word: an option with its value, or a problem descriptor.
#[derive(Clone, Debug)]
pub struct Token {
    /// The word without the quotes that grouped it.
    pub text: String,
    source: Source,
    /// Line and column of each byte of `text`, and of the end of the word.
    positions: Vec<(usize, usize)>,
}

impl Token {
    /// The word at `index` (from 1) of the command line.
    pub fn argument(index: usize, text: &str) -> Token {
        let mut word = Word::default();
        let mut column = 1;
        for c in text.chars() {
            word.push(c, (1, column));
            column += 1;
        }
        word.finish(Source::Argument(index), (1, column))
    }

    /// The source position of the byte at `offset`.
    pub fn place(&self, offset: usize) -> Place {
        let (line, column) = self.positions[offset.min(self.positions.len() - 1)];
        Place { source: self.source.clone(), line, column }
    }
}

#[derive(Default)]
struct Word {
    text: String,
    positions: Vec<(usize, usize)>,
    /// Whether a word has begun: a pair of quotes makes a word even if it is empty.
    started: bool,
}

impl Word {
    fn push(&mut self, c: char, position: (usize, usize)) {
        self.text.push(c);
        self.positions.resize(self.text.len(), position);
        self.started = true;
    }

    fn finish(mut self, source: Source, end: (usize, usize)) -> Token {
        self.positions.push(end);
        Token { text: self.text, source, positions: self.positions }
    }

    fn reopen(token: Token) -> Word {
        let mut positions = token.positions;
        positions.truncate(token.text.len());
        Word { text: token.text, positions, started: true }
    }
}

/// Splits the text of a batch file, whose name is `name`, into words.
///
/// The error is the position of an unclosed quote.
pub fn split(name: &str, text: &str) -> Result<Vec<Token>, Place> {
    let source = Source::File(name.into());
    let mut tokens: Vec<Token> = Vec::new();
    let mut word = Word::default();
    let (mut line, mut column) = (1, 1);
    let mut characters = text.chars().peekable();
    let mut glue = false;
    while let Some(c) = characters.next() {
        let here = (line, column);
        (line, column) = if c == '\n' { (line + 1, 1) } else { (line, column + 1) };
        match c {
            _ if c.is_whitespace() => {
                if word.started {
                    tokens.push(std::mem::take(&mut word).finish(source.clone(), here));
                }
                continue;
            }
            '#' if !word.started => {
                while characters.next_if(|&c| c != '\n').is_some() {
                    column += 1;
                }
                continue;
            }
            '\\' if rest_of_line_is_blank(characters.clone()) => {
                if word.started {
                    tokens.push(std::mem::take(&mut word).finish(source.clone(), here));
                }
                glue = !tokens.is_empty();
                continue;
            }
            _ => {}
        }
        if std::mem::take(&mut glue)
            && let Some(previous) = tokens.pop()
        {
            word = Word::reopen(previous);
        }
        if c != '"' && c != '\'' {
            word.push(c, here);
            continue;
        }
        word.started = true;
        loop {
            let inside = (line, column);
            let Some(next) = characters.next() else {
                return Err(Place { source, line: here.0, column: here.1 });
            };
            (line, column) = if next == '\n' { (line + 1, 1) } else { (line, column + 1) };
            if next == c {
                break;
            }
            word.push(next, inside);
        }
    }
    if word.started {
        tokens.push(word.finish(source, (line, column)));
    }
    Ok(tokens)
}

fn rest_of_line_is_blank(characters: impl Iterator<Item = char>) -> bool {
    characters.take_while(|&c| c != '\n').all(char::is_whitespace)
}

/// Writes a word so that a shell and [`split`] read it back unchanged.
pub fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+:./,@%^".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\"'\"'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        split("f", text).expect("balanced quotes").into_iter().map(|token| token.text).collect()
    }

    #[test]
    fn white_space_comments_and_quotes() {
        assert_eq!(words("a b\n\n\tc"), ["a", "b", "c"]);
        assert_eq!(words("a # b 'c\n#d\ne#f"), ["a", "e#f"]);
        assert_eq!(words("3x4_n\"a b # c\" d"), ["3x4_na b # c", "d"]);
        assert_eq!(words("'' x'y z'\"w\""), ["", "xy zw"]);
    }

    #[test]
    fn a_backslash_at_the_end_of_a_line_glues() {
        assert_eq!(words("--dt=f32,\\\n   bf16 c"), ["--dt=f32,bf16", "c"]);
        assert_eq!(words("--dt=f32, \\\n   bf16, \\  \r\n f16\nc"), ["--dt=f32,bf16,f16", "c"]);
        assert_eq!(words("a\\b"), ["a\\b"]);
    }

    #[test]
    fn every_byte_knows_its_place() {
        let tokens = split("f", "# é\n  é=\"x\"y \\\n z").expect("balanced quotes");
        assert_eq!(tokens[0].text, "é=xyz");
        let at = |offset| tokens[0].place(offset).to_string();
        assert_eq!(at(0), "f:2:3");
        assert_eq!(at(2), "f:2:4");
        assert_eq!(at(3), "f:2:6");
        assert_eq!(at(4), "f:2:8");
        assert_eq!(at(5), "f:3:2");
        assert_eq!(at(99), "f:3:3");
    }

    #[test]
    fn an_open_quote_is_pointed_at() {
        assert_eq!(split("f", "a\n b\"c\nd").expect_err("open quote").to_string(), "f:2:3");
    }

    #[test]
    fn quoting_survives_splitting() {
        for word in ["a", "", "a b", "it's", "\"x\" $y", "#z", "\\", "3x4_n\"q\""] {
            assert_eq!(words(&quote(word)), [word]);
        }
    }
}
