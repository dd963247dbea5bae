//! `norm_explain` on the harness's data.

use super::connection::Connection;
use super::functions::functions;
use super::handle::Handle;
use super::objects::{MemoryDesc, memory};
use crate::data_type::DataType;
use crate::executor::{Explainable, Refusal, RefusalKind};
use crate::tensor::{Buffer, Layout};
use norm_sys::*;
use std::ffi::{CStr, c_char, c_uint};
use std::mem::zeroed;
use std::ptr;

functions! {
    /// The functions that explain outputs.
    Explain {
        explain = norm_explain:
        fn(const_norm_memory_t, const_norm_memory_t, f32, c_uint, norm_dim_t,
            *mut norm_explanation_t) -> norm_status_t;
        explain_remedies = norm_explain_remedies:
        fn(const_norm_memory_t, const_norm_memory_t, f32, c_uint, norm_dim_t, *mut norm_remedy_t)
            -> norm_status_t;
        explanation_text = norm_explanation_text:
        fn(*const norm_explanation_t, *const norm_remedy_t, *mut c_char, usize) -> usize;
    }
}

/// A dense tensor with these dimensions and elements.
fn tensor(
    connection: &Connection,
    dims: &[usize],
    data_type: DataType,
    elements: &[u8],
) -> Result<(Buffer, Handle<norm_memory>), Refusal> {
    let layout = Layout::dense(dims, data_type);
    let buffer = Buffer::input(&layout, elements, 0);
    let desc = MemoryDesc::strided(connection, &layout)?;
    let memory = memory(connection, desc.raw(), &buffer)?;
    Ok((buffer, memory))
}

/// The library's text on all rows.
pub(super) fn explain(
    connection: &Connection,
    explainable: &Explainable<'_>,
) -> Result<String, Refusal> {
    let functions = Explain::of(connection.source())?;
    let &Explainable { dims, data_type, elements, scale, epsilon, .. } = explainable;
    let (_src_buffer, src) = tensor(connection, dims, data_type, elements)?;
    let cols = &dims[dims.len().saturating_sub(1)..];
    let scale = scale.map(|(data_type, elements)| tensor(connection, cols, data_type, elements));
    let scale = scale.transpose()?;
    let weights = scale.as_ref().map_or(ptr::null(), |(_, memory)| memory.raw().cast_const());
    let given =
        [(explainable.rms_norm, norm_rms_norm), (explainable.plus_one, norm_scale_plus_one)];
    let flags = given.iter().filter(|(is_set, _)| *is_set).fold(0, |all, (_, flag)| all | flag);
    // SAFETY: the structures only have numbers, for which 0 is valid.
    let (mut found, mut remedies): (norm_explanation_t, [norm_remedy_t; NORM_REMEDIES as usize]) =
        unsafe { (zeroed(), zeroed()) };
    // SAFETY: the memories are alive, and there is room for the result.
    let status = unsafe { (functions.explain)(src.raw(), weights, epsilon, flags, -1, &mut found) };
    connection.check("explain", status)?;
    let list = remedies.as_mut_ptr();
    // SAFETY: as above.
    let status =
        unsafe { (functions.explain_remedies)(src.raw(), weights, epsilon, flags, -1, list) };
    connection.check("explain_remedies", status)?;
    let write = |text: *mut c_char, size| {
        // SAFETY: the explanation and the remedies are complete, and `text` has `size` bytes.
        unsafe { (functions.explanation_text)(&found, remedies.as_ptr(), text, size) }
    };
    let mut bytes = vec![0u8; write(ptr::null_mut(), 0)];
    write(bytes.as_mut_ptr().cast(), bytes.len());
    let text = CStr::from_bytes_until_nul(&bytes).map_err(|_| Refusal {
        kind: RefusalKind::Failure,
        message: "norm_explanation_text: the text has no end".to_owned(),
    })?;
    Ok(text.to_string_lossy().into_owned())
}
