//! Attention over a cache, on slices.

use super::{KvCache, Sequence};
use crate::data_type::Parameter;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::primitive::Arg;
use crate::sdpa::slices::{Optional, input, output, with_memories, with_options};
use crate::sdpa::{Causal, Forward, ForwardArgs, Heads, Options};
use crate::stream::Stream;
use crate::tensors::with_current;

impl KvCache {
    /// [`write`](Self::write) of slices: sequences x heads x rows x elements; after [`Rows::Packed`](super::Rows::Packed) 1 x
    /// heads x all rows x elements.
    ///
    /// # Errors
    /// As [`write`](Self::write); also if a slice is too short.
    pub fn write_slices<T: Parameter>(
        &mut self,
        layer: usize,
        keys: Heads<&[T]>,
        values: Heads<&[T]>,
    ) -> Result<()> {
        // Keys have the same layout as values here: only attention swaps the last two dimensions.
        let engine = Engine::cpu()?;
        let keys = input(&engine, "keys", &keys, None)?;
        let values = input(&engine, "values", &values, None)?;
        let stream = Stream::new(&engine)?;
        with_current(&stream, |stream| self.write(stream, layer, &keys.memory, &values.memory))
    }

    /// Attention of queries `B x H x S x D`, one sequence of the cache for each of `B`, to the keys and values of a
    /// layer. The last query of a sequence sees its last key with [`Causal::BottomRight`]. `dst` is `B x H x S x E`. A
    /// mask has as many keys as a sequence of the cache has room for, or 1.
    ///
    /// ```
    /// use norm_rs::kv_cache::{KvCache, Rows};
    /// use norm_rs::sdpa::{Causal, Heads, Options};
    /// use norm_rs::{DataType, Engine};
    ///
    /// let engine = Engine::cpu()?;
    /// let builder = KvCache::contiguous(&engine, DataType::F32).heads(1).key_size(1);
    /// let mut cache = builder.tokens(8).build()?;
    /// let sequence = cache.new_sequence()?;
    ///
    /// // Two tokens of one head at once.
    /// let (q, k, v) = ([1.0f32, 1.0], [5.0f32, 5.0], [2.0f32, 4.0]);
    /// let (dims, mut dst) = ([1, 1, 2, 1], [0.0f32; 2]);
    /// cache.extend(&[(sequence, 2)], Rows::Packed)?;
    /// cache.write_slices(0, Heads::new(&k[..], dims), Heads::new(&v[..], dims))?;
    /// let options = Options { causal: Causal::BottomRight, ..Options::default() };
    /// let to = Heads::new(&mut dst[..], dims);
    /// cache.attention(0, &[sequence], Heads::new(&q[..], dims), &options, to)?;
    /// assert_eq!(dst, [2.0, 3.0]); // the first token sees only itself
    /// # Ok::<(), norm_rs::Error>(())
    /// ```
    ///
    /// Each call creates a primitive, which takes microseconds; with [`sdpa_args`](Self::sdpa_args) one primitive
    /// serves every step.
    ///
    /// # Errors
    /// As [`sdpa::attention`](crate::sdpa::attention()) and [`sdpa_args`](Self::sdpa_args).
    pub fn attention<T: Parameter, D: Parameter>(
        &mut self,
        layer: usize,
        sequences: &[Sequence],
        q: Heads<&[T]>,
        options: &Options<'_>,
        dst: Heads<&mut [D]>,
    ) -> Result<()> {
        let ([of_q, _], [batch, heads, ..]) = (options.packed(), q.dims());
        let batch = of_q.unwrap_or(batch);
        for (name, given) in
            [("key_lengths", options.key_lengths), ("key_offsets", options.key_offsets)]
        {
            if given.is_some() {
                return Err(Error::invalid(name, "is not None, but the cache has its own lengths"));
            }
        }
        if sequences.len() != batch {
            let reason = format_args!("has {} entries, but q {batch} sequences", sequences.len());
            return Err(Error::invalid("sequences", reason));
        }
        let (window, first_keys) = (options.window, options.first_keys);
        if self.kept.is_some() && options.causal != Causal::BottomRight {
            return Err(Error::invalid("causal", "is not BottomRight, but the cache is a ring"));
        }
        if !self.keeps(window, first_keys) {
            let reason = format_args!(
                "is {window:?}, with {first_keys} first keys: the ring does not keep what it sees"
            );
            return Err(Error::invalid("window", reason));
        }
        let engine = Engine::cpu()?;
        let memories = options.memories(&engine, [batch, heads])?;
        let q = input(&engine, "q", &q, of_q)?;
        let mut dst = output(&engine, "dst", dst, of_q)?;
        let (key, value) = (self.key_desc().clone(), self.value_desc().clone());
        let table = self.page_table_desc(batch)?;
        let attr = self.attr()?;
        let layer = self.sdpa_args(layer, sequences)?;
        let builder = Forward::inference(&engine, &q.desc, &key, &value).key_lengths();
        let builder = with_options!(builder.page_table(&table).attr(&attr), options, memories);
        let primitive = builder.dst(&dst.desc).build();
        let primitive = primitive.map_err(|error| error.renamed(&[("query", "q")]))?;
        let args = ForwardArgs::cached(&q.memory, layer, &mut dst.memory)?;
        let args = ForwardArgs(with_memories!(args, &memories));
        let stream = Stream::new(&engine)?;
        with_current(&stream, |stream| primitive.execute(stream, args))
    }
}
