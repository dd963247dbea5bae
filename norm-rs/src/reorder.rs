//! Copies a tensor into another layout and data type: [`Reorder`].
//!
//! ```text
//! x   = src_scale * src
//! x  += sum_scale * dst        (with PostOps::sum; dst is the previous content)
//! dst = x / dst_scale
//! ```
//!
//! The result is rounded to nearest even; e8m0 is rounded down. Integers saturate, and NaN becomes 0.
//! Without attributes and with equal types the bytes are copied; otherwise s64 beyond 2^53 are first
//! rounded to f64.

use std::fmt;
use std::ptr;

use norm_sys as sys;

use crate::attr::Attr;
use crate::engine::Engine;
use crate::error::Result;
use crate::handle::Handle;
use crate::memory::{Access, Memory};
use crate::memory_desc::MemoryDesc;
use crate::primitive::{Arg, Args, Call, Primitive};
use crate::stream::Stream;

/// An executable reorder. Threads can share it.
///
/// ```
/// use norm_rs::reorder::{Reorder, ReorderArgs};
/// use norm_rs::{DataType, Engine, Memory, MemoryDesc, Stream, Tag};
///
/// let engine = Engine::cpu()?;
/// let rows = MemoryDesc::dense(&[2, 3], DataType::F32)?;
/// let turned = MemoryDesc::with_tag(&[2, 3], DataType::S8, Tag::Ba)?;
/// let src = Memory::from_slice(&engine, &rows, &[1.0f32, 2.5, 300.0, -4.0, 5.0, 6.0])?;
/// let mut dst = Memory::new(&engine, &turned)?;
/// let reorder = Reorder::new(&engine, &rows, &turned)?;
/// reorder.execute(&Stream::new(&engine)?, ReorderArgs::new(&src, &mut dst))?;
/// assert_eq!(dst.as_slice::<i8>()?, [1, -4, 2, 5, 127, 6]);
/// # Ok::<(), norm_rs::Error>(())
/// ```
pub struct Reorder(Primitive);

impl Reorder {
    /// A reorder from `src` to `dst`, which have the same dimensions and any layouts except
    /// [`Tag::Any`](crate::Tag::Any).
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments) otherwise.
    pub fn new(engine: &Engine, src: &MemoryDesc, dst: &MemoryDesc) -> Result<Self> {
        Self::create(engine, src, dst, ptr::null())
    }

    /// The same with scales of src and dst, and a sum.
    ///
    /// # Errors
    /// As [`new`](Self::new), and [`ErrorKind::Unimplemented`](crate::ErrorKind::Unimplemented) for
    /// other attributes.
    pub fn with_attr(
        engine: &Engine,
        src: &MemoryDesc,
        dst: &MemoryDesc,
        attr: &Attr,
    ) -> Result<Self> {
        Self::create(engine, src, dst, attr.as_ptr())
    }

    fn create(
        engine: &Engine,
        src: &MemoryDesc,
        dst: &MemoryDesc,
        attr: sys::const_norm_primitive_attr_t,
    ) -> Result<Self> {
        let engine = engine.as_ptr();
        // SAFETY: all objects are valid, NULL is allowed for attr; on success a primitive descriptor
        // that the caller owns is stored.
        let desc = unsafe {
            Handle::create(|out| {
                sys::norm_reorder_primitive_desc_create(
                    out,
                    src.as_ptr(),
                    engine,
                    dst.as_ptr(),
                    engine,
                    attr,
                )
            })
        }?;
        Primitive::new(&desc).map(Self)
    }

    /// Copies the data. The output is complete on return.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments), naming the argument. On
    /// failure nothing is written.
    ///
    /// # Panics
    /// As [`Primitive::execute`].
    pub fn execute(&self, stream: &Stream<'_>, args: ReorderArgs<'_>) -> Result<()> {
        self.0.execute(stream, args.0)
    }

    /// This primitive with arguments, for [`Stream::execute_many`].
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub fn with<'x>(&'x self, args: ReorderArgs<'x>) -> Result<Call<'x>> {
        self.0.with(args.0)
    }

    /// The primitive: descriptors of the arguments, name of the implementation.
    pub fn primitive(&self) -> &Primitive {
        &self.0
    }
}

impl fmt::Debug for Reorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reorder").field(&self.0).finish()
    }
}

/// The memories of one reorder.
#[derive(Debug)]
#[must_use]
pub struct ReorderArgs<'x>(Args<'x>);

impl<'x> ReorderArgs<'x> {
    /// From `src` to `dst`.
    pub fn new<A: Access>(src: &'x Memory<'_, A>, dst: &'x mut Memory<'_>) -> Self {
        Self(Args::new().input(Arg::Src, src).output(Arg::Dst, dst))
    }

    /// The scale of the source, with [`Attr::set_scales`].
    pub fn src_scale<A: Access>(self, scale: &'x Memory<'_, A>) -> Self {
        Self(self.0.input(Arg::SrcScale, scale))
    }

    /// The scale of the destination, with [`Attr::set_scales`].
    pub fn dst_scale<A: Access>(self, scale: &'x Memory<'_, A>) -> Self {
        Self(self.0.input(Arg::DstScale, scale))
    }
}
