//! The vector implementations: rows of f32, bf16 or f16, in place or on a stage.

use super::kernel::{Entry, Job, entry, half_entry};
use super::problem::{Operands, Softmax, SoftmaxAlgorithm};
use crate::error::{Error, Result};
use crate::heap::{Counted, counted};
use crate::primitive::{Execution, Implementation, Variant};
use crate::rows::{
    Caches, Fence, OpenRooms, Operand, Pipeline, Rooms, RowTensor, Schedule, Spec, TENSORS,
    row_map, row_order,
};
use crate::simd::Level;
use crate::tensor::{DataType, MemoryDesc, RowMap};
use norm_sys as sys;
use std::ptr::null_mut;

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
    let chain = problem.chain(&descs[1], Some(&order))?;
    let (kernel_type, entry) = kernel(&descs[..=output], chain.is_some(), level);
    let (forward, algorithm) = (problem.prop_kind.is_forward(), problem.algorithm);
    let sizes = descs[..=output].iter().map(|desc| desc.data_type().map_or(0, DataType::size));
    let bytes = sizes.sum::<usize>().saturating_mul(rows).saturating_mul(cols);
    let in_room = forward
        && algorithm != SoftmaxAlgorithm::Log
        && (kernel_type != DataType::F32 || Schedule::streams_bytes(bytes, 1));
    let rooms = in_room.then(|| Rooms::new(cols.saturating_mul(size_of::<f32>())));
    let pipeline = Pipeline::new(Spec {
        level: Some(level),
        rows,
        cols,
        operands: [0, 1, 2].map(|i| Operand {
            desc: &descs[i],
            // There is nothing to convert in unused places.
            kernel_type: if i <= output { kernel_type } else { DataType::F32 },
            output: i == output,
        }),
        order: &order,
        chain,
        around: None,
        sums: [false; 2],
        room: rooms.as_ref().map_or(0, Rooms::size),
    });
    let stats = problem.stats().map(|desc| row_map(&desc, &order));
    let fence = Fence::new(level);
    Ok(counted(Vectorized {
        variant,
        forward,
        algorithm,
        output,
        bytes,
        pipeline,
        rooms,
        ids,
        stats,
        element: kernel_type.size(),
        entry,
        fence,
    })?)
}

/// The type of rows in the kernel, and the kernel: f32, unless all tensors have the same 16-bit type.
fn kernel(tensors: &[MemoryDesc], has_chain: bool, level: Level) -> (DataType, Entry) {
    let first = tensors[0].data_type();
    let alike = !has_chain && tensors.iter().all(|desc| desc.data_type() == first);
    first
        .filter(|_| alike)
        .and_then(|data_type| Some((data_type, half_entry(level, data_type)?)))
        .unwrap_or((DataType::F32, entry(level)))
}

struct Vectorized {
    variant: &'static Variant,
    forward: bool,
    algorithm: SoftmaxAlgorithm,
    /// The place of the output among the tensors.
    output: usize,
    /// The size of all tensors.
    bytes: usize,
    pipeline: Pipeline,
    /// Rows of exponentials in f32 that dst cannot keep.
    rooms: Option<Rooms>,
    /// The argument ids of the pipeline's tensors.
    ids: [i32; TENSORS],
    /// The logarithms of the rows' sums.
    stats: Option<RowMap>,
    /// Size of an element in the kernel.
    element: usize,
    entry: Entry,
    /// Follows rows that were stored non-temporally.
    fence: Fence,
}

impl Vectorized {
    /// Whether the output is stored non-temporally, and rows to come are prefetched meanwhile: the tensors are large,
    /// none is overwritten, and the rows in use forward fit the second-level cache.
    fn streams(&self, addresses: &[*mut u8; TENSORS], width: usize) -> bool {
        let output = addresses[self.output];
        let in_place = addresses[..self.output].contains(&output);
        // The exponentials of a row, and the next two rows of src.
        let element = size_of::<f32>() + 2 * self.element;
        let fit = self.pipeline.cols.saturating_mul(element) <= Caches::get().second;
        (fit || !self.forward)
            && !in_place
            && !self.pipeline.is_staged()
            && Schedule::streams_bytes(self.bytes, width)
    }
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
        let most = self.rooms.as_ref().map_or(usize::MAX, Rooms::count);
        let width = pipeline.width(execution).min(most);
        let streams = self.streams(&addresses, width);
        // dst keeps exponentials if it is f32 and soon read again.
        let rooms = self.rooms.as_ref().filter(|_| streams || self.element < size_of::<f32>());
        let rooms = rooms.map(|rooms| rooms.open(execution.scratchpad));
        let threads =
            pipeline.run(execution, addresses, (width, false), &|staged, first, last, _| {
                let tensors = staged.map_or(&tensors, |staged| staged.tensors);
                let room = rooms.as_ref().map(OpenRooms::take);
                let job = Job {
                    cols,
                    forward,
                    algorithm,
                    tensors,
                    stats,
                    room: room.as_ref().map_or(null_mut(), |(_, start)| start.cast()),
                    streams,
                };
                // SAFETY: the execution's buffers were checked, rows are given out once, and the machine has the level.
                unsafe {
                    (self.entry)(&job, first, last);
                    self.fence.after(streams);
                }
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
