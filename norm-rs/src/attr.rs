//! Primitive attributes: [`Attr`].

use std::fmt;
use std::ptr;

use norm_sys as sys;

use crate::data_type::DataType;
use crate::error::{Result, check};
use crate::handle::Handle;
#[cfg(doc)]
use crate::layer_normalization::Flags;
use crate::memory_desc::MemoryDesc;
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

/// What is normalized where a residual is added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ResidualRounding {
    /// The sum as it is stored, in its type (that of the residual if it is not stored): the bits of
    /// an addition followed by the normalization of its result.
    #[default]
    Rounded,
    /// The sum in f32.
    Exact,
}

/// The function of a gate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Gating {
    /// `gate / (1 + exp(-alpha*gate))`; with an alpha of 1 this is SiLU.
    Swish(f32),
    /// `1 / (1 + exp(-gate))`
    Logistic,
}

/// How the library computes scales of the destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DynamicScale {
    /// The largest absolute value of a group over the largest value of the type, as f32 or
    /// f8_e4m3.
    Largest(DataType),
    /// A power of two, as e8m0 (OCP MX).
    PowerOfTwo,
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

    /// Adds f32 scales to [`Arg::Src`] or [`Arg::Dst`]; for attention to [`Arg::Keys`] or [`Arg::Values`]. Pass their
    /// values as [`Arg::SrcScale`] and [`Arg::DstScale`], or [`Arg::KeyScales`] and [`Arg::ValueScales`]. If bit `d` of
    /// `mask` is set, there is one scale per index of dimension `d`; mask 0 means one scale for the tensor. The source
    /// is multiplied by its scale; the destination is divided by its scale.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments) for another argument.
    pub fn set_scales(&mut self, arg: Arg, mask: u16) -> Result<()> {
        // SAFETY: the attributes are valid and `&mut self` makes the change exclusive.
        check(unsafe {
            sys::norm_primitive_attr_set_scales_mask(self.0.as_ptr(), arg.to_c(), mask.into())
        })
    }

    /// [`set_scales`](Self::set_scales) with one scale for the tensor, of f32, bf16 or f16, that is passed as a
    /// [host scalar](crate::Memory::host_scalar). Attention does not support it.
    ///
    /// ```
    /// use norm_rs::softmax::{Forward, ForwardArgs};
    /// use norm_rs::primitive::Arg;
    /// use norm_rs::{Attr, DataType, Engine, Memory, MemoryDesc, Stream};
    ///
    /// let engine = Engine::cpu()?;
    /// let row = MemoryDesc::dense(&[1, 2], DataType::F32)?;
    /// let mut attr = Attr::new()?;
    /// attr.set_host_scale(Arg::Src, DataType::F32)?;
    /// let softmax = Forward::new(&engine, &row, 1).attr(&attr).build()?;
    /// let src = Memory::from_slice(&engine, &row, &[3.0f32, 3.0])?;
    /// let mut dst = Memory::new(&engine, &row)?;
    /// let scale = Memory::host_scalar(4.0f32)?;
    /// let args = ForwardArgs::new(&src, &mut dst).src_scale(&scale);
    /// softmax.execute(&Stream::new(&engine)?, args)?;
    /// assert_eq!(dst.as_slice::<f32>()?, [2.0, 2.0]);
    /// # Ok::<(), norm_rs::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`set_scales`](Self::set_scales), also for a type that scales cannot have.
    pub fn set_host_scale(&mut self, arg: Arg, data_type: DataType) -> Result<()> {
        let (attr, arg, none) = (self.0.as_ptr(), arg.to_c(), ptr::null());
        // SAFETY: as above; there are no groups.
        check(unsafe {
            sys::norm_primitive_attr_set_scales_v2(attr, arg, 0, 0, none, data_type.to_c(), 1)
        })
    }

    /// Adds a residual, [`Arg::Residual`], to the source before it is normalized. The sum is optionally written to
    /// [`Arg::ResidualDst`], with the descriptor `sum`. Both have the dimensions of `src`. Backward reads the gradient
    /// of the sum as [`Arg::DiffResidualDst`], and requires `sum`.
    ///
    /// ```
    /// use norm_rs::attr::ResidualRounding;
    /// use norm_rs::layer_normalization::{Flags, Forward, ForwardArgs};
    /// use norm_rs::{Attr, DataType, Engine, Memory, MemoryDesc, Stream};
    ///
    /// let engine = Engine::cpu()?;
    /// let stream = Stream::new(&engine)?;
    /// let rows = MemoryDesc::dense(&[1, 2], DataType::F32)?;
    /// let mut attr = Attr::new()?;
    /// attr.set_residual(&rows, Some(&rows), ResidualRounding::Rounded)?;
    /// let norm = Forward::inference(&engine, &rows)
    ///     .flags(Flags::RMS_NORM)
    ///     .epsilon(0.0)
    ///     .attr(&attr)
    ///     .build()?;
    ///
    /// let (block, mut stream_of_sums, mut normalized) = ([0.5f32, 3.0], [0.5f32, 4.0], [0.0f32; 2]);
    /// let src = Memory::from_slice(&engine, &rows, &block)?;
    /// let mut sum = Memory::from_mut_slice(&engine, &rows, &mut stream_of_sums)?;
    /// let mut dst = Memory::from_mut_slice(&engine, &rows, &mut normalized)?;
    /// norm.execute(&stream, ForwardArgs::new(&src, &mut dst).residual_in_place(&mut sum))?;
    /// assert_eq!(stream_of_sums, [1.0, 7.0]); // root mean square 5
    /// assert_eq!(normalized, [0.2, 1.4]);
    /// # Ok::<(), norm_rs::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments) for empty descriptors or
    /// ones without a layout.
    pub fn set_residual(
        &mut self,
        residual: &MemoryDesc,
        sum: Option<&MemoryDesc>,
        rounding: ResidualRounding,
    ) -> Result<()> {
        let rounding = match rounding {
            ResidualRounding::Rounded => sys::norm_residual_rounded,
            ResidualRounding::Exact => sys::norm_residual_exact,
        };
        let sum = sum.map_or(ptr::null(), MemoryDesc::as_ptr);
        let (attr, residual) = (self.0.as_ptr(), residual.as_ptr());
        // SAFETY: as above; the descriptors are valid or NULL.
        check(unsafe { sys::norm_primitive_attr_set_residual(attr, residual, sum, rounding) })
    }

    /// Multiplies by a function of a gate, [`Arg::Gate`] with this descriptor: the input of the normalization with
    /// [`Flags::GATE_INPUT`], the result with [`Flags::GATE_OUTPUT`].
    ///
    /// ```
    /// use norm_rs::attr::Gating;
    /// use norm_rs::layer_normalization::{Flags, Forward, ForwardArgs};
    /// use norm_rs::{Attr, DataType, Engine, Memory, MemoryDesc, Stream};
    ///
    /// let engine = Engine::cpu()?;
    /// let stream = Stream::new(&engine)?;
    /// let rows = MemoryDesc::dense(&[1, 2], DataType::F32)?;
    /// let mut attr = Attr::new()?;
    /// attr.set_gate(&rows, Gating::Swish(1.0))?;
    /// let norm = Forward::inference(&engine, &rows)
    ///     .flags(Flags::RMS_NORM | Flags::GATE_OUTPUT)
    ///     .epsilon(0.0)
    ///     .attr(&attr)
    ///     .build()?;
    ///
    /// let src = Memory::from_slice(&engine, &rows, &[1.0f32, 7.0])?; // root mean square 5
    /// let gate = Memory::from_slice(&engine, &rows, &[0.0f32, 1.0])?;
    /// let mut dst = Memory::new(&engine, &rows)?;
    /// norm.execute(&stream, ForwardArgs::new(&src, &mut dst).gate(&gate))?;
    /// let got = dst.as_slice::<f32>()?;
    /// assert!(got[0] == 0.0 && (got[1] - 1.4 * 0.731_058_6).abs() < 1e-6);
    /// # Ok::<(), norm_rs::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments) for an empty descriptor or
    /// one without a layout.
    pub fn set_gate(&mut self, gate: &MemoryDesc, function: Gating) -> Result<()> {
        let (kind, alpha) = match function {
            Gating::Swish(alpha) => (sys::norm_eltwise_swish, alpha),
            Gating::Logistic => (sys::norm_eltwise_logistic, 0.0),
        };
        let (attr, gate) = (self.0.as_ptr(), gate.as_ptr());
        // SAFETY: as above; the descriptor is valid.
        check(unsafe { sys::norm_primitive_attr_set_gate(attr, gate, kind, alpha) })
    }

    /// RMS normalization by the mean square of the first `elements` of each row; 0, the default, means all.
    ///
    /// # Errors
    /// None in practice. More elements than a row has are an error of the primitive.
    pub fn set_partial_norm(&mut self, elements: usize) -> Result<()> {
        let elements = i64::try_from(elements).unwrap_or(i64::MAX);
        // SAFETY: the attributes are valid and `&mut self` makes the change exclusive.
        check(unsafe { sys::norm_primitive_attr_set_partial_norm(self.0.as_ptr(), elements) })
    }

    /// The library computes scales for groups of `group` elements of each row of the destination,
    /// which has `ndims` dimensions and is s8, u8, f8_e4m3 or f8_e5m2. They are the output
    /// [`Arg::DstScale`], with the dimensions of `dst` and the last divided by `group`.
    ///
    /// ```
    /// use norm_rs::attr::DynamicScale;
    /// use norm_rs::layer_normalization::{Flags, Forward, ForwardArgs};
    /// use norm_rs::primitive::Arg;
    /// use norm_rs::{Attr, DataType, Engine, Memory, MemoryDesc, Stream};
    ///
    /// let engine = Engine::cpu()?;
    /// let stream = Stream::new(&engine)?;
    /// let rows = MemoryDesc::dense(&[1, 2], DataType::F32)?;
    /// let quantized = MemoryDesc::dense(&[1, 2], DataType::S8)?;
    /// let mut attr = Attr::new()?;
    /// attr.set_dynamic_scales(DynamicScale::Largest(DataType::F32), 2, 2)?;
    /// let norm = Forward::inference(&engine, &rows)
    ///     .dst(&quantized)
    ///     .flags(Flags::RMS_NORM)
    ///     .epsilon(0.0)
    ///     .attr(&attr)
    ///     .build()?;
    ///
    /// let src = Memory::from_slice(&engine, &rows, &[1.0f32, 7.0])?; // root mean square 5
    /// let mut dst = Memory::new(&engine, &quantized)?;
    /// let of_scales = norm.primitive().arg_desc(Arg::DstScale)?.expect("an output");
    /// let mut scales = Memory::new(&engine, &of_scales)?;
    /// norm.execute(&stream, ForwardArgs::new(&src, &mut dst).dst_scale_out(&mut scales))?;
    /// assert_eq!(dst.as_slice::<i8>()?, [18, 127]);
    /// assert!((scales.as_slice::<f32>()?[0] - 1.4 / 127.0).abs() < 1e-6);
    /// # Ok::<(), norm_rs::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments) or
    /// [`ErrorKind::Unimplemented`](crate::ErrorKind::Unimplemented) for a type that scales cannot have.
    pub fn set_dynamic_scales(
        &mut self,
        scale: DynamicScale,
        group: usize,
        ndims: usize,
    ) -> Result<()> {
        let (data_type, mode) = match scale {
            DynamicScale::Largest(data_type) => (data_type, sys::norm_quantization_mode_dynamic_fp),
            DynamicScale::PowerOfTwo => (DataType::E8m0, sys::norm_quantization_mode_dynamic_mx),
        };
        let (groups, mask) = groups(group, ndims);
        // SAFETY: as above; there are two group sizes.
        check(unsafe {
            sys::norm_primitive_attr_set_scales_v3(
                self.0.as_ptr(),
                Arg::Dst.to_c(),
                mask,
                2,
                groups.as_ptr(),
                data_type.to_c(),
                0,
                mode,
            )
        })
    }

    /// Dynamic scales come with s32 zero points, the output [`Arg::DstZeroPoint`]; the destination is u8. `group` and
    /// `ndims` are those of [`set_dynamic_scales`](Self::set_dynamic_scales).
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments) for a group of 0.
    pub fn set_dynamic_zero_points(&mut self, group: usize, ndims: usize) -> Result<()> {
        let (groups, mask) = groups(group, ndims);
        // SAFETY: as above; there are two group sizes.
        check(unsafe {
            sys::norm_primitive_attr_set_zero_points_v2(
                self.0.as_ptr(),
                Arg::Dst.to_c(),
                mask,
                2,
                groups.as_ptr(),
                DataType::S32.to_c(),
                0,
            )
        })
    }

    /// Forward softmax also writes `ln(sum(exp(src)))` of each row to [`Arg::SoftmaxStats`], with this descriptor: f32,
    /// the dimensions of `src` with 1 for the axis.
    ///
    /// ```
    /// use norm_rs::softmax::{Forward, ForwardArgs};
    /// use norm_rs::{Attr, DataType, Engine, Memory, MemoryDesc, Stream};
    ///
    /// let engine = Engine::cpu()?;
    /// let rows = MemoryDesc::dense(&[1, 2], DataType::F32)?;
    /// let of_stats = MemoryDesc::dense(&[1, 1], DataType::F32)?;
    /// let mut attr = Attr::new()?;
    /// attr.set_softmax_stats(&of_stats)?;
    /// let softmax = Forward::new(&engine, &rows, 1).attr(&attr).build()?;
    ///
    /// let src = Memory::from_slice(&engine, &rows, &[3.0f32, 3.0])?;
    /// let (mut dst, mut stats) = (Memory::new(&engine, &rows)?, Memory::new(&engine, &of_stats)?);
    /// let args = ForwardArgs::new(&src, &mut dst).softmax_stats(&mut stats);
    /// softmax.execute(&Stream::new(&engine)?, args)?;
    /// assert_eq!(stats.as_slice::<f32>()?, [3.0 + 2f32.ln()]);
    /// # Ok::<(), norm_rs::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Unimplemented`](crate::ErrorKind::Unimplemented) if the type is not f32.
    pub fn set_softmax_stats(&mut self, stats: &MemoryDesc) -> Result<()> {
        let (attr, stats) = (self.0.as_ptr(), stats.as_ptr());
        // SAFETY: as above; the descriptor is valid.
        check(unsafe { sys::norm_primitive_attr_set_softmax_stats(attr, stats) })
    }

    /// Forward softmax, eltwise and binary set elements to 0 at random before the post-operations, and multiply the
    /// others by `1/(1 - p)`. [`Arg::DropoutProbability`] is `p`, f32; [`Arg::DropoutSeed`] is s64, as is, with
    /// `has_offset`, [`Arg::DropoutOffset`]. The mask is stored in [`Arg::DropoutMask`] if it has a descriptor: u8,
    /// with the dimensions of `dst`.
    ///
    /// ```
    /// use norm_rs::eltwise::{Eltwise, Forward, ForwardArgs};
    /// use norm_rs::{Attr, DataType, Engine, Memory, MemoryDesc, Stream};
    ///
    /// let engine = Engine::cpu()?;
    /// let rows = MemoryDesc::dense(&[100], DataType::F32)?;
    /// let single = MemoryDesc::dense(&[1], DataType::F32)?;
    /// let seed = MemoryDesc::dense(&[1], DataType::S64)?;
    /// let mut attr = Attr::new()?;
    /// attr.set_dropout(None, true)?;
    /// let relu = Forward::new(&engine, &rows, Eltwise::Relu).attr(&attr).build()?;
    ///
    /// let src = Memory::from_slice(&engine, &rows, &[1.0f32; 100])?;
    /// let mut dst = Memory::new(&engine, &rows)?;
    /// let probability = Memory::from_slice(&engine, &single, &[0.5f32])?;
    /// let offset = Memory::from_slice(&engine, &seed, &[1i64])?;
    /// let seed = Memory::from_slice(&engine, &seed, &[7i64])?;
    /// let args = ForwardArgs::new(&src, &mut dst).dropout(&probability, &seed);
    /// let args = args.dropout_offset(&offset);
    /// relu.execute(&Stream::new(&engine)?, args)?;
    /// let kept = dst.as_slice::<f32>()?.iter().filter(|x| **x == 2.0).count();
    /// assert!((30..70).contains(&kept));
    /// # Ok::<(), norm_rs::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments) for a mask that is not u8.
    pub fn set_dropout(&mut self, mask: Option<&MemoryDesc>, has_offset: bool) -> Result<()> {
        self.dropout(mask, has_offset, false)
    }

    /// [`set_dropout`](Self::set_dropout) with probability, seed and offset as [host scalars](crate::Memory::host_scalar).
    ///
    /// # Errors
    /// As [`set_dropout`](Self::set_dropout).
    pub fn set_host_dropout(&mut self, mask: Option<&MemoryDesc>, has_offset: bool) -> Result<()> {
        self.dropout(mask, has_offset, true)
    }

    fn dropout(
        &mut self,
        mask: Option<&MemoryDesc>,
        has_offset: bool,
        on_host: bool,
    ) -> Result<()> {
        let nothing = MemoryDesc::empty()?;
        let (attr, mask) = (self.0.as_ptr(), mask.unwrap_or(&nothing).as_ptr());
        let (offset, on_host) = (i32::from(has_offset), i32::from(on_host));
        // SAFETY: as above; the descriptor is valid.
        check(unsafe {
            sys::norm_primitive_attr_set_dropout_v2(attr, mask, sys::norm_s64, offset, on_host)
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

/// The sizes of groups along the last two dimensions, and the mask of all dimensions.
fn groups(group: usize, ndims: usize) -> ([i64; 2], i32) {
    ([1, i64::try_from(group).unwrap_or(i64::MAX)], (1_i32 << ndims.min(12)) - 1)
}

impl fmt::Debug for Attr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attr").field("scratchpad_mode", &self.scratchpad_mode()).finish()
    }
}
