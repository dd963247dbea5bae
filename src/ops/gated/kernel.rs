//! The loops over dense elements of one type, a multiple of [`TURN`] of them.
//!
//! Every function has a loop per type. With limits, only swish does; the other functions have loops over f32. Chunks of
//! other types and layouts are converted to f32 in the first-level cache.

use super::functions::{
    Activation, Gradients, backward, begun, by_function, forward, plain_backward, plain_forward,
};
use super::problem::GatedFunction;
use super::problem::Numbers;
use crate::simd::lanes::Lanes;
use crate::simd::{
    Bf16InTurn, Element, F16, F32, LANES, Level, Simd, entry_points, unroll, zeroed,
};
use crate::tensor::DataType;
use std::mem::MaybeUninit;

/// Vectors of an iteration.
const VECTORS: usize = 2;
/// Elements of an iteration.
pub(super) const TURN: usize = VECTORS * LANES;

/// Contiguous elements.
#[derive(Clone, Copy)]
pub(super) struct Span {
    pub(super) function: GatedFunction,
    pub(super) numbers: Numbers,
    /// A multiple of [`TURN`].
    pub(super) len: usize,
    pub(super) gate: *const u8,
    pub(super) up: *const u8,
    /// Null forward.
    pub(super) diff_dst: *const u8,
    /// Null if backward does not write it.
    pub(super) dst: *mut u8,
    /// Null forward, as is the next.
    pub(super) diff_gate: *mut u8,
    pub(super) diff_up: *mut u8,
    /// Whether outputs are stored non-temporally.
    pub(super) streams: bool,
}

/// Stores vectors, non-temporally if `streams`.
///
/// # Safety
/// There is room for them.
#[inline(always)]
unsafe fn store<S: Simd, E: Element>(
    element: E,
    (p, i): (*mut u8, usize),
    values: &[Lanes<S>; VECTORS],
    streams: bool,
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut vectors = S::zeros::<VECTORS>();
        unroll!(v in VECTORS, {
            vectors[v] = values[v].vector();
        });
        if streams {
            element.stream_all::<S, VECTORS>(p, i, &vectors);
        } else {
            element.store_all::<S, VECTORS>(p, i, &vectors);
        }
    }
}

/// Elements of a block: a function's first step runs over a whole block, then its second step.
const BLOCK: usize = 256;

/// The end of the block that begins at element `i` of `len`. With one step, all elements are one block.
#[inline(always)]
fn block_end<A: Activation>(i: usize, len: usize) -> usize {
    if A::TWO_STEPS { len.min(i + BLOCK) } else { len }
}

/// The results of the first step.
#[repr(align(64))]
struct Begun([MaybeUninit<f32>; BLOCK]);

impl Begun {
    #[inline(always)]
    fn new() -> Self {
        Self([MaybeUninit::uninit(); BLOCK])
    }

    /// Runs the first step, if there is one, over the gates of a block.
    ///
    /// # Safety
    /// As [`forward_span`], for `n` elements, at most a block.
    #[inline(always)]
    unsafe fn fill<S: Simd, E: Element, A: Activation, const LIMITED: bool>(
        &mut self,
        (activation, numbers): (A, Numbers),
        (element, gate): (E, *const u8),
        (first, n): (usize, usize),
    ) {
        let to = self.0.as_mut_ptr().cast::<f32>();
        let mut at = 0;
        while A::TWO_STEPS && at < n {
            // SAFETY: guaranteed by the caller.
            unsafe {
                let gate = Lanes::new(element.load::<S>(gate, first + at));
                begun::<S, A, LIMITED>(activation, numbers, gate).store(to.add(at), LANES);
            }
            at += LANES;
        }
    }

    /// The results at element `at` of the block.
    ///
    /// # Safety
    /// As [`forward_span`].
    #[inline(always)]
    unsafe fn get<S: Simd, A: Activation>(&self, at: usize) -> Lanes<S> {
        // SAFETY: `fill` wrote them, if there are two steps.
        unsafe {
            match A::TWO_STEPS {
                true => Lanes::load(self.0.as_ptr().add(at).cast(), LANES),
                false => Lanes::new(S::zero()),
            }
        }
    }
}

/// # Safety
/// The elements of the span exist, and the CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn forward_span<S: Simd, E: Element, A: Activation, const LIMITED: bool>(
    span: &Span,
    activation: A,
) {
    let element = E::of(DataType::F32);
    let Span { numbers, len, gate, up, dst, .. } = *span;
    let streams = span.streams && element.streams(dst);
    let mut begun = Begun::new();
    let mut i = 0;
    while i < len {
        let (first, end) = (i, block_end::<A>(i, len));
        // SAFETY: guaranteed by the caller.
        unsafe {
            let count = end - first;
            begun.fill::<S, E, A, LIMITED>((activation, numbers), (element, gate), (first, count));
            while i < end {
                let mut values: [Lanes<S>; VECTORS] = zeroed();
                unroll!(v in VECTORS, {
                    let at = i + v * LANES;
                    let inputs = [
                        Lanes::new(element.load::<S>(gate, at)),
                        Lanes::new(element.load::<S>(up, at)),
                    ];
                    let begun = begun.get::<S, A>(at - first);
                    values[v] = forward::<S, A, LIMITED>(activation, numbers, inputs, begun);
                });
                store(element, (dst, i), &values, streams);
                i += TURN;
            }
        }
    }
}

/// # Safety
/// As [`forward_span`].
#[inline(always)]
unsafe fn backward_span<S: Simd, E: Element, A: Activation, const LIMITED: bool>(
    span: &Span,
    activation: A,
) {
    let element = E::of(DataType::F32);
    let Span { numbers, len, gate, up, diff_dst, dst, diff_gate, diff_up, .. } = *span;
    let mut streams = span.streams;
    for output in [dst, diff_gate, diff_up] {
        streams &= output.is_null() || element.streams(output);
    }
    let mut begun = Begun::new();
    let mut i = 0;
    while i < len {
        let (first, end) = (i, block_end::<A>(i, len));
        // SAFETY: guaranteed by the caller.
        unsafe {
            let count = end - first;
            begun.fill::<S, E, A, LIMITED>((activation, numbers), (element, gate), (first, count));
            while i < end {
                let mut values: [[Lanes<S>; VECTORS]; 3] = zeroed();
                unroll!(v in VECTORS, {
                    let at = i + v * LANES;
                    let inputs = [
                        Lanes::new(element.load::<S>(gate, at)),
                        Lanes::new(element.load::<S>(up, at)),
                        Lanes::new(element.load::<S>(diff_dst, at)),
                    ];
                    let begun = begun.get::<S, A>(at - first);
                    let results = backward::<S, A, LIMITED>(activation, numbers, inputs, begun);
                    let Gradients { dst, gate, up } = results;
                    (values[0][v], values[1][v], values[2][v]) = (dst, gate, up);
                });
                store(element, (diff_gate, i), &values[1], streams);
                store(element, (diff_up, i), &values[2], streams);
                if !dst.is_null() {
                    store(element, (dst, i), &values[0], streams);
                }
                i += TURN;
            }
        }
    }
}

/// # Safety
/// As [`forward_span`].
#[inline(always)]
unsafe fn directed<S: Simd, E: Element, A: Activation, const LIMITED: bool>(
    span: &Span,
    activation: A,
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if span.diff_dst.is_null() {
            forward_span::<S, E, A, LIMITED>(span, activation);
        } else {
            backward_span::<S, E, A, LIMITED>(span, activation);
        }
    }
}

/// A span, vector by vector, with the functions that the reference calls.
///
/// # Safety
/// As [`forward_span`].
#[inline(always)]
unsafe fn plain_span<S: Simd, E: Element>(span: &Span) {
    let element = E::of(DataType::F32);
    let Span { function, numbers, len, gate, up, diff_dst, dst, diff_gate, diff_up, .. } = *span;
    for i in (0..len).step_by(LANES) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let load = |p: *const u8| Lanes::<S>::new(element.load::<S>(p, i));
            let store = |p: *mut u8, value: Lanes<S>| {
                element.store_all::<S, 1>(p, i, &[value.vector()]);
            };
            if diff_dst.is_null() {
                store(dst, plain_forward(function, numbers, [load(gate), load(up)]));
                continue;
            }
            let inputs = [load(gate), load(up), load(diff_dst)];
            let Gradients { dst: value, gate, up } = plain_backward(function, numbers, inputs);
            store(diff_gate, gate);
            store(diff_up, up);
            if !dst.is_null() {
                store(dst, value);
            }
        }
    }
}

/// Computes a span. With non-temporal stores, a fence must follow the last span.
///
/// # Safety
/// The elements exist in the type of `E`, which is f32 if [`fits`] says so, no other thread writes them, and the CPU
/// supports the instruction set of `S`.
#[inline(always)]
unsafe fn compute<S: Simd, E: Element>(span: &Span) {
    let numbers = span.numbers;
    // SAFETY: guaranteed by the caller.
    unsafe {
        if const { !S::UNROLLS } {
            plain_span::<S, E>(span);
            return;
        }
        match (numbers.are_neutral(), span.function) {
            // Swish with another alpha shares the loop with limits, which change nothing if they are neutral.
            (true, GatedFunction::Swish) if numbers.alpha == 1.0 => {
                directed::<S, E, _, false>(span, super::functions::Swish { alpha: 1.0 });
            }
            (_, GatedFunction::Swish) => {
                let swish = super::functions::Swish { alpha: numbers.alpha };
                directed::<S, E, _, true>(span, swish);
            }
            (true, _) => {
                by_function!(span.function, numbers, |a| directed::<S, E, _, false>(span, a));
            }
            (false, _) if E::HALF => (),
            (false, _) => {
                by_function!(span.function, numbers, |a| directed::<S, E, _, true>(span, a));
            }
        }
    }
}

entry_points! {
    /// Spans, per level.
    mod entries: compute<E: Element>(span: &Span) -> ();
}

pub(super) type Entry = unsafe fn(&Span);

/// The loops over f32.
pub(super) fn entry(level: Level) -> Entry {
    entries::at::<F32>(level).unwrap_or(entries::portable::entry_portable::<F32>)
}

/// The loops over a type; `None` if its elements must be converted to f32 first.
pub(super) fn direct_entry(
    level: Level,
    data_type: DataType,
    (function, numbers): (GatedFunction, Numbers),
) -> Option<Entry> {
    let limited = !numbers.are_neutral() && function != GatedFunction::Swish;
    match data_type {
        DataType::F32 => Some(entry(level)),
        DataType::Bf16 if !limited => entries::at::<Bf16InTurn>(level),
        DataType::F16 if !limited => entries::at::<F16>(level),
        _ => None,
    }
}
