//! The functions of post-operations and elementwise primitives, over chunks of f32.

use super::{BinaryAlgorithm, EltwiseAlgorithm};
use crate::simd::lanes::Lanes;
use crate::simd::math::{self, Exponent};
use crate::simd::{Element, LANES, Simd, UpTo, Width, entry_points, rounded, unroll};
use crate::tensor::DataType;

/// The elements of a step: where they are read and where they are written, which may be the same place.
#[derive(Clone, Copy)]
pub(super) struct Chunk {
    pub(super) from: *const f32,
    pub(super) to: *mut f32,
    pub(super) len: usize,
    /// Whether whole vectors are written with non-temporal stores; `to` is then a multiple of 64.
    pub(super) streams: bool,
}

/// The prefetch distance, in elements, if results are stored non-temporally: the hardware prefetcher stops at the end
/// of a page.
pub(super) const AHEAD: usize = 512;

/// Writes the value of a vector expression over the elements of a chunk and of other operands. `by 4` computes four
/// vectors at a time, for expressions of a few instructions. The expression is compiled once for whole and partial
/// vectors.
macro_rules! each {
    ($chunk:expr, |$x:ident $(, $y:ident: $others:ident)*| $value:expr) => {
        each!($chunk, by 1, |$x $(, $y: $others)*| $value)
    };
    ($chunk:expr, by $vectors:literal, |$x:ident $(, $y:ident: $others:ident)*| $value:expr) => {{
        let Chunk { from, to, len, streams } = $chunk;
        let mut i = 0;
        // SAFETY: the loops stay within the chunk and the others; the caller guarantees the instruction set.
        unsafe {
            macro_rules! vector {
                ($at:expr, $n:expr) => {{
                    let (at, n) = ($at, $n);
                    if streams {
                        S::prefetch(from.wrapping_add(at + AHEAD).cast());
                        $(S::prefetch($others.wrapping_add(at + AHEAD).cast());)*
                    }
                    let $x = Lanes::<S>::load(from.add(at), n);
                    $(let $y = Lanes::<S>::load($others.add(at), n);)*
                    ($value).put(to.add(at), n, streams);
                }};
            }
            if S::UNROLLS && $vectors > 1 {
                let end = len - len % ($vectors * LANES);
                while i < end {
                    unroll!(v in $vectors, {
                        vector!(i + v * LANES, LANES);
                    });
                    i += $vectors * LANES;
                }
            }
            while i < len {
                vector!(i, (len - i).min(LANES));
                i += LANES;
            }
        }
    }};
}

pub(super) use each;

entry_points! {
    /// [`eltwise_chunk`], compiled separately from the chain, because functions with many loops compile slowly.
    mod eltwise_entries: eltwise_chunk<>(
        chunk: Chunk, algorithm: EltwiseAlgorithm, parameters: (f32, f32), exponent: Exponent
    ) -> ();
}

/// # Safety
/// The CPU supports the instruction set of `S`.
#[inline(always)]
pub(super) unsafe fn eltwise<S: Simd>(
    chunk: Chunk,
    algorithm: EltwiseAlgorithm,
    parameters: (f32, f32),
    exponent: Exponent,
) {
    let entry = eltwise_entries::at(S::LEVEL).unwrap_or(eltwise_entries::portable::entry_portable);
    // SAFETY: guaranteed by the caller.
    unsafe { entry(chunk, algorithm, parameters, exponent) }
}

/// # Safety
/// The CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn eltwise_chunk<S: Simd>(
    chunk: Chunk,
    algorithm: EltwiseAlgorithm,
    (a, b): (f32, f32),
    exponent: Exponent,
) {
    use EltwiseAlgorithm as E;
    match algorithm {
        E::Relu if a == 0.0 => each!(chunk, by 4, |x| x.all(0.0).max(x)),
        E::Relu => each!(chunk, by 4, |x| x.all(0.0).lt(x).select(x, x * a)),
        E::Tanh => each!(chunk, |x| math::tanh(x)),
        E::Elu => each!(chunk, |x| math::elu(x, a)),
        E::Square => each!(chunk, by 4, |x| x * x),
        E::Abs => each!(chunk, by 4, |x| x.abs()),
        E::Sqrt => each!(chunk, |x| x.sqrt()),
        E::Linear => each!(chunk, by 4, |x| x.mul_add(a, b)),
        E::SoftRelu => each!(chunk, |x| math::softplus(x * a) / a),
        E::Hardsigmoid => each!(chunk, |x| x.mul_add(a, b).within(0.0, 1.0)),
        E::Logistic => each!(chunk, |x| math::logistic(x)),
        E::Exp => each!(chunk, |x| math::exp(x)),
        E::GeluTanh => each!(chunk, |x| math::gelu_tanh(x)),
        E::Swish => each!(chunk, |x| math::swish(x, a)),
        E::Log => each!(chunk, |x| math::log(x)),
        E::Clip | E::ClipV2 => each!(chunk, by 4, |x| x.within(a, b)),
        E::Pow => each!(chunk, |x| math::pow(x, exponent) * a),
        E::GeluErf => each!(chunk, |x| math::gelu_erf(x)),
        E::Round => each!(chunk, |x| math::round(x)),
        E::Mish => each!(chunk, |x| math::mish(x)),
        E::Hardswish => each!(chunk, |x| x * x.mul_add(a, b).within(0.0, 1.0)),
    }
}

/// # Safety
/// The chunk and the others have the same length. The CPU supports the instruction set of `S`.
#[inline(always)]
pub(super) unsafe fn binary<S: Simd>(chunk: Chunk, algorithm: BinaryAlgorithm, others: *const f32) {
    use BinaryAlgorithm as B;
    match algorithm {
        B::Add => each!(chunk, by 4, |x, y: others| x + y),
        B::Mul => each!(chunk, by 4, |x, y: others| x * y),
        B::Max => each!(chunk, by 4, |x, y: others| x.max(y)),
        B::Min => each!(chunk, by 4, |x, y: others| x.min(y)),
        B::Div => each!(chunk, |x, y: others| x / y),
        B::Sub => each!(chunk, by 4, |x, y: others| x - y),
        B::Ge => each!(chunk, by 4, |x, y: others| y.le(x).select(1.0, 0.0)),
        B::Gt => each!(chunk, by 4, |x, y: others| y.lt(x).select(1.0, 0.0)),
        B::Le => each!(chunk, by 4, |x, y: others| x.le(y).select(1.0, 0.0)),
        B::Lt => each!(chunk, by 4, |x, y: others| x.lt(y).select(1.0, 0.0)),
        B::Eq => each!(chunk, by 4, |x, y: others| x.eq(y).select(1.0, 0.0)),
        B::Ne => each!(chunk, by 4, |x, y: others| x.eq(y).select(0.0, 1.0)),
        // `Select` needs the condition; see `select`.
        B::Select => {}
    }
}

/// # Safety
/// As [`binary`].
#[inline(always)]
pub(super) unsafe fn select<S: Simd>(chunk: Chunk, others: *const f32, conditions: *const f32) {
    each!(chunk, |x, y: others, condition: conditions| condition.eq(0.0).select(y, x));
}

/// Rounds a chunk to a type.
///
/// # Safety
/// The CPU supports the instruction set of `S`.
#[inline(always)]
pub(super) unsafe fn round<S: Simd, E: Element>(chunk: Chunk, data_type: DataType) {
    let (element, len) = (E::of(data_type), chunk.len);
    for i in (0..len).step_by(LANES) {
        let width = UpTo(LANES.min(len - i));
        // SAFETY: guaranteed by the caller; the elements are those of the chunk.
        unsafe {
            let value = rounded::<S, E>(element, width.load::<S>(chunk.from.add(i)), width);
            width.store::<S>(chunk.to.add(i), value);
        }
    }
}
