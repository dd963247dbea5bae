//! The validated problem.

use crate::error::{Error, Result};
use crate::heap;
use crate::primitive::{
    Accepted, Attr, EltwiseAlgorithm, Gradient, OpArgument, PostOp, PropKind, Start, Usage,
};
use crate::rows::Elementwise;
use crate::tensor::{DataType, MemoryDesc};
use norm_sys as sys;

/// A function with its parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EltwiseFunction {
    pub(crate) algorithm: EltwiseAlgorithm,
    /// The C value. Some values say which tensor the gradient is computed from.
    pub(crate) code: sys::norm_alg_kind_t,
    pub(crate) alpha: f32,
    pub(crate) beta: f32,
}

impl EltwiseFunction {
    /// Whether the gradient is computed from dst.
    fn has_gradient_of_dst(&self) -> bool {
        self.code != self.algorithm.code()
    }

    /// The name, and the tensor that the gradient is computed from.
    pub(super) fn name(&self) -> (&'static str, &'static str) {
        let suffix = if self.has_gradient_of_dst() { "_use_dst_for_bwd" } else { "" };
        (self.algorithm.name(), suffix)
    }

    fn check(&self, forward: bool) -> Result<()> {
        let &Self { algorithm, alpha, beta, .. } = self;
        let clips = matches!(algorithm, EltwiseAlgorithm::Clip | EltwiseAlgorithm::ClipV2);
        // An unordered comparison, with NaN, is refused too.
        if clips && alpha.partial_cmp(&beta).is_none_or(std::cmp::Ordering::is_gt) {
            return Err(Error::invalid(format_args!(
                "beta: the upper bound {beta} of the clip is less than alpha, the lower bound {alpha}"
            )));
        }
        for (name, value) in [("alpha", alpha), ("beta", beta)] {
            if value.is_nan() {
                return Err(Error::invalid(format_args!("{name}: it is not a number")));
            }
        }
        let signs = matches!(algorithm, EltwiseAlgorithm::Relu | EltwiseAlgorithm::Elu);
        if signs && self.has_gradient_of_dst() && alpha < 0.0 {
            return Err(Error::invalid(format_args!(
                "alpha: {alpha} is negative, so the sign of dst does not determine that of src"
            )));
        }
        if !forward && algorithm == EltwiseAlgorithm::Round {
            return Err(Error::invalid("alg_kind: eltwise_round has no gradient"));
        }
        Ok(())
    }
}

/// A validated problem.
#[derive(Debug)]
pub(crate) struct Eltwise {
    pub(super) prop_kind: PropKind,
    pub(super) function: EltwiseFunction,
    /// The attributes, with the tensors of post-operations resolved; forward only.
    attr: Attr,
    /// src and dst; backward, src or dst, diff_dst and diff_src. The attributes' arguments follow.
    pub(super) arguments: Vec<OpArgument>,
}

impl Eltwise {
    pub(crate) fn forward(
        prop_kind: PropKind,
        function: EltwiseFunction,
        [src, dst]: [&MemoryDesc; 2],
        attr: &Attr,
    ) -> Result<Self> {
        const ACCEPTED: Accepted = Accepted {
            post_op: |post_op| matches!(post_op, PostOp::Eltwise { .. } | PostOp::Binary { .. }),
            dropout: true,
            ..Accepted::NOTHING
        };
        prop_kind.check_forward()?;
        function.check(true)?;
        check_type("src_desc", src, true)?;
        src.check_layout("src_desc")?;
        let dst = dst.resolved_for("dst_desc", ("src_desc", src))?;
        check_type("dst_desc", &dst, true)?;
        dst.check_output("dst_desc")?;
        if [src, &dst].iter().any(|desc| desc.data_type() == Some(DataType::F64)) {
            attr.check("eltwise of f64", &Accepted::NOTHING)?;
        }
        attr.check("eltwise", &ACCEPTED)?;
        let resolved = attr.resolved(&dst)?;
        let mut arguments = heap::list([
            OpArgument::tensor(sys::NORM_ARG_SRC, "src", Usage::Input, src),
            OpArgument::tensor(sys::NORM_ARG_DST, "dst", Usage::Output, &dst),
        ])?;
        attr.add_arguments(&mut arguments, &[], &dst)?;
        Ok(Self { prop_kind, function, attr: resolved, arguments })
    }

    pub(crate) fn backward(
        function: EltwiseFunction,
        [diff_src, diff_dst, data]: [&MemoryDesc; 3],
        attr: &Attr,
    ) -> Result<Self> {
        function.check(false)?;
        check_type("data_desc", data, false)?;
        data.check_layout("data_desc")?;
        let diff_dst = diff_dst.resolved_for("diff_dst_desc", ("data_desc", data))?;
        check_type("diff_dst_desc", &diff_dst, false)?;
        let diff_src = diff_src.resolved_for("diff_src_desc", ("diff_dst_desc", &diff_dst))?;
        check_type("diff_src_desc", &diff_src, false)?;
        diff_src.check_output("diff_src_desc")?;
        attr.check("backward eltwise", &Accepted::NOTHING)?;
        let (id, name) = if function.has_gradient_of_dst() {
            (sys::NORM_ARG_DST, "dst")
        } else {
            (sys::NORM_ARG_SRC, "src")
        };
        let arguments = heap::list([
            OpArgument::tensor(id, name, Usage::Input, data),
            OpArgument::tensor(sys::NORM_ARG_DIFF_DST, "diff_dst", Usage::Input, &diff_dst),
            OpArgument::tensor(sys::NORM_ARG_DIFF_SRC, "diff_src", Usage::Output, &diff_src),
        ])?;
        Ok(Self { prop_kind: PropKind::BackwardData, function, attr: Attr::default(), arguments })
    }

    pub(super) fn elementwise(&self) -> Elementwise<'_> {
        let EltwiseFunction { algorithm, alpha, beta, .. } = self.function;
        let start = if self.prop_kind.is_forward() {
            Start::Eltwise { algorithm, alpha, beta }
        } else {
            let from_dst = self.function.has_gradient_of_dst();
            Start::Gradient(Gradient::new(algorithm, from_dst, (alpha, beta)))
        };
        Elementwise::new(start, &self.arguments, &self.attr)
    }
}

fn check_type(name: &str, desc: &MemoryDesc, forward: bool) -> Result<()> {
    let what = if forward { "forward eltwise" } else { "backward eltwise" };
    desc.check_type(name, what, |t| match t {
        DataType::S32 => forward,
        DataType::F64 => true,
        _ => t.is_supported(true) && (forward || !t.is_integer()),
    })
}
