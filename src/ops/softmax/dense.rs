//! The vector implementations, for rows that lie densely: blocks of rows on threads, and the attributes' steps.

use super::kernel::{Entry, Job, Tensor, backward_entry, forward_entry, store_entry};
use super::problem::{Softmax, SoftmaxAlgorithm};
use crate::primitive::{
    BoundChain, ChainEntry, Execution, Implementation, PostOpChain, Rows, Variant, chain_entry,
};
use crate::simd::{DefaultEnvironment, Level};
use crate::tensor::{DataType, MemoryDesc, RowMap};
use crate::threads::Length;
use norm_sys as sys;

/// Elements from which a thread pays for itself.
const ELEMENTS_PER_THREAD: usize = 8 * 1024;
/// Elements from which a thread that sleeps is woken.
const ELEMENTS_TO_WAKE_FOR: usize = 128 * 1024;
/// The most blocks that rows are cut into, each with a row of f32 where one is needed.
const MAX_BLOCKS: usize = 64;
/// Elements of f32 in a cache line.
const LINE: usize = 16;

/// The vector implementation at a level, or why it does not fit.
pub(super) fn make(
    problem: &Softmax,
    variant: &'static Variant,
    level: Level,
) -> Result<Box<dyn Implementation>, String> {
    let p = problem;
    for argument in p.tensors() {
        let desc = p.axis_last(&argument.desc);
        let name = &argument.name;
        if desc.is_blocked() {
            return Err(format!("the layout of {name} is cut into blocks"));
        }
        let step = desc.strides().last().copied().unwrap_or(1);
        if !argument.is_of_attribute() && step != 1 && p.cols > 1 {
            return Err(format!("neighbours along the axis of {name} are {step} elements apart"));
        }
        if !argument.is_of_attribute() && !is_taken(&desc) {
            return Err(format!("the data type of {name}"));
        }
    }
    if p.dst.ndims() > RowMap::MAX_LEVELS + 1 {
        return Err(format!("{} dimensions", p.dst.ndims()));
    }
    let forward = p.prop_kind.is_forward();
    let (input, output) = if forward { (&p.src, &p.dst) } else { (&p.diff_dst, &p.diff_src) };
    let dst = p.axis_last(&p.dst);
    let last = dst.ndims() - 1;
    let order: Vec<usize> = dst.order()[..=last].iter().copied().filter(|d| *d != last).collect();
    let steps = PostOpChain::new(&p.attr_axis_last(), &dst, Some(&order));
    let tensor = |id, desc: &MemoryDesc| Source::new(id, &p.axis_last(desc), &order);
    let types = [&p.dst, input, output].map(type_of);
    let stepped = if steps.is_some() { DataType::F32 } else { types[2] };
    let entry = if forward {
        forward_entry(level, types[1], stepped)
    } else {
        backward_entry(level, types)
    };
    let ids = if forward {
        [sys::NORM_ARG_SRC, sys::NORM_ARG_DST]
    } else {
        [sys::NORM_ARG_DIFF_DST, sys::NORM_ARG_DIFF_SRC]
    };
    let keeps = forward && (types[2] != DataType::F32 || steps.is_some());
    Ok(Box::new(Dense {
        variant,
        algorithm: p.algorithm,
        rows: p.rows,
        cols: p.cols,
        input: tensor(ids[0], input),
        output: tensor(ids[1], output),
        dst: tensor(sys::NORM_ARG_DST, &p.dst),
        entry,
        steps: steps.map(|steps| (steps, chain_entry(level))),
        store: store_entry(level),
        stage_step: if keeps { p.cols.next_multiple_of(LINE) } else { 0 },
    }))
}

fn type_of(desc: &MemoryDesc) -> DataType {
    desc.data_type().unwrap_or(DataType::F32)
}

/// Whether the kernels have the type.
fn is_taken(desc: &MemoryDesc) -> bool {
    !matches!(desc.data_type(), Some(DataType::F8E4m3 | DataType::F8E5m2))
}

/// Where a tensor's rows are found.
struct Source {
    id: i32,
    data_type: DataType,
    rows: RowMap,
}

impl Source {
    fn new(id: i32, desc: &MemoryDesc, order: &[usize]) -> Self {
        let of = |values: &[i64]| -> Vec<i64> {
            order.iter().filter_map(|d| values.get(*d)).copied().collect()
        };
        let rows = RowMap::new(&of(desc.dims()), &of(desc.strides()));
        Self { id, data_type: type_of(desc), rows }
    }

    fn tensor(&self, execution: &Execution<'_>) -> Tensor {
        let start = execution.arguments.get(self.id);
        Tensor { data_type: self.data_type, start, rows: self.rows }
    }
}

struct Dense {
    variant: &'static Variant,
    algorithm: SoftmaxAlgorithm,
    rows: usize,
    cols: usize,
    input: Source,
    output: Source,
    dst: Source,
    entry: Entry,
    steps: Option<(PostOpChain, ChainEntry)>,
    /// Rounds a row of f32 to the type of dst.
    store: Entry,
    /// Elements of a block's row of f32; 0 without.
    stage_step: usize,
}

impl Implementation for Dense {
    fn variant(&self) -> &'static Variant {
        self.variant
    }

    fn scratchpad_size(&self) -> usize {
        self.blocks().saturating_mul(self.stage_step).saturating_mul(size_of::<f32>())
    }

    fn execute(&self, execution: &Execution<'_>) -> usize {
        let environment = DefaultEnvironment::enter();
        let steps = self.steps.as_ref().map(|(steps, entry)| {
            // SAFETY: the execution's buffers were checked.
            (unsafe { steps.bind(execution.arguments) }, *entry)
        });
        drop(environment);
        let job = Job {
            cols: self.cols,
            algorithm: self.algorithm,
            input: self.input.tensor(execution),
            dst: self.dst.tensor(execution),
            output: self.output.tensor(execution),
        };
        let (blocks, elements) = (self.blocks(), self.rows * self.cols);
        let width = execution.threads.count().min(elements / ELEMENTS_PER_THREAD).max(1);
        let length = if elements >= ELEMENTS_TO_WAKE_FOR { Length::Long } else { Length::Short };
        let stages = Stages::new(execution);
        let threads = execution.threads.run(blocks, width, length, &|block| {
            let _environment = DefaultEnvironment::enter();
            let stage = stages.at(block * self.stage_step);
            let (first, last) = (self.rows * block / blocks, self.rows * (block + 1) / blocks);
            // SAFETY: the execution's buffers were checked, rows and stages are given out once, and the machine has
            // the level.
            unsafe {
                match &steps {
                    Some(steps) => self.stepped_rows(&job, steps, stage, (first, last)),
                    None if self.stage_step == 0 => {
                        (self.entry)(&job, std::ptr::null_mut(), first, last);
                    }
                    None => (self.entry)(&job, stage, first, last),
                }
            }
        });
        threads.max(1)
    }
}

/// The rows of f32 in the scratchpad.
pub(super) struct Stages(*mut f32);

// SAFETY: each is one block's.
unsafe impl Sync for Stages {}

impl Stages {
    pub(super) fn new(execution: &Execution<'_>) -> Self {
        Self(execution.scratchpad.cast())
    }

    pub(super) fn at(&self, offset: usize) -> *mut f32 {
        self.0.wrapping_add(offset)
    }
}

impl Dense {
    fn blocks(&self) -> usize {
        let worth = (self.rows * self.cols / ELEMENTS_PER_THREAD).clamp(1, MAX_BLOCKS);
        if self.cols == 0 { 0 } else { self.rows.min(worth) }
    }

    /// Rows whose steps are taken in f32, in `stage`, before they are stored.
    ///
    /// # Safety
    /// The rows are there and this thread's, and so is the stage.
    unsafe fn stepped_rows(
        &self,
        job: &Job,
        (steps, entry): &(BoundChain<'_>, ChainEntry),
        stage: *mut f32,
        (first, last): (usize, usize),
    ) {
        let staged =
            Tensor { data_type: DataType::F32, start: stage.cast(), rows: RowMap::every(0) };
        let compute = Job { output: staged, ..*job };
        let store = Job { input: staged, ..*job };
        let rows = Rows { start: stage, step: 0, cols: self.cols };
        for row in first..last {
            // SAFETY: the caller's.
            unsafe {
                (self.entry)(&compute, std::ptr::null_mut(), row, row + 1);
                entry(steps, &rows, row, row + 1);
                (self.store)(&store, std::ptr::null_mut(), row, row + 1);
            }
        }
    }
}
