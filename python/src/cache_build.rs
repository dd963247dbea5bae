//! How a cache is created.

use norm_rs::kv_cache::KvCache;
use norm_rs::sdpa::Window;
use norm_rs::{DataType, Engine, Result};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::cache_limits::{Limits, check_window};
use crate::elementwise::named;

/// The default page size in tokens.
const PAGE: usize = 16;

/// How the tokens of a sequence are stored.
#[derive(Clone, Copy)]
pub(crate) enum Storage {
    Contiguous,
    /// In pages of so many tokens.
    Paged(usize),
    Ring(usize),
}

impl Storage {
    /// The storage of that name.
    pub(crate) fn new(name: &str, page_size: Option<usize>, has_window: bool) -> PyResult<Self> {
        let page = page_size.unwrap_or(PAGE);
        let storage = match named("kind", name, &[("contiguous", 0), ("paged", 1), ("ring", 2)])? {
            0 => Self::Contiguous,
            1 => Self::Paged(page),
            _ => Self::Ring(page),
        };
        if matches!(storage, Self::Contiguous) && page_size.is_some() {
            return Err(PyValueError::new_err(
                "page_size is given, but a contiguous cache has a page for each sequence: leave it out",
            ));
        }
        check_window(matches!(storage, Self::Ring(_)), has_window)?;
        Ok(storage)
    }
}

/// What a cache is created from.
pub(crate) struct Wanted {
    pub(crate) storage: Storage,
    pub(crate) limits: Limits,
    pub(crate) data_type: DataType,
    pub(crate) heads: usize,
    /// Elements in a head of keys and of values.
    pub(crate) sizes: (usize, usize),
    pub(crate) step_tokens: Option<usize>,
    pub(crate) pages: Option<usize>,
    /// The window of a ring, and how many first tokens it keeps.
    pub(crate) window: (Window, usize),
}

impl Wanted {
    pub(crate) fn build(&self) -> Result<KvCache> {
        let engine = Engine::cpu()?;
        let (width, first_keys) = self.window;
        let builder = match self.storage {
            Storage::Contiguous => KvCache::contiguous(&engine, self.data_type),
            Storage::Paged(page) => KvCache::paged(&engine, self.data_type, page),
            Storage::Ring(page) => KvCache::ring(&engine, self.data_type, page, width),
        };
        let Limits { tokens, layers, sequences } = self.limits;
        let builder = builder.layers(layers).heads(self.heads).key_size(self.sizes.0);
        let builder = builder.tokens(tokens).value_size(self.sizes.1).sequences(sequences);
        let builder = builder.pages(self.pages.unwrap_or(0)).first_tokens(first_keys);
        match self.step_tokens {
            Some(step_tokens) => builder.step_tokens(step_tokens).build(),
            None => builder.build(),
        }
    }
}
