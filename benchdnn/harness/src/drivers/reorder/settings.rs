//! The options of the driver, and the combinations of their lists.

use super::parameters::{DIMENSIONS, Extra, ReorderProblem};
use crate::attributes::AttributeSettings;
use crate::data_type::DataType;
use crate::driver::check_tags;
use crate::language::descriptor::Descriptor;
use crate::language::options::{Info, Opt, multiply};
use crate::language::value::{BadValue, exactly_one_of, integer, list, starts};
use crate::tensor::Tag;

/// The values of the driver's options.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    src_dts: Vec<Named>,
    dst_dts: Vec<Named>,
    src_tags: Vec<Tag>,
    dst_tags: Vec<Tag>,
    strides: Vec<[Vec<usize>; 2]>,
    extras: Vec<Extra>,
    runtime_dims: Vec<u64>,
}

impl Settings {
    /// All combinations of the options for a descriptor.
    pub(super) fn problems(
        &self,
        attributes: &AttributeSettings,
        descriptor: &str,
    ) -> Result<Vec<ReorderProblem>, BadValue> {
        let Descriptor { dims, name } = Descriptor::parse(descriptor, &DIMENSIONS)?;
        check_tags("stag", &self.src_tags, dims.len())?;
        check_tags("dtag", &self.dst_tags, dims.len())?;
        for strides in self.strides.iter().flatten() {
            if !strides.is_empty() && strides.len() != dims.len() {
                let (has, needs) = (strides.len(), dims.len());
                let message = format!("--strides: {has} strides for {needs} dimensions");
                return Err(BadValue::new(message));
            }
        }
        // The first option varies slowest, as in oneDNN.
        let mut problems = vec![ReorderProblem { dims, name, ..ReorderProblem::default() }];
        multiply(&mut problems, &self.src_dts, |problem, &(value, absent)| {
            (problem.src_dt, problem.absent[0]) = (value, absent);
        });
        multiply(&mut problems, &self.dst_dts, |problem, &(value, absent)| {
            (problem.dst_dt, problem.absent[1]) = (value, absent);
        });
        multiply(&mut problems, &self.src_tags, |problem, tag| problem.src_tag = tag.clone());
        multiply(&mut problems, &self.dst_tags, |problem, tag| problem.dst_tag = tag.clone());
        multiply(&mut problems, &self.strides, |problem, value| problem.strides = value.clone());
        multiply(&mut problems, &self.extras, |problem, value| problem.extra = value.clone());
        attributes
            .multiply(&mut problems, |problem| (&mut problem.attributes, &mut problem.contexts));
        multiply(&mut problems, &self.runtime_dims, |problem, &value| {
            problem.runtime_dims = value;
        });
        Ok(problems)
    }
}

/// A type; if the library does not have it, a replacement with the name.
type Named = (DataType, Option<&'static str>);

/// `SRC:DST`, either of which may be omitted; empty for neither.
fn strides(text: &str) -> Result<[Vec<usize>; 2], BadValue> {
    let read = |text: &str| match text {
        "" => Ok(Vec::new()),
        text => list(text, 'x', |item| integer(item, 0..=1 << 44).map(|stride| stride as usize)),
    };
    match text.split_once(':') {
        None if text.is_empty() => Ok([Vec::new(), Vec::new()]),
        None => {
            Err(BadValue::at(text.len(), "a colon between the strides of src and dst is missing"))
        }
        Some((src, dst)) => {
            let shifted = |error: BadValue| error.shifted(src.len() + 1);
            Ok([read(src)?, read(dst).map_err(shifted)?])
        }
    }
}

/// `FLAG:MASK[+...]`, kept as written.
fn extra(text: &str) -> Result<Extra, BadValue> {
    if text.is_empty() {
        return Ok(Extra::new());
    }
    list(text, '+', |item| {
        let (flag, mask) = item.split_once(':').unwrap_or((item, "0"));
        exactly_one_of(flag, &[("s8s8_comp", ()), ("zp_comp", ())])?;
        let at = starts(item, ':').nth(1).unwrap_or(0);
        integer(mask, 0..=(1 << 12) - 1).map(drop).map_err(|error| error.shifted(at))
    })?;
    Ok(text.to_owned())
}

const fn row(name: &'static str, default: &'static str, help: &'static str) -> Info {
    Info::list("Problems of reorder (lists multiply out)", name, default, help)
}

/// The driver's options.
pub(super) const OPTIONS: &[Opt<Settings>] = &[
    Opt {
        info: row(
            "sdt",
            "f32",
            "Data types of src: f32, bf16, f16, f64, f8_e5m2, f8_e4m3, e8m0, s32, s8, u8, s64; problems with s4, u4 or\n\
             f4_e2m1 are skipped",
        ),
        set: |state, text| {
            list(text, ',', DataType::among_any(&DataType::ALL)).map(|list| state.src_dts = list)
        },
    },
    Opt {
        info: row("ddt", "f32", "Data types of dst: the same"),
        set: |state, text| {
            list(text, ',', DataType::among_any(&DataType::ALL)).map(|list| state.dst_dts = list)
        },
    },
    Opt {
        info: row(
            "stag",
            "abx",
            "Layouts of src: abx, axb, xba, letters (acb), names (tnc), or with blocks: AB16b16a,\n\
             aBx8b, nChw16c, gOIhw16i16o",
        ),
        set: |state, text| list(text, ',', Tag::parse_blocked).map(|list| state.src_tags = list),
    },
    Opt {
        info: row("dtag", "abx", "Layouts of dst"),
        set: |state, text| list(text, ',', Tag::parse_blocked).map(|list| state.dst_tags = list),
    },
    Opt {
        info: row(
            "strides",
            "",
            "Strides in place of tags, SRC:DST, as in 8x1:1x4; either may be empty",
        ),
        set: |state, text| list(text, ',', strides).map(|list| state.strides = list),
    },
    Opt {
        info: row(
            "oflag",
            "",
            "Compensation for convolutions, FLAG:MASK[+...]: s8s8_comp, zp_comp; problems with it are skipped",
        ),
        set: |state, text| list(text, ',', extra).map(|list| state.extras = list),
    },
    Opt {
        info: row("cross-engine", "none", "Reorders between engines: none"),
        set: |_, text| list(text, ',', |item| exactly_one_of(item, &[("none", ())])).map(drop),
    },
    Opt {
        info: row(
            "runtime-dim-mask",
            "0",
            "A mask of the dimensions known only at execution; problems with any are skipped",
        ),
        set: |state, text| {
            list(text, ',', |item| integer(item, 0..=(1 << 12) - 1))
                .map(|list| state.runtime_dims = list)
        },
    },
];
