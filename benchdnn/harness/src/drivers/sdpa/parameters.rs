//! One attention: its parameters.

use super::choices::{Flags, KvScales, MaskKind, Scale, Types, Window};
use crate::attributes::{Attributes, Context};
use crate::data_type::DataType;
use crate::direction::Direction;
use crate::tensor::Tag;

/// One problem.
#[derive(Clone, Debug, PartialEq)]
pub struct SdpaProblem {
    /// Dimensions of queries, keys and values, per sequence.
    pub dims: [Vec<usize>; 3],
    /// Its name; often empty.
    pub name: String,
    /// What is computed.
    pub direction: Direction,
    /// Types of queries, keys, values and dst.
    pub types: Types,
    /// Type of gradients; by default that of queries.
    pub diff_dt: Option<DataType>,
    /// Layouts of queries, keys, values and dst, and of their gradients.
    pub tags: [Tag; 4],
    /// Which keys are hidden.
    pub mask: MaskKind,
    /// The dimensions along which the mask's tensor is not broadcast; empty for the usual ones.
    pub mask_dims: String,
    /// Type of the mask's tensor.
    pub mask_dt: DataType,
    /// Factor of the scores.
    pub scale: Scale,
    /// How many preceding keys a query sees.
    pub window: Window,
    /// Whether backward computes the gradient of the mask.
    pub diff_mask: bool,
    /// The scales of keys and of values.
    pub kv_scales: KvScales,
    /// Keys that are visible outside the window.
    pub first_keys: usize,
    /// The limit of scores; 0 for none.
    pub soft_cap: f32,
    /// Sinks, ALiBi, lengths, entropy.
    pub flags: Flags,
    /// Keys of a page; 0 without pages.
    pub page_size: usize,
    /// The number of pages, if the dimensions do not imply it.
    pub own_pool: usize,
    /// Only the scratchpad mode.
    pub attributes: Attributes,
    /// Threads for creating the primitive and for executing it.
    pub contexts: [Context; 2],
    /// Whether dst shares the buffer of queries.
    pub inplace: bool,
}

impl Default for SdpaProblem {
    /// No dimensions, and the simplest choice for everything else.
    fn default() -> SdpaProblem {
        SdpaProblem {
            dims: std::array::from_fn(|_| Vec::new()),
            name: String::new(),
            direction: Direction::ForwardInference,
            types: Types([DataType::F32; 4]),
            diff_dt: None,
            tags: std::array::from_fn(|_| Tag::parse("abx").expect("a tag")),
            mask: MaskKind::default(),
            mask_dims: String::new(),
            mask_dt: DataType::F32,
            scale: Scale::default(),
            window: Window::default(),
            first_keys: 0,
            kv_scales: KvScales::default(),
            diff_mask: false,
            soft_cap: 0.0,
            flags: Flags::default(),
            page_size: 0,
            own_pool: 0,
            attributes: Attributes::default(),
            contexts: [Context::default(); 2],
            inplace: false,
        }
    }
}

impl SdpaProblem {
    /// A small problem.
    pub fn sample() -> SdpaProblem {
        let dims = [vec![1, 1, 4, 8], vec![1, 1, 8, 4], vec![1, 1, 4, 8]];
        SdpaProblem { dims, ..SdpaProblem::default() }
    }
}
