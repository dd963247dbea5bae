//! What the oracles of layer and group normalization share: the flags, and the results with the sums of their terms and
//! the effect of errors of computed inputs.

/// The kind of normalization, as the flags of the C interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags {
    /// Mean and variance are inputs, and constants for the gradient.
    pub global_stats: bool,
    /// A factor per column.
    pub scale: bool,
    /// A summand per column.
    pub shift: bool,
    /// RMS normalization: no mean, and the variance is the mean of the squares.
    pub rms_norm: bool,
    /// The scale is `1 + scale`; the caller of the oracle adds 1.
    pub plus_one: bool,
    /// The normalized value is rounded before scale and shift; a [step](super::steps).
    pub round_first: bool,
    /// The result is multiplied by a gate; a [step](super::steps).
    pub gate_output: bool,
    /// The input of the normalization is multiplied by a gate; a [step](super::steps).
    pub gate_input: bool,
}

impl Flags {
    /// Whether a gate is used.
    pub fn gate(self) -> bool {
        self.gate_output || self.gate_input
    }
}

/// The results of a forward problem.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ForwardOutput {
    /// `rows * cols` values.
    pub dst: Vec<f64>,
    /// `rows` means, the given ones with global statistics; empty with RMS normalization.
    pub mean: Vec<f64>,
    /// `rows` variances, the given ones with global statistics.
    pub variance: Vec<f64>,
    /// `|scale*xhat| + |shift|`, for each element of `dst`.
    pub dst_terms: Vec<f64>,
    /// The mean of `|src|`, for each row; empty where `mean` is empty or given.
    pub mean_terms: Vec<f64>,
    /// How far the errors of src move each element of `dst`; empty without them, as are the next two.
    pub dst_moved: Vec<f64>,
    /// The same for `mean`.
    pub mean_moved: Vec<f64>,
    /// The same for `variance`.
    pub variance_moved: Vec<f64>,
}

/// The results of a backward problem.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BackwardOutput {
    /// `rows * cols` values.
    pub diff_src: Vec<f64>,
    /// `cols` sums over the rows; empty without `flags.scale`.
    pub diff_scale: Vec<f64>,
    /// `cols` sums over the rows; empty without `flags.shift`.
    pub diff_shift: Vec<f64>,
    /// `r*(|d| + mean|d| + |xhat|*mean|d*xhat|)`, without the terms that the flags omit.
    pub diff_src_terms: Vec<f64>,
    /// `sum |diff_dst*xhat|`; empty without `flags.scale`.
    pub diff_scale_terms: Vec<f64>,
    /// `sum |diff_dst|`; empty without `flags.shift`.
    pub diff_shift_terms: Vec<f64>,
    /// How far the errors of src and diff_dst move each element of `diff_src`; empty without them.
    pub diff_src_moved: Vec<f64>,
    /// The same for `diff_scale`.
    pub diff_scale_moved: Vec<f64>,
    /// The same for `diff_shift`.
    pub diff_shift_moved: Vec<f64>,
}

/// `1/sqrt(variance + epsilon)`, or 0 if that sum is 0.
pub(super) fn reciprocal_root(variance: f64, epsilon: f64) -> f64 {
    let square = variance + epsilon;
    if square == 0.0 { 0.0 } else { 1.0 / square.sqrt() }
}
