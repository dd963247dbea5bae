//! Data of group normalization: that of a layer normalization whose rows are the groups, with a
//! scale and a shift for each channel.

use super::Fill;
use super::lnorm::{LnormData, LnormShape, lnorm};
use crate::oracle::gnorm::Sizes;
use crate::oracle::lnorm::Flags;

/// Makes the data. `groups` describes the groups as rows; its flags are the problem's.
pub fn gnorm(sizes: &Sizes, groups: &LnormShape, fill: Fill, seed: u64) -> LnormData {
    let plain = Flags { scale: false, shift: false, ..groups.flags };
    let mut data = lnorm(&LnormShape { flags: plain, ..*groups }, fill, seed);
    let channels = LnormShape { rows: 0, cols: sizes.channels, ..*groups };
    let LnormData { scale, shift, .. } = lnorm(&channels, fill, seed);
    if fill == Fill::Exact && !scale.is_empty() && sizes.positions > 0 {
        // So that scale*diff_dst is what a row without a scale has. Exact: scales are powers of two.
        for (i, diff_dst) in data.diff_dst.iter_mut().enumerate() {
            *diff_dst /= scale[i / sizes.positions % sizes.channels];
        }
    }
    LnormData { scale, shift, ..data }
}
