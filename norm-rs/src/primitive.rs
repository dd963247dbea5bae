//! A problem ready to run: [`Primitive`], its arguments ([`Arg`]) and what they are bound to
//! ([`Args`]).
//!
//! This is the part that all operations share. An operation's own module has builders and arguments
//! with the operation's names; they end here.

use std::ffi::{CStr, c_char};
use std::fmt;
use std::marker::PhantomData;
use std::ptr;

use norm_sys as sys;

use crate::error::{Error, Result, check};
use crate::handle::Handle;
use crate::memory::{Access, Memory, desc_of};
use crate::memory_desc::MemoryDesc;
use crate::stream::Stream;

/// What a primitive computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PropKind {
    /// Forward; what the backward pass needs is an output.
    ForwardTraining,
    /// Forward alone.
    ForwardInference,
    /// The gradients of the source and of the parameters.
    Backward,
    /// The gradient of the source alone.
    BackwardData,
}

impl PropKind {
    pub(crate) fn to_c(self) -> sys::norm_prop_kind_t {
        match self {
            Self::ForwardTraining => sys::norm_forward_training,
            Self::ForwardInference => sys::norm_forward_inference,
            Self::Backward => sys::norm_backward,
            Self::BackwardData => sys::norm_backward_data,
        }
    }
}

impl fmt::Display for PropKind {
    /// "forward_training", ...
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: any value is allowed; the string returned is static.
        let name = unsafe { CStr::from_ptr(sys::norm_prop_kind2str(self.to_c())) };
        f.write_str(&name.to_string_lossy())
    }
}

macro_rules! args {
    ($($(#[$doc:meta])* $arg:ident = $constant:expr, $name:literal;)*) => {
        /// A place for a memory in an execution.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Arg {
            $($(#[$doc])* $arg,)*
        }

        impl Arg {
            const ALL: &[Self] = &[$(Self::$arg,)*];

            /// The name in errors and formulas: `"src"`, `"diff_scale"`, ...
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$arg => $name,)*
                }
            }

            pub(crate) fn to_c(self) -> i32 {
                match self {
                    $(Self::$arg => $constant,)*
                }
            }
        }
    };
}
args! {
    /// The input.
    Src = sys::NORM_ARG_SRC, "src";
    /// The result.
    Dst = sys::NORM_ARG_DST, "dst";
    /// The mean of each row.
    Mean = sys::NORM_ARG_MEAN, "mean";
    /// The variance of each row, or the mean of its squares.
    Variance = sys::NORM_ARG_VARIANCE, "variance";
    /// The factor of each column.
    Scale = sys::NORM_ARG_SCALE, "scale";
    /// The summand of each column.
    Shift = sys::NORM_ARG_SHIFT, "shift";
    /// Temporary memory.
    Scratchpad = sys::NORM_ARG_SCRATCHPAD, "scratchpad";
    /// The gradient with respect to the input.
    DiffSrc = sys::NORM_ARG_DIFF_SRC, "diff_src";
    /// The gradient with respect to the result.
    DiffDst = sys::NORM_ARG_DIFF_DST, "diff_dst";
    /// The gradient with respect to the scale.
    DiffScale = sys::NORM_ARG_DIFF_SCALE, "diff_scale";
    /// The gradient with respect to the shift.
    DiffShift = sys::NORM_ARG_DIFF_SHIFT, "diff_shift";
    /// What the input is multiplied by.
    SrcScale = sys::NORM_ARG_ATTR_SCALES | sys::NORM_ARG_SRC, "src_scale";
    /// What the result is divided by.
    DstScale = sys::NORM_ARG_ATTR_SCALES | sys::NORM_ARG_DST, "dst_scale";
}

impl Arg {
    const COUNT: usize = Self::ALL.len();

    /// The inputs that may share their memory with an output.
    fn may_be_in_place(input: Self, output: Self) -> bool {
        matches!((input, output), (Self::Src, Self::Dst) | (Self::DiffDst, Self::DiffSrc))
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Direction {
    Input,
    Output,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Input => "an input",
            Self::Output => "an output",
        })
    }
}

/// The memories of one execution, borrowed for `'x`: inputs shared, outputs exclusively.
///
/// So one memory cannot be input and output by accident; [`in_place`](Self::in_place) says it on
/// purpose:
///
/// ```compile_fail,E0502
/// # use norm_rs::primitive::{Arg, Args};
/// # use norm_rs::{DataType, Engine, Memory, MemoryDesc};
/// # let engine = Engine::cpu()?;
/// # let desc = MemoryDesc::dense(&[2, 3], DataType::F32)?;
/// let mut x = Memory::new(&engine, &desc)?;
/// let args = Args::new().input(Arg::Src, &x).output(Arg::Dst, &mut x);
/// # Ok::<(), norm_rs::Error>(())
/// ```
///
/// and what a `&[T]` lent cannot be written:
///
/// ```compile_fail,E0308
/// # use norm_rs::primitive::{Arg, Args};
/// # use norm_rs::{DataType, Engine, Memory, MemoryDesc};
/// # let engine = Engine::cpu()?;
/// # let desc = MemoryDesc::dense(&[3], DataType::F32)?;
/// let x = [1.0f32, 2.0, 3.0];
/// let mut memory = Memory::from_slice(&engine, &desc, &x)?;
/// let args = Args::new().output(Arg::Dst, &mut memory);
/// # Ok::<(), norm_rs::Error>(())
/// ```
pub struct Args<'x> {
    slots: [Slot; Arg::COUNT],
    /// What post-operations read, by their C numbers.
    operands: Vec<(i32, sys::norm_memory_t)>,
    memories: PhantomData<&'x mut ()>,
}

#[derive(Clone, Copy)]
struct Slot {
    /// NULL while nothing is bound.
    memory: sys::norm_memory_t,
    direction: Direction,
}

impl Slot {
    const UNBOUND: Self = Self { memory: ptr::null_mut(), direction: Direction::Input };

    fn is_bound(self) -> bool {
        !self.memory.is_null()
    }
}

impl Default for Args<'_> {
    fn default() -> Self {
        Self { slots: [Slot::UNBOUND; Arg::COUNT], operands: Vec::new(), memories: PhantomData }
    }
}

impl<'x> Args<'x> {
    /// No arguments yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Binds an input. Binding an argument again replaces what it was bound to.
    #[must_use]
    pub fn input<A: Access>(self, arg: Arg, memory: &'x Memory<'_, A>) -> Self {
        self.bind(arg, memory.as_ptr(), Direction::Input)
    }

    /// Binds an output.
    #[must_use]
    pub fn output(self, arg: Arg, memory: &'x mut Memory<'_>) -> Self {
        self.bind(arg, memory.as_ptr(), Direction::Output)
    }

    /// Binds one memory as `input` and `output`: `Src` and `Dst`, or `DiffDst` and `DiffSrc`, if
    /// the primitive has the same descriptor for both.
    #[must_use]
    pub fn in_place(self, input: Arg, output: Arg, memory: &'x mut Memory<'_>) -> Self {
        let memory = memory.as_ptr();
        self.bind(input, memory, Direction::Input).bind(output, memory, Direction::Output)
    }

    /// Binds the operand of entry `index` of the [post-operations](crate::post_ops::PostOps).
    #[must_use]
    pub fn operand<A: Access>(self, index: usize, memory: &'x Memory<'_, A>) -> Self {
        self.bind_operand(operand_id(index, sys::NORM_ARG_SRC_1), memory.as_ptr())
    }

    /// Binds the condition of entry `index`, a [`select`](crate::post_ops::PostOps::select).
    #[must_use]
    pub fn condition<A: Access>(self, index: usize, memory: &'x Memory<'_, A>) -> Self {
        self.bind_operand(operand_id(index, sys::NORM_ARG_SRC_2), memory.as_ptr())
    }

    fn bind_operand(mut self, id: i32, memory: sys::norm_memory_t) -> Self {
        self.operands.retain(|(bound, _)| *bound != id);
        self.operands.push((id, memory));
        self
    }

    fn bind(mut self, arg: Arg, memory: sys::norm_memory_t, direction: Direction) -> Self {
        self.slots[arg as usize] = Slot { memory, direction };
        self
    }

    fn slot(&self, arg: Arg) -> Slot {
        self.slots[arg as usize]
    }

    /// The other argument that is bound to the memory of an output, if there is one.
    fn shares(&self, output: Arg, memory: sys::norm_memory_t) -> Option<Arg> {
        let mut others = Arg::ALL.iter().copied().filter(|&arg| arg != output);
        others.find(|&arg| self.slot(arg).memory == memory)
    }
}

impl fmt::Debug for Args<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bound = Arg::ALL.iter().filter(|&&arg| self.slot(arg).is_bound());
        f.debug_list().entries(bound).finish()
    }
}

/// A list has at most 32 entries.
const MAX_POST_OPS: usize = 32;

/// The C number of what entry `index` of the post-operations reads; that of no argument for an entry that
/// no list has.
fn operand_id(index: usize, arg: i32) -> i32 {
    if index < MAX_POST_OPS { sys::NORM_ARG_ATTR_MULTIPLE_POST_OP(index as i32) | arg } else { -1 }
}

/// What a post-operation of a primitive reads.
struct Operand {
    id: i32,
    /// The entry, for messages.
    index: usize,
    /// Owned by the primitive's descriptor.
    desc: sys::const_norm_memory_desc_t,
}

/// An argument that a primitive uses.
struct Parameter {
    arg: Arg,
    direction: Direction,
    /// Owned by the primitive's descriptor.
    desc: sys::const_norm_memory_desc_t,
}

/// A problem ready to run.
///
/// It does not change when it runs: threads may share one primitive and execute it at the same
/// time, each with its own [`Stream`] and outputs.
pub struct Primitive {
    handle: Handle<sys::norm_primitive>,
    /// Owned by the primitive.
    desc: sys::const_norm_primitive_desc_t,
    parameters: Vec<Parameter>,
    operands: Vec<Operand>,
}

// SAFETY: the pointers lead to parts of the primitive, which is Send and Sync (see Handle) and does
// not change.
unsafe impl Send for Primitive {}
// SAFETY: as for Send.
unsafe impl Sync for Primitive {}

impl Primitive {
    pub(crate) fn new(desc: &Handle<sys::norm_primitive_desc>) -> Result<Self> {
        // SAFETY: the descriptor is valid; on success a primitive that the caller owns is stored.
        let handle =
            unsafe { Handle::create(|out| sys::norm_primitive_create(out, desc.as_ptr())) }?;
        let mut desc = ptr::null();
        // SAFETY: the primitive is valid and `desc` is a place for the answer.
        check(unsafe { sys::norm_primitive_get_primitive_desc(handle.as_ptr(), &mut desc) })?;
        let parameters = Arg::ALL.iter().filter_map(|&arg| parameter(desc, arg)).collect();
        let operands = (0..MAX_POST_OPS).flat_map(|index| {
            let ids = [sys::NORM_ARG_SRC_1, sys::NORM_ARG_SRC_2].map(|arg| operand_id(index, arg));
            ids.into_iter().filter_map(move |id| {
                let desc = asked(desc, sys::norm_query_exec_arg_md, id)?;
                Some(Operand { id, index, desc })
            })
        });
        let operands = operands.collect();
        Ok(Self { handle, desc, parameters, operands })
    }

    /// Runs the primitive. The outputs are complete when it returns.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments), naming the argument:
    /// one is missing, not used by this primitive, bound in the wrong direction, has another
    /// descriptor than [`arg_desc`](Self::arg_desc), or is in place where that is not possible. A
    /// scratchpad that is not needed is let pass. On failure nothing is written.
    ///
    /// # Panics
    /// Where the closure given to [`Stream::set_parallel_for`] panicked; the outputs are complete
    /// then.
    pub fn execute(&self, stream: &Stream<'_>, args: Args<'_>) -> Result<()> {
        let mut pairs = [sys::norm_exec_arg_t { arg: 0, memory: ptr::null_mut() }; Arg::COUNT];
        for (pair, parameter) in pairs.iter_mut().zip(&self.parameters) {
            let memory = self.bound(parameter, &args)?;
            *pair = sys::norm_exec_arg_t { arg: parameter.arg.to_c(), memory };
        }
        self.refuse_unused(&args)?;
        let with_operands;
        let mut pairs = &pairs[..self.parameters.len()];
        if !self.operands.is_empty() {
            with_operands = self.with_operands(pairs, &args)?;
            pairs = &with_operands;
        }
        let count = pairs.len() as i32; // at most Arg::COUNT and two for each post-operation
        // SAFETY: primitive, stream and memories are valid. Each memory has the descriptor that the
        // primitive asks for, so its buffer is large enough and of the right type; `bound` saw to
        // it that what is written was borrowed exclusively and is shared in allowed pairs only.
        let status = unsafe {
            sys::norm_primitive_execute(
                self.handle.as_ptr(),
                stream.as_ptr(),
                count,
                pairs.as_ptr(),
            )
        };
        stream.resume_panic();
        check(status)
    }

    /// The pairs, and those of the operands.
    fn with_operands(
        &self,
        pairs: &[sys::norm_exec_arg_t],
        args: &Args<'_>,
    ) -> Result<Vec<sys::norm_exec_arg_t>> {
        let mut pairs = pairs.to_vec();
        for &Operand { id, index, desc } in &self.operands {
            let found = args.operands.iter().find(|(bound, _)| *bound == id);
            let (_, memory) = *found.ok_or_else(|| {
                Error::invalid("operand", format_args!("of post-operation {index} is missing"))
            })?;
            // SAFETY: `args` borrows the memory, so it is valid, and so are the descriptors.
            unsafe {
                let given = desc_of(memory)?;
                if sys::norm_memory_desc_equal(given, desc) == 0 {
                    let (given, desc) = (MemoryDesc::copy_of(given)?, MemoryDesc::copy_of(desc)?);
                    return Err(Error::invalid(
                        "operand",
                        format_args!("of post-operation {index} is {given}, not {desc}"),
                    ));
                }
            }
            pairs.push(sys::norm_exec_arg_t { arg: id, memory });
        }
        Ok(pairs)
    }

    /// The descriptor that the operand of an entry of the post-operations must have; `None` if it has none.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory).
    pub fn operand_desc(&self, index: usize) -> Result<Option<MemoryDesc>> {
        let id = operand_id(index, sys::NORM_ARG_SRC_1);
        let found = self.operands.iter().find(|operand| operand.id == id);
        // SAFETY: the descriptor lives as long as the primitive.
        found.map(|operand| unsafe { MemoryDesc::copy_of(operand.desc) }).transpose()
    }

    /// The memory that is bound to a parameter, if it may be.
    fn bound(&self, parameter: &Parameter, args: &Args<'_>) -> Result<sys::norm_memory_t> {
        let &Parameter { arg, direction, desc } = parameter;
        let slot = args.slot(arg);
        if !slot.is_bound() {
            return Err(Error::invalid(
                arg.name(),
                format_args!("is missing; it is {direction} of this primitive"),
            ));
        }
        if slot.direction != direction {
            return Err(Error::invalid(
                arg.name(),
                format_args!(
                    "was given as {}, but is {direction} of this primitive",
                    slot.direction
                ),
            ));
        }
        // SAFETY: `args` borrows the memory, so it is valid.
        let given = unsafe { desc_of(slot.memory) }?;
        // SAFETY: both descriptors are valid.
        if unsafe { sys::norm_memory_desc_equal(given, desc) } == 0 {
            // SAFETY: both descriptors are valid.
            let (given, desc) =
                unsafe { (MemoryDesc::copy_of(given)?, MemoryDesc::copy_of(desc)?) };
            return Err(Error::invalid(arg.name(), format_args!("is {given}, not {desc}")));
        }
        if direction == Direction::Output
            && let Some(input) = args.shares(arg, slot.memory)
            && !(Arg::may_be_in_place(input, arg) && self.same_desc(input, arg))
        {
            return Err(Error::invalid(
                arg.name(),
                format_args!("cannot share the memory of {}", input.name()),
            ));
        }
        Ok(slot.memory)
    }

    /// What the primitive would not look at is a mistake: a shift without its flag changes nothing,
    /// a statistic that is not an output stays unwritten.
    fn refuse_unused(&self, args: &Args<'_>) -> Result<()> {
        for &arg in Arg::ALL {
            // How much scratchpad is needed, if any, is the implementation's affair.
            if arg != Arg::Scratchpad && args.slot(arg).is_bound() && self.parameter(arg).is_none()
            {
                return Err(Error::invalid(arg.name(), "is not used by this primitive"));
            }
        }
        let is_used = |id| self.operands.iter().any(|operand| operand.id == id);
        if !args.operands.iter().all(|(id, _)| is_used(*id)) {
            return Err(Error::invalid("operand", "belongs to an entry without one"));
        }
        Ok(())
    }

    fn parameter(&self, arg: Arg) -> Option<&Parameter> {
        self.parameters.iter().find(|parameter| parameter.arg == arg)
    }

    fn same_desc(&self, a: Arg, b: Arg) -> bool {
        match (self.parameter(a), self.parameter(b)) {
            // SAFETY: both descriptors live as long as the primitive.
            (Some(a), Some(b)) => unsafe { sys::norm_memory_desc_equal(a.desc, b.desc) != 0 },
            _ => false,
        }
    }

    /// The descriptor that the memory of an argument must have; `None` if the primitive does not
    /// use it.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory).
    pub fn arg_desc(&self, arg: Arg) -> Result<Option<MemoryDesc>> {
        let desc = self.parameter(arg).map(|parameter| parameter.desc);
        // SAFETY: the descriptor lives as long as the primitive.
        desc.map(|desc| unsafe { MemoryDesc::copy_of(desc) }).transpose()
    }

    /// Whether an argument is one that the primitive writes.
    pub fn writes(&self, arg: Arg) -> bool {
        self.parameter(arg).is_some_and(|parameter| parameter.direction == Direction::Output)
    }

    /// What the memory for [`Arg::Scratchpad`] must be, with
    /// [`ScratchpadMode::User`](crate::attr::ScratchpadMode::User); `None` if none is needed.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory).
    pub fn scratchpad_desc(&self) -> Result<Option<MemoryDesc>> {
        self.arg_desc(Arg::Scratchpad)
    }

    /// The name of the implementation that was chosen, `"simd:avx512"` for example.
    pub fn implementation(&self) -> &str {
        let mut name: *const c_char = ptr::null();
        // SAFETY: the descriptor is valid; the answer to this query is a string.
        let status = unsafe {
            sys::norm_primitive_desc_query(
                self.desc,
                sys::norm_query_impl_info_str,
                0,
                (&raw mut name).cast(),
            )
        };
        if status != sys::norm_success || name.is_null() {
            return "unknown";
        }
        // SAFETY: on success the string is NUL-terminated and owned by the descriptor.
        unsafe { CStr::from_ptr(name) }.to_str().unwrap_or("unknown")
    }

    /// The same problem on the next implementation that can run it, slower or equal; `None` if this
    /// is the last.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory).
    pub fn next_implementation(&self) -> Result<Option<Self>> {
        // SAFETY: the descriptor is valid; on success a descriptor that the caller owns is stored.
        let desc = unsafe { Handle::create(|out| sys::norm_primitive_desc_clone(out, self.desc)) }?;
        // SAFETY: the clone is ours to change.
        match unsafe { sys::norm_primitive_desc_next_impl(desc.as_ptr()) } {
            sys::norm_last_impl_reached => Ok(None),
            status => {
                check(status)?;
                Self::new(&desc).map(Some)
            }
        }
    }
}

impl fmt::Debug for Primitive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let args: Vec<_> = self.parameters.iter().map(|parameter| parameter.arg).collect();
        f.debug_struct("Primitive")
            .field("implementation", &self.implementation())
            .field("args", &args)
            .finish()
    }
}

/// What a descriptor says about an argument; `None` if the problem does not use it.
fn parameter(desc: sys::const_norm_primitive_desc_t, arg: Arg) -> Option<Parameter> {
    let query = |what, index| asked(desc, what, index);
    let writes = match arg {
        Arg::Dst | Arg::DiffSrc | Arg::DiffScale | Arg::DiffShift | Arg::Scratchpad => true,
        // Statistics go both ways; where they are outputs they stand behind dst.
        Arg::Mean => query(sys::norm_query_dst_md, 1).is_some(),
        Arg::Variance => query(sys::norm_query_dst_md, 2).is_some(),
        Arg::Src | Arg::Scale | Arg::Shift | Arg::DiffDst => false,
        Arg::SrcScale | Arg::DstScale => false,
    };
    Some(Parameter {
        arg,
        direction: if writes { Direction::Output } else { Direction::Input },
        desc: query(sys::norm_query_exec_arg_md, arg.to_c())?,
    })
}

/// The descriptor that a query gives, if it describes something.
fn asked(
    desc: sys::const_norm_primitive_desc_t,
    what: sys::norm_query_t,
    index: i32,
) -> Option<sys::const_norm_memory_desc_t> {
    // SAFETY: the caller's descriptor is valid; the answer is NULL or a descriptor that it owns.
    let md = unsafe { sys::norm_primitive_desc_query_md(desc, what, index) };
    (!md.is_null() && !is_empty(md)).then_some(md)
}

/// Whether a descriptor describes nothing. (A tensor with a dimension of 0 is not nothing.)
fn is_empty(desc: sys::const_norm_memory_desc_t) -> bool {
    let mut ndims = 0;
    // SAFETY: the descriptor is valid; the answer to this query is an int.
    let status = unsafe {
        sys::norm_memory_desc_query(desc, sys::norm_query_ndims_s32, (&raw mut ndims).cast())
    };
    status != sys::norm_success || ndims == 0
}
