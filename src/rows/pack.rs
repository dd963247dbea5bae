//! Packing of rows from a tensor to a stage, and unpacking: elements are converted to f32 or copied, and a strided last
//! dimension becomes dense.
//!
//! No order of operations matters here, so most of these are plain scalar loops, which the compiler vectorizes for the
//! level of the entry.

use crate::simd::{
    Bf16, Element, F16, F32, LANES, Level, Map, Simd, Widened, Width, entry_points, map,
    read_scalar, unroll, write_scalar,
};
use crate::tensor::{DataType, RowMap, for_type};
use std::marker::PhantomData;

/// The rows of a tensor and their stage.
pub(super) struct Packing {
    pub(super) tensor: *mut u8,
    pub(super) data_type: DataType,
    pub(super) rows: RowMap,
    /// The stride of the tensor's last dimension, in elements.
    pub(super) step: usize,
    pub(super) cols: usize,
    /// The address of the first row on the stage.
    pub(super) stage: *mut u8,
    /// f32, or the tensor's data type.
    pub(super) stage_type: DataType,
    /// The distance between rows on the stage, in elements.
    pub(super) stage_step: usize,
    /// Whether rows are unpacked with non-temporal stores, if their alignment allows. A fence must follow.
    pub(super) streams: bool,
    /// Whether elements alternate with others, which no other thread writes.
    pub(super) paired: bool,
}

impl Packing {
    /// Elements of one row, given by the address of the first, their type and their stride; dense f32 on the stage.
    pub(super) fn of_row(
        (tensor, data_type, step): (*mut u8, DataType, usize),
        cols: usize,
        stage: *mut f32,
    ) -> Self {
        Self {
            tensor,
            data_type,
            rows: RowMap::every(0),
            step,
            cols,
            stage: stage.cast(),
            stage_type: DataType::F32,
            stage_step: cols,
            streams: false,
            paired: false,
        }
    }

    /// Whether elements keep their type on the stage: the stage is not f32, or they are f64.
    #[inline(always)]
    fn copies(&self) -> bool {
        let is_f32 = |data_type| data_type == DataType::F32;
        let wide = self.data_type == DataType::F64;
        wide || is_f32(self.data_type) || !is_f32(self.stage_type)
    }
}

/// Rows and columns of a tile that is transposed at once: 16 f32 are a cache line.
const TILE: usize = 16;

/// Extracts half of an integer with an element's bits. On integers the compiler shifts and narrows vectors; otherwise
/// it would pick halves one by one.
trait HalfOf: Copy {
    type Whole: Copy;
    /// The half with the lower address.
    fn first(whole: Self::Whole) -> Self;
}

macro_rules! halves {
    ($($half:ty = $whole:ty;)*) => {$(
        impl HalfOf for $half {
            type Whole = $whole;
            #[inline(always)]
            fn first(whole: $whole) -> $half {
                let bits = if cfg!(target_endian = "big") { <$half>::BITS } else { 0 };
                (whole >> bits) as $half
            }
        }
    )*};
}

halves! { u8 = u16; u16 = u32; u32 = u64; u64 = u128; }

/// The conversion of an element.
trait Conversion {
    type Raw: HalfOf;
    type Value: Copy + Default;
    fn decode(raw: Self::Raw) -> Self::Value;
    fn encode(value: Self::Value) -> Self::Raw;
}

/// No conversion.
struct Same<T>(PhantomData<T>);

impl<T: HalfOf + Default> Conversion for Same<T> {
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

/// Converts elements of the type at this index of the table to and from f32. `Raw` is the unsigned integer of their
/// size.
struct ToF32<Raw, const TYPE: usize>(PhantomData<Raw>);

impl<Raw: HalfOf + Default, const TYPE: usize> Conversion for ToF32<Raw, TYPE> {
    type Raw = Raw;
    type Value = f32;
    #[inline(always)]
    fn decode(raw: Raw) -> f32 {
        // SAFETY: it is an element of the type.
        unsafe { read_scalar(DataType::ALL[TYPE], (&raw const raw).cast(), 0) }
    }
    #[inline(always)]
    fn encode(value: f32) -> Raw {
        let mut raw = Raw::default();
        // SAFETY: it has room for an element of the type.
        unsafe { write_scalar(DataType::ALL[TYPE], (&raw mut raw).cast(), 0, value) };
        raw
    }
}

/// Evaluates `$call` with the conversion between the types of the tensor and the stage.
macro_rules! by_conversion {
    ($packing:expr, $S:ident, $packs:ident, $call:ident($($arg:expr),*)) => {
        if $packing.copies() {
            match $packing.data_type.size() {
                1 => $call::<$S, Same<u8>, $packs>($($arg),*),
                2 => $call::<$S, Same<u16>, $packs>($($arg),*),
                4 => $call::<$S, Same<u32>, $packs>($($arg),*),
                _ => $call::<$S, Same<u64>, $packs>($($arg),*),
            }
        } else {
            for_type!($packing.data_type, |TYPE, Raw| match TYPE {
                // These are copied instead.
                DataType::F32 | DataType::S64 | DataType::F64 => (),
                _ => $call::<$S, ToF32<Raw, { TYPE as usize }>, $packs>($($arg),*),
            })
        }
    };
}

/// Rounds a row of f32 to a floating-point type with vector instructions.
struct Rounded<E> {
    element: E,
    from: *const u8,
    to: *mut u8,
    streams: bool,
}

/// Vectors per iteration.
const TURN: usize = 4;

impl<E: Element> Rounded<E> {
    /// # Safety
    /// As [`Map::apply`], for `N` vectors.
    #[inline(always)]
    unsafe fn vectors<S: Simd, const N: usize>(&self, i: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let mut values = S::zeros::<N>();
            unroll!(v in N, {
                values[v] = single().load::<S>(self.from, i + v * LANES);
            });
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
        // SAFETY: guaranteed by the caller.
        unsafe { self.vectors::<S, TURN>(i) }
    }
    #[inline(always)]
    unsafe fn apply<W: Width>(&self, i: usize, width: W) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            if W::FULL {
                return self.vectors::<S, 1>(i);
            }
            let values = width.load_as::<S, _>(F32, self.from, i);
            width.store_as::<S, _>(self.element, self.to, i, values);
        }
    }
}

#[inline(always)]
fn single() -> F32 {
    <F32 as Element>::of(DataType::F32)
}

/// # Safety
/// As [`move_rows`], for dense rows of 16-bit elements and an f32 stage.
#[inline(always)]
unsafe fn load_dense<S: Simd, E: Element>(c: &Packing, first: usize, last: usize) {
    let element = E::of(c.data_type);
    for row in first..last {
        let from = c.tensor.wrapping_add(c.rows.offset(row) * element.size());
        let to = c.stage.wrapping_add((row - first) * c.stage_step * 4).cast();
        // SAFETY: guaranteed by the caller.
        unsafe { map::<S, _>(c.cols, &Widened { element, from, to }) };
    }
}

/// # Safety
/// As [`move_rows`], for dense rows of floating-point elements and an f32 stage.
#[inline(always)]
unsafe fn store_dense<S: Simd, E: Element>(c: &Packing, first: usize, last: usize) {
    let element = E::of(c.data_type);
    for row in first..last {
        let from = c.stage.wrapping_add((row - first) * c.stage_step * 4);
        let to = c.tensor.wrapping_add(c.rows.offset(row) * element.size());
        let streams = c.streams && element.streams(to);
        // SAFETY: guaranteed by the caller.
        unsafe { map::<S, _>(c.cols, &Rounded { element, from, to, streams }) };
    }
}

/// Packs rows `first` to `last - 1` to the stage, or unpacks them.
///
/// # Safety
/// They and the stage exist, no other thread writes them, and the CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn move_rows<S: Simd, const PACKS: bool>(packing: &Packing, first: usize, last: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let (c, dense) = (packing, packing.step == 1 && packing.stage_type == DataType::F32);
        if PACKS {
            match packing.data_type {
                DataType::Bf16 if dense => return load_dense::<S, Bf16>(c, first, last),
                DataType::F16 if dense => return load_dense::<S, F16>(c, first, last),
                _ => (),
            }
        } else {
            match packing.data_type {
                DataType::F32 if dense => return store_dense::<S, F32>(c, first, last),
                DataType::Bf16 if dense => return store_dense::<S, Bf16>(c, first, last),
                DataType::F16 if dense => return store_dense::<S, F16>(c, first, last),
                _ => (),
            }
        }
        by_conversion!(packing, S, PACKS, move_converted(packing, first, last));
    }
}

/// # Safety
/// As [`move_rows`].
#[inline(always)]
unsafe fn pack_rows<S: Simd>(packing: &Packing, first: usize, last: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe { move_rows::<S, true>(packing, first, last) };
}

/// # Safety
/// As [`move_rows`].
#[inline(always)]
unsafe fn unpack_rows<S: Simd>(packing: &Packing, first: usize, last: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe { move_rows::<S, false>(packing, first, last) };
}

/// Adjacent rows, whose elements share cache lines.
struct Run<C: Conversion> {
    /// The first element of the first row.
    tensor: *mut C::Raw,
    step: usize,
    stage: *mut C::Value,
    stage_step: usize,
}

impl<C: Conversion> Run<C> {
    #[inline(always)]
    fn new(c: &Packing, first: usize, row: usize) -> Self {
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
    /// As [`move_rows`]. Addresses need no alignment.
    #[inline(always)]
    unsafe fn move_element<const PACKS: bool>(&self, row: usize, col: usize) {
        let (raw, value) = (self.raw(row, col), self.value(row, col));
        // SAFETY: guaranteed by the caller.
        unsafe {
            if PACKS {
                value.write_unaligned(C::decode(raw.read_unaligned()));
            } else {
                raw.write_unaligned(C::encode(value.read_unaligned()));
            }
        }
    }
}

/// How many rows from `row` on are adjacent in memory, up to `last`.
#[inline(always)]
fn run_of(c: &Packing, row: usize, last: usize) -> usize {
    match c.rows.innermost() {
        (1, level) => (level - row % level).min(last - row),
        _ => 1,
    }
}

/// # Safety
/// As [`move_rows`].
#[inline(always)]
unsafe fn move_converted<S: Simd, C: Conversion, const PACKS: bool>(
    c: &Packing,
    first: usize,
    last: usize,
) {
    let mut row = first;
    while row < last {
        let run = Run::<C>::new(c, first, row);
        // SAFETY: guaranteed by the caller.
        unsafe {
            if c.step == 1 {
                for i in 0..c.cols {
                    run.move_element::<PACKS>(0, i);
                }
                row += 1;
                continue;
            }
            if S::UNROLLS && PACKS && c.paired && c.step == 2 {
                load_every_second(&run, c.cols);
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
                        (TILE, TILE) if S::UNROLLS && PACKS => load_tile::<C>(&run, at, col),
                        (TILE, TILE) if S::UNROLLS => store_tile::<C>(&run, at, col),
                        _ => {
                            for j in col..col + cols {
                                for i in at..at + height {
                                    run.move_element::<PACKS>(i, j);
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

/// Moves one row whose elements alternate with others. The stride is a constant here, so that the compiler loads
/// vectors of pairs and narrows them.
///
/// # Safety
/// As [`move_rows`].
#[inline(always)]
unsafe fn load_every_second<C: Conversion>(run: &Run<C>, cols: usize) {
    const TURN: usize = 16;
    let mut col = 0;
    // Stops early, because the element after the last may not exist.
    while col + TURN < cols {
        let (from, to) = (run.tensor.wrapping_add(2 * col), run.value(0, col));
        // SAFETY: guaranteed by the caller.
        unsafe {
            let pairs = from.cast::<[<C::Raw as HalfOf>::Whole; TURN]>().read_unaligned();
            let mut values = [C::Value::default(); TURN];
            for i in 0..TURN {
                values[i] = C::decode(C::Raw::first(pairs[i]));
            }
            to.cast::<[C::Value; TURN]>().write_unaligned(values);
        }
        col += TURN;
    }
    while col < cols {
        // SAFETY: guaranteed by the caller.
        unsafe { run.move_element::<true>(0, col) };
        col += 1;
    }
}

/// # Safety
/// As [`move_rows`].
#[inline(always)]
unsafe fn load_tile<C: Conversion>(run: &Run<C>, row: usize, col: usize) {
    let mut tile = [[C::Value::default(); TILE]; TILE];
    // SAFETY: guaranteed by the caller.
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
/// As [`move_rows`].
#[inline(always)]
unsafe fn store_tile<C: Conversion>(run: &Run<C>, row: usize, col: usize) {
    let mut tile = [[C::Value::default(); TILE]; TILE];
    // SAFETY: guaranteed by the caller.
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
    /// Packing, per level.
    mod pack_entries: pack_rows<>(packing: &Packing, first: usize, last: usize) -> ();
}

entry_points! {
    /// Unpacking, per level.
    mod unpack_entries: unpack_rows<>(packing: &Packing, first: usize, last: usize) -> ();
}

/// Packs or unpacks rows; see [`move_rows`].
pub(super) type Entry = unsafe fn(&Packing, usize, usize);

/// The functions that pack and unpack.
pub(super) fn entries(level: Level) -> (Entry, Entry) {
    (
        pack_entries::at(level).unwrap_or(pack_entries::portable::entry_portable),
        unpack_entries::at(level).unwrap_or(unpack_entries::portable::entry_portable),
    )
}
