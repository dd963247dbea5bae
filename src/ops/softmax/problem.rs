//! The validated problem.

use crate::error::{Error, Result};
use crate::heap;
use crate::primitive::{
    Accepted, Attr, OpArgument, PostOp, PostOpChain, PropKind, Usage, enumerators,
};
use crate::rows::TENSORS;
use crate::tensor::{DataType, Layout, MemoryDesc};
use norm_sys as sys;

enumerators! {
    /// The function of a row.
    SoftmaxAlgorithm: norm_alg_kind_t {
        Accurate = norm_softmax_accurate, "softmax_accurate";
        Log = norm_softmax_log, "softmax_log";
        /// As accurate, but a row of -Inf becomes zeros.
        AccurateInfAsZero = norm_softmax_accurate_inf_as_zero, "softmax_accurate_inf_as_zero";
    }
}

impl SoftmaxAlgorithm {
    /// The value to subtract from the elements of a row with this maximum. NaN in the row keeps it from becoming zeros.
    #[inline(always)]
    pub(super) fn distance_from<T: Copy + PartialEq + From<f32>>(self, max: T) -> T {
        let is_empty = max == T::from(f32::NEG_INFINITY) && self == Self::AccurateInfAsZero;
        if is_empty { T::from(0.0) } else { max }
    }
}

/// A validated problem.
#[derive(Debug)]
pub(crate) struct Softmax {
    pub(super) prop_kind: PropKind,
    pub(super) algorithm: SoftmaxAlgorithm,
    pub(super) axis: usize,
    /// The attributes, with the tensors of post-operations resolved; forward only.
    attr: Attr,
    /// src and dst, or dst, diff_dst and diff_src, then the attributes' arguments.
    pub(super) arguments: Vec<OpArgument>,
}

/// A problem's tensors, with the axis as the last dimension.
pub(super) struct Operands {
    /// The argument ids. The output is last, followed by unused places.
    pub(super) ids: [i32; TENSORS],
    pub(super) descs: [MemoryDesc; TENSORS],
    pub(super) output: usize,
    pub(super) rows: usize,
    pub(super) cols: usize,
}

impl Softmax {
    pub(crate) fn forward(
        prop_kind: PropKind,
        algorithm: SoftmaxAlgorithm,
        [src, dst]: [&MemoryDesc; 2],
        axis: i32,
        attr: &Attr,
    ) -> Result<Self> {
        const ACCEPTED: Accepted = Accepted {
            scales: &[sys::NORM_ARG_SRC, sys::NORM_ARG_DST],
            post_op: |post_op| matches!(post_op, PostOp::Eltwise { .. } | PostOp::Binary { .. }),
            dropout: true,
            softmax_stats: true,
            ..Accepted::NOTHING
        };
        prop_kind.check_forward()?;
        check_type("src_desc", src, true)?;
        let axis = checked_axis(axis, "src_desc", src)?;
        let dst = dst.resolved_for("dst_desc", ("src_desc", src))?;
        check_type("dst_desc", &dst, true)?;
        dst.check_output("dst_desc")?;
        if [src, &dst].iter().any(|desc| desc.data_type() == Some(DataType::F64)) {
            const OF_F64: Accepted = Accepted { softmax_stats: true, ..Accepted::NOTHING };
            attr.check("softmax of f64", &OF_F64)?;
        }
        attr.check("softmax", &ACCEPTED)?;
        let resolved = attr.resolved(&dst)?;
        let mut arguments = heap::list([
            OpArgument::tensor(sys::NORM_ARG_SRC, "src", Usage::Input, src),
            OpArgument::tensor(sys::NORM_ARG_DST, "dst", Usage::Output, &dst),
        ])?;
        let tensors = [(sys::NORM_ARG_SRC, src), (sys::NORM_ARG_DST, &dst)];
        attr.add_arguments(&mut arguments, &tensors, &dst)?;
        if let Some(stats) = &attr.softmax_stats {
            let stats = resolved_stats(stats, src, axis)?;
            let id = sys::NORM_ARG_SOFTMAX_STATS;
            heap::push(
                &mut arguments,
                OpArgument::tensor(id, "softmax_stats", Usage::Output, &stats),
            )?;
        }
        Ok(Self { prop_kind, algorithm, axis, attr: resolved, arguments })
    }

    pub(crate) fn backward(
        algorithm: SoftmaxAlgorithm,
        [diff_src, diff_dst, dst]: [&MemoryDesc; 3],
        axis: i32,
        attr: &Attr,
    ) -> Result<Self> {
        check_type("dst_desc", dst, false)?;
        let axis = checked_axis(axis, "dst_desc", dst)?;
        let diff_dst = diff_dst.resolved_for("diff_dst_desc", ("dst_desc", dst))?;
        check_type("diff_dst_desc", &diff_dst, false)?;
        let diff_src = diff_src.resolved_for("diff_src_desc", ("diff_dst_desc", &diff_dst))?;
        check_type("diff_src_desc", &diff_src, false)?;
        diff_src.check_output("diff_src_desc")?;
        attr.check("backward softmax", &Accepted::NOTHING)?;
        let arguments = heap::list([
            OpArgument::tensor(sys::NORM_ARG_DST, "dst", Usage::Input, dst),
            OpArgument::tensor(sys::NORM_ARG_DIFF_DST, "diff_dst", Usage::Input, &diff_dst),
            OpArgument::tensor(sys::NORM_ARG_DIFF_SRC, "diff_src", Usage::Output, &diff_src),
        ])?;
        let (prop_kind, attr) = (PropKind::BackwardData, Attr::default());
        Ok(Self { prop_kind, algorithm, axis, attr, arguments })
    }

    pub(super) fn operands(&self) -> Operands {
        let own = || self.arguments.iter().filter(|argument| !argument.is_of_attribute());
        let (mut ids, mut descs) = ([0; TENSORS], [const { MemoryDesc::EMPTY }; TENSORS]);
        for (place, argument) in own().enumerate() {
            (ids[place], descs[place]) = (argument.id, argument.desc.with_last(self.axis));
        }
        let (outer, cols) = descs[0].dims().split_at(descs[0].ndims() - 1);
        let rows = outer.iter().product::<i64>() as usize;
        let cols = cols[0] as usize;
        Operands { ids, descs, output: own().count() - 1, rows, cols }
    }

    /// Whether a tensor, and hence the arithmetic, is f64.
    pub(super) fn is_wide(&self) -> bool {
        self.arguments.iter().any(|argument| argument.desc.data_type() == Some(DataType::F64))
    }

    /// The logarithms of the sums, with the axis as the last dimension.
    pub(super) fn stats(&self) -> Option<MemoryDesc> {
        let is_stats = |argument: &&OpArgument| argument.id == sys::NORM_ARG_SOFTMAX_STATS;
        Some(self.arguments.iter().find(is_stats)?.desc.with_last(self.axis))
    }

    /// The post-operations of forward's dst, with rows in an order of the outer dimensions.
    pub(super) fn chain(
        &self,
        dst: &MemoryDesc,
        order: Option<&[usize]>,
    ) -> Result<Option<PostOpChain>> {
        PostOpChain::new(&self.attr.with_last(self.axis)?, dst, order)
    }
}

fn check_type(name: &str, desc: &MemoryDesc, forward: bool) -> Result<()> {
    let what = if forward { "forward softmax" } else { "backward softmax" };
    desc.check_type(name, what, |t| t == DataType::F64 || t.is_supported(forward))
}

/// The logarithms of the sums have the dimensions of src, with 1 along the axis. `any` becomes the dense layout.
fn resolved_stats(stats: &MemoryDesc, src: &MemoryDesc, axis: usize) -> Result<MemoryDesc> {
    let expected = |(d, dim): (usize, &i64)| if d == axis { 1 } else { *dim };
    if !stats.dims().iter().copied().eq(src.dims().iter().enumerate().map(expected)) {
        return Err(Error::invalid(format_args!(
            "attr: stats_desc: dimensions {:?} are not those of src_desc, {:?}, with 1 for dimension {axis}",
            stats.dims(),
            src.dims()
        )));
    }
    if stats.is_blocked() {
        return Err(Error::unimplemented("attr: the layout of stats_desc is blocked"));
    }
    let stats = match stats.layout() {
        Layout::Any => stats.resolved_dense()?,
        _ => stats.clone(),
    };
    stats.check_output("attr: stats_desc")?;
    Ok(stats)
}

/// The axis, checked against a tensor that must have a layout.
fn checked_axis(axis: i32, name: &str, desc: &MemoryDesc) -> Result<usize> {
    desc.check_layout(name)?;
    let ndims = desc.ndims();
    usize::try_from(axis).ok().filter(|axis| *axis < ndims).ok_or_else(|| {
        Error::invalid(format_args!(
            "softmax_axis: {axis} is not one of the {ndims} dimensions of {name}, which count from 0"
        ))
    })
}
