//! One layer normalization problem: what it is, and the line that makes it again.

use super::executor::{Request, TensorRequest, Wanted};
use super::settings::OPTIONS;
use crate::attributes::{ATTRIBUTES, AttributeTensor, Attributes, Context, Value};
use crate::fill::{DataType, LnormShape};
use crate::language::descriptor;
use crate::language::options::word as shared_word;
use crate::oracle::lnorm::Flags;
use crate::tensor::Tag;
use norm_sys::{NORM_ARG_DST, NORM_ARG_SRC};
use std::ops::RangeInclusive;

/// What is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Forward for training: statistics are outputs.
    #[default]
    ForwardTraining,
    /// Forward for inference.
    ForwardInference,
    /// The gradient of src.
    BackwardData,
    /// The gradients of src, scale and shift.
    Backward,
}

impl Direction {
    /// Names and directions, as `--dir` takes them.
    pub const NAMES: [(&'static str, Direction); 4] = [
        ("FWD_D", Direction::ForwardTraining),
        ("FWD_I", Direction::ForwardInference),
        ("BWD_D", Direction::BackwardData),
        ("BWD_DW", Direction::Backward),
    ];

    /// Whether it is one of the forward ones.
    pub fn is_forward(self) -> bool {
        matches!(self, Direction::ForwardTraining | Direction::ForwardInference)
    }

    fn name(self) -> &'static str {
        Direction::NAMES[self as usize].0
    }
}

/// The fewest and the most dimensions of the primitive.
pub(super) const DIMENSIONS: RangeInclusive<usize> = 2..=5;

/// One problem.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// Dimensions; the last one is normalized.
    pub dims: Vec<usize>,
    /// The name that was given to it; often empty.
    pub name: String,
    /// What is computed.
    pub direction: Direction,
    /// Type of src and diff_src.
    pub src_dt: DataType,
    /// Type of dst and diff_dst.
    pub dst_dt: DataType,
    /// Layout of src and diff_src.
    pub src_tag: Tag,
    /// Layout of dst and diff_dst.
    pub dst_tag: Tag,
    /// Layout of mean and variance.
    pub stat_tag: Tag,
    /// Type of scale, shift and their gradients.
    pub ss_dt: DataType,
    /// The kind of normalization.
    pub flags: Flags,
    /// Added to the variance inside the root.
    pub epsilon: f32,
    /// Factors, post-ops and the like.
    pub attributes: Attributes,
    /// Threads for creating the primitive and for executing it.
    pub contexts: [Context; 2],
    /// Whether dst takes the place of src, or diff_src of diff_dst.
    pub inplace: bool,
}

impl Default for Problem {
    /// No dimensions; everything else is plain.
    fn default() -> Problem {
        Problem {
            dims: Vec::new(),
            name: String::new(),
            direction: Direction::default(),
            src_dt: DataType::F32,
            dst_dt: DataType::F32,
            src_tag: Tag::Any,
            dst_tag: Tag::Any,
            stat_tag: Tag::Any,
            ss_dt: DataType::F32,
            flags: Flags::default(),
            epsilon: 0.0,
            attributes: Attributes::default(),
            contexts: [Context::default(); 2],
            inplace: false,
        }
    }
}

impl Problem {
    /// Elements of a row.
    pub fn cols(&self) -> usize {
        self.dims[self.dims.len() - 1]
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.dims[..self.dims.len() - 1].iter().product()
    }

    /// What the data depends on.
    pub fn shape(&self) -> LnormShape {
        LnormShape {
            rows: self.rows(),
            cols: self.cols(),
            src_dt: self.src_dt,
            dst_dt: self.dst_dt,
            ss_dt: self.ss_dt,
            forward: self.direction.is_forward(),
            flags: self.flags,
            epsilon: self.epsilon,
            gain: self.gain(),
        }
    }

    /// What the scales multiply a result by that becomes a whole number; 1 if it does not.
    fn gain(&self) -> f32 {
        let scale = |argument| match self.attributes.scale(argument).map(|scale| scale.value) {
            Some(Value::Given(value)) if value > 0.0 => value,
            _ => 1.0,
        };
        match self.direction.is_forward() && self.dst_dt.is_integer() {
            true => scale(NORM_ARG_SRC) / scale(NORM_ARG_DST),
            false => 1.0,
        }
    }

    /// What the library is asked for.
    pub fn request(&self) -> Request {
        let tensor = |dims: &[usize], data_type, tag: &Tag| {
            let wanted = match tag {
                Tag::Undef => Wanted::Null,
                tag => match tag.order(dims.len()).expect("checked with the descriptor") {
                    None => Wanted::Any,
                    Some(order) => Wanted::Ordered(order),
                },
            };
            TensorRequest { data_type, wanted }
        };
        let dims = &self.dims;
        Request {
            direction: self.direction,
            dims: dims.clone(),
            src: tensor(dims, self.src_dt, &self.src_tag),
            dst: tensor(dims, self.dst_dt, &self.dst_tag),
            stat: tensor(&dims[..dims.len() - 1], DataType::F32, &self.stat_tag),
            ss_dt: self.ss_dt,
            epsilon: self.epsilon,
            flags: self.flags,
            attributes: self.attributes.clone(),
        }
    }

    /// The tensors that come with the attributes.
    pub fn attribute_tensors(&self) -> Vec<AttributeTensor> {
        // The channels of a layer normalization are its columns.
        self.attributes.tensors(&self.dims, self.dims.len() - 1)
    }

    /// The options that are not at their defaults, or all if `canonical`, and the descriptor.
    pub fn line(&self, canonical: bool) -> String {
        let word = |name, text: String| shared_word(OPTIONS, name, &text, canonical);
        let mut words: Vec<String> = [
            word("dir", self.direction.name().to_owned()),
            word("dt", self.types_text()),
            word("tag", self.tags_text()),
            word("stat_tag", self.stat_tag.to_string()),
            word("ss_dt", self.ss_dt.name().to_owned()),
            word("flags", self.flags_text()),
            word("eps", self.epsilon_text()),
        ]
        .into_iter()
        .flatten()
        .collect();
        words.extend(self.attributes.words(canonical));
        for (name, context) in ["ctx-init", "ctx-exe"].into_iter().zip(self.contexts) {
            words.extend(shared_word(ATTRIBUTES, name, &context.text(), canonical));
        }
        words.extend(word("inplace", self.inplace.to_string()));
        words.push(self.descriptor());
        words.join(" ")
    }

    /// What the performance template calls `name`.
    pub fn entry(&self, name: &str) -> Option<String> {
        Some(match name {
            "desc" => self.descriptor(),
            "dir" => self.direction.name().to_owned(),
            "dt" => self.types_text(),
            "tag" => self.tags_text(),
            "stat_tag" => self.stat_tag.to_string(),
            "ss_dt" => self.ss_dt.name().to_owned(),
            "flags" => self.flags_text(),
            "attr" => self.attributes.words(false).join(" "),
            _ => return None,
        })
    }

    fn types_text(&self) -> String {
        both(self.src_dt.name().to_owned(), self.dst_dt.name(), self.src_dt.name())
    }

    fn tags_text(&self) -> String {
        both(self.src_tag.to_string(), &self.dst_tag.to_string(), &Tag::Any.to_string())
    }

    fn flags_text(&self) -> String {
        let Flags { global_stats, scale, shift, rms_norm } = self.flags;
        [(global_stats, 'G'), (scale, 'C'), (shift, 'H'), (rms_norm, 'M')]
            .into_iter()
            .filter_map(|(set, letter)| set.then_some(letter))
            .collect()
    }

    fn epsilon_text(&self) -> String {
        let epsilon = self.epsilon;
        if epsilon != 0.0 && !(1e-3..1e6).contains(&epsilon) {
            format!("{epsilon:e}")
        } else {
            epsilon.to_string()
        }
    }

    fn descriptor(&self) -> String {
        descriptor::text(&self.dims, &self.name)
    }
}

/// One value, or two if the second is not the one that goes without saying.
fn both(first: String, second: &str, implied: &str) -> String {
    if second == implied { first } else { format!("{first}:{second}") }
}
