//! Primitive attributes: [`Attr`].

use std::fmt;

use norm_sys as sys;

use crate::error::{Result, check};
use crate::handle::Handle;
use crate::post_ops::PostOps;
use crate::primitive::Arg;

/// Who provides the scratchpad.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ScratchpadMode {
    /// The library, from a buffer per calling thread that grows on first use.
    #[default]
    Library,
    /// The caller, as an argument of each execution with the descriptor
    /// [`Primitive::scratchpad_desc`](crate::primitive::Primitive::scratchpad_desc).
    User,
}

/// Attributes of a primitive.
pub struct Attr(Handle<sys::norm_primitive_attr>);

impl Attr {
    /// Default values: the library provides the scratchpad.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory).
    pub fn new() -> Result<Self> {
        // SAFETY: on success attributes that the caller owns are stored.
        unsafe { Handle::create(|out| sys::norm_primitive_attr_create(out)) }.map(Self)
    }

    /// Sets who provides the scratchpad.
    ///
    /// # Errors
    /// None in practice; only an internal error of the library.
    pub fn set_scratchpad_mode(&mut self, mode: ScratchpadMode) -> Result<()> {
        let mode = match mode {
            ScratchpadMode::Library => sys::norm_scratchpad_mode_library,
            ScratchpadMode::User => sys::norm_scratchpad_mode_user,
        };
        // SAFETY: the attributes are valid and `&mut self` makes the change exclusive.
        check(unsafe { sys::norm_primitive_attr_set_scratchpad_mode(self.0.as_ptr(), mode) })
    }

    /// Adds f32 scales to [`Arg::Src`] or [`Arg::Dst`]. Their values are passed as
    /// [`Arg::SrcScale`] and [`Arg::DstScale`]. If bit `d` of `mask` is set, there is one scale per
    /// index of dimension `d`; mask 0 means one scale for the tensor. The source is multiplied by
    /// its scale, the destination is divided by its scale.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments) for another argument.
    pub fn set_scales(&mut self, arg: Arg, mask: u16) -> Result<()> {
        // SAFETY: the attributes are valid and `&mut self` makes the change exclusive.
        check(unsafe {
            sys::norm_primitive_attr_set_scales_mask(self.0.as_ptr(), arg.to_c(), mask.into())
        })
    }

    /// Replaces the post-operations with a copy of `list`.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory).
    pub fn set_post_ops(&mut self, list: &PostOps) -> Result<()> {
        // SAFETY: as above; the list is valid.
        check(unsafe { sys::norm_primitive_attr_set_post_ops(self.0.as_ptr(), list.as_ptr()) })
    }

    /// Who provides the scratchpad.
    ///
    /// # Errors
    /// None in practice; only an internal error of the library.
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
