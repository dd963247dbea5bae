//! Attention to a cache, without the interpreter's lock.

use norm_rs::Result;
use norm_rs::kv_cache::{KvCache, Sequence};
use norm_rs::primitive::Arg;

use crate::cache_rope::lend;
use crate::plan::{Addresses, Problem, execute};

/// The sequences with these numbers; None is an empty place.
pub(crate) fn sequences(cache: &KvCache, numbers: &[Option<i64>]) -> Vec<Sequence> {
    let sequence = |number: &Option<i64>| number.map_or(Sequence::NONE, |n| cache.sequence(n));
    numbers.iter().map(sequence).collect()
}

/// The length of the longest of some sequences.
pub(crate) fn longest(cache: &KvCache, numbers: &[Option<i64>]) -> Result<usize> {
    let mut lengths = numbers.iter().flatten().map(|number| cache.length(cache.sequence(*number)));
    lengths.try_fold(0, |most, length| Ok(most.max(length?)))
}

/// A call of attention, without Python objects.
pub(crate) struct Attend<'x> {
    pub(crate) problem: Problem,
    pub(crate) addresses: Addresses,
    pub(crate) layer: usize,
    pub(crate) numbers: &'x [Option<i64>],
}

// SAFETY: as for `Rows4`; the addresses are those of arrays and results.
unsafe impl Send for Attend<'_> {}

impl Attend<'_> {
    pub(crate) fn run(mut self, cache: &mut KvCache) -> Result<()> {
        let list = sequences(cache, self.numbers);
        let lent = cache.sdpa_args(self.layer, &list)?.raw()?;
        // The rows of these sequences come first.
        let short = (&[Arg::PageTable, Arg::KeyLengths][..], list.len());
        lend(&mut self.problem, &mut self.addresses, lent, short);
        // SAFETY: the call keeps the arrays alive. Arrays and tensors of the cache have these layouts; the cache is
        // borrowed exclusively, and results overlap nothing.
        unsafe { execute(&self.problem, &self.addresses) }
    }
}
