//! The values of attention's options.

use crate::data_type::DataType;
use crate::language::value::{BadValue, integer, list, one_of};
use norm_sys::*;

/// Types of queries, keys, values and dst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Types(pub [DataType; 4]);

/// The types of a problem; s8 and f8_e4m3 are for keys and values.
const TYPES: [DataType; 5] =
    [DataType::F32, DataType::Bf16, DataType::F16, DataType::S8, DataType::F8E4m3];

impl Types {
    /// Reads one type for all, or four.
    pub fn parse(text: &str) -> Result<Types, BadValue> {
        match list(text, ':', DataType::among(&TYPES))?[..] {
            [all] => Ok(Types([all; 4])),
            [q, k, v, dst] => Ok(Types([q, k, v, dst])),
            _ => Err(BadValue::new(format!("'{text}' is neither one type nor Q:K:V:DST"))),
        }
    }

    /// As written.
    pub fn text(self) -> String {
        let names = self.0.map(DataType::name);
        if names.iter().all(|name| *name == names[0]) {
            names[0].to_owned()
        } else {
            names.join(":")
        }
    }
}

/// Which keys are hidden, and the usual dimensions of a mask's tensor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MaskKind {
    /// None.
    #[default]
    None,
    /// Those of a tensor with all dimensions.
    Buffer,
    /// Those of a tensor of keys.
    Buffer1d,
    /// Those of a tensor of queries and keys.
    Buffer2d,
    /// Those after the query.
    TopLeft,
    /// The same, with the last query aligned with the last key.
    BottomRight,
}

impl MaskKind {
    /// Names for `--mask`.
    pub(super) const NAMES: [(&'static str, MaskKind); 6] = [
        ("none", MaskKind::None),
        ("buffer", MaskKind::Buffer),
        ("buffer_1d", MaskKind::Buffer1d),
        ("buffer_2d", MaskKind::Buffer2d),
        ("causal_top_left", MaskKind::TopLeft),
        ("causal_bottom_right", MaskKind::BottomRight),
    ];

    /// The name.
    pub fn name(self) -> &'static str {
        MaskKind::NAMES[self as usize].0
    }

    /// Whether keys after the query are hidden.
    pub fn is_causal(self) -> bool {
        matches!(self, MaskKind::TopLeft | MaskKind::BottomRight)
    }

    /// The letters of the dimensions in which its tensor is not broadcast; empty without a tensor.
    pub(super) fn letters(self) -> &'static str {
        match self {
            MaskKind::Buffer => "abcd",
            MaskKind::Buffer1d => "d",
            MaskKind::Buffer2d => "cd",
            MaskKind::None | MaskKind::TopLeft | MaskKind::BottomRight => "",
        }
    }

    pub(super) fn code(self) -> norm_attn_mask_type_t {
        match self {
            MaskKind::None => norm_attn_mask_undef,
            MaskKind::Buffer | MaskKind::Buffer1d | MaskKind::Buffer2d => norm_attn_mask_buffer,
            MaskKind::TopLeft => norm_attn_mask_top_left,
            MaskKind::BottomRight => norm_attn_mask_bottom_right,
        }
    }
}

/// The factor of the scores.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Scale {
    /// 1/sqrt(D).
    #[default]
    Library,
    /// The same.
    Multiplied,
    /// 1 over the rounded square root of D.
    Divided,
    /// This number.
    Number(f32),
}

impl Scale {
    /// Reads a name or a number.
    pub fn parse(text: &str) -> Result<Scale, BadValue> {
        const NAMES: [(&str, Scale); 3] =
            [("library", Scale::Library), ("mul", Scale::Multiplied), ("div", Scale::Divided)];
        match text.parse::<f32>() {
            Ok(number) if number.is_finite() => Ok(Scale::Number(number)),
            _ => one_of(text, &NAMES).map_err(|_| {
                BadValue::new(format!("'{text}' is none of library, mul, div, and no number"))
            }),
        }
    }

    /// As written.
    pub fn text(self) -> String {
        match self {
            Scale::Library => "library".to_owned(),
            Scale::Multiplied => "mul".to_owned(),
            Scale::Divided => "div".to_owned(),
            Scale::Number(number) => number.to_string(),
        }
    }

    /// The factor for heads of this length.
    pub fn value(self, head: usize) -> f32 {
        let root = (head.max(1) as f64).sqrt();
        match self {
            Scale::Library | Scale::Multiplied => (1.0 / root) as f32,
            Scale::Divided => 1.0 / root as f32,
            Scale::Number(number) => number,
        }
    }
}

/// Which keys share a scale, and which values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum KvScales {
    /// There are no scales.
    #[default]
    None,
    /// All of a head.
    Head,
    /// None; each has its own.
    Token,
}

impl KvScales {
    const NAMES: [(&'static str, KvScales); 3] =
        [("none", KvScales::None), ("head", KvScales::Head), ("token", KvScales::Token)];

    /// Reads a name.
    pub fn parse(text: &str) -> Result<KvScales, BadValue> {
        one_of(text, &Self::NAMES)
    }

    /// As written.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize].0
    }

    /// The dimensions of the scales of a tensor, given its dimension of keys.
    pub(super) fn dims(self, tensor: &[usize], keys: usize) -> Vec<usize> {
        let own = |dim: usize| match self {
            KvScales::None => false,
            KvScales::Head => dim == 1,
            KvScales::Token => [0, 1, keys].contains(&dim),
        };
        tensor.iter().enumerate().map(|(dim, &size)| if own(dim) { size } else { 1 }).collect()
    }

    /// The mask of the attribute.
    pub(super) fn mask(self, keys: usize) -> i32 {
        match self {
            KvScales::None => 0,
            KvScales::Head => 1 << 1,
            KvScales::Token => 1 | 1 << 1 | 1 << keys,
        }
    }
}

/// How many preceding keys a query sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Window {
    /// All.
    #[default]
    None,
    /// This many, including its own.
    WithSelf(usize),
    /// This many besides its own.
    BeforeSelf(usize),
}

impl Window {
    /// Reads `none`, `with_self:W` or `before_self:W`.
    pub fn parse(text: &str) -> Result<Window, BadValue> {
        let (kind, keys) = text.split_once(':').unwrap_or((text, ""));
        let start = kind.len() + 1;
        let keys = || {
            let keys = integer(keys, 0..=1 << 40).map_err(|error| error.shifted(start))?;
            Ok(keys as usize)
        };
        match kind {
            "none" if text == "none" => Ok(Window::None),
            "with_self" => keys().map(Window::WithSelf),
            "before_self" => keys().map(Window::BeforeSelf),
            _ => Err(BadValue::new(format!(
                "'{text}' is none of none, with_self:W and before_self:W"
            ))),
        }
    }

    /// As written.
    pub fn text(self) -> String {
        match self {
            Window::None => "none".to_owned(),
            Window::WithSelf(keys) => format!("with_self:{keys}"),
            Window::BeforeSelf(keys) => format!("before_self:{keys}"),
        }
    }

    pub(super) fn code(self) -> (norm_attn_window_t, norm_dim_t) {
        match self {
            Window::None => (norm_window_none, 0),
            Window::WithSelf(keys) => (norm_window_with_self, keys as norm_dim_t),
            Window::BeforeSelf(keys) => (norm_window_before_self, keys as norm_dim_t),
        }
    }
}

/// Flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(u32);

impl Flags {
    const LETTERS: [(char, u32); 7] = [
        ('S', norm_sdpa_sinks),
        ('A', norm_sdpa_alibi),
        ('K', norm_sdpa_key_lengths),
        ('Q', norm_sdpa_query_lengths),
        ('E', norm_sdpa_entropy),
        ('O', norm_sdpa_query_offsets),
        ('T', norm_sdpa_key_offsets),
    ];

    /// Reads letters.
    pub fn parse(text: &str) -> Result<Flags, BadValue> {
        let mut flags = 0;
        for (at, letter) in text.char_indices() {
            match Flags::LETTERS.iter().find(|(known, _)| *known == letter) {
                Some((_, bit)) => flags |= bit,
                None => {
                    let message = format!("'{letter}' is none of the flags S, A, K, Q, E, O, T");
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

    /// The same with or without a flag.
    #[must_use]
    pub fn with(self, bit: u32, set: bool) -> Flags {
        Flags(if set { self.0 | bit } else { self.0 & !bit })
    }

    /// Whether there are sinks.
    pub fn sinks(self) -> bool {
        self.0 & norm_sdpa_sinks != 0
    }
    /// Whether there are slopes.
    pub fn alibi(self) -> bool {
        self.0 & norm_sdpa_alibi != 0
    }
    /// Whether sequences have lengths of keys.
    pub fn key_lengths(self) -> bool {
        self.0 & norm_sdpa_key_lengths != 0
    }
    /// Whether sequences have lengths of queries.
    pub fn query_lengths(self) -> bool {
        self.0 & norm_sdpa_query_lengths != 0
    }
    /// Whether the queries of all sequences are packed.
    pub fn query_offsets(self) -> bool {
        self.0 & norm_sdpa_query_offsets != 0
    }
    /// Whether their keys are.
    pub fn key_offsets(self) -> bool {
        self.0 & norm_sdpa_key_offsets != 0
    }
    /// Whether forward computes the entropy.
    pub fn entropy(self) -> bool {
        self.0 & norm_sdpa_entropy != 0
    }
}
