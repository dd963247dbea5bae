//! One group normalization: its parameters, and what follows from them.

use crate::attributes::{Attributes, Context};
use crate::data_type::DataType;
use crate::direction::Direction;
use crate::fill::lnorm::LnormShape;
use crate::normalization::{Dynamic, Inplace};
use crate::oracle::gnorm::Sizes;
use crate::oracle::lnorm::Flags;
use crate::steps::{Partial, ResidualTag, StepShape, Steps};
use crate::tensor::Tag;

/// The epsilon if a descriptor does not give it, as in oneDNN.
pub(super) const EPSILON: f32 = 0.0625;

/// One problem.
#[derive(Clone, Debug, PartialEq)]
pub struct GnormProblem {
    /// Samples, channels and spatial dimensions.
    pub dims: Vec<usize>,
    /// Groups of channels.
    pub groups: usize,
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
    /// The kind of normalization.
    pub flags: Flags,
    /// Added to the variance inside the root.
    pub epsilon: f32,
    /// The options that every primitive has, such as scales and post-ops.
    pub attributes: Attributes,
    /// Threads for creating the primitive and for executing it.
    pub contexts: [Context; 2],
    /// Residual and gate.
    pub steps: Steps,
    /// Which tensors share buffers.
    pub inplace: Inplace,
}

impl Default for GnormProblem {
    /// No dimensions, and the simplest choice for everything else.
    fn default() -> GnormProblem {
        GnormProblem {
            dims: Vec::new(),
            groups: 1,
            name: String::new(),
            direction: Direction::default(),
            src_dt: DataType::F32,
            dst_dt: DataType::F32,
            src_tag: Tag::Any,
            dst_tag: Tag::Any,
            flags: Flags::default(),
            epsilon: EPSILON,
            attributes: Attributes::default(),
            contexts: [Context::default(); 2],
            steps: Steps::default(),
            inplace: Inplace::Nothing,
        }
    }
}

impl GnormProblem {
    /// The sizes that the formulas use.
    pub fn sizes(&self) -> Sizes {
        Sizes {
            samples: self.dims[0],
            channels: self.dims[1],
            groups: self.groups,
            positions: self.dims[2..].iter().product(),
        }
    }

    /// The parameters of the data. The groups are its rows.
    pub fn shape(&self) -> LnormShape {
        let sizes = self.sizes();
        LnormShape {
            rows: sizes.all_groups(),
            cols: sizes.elements(),
            // In backward, src is the stored sum.
            src_dt: match self.steps.residual.filter(|_| !self.direction.is_forward()) {
                Some(residual) => residual.stored(),
                None => self.src_dt,
            },
            dst_dt: self.dst_dt,
            ss_dt: DataType::F32,
            forward: self.direction.is_forward(),
            flags: self.flags,
            epsilon: self.epsilon,
            gain: self.gain(),
            steps: StepShape {
                residual: self.steps.residual,
                gate: self.steps.gate,
                partial: self.partial(),
                group: self.dynamic().map_or(0, |dynamic| dynamic.group()),
                shared_row: self.steps.residual_tags.0 == ResidualTag::Row,
            },
        }
    }

    /// The number of a group's elements in the mean square; 0 for all.
    pub(super) fn partial(&self) -> usize {
        let sizes = self.sizes();
        match self.steps.partial {
            share @ Partial::Share(_) => {
                share.elements(sizes.channels / sizes.groups) * sizes.positions
            }
            other => other.elements(sizes.elements()),
        }
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
