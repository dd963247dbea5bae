//! The vector implementations. Runs that are dense in dst are converted at once. If they are not dense in src, tiles
//! are transposed first.

use super::convert::{Conversion, Entry, entry};
use super::nest::{Loop, loops};
use super::problem::{Quantizations, Reorder};
use crate::error::{Error, Result};
use crate::heap::{self, Counted, counted};
use crate::primitive::{Execution, Implementation, Padding, Variant};
use crate::rows::{spread, width_of};
use crate::simd::Level;
use crate::tensor::DataType;
use norm_sys as sys;

/// Elements of a run per block of a split.
const RUN: usize = 4096;
/// Lines of a transposed tile: elements that are adjacent in src, a few cache lines for any type.
const LINES: usize = 32;
/// Elements per line of a tile: enough for one call of the conversion, while the tile stays in cache.
const LINE: usize = 128;

/// The vector implementation at a level, or why it does not support the problem.
pub(super) fn make(
    problem: &Reorder,
    variant: &'static Variant,
    level: Level,
) -> Result<Box<Counted<dyn Implementation>>> {
    if !problem.quantized.is_uniform() {
        return Err(Error::unimplemented("a tensor has several scales or zero points"));
    }
    let mut outer = loops(&problem.src, &problem.dst)?.ok_or_else(|| {
        Error::unimplemented(
            "the blocks of src, of dst and the dimensions do not divide each other",
        )
    })?;
    let unit = Loop { count: 1, src: 1, dst: 1 };
    let run = match outer.last() {
        Some(last) if last.dst == 1 => outer.pop().unwrap_or(unit),
        _ => unit,
    };
    // If the run is strided in src, tiles also span the loop that is contiguous in src.
    let across = match outer.iter().position(|l| l.src == 1) {
        Some(at) if run.src != 1 => outer.remove(at),
        _ => Loop { count: 1, src: 0, dst: 0 },
    };
    if problem.dst.has_zero_dim() {
        outer = heap::list([Loop { count: 0, src: 0, dst: 0 }])?;
    }
    // Long runs are split between threads too.
    let pieces = if run.src == 1 && across.count == 1 { run.count.div_ceil(RUN) } else { 1 };
    let Reorder { src_type, dst_type, quantized, .. } = *problem;
    Ok(counted(Runs {
        variant,
        types: (src_type, dst_type),
        quantized,
        convert: entry(level),
        outer,
        across,
        run,
        pieces,
        padding: Padding::of(&problem.dst)?,
    })?)
}

struct Runs {
    variant: &'static Variant,
    /// The types of src and dst.
    types: (DataType, DataType),
    quantized: Quantizations,
    convert: Entry,
    /// The loops around the runs, or around the planes of tiles.
    outer: Vec<Loop>,
    /// The lines of a tile.
    across: Loop,
    /// The loop that is dense in dst.
    run: Loop,
    /// The number of pieces per run.
    pieces: usize,
    padding: Padding,
}

impl Implementation for Runs {
    fn variant(&self) -> &'static Variant {
        self.variant
    }

    fn scratchpad_size(&self) -> usize {
        0
    }

    fn execute(&self, execution: &Execution<'_>) -> usize {
        let arguments = execution.arguments;
        // Before the data, because padding and data share a cache line at the ends of blocks.
        // SAFETY: the buffers were checked.
        unsafe { self.padding.clear(arguments.get(sys::NORM_ARG_DST)) };
        let (src_type, dst_type) = self.types;
        // SAFETY: the buffers were checked; there is one value per tensor.
        let arithmetic = unsafe { self.quantized.arithmetic(arguments, [0; 4]) };
        let conversion = Conversion { src_type, dst_type, arithmetic };
        // Planes of tiles are split along the lines of src, runs into pieces.
        let strips =
            if self.across.count > 1 { self.across.count.div_ceil(LINES) } else { self.pieces };
        let planes: usize = self.outer.iter().map(|l| l.count).product();
        let units = planes * strips;
        let elements = planes * self.across.count * self.run.count;
        let width = (width_of(execution.threads, elements), units);
        spread(execution, (units, elements), width, &|_, range| {
            for unit in range {
                let (src_offset, dst_offset) = self.plane(unit / strips);
                let src =
                    arguments.get(sys::NORM_ARG_SRC).wrapping_add(src_offset * src_type.size());
                let dst =
                    arguments.get(sys::NORM_ARG_DST).wrapping_add(dst_offset * dst_type.size());
                // SAFETY: the buffers were checked, the loops stay within them, each unit belongs
                // to one block, and the CPU supports the level.
                unsafe {
                    if self.run.src == 1 {
                        self.piece(&conversion, src, dst, unit % strips);
                    } else {
                        self.strip(&conversion, src, dst, unit % strips);
                    }
                }
            }
        })
    }
}

impl Runs {
    /// The offsets of a plane in src and dst.
    fn plane(&self, plane: usize) -> (usize, usize) {
        let mut rest = plane;
        let mut at = (0, 0);
        for l in self.outer.iter().rev() {
            let index = rest % l.count;
            rest /= l.count;
            at = (at.0 + index * l.src, at.1 + index * l.dst);
        }
        at
    }

    /// Converts a piece of a run that is dense in both tensors.
    ///
    /// # Safety
    /// The run starts at these addresses, and the CPU supports the level.
    unsafe fn piece(&self, c: &Conversion, src: *const u8, dst: *mut u8, piece: usize) {
        let first = piece * RUN;
        let count = if self.pieces == 1 { self.run.count } else { RUN.min(self.run.count - first) };
        let (from, to) = (first * c.src_type.size(), first * c.dst_type.size());
        // SAFETY: guaranteed by the caller.
        unsafe { self.convert_run(c, src.add(from), dst.add(to), count) };
    }

    /// # Safety
    /// Both addresses have `count` elements, and the CPU supports the level.
    unsafe fn convert_run(&self, c: &Conversion, src: *const u8, dst: *mut u8, count: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            if c.is_copy() {
                // They may be the same buffer.
                std::ptr::copy(src, dst, count * c.src_type.size());
            } else {
                (self.convert)(c, src, dst, count);
            }
        }
    }

    /// Converts up to [`LINES`] runs of dst that are adjacent in src, tile by tile.
    ///
    /// # Safety
    /// The plane starts at these addresses, and the CPU supports the level.
    unsafe fn strip(&self, c: &Conversion, src: *const u8, dst: *mut u8, strip: usize) {
        let first = strip * LINES;
        let lines = LINES.min(self.across.count - first);
        for begin in (0..self.run.count).step_by(LINE) {
            let count = LINE.min(self.run.count - begin);
            let from = (first * self.across.src + begin * self.run.src) * c.src_type.size();
            let to = (first * self.across.dst + begin) * c.dst_type.size();
            // SAFETY: guaranteed by the caller; the tile is within the plane.
            unsafe {
                let (src, dst) = (src.add(from), dst.add(to));
                match c.src_type.size() {
                    1 => self.tile::<u8>(c, src, dst, lines, count),
                    2 => self.tile::<u16>(c, src, dst, lines, count),
                    4 => self.tile::<u32>(c, src, dst, lines, count),
                    _ => self.tile::<u64>(c, src, dst, lines, count),
                }
            }
        }
    }

    /// Transposes a tile of elements with the size of `T`, then converts it line by line.
    ///
    /// # Safety
    /// The tile starts at these addresses, and the CPU supports the level.
    unsafe fn tile<T: Copy>(
        &self,
        c: &Conversion,
        src: *const u8,
        dst: *mut u8,
        lines: usize,
        count: usize,
    ) {
        let mut transposed = [std::mem::MaybeUninit::<T>::uninit(); LINES * LINE];
        let start = transposed.as_mut_ptr().cast::<T>();
        // SAFETY: guaranteed by the caller; the buffer has room for the lines, and accesses may be
        // unaligned.
        unsafe {
            for i in 0..count {
                let from = src.cast::<T>().add(i * self.run.src);
                for line in 0..lines {
                    let element = from.add(line * self.across.src).read_unaligned();
                    start.add(line * LINE + i).write(element);
                }
            }
            for line in 0..lines {
                let to = dst.add(line * self.across.dst * c.dst_type.size());
                self.convert_run(c, start.add(line * LINE).cast(), to, count);
            }
        }
    }
}
