//! The keys and values of several sequences, in pages.
//!
//! A page has a number, which is its index in every layer. [`Book`] records which pages a sequence has, who shares them
//! and which are free; it holds no data. [`Cache`] owns the data, including the scales of quantized types, and the
//! arguments of attention and rope. The kinds of caches differ only in the book. All memory is allocated at creation.
//! Attention and rope know nothing about caches; the cache fills their arguments.

mod areas;
mod book;
mod buffer;
mod pool;
mod shape;
mod store;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use shape::{CacheKind, Parameters, Shape};
pub(crate) use store::Cache;
pub(crate) use write::Rows;
