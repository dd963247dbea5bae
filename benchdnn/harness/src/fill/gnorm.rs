//! Data of group normalization: that of a layer normalization whose rows are the groups, with a scale and a shift for
//! each channel.

use super::Fill;
use super::lnorm::{LnormData, LnormShape, lnorm, power_near};
use crate::oracle::gnorm::Sizes;
use crate::oracle::lnorm::Flags;
use crate::steps::StepShape;

/// Makes the data. `groups` describes the groups as rows; its flags are the problem's.
pub fn gnorm(sizes: &Sizes, groups: &LnormShape, fill: Fill, seed: u64) -> LnormData {
    let plain = Flags { scale: false, shift: false, ..groups.flags };
    let steps = StepShape { shared_row: false, ..groups.steps };
    let mut data = lnorm(&LnormShape { flags: plain, steps, ..*groups }, fill, seed);
    let channels = LnormShape { rows: 0, cols: sizes.channels, ..*groups };
    let LnormData { scale, shift, .. } = lnorm(&channels, fill, seed);
    if fill == Fill::Exact && !scale.is_empty() && sizes.positions > 0 {
        // Makes scale*diff_dst equal to the gradient of a row without a scale. This is exact, because scales are powers
        // of two.
        for (i, diff_dst) in data.diff_dst.iter_mut().enumerate() {
            let scale = scale[i / sizes.positions % sizes.channels];
            *diff_dst /= power_near(groups.factor(scale));
        }
    }
    let sample = sizes.channels * sizes.positions;
    if groups.steps.shared_row && sample > 0 {
        // Every sample reads the first one.
        let count = sample.min(data.residual.len());
        let (first, others) = data.residual.split_at_mut(count);
        others.chunks_mut(sample).for_each(|sample| sample.copy_from_slice(first));
    }
    LnormData { scale, shift, ..data }
}
