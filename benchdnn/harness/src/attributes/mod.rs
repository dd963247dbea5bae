//! Primitive attributes: the `--attr-*` options in oneDNN's grammar.
//!
//! `options` holds the options, `quantization` scales and zero points, `post_ops` the post-ops,
//! `arguments` the names of tensors and the broadcast policies. Values are not checked against a
//! primitive: the library refuses what it does not support.

mod arguments;
mod options;
mod post_ops;
mod quantization;

pub use arguments::{Policy, argument_name};
pub use options::{ATTRIBUTES, AttributeSettings, Context};
pub use post_ops::{Binary, Mask, PostOp};
pub use quantization::{Quantization, Value, number};

use crate::data_type::DataType;
use crate::language::options::{defaults, word};
use crate::tensor::{Layout, Tag};
use norm_sys::{
    NORM_ARG_ATTR_DROPOUT_MASK, NORM_ARG_ATTR_DROPOUT_OFFSET, NORM_ARG_ATTR_DROPOUT_PROBABILITY,
    NORM_ARG_ATTR_DROPOUT_SEED, NORM_ARG_ATTR_MULTIPLE_POST_OP_BASE, NORM_ARG_ATTR_SCALES,
    NORM_ARG_ATTR_ZERO_POINTS, NORM_ARG_DST, NORM_ARG_SRC, NORM_ARG_SRC_1, NORM_ARG_SRC_2,
};

/// A value with the text that it was read from, which lines repeat.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Written<T> {
    /// As written.
    pub text: String,
    /// The parsed value.
    pub value: T,
}

/// Who provides the scratchpad.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scratchpad {
    /// The library.
    #[default]
    Library,
    /// The caller, as an argument.
    User,
}

/// Which precision may replace f32 in the arithmetic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MathMode {
    /// None.
    #[default]
    Strict,
    /// bf16.
    Bf16,
    /// f16.
    F16,
    /// tf32.
    Tf32,
    /// Any.
    Any,
}

/// The type of accumulators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Accumulation {
    /// f32, or s32 for integers.
    #[default]
    Strict,
    /// As strict, but some intermediate results may have the output's type.
    Relaxed,
    /// Anything.
    Any,
    /// f32.
    F32,
    /// s32.
    S32,
    /// f16.
    F16,
}

/// How results are rounded to a tensor's type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rounding {
    /// To nearest even.
    #[default]
    Environment,
    /// Stochastically.
    Stochastic,
}

/// Rounding modes of tensors, by argument id.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoundingModes {
    /// Argument ids and modes.
    pub modes: Vec<(i32, Rounding)>,
    /// The seed of the stochastic one.
    pub seed: i64,
}

/// Dropout: zeros random elements.
#[derive(Clone, Debug, PartialEq)]
pub struct Dropout {
    /// The probability that an element is dropped.
    pub probability: f32,
    /// The seed of the generator.
    pub seed: i64,
    /// The layout of the mask; `undef` for none.
    pub tag: Tag,
    /// Added to the index at each call of the generator.
    pub offset: i64,
    /// Whether the parameters are passed as host scalars.
    pub host_scalars: bool,
}

/// The attributes of one problem.
#[derive(Clone, Debug, PartialEq)]
pub struct Attributes {
    /// Scales of tensors.
    pub scales: Written<Vec<Quantization>>,
    /// Zero points of tensors.
    pub zero_points: Written<Vec<Quantization>>,
    /// Operations on the result before it is stored.
    pub post_ops: Written<Vec<PostOp>>,
    /// Who provides the scratchpad.
    pub scratchpad: Written<Scratchpad>,
    /// The precision of the arithmetic, and whether it also applies to integers.
    pub math_mode: Written<(MathMode, bool)>,
    /// The type of accumulators.
    pub accumulation: Written<Accumulation>,
    /// Whether the same call must give the same bits.
    pub deterministic: Written<bool>,
    /// How results are rounded.
    pub rounding: Written<RoundingModes>,
    /// Dropout, if any.
    pub dropout: Written<Option<Dropout>>,
}

impl Default for Attributes {
    /// No attributes: the options at their defaults.
    fn default() -> Attributes {
        let settings: AttributeSettings = defaults(ATTRIBUTES);
        settings.combinations().swap_remove(0)
    }
}

impl Attributes {
    /// Whether there are no attributes.
    pub fn is_default(&self) -> bool {
        self.scales.value.is_empty()
            && self.zero_points.value.is_empty()
            && self.post_ops.value.is_empty()
            && self.scratchpad.value == Scratchpad::Library
            && self.math_mode.value == (MathMode::Strict, false)
            && self.accumulation.value == Accumulation::Strict
            && !self.deterministic.value
            && self.rounding.value.modes.is_empty()
            && self.dropout.value.is_none()
    }

    /// Whether there are scales, post-operations or dropout.
    pub(crate) fn change_results(&self) -> bool {
        let dropout = self.dropout.value.is_some();
        dropout || !(self.scales.value.is_empty() && self.post_ops.value.is_empty())
    }

    /// The options that set these attributes, those at their defaults only if `canonical`.
    pub fn words(&self, canonical: bool) -> Vec<String> {
        let said = |name, text: &str| word(ATTRIBUTES, name, text, canonical);
        [
            said("attr-scales", &self.scales.text),
            said("attr-zero-points", &self.zero_points.text),
            said("attr-post-ops", &self.post_ops.text),
            said("attr-scratchpad", &self.scratchpad.text),
            said("attr-fpmath", &self.math_mode.text),
            said("attr-acc-mode", &self.accumulation.text),
            said("attr-deterministic", &self.deterministic.text),
            said("attr-rounding-mode", &self.rounding.text),
            said("attr-dropout", &self.dropout.text),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// Whether the result depends on the previous contents of dst.
    pub fn reads_dst(&self) -> bool {
        self.post_ops.value.iter().any(|post_op| matches!(post_op, PostOp::Sum { .. }))
    }

    /// The first post-op that the primitive does not support; `has_sum` says whether it supports `sum`.
    pub fn foreign_post_op(&self, has_sum: bool) -> Option<&'static str> {
        self.post_ops.value.iter().find_map(|post_op| match post_op {
            PostOp::Sum { .. } if has_sum => None,
            PostOp::Sum { .. } => Some("post-op sum"),
            PostOp::Depthwise { .. } => Some("post-op dw"),
            PostOp::Prelu(_) => Some("post-op prelu"),
            PostOp::Eltwise { .. } | PostOp::Binary(_) => None,
        })
    }

    /// All scales and zero points.
    pub fn quantizations(&self) -> impl Iterator<Item = &Quantization> {
        self.scales.value.iter().chain(&self.zero_points.value)
    }

    /// The type of a scale or zero point that the library does not have.
    pub fn absent_type(&self) -> Option<&'static str> {
        self.quantizations().find_map(|quantization| quantization.absent)
    }

    /// The scale of an argument, if it has one.
    pub fn scale(&self, argument: i32) -> Option<&Quantization> {
        self.scales.value.iter().find(|scale| scale.argument == argument)
    }

    /// The factor that given scales of src and dst apply to a result.
    pub fn gain(&self) -> f32 {
        let scale = |argument| match self.scale(argument).map(|scale| scale.value) {
            Some(Value::Given(value)) if value > 0.0 => value,
            _ => 1.0,
        };
        scale(NORM_ARG_SRC) / scale(NORM_ARG_DST)
    }

    /// The zero point of an argument, if it has one.
    pub fn zero_point(&self, argument: i32) -> Option<&Quantization> {
        self.zero_points.value.iter().find(|zero_point| zero_point.argument == argument)
    }

    /// The tensors of the attributes of a problem with these dimensions. `per_oc` is the channel dimension.
    pub fn tensors(&self, dims: &[usize], per_oc: usize) -> Vec<AttributeTensor> {
        let mut tensors = Vec::new();
        for (base, values) in [
            (NORM_ARG_ATTR_SCALES, &self.scales.value),
            (NORM_ARG_ATTR_ZERO_POINTS, &self.zero_points.value),
        ] {
            for quantization in values {
                let mask = quantization.policy.mask(dims.len(), 1);
                let count = masked(dims, mask).iter().product();
                tensors.push(AttributeTensor {
                    id: base | quantization.argument,
                    dims: vec![count],
                    data_type: quantization.data_type,
                    source: Source::Quantization(quantization.clone()),
                });
            }
        }
        for (index, post_op) in self.post_ops.value.iter().enumerate() {
            let PostOp::Binary(binary) = post_op else { continue };
            let base = NORM_ARG_ATTR_MULTIPLE_POST_OP_BASE * (index as i32 + 1);
            tensors.push(AttributeTensor {
                id: base | NORM_ARG_SRC_1,
                dims: masked(dims, binary.mask.bits(dims.len(), per_oc)),
                data_type: binary.data_type,
                source: Source::Operand(binary.clone()),
            });
            if binary.algorithm.is_ternary() {
                tensors.push(AttributeTensor {
                    id: base | NORM_ARG_SRC_2,
                    dims: dims.to_vec(),
                    data_type: DataType::S8,
                    source: Source::Condition,
                });
            }
        }
        if let Some(dropout) = &self.dropout.value {
            dropout.tensors(dims, &mut tensors);
        }
        tensors
    }
}

/// A tensor of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub struct AttributeTensor {
    /// The argument id.
    pub id: i32,
    /// Its dimensions.
    pub dims: Vec<usize>,
    /// The type of its elements.
    pub data_type: DataType,
    /// What it contains.
    pub source: Source,
}

/// What a tensor of an attribute contains.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// Scales or zero points.
    Quantization(Quantization),
    /// The second operand of a binary post-op.
    Operand(Binary),
    /// Which of two values `select` chooses.
    Condition,
    /// The mask of dropout, an output, with its layout.
    Mask(Tag),
    /// A number of dropout.
    Number(f64),
}

/// The dimensions whose bit is set, with 1 for the others.
pub fn masked(dims: &[usize], mask: u32) -> Vec<usize> {
    dims.iter().enumerate().map(|(d, &dim)| if mask >> d & 1 == 1 { dim } else { 1 }).collect()
}

impl Dropout {
    /// Appends the tensors for an output with these dimensions.
    fn tensors(&self, dims: &[usize], tensors: &mut Vec<AttributeTensor>) {
        if self.tag != Tag::Undef {
            tensors.push(AttributeTensor {
                id: NORM_ARG_ATTR_DROPOUT_MASK,
                dims: dims.to_vec(),
                data_type: DataType::U8,
                source: Source::Mask(self.tag.clone()),
            });
        }
        let mut number = |id, data_type, value| {
            let (dims, source) = (vec![1], Source::Number(value));
            tensors.push(AttributeTensor { id, dims, data_type, source });
        };
        let probability = f64::from(self.probability);
        number(NORM_ARG_ATTR_DROPOUT_PROBABILITY, DataType::F32, probability);
        number(NORM_ARG_ATTR_DROPOUT_SEED, DataType::S64, self.seed as f64);
        if self.offset != 0 {
            number(NORM_ARG_ATTR_DROPOUT_OFFSET, DataType::S64, self.offset as f64);
        }
    }
}

impl AttributeTensor {
    /// Whether the primitive writes it.
    pub fn is_output(&self) -> bool {
        matches!(self.source, Source::Mask(_))
    }

    /// Its layout, by the given tag.
    pub fn layout(&self) -> Layout {
        let order = match &self.source {
            Source::Operand(binary) => binary.tag.order(self.dims.len()).ok().flatten(),
            Source::Mask(tag) => tag.order(self.dims.len()).ok().flatten(),
            Source::Quantization(_) | Source::Condition | Source::Number(_) => None,
        };
        match order {
            Some(order) => Layout::ordered(&self.dims, &order, 0, self.data_type),
            None => Layout::dense(&self.dims, self.data_type),
        }
    }

    /// The name in messages.
    pub fn name(&self) -> &'static str {
        let index = self.id / NORM_ARG_ATTR_MULTIPLE_POST_OP_BASE;
        if index > 0 {
            let (operands, conditions) = POST_OP_NAMES[index as usize - 1];
            return if self.source == Source::Condition { conditions } else { operands };
        }
        match self.id {
            NORM_ARG_ATTR_DROPOUT_MASK => return "dropout_mask",
            NORM_ARG_ATTR_DROPOUT_PROBABILITY => return "dropout_probability",
            NORM_ARG_ATTR_DROPOUT_SEED => return "dropout_seed",
            NORM_ARG_ATTR_DROPOUT_OFFSET => return "dropout_offset",
            _ => {}
        }
        let is_scale = self.id & NORM_ARG_ATTR_SCALES != 0;
        match (is_scale, self.id & (NORM_ARG_ATTR_SCALES - 1)) {
            (true, NORM_ARG_SRC) => "src_scale",
            (true, NORM_ARG_DST) => "dst_scale",
            (false, NORM_ARG_SRC) => "src_zero_point",
            (false, NORM_ARG_DST) => "dst_zero_point",
            (true, _) => "scale_of_another",
            (false, _) => "zero_point_of_another",
        }
    }
}

macro_rules! post_op_names {
    ($($index:literal)*) => {
        /// Names of the tensors of each post-op; there are no more than 32.
        const POST_OP_NAMES: &[(&str, &str)] = &[
            $((concat!("post_op_", $index), concat!("post_op_", $index, "_condition")),)*
        ];
    };
}
post_op_names! {
    0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
}
