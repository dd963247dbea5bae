//! Backward through the normalization: its additional tensors and the expected results.

use super::parameters::RopeProblem;
use crate::check::Kind;
use crate::data_type::DataType;
use crate::direction::Direction;
use crate::execution::Role;
use crate::oracle::rope::{Norm, rotated, through};
use crate::problem::{Data, Expected, Part, Spec};
use norm_sys::{
    NORM_ARG_DIFF_DST, NORM_ARG_DIFF_SCALE, NORM_ARG_DIFF_SRC, NORM_ARG_SCALE, NORM_ARG_SRC,
};

impl RopeProblem {
    /// Whether backward computes the gradient of the scale.
    pub(super) fn writes_diff_scale(&self) -> bool {
        self.through_norm() && self.flags.scale() && self.direction == Direction::Backward
    }

    /// The tensors that a mere rotation does not have. The scale is already listed.
    pub(super) fn gradient_tensors(&self) -> Vec<Spec> {
        let mut all = Vec::new();
        if self.through_norm() {
            let src = Spec::new(NORM_ARG_SRC, "src", Role::Input, self.dims.clone(), self.src_dt);
            all.push(Spec { part: Part::Main, sliced: true, ..src });
        }
        if self.writes_diff_scale() {
            let (id, dims) = (NORM_ARG_DIFF_SCALE, vec![self.cols()]);
            all.push(Spec::new(id, "diff_scale", Role::Output, dims, DataType::F32));
        }
        all
    }

    /// The gradients of src and of the scale.
    pub(super) fn through_expected(&self, data: &Data) -> Vec<Expected> {
        let (cols, src) = (self.cols(), data.get(NORM_ARG_SRC));
        let scale = self.flags.scale().then(|| data.get(NORM_ARG_SCALE));
        let (epsilon, plus_one) = (f64::from(self.epsilon), self.flags.plus_one());
        let norm = Norm { epsilon, scale, plus_one };
        let (mut values, mut bounds) = (Vec::new(), Vec::new());
        let (mut sums, mut sum_bounds) = (vec![0.0; cols], vec![0.0; cols]);
        for (row, head) in src.chunks_exact(cols.max(1)).enumerate() {
            let gradient = &data.get(NORM_ARG_DIFF_DST)[row * cols..(row + 1) * cols];
            let (d, errors) = rotated(gradient, &[], self.pairing, &self.angles_of(row, data));
            let one = through(head, (&d, &errors), &norm);
            values.extend(one.diff_src);
            bounds.extend(one.diff_src_bounds);
            for c in 0..cols {
                sums[c] += one.diff_scale[c];
                sum_bounds[c] += one.diff_scale_bounds[c];
            }
        }
        let mut all = vec![Expected::new(NORM_ARG_DIFF_SRC, Kind::Chain, values, bounds)];
        if self.writes_diff_scale() {
            all.push(Expected::new(NORM_ARG_DIFF_SCALE, Kind::Chain, sums, sum_bounds));
        }
        all
    }
}
