//! The mistakes that a library can be made to make.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// None, so that everything passes.
    None,
    /// oneDNN's gradient of RMS normalization keeps the term of the mean.
    MeanTermInRmsGradient,
    /// The gradient uses src instead of src*r in its second term.
    GradientWithoutRoot,
    /// Epsilon is added outside the root.
    EpsilonOutsideTheRoot,
    /// The variance is divided by C - 1.
    SampleVariance,
    /// Sums omit the last element of a row, like a kernel that masks its tail wrongly.
    TailLaneLostInSums,
    /// The last element of a row is not written.
    TailLaneNotWritten,
    /// The element after a row's end is written.
    TailLaneTooMany,
    /// An input is overwritten.
    InputWritten,
    /// The mean is written although RMS normalization has none.
    MeanWritten,
    /// An unused gradient is written.
    UnaskedGradient,
    /// The scale of src is not applied.
    SrcScaleLost,
    /// The result is multiplied by the scale of dst.
    DstScaleMultiplied,
    /// The post-ops come before the scale of src.
    SrcScaleLast,
    /// The post-ops come in the opposite order.
    PostOpsReversed,
    /// A per-column operand is read as per-row.
    OperandAlongRows,
    /// The condition of select is inverted.
    ConditionTurned,
    /// The second parameter of an eltwise is lost.
    BetaLost,
    /// gelu_tanh instead of gelu_erf.
    TanhForErf,
    /// Integers wrap instead of saturating.
    Wraps,
    /// Integers are truncated instead of rounded.
    Truncates,
    /// Halves round up instead of to even.
    HalvesGoUp,
    /// The previous contents of dst are not added.
    SumLost,
    /// The previous contents of dst are read in dst's type, whatever the sum's.
    SumTypeIgnored,
    /// f64 problems are computed in f32.
    DoubleInSingle,
    /// Bits depend on the number of threads.
    ThreadsMatter,
    /// Bits depend on the instruction set.
    LevelMatters,
    /// Bits depend on the alignment.
    AlignmentMatters,
    /// Bits depend on the row's position.
    PositionMatters,
    /// Bits depend on the floating-point mode of the caller.
    FloatModeMatters,
    /// Bits depend on how often the primitive ran before.
    RepeatMatters,
    /// The statistics are those of the exact sum where the stored one counts, or vice versa.
    StatisticsOfTheOtherSum,
    /// diff_src lacks the gradient of the stored sum.
    SumGradientDropped,
    /// 1 + scale is rounded to bf16.
    PlusOneInBf16,
    /// The sum of some of the squares is divided by all elements.
    PartialOverAll,
    /// The gate's derivative is that of the logistic function.
    SigmoidForSilu,
    /// Nothing is rounded before the scale.
    RoundFirstIgnored,
    /// A dynamic scale ignores negative values.
    ScaleOfTheWrongEnd,
    /// A dynamic scale that is smaller than the numbers of its type becomes 0.
    ScaleVanishes,
    /// The zero point is not added.
    ZeroPointLost,
}
