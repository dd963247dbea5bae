//! The functions of post-operations and elementwise primitives, over chunks of f32.

use super::operand::INPUTS;
use super::{BinaryAlgorithm, EltwiseAlgorithm};
use crate::simd::lanes::Lanes;
use crate::simd::math::{self, Exponent};
use crate::simd::{Element, F32, FusedOp, LANES, Simd, UpTo, Width, entry_points, rounded, unroll};
use crate::tensor::DataType;
use std::hint::black_box;

/// Elements that will be read later, `step` bytes apart.
#[derive(Clone, Copy)]
pub(crate) struct Ahead {
    pub(crate) start: *const u8,
    pub(crate) step: usize,
}

impl Ahead {
    pub(crate) const NONE: Self = Self { start: std::ptr::null(), step: 0 };

    /// The elements after a number of others.
    #[inline(always)]
    pub(super) fn after(self, elements: usize) -> Self {
        Self { start: self.start.wrapping_add(elements * self.step), ..self }
    }
}

/// The elements of a step: where they are read and where they are written, which may be the same place.
#[derive(Clone, Copy)]
pub(super) struct Chunk {
    pub(super) from: *const f32,
    pub(super) to: *mut f32,
    pub(super) len: usize,
    /// Whether whole vectors are written with non-temporal stores; `to` is then a multiple of 64.
    pub(super) streams: bool,
    /// What is prefetched meanwhile: for the chunk's own elements and for each of the others.
    pub(super) ahead: Option<[Ahead; INPUTS]>,
}

impl Chunk {
    /// Elements that are computed where they are.
    #[inline(always)]
    pub(super) fn in_place(of: *mut f32, len: usize) -> Self {
        Self { from: of, to: of, len, streams: false, ahead: None }
    }

    /// Whether the elements are computed where they are, and nothing is prefetched.
    #[inline(always)]
    fn is_plain(&self) -> bool {
        self.from == self.to && !self.streams && self.ahead.is_none()
    }

    /// The same elements where they were written.
    #[inline(always)]
    pub(super) fn written(self) -> Self {
        Self { from: self.to, ahead: None, ..self }
    }

    /// Prefetches for `N` vectors from element `i` on, for the chunk's own elements and those of `operands - 1` others.
    ///
    /// # Safety
    /// The CPU supports the instruction set of `S`.
    #[inline(always)]
    pub(super) unsafe fn prefetch<S: Simd, const N: usize>(&self, i: usize, operands: usize) {
        if let Some(ahead) = self.ahead {
            for k in 0..operands {
                unroll!(v in N, {
                    // SAFETY: guaranteed by the caller.
                    unsafe { S::prefetch(ahead[k].after(i + v * LANES).start) };
                });
            }
        }
    }

    /// Writes `N` vectors from element `i` on.
    ///
    /// # Safety
    /// The elements are those of the chunk, and the CPU supports the instruction set of `S`.
    #[inline(always)]
    pub(super) unsafe fn put<S: Simd, const N: usize>(&self, i: usize, values: &[S::F32x16; N]) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            if self.streams {
                F32.stream_all::<S, N>(self.to.cast(), i, values);
            } else {
                F32.store_all::<S, N>(self.to.cast(), i, values);
            }
        }
    }
}

/// Writes the value of a vector expression over the elements of a chunk and of other operands. `by 4` computes four
/// vectors at a time, for expressions of a few instructions, and loads the operands of each vector together.
macro_rules! each {
    ($chunk:expr, |$x:ident $(, $y:ident: $others:ident)*| $value:expr) => {
        each!($chunk, by 1, |$x $(, $y: $others)*| $value)
    };
    ($chunk:expr, by $vectors:literal, |$x:ident $(, $y:ident: $others:ident)*| $value:expr) => {{
        const OPERANDS: usize = [stringify!($x) $(, stringify!($y))*].len();
        let chunk = $chunk;
        let mut i = 0;
        // SAFETY: the loops stay within the chunk and the others; the caller guarantees the instruction set.
        unsafe {
            if S::UNROLLS && $vectors > 1 {
                let end = chunk.len - chunk.len % ($vectors * LANES);
                while i < end {
                    chunk.prefetch::<S, $vectors>(i, OPERANDS);
                    let mut values = S::zeros::<{ $vectors }>();
                    unroll!(v in $vectors, {
                        let $x = Lanes::<S>::load(chunk.from.add(i + v * LANES), LANES);
                        $(let $y = Lanes::<S>::load($others.add(i + v * LANES), LANES);)*
                        let value = ($value).vector();
                        values[v] = if const { OPERANDS > 1 } { S::in_order(value) } else { value };
                    });
                    chunk.put::<S, $vectors>(i, &values);
                    i += $vectors * LANES;
                }
            }
            while i < chunk.len {
                chunk.prefetch::<S, 1>(i, OPERANDS);
                let n = (chunk.len - i).min(LANES);
                let $x = Lanes::<S>::load(chunk.from.add(i), n);
                $(let $y = Lanes::<S>::load($others.add(i), n);)*
                ($value).put(chunk.to.add(i), n, chunk.streams);
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
    // Opaque, because LLVM inlines the only call of a function with target features.
    let entry = black_box(entry);
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

/// Evaluates `$each!(by N, |x, y| expression)` with the expression of an algorithm, for vectors N at a time.
macro_rules! binary_function {
    ($algorithm:expr, $each:ident) => {
        match $algorithm {
            BinaryAlgorithm::Add => $each!(by 4, |x, y| x + y),
            BinaryAlgorithm::Mul => $each!(by 4, |x, y| x * y),
            BinaryAlgorithm::Max => $each!(by 4, |x, y| x.max(y)),
            BinaryAlgorithm::Min => $each!(by 4, |x, y| x.min(y)),
            BinaryAlgorithm::Div => $each!(by 1, |x, y| x / y),
            BinaryAlgorithm::Sub => $each!(by 4, |x, y| x - y),
            BinaryAlgorithm::Ge => $each!(by 4, |x, y| y.le(x).select(1.0, 0.0)),
            BinaryAlgorithm::Gt => $each!(by 4, |x, y| y.lt(x).select(1.0, 0.0)),
            BinaryAlgorithm::Le => $each!(by 4, |x, y| x.le(y).select(1.0, 0.0)),
            BinaryAlgorithm::Lt => $each!(by 4, |x, y| x.lt(y).select(1.0, 0.0)),
            BinaryAlgorithm::Eq => $each!(by 4, |x, y| x.eq(y).select(1.0, 0.0)),
            BinaryAlgorithm::Ne => $each!(by 4, |x, y| x.eq(y).select(0.0, 1.0)),
            // `Select` needs the condition; see `select`.
            BinaryAlgorithm::Select => {}
        }
    };
}

pub(super) use binary_function;

/// # Safety
/// The chunk and the others have the same length. The CPU supports the instruction set of `S`.
#[inline(always)]
pub(super) unsafe fn binary<S: Simd>(chunk: Chunk, algorithm: BinaryAlgorithm, others: *const f32) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if chunk.is_plain() {
            // Without conditions in the loops: in a post-op chain, a sum took 0.91 of the time on a Zen 5.
            binary_of::<S>(Chunk::in_place(chunk.to, chunk.len), algorithm, others);
        } else {
            binary_of::<S>(chunk, algorithm, others);
        }
    }
}

/// # Safety
/// As [`binary`].
#[inline(always)]
unsafe fn binary_of<S: Simd>(chunk: Chunk, algorithm: BinaryAlgorithm, others: *const f32) {
    macro_rules! each_of_two {
        (by $vectors:tt, |$x:ident, $y:ident| $value:expr) => {
            each!(chunk, by $vectors, |$x, $y: others| $value)
        };
    }
    binary_function!(algorithm, each_of_two);
}

/// The sum or product of others and the results of a fused operation.
///
/// # Safety
/// As [`binary`].
#[inline(always)]
pub(super) unsafe fn binary_after<S: Simd>(
    chunk: Chunk,
    before: &FusedOp,
    algorithm: BinaryAlgorithm,
    others: *const f32,
) {
    // Only chains of inputs have another source, stream or prefetch, and their steps do not join.
    let chunk = Chunk::in_place(chunk.to, chunk.len);
    if algorithm == BinaryAlgorithm::Mul {
        each!(chunk, by 4, |x, y: others| before.of(x) * y);
    } else {
        each!(chunk, by 4, |x, y: others| before.of(x) + y);
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
