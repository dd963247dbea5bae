//! One layer normalization: its parameters, and what follows from them.

use crate::attributes::{Attributes, Context};
use crate::data_type::DataType;
use crate::direction::Direction;
use crate::fill::lnorm::LnormShape;
use crate::normalization::{Dynamic, Inplace};
use crate::oracle::lnorm::Flags;
use crate::steps::{ResidualTag, StepShape, Steps};
use crate::tensor::Tag;
use std::ops::RangeInclusive;

/// The numbers of dimensions that the primitive supports.
pub(super) const DIMENSIONS: RangeInclusive<usize> = 2..=5;

/// One problem.
#[derive(Clone, Debug, PartialEq)]
pub struct LnormProblem {
    /// Dimensions; the last one is normalized.
    pub dims: Vec<usize>,
    /// Its name; often empty.
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
    /// The options that every primitive has, such as scales and post-ops.
    pub attributes: Attributes,
    /// Threads for creating the primitive and for executing it.
    pub contexts: [Context; 2],
    /// Residual, gate and partial norm.
    pub steps: Steps,
    /// Which tensors share buffers.
    pub inplace: Inplace,
}

impl Default for LnormProblem {
    /// No dimensions, and the simplest choice for everything else.
    fn default() -> LnormProblem {
        LnormProblem {
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
            steps: Steps::default(),
            inplace: Inplace::Nothing,
        }
    }
}

impl LnormProblem {
    /// Elements of a row.
    pub fn cols(&self) -> usize {
        self.dims[self.dims.len() - 1]
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.dims[..self.dims.len() - 1].iter().product()
    }

    /// The parameters of the data.
    pub fn shape(&self) -> LnormShape {
        LnormShape {
            rows: self.rows(),
            cols: self.cols(),
            // In backward, src is the stored sum.
            src_dt: match self.steps.residual.filter(|_| !self.direction.is_forward()) {
                Some(residual) => residual.stored(),
                None => self.src_dt,
            },
            dst_dt: self.dst_dt,
            ss_dt: self.ss_dt,
            forward: self.direction.is_forward(),
            flags: self.flags,
            epsilon: self.epsilon,
            gain: self.gain(),
            steps: StepShape {
                residual: self.steps.residual,
                gate: self.steps.gate,
                partial: self.steps.partial.elements(self.cols()),
                group: self.group(),
                shared_row: self.steps.residual_tags.0 == ResidualTag::Row,
            },
        }
    }

    /// The elements that share a dynamic scale of dst; 0 without one.
    pub fn group(&self) -> usize {
        self.dynamic().map_or(0, |dynamic| dynamic.group())
    }

    /// The dynamic scales of dst, if there are any.
    pub(super) fn dynamic(&self) -> Option<Dynamic<'_>> {
        let forward = self.direction.is_forward();
        Dynamic::of(&self.attributes, &self.dims, self.dst_dt).filter(|_| forward)
    }

    /// The factor that scales apply to an integer result; 1 for other types.
    pub(super) fn gain(&self) -> f32 {
        match self.direction.is_forward() && self.dst_dt.is_integer() {
            true => self.attributes.gain(),
            false => 1.0,
        }
    }
}
