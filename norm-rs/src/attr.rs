//! What a primitive is told besides its problem: [`Attr`].

use std::fmt;

use norm_sys as sys;

use crate::error::{Result, check};
use crate::handle::Handle;
use crate::post_ops::PostOps;
use crate::primitive::Arg;

/// Who provides the temporary memory of an execution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ScratchpadMode {
    /// The library, from a buffer per calling thread that grows on first use.
    #[default]
    Library,
    /// The caller, as an argument of each execution, described by
    /// [`Primitive::scratchpad_desc`](crate::primitive::Primitive::scratchpad_desc).
    User,
}

/// Attributes of a primitive.
pub struct Attr(Handle<sys::norm_primitive_attr>);

impl Attr {
    /// The defaults: the library provides the scratchpad.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory).
    pub fn new() -> Result<Self> {
        // SAFETY: on success attributes that the caller owns are stored.
        unsafe { Handle::create(|out| sys::norm_primitive_attr_create(out)) }.map(Self)
    }

    /// Says who provides the temporary memory.
    ///
    /// # Errors
    /// None in practice; a defect of the library would be one.
    pub fn set_scratchpad_mode(&mut self, mode: ScratchpadMode) -> Result<()> {
        let mode = match mode {
            ScratchpadMode::Library => sys::norm_scratchpad_mode_library,
            ScratchpadMode::User => sys::norm_scratchpad_mode_user,
        };
        // SAFETY: the attributes are valid and `&mut self` makes the change exclusive.
        check(unsafe { sys::norm_primitive_attr_set_scratchpad_mode(self.0.as_ptr(), mode) })
    }

    /// Gives [`Arg::Src`] or [`Arg::Dst`] scales in f32, which are [`Arg::SrcScale`] and
    /// [`Arg::DstScale`] of the execution: bit `d` of `mask` asks for one for each index of dimension
    /// `d`, 0 for one for the tensor. src is multiplied by its scale, dst is divided by its own.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments) for another argument.
    pub fn set_scales(&mut self, arg: Arg, mask: u16) -> Result<()> {
        // SAFETY: the attributes are valid and `&mut self` makes the change exclusive.
        check(unsafe {
            sys::norm_primitive_attr_set_scales_mask(self.0.as_ptr(), arg.to_c(), mask.into())
        })
    }

    /// Replaces the post-operations by a copy of `list`.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory).
    pub fn set_post_ops(&mut self, list: &PostOps) -> Result<()> {
        // SAFETY: as above; the list is valid.
        check(unsafe { sys::norm_primitive_attr_set_post_ops(self.0.as_ptr(), list.as_ptr()) })
    }

    /// Who provides the temporary memory.
    ///
    /// # Errors
    /// None in practice; a defect of the library would be one.
    pub fn scratchpad_mode(&self) -> Result<ScratchpadMode> {
        let mut mode = sys::norm_scratchpad_mode_library;
        // SAFETY: the attributes are valid and `mode` is a place for the answer.
        check(unsafe { sys::norm_primitive_attr_get_scratchpad_mode(self.as_ptr(), &mut mode) })?;
        Ok(if mode == sys::norm_scratchpad_mode_user {
            ScratchpadMode::User
        } else {
            ScratchpadMode::Library
        })
    }

    pub(crate) fn as_ptr(&self) -> sys::const_norm_primitive_attr_t {
        self.0.as_ptr()
    }
}

impl fmt::Debug for Attr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attr").field("scratchpad_mode", &self.scratchpad_mode()).finish()
    }
}
