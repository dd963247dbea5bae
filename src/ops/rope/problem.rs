//! The validated problem.

use super::plan::Plan;
use super::positions::Positions;
use crate::error::{Error, Result};
use crate::heap;
use crate::primitive::{
    Accepted, Attr, OpArgument, PropKind, Usage, check_known_flags, enumerators,
};
use crate::tensor::{DataType, Layout, MemoryDesc, Support};
use arrayvec::ArrayVec;
use norm_sys as sys;

enumerators! {
    /// Which elements form a pair.
    Pairing: norm_rope_pairing_t {
        Interleaved = norm_rope_interleaved, "interleaved";
        HalfSplit = norm_rope_half_split, "half_split";
        HalfSplitOfHead = norm_rope_half_split_of_head, "half_split_of_head";
    }
}

enumerators! {
    /// The source of cosines and sines.
    AngleSource: norm_rope_angles_t {
        Frequencies = norm_rope_from_frequencies, "frequencies";
        Tables = norm_rope_from_tables, "tables";
    }
}

/// The most parts of a position.
pub(super) const MOST_SECTIONS: usize = 4;
/// The most dimensions of src.
const MOST_DIMS: usize = 6;

/// The parameters of the constructors. Backward has no slots; its normalization is in
/// [`RopeThroughNorm`](super::through::RopeThroughNorm).
pub(crate) struct Parameters<'a> {
    pub(crate) prop_kind: PropKind,
    pub(crate) pairing: Pairing,
    pub(crate) angles: AngleSource,
    /// src, or diff_dst.
    pub(crate) input: &'a MemoryDesc,
    /// dst, or diff_src.
    pub(crate) output: &'a MemoryDesc,
    pub(crate) position: &'a MemoryDesc,
    pub(crate) index_dim: i32,
    pub(crate) table: Option<&'a MemoryDesc>,
    pub(crate) scale: Option<&'a MemoryDesc>,
    pub(crate) rotary_dims: i64,
    pub(crate) magnitude: f32,
    pub(crate) sections: &'a [i64],
    pub(crate) epsilon: f32,
    pub(crate) flags: u32,
    pub(crate) attr: &'a Attr,
}

/// The normalization of a head.
#[derive(Clone, Copy, Debug)]
pub(super) struct Norm {
    pub(super) epsilon: f64,
    /// The type of scale; `None` without a scale.
    pub(super) scale: Option<DataType>,
    pub(super) plus_one: bool,
    /// Whether values are rounded to the type of dst before the rotation.
    pub(super) rounded: bool,
}

/// A validated problem.
#[derive(Debug)]
pub(crate) struct Rope {
    pub(super) prop_kind: PropKind,
    pub(super) pairing: Pairing,
    pub(super) angles: AngleSource,
    pub(super) rotary_dims: usize,
    pub(super) magnitude: f32,
    pub(super) epsilon: f32,
    pub(super) flags: u32,
    pub(super) norm: Option<Norm>,
    /// The number of pairs for each part of the position; empty if it has a single part.
    pub(super) sections: ArrayVec<usize, MOST_SECTIONS>,
    pub(super) interleaved_sections: bool,
    /// How the dimensions are traversed.
    pub(super) plan: Plan,
    pub(super) arguments: Vec<OpArgument>,
}

impl Rope {
    pub(crate) fn new(p: &Parameters<'_>) -> Result<Self> {
        let forward = p.prop_kind.is_forward();
        let names = Names::of(forward);
        p.attr.check(if forward { "forward rope" } else { "backward rope" }, &Accepted::NOTHING)?;
        check_type(names.input, p.input)?;
        check_input(names.input, p.input)?;
        let flags = checked_flags(p.flags, forward)?;
        let has = |flag| flags & flag != 0;
        let slots = has(sys::norm_write_slots);
        let sections = checked_sections(p.sections, p.rotary_dims, flags)?;
        let (rotary_dims, cols) = (checked_rotary(p, names.input)?, p.input.dims());
        if !p.magnitude.is_finite() || p.magnitude == 0.0 {
            let text =
                format_args!("magnitude: {} is not finite and different from 0", p.magnitude);
            return Err(Error::invalid(text));
        }
        let output = checked_output(p, slots)?;
        let table = checked_table(p, rotary_dims)?;
        let norm = checked_norm(p, flags, cols[cols.len() - 1])?;
        check_position(p, names.input, sections.len().max(1))?;
        let plan = Plan::new((p.input, &output), p.position, p.index_dim, slots)?;
        let scale = p.scale.filter(|_| norm.is_some_and(|norm| norm.scale.is_some()));
        let arguments = arguments(p, &output, (table, rotary_dims), scale, slots)?;
        Ok(Self {
            prop_kind: p.prop_kind,
            pairing: p.pairing,
            angles: p.angles,
            rotary_dims,
            magnitude: p.magnitude,
            epsilon: p.epsilon,
            flags,
            norm,
            sections,
            interleaved_sections: has(sys::norm_rope_interleaved_sections),
            plan,
            arguments,
        })
    }

    /// The descriptor of an argument that the problem has.
    pub(super) fn desc(&self, id: i32) -> &MemoryDesc {
        let found = self.arguments.iter().find(|argument| argument.id == id);
        found.map_or(&MemoryDesc::EMPTY, |argument| &argument.desc)
    }

    pub(super) fn forward(&self) -> bool {
        self.prop_kind.is_forward()
    }

    /// The ids of the input and the output.
    pub(super) fn ids(&self) -> [i32; 2] {
        let names = Names::of(self.forward());
        [names.input_id, names.output_id]
    }

    /// The length of a head.
    pub(super) fn cols(&self) -> usize {
        let dims = self.desc(self.ids()[0]).dims();
        dims[dims.len() - 1] as usize
    }

    /// The distance between the elements of a pair; 1 for neighbours.
    pub(super) fn distance(&self) -> usize {
        match self.pairing {
            Pairing::Interleaved => 1,
            Pairing::HalfSplit => self.rotary_dims / 2,
            Pairing::HalfSplitOfHead => self.cols() / 2,
        }
    }

    /// Which part of the position a pair uses.
    #[inline(always)]
    pub(super) fn section_of(&self, pair: usize) -> usize {
        let sections = &self.sections;
        if sections.is_empty() {
            return 0;
        }
        if self.interleaved_sections {
            let section = pair % sections.len();
            return if pair < sections.len() * sections[section] { section } else { 0 };
        }
        let mut end = 0;
        let found = sections.iter().position(|pairs| {
            end += pairs;
            pair < end
        });
        found.unwrap_or(0)
    }

    pub(super) fn positions(&self, address: *const u8) -> Positions<'_> {
        Positions::new(&self.plan, self.desc(sys::NORM_ARG_POSITIONS), address, self.parts())
    }

    /// The number of parts of a position.
    #[inline(always)]
    pub(super) fn parts(&self) -> usize {
        self.sections.len().max(1)
    }
}

/// The names of a direction's tensors.
struct Names {
    input: &'static str,
    output: &'static str,
    input_id: i32,
    output_id: i32,
    input_name: &'static str,
    output_name: &'static str,
}

impl Names {
    fn of(forward: bool) -> Self {
        if forward {
            Self {
                input: "src_desc",
                output: "dst_desc",
                input_id: sys::NORM_ARG_SRC,
                output_id: sys::NORM_ARG_DST,
                input_name: "src",
                output_name: "dst",
            }
        } else {
            Self {
                input: "diff_dst_desc",
                output: "diff_src_desc",
                input_id: sys::NORM_ARG_DIFF_DST,
                output_id: sys::NORM_ARG_DIFF_SRC,
                input_name: "diff_dst",
                output_name: "diff_src",
            }
        }
    }
}

/// The arguments of an execution.
fn arguments(
    p: &Parameters<'_>,
    output: &MemoryDesc,
    (table, rotary_dims): (Option<&MemoryDesc>, usize),
    scale: Option<&MemoryDesc>,
    slots: bool,
) -> Result<Vec<OpArgument>> {
    let names = Names::of(p.prop_kind.is_forward());
    let mut arguments = heap::list([
        OpArgument::tensor(names.input_id, names.input_name, Usage::Input, p.input),
        OpArgument::tensor(names.output_id, names.output_name, Usage::Output, output),
        OpArgument::tensor(sys::NORM_ARG_POSITIONS, "positions", Usage::Input, p.position),
    ])?;
    let mut add = |id, name, desc: &MemoryDesc| {
        heap::push(&mut arguments, OpArgument::tensor(id, name, Usage::Input, desc))
    };
    match table {
        Some(table) => {
            add(sys::NORM_ARG_ROPE_COS, "rope_cos", table)?;
            add(sys::NORM_ARG_ROPE_SIN, "rope_sin", table)?;
        }
        None => {
            let desc = MemoryDesc::dense(&[rotary_dims as i64 / 2], DataType::F64)?;
            add(sys::NORM_ARG_ROPE_FREQUENCIES, "rope_frequencies", &desc)?;
        }
    }
    if let Some(scale) = scale {
        add(sys::NORM_ARG_SCALE, "scale", scale)?;
    }
    if slots {
        let desc = MemoryDesc::dense(&p.input.dims()[..1], DataType::S64)?;
        add(sys::NORM_ARG_SLOTS, "slots", &desc)?;
    }
    Ok(arguments)
}

pub(super) fn check_type(name: &str, desc: &MemoryDesc) -> Result<()> {
    desc.check_type(name, "rope", |data_type| data_type.support() == Support::Full)
}

fn check_input(name: &str, desc: &MemoryDesc) -> Result<()> {
    desc.check_layout(name)?;
    let ndims = desc.ndims();
    if !(2..=MOST_DIMS).contains(&ndims) {
        return Err(Error::invalid(format_args!(
            "{name}: {ndims} dimensions, but rope has 2 to {MOST_DIMS}, the last of them a head"
        )));
    }
    Ok(())
}

/// The output with its layout. Slots are the caller's, so nothing says how they are laid out.
fn checked_output(p: &Parameters<'_>, slots: bool) -> Result<MemoryDesc> {
    let names = Names::of(p.prop_kind.is_forward());
    if slots && p.output.layout() == Layout::Any {
        return Err(Error::invalid(format_args!(
            "{}: with write_slots the layout must be given, not `any`",
            names.output
        )));
    }
    let output = match slots {
        true => p.output.clone(),
        false => p.output.resolved_for(names.output, (names.input, p.input))?,
    };
    check_type(names.output, &output)?;
    output.check_output(names.output)?;
    Ok(output)
}

fn checked_flags(flags: u32, forward: bool) -> Result<u32> {
    let all = [
        (sys::norm_rope_interleaved_sections, "norm_rope_interleaved_sections"),
        (sys::norm_rms_norm, "norm_rms_norm"),
        (sys::norm_use_scale, "norm_use_scale"),
        (sys::norm_scale_plus_one, "norm_scale_plus_one"),
        (sys::norm_write_slots, "norm_write_slots"),
        (sys::norm_rope_norm_rounded, "norm_rope_norm_rounded"),
    ];
    // Backward knows the first.
    check_known_flags(flags, if forward { &all } else { &all[..1] })?;
    let needs = [
        (sys::norm_use_scale, sys::norm_rms_norm, "use_scale needs rms_norm"),
        (sys::norm_rope_norm_rounded, sys::norm_rms_norm, "rope_norm_rounded needs rms_norm"),
        (sys::norm_scale_plus_one, sys::norm_use_scale, "scale_plus_one needs use_scale"),
    ];
    match needs.iter().find(|(flag, needed, _)| flags & flag != 0 && flags & needed == 0) {
        Some((_, _, text)) => Err(Error::invalid(format_args!("flags: {text}"))),
        None => Ok(flags),
    }
}

fn checked_sections(
    sections: &[i64],
    rotary_dims: i64,
    flags: u32,
) -> Result<ArrayVec<usize, MOST_SECTIONS>> {
    if sections.len() < 2 {
        if flags & sys::norm_rope_interleaved_sections != 0 {
            return Err(Error::invalid(
                "flags: rope_interleaved_sections needs num_sections of 2 or more",
            ));
        }
        return Ok(ArrayVec::new());
    }
    if let Some(pairs) = sections.iter().find(|pairs| **pairs < 0) {
        return Err(Error::invalid(format_args!("sections: {pairs} pairs")));
    }
    let sum = sections.iter().fold(0i64, |sum, pairs| sum.saturating_add(*pairs));
    if sum != rotary_dims / 2 {
        return Err(Error::invalid(format_args!(
            "sections: they add up to {sum} pairs, not the {} of rotary_dims",
            rotary_dims / 2
        )));
    }
    Ok(sections.iter().map(|pairs| *pairs as usize).collect())
}

fn checked_rotary(p: &Parameters<'_>, name: &str) -> Result<usize> {
    let (dims, rotary) = (p.input.dims(), p.rotary_dims);
    let head = dims[dims.len() - 1];
    if rotary < 2 || rotary % 2 != 0 {
        let text = format_args!("rotary_dims: {rotary} is not an even number of 2 or more");
        return Err(Error::invalid(text));
    }
    if rotary > head {
        return Err(Error::invalid(format_args!(
            "rotary_dims: {rotary} is more than the last dimension of {name}, {head}"
        )));
    }
    if p.pairing == Pairing::HalfSplitOfHead && head % 2 != 0 {
        return Err(Error::invalid(format_args!(
            "{name}: the last dimension is {head}; rope_half_split_of_head needs an even one"
        )));
    }
    Ok(rotary as usize)
}

fn checked_table<'a>(p: &Parameters<'a>, rotary_dims: usize) -> Result<Option<&'a MemoryDesc>> {
    let table = match (p.angles, p.table) {
        (AngleSource::Frequencies, None) => return Ok(None),
        (AngleSource::Frequencies, Some(_)) => {
            return Err(Error::invalid("table_desc: not NULL, but angles are from frequencies"));
        }
        (AngleSource::Tables, None) => {
            return Err(Error::invalid("table_desc: NULL, but angles are from tables"));
        }
        (AngleSource::Tables, Some(table)) => table,
    };
    check_type("table_desc", table)?;
    let pairs = rotary_dims / 2;
    if table.layout() != Layout::Strided || table.is_blocked() {
        return Err(Error::invalid("table_desc: the layout must be given by strides"));
    }
    let dense = pairs == 1 || table.strides().last() == Some(&1);
    if table.ndims() == 2 && !dense {
        return Err(Error::invalid("table_desc: the elements of a row must be contiguous"));
    }
    if !matches!(table.dims(), [_, cols] if *cols == pairs as i64) {
        return Err(Error::invalid(format_args!(
            "table_desc: dimensions {:?} are not positions x {pairs}, half of rotary_dims",
            table.dims()
        )));
    }
    Ok(Some(table))
}

/// The type of a descriptor with one number per element of a head.
pub(super) fn checked_head(name: &str, desc: &MemoryDesc, head: i64) -> Result<Option<DataType>> {
    check_type(name, desc)?;
    if desc.dims() != [head] {
        return Err(Error::invalid(format_args!(
            "{name}: dimensions {:?} are not those of a head, [{head}]",
            desc.dims()
        )));
    }
    if !desc.is_dense() || desc.is_blocked() {
        return Err(Error::invalid(format_args!("{name}: the elements must be contiguous")));
    }
    Ok(desc.data_type())
}

pub(super) fn checked_norm(p: &Parameters<'_>, flags: u32, head: i64) -> Result<Option<Norm>> {
    let has = |flag| flags & flag != 0;
    let scale = match (has(sys::norm_use_scale), p.scale) {
        (false, None) => None,
        (false, Some(_)) => {
            return Err(Error::invalid("scale_desc: not NULL, but flags have no use_scale"));
        }
        (true, None) => return Err(Error::invalid("scale_desc: NULL, but flags have use_scale")),
        (true, Some(scale)) => checked_head("scale_desc", scale, head)?,
    };
    if !has(sys::norm_rms_norm) {
        return Ok(None);
    }
    if !(p.epsilon >= 0.0 && p.epsilon.is_finite()) {
        let text = format_args!("epsilon: {} is not a number of 0 or more", p.epsilon);
        return Err(Error::invalid(text));
    }
    Ok(Some(Norm {
        epsilon: f64::from(p.epsilon),
        scale,
        plus_one: has(sys::norm_scale_plus_one),
        rounded: has(sys::norm_rope_norm_rounded),
    }))
}

fn check_position(p: &Parameters<'_>, name: &str, parts: usize) -> Result<()> {
    let desc = p.position;
    desc.check_type("position_desc", "rope", |data_type| {
        matches!(data_type, DataType::S32 | DataType::S64)
    })?;
    if desc.layout() != Layout::Strided || desc.is_blocked() {
        return Err(Error::invalid("position_desc: the layout must be given by strides"));
    }
    let outer = &p.input.dims()[..p.input.ndims() - 1];
    let own = match desc.dims().split_last() {
        Some((last, own)) if parts > 1 && *last == parts as i64 => own,
        _ if parts > 1 => {
            return Err(Error::invalid(format_args!(
                "position_desc: the last dimension of {:?} is not num_sections, {parts}",
                desc.dims()
            )));
        }
        _ => desc.dims(),
    };
    let fits =
        own.len() == outer.len() && own.iter().zip(outer).all(|(own, dim)| own == dim || *own == 1);
    if !fits {
        return Err(Error::invalid(format_args!(
            "position_desc: dimensions {own:?} are not those of {name} without the last, \
             {outer:?}, or 1"
        )));
    }
    match usize::try_from(p.index_dim) {
        Err(_) if p.index_dim == -1 => Ok(()),
        Ok(dim) if dim < outer.len() && own[dim] == 1 => Ok(()),
        _ => Err(Error::invalid(format_args!(
            "index_dim: {} is neither -1 nor a dimension of {name} before the last where position_desc has 1",
            p.index_dim
        ))),
    }
}
