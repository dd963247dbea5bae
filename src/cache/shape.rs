//! The parameters of a cache, checked, and the sizes derived from them.

use crate::error::{Error, Result};
use crate::heap::LINE;
use crate::primitive::enumerators;
use crate::tensor::{DataType, MemoryDesc, Support};
use norm_sys as sys;

/// The maximum elements in a head, as in attention.
const MOST_ELEMENTS: i64 = 1 << 16;

enumerators! {
    /// How sequences get pages.
    CacheKind: norm_kv_cache_kind_t {
        Contiguous = norm_kv_contiguous, "contiguous";
        Paged = norm_kv_paged, "paged";
        Ring = norm_kv_ring, "ring";
    }
}

/// The parameters of the constructor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parameters {
    pub(crate) kind: CacheKind,
    pub(crate) data_type: DataType,
    pub(crate) layers: i64,
    pub(crate) kv_heads: i64,
    pub(crate) key_size: i64,
    pub(crate) value_size: i64,
    pub(crate) sequences: i64,
    pub(crate) tokens: i64,
    pub(crate) step_tokens: i64,
    pub(crate) page_size: i64,
    pub(crate) pages: i64,
    pub(crate) window: i64,
    pub(crate) first_tokens: i64,
}

/// The sizes of a cache.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) data_type: DataType,
    pub(crate) layers: usize,
    pub(crate) heads: usize,
    pub(crate) key_size: usize,
    pub(crate) value_size: usize,
    /// The most sequences.
    pub(crate) sequences: usize,
    /// The maximum tokens per sequence.
    pub(crate) tokens: usize,
    /// The maximum rows in a step.
    pub(crate) step_tokens: usize,
    /// Tokens in a page.
    pub(crate) page: usize,
    /// Pages in the pool.
    pub(crate) pages: usize,
    /// Pages per sequence, which are the columns of the table.
    pub(crate) columns: usize,
    /// In a ring, the number of keys that a token sees.
    pub(crate) window: Option<usize>,
    /// The first columns of a sequence, whose pages a ring keeps.
    pub(crate) kept: usize,
}

fn refused(text: impl std::fmt::Display) -> Error {
    Error::invalid(text)
}

fn from_1(name: &str, value: i64) -> Result<usize> {
    match usize::try_from(value) {
        Ok(value) if value >= 1 => Ok(value),
        _ => Err(refused(format_args!("{name}: {value} is below 1"))),
    }
}

fn head_size(name: &str, value: i64) -> Result<usize> {
    if value > MOST_ELEMENTS {
        let text = format_args!("{name}: heads of {value} elements, more than {MOST_ELEMENTS}");
        return Err(Error::unimplemented(text));
    }
    from_1(name, value)
}

fn checked_type(data_type: DataType) -> Result<DataType> {
    match data_type {
        DataType::S8 | DataType::F8E4m3 => Ok(data_type),
        _ if data_type.support() == Support::Full => Ok(data_type),
        _ => Err(refused(format_args!(
            "data_type: {} is none of f32, bf16, f16, s8 and f8_e4m3",
            data_type.name()
        ))),
    }
}

impl Shape {
    pub(crate) fn new(p: &Parameters) -> Result<Self> {
        let mut shape = Self {
            data_type: checked_type(p.data_type)?,
            layers: from_1("layers", p.layers)?,
            heads: from_1("kv_heads", p.kv_heads)?,
            key_size: head_size("key_size", p.key_size)?,
            value_size: head_size("value_size", p.value_size)?,
            sequences: from_1("sequences", p.sequences)?,
            tokens: from_1("tokens", p.tokens)?,
            step_tokens: from_1("step_tokens", p.step_tokens)?,
            page: 0,
            pages: 0,
            columns: 0,
            window: None,
            kept: 0,
        };
        shape.page = checked_page(p)?;
        shape.columns = shape.tokens.div_ceil(shape.page);
        let most = i32::MAX as usize;
        if shape.columns.saturating_mul(shape.page) > most {
            return Err(refused(format_args!(
                "tokens: {} in pages of {} are more than 2^31 - 1",
                p.tokens, shape.page
            )));
        }
        shape.set_window(p)?;
        shape.pages = shape.checked_pages(p)?;
        for (name, value) in [("sequences", shape.sequences), ("pages", shape.pages)] {
            if value > most {
                return Err(refused(format_args!("{name}: {value} are more than 2^31 - 1")));
            }
        }
        shape.check_bytes()?;
        Ok(shape)
    }

    fn set_window(&mut self, p: &Parameters) -> Result<()> {
        if p.kind != CacheKind::Ring {
            for (name, value) in [("window", p.window), ("first_tokens", p.first_tokens)] {
                if value != 0 {
                    return Err(refused(format_args!("{name}: {value}, but kind is not kv_ring")));
                }
            }
            return Ok(());
        }
        let window = from_1("window", p.window)?;
        let first = usize::try_from(p.first_tokens)
            .map_err(|_| refused(format_args!("first_tokens: {} is negative", p.first_tokens)))?;
        self.window = Some(window);
        self.kept = first.div_ceil(self.page).min(self.columns);
        Ok(())
    }

    /// The maximum pages per sequence.
    fn most_of_sequence(&self) -> usize {
        let Some(window) = self.window else { return self.columns };
        // The first token of a step sees `window - 1` tokens before it. The range of these and of the step's tokens may
        // begin and end inside a page.
        let step = self.step_tokens.min(self.tokens);
        let seen = (window - 1).saturating_add(step).div_ceil(self.page);
        seen.saturating_add(1 + self.kept).min(self.columns)
    }

    fn checked_pages(&self, p: &Parameters) -> Result<usize> {
        let all = self.sequences.saturating_mul(self.most_of_sequence());
        match p.pages {
            0 => Ok(all),
            pages if p.kind == CacheKind::Contiguous => Err(refused(format_args!(
                "pages: {pages}, but a contiguous cache has one for each sequence; pass 0"
            ))),
            pages => from_1("pages", pages),
        }
    }

    /// Whether all sizes fit; those of descriptors are signed.
    fn check_bytes(&self) -> Result<()> {
        let layers = self.area_bytes().and_then(|areas| {
            let sum = areas.iter().try_fold(0usize, |sum, bytes| sum.checked_add(*bytes));
            sum?.checked_mul(self.layers).filter(|bytes| isize::try_from(*bytes).is_ok())
        });
        let tables = self.sequences.checked_mul(self.columns).and_then(|n| n.checked_mul(8));
        let slots = self.step_tokens.checked_mul(12);
        let all = [layers, tables, slots].iter().try_fold(0usize, |sum, n| sum.checked_add((*n)?));
        match all.filter(|bytes| isize::try_from(*bytes).is_ok()) {
            Some(_) => Ok(()),
            None => Err(refused(format_args!(
                "pages: {} of {} tokens in {} layers exceed the address space",
                self.pages, self.page, self.layers
            ))),
        }
    }

    /// Whether keys and values have scales.
    pub(crate) fn is_quantized(&self) -> bool {
        self.data_type.support() != Support::Full
    }

    /// Bytes of a token of a head: of its key, its value and their scales.
    pub(super) fn rows(&self) -> [usize; 4] {
        let size = self.data_type.size();
        let scale = if self.is_quantized() { DataType::F32.size() } else { 0 };
        [self.key_size * size, self.value_size * size, scale, scale]
    }

    /// The same for all pages of a layer, each starting at an aligned address.
    pub(super) fn area_bytes(&self) -> Option<[usize; 4]> {
        let tokens = self.pages.checked_mul(self.page)?.checked_mul(self.heads)?;
        let mut areas = self.rows();
        for area in &mut areas {
            *area = tokens.checked_mul(*area)?.checked_next_multiple_of(LINE)?;
        }
        Some(areas)
    }

    /// Keys as attention reads them.
    pub(crate) fn key_desc(&self) -> Result<MemoryDesc> {
        let [n, g, d, p] = [self.pages, self.heads, self.key_size, self.page].map(|n| n as i64);
        MemoryDesc::with_strides(&[n, g, d, p], self.data_type, &[g * p * d, p * d, 1, d])
    }

    pub(crate) fn value_desc(&self) -> Result<MemoryDesc> {
        let dims = [self.pages, self.heads, self.page, self.value_size].map(|n| n as i64);
        MemoryDesc::dense(&dims, self.data_type)
    }

    /// The scales of keys, aligned with the keys.
    pub(crate) fn key_scale_desc(&self) -> Result<MemoryDesc> {
        let [n, g, p] = [self.pages, self.heads, self.page].map(|n| n as i64);
        MemoryDesc::dense(&[n, g, 1, p], DataType::F32)
    }

    pub(crate) fn value_scale_desc(&self) -> Result<MemoryDesc> {
        let [n, g, p] = [self.pages, self.heads, self.page].map(|n| n as i64);
        MemoryDesc::dense(&[n, g, p, 1], DataType::F32)
    }

    /// Keys as rope writes them: pages and slots of a page come before heads.
    pub(crate) fn rope_dst_desc(&self) -> Result<MemoryDesc> {
        let [n, p, g, d] = [self.pages, self.page, self.heads, self.key_size].map(|n| n as i64);
        MemoryDesc::with_strides(&[n, p, g, d], self.data_type, &[g * p * d, d, p * d, 1])
    }

    /// The page table of `count` sequences.
    pub(crate) fn table_desc(&self, count: usize) -> Result<MemoryDesc> {
        MemoryDesc::dense(&[count as i64, self.columns as i64], DataType::S32)
    }

    pub(crate) fn lengths_desc(&self) -> Result<MemoryDesc> {
        MemoryDesc::dense(&[self.sequences as i64], DataType::S32)
    }

    pub(crate) fn slots_desc(&self) -> Result<MemoryDesc> {
        MemoryDesc::dense(&[self.step_tokens as i64], DataType::S64)
    }

    pub(crate) fn positions_desc(&self) -> Result<MemoryDesc> {
        MemoryDesc::dense(&[self.step_tokens as i64, 1], DataType::S32)
    }

    /// The number of columns for `length` tokens.
    pub(super) fn columns_of(&self, length: usize) -> usize {
        length.div_ceil(self.page)
    }

    /// The first token that the token with index `length` sees.
    pub(super) fn first_seen(&self, length: usize) -> usize {
        self.window.map_or(0, |window| (length + 1).saturating_sub(window))
    }
}

/// Tokens of a page.
fn checked_page(p: &Parameters) -> Result<usize> {
    if p.kind != CacheKind::Contiguous {
        return from_1("page_size", p.page_size);
    }
    match p.page_size {
        0 => from_1("tokens", p.tokens),
        size if size == p.tokens => from_1("page_size", size),
        size => Err(refused(format_args!(
            "page_size: {size}, but a page of a contiguous cache has all {} tokens of a sequence; pass 0",
            p.tokens
        ))),
    }
}
