//! Tensors in memory: what a layout tag means, where each element lies, and guarded buffers.

mod buffer;
mod layout;
mod tag;

pub use buffer::{Buffer, Damage};
pub use layout::Layout;
pub use tag::Tag;
