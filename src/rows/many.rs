//! Executes several independent primitives in one parallel region.
//!
//! The threads form a [`Crew`]: each claims whole primitives; threads that find none left claim blocks of those still
//! running. Everything that can fail happens before the first write: the arguments of all primitives are bound, and one
//! allocation holds them and the scratchpads.

use super::spread::{length_of, width_of};
use crate::error::{Error, Result};
use crate::primitive::{Arguments, PrimitiveDesc, with_scratchpad};
use crate::simd::DefaultEnvironment;
use crate::threads::{Body, Crew, Length, MAX_TASKS, Member, Slot, Threads};
use std::alloc::Layout;
use std::slice;

/// The primitives of a call, by their index.
pub(crate) trait Many {
    fn count(&self) -> usize;
    fn desc(&self, index: usize) -> &PrimitiveDesc;
    /// Checks and stores the arguments of a primitive. Returns the caller's scratchpad, null in library mode.
    fn bind(&self, index: usize, arguments: &mut Arguments) -> Result<*mut u8>;
}

/// A primitive with its arguments.
struct Bound<'a> {
    desc: &'a PrimitiveDesc,
    arguments: Arguments,
    /// The caller's scratchpad.
    scratchpad: *mut u8,
}

// SAFETY: any thread of the execution may use the arguments and the scratchpad.
unsafe impl Sync for Bound<'_> {}

/// The threads and the memory that a call uses.
struct Plan {
    width: usize,
    length: Length,
    /// The maximum number of primitives that run at the same time.
    parallel: usize,
    /// Bytes of the library's scratchpad for one primitive, a multiple of its alignment.
    scratchpad: usize,
}

/// Alignment of the call's memory.
const ALIGN: usize = 128;
const _: () = assert!(align_of::<Slot>() <= ALIGN && align_of::<Bound<'_>>() <= ALIGN);

/// Executes the primitives. Returns the number of threads that took part. On failure nothing was written.
pub(crate) fn execute_many(many: &impl Many, threads: Threads) -> Result<usize> {
    let plan = Plan::new(many, threads);
    let count = many.count();
    let too_large = |_| Error::out_of_memory("the primitives", usize::MAX);
    let slots = if plan.width > 1 { plan.parallel } else { 0 };
    let bytes = plan.scratchpad.saturating_mul(plan.parallel);
    let bound = Layout::array::<Bound<'_>>(count).map_err(too_large)?;
    let slot_array = Layout::array::<Slot>(slots).map_err(too_large)?;
    let scratchpads = Layout::from_size_align(bytes, ALIGN).map_err(too_large)?;
    let (all, slots_at) = bound.extend(slot_array).map_err(too_large)?;
    let (all, scratchpads_at) = all.extend(scratchpads).map_err(too_large)?;
    with_scratchpad(all.size().saturating_add(ALIGN), |start| {
        let start = start.wrapping_add(start.align_offset(ALIGN));
        // SAFETY: the memory has room for the arrays at these offsets.
        let (bound, slots) = unsafe {
            let bound = bind(many, start.cast())?;
            check_scratchpads(bound)?;
            (bound, new_slots(start.wrapping_add(slots_at).cast(), slots))
        };
        let ran = plan.run(bound, slots, Shared(start.wrapping_add(scratchpads_at)), threads);
        // SAFETY: they were made above, and no thread uses them any more.
        unsafe { std::ptr::drop_in_place(std::ptr::from_ref(slots).cast_mut()) };
        Ok(ran)
    })?
}

/// Binds the arguments of all primitives.
///
/// # Safety
/// There is room for all at `start`.
unsafe fn bind<'a>(many: &'a impl Many, start: *mut Bound<'a>) -> Result<&'a [Bound<'a>]> {
    for index in 0..many.count() {
        // SAFETY: guaranteed by the caller. Written field by field, to avoid copying the room for arguments.
        unsafe {
            let place = start.add(index);
            let arguments = Arguments::new_at(&raw mut (*place).arguments);
            let scratchpad = many.bind(index, arguments)?;
            (&raw mut (*place).desc).write(many.desc(index));
            (&raw mut (*place).scratchpad).write(scratchpad);
        }
    }
    // SAFETY: all are written.
    Ok(unsafe { slice::from_raw_parts(start, many.count()) })
}

/// # Safety
/// There is room for `count` slots at `start`.
unsafe fn new_slots<'a>(start: *mut Slot, count: usize) -> &'a [Slot] {
    // SAFETY: guaranteed by the caller.
    unsafe {
        (0..count).for_each(|index| start.add(index).write(Slot::new()));
        slice::from_raw_parts(start, count)
    }
}

/// Refuses scratchpads of the caller that overlap: primitives that run at the same time would overwrite each other's.
fn check_scratchpads(bound: &[Bound<'_>]) -> Result<()> {
    let used = |at: usize| bound[at].desc.user_scratchpad(bound[at].scratchpad);
    for (at, range) in (0..bound.len()).filter_map(|at| Some((at, used(at)?))) {
        for (before, other) in (0..at).filter_map(|before| Some((before, used(before)?))) {
            if range.start < other.end && other.start < range.end {
                return Err(Error::invalid(format_args!(
                    "primitives {before} and {at}: args: NORM_ARG_SCRATCHPAD: they share a scratchpad"
                )));
            }
        }
    }
    Ok(())
}

impl Plan {
    /// The number of threads that pay off for all primitives together, by the same constants as for a single one.
    fn new(many: &impl Many, threads: Threads) -> Self {
        let descs = || (0..many.count()).map(|index| many.desc(index));
        let elements = descs().fold(0usize, |sum, desc| sum.saturating_add(desc.elements()));
        let width = if many.count() > MAX_TASKS { 1 } else { width_of(threads, elements) };
        let scratchpad = descs().map(PrimitiveDesc::library_scratchpad).max().unwrap_or(0);
        Self {
            width,
            length: length_of(elements),
            parallel: width.min(many.count()),
            scratchpad: scratchpad.saturating_add(ALIGN - 1) / ALIGN * ALIGN,
        }
    }

    fn run(
        &self,
        bound: &[Bound<'_>],
        slots: &[Slot],
        scratchpads: Shared,
        threads: Threads,
    ) -> usize {
        let execute = |index: usize, member: Option<Member<'_>>| {
            let Bound { desc, ref arguments, scratchpad } = bound[index];
            let number = member.map_or(0, |member| member.number);
            let own = scratchpads.at(number * self.scratchpad);
            let scratchpad = if desc.library_scratchpad() > 0 { own } else { scratchpad };
            desc.execute_in_crew(arguments, scratchpad, threads, member)
        };
        if self.width == 1 {
            return (0..bound.len()).map(|index| execute(index, None)).max().unwrap_or(0);
        }
        let crew = Crew::new(slots, bound.len(), self.width);
        let work = |index| {
            let _environment = DefaultEnvironment::ensure();
            crew.work(index, |index, member| _ = execute(index, Some(member)));
        };
        threads.run(self.width, self.width, self.length, Body::new(&work))
    }
}

/// The scratchpads of the members.
#[derive(Clone, Copy)]
struct Shared(*mut u8);

impl Shared {
    fn at(self, offset: usize) -> *mut u8 {
        self.0.wrapping_add(offset)
    }
}

// SAFETY: each member writes its own part only.
unsafe impl Sync for Shared {}
