//! The drivers: one folder and one row of [`all`] each.

pub mod gated;
pub mod gnorm;
pub mod lnorm;
pub mod reorder;
pub mod softmax;

use crate::driver::Driver;

/// Every driver, at its default options; the first is the default driver.
pub fn all() -> Vec<Box<dyn Driver>> {
    vec![
        lnorm::ROW.driver(),
        gated::ROW.driver(),
        gnorm::ROW.driver(),
        reorder::ROW.driver(),
        softmax::ROW.driver(),
    ]
}
