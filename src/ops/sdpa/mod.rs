//! Scaled dot-product attention, `softmax(mask(scale * Q K^T)) V`, in tiles.
//!
//! Keys are processed in blocks of [`BLOCK`] by their index in the sequence, wherever they are in memory. A block has
//! its own maximum, sum and product with values; blocks are joined from left to right. So a row's bits depend only on
//! what it sees, not on how rows are tiled. Backward recomputes the weights from the logarithms that forward stores.
//!
//! `order` defines the order of dot products, `score` that of a score and its weight; both are part of the numerics
//! contract. `tiles` computes the same products with the processor's bf16 tile instructions.

mod adaptive;
mod ahead;
mod arguments;
mod backward;
mod backward_room;
mod blocks;
mod diff_mask;
mod diff_on_tiles;
#[cfg(all(target_arch = "x86_64", feature = "avx512"))]
mod diff_tile_kernel;
#[cfg(not(all(target_arch = "x86_64", feature = "avx512")))]
mod diff_tile_kernel {
    pub(super) fn entry(_: crate::simd::Level) -> Option<super::diff_tiles::Entry> {
        None
    }
}
mod diff_tiles;
mod few_rows;
mod forward;
mod gradient;
mod inputs;
mod kernel;
mod keys;
mod mask;
mod mask_pass;
mod on_tiles;
mod op;
mod order;
mod panels;
mod parameters;
mod plain;
mod plain_backward;
mod problem;
mod reference;
mod rows;
mod scales;
mod score;
mod sequences;
mod split;
#[cfg(all(target_arch = "x86_64", feature = "avx512"))]
mod tile_kernel;
#[cfg(not(all(target_arch = "x86_64", feature = "avx512")))]
mod tile_kernel {
    pub(super) fn entries(_: crate::simd::Level) -> Option<super::tiles::Entries> {
        None
    }
}
mod tile_rows;
mod tiles;
mod vector;
mod visible;

pub(crate) use adaptive::{WindowState, WindowStrategy, adaptive_window};
pub(crate) use parameters::{Gradients, Parameters};
pub(crate) use problem::Sdpa;
pub(crate) use visible::{MaskType, WindowKind};

/// Keys of a block.
const BLOCK: usize = 256;
