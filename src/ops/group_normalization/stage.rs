//! For types and post-operations that the kernels do not support: parts of the channels are normalized to an f32 stage,
//! where post-operations are applied, and then stored in their type.

use super::kernel::{Entry, Job, Order, Plane};
use super::problem::Shape;
use super::sweeps::Channels;
use crate::primitive::{BoundChain, ChainEntry, Rows, chain_entry};
use crate::simd::{Element, LANES, Level, Runtime, Simd, entry_points};
use crate::tensor::DataType;

/// Elements of a stage, which stays in the first-level cache.
const ELEMENTS: usize = 2048;

/// Rows of a stage, and where to store them.
struct Store {
    stage: *const f32,
    rows: usize,
    cols: usize,
    to: Plane,
}

/// Stores rows that are contiguous on the stage and `position` apart in the tensor.
///
/// # Safety
/// They exist, no other thread accesses them, and the CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn store<S: Simd>(job: &Store) {
    let data_type = Runtime::of(job.to.data_type);
    for row in 0..job.rows {
        let (from, to) = (job.stage.wrapping_add(row * job.cols), job.to.at_position(row));
        let whole = job.cols - job.cols % LANES;
        let mut col = 0;
        // SAFETY: guaranteed by the caller.
        unsafe {
            while col < whole {
                data_type.store::<S>(to, col, S::load(from.add(col)));
                col += LANES;
            }
            if col < job.cols {
                let n = job.cols - col;
                data_type.store_n::<S>(to, col, S::load_n(from.add(col), n), n);
            }
        }
    }
}

entry_points! {
    /// Storing, per level.
    mod entries: store<>(job: &Store) -> ();
}

/// The last steps of staged channels.
pub(super) struct Staging {
    store: unsafe fn(&Store),
    chain: ChainEntry,
    /// The innermost dimension.
    innermost: usize,
}

/// The staging of a level for a dst with this innermost dimension.
pub(super) fn staging(level: Level, innermost: usize) -> Staging {
    Staging {
        store: entries::at(level).unwrap_or(entries::portable::entry_portable),
        chain: chain_entry(level),
        innermost,
    }
}

/// The job from one of its channels on.
fn from_channel(job: &Job, channel: usize) -> Job {
    let next = |p: *const f32| p.wrapping_add(channel);
    let plane = |plane: &Plane| Plane { start: plane.at_channel(channel), ..*plane };
    Job {
        src: plane(&job.src),
        dst: plane(&job.dst),
        high: next(job.high),
        r: next(job.r),
        low: next(job.low),
        scale: next(job.scale),
        shift: next(job.shift),
        ..*job
    }
}

impl Staging {
    /// Normalizes the channels of a job with a kernel that stores f32.
    pub(super) fn run(
        &self,
        job: &Job,
        order: Order,
        shape: &Shape,
        at: Channels,
        chain: Option<&BoundChain<'_>>,
        normalize: Entry,
    ) {
        let mut stage = Stage([0.0; ELEMENTS]);
        let tile = Tile { staging: self, chain, normalize, stage: stage.0.as_mut_ptr() };
        match order {
            Order::ChannelsLast => {
                for channel in (0..job.channels).step_by(ELEMENTS) {
                    let channels = ELEMENTS.min(job.channels - channel);
                    let rows = ELEMENTS / channels;
                    let part = Job { channels, ..from_channel(job, channel) };
                    for position in (0..shape.positions).step_by(rows) {
                        let rows = rows.min(shape.positions - position);
                        let first = (at.sample * shape.positions + position, at.first + channel);
                        tile.run(&part, position, (rows, channels), first);
                    }
                }
            }
            Order::ChannelsFirst => {
                for channel in 0..job.channels {
                    let part = Job { channels: 1, ..from_channel(job, channel) };
                    let index = at.sample * shape.channels + at.first + channel;
                    self.run_channel(&tile, &part, shape.positions, index);
                }
            }
        }
    }

    /// Runs a channel whose positions are adjacent.
    fn run_channel(&self, tile: &Tile<'_>, job: &Job, positions: usize, index: usize) {
        let mut position = 0;
        while position < positions {
            let (row, col) = (position / self.innermost, position % self.innermost);
            // Whole rows, or a part of a row that is longer than the stage.
            let rows = (ELEMENTS / self.innermost).min(positions / self.innermost - row);
            let (rows, cols) = match rows {
                0 => (1, ELEMENTS.min(self.innermost - col)),
                rows => (rows, self.innermost),
            };
            let first = index * (positions / self.innermost) + row;
            tile.run_adjacent(job, position, (rows, cols), (first, col));
            position += rows * cols;
        }
    }
}

/// A stage, aligned for vectors.
#[repr(align(64))]
struct Stage([f32; ELEMENTS]);

/// Processes parts of the channels.
struct Tile<'a> {
    staging: &'a Staging,
    chain: Option<&'a BoundChain<'a>>,
    normalize: Entry,
    stage: *mut f32,
}

impl Tile<'_> {
    /// Processes `rows` x `cols` positions of adjacent channels. `first` is the row and column of the first one for the
    /// post-operations.
    fn run(&self, job: &Job, position: usize, (rows, cols): (usize, usize), first: (usize, usize)) {
        let src = Plane { start: job.src.at_position(position), ..job.src };
        let to = Plane { start: job.dst.at_position(position), ..job.dst };
        self.finish(Job { src, positions: rows, ..*job }, (rows, cols), to, first);
    }

    /// Processes adjacent positions of a channel, which are `rows` rows of the post-operations.
    fn run_adjacent(
        &self,
        job: &Job,
        position: usize,
        (rows, cols): (usize, usize),
        first: (usize, usize),
    ) {
        let src = Plane { start: job.src.at_position(position), ..job.src };
        let start = job.dst.at_position(position);
        let to = Plane { start, position: cols * job.dst.data_type.size(), ..job.dst };
        self.finish(Job { src, positions: rows * cols, ..*job }, (rows, cols), to, first);
    }

    fn finish(
        &self,
        job: Job,
        (rows, cols): (usize, usize),
        to: Plane,
        (row, first_col): (usize, usize),
    ) {
        let stage = Plane {
            start: self.stage.cast(),
            data_type: DataType::F32,
            channel: size_of::<f32>(),
            position: cols * size_of::<f32>(),
        };
        let start = self.stage;
        // SAFETY: the stage has room for the rows, the execution's buffers were checked, the channels belong to this
        // thread, and the machine has the level.
        unsafe {
            (self.normalize)(&Job { dst: stage, ..job });
            if let Some(chain) = self.chain {
                let staged = Rows { start, step: cols, cols, first_col, inputs: None };
                (self.staging.chain)(chain, &staged, row, row + rows);
            }
            (self.staging.store)(&Store { stage: start, rows, cols, to });
        }
    }
}
