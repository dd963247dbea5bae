//! Records which pages the sequences of a cache have. It holds no data.

use super::pool::Pool;
use super::shape::Shape;
use crate::error::{Error, Result, Status};
use crate::heap;
use std::ops::Range;

/// A sequence, or an empty place for one.
#[derive(Clone, Copy, Debug)]
struct Sequence {
    /// How many sequences have used this place. It is part of a sequence's number.
    generation: i64,
    live: bool,
    length: usize,
    /// The columns from the kept ones to before this one have been freed. It is at least the number of kept columns.
    from: usize,
}

/// A part of a step: a sequence and its new tokens.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Part {
    /// `None` for an empty place.
    pub(super) place: Option<usize>,
    /// The length before the step.
    pub(super) start: usize,
    pub(super) tokens: usize,
    /// Whether the sequence's last page is copied.
    copies: bool,
    /// The value of `from` before the step: the columns that were freed then.
    from: usize,
}

/// The copy of the first tokens of a page to another page, in all layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageCopy {
    pub(super) from: i32,
    pub(super) to: i32,
    pub(super) tokens: usize,
}

/// Sequences, the table of their pages, and the pool.
#[derive(Debug)]
pub(super) struct Book {
    shape: Shape,
    sequences: Vec<Sequence>,
    /// The pages of the sequences, one row each. Entries of freed columns are kept, but other sequences may own those
    /// pages now.
    table: Vec<i32>,
    pool: Pool,
    /// The parts of the open step and of a step being opened.
    parts: Vec<Part>,
    trial: Vec<Part>,
    copied: u64,
}

impl Book {
    pub(super) fn new(shape: Shape) -> Result<Self> {
        let place = Sequence { generation: 0, live: false, length: 0, from: shape.kept };
        let count = shape.sequences;
        // The lists for parts have room for all sequences, so a step does not allocate.
        let room = || {
            let mut parts = heap::list((0..count).map(|_| Part::default()))?;
            parts.clear();
            Ok(parts)
        };
        Ok(Self {
            shape,
            sequences: heap::list((0..count).map(|_| place))?,
            table: heap::list((0..count * shape.columns).map(|_| 0))?,
            pool: Pool::new(shape.pages)?,
            parts: room()?,
            trial: room()?,
            copied: 0,
        })
    }

    pub(super) fn pool(&self) -> &Pool {
        &self.pool
    }

    pub(super) fn copied(&self) -> u64 {
        self.copied
    }

    /// The number of sequences.
    pub(super) fn live(&self) -> usize {
        self.sequences.iter().filter(|sequence| sequence.live).count()
    }

    /// The parts of the open step; none if there is no open step.
    pub(super) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The place of a sequence.
    pub(super) fn find(&self, number: i64) -> Result<usize> {
        let count = self.sequences.len() as i64;
        if number >= 0 {
            let (place, generation) = ((number % count) as usize, number / count);
            let sequence = &self.sequences[place];
            if sequence.live && sequence.generation == generation {
                return Ok(place);
            }
        }
        Err(Error::invalid(format_args!(
            "sequence: the cache has no sequence {number}, or it was dropped"
        )))
    }

    fn number(&self, place: usize) -> i64 {
        self.sequences[place].generation * self.sequences.len() as i64 + place as i64
    }

    pub(super) fn length(&self, place: usize) -> usize {
        self.sequences[place].length
    }

    /// The entries of the table for a sequence's tokens.
    pub(super) fn row(&self, place: usize) -> &[i32] {
        let start = place * self.shape.columns;
        &self.table[start..start + self.shape.columns_of(self.sequences[place].length)]
    }

    fn entry(&mut self, place: usize, column: usize) -> &mut i32 {
        &mut self.table[place * self.shape.columns + column]
    }

    fn page(&self, place: usize, column: usize) -> i32 {
        self.table[place * self.shape.columns + column]
    }

    /// Whether the open step has tokens of a sequence.
    pub(super) fn is_in_step(&self, number: i64) -> bool {
        let place = self.find(number).ok();
        self.parts.iter().any(|part| part.place == place && part.tokens > 0)
    }

    /// The slot of a token: its page and its index in the page, as one number.
    pub(super) fn slot(&self, place: usize, token: usize) -> i64 {
        let page = self.page(place, token / self.shape.page) as i64;
        page * self.shape.page as i64 + (token % self.shape.page) as i64
    }

    /// The columns whose pages have been freed.
    pub(super) fn given_back(&self, place: usize) -> Range<usize> {
        self.shape.kept..self.sequences[place].from
    }

    /// Whether the sequence owns the page of a column.
    fn has(&self, place: usize, column: usize) -> bool {
        let used = self.shape.columns_of(self.sequences[place].length);
        column < used && !self.given_back(place).contains(&column)
    }

    pub(super) fn new_sequence(&mut self) -> Result<i64> {
        let Some(place) = self.sequences.iter().position(|sequence| !sequence.live) else {
            return Err(Error::new(
                Status::OutOfMemory,
                format_args!(
                    "sequence: the cache has room for {} sequences, and all are in use; drop one \
                     first",
                    self.sequences.len()
                ),
            ));
        };
        let kept = self.shape.kept;
        let sequence = &mut self.sequences[place];
        (sequence.live, sequence.length, sequence.from) = (true, 0, kept);
        Ok(self.number(place))
    }

    /// Frees the pages of a sequence's columns.
    fn give_back(&mut self, place: usize, columns: Range<usize>) {
        for column in columns {
            if self.has(place, column) {
                let page = self.page(place, column);
                self.pool.give_back(page);
            }
        }
    }

    pub(super) fn drop_sequence(&mut self, number: i64) -> Result<()> {
        let place = self.find(number)?;
        self.give_back(place, 0..self.shape.columns);
        let sequence = &mut self.sequences[place];
        (sequence.live, sequence.length) = (false, 0);
        sequence.generation += 1;
        self.parts.clear();
        Ok(())
    }

    pub(super) fn truncate(&mut self, number: i64, length: i64) -> Result<()> {
        let place = self.find(number)?;
        let Sequence { length: now, from, .. } = self.sequences[place];
        let Some(length) = usize::try_from(length).ok().filter(|length| *length <= now) else {
            return Err(Error::invalid(format_args!(
                "length: {length} is not from 0 to the {now} tokens of sequence {number}"
            )));
        };
        let (kept, page) = (self.shape.kept, self.shape.page);
        let within_kept = length <= kept * page;
        if from > kept && !within_kept && self.shape.first_seen(length) < from * page {
            return Err(Error::invalid(format_args!(
                "length: after {length} tokens the next one sees from token {} on, but the pages \
                 of tokens {} to {} have returned to the pool",
                self.shape.first_seen(length),
                kept * page,
                from * page - 1
            )));
        }
        self.give_back(place, self.shape.columns_of(length)..self.shape.columns);
        let sequence = &mut self.sequences[place];
        sequence.length = length;
        if within_kept {
            sequence.from = kept;
        }
        self.parts.clear();
        Ok(())
    }

    pub(super) fn fork(&mut self, number: i64) -> Result<i64> {
        let place = self.find(number)?;
        let copy = self.new_sequence()?;
        let to = self.find(copy)?;
        let Sequence { length, from, .. } = self.sequences[place];
        (self.sequences[to].length, self.sequences[to].from) = (length, from);
        for column in 0..self.shape.columns_of(length) {
            let page = self.page(place, column);
            *self.entry(to, column) = page;
            if self.has(place, column) {
                self.pool.share(page);
            }
        }
        self.parts.clear();
        Ok(copy)
    }

    /// Makes room for tokens of sequences and opens a step. Calls `copy` for each page to copy.
    pub(super) fn extend(
        &mut self,
        sequences: &[i64],
        tokens: &[i64],
        rows: usize,
        copy: &mut dyn FnMut(PageCopy),
    ) -> Result<()> {
        let mut parts = std::mem::take(&mut self.trial);
        parts.clear();
        let opened = self.check_step((sequences, tokens), rows, &mut parts);
        let opened = opened.and_then(|()| self.open(&mut parts, copy));
        if opened.is_ok() {
            std::mem::swap(&mut parts, &mut self.parts);
        }
        self.trial = parts;
        opened
    }

    /// Lists the parts of a step and checks everything that does not depend on pages.
    fn check_step(
        &self,
        (sequences, tokens): (&[i64], &[i64]),
        rows: usize,
        parts: &mut Vec<Part>,
    ) -> Result<()> {
        if sequences.len() > self.sequences.len() {
            return Err(Error::invalid(format_args!(
                "count: {} sequences, but the cache has at most {}",
                sequences.len(),
                self.sequences.len()
            )));
        }
        let mut total = rows.saturating_mul(sequences.len());
        for (&number, &tokens) in sequences.iter().zip(tokens) {
            let part = self.part(number, tokens)?;
            if part.place.is_some() && parts.iter().any(|other| other.place == part.place) {
                let text = format_args!("sequences: sequence {number} appears twice");
                return Err(Error::invalid(text));
            }
            if rows > 0 && part.tokens > rows {
                return Err(Error::invalid(format_args!(
                    "rows: {rows}, fewer than the {tokens} tokens of sequence {number}"
                )));
            }
            if rows == 0 {
                total = total.saturating_add(part.tokens);
            }
            heap::push(parts, part)?;
        }
        if total > self.shape.step_tokens {
            return Err(Error::invalid(format_args!(
                "tokens: {total} rows, but steps of the cache have at most step_tokens, {}; divide the step, or create the cache with more",
                self.shape.step_tokens
            )));
        }
        Ok(())
    }

    /// The part of a step for a sequence.
    fn part(&self, number: i64, tokens: i64) -> Result<Part> {
        let Ok(count) = usize::try_from(tokens) else {
            return Err(Error::invalid(format_args!("tokens: {tokens} is negative")));
        };
        if number == -1 {
            return match count {
                0 => Ok(Part::default()),
                _ => Err(Error::invalid(format_args!("tokens: {tokens} of the empty place -1"))),
            };
        }
        let place = self.find(number)?;
        let Sequence { length, from, .. } = self.sequences[place];
        if count > self.shape.tokens - length {
            return Err(Error::invalid(format_args!(
                "tokens: {tokens} after the {length} of sequence {number} are more than its {}; append fewer, truncate it, or create a larger cache",
                self.shape.tokens
            )));
        }
        Ok(Part { place: Some(place), start: length, tokens: count, copies: false, from })
    }

    /// Frees the pages that no later step sees, and takes the pages that the step needs. Undoes everything if there are
    /// too few.
    fn open(&mut self, parts: &mut [Part], copy: &mut dyn FnMut(PageCopy)) -> Result<()> {
        self.recycle(parts);
        let needed = self.count_needed(parts);
        let free = self.pool.free();
        if needed > free {
            self.undo(parts);
            return Err(Error::new(
                Status::OutOfMemory,
                format_args!(
                    "tokens: the step needs {needed} free pages, but {free} of the {} are free",
                    self.pool.pages()
                ),
            ));
        }
        for part in parts.iter() {
            let Some(place) = part.place else { continue };
            if part.copies {
                let column = part.start / self.shape.page;
                let from = self.page(place, column);
                // `count_needed` released the shared page.
                if let Some(to) = self.pool.take() {
                    *self.entry(place, column) = to;
                    self.copied += 1;
                    copy(PageCopy { from, to, tokens: part.start % self.shape.page });
                }
            }
            let end = part.start + part.tokens;
            for column in self.shape.columns_of(part.start)..self.shape.columns_of(end) {
                // There are as many as were counted.
                if let Some(page) = self.pool.take() {
                    *self.entry(place, column) = page;
                }
            }
            self.sequences[place].length = end;
        }
        Ok(())
    }

    /// Frees the pages before the windows of later tokens.
    fn recycle(&mut self, parts: &[Part]) {
        for part in parts.iter().filter(|part| part.tokens > 0) {
            let Some(place) = part.place else { continue };
            let until = self.shape.first_seen(part.start) / self.shape.page;
            if until > part.from {
                self.give_back(place, part.from..until);
                self.sequences[place].from = until;
            }
        }
    }

    /// Counts the pages that a step needs. Marks the parts that copy a shared page, and gives up their share of it.
    fn count_needed(&mut self, parts: &mut [Part]) -> usize {
        let mut needed = 0usize;
        for part in parts.iter_mut().filter(|part| part.tokens > 0) {
            let Some(place) = part.place else { continue };
            let end = part.start + part.tokens;
            needed += self.shape.columns_of(end) - self.shape.columns_of(part.start);
            if part.start % self.shape.page == 0 {
                continue;
            }
            let last = self.page(place, part.start / self.shape.page);
            if self.pool.owners(last) > 1 {
                self.pool.give_back(last);
                part.copies = true;
                needed += 1;
            }
        }
        needed
    }

    /// Undoes [`recycle`](Self::recycle) and [`count_needed`](Self::count_needed), in reverse order.
    fn undo(&mut self, parts: &[Part]) {
        for part in parts.iter().filter(|part| part.copies) {
            if let Some(place) = part.place {
                let last = self.page(place, part.start / self.shape.page);
                self.pool.share(last);
            }
        }
        for part in parts.iter().rev() {
            let Some(place) = part.place else { continue };
            for column in (part.from..self.sequences[place].from).rev() {
                let page = self.page(place, column);
                self.pool.take_back(page);
            }
            self.sequences[place].from = part.from;
        }
    }
}

#[cfg(test)]
impl Book {
    /// The pages of a sequence by column; `None` for freed ones.
    pub(super) fn pages_of(&self, place: usize) -> impl Iterator<Item = Option<i32>> + '_ {
        (0..self.shape.columns_of(self.sequences[place].length))
            .map(move |column| self.has(place, column).then(|| self.page(place, column)))
    }

    /// The places of sequences.
    pub(super) fn places(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.sequences.len()).filter(|place| self.sequences[*place].live)
    }
}
