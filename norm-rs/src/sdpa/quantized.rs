//! Attention on slices to quantized keys and values in one call.

use super::slices::{Heads, Options, forward};
use crate::attr::Attr;
use crate::data_type::{DataType, Parameter};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::memory::{Memory, ReadOnly};
use crate::memory_desc::MemoryDesc;
use crate::primitive::Arg;

/// A scale for each sequence, head and token of keys, and of values.
pub(super) struct Scales<'a> {
    pub(super) attr: Attr,
    pub(super) memories: [Memory<'a, ReadOnly>; 2],
}

impl<'a> Scales<'a> {
    pub(super) fn new(
        engine: &Engine,
        [keys, values]: [&'a [f32]; 2],
        [key_dims, value_dims]: [&[usize; 4]; 2],
    ) -> Result<Self> {
        let memory = |name, slice: &'a [f32], dims: [usize; 4]| {
            let count: usize = dims.iter().product();
            if slice.len() != count {
                let reason =
                    format_args!("has {} elements; pass {count}, one for each token", slice.len());
                return Err(Error::invalid(name, reason));
            }
            Memory::from_slice(engine, &MemoryDesc::dense(&dims, DataType::F32)?, slice)
        };
        let mut attr = Attr::new()?;
        attr.set_scales(Arg::Keys, 11)?;
        attr.set_scales(Arg::Values, 7)?;
        let ([b, g, t, _], [bv, gv, tv, _]) = (*key_dims, *value_dims);
        // The library swaps the last two dimensions of keys.
        let keys = memory("key_scales", keys, [b, g, 1, t])?;
        let values = memory("value_scales", values, [bv, gv, tv, 1])?;
        Ok(Self { attr, memories: [keys, values] })
    }
}

/// [`attention`](super::attention) to keys and values of `i8`, whose elements are multiplied by their scales:
/// `[key_scales, value_scales]` are `B x G x T` each.
///
/// ```
/// use norm_rs::sdpa::{Heads, Options, attention_quantized};
/// // 1 sequence, 1 head, 2 tokens of 2 elements; even weights.
/// let (q, k, v) = ([0.0f32, 0.0], [1i8, 2, 3, 4], [100i8, -100, 10, 20]);
/// let (one, keys) = ([1, 1, 1, 2], [1, 1, 2, 2]);
/// let mut dst = [0.0f32; 2];
/// let scales = [&[0.5f32, 0.5][..], &[0.25, 0.5]];
/// let (k, v) = (Heads::new(&k[..], keys), Heads::new(&v[..], keys));
/// let (q, to) = (Heads::new(&q[..], one), Heads::new(&mut dst[..], one));
/// attention_quantized(q, k, v, scales, &Options::default(), to)?;
/// assert_eq!(dst, [15.0, -7.5]);
/// # Ok::<(), norm_rs::Error>(())
/// ```
///
/// # Errors
/// As [`attention`](super::attention), and [`ErrorKind::Unimplemented`](crate::ErrorKind::Unimplemented) for packed keys.
pub fn attention_quantized<T: Parameter, D: Parameter>(
    q: Heads<&[T]>,
    k: Heads<&[i8]>,
    v: Heads<&[i8]>,
    scales: [&[f32]; 2],
    options: &Options<'_>,
    dst: Heads<&mut [D]>,
) -> Result<()> {
    forward(q, [k, v], Some(scales), options, (dst, None))
}
