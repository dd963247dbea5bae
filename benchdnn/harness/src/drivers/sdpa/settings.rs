//! The options of the driver, and the combinations of their lists.

use super::choices::{Flags, KvScales, MaskKind, Scale, Types, Window};
use super::parameters::SdpaProblem;
use super::shape::LETTERS;
use crate::attributes::AttributeSettings;
use crate::data_type::DataType;
use crate::direction::Direction;
use crate::driver::check_tags;
use crate::language::descriptor::Descriptor;
use crate::language::options::{Info, Opt, multiply};
use crate::language::value::{BadValue, boolean, integer, list, one_of};
use crate::tensor::Tag;

/// The values of the driver's options.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    directions: Vec<Direction>,
    types: Vec<Types>,
    diff_dts: Vec<Option<DataType>>,
    /// Layouts of queries, keys, values and dst.
    tags: [Vec<Tag>; 4],
    mask_dts: Vec<DataType>,
    masks: Vec<MaskKind>,
    mask_dims: Vec<String>,
    scales: Vec<Scale>,
    windows: Vec<Window>,
    first_keys: Vec<usize>,
    kv_scales: Vec<KvScales>,
    diff_masks: Vec<bool>,
    soft_caps: Vec<f32>,
    flags: Vec<Flags>,
    page_sizes: Vec<usize>,
    inplace: Vec<bool>,
}

/// The dimensions of queries, keys and values, and the name.
fn dims(descriptor: &str) -> Result<([Vec<usize>; 3], String), BadValue> {
    let end = descriptor.find('n').unwrap_or(descriptor.len());
    let name = &descriptor[end..];
    let sizes = descriptor[..end].strip_suffix('_').unwrap_or(&descriptor[..end]);
    let one = |text: &str| Descriptor::parse(text, &(2..=6)).map(|one| one.dims);
    let each = if sizes.contains(':') { list(sizes, ':', one)? } else { Vec::new() };
    let Ok(dims) = <[Vec<usize>; 3]>::try_from(each) else {
        let message = format!("'{descriptor}' is not Q:K:V, such as 1x2x8x16:1x2x16x8:1x2x8x16");
        return Err(BadValue::new(message));
    };
    // Checked like that of any descriptor.
    let name = Descriptor::parse(&format!("1x1{name}"), &(2..=2))?.name;
    Ok((dims, name))
}

impl Settings {
    /// All combinations of the options for a descriptor.
    pub(super) fn problems(
        &self,
        attributes: &AttributeSettings,
        descriptor: &str,
    ) -> Result<Vec<SdpaProblem>, BadValue> {
        let (dims, name) = dims(descriptor)?;
        for (tags, option) in self.tags.iter().zip(["qtag", "ktag", "vtag", "dtag"]) {
            check_tags(option, tags, 4)?;
        }
        // The first option varies slowest, as in oneDNN.
        let mut all = vec![SdpaProblem { dims, name, ..SdpaProblem::default() }];
        multiply(&mut all, &self.directions, |problem, &value| problem.direction = value);
        multiply(&mut all, &self.types, |problem, &value| problem.types = value);
        multiply(&mut all, &self.diff_dts, |problem, &value| problem.diff_dt = value);
        for (at, tags) in self.tags.iter().enumerate() {
            multiply(&mut all, tags, |problem, tag| problem.tags[at] = tag.clone());
        }
        multiply(&mut all, &self.mask_dts, |problem, &value| problem.mask_dt = value);
        multiply(&mut all, &self.masks, |problem, &value| problem.mask = value);
        multiply(&mut all, &self.mask_dims, |problem, value| problem.mask_dims.clone_from(value));
        multiply(&mut all, &self.scales, |problem, &value| problem.scale = value);
        multiply(&mut all, &self.diff_masks, |problem, &value| problem.diff_mask = value);
        multiply(&mut all, &self.kv_scales, |problem, &value| problem.kv_scales = value);
        multiply(&mut all, &self.windows, |problem, &value| problem.window = value);
        multiply(&mut all, &self.first_keys, |problem, &value| problem.first_keys = value);
        multiply(&mut all, &self.soft_caps, |problem, &value| problem.soft_cap = value);
        multiply(&mut all, &self.flags, |problem, &value| problem.flags = value);
        multiply(&mut all, &self.page_sizes, |problem, &value| problem.page_size = value);
        multiply(&mut all, &attributes.combinations(), |problem, value| {
            problem.attributes = value.clone();
        });
        multiply(&mut all, &attributes.contexts(), |problem, &contexts| {
            problem.contexts = contexts;
        });
        multiply(&mut all, &self.inplace, |problem, &value| problem.inplace = value);
        Ok(all)
    }
}

const fn row(name: &'static str, default: &'static str, help: &'static str) -> Info {
    Info::list("Problems of sdpa (lists multiply out)", name, default, help)
}

fn soft_cap(item: &str) -> Result<f32, BadValue> {
    match item.parse() {
        Ok(number) if number >= 0.0 && f32::is_finite(number) => Ok(number),
        _ => Err(BadValue::new(format!("'{item}' is not a number of 0 or more"))),
    }
}

fn letters(item: &str) -> Result<String, BadValue> {
    match item.chars().find(|letter| !LETTERS.contains(*letter)) {
        Some(letter) => Err(BadValue::new(format!("'{letter}' is not a dimension, a to d"))),
        None => Ok(item.to_owned()),
    }
}

fn diff_dt(item: &str) -> Result<Option<DataType>, BadValue> {
    if item.is_empty() {
        Ok(None)
    } else {
        DataType::among(&DataType::ROUNDED_FLOATS)(item).map(Some)
    }
}

fn tags(state: &mut Settings, at: usize, text: &str) -> Result<(), BadValue> {
    state.tags[at] = list(text, ',', Tag::parse)?;
    Ok(())
}

/// The types of the mask tensor.
const MASKS: [DataType; 4] = [DataType::F32, DataType::Bf16, DataType::F16, DataType::U8];

/// The driver's options.
pub(super) const OPTIONS: &[Opt<Settings>] = &[
    Opt {
        info: row(
            "dir",
            "FWD_I",
            "FWD_I: forward; FWD_D: also writes what backward needs; BWD_D: gradients of Q, K and \
             V",
        ),
        set: |state, text| {
            list(text, ',', Direction::parse_without_parameters).map(|list| state.directions = list)
        },
    },
    Opt {
        info: row(
            "dt",
            "f32",
            "Types of Q:K:V:DST, or one for all: f32, bf16, f16; K and V also s8 and f8_e4m3",
        ),
        set: |state, text| list(text, ',', Types::parse).map(|list| state.types = list),
    },
    Opt {
        info: row("diff-dt", "", "Types of the gradients; empty: the type of Q"),
        set: |state, text| list(text, ',', diff_dt).map(|list| state.diff_dts = list),
    },
    Opt {
        info: row("qtag", "abx", "Layouts of Q and its gradient: abx, letters (acbd)"),
        set: |state, text| tags(state, 0, text),
    },
    Opt {
        info: row(
            "ktag",
            "abx",
            "Layouts of K and its gradient; abdc: the elements of a key are \
             contiguous",
        ),
        set: |state, text| tags(state, 1, text),
    },
    Opt {
        info: row("vtag", "abx", "Layouts of V and its gradient"),
        set: |state, text| tags(state, 2, text),
    },
    Opt {
        info: row("dtag", "abx", "Layouts of dst and its gradient; any: the library chooses"),
        set: |state, text| tags(state, 3, text),
    },
    Opt {
        info: row(
            "mdt",
            "f32",
            "Types of the mask tensor: f32, bf16 and f16 are added; a 0 in u8 hides a key",
        ),
        set: |state, text| {
            list(text, ',', DataType::among(&MASKS)).map(|list| state.mask_dts = list)
        },
    },
    Opt {
        info: row(
            "mask",
            "none",
            "none; a tensor: buffer, buffer_1d (keys only), buffer_2d (queries and keys); \
             causal_top_left, causal_bottom_right",
        ),
        set: |state, text| {
            let mask = |item: &str| one_of(item, &MaskKind::NAMES);
            list(text, ',', mask).map(|list| state.masks = list)
        },
    },
    Opt {
        info: row(
            "mask-dims",
            "",
            "The dimensions of the mask tensor, letters of abcd; with a causal mask, adds such a \
             tensor",
        ),
        set: |state, text| list(text, ',', letters).map(|list| state.mask_dims = list),
    },
    Opt {
        info: row(
            "scale",
            "library",
            "library, mul: multiply by 1/sqrt(D); div: divide by \
             sqrt(D); or a number",
        ),
        set: |state, text| list(text, ',', Scale::parse).map(|list| state.scales = list),
    },
    Opt {
        info: row(
            "window",
            "none",
            "with_self:W: W keys including the query's own; before_self:W: its own and the W \
             before it",
        ),
        set: |state, text| list(text, ',', Window::parse).map(|list| state.windows = list),
    },
    Opt {
        info: row(
            "diff-mask",
            "false",
            "Whether BWD_D computes the gradient of the mask: true, \
             false",
        ),
        set: |state, text| list(text, ',', boolean).map(|list| state.diff_masks = list),
    },
    Opt {
        info: row(
            "kv-scales",
            "none",
            "Scales of s8 and f8_e4m3 keys and values: none, head, token",
        ),
        set: |state, text| list(text, ',', KvScales::parse).map(|list| state.kv_scales = list),
    },
    Opt {
        info: row(
            "first-keys",
            "0",
            "How many first keys are also seen, besides those in the \
             window",
        ),
        set: |state, text| {
            let keys = |item: &str| integer(item, 0..=1 << 40).map(|keys| keys as usize);
            list(text, ',', keys).map(|list| state.first_keys = list)
        },
    },
    Opt {
        info: row("soft-cap", "0", "c of c*tanh(s/c); 0: none"),
        set: |state, text| list(text, ',', soft_cap).map(|list| state.soft_caps = list),
    },
    Opt {
        info: row(
            "flags",
            "",
            "S: sinks; A: ALiBi; K, Q: random lengths of keys and of queries, including 0 and \
             full; E: entropy; O, T: queries, or keys and values, packed with offsets: lengths as \
             with Q, K, without the rows beyond them",
        ),
        set: |state, text| list(text, ',', Flags::parse).map(|list| state.flags = list),
    },
    Opt {
        info: row(
            "page-size",
            "0",
            "Keys per page, a divisor of T, with the pages in random order; 0: no pages",
        ),
        set: |state, text| {
            let size = |item: &str| integer(item, 0..=1 << 20).map(|size| size as usize);
            list(text, ',', size).map(|list| state.page_sizes = list)
        },
    },
    Opt {
        info: row("inplace", "false", "Whether dst shares the buffer of Q: true, false"),
        set: |state, text| list(text, ',', boolean).map(|list| state.inplace = list),
    },
];
