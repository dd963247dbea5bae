//! Rows brought to where the kernels take them, and back: elements become f32, or stay what they are, and a last
//! dimension that is not dense becomes dense.
//!
//! There is no order to keep, so these are plain loops over numbers, which the compiler turns into the vectors of
//! the level that an entry is compiled for.

use crate::simd::{
    Bf16, Element, F16, F32, LANES, Level, Map, Simd, bf16_bits, codes, entry_points, f16_bits,
    f16_value, map,
};
use crate::tensor::{DataType, RowMap};
use std::marker::PhantomData;

/// Rows of a tensor and the place that they are brought to.
pub(super) struct Carried {
    pub(super) tensor: *mut u8,
    pub(super) data_type: DataType,
    pub(super) rows: RowMap,
    /// Between neighbours in a row of the tensor, in elements.
    pub(super) step: usize,
    pub(super) cols: usize,
    /// Where the first of the rows is, or goes.
    pub(super) stage: *mut u8,
    /// f32, or the tensor's.
    pub(super) stage_type: DataType,
    /// Between rows there, in elements.
    pub(super) stage_step: usize,
    /// Whether rows go back past the caches where they can.
    pub(super) streams: bool,
}

/// Rows and columns of a tile that is turned at once. A column of them is a cache line of f32.
const TILE: usize = 16;

/// What becomes of an element on the way.
trait Code {
    type Raw: Copy;
    type Value: Copy + Default;
    fn decode(raw: Self::Raw) -> Self::Value;
    fn encode(value: Self::Value) -> Self::Raw;
}

/// Nothing.
struct Same<T>(PhantomData<T>);

impl<T: Copy + Default> Code for Same<T> {
    type Raw = T;
    type Value = T;
    #[inline(always)]
    fn decode(raw: T) -> T {
        raw
    }
    #[inline(always)]
    fn encode(value: T) -> T {
        value
    }
}

macro_rules! code {
    ($name:ident, $raw:ty, $decode:expr, $encode:expr) => {
        struct $name;

        impl Code for $name {
            type Raw = $raw;
            type Value = f32;
            #[inline(always)]
            fn decode(raw: $raw) -> f32 {
                $decode(raw)
            }
            #[inline(always)]
            fn encode(value: f32) -> $raw {
                $encode(value)
            }
        }
    };
}
code!(S8, u8, codes::s8_value, codes::s8_code);
code!(U8, u8, codes::u8_value, codes::u8_code);
code!(E4m3, u8, codes::e4m3_value, codes::e4m3_code);
code!(E5m2, u8, codes::e5m2_value, codes::e5m2_code);
code!(FromBf16, u16, bf16_value, bf16_bits);
code!(FromF16, u16, f16_value, f16_bits);

#[inline(always)]
fn bf16_value(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// `$call` with the code between a tensor's type and that of the stage.
macro_rules! by_code {
    ($carried:expr, $loads:ident, $call:ident($($arg:expr),*)) => {
        match ($carried.data_type, $carried.stage_type) {
            (DataType::S8 | DataType::U8, DataType::S8 | DataType::U8) => {
                $call::<Same<u8>, $loads>($($arg),*)
            }
            (DataType::S8, _) => $call::<S8, $loads>($($arg),*),
            (DataType::U8, _) => $call::<U8, $loads>($($arg),*),
            (DataType::F8E4m3, _) => $call::<E4m3, $loads>($($arg),*),
            (DataType::F8E5m2, _) => $call::<E5m2, $loads>($($arg),*),
            (DataType::Bf16, DataType::F32) => $call::<FromBf16, $loads>($($arg),*),
            (DataType::F16, DataType::F32) => $call::<FromF16, $loads>($($arg),*),
            (DataType::Bf16 | DataType::F16, _) => $call::<Same<u16>, $loads>($($arg),*),
            (DataType::F64, _) => $call::<Same<u64>, $loads>($($arg),*),
            (DataType::F32 | DataType::S32, _) => $call::<Same<u32>, $loads>($($arg),*),
        }
    };
}

/// A row of floating-point elements that becomes f32, by the conversion of the instruction set.
struct Widened<E> {
    element: E,
    from: *const u8,
    to: *mut u8,
}

impl<S: Simd, E: Element> Map<S> for Widened<E> {
    #[inline(always)]
    unsafe fn apply(&self, i: usize) {
        // SAFETY: the caller's.
        unsafe { single().store::<S>(self.to, i, self.element.load::<S>(self.from, i)) }
    }
    #[inline(always)]
    unsafe fn apply_n(&self, i: usize, n: usize) {
        debug_assert!(n < LANES);
        // SAFETY: the caller's.
        unsafe { single().store_n::<S>(self.to, i, self.element.load_n::<S>(self.from, i, n), n) }
    }
}

/// A row of f32 that becomes floating-point elements, past the caches if that is asked for.
struct Rounded<E> {
    element: E,
    from: *const u8,
    to: *mut u8,
    streams: bool,
}

/// Vectors that are rounded in one turn of the loop.
const TURN: usize = 4;

impl<E: Element> Rounded<E> {
    /// # Safety
    /// As [`Map::apply`], for `N` vectors.
    #[inline(always)]
    unsafe fn vectors<S: Simd, const N: usize>(&self, i: usize) {
        // SAFETY: the caller's.
        unsafe {
            let mut values = [S::splat(0.0); N];
            for v in 0..N {
                values[v] = single().load::<S>(self.from, i + v * LANES);
            }
            if self.streams {
                self.element.stream_all::<S, N>(self.to, i, &values);
            } else {
                self.element.store_all::<S, N>(self.to, i, &values);
            }
        }
    }
}

impl<S: Simd, E: Element> Map<S> for Rounded<E> {
    const UNROLL: usize = TURN;

    #[inline(always)]
    unsafe fn turn(&self, i: usize) {
        // SAFETY: the caller's.
        unsafe { self.vectors::<S, TURN>(i) }
    }
    #[inline(always)]
    unsafe fn apply(&self, i: usize) {
        // SAFETY: the caller's.
        unsafe { self.vectors::<S, 1>(i) }
    }
    #[inline(always)]
    unsafe fn apply_n(&self, i: usize, n: usize) {
        debug_assert!(n < LANES);
        // SAFETY: the caller's.
        unsafe { self.element.store_n::<S>(self.to, i, single().load_n::<S>(self.from, i, n), n) }
    }
}

#[inline(always)]
fn single() -> F32 {
    <F32 as Element>::of(DataType::F32)
}

/// # Safety
/// As [`carry_rows`], for dense rows of 16-bit elements and a stage in f32.
#[inline(always)]
unsafe fn load_dense<S: Simd, E: Element>(c: &Carried, first: usize, last: usize) {
    let element = E::of(c.data_type);
    for row in first..last {
        let from = c.tensor.wrapping_add(c.rows.offset(row) * element.size());
        let to = c.stage.wrapping_add((row - first) * c.stage_step * 4);
        // SAFETY: the caller's.
        unsafe { map::<S, _>(c.cols, &Widened { element, from, to }) };
    }
}

/// # Safety
/// As [`carry_rows`], for dense rows of floating-point elements and a stage in f32.
#[inline(always)]
unsafe fn store_dense<S: Simd, E: Element>(c: &Carried, first: usize, last: usize) {
    let element = E::of(c.data_type);
    for row in first..last {
        let from = c.stage.wrapping_add((row - first) * c.stage_step * 4);
        let to = c.tensor.wrapping_add(c.rows.offset(row) * element.size());
        let streams = c.streams && element.streams(to);
        // SAFETY: the caller's.
        unsafe { map::<S, _>(c.cols, &Rounded { element, from, to, streams }) };
    }
    if c.streams {
        // SAFETY: the instruction set is there.
        unsafe { S::stream_fence() }
    }
}

/// Brings rows `first` to `last - 1` to the stage, or back from it.
///
/// # Safety
/// They and the stage are there and this thread's, or nobody writes what is read; the instruction set of `S` is
/// there.
#[inline(always)]
unsafe fn carry_rows<S: Simd, const LOADS: bool>(carried: &Carried, first: usize, last: usize) {
    // SAFETY: the caller's.
    unsafe {
        let (c, dense) = (carried, carried.step == 1 && carried.stage_type == DataType::F32);
        match (LOADS, carried.data_type) {
            (true, DataType::Bf16) if dense => load_dense::<S, Bf16>(c, first, last),
            (true, DataType::F16) if dense => load_dense::<S, F16>(c, first, last),
            (false, DataType::F32) if dense => store_dense::<S, F32>(c, first, last),
            (false, DataType::Bf16) if dense => store_dense::<S, Bf16>(c, first, last),
            (false, DataType::F16) if dense => store_dense::<S, F16>(c, first, last),
            _ => by_code!(carried, LOADS, carry_coded(carried, first, last)),
        }
    }
}

/// # Safety
/// As [`carry_rows`].
#[inline(always)]
unsafe fn load_rows<S: Simd>(carried: &Carried, first: usize, last: usize) {
    // SAFETY: the caller's.
    unsafe { carry_rows::<S, true>(carried, first, last) };
}

/// # Safety
/// As [`carry_rows`].
#[inline(always)]
unsafe fn store_rows<S: Simd>(carried: &Carried, first: usize, last: usize) {
    // SAFETY: the caller's.
    unsafe { carry_rows::<S, false>(carried, first, last) };
}

/// Rows that lie side by side, so that they share cache lines: what [`Carried`] has for them.
struct Run<C: Code> {
    /// The first element of the first row.
    tensor: *mut C::Raw,
    step: usize,
    stage: *mut C::Value,
    stage_step: usize,
}

impl<C: Code> Run<C> {
    #[inline(always)]
    fn new(c: &Carried, first: usize, row: usize) -> Self {
        Self {
            tensor: c.tensor.cast::<C::Raw>().wrapping_add(c.rows.offset(row)),
            step: c.step,
            stage: c.stage.cast::<C::Value>().wrapping_add((row - first) * c.stage_step),
            stage_step: c.stage_step,
        }
    }

    #[inline(always)]
    fn raw(&self, row: usize, col: usize) -> *mut C::Raw {
        self.tensor.wrapping_add(col * self.step + row)
    }

    #[inline(always)]
    fn value(&self, row: usize, col: usize) -> *mut C::Value {
        self.stage.wrapping_add(row * self.stage_step + col)
    }

    /// # Safety
    /// As [`carry_rows`]; addresses need no alignment.
    #[inline(always)]
    unsafe fn carry<const LOADS: bool>(&self, row: usize, col: usize) {
        let (raw, value) = (self.raw(row, col), self.value(row, col));
        // SAFETY: the caller's.
        unsafe {
            if LOADS {
                value.write_unaligned(C::decode(raw.read_unaligned()));
            } else {
                raw.write_unaligned(C::encode(value.read_unaligned()));
            }
        }
    }
}

/// How many rows from `row` on lie side by side, up to `last`.
#[inline(always)]
fn run_of(c: &Carried, row: usize, last: usize) -> usize {
    match c.rows.innermost() {
        (1, level) => (level - row % level).min(last - row),
        _ => 1,
    }
}

/// # Safety
/// As [`carry_rows`].
#[inline(always)]
unsafe fn carry_coded<C: Code, const LOADS: bool>(c: &Carried, first: usize, last: usize) {
    let mut row = first;
    while row < last {
        let run = Run::<C>::new(c, first, row);
        // SAFETY: the caller's.
        unsafe {
            if c.step == 1 {
                for i in 0..c.cols {
                    run.carry::<LOADS>(0, i);
                }
                row += 1;
                continue;
            }
            let rows = run_of(c, row, last);
            let mut col = 0;
            while col < c.cols {
                let cols = TILE.min(c.cols - col);
                let mut at = 0;
                while at < rows {
                    let height = TILE.min(rows - at);
                    match (height, cols) {
                        (TILE, TILE) if LOADS => load_tile::<C>(&run, at, col),
                        (TILE, TILE) => store_tile::<C>(&run, at, col),
                        _ => {
                            for j in col..col + cols {
                                for i in at..at + height {
                                    run.carry::<LOADS>(i, j);
                                }
                            }
                        }
                    }
                    at += TILE;
                }
                col += TILE;
            }
            row += rows;
        }
    }
}

/// # Safety
/// As [`carry_rows`].
#[inline(always)]
unsafe fn load_tile<C: Code>(run: &Run<C>, row: usize, col: usize) {
    let mut tile = [[C::Value::default(); TILE]; TILE];
    // SAFETY: the caller's.
    unsafe {
        for j in 0..TILE {
            for i in 0..TILE {
                tile[i][j] = C::decode(run.raw(row + i, col + j).read_unaligned());
            }
        }
        for i in 0..TILE {
            run.value(row + i, col).cast::<[C::Value; TILE]>().write_unaligned(tile[i]);
        }
    }
}

/// # Safety
/// As [`carry_rows`].
#[inline(always)]
unsafe fn store_tile<C: Code>(run: &Run<C>, row: usize, col: usize) {
    let mut tile = [[C::Value::default(); TILE]; TILE];
    // SAFETY: the caller's.
    unsafe {
        for i in 0..TILE {
            tile[i] = run.value(row + i, col).cast::<[C::Value; TILE]>().read_unaligned();
        }
        for j in 0..TILE {
            for i in 0..TILE {
                run.raw(row + i, col + j).write_unaligned(C::encode(tile[i][j]));
            }
        }
    }
}

entry_points! {
    /// To the stage, per level.
    mod load_entries: load_rows<>(carried: &Carried, first: usize, last: usize) -> ();
}

entry_points! {
    /// Back, per level.
    mod store_entries: store_rows<>(carried: &Carried, first: usize, last: usize) -> ();
}

/// Carries rows one way; see [`carry_rows`].
pub(super) type Entry = unsafe fn(&Carried, usize, usize);

/// To the stage and back.
pub(super) fn entries(level: Level) -> (Entry, Entry) {
    (
        load_entries::at(level).unwrap_or(load_entries::portable::entry_portable),
        store_entries::at(level).unwrap_or(store_entries::portable::entry_portable),
    )
}
