//! Tensors in memory: layout tags, layouts, and guarded buffers.

mod buffer;
mod layout;
mod tag;

pub use buffer::{Buffer, Damage};
pub use layout::Layout;
pub use tag::Tag;
