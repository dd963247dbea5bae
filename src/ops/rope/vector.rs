//! The vector implementations. Threads share blocks of tokens; the angles of a block are on the stack.

use super::angles::{self, Angles};
use super::kernel::{self, Rotation, Run};
use super::norm::{self, Heads, PlainHead};
use super::positions::{Positions, slot};
use super::problem::{MOST_SECTIONS, Norm, Pairing, Rope};
use crate::error::{Error, Result};
use crate::heap::{Counted, LINE, counted};
use crate::primitive::{Execution, Implementation, Variant};
use crate::rows::{
    BLOCKS_PER_THREAD, Caches, Fence, Neutral, Parameter, Schedule, length_of, width_of,
};
use crate::simd::{LANES, Level};
use crate::tensor::{DataType, RowMap};
use norm_sys as sys;
use std::mem::MaybeUninit;
use std::ops::Range;

/// Floats for the angles of a block of tokens: half of a first-level cache.
const ANGLES: usize = 4096;
/// The most tokens of a block.
const MOST_TOKENS: usize = ANGLES / (2 * LANES);
/// The longest head that is normalized element by element on the stack.
const LONGEST_NORMALIZED: usize = 4096;
#[repr(align(64))]
struct Aligned<T>(T);

/// The vector implementation of a level, or the reason why it does not support the problem.
pub(super) fn make(
    problem: &Rope,
    variant: &'static Variant,
    level: Level,
) -> Result<Box<Counted<dyn Implementation>>> {
    let [input, output] = problem.ids().map(|id| problem.desc(id));
    let cols = problem.cols();
    for argument in &problem.arguments[..2] {
        let last = argument.desc.strides()[argument.desc.ndims() - 1];
        if argument.desc.is_blocked() || last != 1 && cols != 1 {
            return Err(Error::unimplemented(format_args!(
                "the elements of a head of {} are not contiguous",
                argument.name
            )));
        }
    }
    if 2 * angles::width(problem) > ANGLES || problem.norm.is_some() && cols > LONGEST_NORMALIZED {
        return Err(Error::unimplemented(format_args!("heads of {cols} elements")));
    }
    let types = [input, output].map(|desc| desc.data_type().unwrap_or(DataType::F32));
    let scale_type = problem.norm.and_then(|norm| norm.scale).unwrap_or(DataType::F32);
    let scale = Parameter::new(level, cols, scale_type, Some(Neutral::One))
        .plus_one(problem.norm.is_some_and(|norm| norm.plus_one));
    Ok(counted(Vectorized {
        variant,
        problem: problem.try_clone()?,
        types,
        scale,
        angles: angles::entry(level),
        rotate: kernel::entry(level, (types[0], types[1]), problem.norm.is_some()),
        fence: Fence::new(level),
        rotate_values: kernel::entry(level, (DataType::F32, types[1]), false),
        reciprocals: norm::entry(level, types[0]),
    })?)
}

struct Vectorized {
    variant: &'static Variant,
    problem: Rope,
    /// The types of the input and the output.
    types: [DataType; 2],
    scale: Parameter,
    angles: angles::Entry,
    rotate: kernel::Entry,
    fence: Fence,
    /// Rotates normalized values in f32.
    rotate_values: kernel::Entry,
    reciprocals: norm::Entry,
}

/// The addresses and options of an execution.
struct Job<'a> {
    input: *const u8,
    output: *mut u8,
    slots: *const u8,
    positions: Positions<'a>,
    angles: Angles<'a>,
    rotation: Rotation,
}

// SAFETY: threads write disjoint rows.
unsafe impl Sync for Job<'_> {}

impl Implementation for Vectorized {
    fn variant(&self) -> &'static Variant {
        self.variant
    }

    fn scratchpad_size(&self) -> usize {
        if self.problem.norm.is_none() {
            return 0;
        }
        self.scale.room(self.problem.norm.is_some_and(|norm| norm.scale.is_some()))
    }

    fn execute(&self, execution: &Execution<'_>) -> usize {
        let plan = &self.problem.plan;
        let (tokens, heads) = (plan.tokens, plan.heads);
        let elements = tokens * heads * self.problem.cols();
        if elements == 0 {
            return 1;
        }
        let (width, length) = (width_of(execution.threads, elements), length_of(elements));
        let job = self.job(execution, width);
        let most = ANGLES / (2 * job.angles.width);
        let step = tokens.div_ceil(width * BLOCKS_PER_THREAD).clamp(1, most);
        let blocks = tokens.div_ceil(step);
        // With few tokens, threads share their heads, too. Each part computes its own angles.
        let parts = if blocks < width { width.div_ceil(blocks).min(heads) } else { 1 };
        let threads = execution.run(blocks * parts, width, length, &|task| {
            let (block, part) = (task / parts, task % parts);
            let tokens = block * step..tokens.min((block + 1) * step);
            self.block(&job, tokens, heads * part / parts..heads * (part + 1) / parts);
            // SAFETY: the machine has the level.
            unsafe { self.fence.after(job.rotation.streams) };
        });
        threads.max(1)
    }
}

impl Vectorized {
    fn job<'a>(&'a self, execution: &Execution<'_>, threads: usize) -> Job<'a> {
        let problem = &self.problem;
        let address = |id| execution.arguments.get(id);
        let [input, output] = problem.ids().map(address);
        let tables = [sys::NORM_ARG_ROPE_COS, sys::NORM_ARG_ROPE_SIN];
        let tables = tables.map(|id| address(id).cast_const());
        let frequencies = address(sys::NORM_ARG_ROPE_FREQUENCIES);
        let in_turn = kernel::in_turn((self.types[0], self.types[1]), problem.norm.is_some());
        let angles = Angles::new(problem, in_turn, frequencies, tables);
        let (cols, distance) = (problem.cols(), problem.distance());
        let rows = problem.plan.tokens * problem.plan.heads;
        let [src_type, dst_type] = self.types;
        let shape = (rows, cols);
        let schedule = Schedule::new(Caches::get(), shape, (src_type, dst_type), threads);
        let interleaved = problem.pairing == Pairing::Interleaved;
        let aligned = interleaved || (distance * dst_type.size()).is_multiple_of(LINE);
        let in_place = input == output;
        let given = address(sys::NORM_ARG_SCALE);
        let scale = if problem.norm.is_some() {
            // SAFETY: the scale was checked to have a value per column, and the scratchpad has its room.
            unsafe { self.scale.get(given, execution.scratchpad) }
        } else {
            std::ptr::null()
        };
        let rotation = Rotation {
            src_type,
            dst_type,
            cols,
            pairs: angles.pairs,
            distance,
            interleaved,
            width: angles.width,
            copies: !in_place || problem.norm.is_some(),
            streams: schedule.streams && aligned && !in_place,
            rounded: problem.norm.is_some_and(|norm| norm.rounded) && dst_type != DataType::F32,
            scale,
        };
        Job {
            input,
            output,
            slots: address(sys::NORM_ARG_SLOTS),
            positions: problem.positions(address(sys::NORM_ARG_POSITIONS)),
            angles,
            rotation,
        }
    }

    /// Rotates some heads of a block of tokens.
    fn block(&self, job: &Job<'_>, tokens: Range<usize>, heads: Range<usize>) {
        let mut angles = Aligned([const { MaybeUninit::<f32>::uninit() }; ANGLES]);
        let mut positions = [const { MaybeUninit::<i64>::uninit() }; MOST_TOKENS * MOST_SECTIONS];
        let (angles, parts) = (angles.0.as_mut_ptr().cast::<f32>(), job.positions.parts);
        for (at, token) in tokens.clone().enumerate() {
            for part in 0..parts {
                // SAFETY: the execution's buffers were checked.
                positions[at * parts + part].write(unsafe { job.positions.get(token, part) });
            }
        }
        let plan = &self.problem.plan;
        let (token_step, head_step) =
            (plan.input.tokens.innermost().0, plan.input.heads.innermost().0);
        let by_heads = plan.slots.is_none()
            && tokens.len() > 1
            && (heads.len() == 1 || head_step > token_step);
        let angle_step = 2 * job.angles.width;
        let compute = |first: usize, count: usize| {
            let positions = positions.as_ptr().wrapping_add(first * parts).cast();
            // SAFETY: as above; positions were checked, the array has room for the tokens, and the machine has the level.
            unsafe { (self.angles)(&job.angles, positions, count, angles) };
        };
        if by_heads {
            compute(0, tokens.len());
            for head in heads {
                let (from, to) = (plan.input.heads.offset(head), plan.output.heads.offset(head));
                let maps = [&plan.input.tokens, &plan.output.tokens];
                self.runs(job, maps, tokens.clone(), (from, to), (angles, angle_step));
            }
            return;
        }
        // Between rows in memory, angles are computed while the prefetchers and the stores work.
        let at_once = if job.rotation.streams { 1 } else { tokens.len() };
        for (at, token) in tokens.enumerate() {
            if at % at_once == 0 {
                compute(at, at_once);
            }
            let place = match plan.slots {
                None => token,
                // SAFETY: the execution's buffers were checked.
                Some(_) => match unsafe { slot(job.slots, token) } {
                    None => continue,
                    Some(slot) => slot,
                },
            };
            let (from, to) = (plan.input.tokens.offset(token), plan.output.tokens.offset(place));
            let maps = [&plan.input.heads, &plan.output.heads];
            let angles = angles.wrapping_add(at % at_once * angle_step);
            self.runs(job, maps, heads.clone(), (from, to), (angles, 0));
        }
    }

    /// Rotates a range of rows in runs that are equally spaced. `from` and `to` are added to the maps' offsets.
    fn runs(
        &self,
        job: &Job<'_>,
        [input, output]: [&RowMap; 2],
        range: Range<usize>,
        (from, to): (usize, usize),
        (angles, angle_step): (*const f32, usize),
    ) {
        let ((src_step, src_count), (dst_step, dst_count)) =
            (input.innermost(), output.innermost());
        let [src_size, dst_size] = self.types.map(DataType::size);
        let mut row = range.start;
        while row < range.end {
            let count = (src_count - row % src_count).min(dst_count - row % dst_count);
            let count = count.min(range.end - row);
            let run = Run {
                src: job.input.wrapping_add((from + input.offset(row)) * src_size),
                dst: job.output.wrapping_add((to + output.offset(row)) * dst_size),
                src_step: src_step * src_size,
                dst_step: dst_step * dst_size,
                angles: angles.wrapping_add((row - range.start) * angle_step),
                angle_step,
                count,
                r: std::ptr::null(),
            };
            match &self.problem.norm {
                // SAFETY: the execution's buffers were checked, rows are given out once, and the machine has the level.
                None => unsafe { (self.rotate)(&job.rotation, &run) },
                Some(norm) => self.normalized(job, norm, &run),
            }
            row += count;
        }
    }

    /// Normalizes and rotates the heads of a run.
    fn normalized(&self, job: &Job<'_>, norm: &Norm, run: &Run) {
        let mut r = Aligned([0.0f32; LANES]);
        for first in (0..run.count).step_by(LANES) {
            let part = Run {
                src: run.src.wrapping_add(first * run.src_step),
                dst: run.dst.wrapping_add(first * run.dst_step),
                angles: run.angles.wrapping_add(first * run.angle_step),
                count: LANES.min(run.count - first),
                r: r.0.as_ptr(),
                ..*run
            };
            let heads = Heads {
                data_type: self.types[0],
                cols: job.rotation.cols,
                epsilon: norm.epsilon,
                src: part.src,
                step: part.src_step,
                count: part.count,
            };
            // SAFETY: as above.
            unsafe {
                if (self.reciprocals)(&heads, r.0.as_mut_ptr()) {
                    (self.rotate)(&job.rotation, &part);
                } else {
                    self.one_by_one(job, norm, &part);
                }
            }
        }
    }

    /// Normalizes and rotates a run with heads that need f64.
    ///
    /// # Safety
    /// The heads exist and belong to this thread.
    #[cold]
    unsafe fn one_by_one(&self, job: &Job<'_>, norm: &Norm, run: &Run) {
        let mut values = Aligned([0.0f32; LONGEST_NORMALIZED]);
        let values = &mut values.0[..job.rotation.cols];
        let rotation = Rotation { src_type: DataType::F32, streams: false, ..job.rotation };
        for head in 0..run.count {
            let src = run.src.wrapping_add(head * run.src_step);
            // SAFETY: guaranteed by the caller; the scale is as long as a head, and the machine has the level.
            unsafe {
                let plain = PlainHead {
                    get: &|col| norm::element(self.types[0], src, col),
                    scale: job.rotation.scale,
                    rounded: norm.rounded.then_some(self.types[1]),
                };
                norm::normalize(&plain, norm, values);
                let one = Run {
                    src: values.as_ptr().cast(),
                    dst: run.dst.wrapping_add(head * run.dst_step),
                    angles: run.angles.wrapping_add(head * run.angle_step),
                    count: 1,
                    ..*run
                };
                (self.rotate_values)(&rotation, &one);
            }
        }
    }
}
