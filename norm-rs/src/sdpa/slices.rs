//! Attention on slices in one call.

use std::fmt;

use super::backward::{Backward, BackwardArgs};
use super::forward::{Forward, ForwardArgs};
use super::quantized::Scales;
use super::{Causal, Window};
use crate::data_type::{Element, Parameter};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::memory::{Memory, ReadOnly};
use crate::memory_desc::MemoryDesc;
use crate::primitive::Arg;
use crate::stream::Stream;
use crate::tensors::with_current;

/// A slice with dimensions, and strides if it is not dense: queries, keys, values or results of sequences x heads x
/// tokens x elements.
#[derive(Clone, Copy, Debug)]
pub struct Heads<S> {
    slice: S,
    dims: [usize; 4],
    strides: Option<[usize; 4]>,
}

impl<S> Heads<S> {
    /// Dense: the last dimension is contiguous, and so on.
    pub fn new(slice: S, dims: [usize; 4]) -> Self {
        Self { slice, dims, strides: None }
    }

    /// With strides, in elements, such as those of tokens outside of heads.
    pub fn with_strides(slice: S, dims: [usize; 4], strides: [usize; 4]) -> Self {
        Self { slice, dims, strides: Some(strides) }
    }

    pub(crate) fn dims(&self) -> [usize; 4] {
        self.dims
    }

    /// The descriptor, if a slice of `len` elements is large enough. The library swaps the last two dimensions of keys.
    fn desc<T: Element>(&self, name: &'static str, len: usize) -> Result<MemoryDesc> {
        let desc = match &self.strides {
            None => MemoryDesc::dense(&self.dims, T::DATA_TYPE),
            Some(strides) => MemoryDesc::with_strides(&self.dims, T::DATA_TYPE, strides),
        }?;
        let needed = desc.size() / size_of::<T>();
        if len < needed {
            let dims = self.dims;
            return Err(Error::invalid(
                name,
                format_args!("has {len} elements; its dimensions {dims:?} need {needed}"),
            ));
        }
        if is_keys(name) { desc.permute_axes(&[0, 1, 3, 2]) } else { Ok(desc) }
    }

    /// As [`desc`](Self::desc), for `sequences` packed sequences. `None`: they are not packed.
    fn packed<T: Element>(
        &self,
        name: &'static str,
        len: usize,
        sequences: Option<usize>,
    ) -> Result<MemoryDesc> {
        let desc = self.desc::<T>(name, len)?;
        let (Some(sequences), Some(strides)) = (sequences, desc.strides()) else { return Ok(desc) };
        if self.dims[0] != 1 {
            let dims = self.dims;
            let reason = format_args!("has dimensions {dims:?}; packed sequences are one: pass 1");
            return Err(Error::invalid(name, reason));
        }
        let dims = desc.dims();
        let of = |first, list: &[usize]| [first, list[1], list[2], list[3]];
        MemoryDesc::with_strides(&of(sequences, &dims), T::DATA_TYPE, &of(0, &strides))
    }
}

fn is_keys(name: &str) -> bool {
    matches!(name, "k" | "diff_k")
}

/// A tensor of a call.
pub(crate) struct Given<M> {
    pub(crate) desc: MemoryDesc,
    pub(crate) memory: M,
}

pub(crate) fn input<'a, T: Element>(
    engine: &Engine,
    name: &'static str,
    heads: &Heads<&'a [T]>,
    sequences: Option<usize>,
) -> Result<Given<Memory<'a, ReadOnly>>> {
    let desc = heads.packed::<T>(name, heads.slice.len(), sequences)?;
    let memory = Memory::from_slice(engine, &desc, heads.slice)?;
    Ok(Given { desc, memory })
}

pub(crate) fn output<'a, T: Element>(
    engine: &Engine,
    name: &'static str,
    heads: Heads<&'a mut [T]>,
    sequences: Option<usize>,
) -> Result<Given<Memory<'a>>> {
    let desc = heads.packed::<T>(name, heads.slice.len(), sequences)?;
    let memory = Memory::from_mut_slice(engine, &desc, heads.slice)?;
    Ok(Given { desc, memory })
}

/// A mask in memory: sequences x heads x queries x keys, 1 where it is shared.
#[derive(Clone, Copy, Debug)]
pub enum Mask<'a> {
    /// Is added to the scores.
    Added(Heads<&'a [f32]>),
    /// 0 hides a key.
    Bytes(Heads<&'a [u8]>),
}

/// The options of [`attention`]. By default none is set.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'a> {
    /// A causal mask.
    pub causal: Causal,
    /// A sliding window.
    pub window: Window,
    /// How many first keys are also seen, besides those in the window.
    pub first_keys: usize,
    /// The factor of the products; `None` for `1/sqrt(D)`.
    pub scale: Option<f32>,
    /// Scores become `cap * tanh(score / cap)`.
    pub soft_cap: Option<f32>,
    /// The scores of sinks, one for each head.
    pub sinks: Option<&'a [f32]>,
    /// The slopes of ALiBi, one for each head.
    pub alibi_slopes: Option<&'a [f32]>,
    /// A mask in memory.
    pub mask: Option<Mask<'a>>,
    /// The queries of each sequence.
    pub query_lengths: Option<&'a [i32]>,
    /// The keys of each sequence.
    pub key_lengths: Option<&'a [i32]>,
    /// The first query of each packed sequence, and the end of the last. Then queries and results have one sequence,
    /// which contains the rows of all. Rows that belong to no sequence are not changed.
    pub query_offsets: Option<&'a [i32]>,
    /// Likewise for keys and values.
    pub key_offsets: Option<&'a [i32]>,
}

/// The memories of [`Options`].
pub(crate) struct Optional<'a> {
    pub(crate) mask: Option<Given<Memory<'a, ReadOnly>>>,
    pub(crate) sinks: Option<Memory<'a, ReadOnly>>,
    pub(crate) slopes: Option<Memory<'a, ReadOnly>>,
    pub(crate) query_lengths: Option<Memory<'a, ReadOnly>>,
    pub(crate) key_lengths: Option<Memory<'a, ReadOnly>>,
    pub(crate) query_offsets: Option<Memory<'a, ReadOnly>>,
    pub(crate) key_offsets: Option<Memory<'a, ReadOnly>>,
}

impl<'a> Options<'a> {
    pub(crate) fn memories(
        &self,
        engine: &Engine,
        [batch, heads]: [usize; 2],
    ) -> Result<Optional<'a>> {
        Ok(Optional {
            mask: match &self.mask {
                None => None,
                Some(Mask::Added(mask)) => Some(input(engine, "mask", mask, None)?),
                Some(Mask::Bytes(mask)) => Some(input(engine, "mask", mask, None)?),
            },
            sinks: each(engine, "sinks", self.sinks, heads)?,
            slopes: each(engine, "alibi_slopes", self.alibi_slopes, heads)?,
            query_lengths: each(engine, "query_lengths", self.query_lengths, batch)?,
            key_lengths: each(engine, "key_lengths", self.key_lengths, batch)?,
            query_offsets: each(engine, "query_offsets", self.query_offsets, batch + 1)?,
            key_offsets: each(engine, "key_offsets", self.key_offsets, batch + 1)?,
        })
    }

    /// The numbers of sequences of queries and of keys, if they are packed.
    pub(crate) fn packed(&self) -> [Option<usize>; 2] {
        let sequences = |offsets: &[i32]| offsets.len().saturating_sub(1);
        [self.query_offsets.map(sequences), self.key_offsets.map(sequences)]
    }
}

/// Memory over a slice of one element for each head or sequence.
fn each<'a, T: Element>(
    engine: &Engine,
    name: &'static str,
    slice: Option<&'a [T]>,
    count: usize,
) -> Result<Option<Memory<'a, ReadOnly>>> {
    let Some(slice) = slice else { return Ok(None) };
    expect_len(name, slice.len(), count)?;
    let desc = MemoryDesc::dense(&[count], T::DATA_TYPE)?;
    Memory::from_slice(engine, &desc, slice).map(Some)
}

fn expect_len(name: &'static str, len: usize, count: usize) -> Result<()> {
    if len == count {
        return Ok(());
    }
    Err(Error::invalid(name, format_args!("has {len} elements; pass {count}")))
}

/// The arguments of [`Forward`] and [`Backward`], and their names in these functions.
const NAMES: [(&str, &str); 6] = [
    ("query", "q"),
    ("key", "k"),
    ("value", "v"),
    ("diff_query", "diff_q"),
    ("diff_key", "diff_k"),
    ("diff_value", "diff_v"),
];

/// The options of both builders.
macro_rules! with_options {
    ($builder:expr, $options:expr, $memories:expr) => {{
        let mut builder = $builder.causal($options.causal).window($options.window);
        builder = builder.first_keys($options.first_keys);
        builder.common.scale = $options.scale;
        builder.common.soft_cap = $options.soft_cap.unwrap_or(0.0);
        builder.common.mask = $memories.mask.as_ref().map(|mask| &mask.desc);
        let flags = [
            ($memories.sinks.is_some(), norm_sys::norm_sdpa_sinks),
            ($memories.slopes.is_some(), norm_sys::norm_sdpa_alibi),
            ($memories.query_lengths.is_some(), norm_sys::norm_sdpa_query_lengths),
            ($memories.key_lengths.is_some(), norm_sys::norm_sdpa_key_lengths),
            ($memories.query_offsets.is_some(), norm_sys::norm_sdpa_query_offsets),
            ($memories.key_offsets.is_some(), norm_sys::norm_sdpa_key_offsets),
        ];
        for (is_set, flag) in flags {
            builder.common.flags |= if is_set { flag } else { 0 };
        }
        builder
    }};
}
pub(crate) use with_options;

/// The arguments of the options.
macro_rules! with_memories {
    ($args:expr, $memories:expr) => {{
        let mut args = $args.0;
        let Optional {
            mask,
            sinks,
            slopes,
            query_lengths,
            key_lengths,
            query_offsets,
            key_offsets,
        } = $memories;
        let mask = mask.as_ref().map(|mask| &mask.memory);
        for (arg, memory) in [
            (Arg::AttnMask, mask),
            (Arg::Sinks, sinks.as_ref()),
            (Arg::AlibiSlopes, slopes.as_ref()),
            (Arg::QueryLengths, query_lengths.as_ref()),
            (Arg::KeyLengths, key_lengths.as_ref()),
            (Arg::QueryOffsets, query_offsets.as_ref()),
            (Arg::KeyOffsets, key_offsets.as_ref()),
        ] {
            if let Some(memory) = memory {
                args = args.input(arg, memory);
            }
        }
        args
    }};
}
pub(crate) use with_memories;

/// Attention of queries `B x H x S x D` to keys `B x G x T x D` and values `B x G x T x E`; `dst` is `B x H x S x E`. `G`
/// divides `H`, and head `h` uses keys `h/(H/G)`.
///
/// ```
/// use norm_rs::sdpa::{Causal, Heads, Options, attention};
/// // 1 sequence, 2 heads, which share one of keys; 2 tokens of 1 element.
/// let (q, k, v) = ([1.0f32, 1.0, 1.0, 1.0], [5.0f32, 5.0], [2.0f32, 4.0]);
/// let mut dst = [0.0f32; 4];
/// let (many, one) = ([1, 2, 2, 1], [1, 1, 2, 1]);
/// let options = Options { causal: Causal::TopLeft, ..Options::default() };
/// let to = Heads::new(&mut dst[..], many);
/// attention(Heads::new(&q, many), Heads::new(&k, one), Heads::new(&v, one), &options, to)?;
/// // The first token sees only itself.
/// assert_eq!(dst, [2.0, 3.0, 2.0, 3.0]);
/// # Ok::<(), norm_rs::Error>(())
/// ```
///
/// Each call creates a primitive, which takes microseconds. [`Forward`] offers more: pages, entropy, one primitive for
/// all steps of a decode.
///
/// # Errors
/// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments): dimensions that do not fit, a slice that is too
/// short, a number out of its range.
pub fn attention<T: Parameter, D: Parameter>(
    q: Heads<&[T]>,
    k: Heads<&[T]>,
    v: Heads<&[T]>,
    options: &Options<'_>,
    dst: Heads<&mut [D]>,
) -> Result<()> {
    forward(q, [k, v], None, options, (dst, None))
}

/// [`attention`] that also writes the logarithms of the sums, `B x H x S`, for [`attention_backward`].
///
/// # Errors
/// As [`attention`].
pub fn attention_training<T: Parameter, D: Parameter>(
    q: Heads<&[T]>,
    k: Heads<&[T]>,
    v: Heads<&[T]>,
    options: &Options<'_>,
    dst: Heads<&mut [D]>,
    log_sum_exp: &mut [f32],
) -> Result<()> {
    forward(q, [k, v], None, options, (dst, Some(log_sum_exp)))
}

/// Attention, with scales of quantized keys and values, and log-sum-exp.
pub(super) fn forward<T: Parameter, K: Element, D: Parameter>(
    q: Heads<&[T]>,
    [k, v]: [Heads<&[K]>; 2],
    scales: Option<[&[f32]; 2]>,
    options: &Options<'_>,
    (dst, log_sum_exp): (Heads<&mut [D]>, Option<&mut [f32]>),
) -> Result<()> {
    let engine = Engine::cpu()?;
    let [batch, heads, queries, size] = q.dims;
    if k.dims[3] != size {
        let reason = format_args!("has heads of {} elements; pass {size}, those of q", k.dims[3]);
        return Err(Error::invalid("k", reason));
    }
    let [of_q, of_k] = options.packed();
    let memories = options.memories(&engine, [of_q.unwrap_or(batch), heads])?;
    let scales =
        scales.map(|scales| Scales::new(&engine, scales, [&k.dims, &v.dims])).transpose()?;
    let (q, k) = (input(&engine, "q", &q, of_q)?, input(&engine, "k", &k, of_k)?);
    let v = input(&engine, "v", &v, of_k)?;
    let mut dst = output(&engine, "dst", dst, of_q)?;
    let descs = (&q.desc, &k.desc, &v.desc);
    let builder = match log_sum_exp {
        Some(_) => Forward::training(&engine, descs.0, descs.1, descs.2),
        None => Forward::inference(&engine, descs.0, descs.1, descs.2),
    };
    let mut builder = with_options!(builder, options, memories).dst(&dst.desc);
    if let Some(scales) = &scales {
        builder = builder.attr(&scales.attr);
    }
    let primitive = builder.build().map_err(|error| error.renamed(&NAMES))?;
    let mut args = with_memories!(
        ForwardArgs::new(&q.memory, &k.memory, &v.memory, &mut dst.memory),
        &memories
    );
    if let Some(Scales { memories: [keys, values], .. }) = &scales {
        args = args.input(Arg::KeyScales, keys).input(Arg::ValueScales, values);
    }
    let mut sums;
    if let Some(slice) = log_sum_exp {
        let dims = [batch, heads, queries, 1];
        expect_len("log_sum_exp", slice.len(), dims.iter().product())?;
        sums = output(&engine, "log_sum_exp", Heads::new(slice, dims), None)?;
        args = args.output(Arg::Workspace, &mut sums.memory);
    }
    let stream = Stream::new(&engine)?;
    with_current(&stream, |stream| primitive.execute(stream, ForwardArgs(args)))
}

/// The results of the forward pass that [`attention_backward`] needs.
pub struct Results<'a, D> {
    /// The result.
    pub dst: Heads<&'a [D]>,
    /// The logarithms of the sums.
    pub log_sum_exp: &'a [f32],
}

impl<D> fmt::Debug for Results<'_, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Results").field("dims", &self.dst.dims).finish_non_exhaustive()
    }
}

/// The gradients of [`attention`] with respect to queries, keys, values, sinks if there are any, and optionally a mask.
pub struct Gradients<'a, T> {
    /// The dimensions of queries.
    pub diff_q: Heads<&'a mut [T]>,
    /// The dimensions of keys. The gradients of heads that share keys are added.
    pub diff_k: Heads<&'a mut [T]>,
    /// The dimensions of values.
    pub diff_v: Heads<&'a mut [T]>,
    /// One for each head, if the options have sinks.
    pub diff_sinks: Option<&'a mut [f32]>,
    /// The gradient of an additive mask, with its dimensions; `None` if it is not needed.
    pub diff_mask: Option<Heads<&'a mut [f32]>>,
}

impl<T> fmt::Debug for Gradients<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gradients").field("dims", &self.diff_q.dims).finish_non_exhaustive()
    }
}

/// The gradients of [`attention`], with the same options.
///
/// # Errors
/// As [`attention`].
pub fn attention_backward<T: Parameter, D: Parameter>(
    q: Heads<&[T]>,
    k: Heads<&[T]>,
    v: Heads<&[T]>,
    options: &Options<'_>,
    results: Results<'_, D>,
    diff_dst: Heads<&[T]>,
    gradients: Gradients<'_, T>,
) -> Result<()> {
    let engine = Engine::cpu()?;
    let [batch, heads, queries, _] = q.dims;
    let [of_q, of_k] = options.packed();
    let memories = options.memories(&engine, [of_q.unwrap_or(batch), heads])?;
    let sums = Heads::new(results.log_sum_exp, [batch, heads, queries, 1]);
    let sums = input(&engine, "log_sum_exp", &sums, None)?;
    let (q, k) = (input(&engine, "q", &q, of_q)?, input(&engine, "k", &k, of_k)?);
    let v = input(&engine, "v", &v, of_k)?;
    let dst = input(&engine, "dst", &results.dst, of_q)?;
    let diff_dst = input(&engine, "diff_dst", &diff_dst, of_q)?;
    let mut diff_q = output(&engine, "diff_q", gradients.diff_q, of_q)?;
    let mut diff_k = output(&engine, "diff_k", gradients.diff_k, of_k)?;
    let mut diff_v = output(&engine, "diff_v", gradients.diff_v, of_k)?;
    let diff_mask = gradients.diff_mask;
    let mut diff_mask = diff_mask.map(|to| output(&engine, "diff_mask", to, None)).transpose()?;
    let builder = Backward::new(&engine, &q.desc, &k.desc, &v.desc);
    let builder = with_options!(builder, options, memories).dst(&dst.desc).diff_dst(&diff_dst.desc);
    let builder = match &diff_mask {
        Some(diff_mask) => builder.diff_mask(&diff_mask.desc),
        None => builder,
    };
    let builder = builder.gradients(&diff_q.desc, &diff_k.desc, &diff_v.desc);
    let primitive = builder.build().map_err(|error| error.renamed(&NAMES))?;
    let mut args = with_memories!(
        BackwardArgs::new(
            (&q.memory, &k.memory, &v.memory),
            (&dst.memory, &sums.memory),
            &diff_dst.memory,
            (&mut diff_q.memory, &mut diff_k.memory, &mut diff_v.memory),
        ),
        &memories
    );
    if let Some(diff_mask) = &mut diff_mask {
        args = args.output(Arg::DiffAttnMask, &mut diff_mask.memory);
    }
    let mut diff_sinks;
    match gradients.diff_sinks {
        Some(slice) => {
            expect_len("diff_sinks", slice.len(), heads)?;
            let desc = MemoryDesc::dense(&[heads], f32::DATA_TYPE)?;
            diff_sinks = Memory::from_mut_slice(&engine, &desc, slice)?;
            args = args.output(Arg::DiffSinks, &mut diff_sinks);
        }
        None if options.sinks.is_some() => {
            return Err(Error::invalid("diff_sinks", "is None, but the options have sinks"));
        }
        None => {}
    }
    let stream = Stream::new(&engine)?;
    with_current(&stream, |stream| primitive.execute(stream, BackwardArgs(args)))
}
