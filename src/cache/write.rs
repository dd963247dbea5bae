//! Writes the keys and values of a step to a layer.

use super::areas::Area;
use super::store::Cache;
use crate::error::{Error, Result};
use crate::primitive::{Arguments, Execution, effective_level};
use crate::rows::{QuantizedTransfer, Transfer, spread, width_of};
use crate::simd::DefaultEnvironment;
use crate::tensor::{DataType, Layout, MemoryDesc, Support};
use crate::threads::Threads;

/// A tensor of keys or values.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    pub(crate) desc: &'a MemoryDesc,
    pub(crate) data: *const u8,
}

/// How to convert a row for the cache.
#[derive(Clone, Copy)]
enum Way {
    Converted(Transfer),
    /// Also the address of the layer's first scale.
    Quantized(QuantizedTransfer, *mut u8),
}

impl Way {
    /// Writes a row. `token` counts the tokens of heads in the order of pages.
    ///
    /// # Safety
    /// The rows and the scale of the token exist, and no other thread uses them.
    unsafe fn row(&self, src: *const u8, dst: *mut u8, token: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            match self {
                Self::Converted(transfer) => transfer.row(src, dst),
                Self::Quantized(transfer, scales) => {
                    let scale = scales.wrapping_add(token * DataType::F32.size());
                    transfer.row(src, dst, scale);
                }
            }
        }
    }
}

/// The rows of a tensor and where to copy them.
struct Copied {
    way: Way,
    /// The first element, and the strides of sequences, heads and tokens in bytes.
    src: *const u8,
    strides: [usize; 3],
    /// A layer's keys or values, and the bytes of a token of a head.
    dst: *mut u8,
    row: usize,
}

// SAFETY: threads read src, which nothing writes, and write disjoint rows of dst.
unsafe impl Sync for Copied {}

impl Cache {
    /// Writes the rows of the open step to a layer.
    ///
    /// # Safety
    /// The tensors are as large as their descriptors, and none of them is the cache's.
    pub(crate) unsafe fn write(
        &mut self,
        layer: i64,
        (keys, values): (Option<Rows<'_>>, Option<Rows<'_>>),
        threads: Threads,
    ) -> Result<()> {
        let layer = self.layer(layer)?;
        if self.book.parts().is_empty() {
            return Err(Error::invalid(
                "cache: no step is open; extend sequences first, and write before the next fork, truncate or drop",
            ));
        }
        if keys.is_none() && values.is_none() {
            return Err(Error::invalid("keys and values are NULL: there is nothing to write"));
        }
        let (k, v) = ((Area::Keys, Area::KeyScales), (Area::Values, Area::ValueScales));
        let keys = self.checked("keys", keys, self.shape.key_size, layer, k)?;
        let values = self.checked("values", values, self.shape.value_size, layer, v)?;
        for copied in [&keys, &values].into_iter().flatten() {
            // SAFETY: guaranteed by the caller, and checked.
            unsafe { self.copy_rows(copied, threads) };
        }
        self.has_written(layer, keys.is_some(), values.is_some());
        Ok(())
    }

    /// A checked tensor of the step, with heads of `size` elements.
    fn checked(
        &self,
        name: &str,
        rows: Option<Rows<'_>>,
        size: usize,
        layer: usize,
        (elements, scales): (Area, Area),
    ) -> Result<Option<Copied>> {
        let Some(Rows { desc, data }) = rows else { return Ok(None) };
        let full = |data_type: DataType| data_type.support() == Support::Full;
        desc.check_type(name, "a cache", full)?;
        let parts = self.book.parts();
        let tokens = parts.iter().map(|part| part.tokens);
        let (count, least) = match self.padded {
            0 => (1, tokens.sum::<usize>()),
            _ => (parts.len(), tokens.max().unwrap_or(0)),
        };
        let expected = [count, self.shape.heads, least, size].map(|dim| dim as i64);
        let fits = match *desc.dims() {
            [b, g, s, d] => {
                [b, g, d] == [expected[0], expected[1], expected[3]] && s >= expected[2]
            }
            _ => false,
        };
        if !fits {
            return Err(Error::invalid(format_args!(
                "{name}: dimensions {:?}, but the step has {count} x {} x {least} or more x {size}",
                desc.dims(),
                self.shape.heads
            )));
        }
        if desc.layout() != Layout::Strided || desc.is_blocked() {
            return Err(Error::invalid(format_args!("{name}: the layout has no strides")));
        }
        let from = desc.data_type().unwrap_or(DataType::F32);
        let strides = desc.strides();
        let bytes = |dim: usize| strides[dim] as usize * from.size();
        let to = self.shape.data_type;
        let (level, row) = (effective_level().of_vectors(), (from, strides[3] as usize));
        let way = if self.shape.is_quantized() {
            let transfer = QuantizedTransfer::new(level, row, to, size);
            Way::Quantized(transfer, self.areas.at(layer, scales))
        } else {
            Way::Converted(Transfer::new(level, row, to, size))
        };
        Ok(Some(Copied {
            way,
            src: data.wrapping_add(desc.offset() as usize * from.size()),
            strides: [bytes(0), bytes(1), bytes(2)],
            dst: self.areas.at(layer, elements),
            row: size * to.size(),
        }))
    }

    /// # Safety
    /// The tensor has the rows of the step.
    unsafe fn copy_rows(&self, copied: &Copied, threads: Threads) {
        let (heads, page) = (self.shape.heads, self.shape.page);
        let (units, slots) = (self.rows * heads, self.shape.pages * page);
        let elements = units * (copied.row / self.shape.data_type.size());
        let execution = Execution {
            arguments: &Arguments::new(),
            scratchpad: std::ptr::null_mut(),
            threads,
            member: None,
        };
        let width = width_of(threads, elements);
        let cache = Shared { cache: self };
        spread(&execution, (units, elements), (width, units), &|_, range| {
            let _environment = DefaultEnvironment::ensure();
            for unit in range {
                let (row, head) = (unit / heads, unit % heads);
                let (index, token) = match cache.cache.padded {
                    0 => (0, row),
                    padded => (row / padded, row % padded),
                };
                if cache.cache.padded > 0 && token >= cache.cache.book.parts()[index].tokens {
                    continue;
                }
                // C may have overwritten slots.
                let slot = usize::try_from(cache.slot(row)).unwrap_or(usize::MAX);
                if slot >= slots {
                    continue;
                }
                let [sequence, of_head, of_token] = copied.strides;
                let from = index * sequence + head * of_head + token * of_token;
                let to = (slot / page * heads + head) * page + slot % page;
                let (src, dst) = (copied.src.wrapping_add(from), copied.dst);
                // SAFETY: guaranteed by the caller: a row with a slot has a token, and the slot is in the pool.
                unsafe { copied.way.row(src, dst.wrapping_add(to * copied.row), to) };
            }
        });
    }
}

/// A cache shared by threads, which only read it.
struct Shared<'a> {
    cache: &'a Cache,
}

// SAFETY: while threads read the slots, only the data is written.
unsafe impl Sync for Shared<'_> {}

impl Shared<'_> {
    fn slot(&self, row: usize) -> i64 {
        // SAFETY: there are slots for all rows of the step.
        unsafe { self.cache.slots.get(row) }
    }
}
