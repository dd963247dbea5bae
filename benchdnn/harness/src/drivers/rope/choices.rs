//! The values of the options: the source of cosines and sines, and the flags.

use crate::language::value::BadValue;
use norm_sys::*;

/// The source of cosines and sines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Angles {
    /// Positions and frequencies.
    #[default]
    Frequencies,
    /// Rows of tables.
    Tables,
}

impl Angles {
    /// Names for `--angles`.
    pub const NAMES: [(&'static str, Angles); 2] =
        [("FREQUENCIES", Angles::Frequencies), ("TABLES", Angles::Tables)];

    pub(super) fn name(self) -> &'static str {
        Angles::NAMES[self as usize].0
    }
}

/// The flags of a problem.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(u32);

impl Flags {
    const LETTERS: [(char, u32); 6] = [
        ('M', norm_rms_norm),
        ('C', norm_use_scale),
        ('P', norm_scale_plus_one),
        ('R', norm_rope_norm_rounded),
        ('W', norm_write_slots),
        ('I', norm_rope_interleaved_sections),
    ];

    /// Reads letters.
    pub fn parse(text: &str) -> Result<Flags, BadValue> {
        let mut flags = 0;
        for (at, letter) in text.char_indices() {
            match Flags::LETTERS.iter().find(|(known, _)| *known == letter) {
                Some((_, bit)) => flags |= bit,
                None => {
                    let message = format!("'{letter}' is none of the flags M, C, P, R, W, I");
                    return Err(BadValue::at(at, message));
                }
            }
        }
        Ok(Flags(flags))
    }

    /// The letters.
    pub fn text(self) -> String {
        let set = Flags::LETTERS.iter().filter(|(_, bit)| self.0 & bit != 0);
        set.map(|(letter, _)| letter).collect()
    }

    /// The C interface's bits.
    pub fn bits(self) -> u32 {
        self.0
    }

    /// The flags except the rounding of normalized values.
    pub(super) fn without_rounding(self) -> Flags {
        Flags(self.0 & !norm_rope_norm_rounded)
    }

    pub(super) fn norm(self) -> bool {
        self.0 & norm_rms_norm != 0
    }
    pub(super) fn scale(self) -> bool {
        self.0 & norm_use_scale != 0
    }
    pub(super) fn plus_one(self) -> bool {
        self.0 & norm_scale_plus_one != 0
    }
    pub(super) fn rounded(self) -> bool {
        self.0 & norm_rope_norm_rounded != 0
    }
    pub(super) fn slots(self) -> bool {
        self.0 & norm_write_slots != 0
    }
    pub(super) fn interleaved_sections(self) -> bool {
        self.0 & norm_rope_interleaved_sections != 0
    }
}
