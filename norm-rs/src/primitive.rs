//! Executable problems: [`Primitive`], its arguments ([`Arg`]) and their memories ([`Args`]).
//!
//! All operations share this module. An operation's own module provides builders and arguments with
//! the operation's names.

use std::ffi::{CStr, c_char};
use std::fmt;
use std::marker::PhantomData;
use std::ptr;

use norm_sys as sys;

pub use crate::args::{Arg, Args};
use crate::args::{Direction, MAX_POST_OPS, operand_id};
use crate::error::{Error, Result, check};
use crate::handle::Handle;
use crate::in_place;
use crate::memory::desc_of;
use crate::memory_desc::MemoryDesc;
use crate::stream::Stream;

/// The kind of computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PropKind {
    /// Forward, with statistics as outputs for the backward pass.
    ForwardTraining,
    /// Forward without statistics.
    ForwardInference,
    /// The gradients of the source and the parameters.
    Backward,
    /// The gradient of the source only.
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

/// An operand of a post-operation.
struct Operand {
    id: i32,
    /// The entry's index, for messages.
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

/// A primitive with its arguments, which are checked, for [`Stream::execute_many`]. It may be executed several times.
pub struct Call<'x> {
    primitive: &'x Primitive,
    pairs: Vec<sys::norm_exec_arg_t>,
    memories: PhantomData<Args<'x>>,
}

impl fmt::Debug for Call<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("primitive", self.primitive).finish()
    }
}

/// An executable problem.
///
/// It is immutable: threads may share a primitive and execute it at the same time, each with its
/// own [`Stream`] and outputs.
pub struct Primitive {
    handle: Handle<sys::norm_primitive>,
    /// Owned by the primitive.
    desc: sys::const_norm_primitive_desc_t,
    parameters: Vec<Parameter>,
    operands: Vec<Operand>,
}

// SAFETY: the pointers point into the primitive, which is Send and Sync (see Handle) and does not
// change.
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
        let kind = kind_of(desc);
        let parameters = Arg::ALL.iter().filter_map(|&arg| parameter(desc, kind, arg)).collect();
        let operands = (0..MAX_POST_OPS).flat_map(|index| {
            let ids = [sys::NORM_ARG_SRC_1, sys::NORM_ARG_SRC_2].map(|arg| operand_id(index, arg));
            ids.into_iter().filter_map(move |id| {
                let desc = query_md(desc, sys::norm_query_exec_arg_md, id)?;
                Some(Operand { id, index, desc })
            })
        });
        let operands = operands.collect();
        Ok(Self { handle, desc, parameters, operands })
    }

    /// Runs the primitive. The outputs are complete on return.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments), naming the argument: it
    /// is missing, not used by this primitive, bound in the wrong direction, does not have the
    /// descriptor [`arg_desc`](Self::arg_desc), or is bound in place where that is not supported. An
    /// unneeded scratchpad is ignored. On failure nothing is written.
    ///
    /// # Panics
    /// If the closure passed to [`Stream::set_parallel_for`] panicked. The outputs are complete
    /// then.
    pub fn execute(&self, stream: &Stream<'_>, args: Args<'_>) -> Result<()> {
        let mut pairs = [sys::norm_exec_arg_t { arg: 0, memory: ptr::null_mut() }; Arg::COUNT];
        for (pair, parameter) in pairs.iter_mut().zip(&self.parameters) {
            let memory = self.bound(parameter, &args)?;
            *pair = sys::norm_exec_arg_t { arg: parameter.arg.to_c(), memory };
        }
        self.reject_unused(&args)?;
        let with_operands;
        let mut pairs = &pairs[..self.parameters.len()];
        if !self.operands.is_empty() {
            with_operands = self.with_operands(pairs, &args)?;
            pairs = &with_operands;
        }
        let count = pairs.len() as i32; // at most Arg::COUNT and two for each post-operation
        // SAFETY: primitive, stream and memories are valid. Each memory has the descriptor that the
        // primitive requires, so its buffer has the right type and is large enough. `bound` checked
        // that outputs were borrowed exclusively and are only shared in supported pairs.
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

    /// This primitive with arguments, to be executed by [`Stream::execute_many`].
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub fn with<'x>(&'x self, args: Args<'x>) -> Result<Call<'x>> {
        let pair = |parameter: &Parameter| {
            let memory = self.bound(parameter, &args)?;
            Ok(sys::norm_exec_arg_t { arg: parameter.arg.to_c(), memory })
        };
        let pairs = self.parameters.iter().map(pair).collect::<Result<Vec<_>>>()?;
        self.reject_unused(&args)?;
        let pairs = self.with_operands(&pairs, &args)?;
        Ok(Call { primitive: self, pairs, memories: PhantomData })
    }

    /// The arguments with the operands of post-operations.
    fn with_operands(
        &self,
        pairs: &[sys::norm_exec_arg_t],
        args: &Args<'_>,
    ) -> Result<Vec<sys::norm_exec_arg_t>> {
        let mut pairs = pairs.to_vec();
        for &Operand { id, index, desc } in &self.operands {
            let found = args.operands.iter().find(|(bound, _)| *bound == id);
            let (_, memory) = *found.ok_or_else(|| {
                Error::invalid(
                    "operand",
                    format_args!(
                        "of post-operation {index} is missing; bind it with {}({index}, ...)",
                        if id & sys::NORM_ARG_SRC_2 == sys::NORM_ARG_SRC_2 {
                            "condition"
                        } else {
                            "operand"
                        }
                    ),
                )
            })?;
            // SAFETY: `args` borrows the memory, so it is valid, and so are the descriptors.
            unsafe {
                let given = desc_of(memory)?;
                if sys::norm_memory_desc_equal(given, desc) == 0 {
                    let (given, desc) = (MemoryDesc::copy_of(given)?, MemoryDesc::copy_of(desc)?);
                    return Err(Error::invalid(
                        "operand",
                        format_args!(
                            "of post-operation {index} is {given}, not {desc}; pass memory of that \
                             descriptor"
                        ),
                    ));
                }
            }
            pairs.push(sys::norm_exec_arg_t { arg: id, memory });
        }
        Ok(pairs)
    }

    /// The descriptor of the operand of entry `index`; `None` if it has none.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory).
    pub fn operand_desc(&self, index: usize) -> Result<Option<MemoryDesc>> {
        let id = operand_id(index, sys::NORM_ARG_SRC_1);
        let found = self.operands.iter().find(|operand| operand.id == id);
        // SAFETY: the descriptor lives as long as the primitive.
        found.map(|operand| unsafe { MemoryDesc::copy_of(operand.desc) }).transpose()
    }

    /// The memory bound to a parameter, if it is valid.
    fn bound(&self, parameter: &Parameter, args: &Args<'_>) -> Result<sys::norm_memory_t> {
        let &Parameter { arg, direction, desc } = parameter;
        let slot = args.slot(arg);
        if !slot.is_bound() {
            return Err(Error::invalid(
                arg.name(),
                format_args!("is missing; it is {direction}: pass it {}", arg.passed(direction)),
            ));
        }
        if slot.direction != direction {
            return Err(Error::invalid(
                arg.name(),
                format_args!(
                    "was given as {}, but is {direction}: pass it {}",
                    slot.direction,
                    arg.passed(direction)
                ),
            ));
        }
        // SAFETY: `args` borrows the memory, so it is valid.
        let given = unsafe { desc_of(slot.memory) }?;
        // SAFETY: both descriptors are valid, and live as long as the memory and the primitive.
        let (given, desc) = unsafe { (MemoryDesc::lent(given)?, MemoryDesc::lent(desc)?) };
        if *given != *desc && !(slot.of_cache && given.begins_with(&desc)) {
            return Err(Error::invalid(
                arg.name(),
                format_args!(
                    "is {}, not {}; pass memory of that descriptor, which arg_desc(Arg::{arg:?}) returns{}",
                    *given,
                    *desc,
                    arg.builder_of_type(given.data_type(), desc.data_type())
                ),
            ));
        }
        if direction == Direction::Output
            && let Some(input) = args.shares(arg, slot.memory)
            && !(in_place::is_allowed(kind_of(self.desc), input, arg) && self.same_desc(input, arg))
        {
            return Err(Error::invalid(
                arg.name(),
                format_args!("cannot share the memory of {}; give it its own", input.name()),
            ));
        }
        Ok(slot.memory)
    }

    /// Rejects unused arguments, which are mistakes: a shift without its flag has no effect, and
    /// statistics that are not outputs stay unwritten.
    fn reject_unused(&self, args: &Args<'_>) -> Result<()> {
        for &arg in Arg::ALL {
            // The scratchpad's size depends on the implementation.
            if arg != Arg::Scratchpad && args.slot(arg).is_bound() && self.parameter(arg).is_none()
            {
                return Err(Error::invalid(
                    arg.name(),
                    format_args!("is not used by this primitive; {}", arg.instead()),
                ));
            }
        }
        let is_used = |id| self.operands.iter().any(|operand| operand.id == id);
        if !args.operands.iter().all(|(id, _)| is_used(*id)) {
            return Err(Error::invalid(
                "operand",
                "belongs to an entry without one; only binary and select have them",
            ));
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

    /// The descriptor that an argument's memory must have; `None` if the primitive does not use the
    /// argument.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory).
    pub fn arg_desc(&self, arg: Arg) -> Result<Option<MemoryDesc>> {
        let desc = self.parameter(arg).map(|parameter| parameter.desc);
        // SAFETY: the descriptor lives as long as the primitive.
        desc.map(|desc| unsafe { MemoryDesc::copy_of(desc) }).transpose()
    }

    /// Whether an argument is an output of the primitive.
    pub fn writes(&self, arg: Arg) -> bool {
        self.parameter(arg).is_some_and(|parameter| parameter.direction == Direction::Output)
    }

    /// The descriptor of the scratchpad ([`Arg::Scratchpad`]) with
    /// [`ScratchpadMode::User`](crate::attr::ScratchpadMode::User); `None` if none is needed.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory).
    pub fn scratchpad_desc(&self) -> Result<Option<MemoryDesc>> {
        self.arg_desc(Arg::Scratchpad)
    }

    /// The name of the chosen implementation, for example `"simd:avx512"`.
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

    /// The same problem with the next implementation, which is not expected to be faster; `None` if
    /// this is the last one.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory).
    pub fn next_implementation(&self) -> Result<Option<Self>> {
        // SAFETY: the descriptor is valid; on success a descriptor that the caller owns is stored.
        let desc = unsafe { Handle::create(|out| sys::norm_primitive_desc_clone(out, self.desc)) }?;
        // SAFETY: the clone is not shared.
        match unsafe { sys::norm_primitive_desc_next_impl(desc.as_ptr()) } {
            sys::norm_last_impl_reached => Ok(None),
            status => {
                check(status)?;
                Self::new(&desc).map(Some)
            }
        }
    }
}

/// Runs the calls in one parallel region.
pub(crate) fn execute_many(stream: &Stream<'_>, calls: &[Call<'_>]) -> Result<()> {
    let primitives = calls.iter().map(|call| call.primitive.handle.as_ptr().cast_const());
    let primitives: Vec<_> = primitives.collect();
    // At most Arg::COUNT and two for each post-operation.
    let nargs: Vec<_> = calls.iter().map(|call| call.pairs.len() as i32).collect();
    let args: Vec<_> = calls.iter().map(|call| call.pairs.as_ptr()).collect();
    // The list fits in memory, so its length fits i32.
    let count = calls.len() as i32;
    // SAFETY: as in `execute`; `with` made the same checks. The calls borrow their outputs exclusively, so none of
    // them writes what another one accesses.
    let status = unsafe {
        sys::norm_primitive_execute_many(
            count,
            primitives.as_ptr(),
            stream.as_ptr(),
            nargs.as_ptr(),
            args.as_ptr(),
        )
    };
    stream.resume_panic();
    check(status)
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

/// An argument of the problem; `None` if it is not used.
fn parameter(
    desc: sys::const_norm_primitive_desc_t,
    kind: sys::norm_primitive_kind_t,
    arg: Arg,
) -> Option<Parameter> {
    if !arg.is_of(kind) {
        return None;
    }
    let query = |what, index| query_md(desc, what, index);
    let writes = match arg {
        // An input of the backward passes of softmax and eltwise, which have diff_dst.
        // Backward of a gated activation writes it again.
        Arg::Dst => query(sys::norm_query_diff_dst_md, 0).is_none() || kind == sys::norm_gated,
        Arg::DiffSrc | Arg::DiffScale | Arg::DiffShift | Arg::Scratchpad => true,
        Arg::ResidualDst | Arg::DiffGate | Arg::DstZeroPoint => true,
        // Statistics may be inputs or outputs; outputs are listed after dst.
        Arg::Mean => query(sys::norm_query_dst_md, 1).is_some(),
        Arg::Variance => query(sys::norm_query_dst_md, 2).is_some(),
        Arg::Src | Arg::Src1 | Arg::Src2 | Arg::Scale | Arg::Shift | Arg::DiffDst => false,
        Arg::SrcScale | Arg::Src1Scale | Arg::Residual | Arg::DiffResidualDst | Arg::Gate => false,
        Arg::KeyScales | Arg::ValueScales => false,
        Arg::Positions | Arg::RopeFrequencies | Arg::RopeCos | Arg::RopeSin | Arg::Slots => false,
        Arg::SoftmaxStats | Arg::DropoutMask | Arg::DiffSrc1 => true,
        Arg::Queries | Arg::Keys | Arg::Values | Arg::AttnMask | Arg::Sinks => false,
        Arg::AlibiSlopes | Arg::QueryLengths | Arg::KeyLengths | Arg::PageTable => false,
        Arg::QueryOffsets | Arg::KeyOffsets => false,
        Arg::DiffAttnMask => true,
        Arg::DiffQueries | Arg::DiffKeys | Arg::DiffValues | Arg::DiffSinks | Arg::Entropy => true,
        // Forward writes it, backward reads it.
        Arg::Workspace => query(sys::norm_query_diff_dst_md, 0).is_none(),
        Arg::DropoutProbability | Arg::DropoutSeed | Arg::DropoutOffset => false,
        // Scales that the primitive computes are listed after the statistics.
        Arg::DstScale => query(sys::norm_query_dst_md, 3).is_some(),
    };
    Some(Parameter {
        arg,
        direction: if writes { Direction::Output } else { Direction::Input },
        desc: query(sys::norm_query_exec_arg_md, arg.to_c())?,
    })
}

/// The operation of a primitive.
fn kind_of(desc: sys::const_norm_primitive_desc_t) -> sys::norm_primitive_kind_t {
    let mut kind = sys::norm_undefined_primitive;
    let result = (&raw mut kind).cast();
    // SAFETY: the descriptor is valid; the answer to this query is a kind.
    let status =
        unsafe { sys::norm_primitive_desc_query(desc, sys::norm_query_primitive_kind, 0, result) };
    if status == sys::norm_success { kind } else { sys::norm_undefined_primitive }
}

/// The descriptor that a query returns, unless it is empty.
fn query_md(
    desc: sys::const_norm_primitive_desc_t,
    what: sys::norm_query_t,
    index: i32,
) -> Option<sys::const_norm_memory_desc_t> {
    // SAFETY: the caller's descriptor is valid; the result is NULL or a descriptor that it owns.
    let md = unsafe { sys::norm_primitive_desc_query_md(desc, what, index) };
    (!md.is_null() && !is_empty(md)).then_some(md)
}

/// Whether a descriptor is empty. A tensor with a dimension of 0 is not.
fn is_empty(desc: sys::const_norm_memory_desc_t) -> bool {
    ndims(desc) == 0
}

/// The number of dimensions; 0 for an empty descriptor.
fn ndims(desc: sys::const_norm_memory_desc_t) -> i32 {
    let mut ndims = 0;
    // SAFETY: the descriptor is valid; the answer to this query is an int.
    let status = unsafe {
        sys::norm_memory_desc_query(desc, sys::norm_query_ndims_s32, (&raw mut ndims).cast())
    };
    if status == sys::norm_success { ndims } else { 0 }
}
