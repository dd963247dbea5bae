//! The backward pass: builder, primitive, arguments.

use std::fmt;
use std::ptr;

use norm_sys as sys;

use super::Eltwise;
use crate::attr::Attr;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::handle::Handle;
use crate::memory::{Access, Memory};
use crate::memory_desc::MemoryDesc;
use crate::primitive::{Arg, Args, Call, Primitive};
use crate::stream::Stream;

/// Builds a [`Backward`]; see [`Backward::new`].
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct BackwardBuilder<'b> {
    engine: &'b Engine,
    data: &'b MemoryDesc,
    diff_dst: Option<&'b MemoryDesc>,
    diff_src: Option<&'b MemoryDesc>,
    function: Eltwise,
    from_dst: bool,
    alpha: f32,
    beta: f32,
    attr: Option<&'b Attr>,
}

impl<'b> BackwardBuilder<'b> {
    /// The gradient with respect to `dst`: the dimensions of the data. Default: its type and layout.
    pub fn diff_dst(self, desc: &'b MemoryDesc) -> Self {
        Self { diff_dst: Some(desc), ..self }
    }

    /// The gradient with respect to `src`: the dimensions of the data. Default: type and layout of
    /// `diff_dst`.
    pub fn diff_src(self, desc: &'b MemoryDesc) -> Self {
        Self { diff_src: Some(desc), ..self }
    }

    /// The data is `dst` as forward gave it, for relu and elu (alpha not negative), tanh, sqrt,
    /// logistic and exp. Default: the data is `src`.
    pub fn from_dst(self) -> Self {
        Self { from_dst: true, ..self }
    }

    /// The parameter `a` of the function. Default: 0.
    pub fn alpha(self, alpha: f32) -> Self {
        Self { alpha, ..self }
    }

    /// The parameter `b` of the function. Default: 0.
    pub fn beta(self, beta: f32) -> Self {
        Self { beta, ..self }
    }

    /// Attributes: the scratchpad mode. `build` copies them.
    pub fn attr(self, attr: &'b Attr) -> Self {
        Self { attr: Some(attr), ..self }
    }

    /// Validates the problem and chooses the implementation.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments) if the dimensions differ,
    /// a parameter is NaN or out of its range, or the function has no such gradient.
    /// [`ErrorKind::Unimplemented`](crate::ErrorKind::Unimplemented) for types and attributes that
    /// the operation does not support.
    pub fn build(self) -> Result<Backward> {
        let Self { engine, data, diff_dst, diff_src, function, from_dst, alpha, beta, attr } = self;
        let diff_dst = diff_dst.unwrap_or(data);
        let algorithm = if from_dst { of_dst(function)? } else { function.to_c() };
        // SAFETY: all objects are valid, NULL is allowed for the hint and attr; on success a
        // primitive descriptor that the caller owns is stored.
        let desc = unsafe {
            Handle::create(|out| {
                sys::norm_eltwise_backward_primitive_desc_create(
                    out,
                    engine.as_ptr(),
                    algorithm,
                    diff_src.unwrap_or(diff_dst).as_ptr(),
                    diff_dst.as_ptr(),
                    data.as_ptr(),
                    alpha,
                    beta,
                    ptr::null(),
                    attr.map_or(ptr::null(), Attr::as_ptr),
                )
            })
        }?;
        let data = if from_dst { Arg::Dst } else { Arg::Src };
        Ok(Backward { primitive: Primitive::new(&desc)?, function, data })
    }
}

/// The algorithm that computes the gradient from dst.
fn of_dst(function: Eltwise) -> Result<sys::norm_alg_kind_t> {
    Ok(match function {
        Eltwise::Relu => sys::norm_eltwise_relu_use_dst_for_bwd,
        Eltwise::Tanh => sys::norm_eltwise_tanh_use_dst_for_bwd,
        Eltwise::Elu => sys::norm_eltwise_elu_use_dst_for_bwd,
        Eltwise::Sqrt => sys::norm_eltwise_sqrt_use_dst_for_bwd,
        Eltwise::Logistic => sys::norm_eltwise_logistic_use_dst_for_bwd,
        Eltwise::Exp => sys::norm_eltwise_exp_use_dst_for_bwd,
        other => {
            let text = format_args!("is {other:?}, whose gradient is not computed from dst");
            return Err(Error::invalid("function", text));
        }
    })
}

/// The gradient of a function of every element.
///
/// Threads can share it and execute it at the same time.
///
/// ```
/// use norm_rs::eltwise::{Backward, BackwardArgs, Eltwise};
/// use norm_rs::{DataType, Engine, Memory, MemoryDesc, Stream};
///
/// let engine = Engine::cpu()?;
/// let desc = MemoryDesc::dense(&[1, 2], DataType::F32)?;
/// let square = Backward::new(&engine, &desc, Eltwise::Square).build()?;
///
/// let src = Memory::from_slice(&engine, &desc, &[3.0f32, -1.0])?;
/// let diff_dst = Memory::from_slice(&engine, &desc, &[1.0f32, 2.0])?;
/// let mut diff_src = Memory::new(&engine, &desc)?;
/// let args = BackwardArgs::new(&square, &src, &diff_dst, &mut diff_src);
/// square.execute(&Stream::new(&engine)?, args)?;
/// assert_eq!(diff_src.as_slice::<f32>()?, [6.0, -4.0]);
/// # Ok::<(), norm_rs::Error>(())
/// ```
pub struct Backward {
    primitive: Primitive,
    function: Eltwise,
    /// What the data is.
    data: Arg,
}

impl Backward {
    /// The gradient of a function of the elements of `data`: of src, or of dst with
    /// [`from_dst`](BackwardBuilder::from_dst). It has 1 to 12 dimensions, a type that the
    /// [module](super) lists, and any layout except [`Tag::Any`](crate::Tag::Any).
    #[expect(clippy::new_ret_no_self, reason = "as in layer_normalization")]
    pub fn new<'b>(
        engine: &'b Engine,
        data: &'b MemoryDesc,
        function: Eltwise,
    ) -> BackwardBuilder<'b> {
        BackwardBuilder {
            engine,
            data,
            diff_dst: None,
            diff_src: None,
            function,
            from_dst: false,
            alpha: 0.0,
            beta: 0.0,
            attr: None,
        }
    }

    /// Computes `diff_src`, which is complete on return.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments), naming the argument: it
    /// is missing, not used, or does not have the primitive's descriptor. On failure nothing is
    /// written.
    ///
    /// # Panics
    /// As [`Primitive::execute`].
    pub fn execute(&self, stream: &Stream<'_>, args: BackwardArgs<'_>) -> Result<()> {
        self.primitive.execute(stream, args.0)
    }

    /// This primitive with arguments, for [`Stream::execute_many`].
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub fn with<'x>(&'x self, args: BackwardArgs<'x>) -> Result<Call<'x>> {
        self.primitive.with(args.0)
    }

    /// The primitive: descriptors of the arguments, name of the implementation.
    pub fn primitive(&self) -> &Primitive {
        &self.primitive
    }
}

impl fmt::Debug for Backward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backward")
            .field("function", &self.function)
            .field("data", &self.data)
            .field("implementation", &self.primitive.implementation())
            .finish()
    }
}

/// The memories of one backward execution.
#[derive(Debug)]
#[must_use]
pub struct BackwardArgs<'x>(Args<'x>);

impl<'x> BackwardArgs<'x> {
    /// From `data`, which is src or dst as the primitive says, and `diff_dst` to `diff_src`.
    pub fn new<A: Access, B: Access>(
        primitive: &Backward,
        data: &'x Memory<'_, A>,
        diff_dst: &'x Memory<'_, B>,
        diff_src: &'x mut Memory<'_>,
    ) -> Self {
        let args = Args::new().input(primitive.data, data).input(Arg::DiffDst, diff_dst);
        Self(args.output(Arg::DiffSrc, diff_src))
    }

    /// `diff_dst` is overwritten with `diff_src`; their types and layouts must be the same.
    pub fn in_place<A: Access>(
        primitive: &Backward,
        data: &'x Memory<'_, A>,
        diff: &'x mut Memory<'_>,
    ) -> Self {
        let args = Args::new().input(primitive.data, data);
        Self(args.in_place(Arg::DiffDst, Arg::DiffSrc, diff))
    }
    /// `data` is overwritten with `diff_src`; their types and layouts must be the same.
    pub fn in_place_of_data<A: Access>(
        primitive: &Backward,
        data_diff: &'x mut Memory<'_>,
        diff_dst: &'x Memory<'_, A>,
    ) -> Self {
        let args = Args::new().in_place(primitive.data, Arg::DiffSrc, data_diff);
        Self(args.input(Arg::DiffDst, diff_dst))
    }
}
