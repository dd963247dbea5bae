//! The statistics of rows: [`Statistics`].

use crate::error::{Error, Result};
use crate::layer_normalization::Flags;

/// Row statistics of a training forward pass, for the backward pass.
///
/// The forward functions for training return them. Create one from statistics of another library or a checkpoint with
/// [`of_layer_norm`](Self::of_layer_norm) or [`of_rms_norm`](Self::of_rms_norm).
///
/// They are f32. If a tensor of the backward pass is f64, it recomputes them from `src`.
#[derive(Clone, Debug, PartialEq)]
pub struct Statistics {
    pub(super) cols: usize,
    pub(super) epsilon: f32,
    /// `NONE` or `RMS_NORM`.
    pub(super) norm: Flags,
    pub(super) mean: Vec<f32>,
    pub(super) variance: Vec<f32>,
}

impl Statistics {
    /// Statistics of layer normalization of rows of `cols` elements.
    ///
    /// `mean` and `variance` have one element for each row, in the order of the rows; a `Vec` is
    /// taken, a slice is copied. `variance` is the population variance without `epsilon`, the value
    /// that the forward pass added under the root. A library that keeps `rstd = 1/sqrt(variance +
    /// epsilon)` instead, as PyTorch does, has `variance = 1/(rstd*rstd) - epsilon`.
    ///
    /// ```
    /// use norm_rs::{Gradients, Statistics, layer_norm_backward};
    ///
    /// let (src, diff_dst, mut diff_src) = ([1.0f32, 3.0], [1.0f32, 0.0], [9.0f32; 2]);
    /// let statistics = Statistics::of_layer_norm(2, 0.0, vec![2.0], vec![1.0])?;
    /// let scale = None::<&[f32]>;
    /// layer_norm_backward(&src, &statistics, scale, &diff_dst, &mut diff_src, Gradients::none())?;
    /// assert_eq!(diff_src, [0.0, 0.0]);
    /// # Ok::<(), norm_rs::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments): `cols` is 0, or `mean`
    /// and `variance` have different lengths.
    pub fn of_layer_norm(
        cols: usize,
        epsilon: f32,
        mean: impl Into<Vec<f32>>,
        variance: impl Into<Vec<f32>>,
    ) -> Result<Self> {
        let (mean, variance) = (mean.into(), variance.into());
        if mean.len() != variance.len() {
            return Err(Error::invalid(
                "mean",
                format_args!(
                    "has {} elements and variance {}; pass one of each for a row",
                    mean.len(),
                    variance.len()
                ),
            ));
        }
        Self::new(cols, epsilon, Flags::NONE, mean, variance)
    }

    /// Statistics of RMS normalization of rows of `cols` elements.
    ///
    /// `mean_square` has one element for each row: the mean of its squares, without `epsilon`. A
    /// library that keeps `rstd = 1/sqrt(mean_square + epsilon)` has `mean_square = 1/(rstd*rstd) -
    /// epsilon`.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments) if `cols` is 0.
    pub fn of_rms_norm(
        cols: usize,
        epsilon: f32,
        mean_square: impl Into<Vec<f32>>,
    ) -> Result<Self> {
        Self::new(cols, epsilon, Flags::RMS_NORM, Vec::new(), mean_square.into())
    }

    fn new(
        cols: usize,
        epsilon: f32,
        norm: Flags,
        mean: Vec<f32>,
        variance: Vec<f32>,
    ) -> Result<Self> {
        if cols == 0 {
            return Err(Error::invalid("cols", "is 0; pass the number of elements of a row"));
        }
        Ok(Self { cols, epsilon, norm, mean, variance })
    }

    /// The mean of each row; empty for RMS normalization.
    pub fn mean(&self) -> &[f32] {
        &self.mean
    }

    /// The population variance of each row, without epsilon. For RMS normalization, the mean of its
    /// squares.
    pub fn variance(&self) -> &[f32] {
        &self.variance
    }

    /// Returns the mean, which is empty for RMS normalization, and the variance.
    pub fn into_mean_and_variance(self) -> (Vec<f32>, Vec<f32>) {
        (self.mean, self.variance)
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.variance.len()
    }

    /// The elements per row.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// The epsilon of the forward pass.
    pub fn epsilon(&self) -> f32 {
        self.epsilon
    }
}
