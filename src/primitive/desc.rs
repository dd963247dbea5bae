//! Primitive descriptors: an operation's problem and the implementation that runs it.

use super::{
    Attr, Dropout, MAX_POST_OPS, OpArgument, ScratchpadMode, Usage, effective_level, verbose,
    verbosity, with_scratchpad,
};
use super::{Verbosity, scratchpad};
use crate::error::{Error, Result, Status};
use crate::heap::{Counted, LINE, Shared, counted};
use crate::simd::{DefaultEnvironment, Level};
use crate::tensor::{DataType, MemoryDesc};
use crate::text::Capitals;
use crate::text::{joined, shown};
use crate::threads::{Body, Length, Member, Threads};
use norm_sys as sys;
use std::ffi::CStr;
use std::fmt;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::time::Instant;

/// The propagation kind of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PropKind {
    ForwardTraining,
    ForwardInference,
    Backward,
    BackwardData,
}

impl PropKind {
    pub(crate) fn is_forward(self) -> bool {
        matches!(self, Self::ForwardTraining | Self::ForwardInference)
    }

    /// Checks that a caller's `prop_kind` is a forward one.
    pub(crate) fn check_forward(self) -> Result<()> {
        if self.is_forward() {
            return Ok(());
        }
        let name = self.name();
        Err(Error::invalid(format_args!(
            "prop_kind: {name} is not forward_training or forward_inference"
        )))
    }

    pub(crate) fn name(self) -> &'static str {
        self.c_name().to_str().unwrap_or_default()
    }

    pub(crate) fn c_name(self) -> &'static CStr {
        match self {
            Self::ForwardTraining => c"forward_training",
            Self::ForwardInference => c"forward_inference",
            Self::Backward => c"backward",
            Self::BackwardData => c"backward_data",
        }
    }
}

/// The answer to a query, of the C type that the header states.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Answer {
    S32(i32),
    S64(i64),
    F32(f32),
    /// An enumerator, or flags.
    U32(u32),
}

/// A validated problem of an operation.
pub(crate) trait Op: Send + Sync {
    fn kind(&self) -> sys::norm_primitive_kind_t;
    fn name(&self) -> &'static str;
    /// `None` if not applicable.
    fn prop_kind(&self) -> Option<PropKind>;
    /// A parameter of the operation, such as its epsilon, axis or algorithm; `None` if not applicable.
    fn query(&self, _what: sys::norm_query_t) -> Option<Answer> {
        None
    }
    /// Everything that an execution reads or writes, including arguments of attributes but not the scratchpad.
    fn arguments(&self) -> &[OpArgument];
    /// The descriptor that a `norm_query_*_md` names; `None` if the problem has none of the kind. By default the
    /// argument of that name.
    fn query_md(&self, what: sys::norm_query_t, index: i32) -> Option<&MemoryDesc> {
        let id = match what {
            sys::norm_query_exec_arg_md => index,
            _ if index != 0 => return None,
            sys::norm_query_src_md => sys::NORM_ARG_SRC,
            sys::norm_query_dst_md => sys::NORM_ARG_DST,
            sys::norm_query_diff_src_md => sys::NORM_ARG_DIFF_SRC,
            sys::norm_query_diff_dst_md => sys::NORM_ARG_DIFF_DST,
            _ => return None,
        };
        self.arguments().iter().find(|argument| argument.id == id).map(|argument| &argument.desc)
    }
    /// The problem's dimensions, those of src or else of dst, as on benchdnn's command line.
    fn problem(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let src = self.query_md(sys::norm_query_src_md, 0);
        let src = src.or_else(|| self.query_md(sys::norm_query_dst_md, 0));
        let dims = src.map_or(&[][..], MemoryDesc::dims);
        write!(f, "{}", joined(dims.iter(), "x"))
    }
    /// What else defines the problem, for verbose lines.
    fn auxiliary(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
    /// The implementations, best first; the same list for every problem.
    fn variants(&self) -> &'static [Variant] {
        &BY_LEVEL
    }
    /// Creates an implementation. It is unimplemented if the variant does not support the problem.
    fn implement(&self, variant: &'static Variant) -> Result<Box<Counted<dyn Implementation>>>;
    /// Checks the relations between the buffers of an execution. By default an input and an output that share a buffer
    /// must have the same data type and layout, and the probability of dropout must be one.
    fn check_buffers(&self, arguments: &Arguments) -> Result<()> {
        check_shared_layouts(self.arguments(), arguments)?;
        let probability = arguments.get(sys::NORM_ARG_ATTR_DROPOUT_PROBABILITY);
        // SAFETY: buffers are as large as their descriptors, and this one's type is f32.
        unsafe { Dropout::check_probability(probability) }
    }
}

/// Checks that an input and an output that share a buffer have the same data type and layout.
pub(crate) fn check_shared_layouts(all: &[OpArgument], arguments: &Arguments) -> Result<()> {
    let own = || all.iter().filter(|argument| !argument.is_of_attribute());
    for output in own().filter(|argument| argument.usage == Usage::Output) {
        let buffer = arguments.get(output.id);
        // Empty tensors share nothing, whatever their addresses.
        if buffer.is_null() || output.desc.has_zero_dim() {
            continue;
        }
        let mut inputs = own().filter(|argument| argument.usage == Usage::Input);
        if let Some(input) = inputs.find(|input| {
            arguments.get(input.id) == buffer && !input.desc.same_layout(&output.desc)
        }) {
            return Err(Error::invalid(format_args!(
                "args: {} and {} share a buffer, but differ in data type or layout",
                Capitals(input.name),
                Capitals(output.name)
            )));
        }
    }
    Ok(())
}

/// An entry of an operation's list of implementations.
#[derive(Debug)]
pub(crate) struct Variant {
    /// The answer to `norm_query_impl_info_str`.
    pub(crate) name: &'static CStr,
    /// The level it is compiled for. `None` runs everywhere, whatever the limit.
    pub(crate) level: Option<Level>,
    /// The last part of the name, which distinguishes the implementations of a level; empty for the general one.
    pub(crate) algorithm: &'static str,
}

impl Variant {
    /// The general implementation of a level.
    pub(crate) const fn general(name: &'static std::ffi::CStr, level: Option<Level>) -> Self {
        Self { name, level, algorithm: "" }
    }
}

/// The list of operations with one kernel for every level and a reference implementation.
static BY_LEVEL: [Variant; 5] = [
    Variant::general(c"simd:avx512", Some(Level::Avx512)),
    Variant::general(c"simd:avx2", Some(Level::Avx2)),
    Variant::general(c"simd:neon", Some(Level::Neon)),
    Variant::general(c"simd:portable", Some(Level::Portable)),
    Variant::general(c"ref:any", None),
];

/// An implementation of a problem.
pub(crate) trait Implementation: Send + Sync {
    fn variant(&self) -> &'static Variant;
    /// Size of the scratchpad in bytes; it is 64-byte aligned.
    fn scratchpad_size(&self) -> usize;
    /// Runs the problem. Returns the number of threads that took part.
    fn execute(&self, execution: &Execution<'_>) -> usize;

    fn name(&self) -> &'static str {
        self.variant().name.to_str().unwrap_or("")
    }
}

/// One validated execution: every argument is present and large enough.
pub(crate) struct Execution<'a> {
    pub(crate) arguments: &'a Arguments,
    pub(crate) scratchpad: *mut u8,
    pub(crate) threads: Threads,
    /// The member of a crew that runs it, if it is one of several executions in a parallel region.
    pub(crate) member: Option<Member<'a>>,
}

impl Execution<'_> {
    /// Runs `body(block)` for each block on up to `width` threads, in the default floating-point environment. Returns
    /// the number of threads that took part.
    #[inline]
    pub(crate) fn run(
        &self,
        blocks: usize,
        width: usize,
        length: Length,
        body: &(impl Fn(usize) + Sync),
    ) -> usize {
        let body = &move |block| {
            let _environment = DefaultEnvironment::ensure();
            body(block);
        };
        match &self.member {
            None => self.threads.run(blocks, width, length, Body::new(body)),
            Some(member) => member.run(blocks, width, Body::new(body)),
        }
    }
}

/// Room for an operation's own arguments with their scales and zero points, and for two of each
/// post-operation, so that executions allocate nothing. [`PrimitiveDesc::new`] refuses more.
const MAX_ARGUMENTS: usize = 64 + 2 * MAX_POST_OPS;

/// The addresses of an execution's arguments. Entries past the last are never initialized, since most executions have
/// only a few.
pub(crate) struct Arguments {
    entries: [MaybeUninit<(i32, *mut u8)>; MAX_ARGUMENTS],
    len: usize,
}

// SAFETY: it only hands out addresses and does not access memory through them.
unsafe impl Sync for Arguments {}

impl Arguments {
    #[inline]
    pub(crate) fn new() -> Self {
        Self { entries: [const { MaybeUninit::uninit() }; MAX_ARGUMENTS], len: 0 }
    }

    /// No arguments yet, at a place that has room for them.
    ///
    /// # Safety
    /// The place is valid for writes, and nothing else uses it.
    pub(crate) unsafe fn new_at<'a>(place: *mut Self) -> &'a mut Self {
        // SAFETY: guaranteed by the caller. Entries may be uninitialized.
        unsafe {
            (&raw mut (*place).len).write(0);
            &mut *place
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, id: i32, address: *mut u8) {
        self.entries[self.len].write((id, address));
        self.len += 1;
    }

    /// The address of an argument; null if the problem does not use it.
    #[inline]
    pub(crate) fn get(&self, id: i32) -> *mut u8 {
        // SAFETY: `push` wrote the first `len`.
        let entries = unsafe {
            std::slice::from_raw_parts(self.entries.as_ptr().cast::<(i32, *mut u8)>(), self.len)
        };
        entries.iter().find(|e| e.0 == id).map_or(std::ptr::null_mut(), |e| e.1)
    }
}

/// A problem with its implementation.
#[derive(Clone)]
pub(crate) struct PrimitiveDesc {
    op: Shared<dyn Op>,
    attr: Shared<Attr>,
    /// The level at creation; later limits do not affect it.
    level: Level,
    position: usize,
    implementation: Shared<dyn Implementation>,
    /// Size of the implementation's scratchpad in bytes.
    scratchpad_size: usize,
    scratchpad: MemoryDesc,
    /// The number of elements of the largest tensor.
    elements: usize,
}

impl PrimitiveDesc {
    /// Chooses the first implementation that supports the problem.
    pub(crate) fn new(op: Box<Counted<dyn Op>>, attr: Attr) -> Result<Self> {
        let begin = Instant::now();
        let (op, attr): (Shared<dyn Op>, Shared<_>) = (op.into(), counted(attr)?.into());
        let level = effective_level();
        if op.arguments().len() > MAX_ARGUMENTS {
            let count = op.arguments().len();
            return Err(Error::unimplemented(format_args!(
                "the problem has {count} arguments, more than {MAX_ARGUMENTS}"
            )));
        }
        let (position, implementation) = choose(&*op, level, 0)?
            .ok_or_else(|| Error::unimplemented("no implementation supports this problem"))?;
        let scratchpad_size = implementation.scratchpad_size();
        let scratchpad = scratchpad_desc(scratchpad_size, &attr)?;
        let elements = op.arguments().iter().map(|argument| elements(argument.desc.dims()));
        let elements = elements.max().unwrap_or(0);
        let desc = Self {
            op,
            attr,
            level,
            position,
            implementation,
            scratchpad_size,
            scratchpad,
            elements,
        };
        if verbosity() >= Verbosity::Creation {
            let time = begin.elapsed();
            verbose::created(desc.describe(), time);
        }
        Ok(desc)
    }

    /// Switches to the next implementation that supports the problem.
    pub(crate) fn next_implementation(&mut self) -> Result<()> {
        // oneDNN chooses one when it creates the reorder.
        let is_last = cfg!(feature = "onednn-abi") && self.op.kind() == sys::norm_reorder;
        let next = if is_last { None } else { choose(&*self.op, self.level, self.position + 1)? };
        let (position, implementation) = next.ok_or_else(|| {
            Error::new(Status::LastImplReached, "this is the last implementation")
        })?;
        let scratchpad_size = implementation.scratchpad_size();
        self.scratchpad = scratchpad_desc(scratchpad_size, &self.attr)?;
        self.scratchpad_size = scratchpad_size;
        self.position = position;
        self.implementation = implementation;
        Ok(())
    }

    /// The problem and the implementation for verbose lines.
    fn describe(&self) -> impl fmt::Display {
        let op = self.op();
        let tensors = op.arguments().iter().filter(|argument| !argument.is_of_attribute());
        let tensors =
            tensors.map(|a| shown(move |f| write!(f, "{}:{}", a.name, a.desc.describe())));
        shown(move |f| {
            write!(
                f,
                "{},{},{},{},{},{},{}",
                op.name(),
                self.implementation().name(),
                op.prop_kind().map_or("undef", PropKind::name),
                joined(tensors.clone(), " "),
                self.attr().describe(),
                shown(|f| op.auxiliary(f)),
                shown(|f| op.problem(f))
            )
        })
    }

    #[inline]
    pub(crate) fn op(&self) -> &dyn Op {
        &*self.op
    }

    pub(crate) fn attr(&self) -> &Attr {
        &self.attr
    }

    pub(crate) fn implementation(&self) -> &dyn Implementation {
        &*self.implementation
    }

    /// The descriptor of the caller's scratchpad; empty in library mode.
    pub(crate) fn scratchpad_desc(&self) -> &MemoryDesc {
        &self.scratchpad
    }

    /// The number of elements of the largest tensor.
    pub(crate) fn elements(&self) -> usize {
        self.elements
    }

    /// Bytes of the scratchpad that the library provides; 0 in user mode.
    pub(crate) fn library_scratchpad(&self) -> usize {
        match self.attr.scratchpad_mode {
            ScratchpadMode::Library => self.scratchpad_size,
            ScratchpadMode::User => 0,
        }
    }

    /// The part of a caller's scratchpad that an execution uses; `None` if it uses none.
    pub(crate) fn user_scratchpad(&self, scratchpad: *mut u8) -> Option<Range<usize>> {
        let start = scratchpad::align(scratchpad).addr();
        let used = self.scratchpad.ndims() > 0;
        used.then(|| start..start + self.scratchpad_size)
    }

    /// Runs the problem on validated buffers. `scratchpad` is the caller's, in user mode. Returns
    /// the number of threads that took part.
    #[inline]
    pub(crate) fn execute(
        &self,
        arguments: &Arguments,
        scratchpad: *mut u8,
        threads: Threads,
    ) -> Result<usize> {
        let run =
            |scratchpad| self.run(&Execution { arguments, scratchpad, threads, member: None });
        match self.attr.scratchpad_mode {
            ScratchpadMode::Library => with_scratchpad(self.scratchpad_size, run),
            ScratchpadMode::User => Ok(run(scratchpad::align(scratchpad))),
        }
    }

    /// Runs the problem as a member of a crew. `scratchpad` is the caller's in user mode, and otherwise has
    /// [`library_scratchpad`](Self::library_scratchpad) aligned bytes.
    pub(crate) fn execute_in_crew(
        &self,
        arguments: &Arguments,
        scratchpad: *mut u8,
        threads: Threads,
        member: Option<Member<'_>>,
    ) -> usize {
        let scratchpad = scratchpad::align(scratchpad);
        self.run(&Execution { arguments, scratchpad, threads, member })
    }

    #[inline]
    fn run(&self, execution: &Execution<'_>) -> usize {
        let _environment = DefaultEnvironment::enter();
        if verbosity() < Verbosity::Execution {
            return self.implementation.execute(execution);
        }
        let begin = Instant::now();
        let count = self.implementation.execute(execution);
        let time = begin.elapsed();
        verbose::executed(self.describe(), time);
        count
    }
}

/// The first implementation from `position` on that supports the problem, and its position.
fn choose(
    op: &dyn Op,
    level: Level,
    position: usize,
) -> Result<Option<(usize, Shared<dyn Implementation>)>> {
    let report = verbosity() >= Verbosity::Creation;
    for (at, variant) in op.variants().iter().enumerate().skip(position) {
        let refusal = match variant.level {
            Some(l) if !l.is_built() => Error::unimplemented("not in this build"),
            Some(l) if !Level::available().contains(&l) => {
                Error::unimplemented("the machine lacks the instruction set")
            }
            Some(l) if l > level => Error::unimplemented("above the cap on the instruction set"),
            _ => match op.implement(variant) {
                Ok(implementation) => return Ok(Some((at, implementation.into()))),
                Err(reason) if reason.status == Status::Unimplemented => reason,
                Err(failure) => return Err(failure),
            },
        };
        if report {
            let name = variant.name.to_str().unwrap_or("");
            verbose::passed_over((op.name(), shown(|f| op.problem(f))), name, refusal);
        }
    }
    Ok(None)
}

/// The number of elements of a tensor.
fn elements(dims: &[i64]) -> usize {
    dims.iter().fold(1usize, |product, dim| product.saturating_mul(*dim as usize))
}

/// The descriptor of the caller's scratchpad, with room for alignment.
fn scratchpad_desc(size: usize, attr: &Attr) -> Result<MemoryDesc> {
    if attr.scratchpad_mode == ScratchpadMode::Library || size == 0 {
        return Ok(MemoryDesc::EMPTY);
    }
    let size = i64::try_from(size.saturating_add(LINE)).map_err(|_| {
        Error::new(Status::OutOfMemory, "the scratchpad would exceed the address space")
    })?;
    MemoryDesc::dense(&[size], DataType::U8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_argument_is_found() {
        let mut arguments = Arguments::new();
        let mut bytes = [0u8; MAX_ARGUMENTS];
        let first = bytes.as_mut_ptr();
        for n in 0..MAX_ARGUMENTS {
            arguments.push(OpArgument::OWN | n as i32, first.wrapping_add(n));
        }
        for n in 0..MAX_ARGUMENTS {
            assert_eq!(arguments.get(OpArgument::OWN | n as i32), first.wrapping_add(n));
        }
        assert!(arguments.get(sys::NORM_ARG_SRC).is_null());
    }
}
