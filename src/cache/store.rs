//! The data of a cache, and the arguments with which attention and rope access it.

use super::areas::{Area, Areas};
use super::book::Book;
use super::buffer::Buffer;
use super::shape::Shape;
use crate::error::{Error, Result};
use crate::heap;

/// What a cache has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stats {
    pub(crate) sequences: usize,
    pub(crate) page_size: usize,
    pub(crate) page_bytes: usize,
    pub(crate) pages: usize,
    pub(crate) used_pages: usize,
    pub(crate) shared_pages: usize,
    pub(crate) copied_pages: u64,
    pub(crate) bytes: usize,
}

/// Whether a layer has the keys and values of the open step, and from whom.
#[derive(Clone, Copy, Debug, Default)]
struct Written {
    keys: bool,
    values: bool,
    /// Rope was given the layer's memory, which it may use in later steps too.
    by_rope: bool,
}

/// Keys and values of sequences.
#[derive(Debug)]
pub(crate) struct Cache {
    pub(super) shape: Shape,
    pub(super) book: Book,
    /// Keys, values and scales of all layers.
    pub(super) areas: Areas,
    /// Read by attention: the table and the lengths of the requested sequences.
    table: Buffer,
    lengths: Buffer,
    /// How many entries in each row of the table may be pages. The others are -1, which attention without lengths
    /// refuses.
    columns: Vec<usize>,
    /// The sequences in the table; empty if the book has changed since.
    filled: Vec<i64>,
    /// Read by rope: slots and positions of the first `rows` rows of the step; beyond, -1 and 0.
    pub(super) slots: Buffer,
    positions: Buffer,
    pub(super) rows: usize,
    /// The rows of each sequence; 0 if there are no gaps between sequences.
    pub(super) padded: usize,
    /// One for each layer.
    written: Vec<Written>,
}

// SAFETY: the cache owns the buffers, and C may move it between threads.
unsafe impl Send for Cache {}

impl Cache {
    pub(crate) fn new(shape: Shape) -> Result<Self> {
        let table = shape.sequences.saturating_mul(shape.columns);
        let mut filled = heap::list((0..shape.sequences).map(|_| 0))?;
        filled.clear();
        let cache = Self {
            shape,
            book: Book::new(shape)?,
            areas: Areas::new(&shape)?,
            table: Buffer::of::<i32>(table, "page tables")?,
            lengths: Buffer::of::<i32>(shape.sequences, "lengths")?,
            columns: heap::list((0..shape.sequences).map(|_| 0))?,
            filled,
            slots: Buffer::of::<i64>(shape.step_tokens, "slots")?,
            positions: Buffer::of::<i32>(shape.step_tokens, "positions")?,
            rows: 0,
            padded: 0,
            written: heap::list((0..shape.layers).map(|_| Written::default()))?,
        };
        (0..shape.step_tokens).for_each(|row| cache.put_row(row, -1, 0));
        // SAFETY: the table has as many entries.
        (0..table).for_each(|entry| unsafe { cache.table.set(entry, -1i32) });
        Ok(cache)
    }

    pub(crate) fn shape(&self) -> &Shape {
        &self.shape
    }

    /// A checked layer.
    pub(crate) fn layer(&self, layer: i64) -> Result<usize> {
        match usize::try_from(layer) {
            Ok(index) if index < self.shape.layers => Ok(index),
            _ => Err(Error::invalid(format_args!(
                "layer: {layer} is not among the {} of the cache",
                self.shape.layers
            ))),
        }
    }

    /// The keys of a layer.
    pub(crate) fn keys(&self, layer: usize) -> *mut u8 {
        self.areas.at(layer, Area::Keys)
    }

    pub(crate) fn values(&self, layer: usize) -> *mut u8 {
        self.areas.at(layer, Area::Values)
    }

    /// The scales of a layer's keys; none without quantization.
    pub(crate) fn key_scales(&self, layer: usize) -> *mut u8 {
        self.areas.at(layer, Area::KeyScales)
    }

    pub(crate) fn value_scales(&self, layer: usize) -> *mut u8 {
        self.areas.at(layer, Area::ValueScales)
    }

    pub(crate) fn table_address(&self) -> *mut u8 {
        self.table.start()
    }

    pub(crate) fn lengths_address(&self) -> *mut u8 {
        self.lengths.start()
    }

    pub(crate) fn slots_address(&self) -> *mut u8 {
        self.slots.start()
    }

    pub(crate) fn positions_address(&self) -> *mut u8 {
        self.positions.start()
    }

    pub(crate) fn new_sequence(&mut self) -> Result<i64> {
        self.book.new_sequence()
    }

    pub(crate) fn length(&self, sequence: i64) -> Result<usize> {
        Ok(self.book.length(self.book.find(sequence)?))
    }

    pub(crate) fn drop_sequence(&mut self, sequence: i64) -> Result<()> {
        self.book.drop_sequence(sequence)?;
        self.end_step();
        Ok(())
    }

    pub(crate) fn truncate(&mut self, sequence: i64, length: i64) -> Result<()> {
        self.book.truncate(sequence, length)?;
        self.end_step();
        Ok(())
    }

    pub(crate) fn fork(&mut self, sequence: i64) -> Result<i64> {
        let copy = self.book.fork(sequence)?;
        self.end_step();
        Ok(copy)
    }

    fn put_row(&self, row: usize, slot: i64, position: i32) {
        // SAFETY: there are as many as step_tokens, and executions that read them have ended.
        unsafe {
            self.slots.set(row, slot);
            self.positions.set(row, position);
        }
    }

    /// Ends the step. From now on its slots may belong to other sequences.
    fn end_step(&mut self) {
        (0..self.rows).for_each(|row| self.put_row(row, -1, 0));
        self.rows = 0;
        self.filled.clear();
        self.written.iter_mut().for_each(|layer| (layer.keys, layer.values) = (false, false));
    }

    /// Makes room for tokens, and opens a step.
    pub(crate) fn extend(&mut self, sequences: &[i64], tokens: &[i64], rows: i64) -> Result<()> {
        let Ok(padded) = usize::try_from(rows) else {
            return Err(Error::invalid(format_args!("rows: {rows} is negative")));
        };
        let (areas, shape) = (&self.areas, &self.shape);
        self.book.extend(sequences, tokens, padded, &mut |copy| areas.copy(shape, copy))?;
        self.end_step();
        self.padded = padded;
        let mut next = 0;
        for (index, part) in self.book.parts().iter().enumerate() {
            let first = if padded > 0 { index * padded } else { next };
            for token in 0..part.tokens {
                let (place, at) = (part.place.unwrap_or(0), part.start + token);
                self.put_row(first + token, self.book.slot(place, at), at as i32);
            }
            next = first + part.tokens.max(padded);
        }
        self.rows = next;
        Ok(())
    }

    /// Records that a layer has keys or values of the step, or both.
    pub(super) fn has_written(&mut self, layer: usize, keys: bool, values: bool) {
        let written = &mut self.written[layer];
        written.keys |= keys;
        written.values |= values;
    }

    /// Records that rope was given a layer's memory.
    pub(crate) fn is_given_to_rope(&mut self, layer: usize) {
        self.written[layer].by_rope = true;
    }

    /// Checks that sequences can be read: if the open step has tokens of one, the layer must have been written.
    fn check_written(&self, layer: usize, sequences: &[i64]) -> Result<()> {
        let Written { keys, values, by_rope } = self.written[layer];
        let missing = match (keys || by_rope, values) {
            (true, true) => return Ok(()),
            (false, true) => "keys",
            (true, false) => "values",
            (false, false) => "keys or values",
        };
        match sequences.iter().find(|number| self.book.is_in_step(**number)) {
            None => Ok(()),
            Some(number) => Err(Error::invalid(format_args!(
                "layer: layer {layer} has no {missing} of the open step, which has tokens of sequence {number}; write them first"
            ))),
        }
    }

    /// Fills the page table and the lengths of the sequences whose layer is about to be read; -1 marks an empty place.
    pub(crate) fn fill(&mut self, layer: usize, sequences: &[i64]) -> Result<()> {
        self.check_written(layer, sequences)?;
        if sequences.len() > self.shape.sequences {
            return Err(Error::invalid(format_args!(
                "count: {} sequences, but the cache has at most {}",
                sequences.len(),
                self.shape.sequences
            )));
        }
        if !sequences.is_empty() && self.filled == sequences {
            return Ok(());
        }
        let named = sequences.iter().filter(|number| **number != -1);
        named.copied().try_for_each(|number| self.book.find(number).map(|_| ()))?;
        let columns = self.shape.columns;
        for index in 0..self.shape.sequences {
            let number = sequences.get(index).copied().unwrap_or(-1);
            let place = if number == -1 { None } else { Some(self.book.find(number)?) };
            let row = place.map_or(&[][..], |place| self.book.row(place));
            let length = place.map_or(0, |place| self.book.length(place));
            let given_back = place.map_or(0..0, |place| self.book.given_back(place));
            // SAFETY: the buffers have room for all sequences, and executions that read them have ended.
            unsafe {
                self.lengths.set(index, length as i32);
                for (column, page) in row.iter().enumerate() {
                    let page = if given_back.contains(&column) { -1 } else { *page };
                    self.table.set(index * columns + column, page);
                }
                for column in row.len()..self.columns[index] {
                    self.table.set(index * columns + column, -1);
                }
                self.columns[index] = row.len();
            }
        }
        self.filled.clear();
        heap::extend(&mut self.filled, sequences.iter().copied())
    }

    pub(crate) fn stats(&self) -> Stats {
        let pool = self.book.pool();
        let page = self.shape.page * self.shape.heads * self.shape.rows().iter().sum::<usize>();
        let tables = [&self.table, &self.lengths, &self.slots, &self.positions];
        Stats {
            sequences: self.book.live(),
            page_size: self.shape.page,
            page_bytes: page * self.shape.layers,
            pages: pool.pages(),
            used_pages: pool.pages() - pool.free(),
            shared_pages: pool.shared(),
            copied_pages: self.book.copied(),
            bytes: self.areas.bytes() + tables.iter().map(|buffer| buffer.size()).sum::<usize>(),
        }
    }
}
