//! Primitive descriptors: queries, and iteration over implementations.

use super::convert::prop_kind_code;
use super::engine::HeldEngine;
use super::exported;
use super::handle::{Handle, Out, handles, is_null};
use super::memory_desc::put;
use crate::error::{Error, Result, Status};
use crate::heap::counted;
use crate::mark::{Kind, Mark};
use crate::primitive::normalization::{Flags, Hint};
use crate::primitive::{Answer, Attr, Op, OpArgument, PrimitiveDesc, ScratchpadMode, Usage};
use crate::tensor::MemoryDesc;
use norm_sys as sys;
use std::ffi::{c_int, c_void};

/// The C object: the descriptor and its engine.
#[derive(Clone)]
#[repr(C)]
pub(super) struct Descriptor {
    mark: Mark,
    pub(super) engine: HeldEngine,
    pub(super) desc: PrimitiveDesc,
}

handles! {
    Descriptor: norm_primitive_desc = PrimitiveDesc;
}

/// The descriptor of an absent tensor.
static EMPTY: MemoryDesc = MemoryDesc::EMPTY;

/// The common part of the `*_primitive_desc_create` functions: creates the problem and writes the
/// handle.
///
/// # Safety
/// Pointers are NULL or valid as the header describes.
pub(super) unsafe fn create<O: Op + 'static>(
    primitive_desc: *mut sys::norm_primitive_desc_t,
    engine: sys::norm_engine_t,
    attr: sys::const_norm_primitive_attr_t,
    problem: impl FnOnce(&Attr) -> Result<O>,
) -> Result<()> {
    // SAFETY: the caller's.
    let (out, engine, attr) = unsafe {
        (
            Out::new(primitive_desc, "primitive_desc")?,
            HeldEngine::new(engine, "engine")?,
            Attr::get_optional(attr, "attr")?
                .map_or_else(|| Ok(Attr::default()), Attr::try_clone)?,
        )
    };
    let desc = PrimitiveDesc::new(counted(problem(&attr)?)?, attr)?;
    let mark = Mark::part(Kind::PrimitiveDesc);
    out.set(Descriptor { mark, engine, desc }.into_c()?);
    Ok(())
}

impl Descriptor {
    /// This as `hint_fwd_pd` of a normalization's backward: a forward descriptor of the kind.
    pub(super) fn as_hint(&self, kind: sys::norm_primitive_kind_t, name: &str) -> Result<Hint<'_>> {
        let op = self.desc.op();
        let queries = [sys::norm_query_flags, sys::norm_query_epsilon_f32];
        match (op.prop_kind().filter(|kind| kind.is_forward()), queries.map(|what| op.query(what)))
        {
            (Some(prop_kind), [Some(Answer::U32(flags)), Some(Answer::F32(epsilon))])
                if op.kind() == kind =>
            {
                let src = op.query_md(sys::norm_query_src_md, 0).unwrap_or(&EMPTY);
                let (flags, around) = (Flags::new(flags)?, &self.desc.attr().around);
                Ok(Hint { prop_kind, src, flags, epsilon, around })
            }
            _ => Err(Error::invalid(format_args!("hint_fwd_pd: not a forward {name}"))),
        }
    }

    /// The descriptor of a `norm_query_*_md` query; empty if the problem does not use it.
    fn memory_desc(&self, what: sys::norm_query_t, index: c_int) -> Result<&MemoryDesc> {
        let op = self.desc.op();
        Ok(match what {
            sys::norm_query_scratchpad_md => match index {
                0 => self.desc.scratchpad_desc(),
                _ => {
                    return Err(Error::invalid(format_args!(
                        "index: {index}, but there is one scratchpad"
                    )));
                }
            },
            sys::norm_query_exec_arg_md if index == sys::NORM_ARG_SCRATCHPAD => {
                self.desc.scratchpad_desc()
            }
            sys::norm_query_workspace_md if index == 0 => op.query_md(what, 0).unwrap_or(&EMPTY),
            sys::norm_query_workspace_md => {
                return Err(Error::invalid(format_args!(
                    "index: {index}, but there is one workspace"
                )));
            }
            sys::norm_query_src_md
            | sys::norm_query_diff_src_md
            | sys::norm_query_weights_md
            | sys::norm_query_diff_weights_md
            | sys::norm_query_dst_md
            | sys::norm_query_diff_dst_md
            | sys::norm_query_exec_arg_md => op.query_md(what, index).unwrap_or(&EMPTY),
            _ => {
                let what = what as i32;
                return Err(Error::unimplemented(format_args!(
                    "what: {what} is not a query of this primitive descriptor"
                )));
            }
        })
    }

    /// The answer to a query whose answer is a number or an enumerator.
    fn value(&self, what: sys::norm_query_t) -> Result<Answer> {
        let op = self.desc.op();
        // Scales and zero points do not count; operands of post-operations do.
        let arguments = |usage| {
            let counts = |a: &&OpArgument| a.usage == usage && !a.is_quantization();
            Answer::S32(op.arguments().iter().filter(counts).count() as i32)
        };
        let answer = match what {
            sys::norm_query_num_of_inputs_s32 => Some(arguments(Usage::Input)),
            sys::norm_query_num_of_outputs_s32 => Some(arguments(Usage::Output)),
            sys::norm_query_memory_consumption_s64 => {
                let library = self.desc.attr().scratchpad_mode == ScratchpadMode::Library;
                let size = self.desc.implementation().scratchpad_size();
                Some(Answer::S64(if library { size as i64 } else { 0 }))
            }
            sys::norm_query_primitive_kind => Some(Answer::U32(op.kind())),
            sys::norm_query_prop_kind => op.prop_kind().map(prop_kind_code).map(Answer::U32),
            sys::norm_query_cache_blob_id_size_s64 => Some(Answer::S64(0)),
            _ => op.query(what),
        };
        answer.ok_or_else(|| {
            let what = what as i32;
            Error::unimplemented(format_args!("what: {what} is not a query of a {}", op.name()))
        })
    }

    /// # Safety
    /// `result` points to the type that the header specifies for `what`.
    unsafe fn query(
        &self,
        what: sys::norm_query_t,
        index: c_int,
        result: *mut c_void,
    ) -> Result<()> {
        let op = self.desc.op();
        let implementation = self.desc.implementation();
        // SAFETY: the caller's.
        unsafe {
            match what {
                sys::norm_query_engine | sys::norm_query_scratchpad_engine => {
                    put(result, self.engine.handle());
                }
                sys::norm_query_reorder_src_engine | sys::norm_query_reorder_dst_engine
                    if op.kind() == sys::norm_reorder =>
                {
                    put(result, self.engine.handle());
                }
                sys::norm_query_impl_info_str => {
                    put(result, implementation.variant().name.as_ptr())
                }
                // Its size is 0. dnnl.hpp asks for both.
                sys::norm_query_cache_blob_id if cfg!(feature = "onednn-abi") => {
                    put(result, std::ptr::null::<u8>());
                }
                sys::norm_query_time_estimate_f64 => {
                    return Err(Error::unimplemented("what: there are no time estimates"));
                }
                sys::norm_query_primitive_kind..=sys::norm_query_group_size_s64 => {
                    match self.value(what)? {
                        Answer::S32(value) => put(result, value),
                        Answer::S64(value) => put(result, value),
                        Answer::F32(value) => put(result, value),
                        Answer::U32(value) => put(result, value),
                    }
                }
                _ => {
                    let desc = self.memory_desc(what, index)?;
                    // oneDNN answers with an empty descriptor.
                    if desc.ndims() == 0 && !cfg!(feature = "onednn-abi") {
                        return Err(Error::new(
                            Status::NotRequired,
                            "what: this problem has no such memory descriptor",
                        ));
                    }
                    put(result, desc.lend());
                }
            }
        }
        Ok(())
    }
}

exported! {
    /// Switches to the next implementation.
    fn norm_primitive_desc_next_impl as dnnl_primitive_desc_next_impl(primitive_desc: sys::norm_primitive_desc_t) {
        // SAFETY: the caller's.
        unsafe { Descriptor::get_mut(primitive_desc, "primitive_desc") }?.desc.next_implementation()
    }
}

exported! {
    /// A copy of a primitive descriptor.
    fn norm_primitive_desc_clone as dnnl_primitive_desc_clone(
        primitive_desc: *mut sys::norm_primitive_desc_t,
        existing_primitive_desc: sys::const_norm_primitive_desc_t,
    ) {
        // SAFETY: the caller's.
        unsafe {
            let out = Out::new(primitive_desc, "primitive_desc")?;
            let existing = Descriptor::get(existing_primitive_desc, "existing_primitive_desc")?;
            out.set(existing.clone().into_c()?);
        }
        Ok(())
    }
}

exported! {
    /// Frees a primitive descriptor.
    fn norm_primitive_desc_destroy as dnnl_primitive_desc_destroy(primitive_desc: sys::norm_primitive_desc_t) {
        // SAFETY: the caller's.
        unsafe { Descriptor::destroy(primitive_desc, "primitive_desc") }
    }
}

exported! {
    /// The attributes of a primitive descriptor.
    fn norm_primitive_desc_get_attr as dnnl_primitive_desc_get_attr(
        primitive_desc: sys::const_norm_primitive_desc_t,
        attr: *mut sys::const_norm_primitive_attr_t,
    ) {
        // SAFETY: the caller's.
        unsafe {
            let descriptor = Descriptor::get(primitive_desc, "primitive_desc")?;
            Out::new(attr, "attr")?.set(descriptor.desc.attr().lend());
        }
        Ok(())
    }
}

exported! {
    /// Answers a query.
    fn norm_primitive_desc_query as dnnl_primitive_desc_query(
        primitive_desc: sys::const_norm_primitive_desc_t,
        what: sys::norm_query_t,
        index: c_int,
        result: *mut c_void,
    ) {
        // SAFETY: the caller's.
        let descriptor = unsafe { Descriptor::get(primitive_desc, "primitive_desc") }?;
        if result.is_null() {
            return Err(is_null("result"));
        }
        // SAFETY: the caller's.
        unsafe { descriptor.query(what, index, result) }
    }
}

exported! {
    /// The answer to a memory descriptor query.
    fn norm_primitive_desc_query_md as dnnl_primitive_desc_query_md(
        primitive_desc: sys::const_norm_primitive_desc_t,
        what: sys::norm_query_t,
        index: c_int,
    ) -> sys::const_norm_memory_desc_t, else std::ptr::null(); {
        // SAFETY: the caller's.
        let descriptor = unsafe { Descriptor::get(primitive_desc, "primitive_desc") }?;
        Ok(descriptor.memory_desc(what, index)?.lend())
    }
}

exported! {
    /// The answer to an integer query.
    fn norm_primitive_desc_query_s32 as dnnl_primitive_desc_query_s32(
        primitive_desc: sys::const_norm_primitive_desc_t,
        what: sys::norm_query_t,
        _index: c_int,
    ) -> c_int, else 0; {
        // SAFETY: the caller's.
        let descriptor = unsafe { Descriptor::get(primitive_desc, "primitive_desc") }?;
        match descriptor.value(what)? {
            Answer::S32(value) => Ok(value),
            _ => Err(Error::invalid(format_args!("what: the answer to {} is not an s32", what as i32))),
        }
    }
}
