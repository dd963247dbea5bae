//! The vector implementations: rows in f32, in place or on a stage.

use super::kernel::{Entry, Job, entry};
use super::problem::{Operands, Softmax, SoftmaxAlgorithm};
use crate::error::{Error, Result};
use crate::heap::{Counted, counted};
use crate::primitive::{Execution, Implementation, Variant};
use crate::rows::{Caches, Operand, Pipeline, RowTensor, Spec, TENSORS, row_map, row_order};
use crate::simd::Level;
use crate::tensor::{DataType, RowMap};
use norm_sys as sys;

/// The vector implementation at a level, or why it does not support the problem.
pub(super) fn make(
    problem: &Softmax,
    variant: &'static Variant,
    level: Level,
) -> Result<Box<Counted<dyn Implementation>>> {
    if let Some(blocked) = problem.arguments.iter().find(|argument| argument.desc.is_blocked()) {
        let text = format_args!("the layout of {} is blocked", blocked.name);
        return Err(Error::unimplemented(text));
    }
    if problem.is_wide() {
        return Err(Error::unimplemented("the reference implementation computes in f64"));
    }
    let Operands { ids, descs, output, rows, cols } = problem.operands();
    if descs[0].ndims() > RowMap::MAX_LEVELS + 1 {
        return Err(Error::unimplemented(format_args!("{} dimensions", descs[0].ndims())));
    }
    let order = row_order(&descs[0], false);
    let pipeline = Pipeline::new(Spec {
        level: Some(level),
        rows,
        cols,
        operands: [0, 1, 2].map(|i| Operand {
            desc: &descs[i],
            kernel_type: DataType::F32,
            output: i == output,
        }),
        order: &order,
        chain: problem.chain(&descs[1], Some(&order))?,
        around: None,
        sums: [false; 2],
        room: 0,
    });
    let stats = problem.stats().map(|desc| row_map(&desc, &order));
    let (forward, algorithm) = (problem.prop_kind.is_forward(), problem.algorithm);
    let entry = entry(level);
    Ok(counted(Vectorized { variant, forward, algorithm, pipeline, ids, stats, entry })?)
}

struct Vectorized {
    variant: &'static Variant,
    forward: bool,
    algorithm: SoftmaxAlgorithm,
    pipeline: Pipeline,
    /// The argument ids of the pipeline's tensors.
    ids: [i32; TENSORS],
    /// The logarithms of the rows' sums.
    stats: Option<RowMap>,
    entry: Entry,
}

impl Implementation for Vectorized {
    fn variant(&self) -> &'static Variant {
        self.variant
    }

    fn scratchpad_size(&self) -> usize {
        self.pipeline.scratchpad_size()
    }

    fn execute(&self, execution: &Execution<'_>) -> usize {
        let &Self { forward, algorithm, ref pipeline, .. } = self;
        let cols = pipeline.cols;
        let stats = self.stats.map(|rows| RowTensor {
            address: execution.arguments.get(sys::NORM_ARG_SOFTMAX_STATS),
            data_type: DataType::F32,
            rows,
            staged: false,
        });
        if cols == 0 {
            if let Some(stats) = &stats {
                // SAFETY: the execution's buffers were checked.
                unsafe { empty_sums(stats, pipeline.rows) };
            }
            return 1;
        }
        let addresses = self.ids.map(|id| execution.arguments.get(id));
        let tensors = pipeline.tensors(addresses);
        let width = pipeline.width(execution);
        let threads =
            pipeline.run(execution, addresses, (width, false), &|staged, first, last, _| {
                let tensors = staged.map_or(&tensors, |staged| staged.tensors);
                let ahead = last - first > 1 && 2 * cols * size_of::<f32>() >= Caches::get().first;
                let job = Job { cols, forward, algorithm, tensors, stats, ahead };
                // SAFETY: the execution's buffers were checked, rows are given out once, and the machine has the level.
                unsafe { (self.entry)(&job, first, last) }
            });
        threads.max(1)
    }
}

/// Stores the logarithms of empty sums.
///
/// # Safety
/// There is an element for each row.
unsafe fn empty_sums(stats: &RowTensor, rows: usize) {
    for row in 0..rows {
        let place = stats.address.cast::<f32>().wrapping_add(stats.rows.offset(row));
        // SAFETY: guaranteed by the caller.
        unsafe { place.write_unaligned(f32::NEG_INFINITY) };
    }
}
