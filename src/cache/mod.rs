//! Keys and values of several sequences, in pages.
//!
//! A page has a number, which stands for its place in every layer. [`Book`] knows which pages a
//! sequence has, who shares them and which are free, and holds no data. [`Cache`] owns the data, the
//! scales of quantized types among them, and what attention and rope are given: the kinds of caches
//! differ in the book alone. All memory is allocated at creation. Attention and rope know nothing of a cache; it fills their arguments.

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
