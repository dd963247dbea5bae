//! Functions of every element, forward ([`Forward`]) and backward ([`Backward`]).
//!
//! ```text
//! forward   dst = f(src)
//! backward  diff_src = diff_dst * f'(src)
//! ```
//!
//! [`Eltwise`] has the functions, with parameters alpha and beta. The gradients of some can be computed
//! from `dst` instead of `src` ([`BackwardBuilder::from_dst`]), so that forward may work in place.
//!
//! | tensor | dimensions | element type |
//! |---|---|---|
//! | `src`, `dst` of forward | 1 to 12 | f32, bf16, f16, f64, s32, s8, u8, f8_e4m3, f8_e5m2, in any combination |
//! | those of backward | 1 to 12 | f32, bf16, f16, f64, f8_e4m3, f8_e5m2, in any combination |

mod backward;
mod forward;

pub use backward::{Backward, BackwardArgs, BackwardBuilder};
pub use forward::{Forward, ForwardArgs, ForwardBuilder};

pub use crate::post_ops::Eltwise;
