//! Rope's constructors and helpers.

use super::convert::prop_kind;
use super::exported;
use super::handle::Handle;
use super::memory::Memory;
use super::primitive_desc::{Descriptor, create};
use crate::error::{Error, Result};
use crate::heap::{Counted, counted};
use crate::ops::layer_normalization::{BackwardParameters, ForwardParameters, LayerNormalization};
use crate::ops::rope::{
    AngleSource, Normalized, Pairing, Parameters, Permuted, Rope, RopeThroughNorm, Scaling,
    frequencies, permute,
};
use crate::primitive::{Attr, Op, PropKind};
use crate::tensor::{DataType, MemoryDesc};
use norm_sys as sys;
use std::ffi::{c_int, c_uint};
use std::mem::MaybeUninit;

/// The maximum number of parts of a position.
const MOST_SECTIONS: c_int = 4;

/// # Safety
/// NULL or `count` numbers.
unsafe fn numbers<'a, T>(
    address: *const T,
    count: c_int,
    most: c_int,
    (count_name, name): (&str, &str),
) -> Result<&'a [T]> {
    if !(0..=most).contains(&count) {
        return Err(Error::invalid(format_args!("{count_name}: {count} is not from 0 to {most}")));
    }
    if count == 0 {
        return Ok(&[]);
    }
    if address.is_null() {
        return Err(Error::invalid(format_args!("{name}: NULL")));
    }
    // SAFETY: guaranteed by the caller.
    Ok(unsafe { std::slice::from_raw_parts(address, count as usize) })
}

exported! {
    /// Forward.
    fn norm_rope_forward_primitive_desc_create(
        primitive_desc: *mut sys::norm_primitive_desc_t,
        engine: sys::norm_engine_t,
        kind: sys::norm_prop_kind_t,
        pairs: sys::norm_rope_pairing_t,
        angles: sys::norm_rope_angles_t,
        src_desc: sys::const_norm_memory_desc_t,
        dst_desc: sys::const_norm_memory_desc_t,
        position_desc: sys::const_norm_memory_desc_t,
        index_dim: c_int,
        table_desc: sys::const_norm_memory_desc_t,
        scale_desc: sys::const_norm_memory_desc_t,
        rotary_dims: sys::norm_dim_t,
        magnitude: f32,
        num_sections: c_int,
        sections: *const sys::norm_dim_t,
        epsilon: f32,
        flags: c_uint,
        attr: sys::const_norm_primitive_attr_t,
    ) {
        // SAFETY: the caller's.
        unsafe {
            create(primitive_desc, engine, attr, |attr| {
                let prop_kind = prop_kind(kind)?;
                prop_kind.check_forward()?;
                Rope::new(&Parameters {
                    prop_kind,
                    pairing: Pairing::given(pairs, "pairing")?,
                    angles: AngleSource::given(angles, "angles")?,
                    input: MemoryDesc::tensor(src_desc, "src_desc")?,
                    output: MemoryDesc::tensor(dst_desc, "dst_desc")?,
                    position: MemoryDesc::tensor(position_desc, "position_desc")?,
                    index_dim,
                    table: MemoryDesc::optional_tensor(table_desc, "table_desc")?,
                    scale: MemoryDesc::optional_tensor(scale_desc, "scale_desc")?,
                    rotary_dims,
                    magnitude,
                    sections: numbers(sections, num_sections, MOST_SECTIONS, ("num_sections", "sections"))?,
                    epsilon,
                    flags,
                    attr,
                })
            })
        }
    }
}

exported! {
    /// Backward; with `rms_norm`, through a normalization.
    fn norm_rope_backward_primitive_desc_create(
        primitive_desc: *mut sys::norm_primitive_desc_t,
        engine: sys::norm_engine_t,
        pairs: sys::norm_rope_pairing_t,
        angles: sys::norm_rope_angles_t,
        diff_src_desc: sys::const_norm_memory_desc_t,
        diff_dst_desc: sys::const_norm_memory_desc_t,
        src_desc: sys::const_norm_memory_desc_t,
        position_desc: sys::const_norm_memory_desc_t,
        index_dim: c_int,
        table_desc: sys::const_norm_memory_desc_t,
        scale_desc: sys::const_norm_memory_desc_t,
        diff_scale_desc: sys::const_norm_memory_desc_t,
        rotary_dims: sys::norm_dim_t,
        magnitude: f32,
        num_sections: c_int,
        sections: *const sys::norm_dim_t,
        epsilon: f32,
        flags: c_uint,
        hint_fwd_pd: sys::const_norm_primitive_desc_t,
        attr: sys::const_norm_primitive_attr_t,
    ) {
        // SAFETY: the caller's.
        unsafe {
            Descriptor::get_optional(hint_fwd_pd, "hint_fwd_pd")?;
            let src = MemoryDesc::optional_tensor(src_desc, "src_desc")?;
            let diff_scale = MemoryDesc::optional_tensor(diff_scale_desc, "diff_scale_desc")?;
            let all = Attr::default();
            let parameters = Parameters {
                prop_kind: PropKind::BackwardData,
                pairing: Pairing::given(pairs, "pairing")?,
                angles: AngleSource::given(angles, "angles")?,
                input: MemoryDesc::tensor(diff_dst_desc, "diff_dst_desc")?,
                output: MemoryDesc::tensor(diff_src_desc, "diff_src_desc")?,
                position: MemoryDesc::tensor(position_desc, "position_desc")?,
                index_dim,
                table: MemoryDesc::optional_tensor(table_desc, "table_desc")?,
                scale: MemoryDesc::optional_tensor(scale_desc, "scale_desc")?,
                rotary_dims,
                magnitude,
                sections: numbers(sections, num_sections, MOST_SECTIONS, ("num_sections", "sections"))?,
                epsilon,
                flags,
                attr: &all,
            };
            if flags & sys::norm_rms_norm == 0 {
                return create(primitive_desc, engine, attr, |attr| {
                    check_absent([(src, "src_desc"), (diff_scale, "diff_scale_desc")])?;
                    Rope::new(&Parameters { attr, ..parameters })
                });
            }
            create(primitive_desc, engine, attr, |attr| {
                let parameters = Parameters { attr, ..parameters };
                let steps = (&statistics as _, &gradient as _);
                RopeThroughNorm::new(&parameters, src, diff_scale, steps)
            })
        }
    }
}

/// Checks that descriptors that belong to a normalization are not given.
fn check_absent(given: [(Option<&MemoryDesc>, &str); 2]) -> Result<()> {
    match given.iter().find(|(desc, _)| desc.is_some()) {
        Some((_, name)) => {
            let text = format_args!("{name}: not NULL, but flags have no rms_norm");
            Err(Error::invalid(text))
        }
        None => Ok(()),
    }
}

/// A layer normalization for the mean squares of heads.
fn statistics(p: &Normalized<'_>) -> Result<Box<Counted<dyn Op>>> {
    let problem = LayerNormalization::forward(&ForwardParameters {
        prop_kind: PropKind::ForwardTraining,
        src: p.src,
        dst: p.diff_dst,
        stat: None,
        scale_shift: DataType::F32,
        epsilon: p.epsilon,
        flags: sys::norm_rms_norm,
        attr: &Attr::default(),
    })?;
    Ok(counted(problem)?)
}

/// The gradient of the normalization of heads.
fn gradient(p: &Normalized<'_>) -> Result<Box<Counted<dyn Op>>> {
    let problem = LayerNormalization::backward(&BackwardParameters {
        prop_kind: p.prop_kind,
        diff_src: p.diff_src,
        diff_dst: p.diff_dst,
        src: p.src,
        stat: None,
        diff_scale_shift: p.diff_scale,
        scale_shift: p.scale,
        epsilon: p.epsilon,
        flags: p.flags,
        hint: None,
        attr: &Attr::default(),
    })?;
    Ok(counted(problem)?)
}

exported! {
    /// The frequencies of a configuration.
    fn norm_rope_frequencies(
        scaling: sys::norm_rope_scaling_t,
        rotary_dims: sys::norm_dim_t,
        base: f64,
        num_parameters: c_int,
        parameters: *const f64,
        out: *mut f64,
        magnitude: *mut f32,
    ) {
        /// Far larger than any head.
        const MOST_DIMS: sys::norm_dim_t = 1 << 20;
        let scaling = Scaling::given(scaling, "scaling")?;
        if !(2..=MOST_DIMS).contains(&rotary_dims) || rotary_dims % 2 != 0 {
            let text = format_args!("rotary_dims: {rotary_dims} is not an even number from 2 to {MOST_DIMS}");
            return Err(Error::invalid(text));
        }
        if out.is_null() {
            return Err(Error::invalid("frequencies: NULL"));
        }
        // SAFETY: guaranteed by the caller; the values are written only on success.
        unsafe {
            let names = ("num_parameters", "parameters");
            let parameters = numbers(parameters, num_parameters, c_int::MAX, names)?;
            let pairs = rotary_dims as usize / 2;
            let out = std::slice::from_raw_parts_mut(out.cast::<MaybeUninit<f64>>(), pairs);
            let found = frequencies(scaling, base, parameters, out)?;
            if !magnitude.is_null() {
                magnitude.write(found);
            }
        }
        Ok(())
    }
}

exported! {
    /// Permutes weights for another pairing.
    fn norm_rope_permute(
        from: sys::norm_rope_pairing_t,
        to: sys::norm_rope_pairing_t,
        heads: sys::norm_dim_t,
        rotary_dims: sys::norm_dim_t,
        src: sys::const_norm_memory_t,
        dst: sys::norm_memory_t,
    ) {
        // SAFETY: guaranteed by the caller; memories are as large as their descriptors.
        unsafe {
            let (from, to) = (Pairing::given(from, "from")?, Pairing::given(to, "to")?);
            let (src, dst) = (Memory::get(src, "src")?, Memory::get(dst, "dst")?);
            src.check_tensor("src")?;
            dst.check_tensor("dst")?;
            permute(&Permuted {
                from,
                to,
                heads,
                rotary_dims,
                src: (&src.desc, start(src)),
                dst: (&dst.desc, start(dst)),
            })
        }
    }
}

/// The first element of a memory.
fn start(memory: &Memory) -> *mut u8 {
    let size = memory.desc.data_type().map_or(0, crate::tensor::DataType::size);
    memory.data.wrapping_add(memory.desc.offset() as usize * size)
}
