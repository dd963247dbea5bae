//! The oracle of layer and RMS normalization: its gradients, its values, and whether the harness's
//! data and tolerances expose the known mistakes.

mod faults;
mod gradient;
mod mistakes;
mod values;

use benchdnn::oracle::lnorm::Flags;

/// Every combination of the flags.
fn all_flags() -> impl Iterator<Item = Flags> {
    (0..16).map(|bits| Flags {
        global_stats: bits & 1 != 0,
        scale: bits & 2 != 0,
        shift: bits & 4 != 0,
        rms_norm: bits & 8 != 0,
        ..Flags::default()
    })
}
