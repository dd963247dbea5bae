//! The drivers: one folder and one row of [`all`] each.

pub mod binary;
pub mod eltwise;
pub mod gated;
pub mod gnorm;
pub mod lnorm;
pub mod reorder;
pub mod rope;
pub mod sdpa;
pub mod softmax;

use crate::driver::Driver;

/// Every driver with default options. The first one is the default driver.
pub fn all() -> Vec<Box<dyn Driver>> {
    vec![
        lnorm::ROW.driver(),
        gated::ROW.driver(),
        gnorm::ROW.driver(),
        reorder::ROW.driver(),
        softmax::ROW.driver(),
        eltwise::ROW.driver(),
        binary::ROW.driver(),
        rope::ROW.driver(),
        sdpa::ROW.driver(),
    ]
}
