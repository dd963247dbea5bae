//! `--attr-post-ops`: operations on the result before it is stored, joined by `+`.

use super::arguments::Policy;
use super::quantization::number;
use crate::data_type::DataType;
use crate::language::value::{BadValue, integer, list, one_of, starts};
use crate::oracle::post_ops::{BinaryAlgorithm, EltwiseAlgorithm};
use crate::tensor::Tag;

/// One operation.
#[derive(Clone, Debug, PartialEq)]
pub enum PostOp {
    /// Adds the previous contents of dst.
    Sum {
        /// Its factor.
        scale: f32,
        /// Subtracted from them first.
        zero_point: i32,
        /// The type in which they are read, if it is not dst's.
        data_type: Option<DataType>,
    },
    /// Applies a function to the value.
    Eltwise {
        /// Which one.
        algorithm: EltwiseAlgorithm,
        /// Its first parameter.
        alpha: f32,
        /// Its second parameter.
        beta: f32,
    },
    /// Combines the value with another tensor.
    Binary(Binary),
    /// A depthwise convolution.
    Depthwise {
        /// Size of the kernel.
        kernel: u32,
        /// Its stride.
        stride: u32,
        /// Padding on the left.
        padding: u32,
        /// The type of its result.
        data_type: Option<DataType>,
    },
    /// Multiplies negative values by a weight.
    Prelu(Policy),
}

/// A function of the value and another tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct Binary {
    /// Which one.
    pub algorithm: BinaryAlgorithm,
    /// The type of the other tensor.
    pub data_type: DataType,
    /// Its dimensions.
    pub mask: Mask,
    /// Its layout.
    pub tag: Tag,
}

/// The dimensions along which a tensor is not broadcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mask {
    /// By policy.
    Policy(Policy),
    /// Bits of the dimensions.
    Bits(u32),
}

impl Mask {
    /// The bits; `per_oc` is the channel dimension.
    pub fn bits(self, ndims: usize, per_oc: usize) -> u32 {
        match self {
            Mask::Policy(policy) => policy.mask(ndims, per_oc),
            Mask::Bits(bits) => bits,
        }
    }
}

/// There are no argument ids for more post-ops.
const MOST: usize = 32;

pub(super) fn parse(text: &str) -> Result<Vec<PostOp>, BadValue> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    match starts(text, '+').nth(MOST) {
        None => list(text, '+', one),
        Some(at) => Err(BadValue::at(at, format!("at most {MOST} post-ops are allowed"))),
    }
}

/// The parts of an operation's text, each with its position.
struct Pieces<'t> {
    text: &'t str,
    pieces: Vec<(&'t str, usize)>,
    next: usize,
}

impl<'t> Pieces<'t> {
    fn new(text: &'t str, separator: char) -> Pieces<'t> {
        let pieces = text.split(separator).zip(starts(text, separator)).collect();
        Pieces { text, pieces, next: 0 }
    }

    /// The next part, read by `read`; `None` if there is none.
    fn next<T>(
        &mut self,
        read: impl FnOnce(&'t str) -> Result<T, BadValue>,
    ) -> Result<Option<T>, BadValue> {
        let Some(&(piece, at)) = self.pieces.get(self.next) else { return Ok(None) };
        self.next += 1;
        read(piece).map(Some).map_err(|error| error.shifted(at))
    }

    /// The same for a required part.
    fn needed<T>(
        &mut self,
        what: &str,
        read: impl FnOnce(&'t str) -> Result<T, BadValue>,
    ) -> Result<T, BadValue> {
        let end = self.text.len();
        self.next(read)?.ok_or_else(|| BadValue::at(end, format!("{what} is missing")))
    }

    fn end(&self) -> Result<(), BadValue> {
        match self.pieces.get(self.next) {
            None => Ok(()),
            Some((piece, at)) => Err(BadValue::at(*at, format!("'{piece}' is one value too many"))),
        }
    }
}

fn one(text: &str) -> Result<PostOp, BadValue> {
    let mut pieces = Pieces::new(text, ':');
    let name = pieces.needed("the operation", Ok)?;
    let known = name.to_ascii_lowercase();
    let result = match known.as_str() {
        "sum" => PostOp::Sum {
            scale: pieces.next(number)?.unwrap_or(1.0),
            zero_point: pieces.next(whole)?.unwrap_or(0),
            data_type: pieces.next(DataType::parse)?,
        },
        "dw" => {
            let (kernel, stride, padding) =
                pieces.needed("the kernel's size, as in dw:k3s1p1", depthwise)?;
            PostOp::Depthwise { kernel, stride, padding, data_type: pieces.next(DataType::parse)? }
        }
        "prelu" => PostOp::Prelu(pieces.next(Policy::parse)?.unwrap_or_default()),
        known => {
            if let Some(algorithm) = BinaryAlgorithm::named(known) {
                if algorithm.is_ternary() {
                    return select(text, &mut pieces, algorithm);
                }
                PostOp::Binary(binary(&mut pieces, algorithm)?)
            } else if let Some(algorithm) = EltwiseAlgorithm::named(known) {
                eltwise(&mut pieces, algorithm)?
            } else {
                return Err(unknown(name));
            }
        }
    };
    pieces.end().map(|()| result)
}

/// The names that begin alike, or all.
fn unknown(name: &str) -> BadValue {
    let names =
        [&["sum", "dw", "prelu"][..], &EltwiseAlgorithm::names(), &BinaryAlgorithm::names()];
    let names = names.concat();
    let begins = |known: &&str| !name.is_empty() && known.starts_with(name);
    let alike: Vec<&str> = names.iter().copied().filter(begins).collect();
    BadValue::new(match alike.is_empty() {
        true => format!("'{name}' is not a post-op; they are {}", names.join(", ")),
        false => format!("'{name}' is not a post-op; write {}", alike.join(" or ")),
    })
}

fn eltwise(pieces: &mut Pieces<'_>, algorithm: EltwiseAlgorithm) -> Result<PostOp, BadValue> {
    let alpha = pieces.next(number)?.unwrap_or(0.0);
    let beta = pieces.next(number)?.unwrap_or(0.0);
    // The scale of oneDNN 2. Some of oneDNN's batch files still have it, and its benchdnn ignores everything after
    // beta.
    pieces.next(number)?;
    Ok(PostOp::Eltwise { algorithm, alpha, beta })
}

fn binary(pieces: &mut Pieces<'_>, algorithm: BinaryAlgorithm) -> Result<Binary, BadValue> {
    Ok(Binary {
        algorithm,
        data_type: pieces.needed("the type of the other tensor", DataType::parse)?,
        mask: pieces.next(mask)?.unwrap_or(Mask::Policy(Policy::Common)),
        tag: pieces.next(Tag::parse)?.unwrap_or(Tag::Any),
    })
}

/// `select:TYPE[.MASK[.TAG]][:MASK]`; the second mask can only be the default.
fn select(
    text: &str,
    pieces: &mut Pieces<'_>,
    algorithm: BinaryAlgorithm,
) -> Result<PostOp, BadValue> {
    let operand = pieces.needed("the type of the other tensor", |operand| {
        let mut parts = Pieces::new(operand, '.');
        let binary = binary(&mut parts, algorithm)?;
        parts.end().map(|()| binary)
    })?;
    let one = |text: &str| match mask(text.split('.').next().unwrap_or(text))? {
        Mask::Bits(0) | Mask::Policy(Policy::Common) => Ok(()),
        _ => Err(BadValue::new(
            "the condition of select has all dimensions, so its mask must be common",
        )),
    };
    pieces.next(one)?;
    debug_assert!(!text.is_empty());
    pieces.end().map(|()| PostOp::Binary(operand))
}

fn mask(text: &str) -> Result<Mask, BadValue> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return integer(text, 0..=(1 << 12) - 1).map(|bits| Mask::Bits(bits as u32));
    }
    Policy::parse(text).map(Mask::Policy).map_err(|error| {
        BadValue::new(format!("{}, nor a number whose bits stand for dimensions", error.message))
    })
}

fn whole(text: &str) -> Result<i32, BadValue> {
    text.parse().map_err(|_| BadValue::new(format!("'{text}' is not an integer")))
}

fn depthwise(text: &str) -> Result<(u32, u32, u32), BadValue> {
    let bad = || BadValue::new(format!("'{text}' is not a kernel such as k3s1p1"));
    let rest = text.strip_prefix('k').ok_or_else(bad)?;
    let (kernel, rest) = rest.split_once('s').ok_or_else(bad)?;
    let (stride, padding) = rest.split_once('p').ok_or_else(bad)?;
    let number = |text: &str, least| integer(text, least..=1 << 16).map_err(|_| bad());
    Ok((number(kernel, 1)? as u32, number(stride, 1)? as u32, number(padding, 0)? as u32))
}

pub(super) fn choose<T: Copy>(text: &str, choices: &[(&str, T)]) -> Result<T, BadValue> {
    one_of(text, choices)
}
