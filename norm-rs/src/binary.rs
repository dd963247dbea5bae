//! Element-wise functions of two tensors: [`Primitive`](BinaryPrimitive).
//!
//! ```text
//! dst = f(src0_scale*src0, src1_scale*src1), or condition != 0 ? src0 : src1
//! ```
//!
//! [`Binary`] has the functions. Each dimension of dst equals that of a source; the other source has the same, or 1 to
//! broadcast. Sources and destination are f32, bf16, f16, s32, s8, u8, f8_e4m3 or f8_e5m2, in any combination; the
//! condition is s8.

use std::fmt;
use std::ptr;

use norm_sys as sys;

pub use crate::post_ops::Binary;

use crate::attr::Attr;
use crate::engine::Engine;
use crate::error::Result;
use crate::handle::Handle;
use crate::memory::{Access, Memory};
use crate::memory_desc::MemoryDesc;
use crate::primitive::{Arg, Args, Call, Primitive};
use crate::stream::Stream;

/// The operation.
#[derive(Clone, Copy, Debug)]
enum Function<'b> {
    Binary(Binary),
    /// With the descriptor of the condition.
    Select(&'b MemoryDesc),
}

/// Builds a [`BinaryPrimitive`]; see [`BinaryPrimitive::new`].
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct BinaryBuilder<'b> {
    engine: &'b Engine,
    function: Function<'b>,
    sources: [&'b MemoryDesc; 2],
    dst: Option<&'b MemoryDesc>,
    attr: Option<&'b Attr>,
}

impl<'b> BinaryBuilder<'b> {
    /// The destination. Default: dimensions, type and layout of the first source, which is then not
    /// broadcast.
    pub fn dst(self, desc: &'b MemoryDesc) -> Self {
        Self { dst: Some(desc), ..self }
    }

    /// Attributes: scales of [`Arg::Src`] and [`Arg::Src1`]; sum, eltwise and binary
    /// post-operations. `build` copies them.
    pub fn attr(self, attr: &'b Attr) -> Self {
        Self { attr: Some(attr), ..self }
    }

    /// Validates the problem and chooses the implementation.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments) if dimensions do not
    /// broadcast or the condition is not s8.
    /// [`ErrorKind::Unimplemented`](crate::ErrorKind::Unimplemented) for types and attributes that
    /// the operation does not support.
    pub fn build(self) -> Result<BinaryPrimitive> {
        let Self { engine, function, sources: [src0, src1], dst, attr } = self;
        let (algorithm, condition) = match function {
            Function::Binary(binary) => (binary.to_c(), ptr::null()),
            Function::Select(condition) => (sys::norm_binary_select, condition.as_ptr()),
        };
        // SAFETY: all objects are valid, NULL is allowed for attr, and for the condition unless it is
        // a choice; on success a primitive descriptor that the caller owns is stored.
        let desc = unsafe {
            Handle::create(|out| {
                sys::norm_binary_primitive_desc_create_v2(
                    out,
                    engine.as_ptr(),
                    algorithm,
                    src0.as_ptr(),
                    src1.as_ptr(),
                    condition,
                    dst.unwrap_or(src0).as_ptr(),
                    attr.map_or(ptr::null(), Attr::as_ptr),
                )
            })
        }?;
        Primitive::new(&desc).map(BinaryPrimitive)
    }
}

/// A function of two tensors. Threads can share it and execute it at the same time.
///
/// ```
/// use norm_rs::binary::{Binary, BinaryArgs, BinaryPrimitive};
/// use norm_rs::{DataType, Engine, Memory, MemoryDesc, Stream};
///
/// let engine = Engine::cpu()?;
/// let rows = MemoryDesc::dense(&[2, 2], DataType::F32)?;
/// let row = MemoryDesc::dense(&[1, 2], DataType::F32)?;
/// let add = BinaryPrimitive::new(&engine, Binary::Add, &rows, &row).build()?;
///
/// let src0 = Memory::from_slice(&engine, &rows, &[1.0f32, 2.0, 3.0, 4.0])?;
/// let src1 = Memory::from_slice(&engine, &row, &[10.0f32, 20.0])?;
/// let mut dst = Memory::new(&engine, &rows)?;
/// add.execute(&Stream::new(&engine)?, BinaryArgs::new(&src0, &src1, &mut dst))?;
/// assert_eq!(dst.as_slice::<f32>()?, [11.0, 22.0, 13.0, 24.0]);
/// # Ok::<(), norm_rs::Error>(())
/// ```
pub struct BinaryPrimitive(Primitive);

impl BinaryPrimitive {
    /// A function of two sources with the same number of dimensions, 1 to 12.
    #[expect(clippy::new_ret_no_self, reason = "as in layer_normalization")]
    pub fn new<'b>(
        engine: &'b Engine,
        function: Binary,
        src0: &'b MemoryDesc,
        src1: &'b MemoryDesc,
    ) -> BinaryBuilder<'b> {
        let (function, sources) = (Function::Binary(function), [src0, src1]);
        BinaryBuilder { engine, function, sources, dst: None, attr: None }
    }

    /// `condition != 0 ? src0 : src1`, with an s8 for the condition.
    pub fn select<'b>(
        engine: &'b Engine,
        condition: &'b MemoryDesc,
        src0: &'b MemoryDesc,
        src1: &'b MemoryDesc,
    ) -> BinaryBuilder<'b> {
        let (function, sources) = (Function::Select(condition), [src0, src1]);
        BinaryBuilder { engine, function, sources, dst: None, attr: None }
    }

    /// Computes `dst`, which is complete on return.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments), naming the argument: it
    /// is missing, not used, or does not have the primitive's descriptor. On failure nothing is
    /// written.
    ///
    /// # Panics
    /// As [`Primitive::execute`].
    pub fn execute(&self, stream: &Stream<'_>, args: BinaryArgs<'_>) -> Result<()> {
        self.0.execute(stream, args.0)
    }

    /// This primitive with arguments, for [`Stream::execute_many`].
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub fn with<'x>(&'x self, args: BinaryArgs<'x>) -> Result<Call<'x>> {
        self.0.with(args.0)
    }

    /// The primitive: descriptors of the arguments, name of the implementation.
    pub fn primitive(&self) -> &Primitive {
        &self.0
    }
}

impl fmt::Debug for BinaryPrimitive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BinaryPrimitive").field(&self.0).finish()
    }
}

/// The memories of one execution.
#[derive(Debug)]
#[must_use]
pub struct BinaryArgs<'x>(Args<'x>);

crate::args::dropout_args!(BinaryArgs);

impl<'x> BinaryArgs<'x> {
    /// From `src0` and `src1` to `dst`.
    pub fn new<A: Access, B: Access>(
        src0: &'x Memory<'_, A>,
        src1: &'x Memory<'_, B>,
        dst: &'x mut Memory<'_>,
    ) -> Self {
        Self(Args::new().input(Arg::Src, src0).input(Arg::Src1, src1).output(Arg::Dst, dst))
    }

    /// `src0` is overwritten with `dst`; their types and layouts must be the same.
    pub fn in_place<A: Access>(src0_dst: &'x mut Memory<'_>, src1: &'x Memory<'_, A>) -> Self {
        Self(Args::new().in_place(Arg::Src, Arg::Dst, src0_dst).input(Arg::Src1, src1))
    }

    /// `src1` is overwritten with `dst`; their types and layouts must be the same.
    pub fn in_place_of_src1<A: Access>(
        src0: &'x Memory<'_, A>,
        src1_dst: &'x mut Memory<'_>,
    ) -> Self {
        Self(Args::new().input(Arg::Src, src0).in_place(Arg::Src1, Arg::Dst, src1_dst))
    }

    /// The condition of [`BinaryPrimitive::select`].
    pub fn select<A: Access>(self, condition: &'x Memory<'_, A>) -> Self {
        Self(self.0.input(Arg::Src2, condition))
    }

    /// The scale that the first source is multiplied by, with [`Attr::set_scales`] of [`Arg::Src`].
    pub fn src_scale<A: Access>(self, scale: &'x Memory<'_, A>) -> Self {
        Self(self.0.input(Arg::SrcScale, scale))
    }

    /// The scale that the second source is multiplied by, with [`Attr::set_scales`] of
    /// [`Arg::Src1`].
    pub fn src1_scale<A: Access>(self, scale: &'x Memory<'_, A>) -> Self {
        Self(self.0.input(Arg::Src1Scale, scale))
    }

    /// The operand of entry `index` of the [post-operations](crate::post_ops::PostOps).
    pub fn operand<A: Access>(self, index: usize, operand: &'x Memory<'_, A>) -> Self {
        Self(self.0.operand(index, operand))
    }

    /// The condition of entry `index`, which is a [`select`](crate::post_ops::PostOps::select).
    pub fn condition<A: Access>(self, index: usize, condition: &'x Memory<'_, A>) -> Self {
        Self(self.0.condition(index, condition))
    }
}
