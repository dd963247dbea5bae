//! The problem: its parameters, checked, with all layouts resolved.

use crate::error::{Error, Result};
use crate::heap;
use crate::primitive::{
    Accepted, ArgumentName, Attr, OpArgument, PostOp, PostOpChain, PropKind, Usage,
    checked_quantization, enumerators,
};
use crate::tensor::{DataType, Layout, MAX_NDIMS, MemoryDesc, Support};
use arrayvec::ArrayVec;
use norm_sys as sys;

enumerators! {
    /// The function of the gate.
    GatedFunction: norm_alg_kind_t {
        Swish = norm_eltwise_swish, "eltwise_swish";
        GeluErf = norm_eltwise_gelu_erf, "eltwise_gelu_erf";
        GeluTanh = norm_eltwise_gelu_tanh, "eltwise_gelu_tanh";
        Relu = norm_eltwise_relu, "eltwise_relu";
        Logistic = norm_eltwise_logistic, "eltwise_logistic";
        Linear = norm_eltwise_linear, "eltwise_linear";
    }
}

enumerators! {
    /// The packing of gate and up.
    Packing: norm_gate_packing_t {
        GateFirst = norm_gate_first, "gate_first";
        UpFirst = norm_up_first, "up_first";
        Interleaved = norm_gate_interleaved, "gate_interleaved";
        Separate = norm_gate_separate, "gate_separate";
    }
}

/// The part of a tensor's rows that holds gate or up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Half {
    Whole,
    First,
    Second,
    Even,
    Odd,
}

impl Half {
    /// The column of the first of `cols` elements, and the distance to the next.
    pub(super) fn places(self, cols: usize) -> (usize, usize) {
        match self {
            Self::Whole | Self::First => (0, 1),
            Self::Second => (cols, 1),
            Self::Even => (0, 2),
            Self::Odd => (1, 2),
        }
    }
}

impl Packing {
    fn is_separate(self) -> bool {
        self == Self::Separate
    }

    /// The halves of gate and of up.
    fn halves(self) -> [Half; 2] {
        match self {
            Self::GateFirst => [Half::First, Half::Second],
            Self::UpFirst => [Half::Second, Half::First],
            Self::Interleaved => [Half::Even, Half::Odd],
            Self::Separate => [Half::Whole; 2],
        }
    }
}

/// A tensor of a problem: an argument, or half of one.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) argument: i32,
    pub(super) desc: MemoryDesc,
    pub(super) half: Half,
}

/// The parameters common to both directions.
pub(crate) struct Common<'a> {
    pub(crate) function: GatedFunction,
    pub(crate) packing: Packing,
    pub(crate) src: &'a MemoryDesc,
    pub(crate) up: Option<&'a MemoryDesc>,
    /// alpha, limit and shift.
    pub(crate) numbers: [f32; 3],
    pub(crate) attr: &'a Attr,
}

/// The parameters of forward.
pub(crate) struct Forward<'a> {
    pub(crate) prop_kind: PropKind,
    pub(crate) dst: &'a MemoryDesc,
    pub(crate) common: Common<'a>,
}

/// The parameters of backward.
pub(crate) struct Backward<'a> {
    pub(crate) diff_src: &'a MemoryDesc,
    pub(crate) diff_up: Option<&'a MemoryDesc>,
    pub(crate) diff_dst: &'a MemoryDesc,
    pub(crate) dst: Option<&'a MemoryDesc>,
    pub(crate) common: Common<'a>,
}

/// The numbers of a problem.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    pub(super) alpha: f32,
    pub(super) limit: f32,
    pub(super) shift: f32,
}

impl Numbers {
    /// Whether there is neither a limit nor a shift.
    pub(super) fn are_neutral(self) -> bool {
        self.limit == f32::INFINITY && self.shift == 0.0
    }
}

#[derive(Debug)]
pub(crate) struct Gated {
    pub(super) prop_kind: PropKind,
    pub(super) function: GatedFunction,
    pub(super) packing: Packing,
    pub(super) numbers: Numbers,
    pub(super) rows: usize,
    pub(super) cols: usize,
    /// gate, up and, backward, diff_dst.
    pub(super) inputs: ArrayVec<Part, 3>,
    /// dst, or diff_gate, diff_up and, if it is written, dst.
    pub(super) outputs: ArrayVec<Part, 3>,
    /// Attributes of dst, with their tensors resolved; forward only.
    pub(super) attr: Attr,
    pub(super) arguments: Vec<OpArgument>,
}

impl Gated {
    pub(crate) fn forward(p: &Forward<'_>) -> Result<Self> {
        p.prop_kind.check_forward()?;
        let mut problem = Self::common(p.prop_kind, &p.common)?;
        let dst = problem.like_dst("dst_desc", p.dst)?;
        check_type("dst_desc", &dst, |t| t.is_supported(true))?;
        dst.check_output("dst_desc")?;
        problem.outputs.push(whole(sys::NORM_ARG_DST, &dst));
        problem.list_arguments()?;
        problem.add_attributes(p.common.attr, &dst)?;
        Ok(problem)
    }

    pub(crate) fn backward(p: &Backward<'_>) -> Result<Self> {
        let mut problem = Self::common(PropKind::BackwardData, &p.common)?;
        let diff_dst = problem.like_dst("diff_dst_desc", p.diff_dst)?;
        check_float("diff_dst_desc", &diff_dst)?;
        problem.inputs.push(whole(sys::NORM_ARG_DIFF_DST, &diff_dst));
        let separate = p.common.packing.is_separate();
        let diff_up = checked_up("diff_up_desc", separate, p.diff_up)?;
        let of_input = |problem: &Self, place: usize, name: &str, desc: &MemoryDesc| {
            let input = &problem.inputs[place].desc;
            let name_of_input = if place == 0 { "src_desc" } else { "up_desc" };
            let desc = desc.resolved_for(name, (name_of_input, input))?;
            check_float(name, &desc)?;
            desc.check_output(name)?;
            Ok::<_, Error>(desc)
        };
        let diff_src = of_input(&problem, 0, "diff_src_desc", p.diff_src)?;
        let [gate, up] = p.common.packing.halves();
        let (id, of_gate) = (sys::NORM_ARG_DIFF_SRC, diff_src.clone());
        problem.outputs.push(Part { argument: id, desc: of_gate, half: gate });
        let (id, of_up) = match diff_up {
            Some(desc) => (sys::NORM_ARG_DIFF_SRC_1, of_input(&problem, 1, "diff_up_desc", desc)?),
            None => (id, diff_src),
        };
        problem.outputs.push(Part { argument: id, desc: of_up, half: up });
        if let Some(dst) = p.dst.filter(|desc| desc.ndims() > 0) {
            let dst = problem.like_dst("dst_desc", dst)?;
            check_float("dst_desc", &dst)?;
            dst.check_output("dst_desc")?;
            problem.outputs.push(whole(sys::NORM_ARG_DST, &dst));
        }
        problem.list_arguments()?;
        p.common.attr.check("backward gated activation", &Accepted::NOTHING)?;
        Ok(problem)
    }

    /// The checks common to both directions, and the inputs of forward.
    fn common(prop_kind: PropKind, p: &Common<'_>) -> Result<Self> {
        let numbers = checked_numbers(p.numbers)?;
        let (src, separate) = (p.src, p.packing.is_separate());
        check_float("src_desc", src)?;
        src.check_layout("src_desc")?;
        let (outer, last) = src.dims().split_at(src.ndims() - 1);
        let last = last[0] as usize;
        if !separate && last % 2 == 1 {
            return Err(Error::invalid(format_args!(
                "src_desc: rows of {last} elements cannot be split into a gate and the tensor \
                 that it multiplies"
            )));
        }
        let mut inputs = ArrayVec::new();
        let [gate, half] = p.packing.halves();
        inputs.push(Part { argument: sys::NORM_ARG_SRC, desc: src.clone(), half: gate });
        inputs.push(match checked_up("up_desc", separate, p.up)? {
            Some(up) => {
                let up = up.resolved_for("up_desc", ("src_desc", src))?;
                check_float("up_desc", &up)?;
                whole(sys::NORM_ARG_SRC_1, &up)
            }
            None => Part { argument: sys::NORM_ARG_SRC, desc: src.clone(), half },
        });
        Ok(Self {
            prop_kind,
            function: p.function,
            packing: p.packing,
            numbers,
            rows: outer.iter().product::<i64>() as usize,
            cols: if separate { last } else { last / 2 },
            inputs,
            outputs: ArrayVec::new(),
            attr: Attr::default(),
            arguments: Vec::new(),
        })
    }

    /// Checks that a descriptor has the dimensions of dst. Resolves `any` to the order of src.
    fn like_dst(&self, name: &str, desc: &MemoryDesc) -> Result<MemoryDesc> {
        let src = &self.inputs[0].desc;
        if self.packing.is_separate() {
            return desc.resolved_for(name, ("src_desc", src));
        }
        let mut dims: ArrayVec<i64, MAX_NDIMS> = src.dims().iter().copied().collect();
        if let Some(last) = dims.last_mut() {
            *last = self.cols as i64;
        }
        if desc.dims() != &dims[..] {
            return Err(Error::invalid(format_args!(
                "{name}: dimensions {:?} are not {dims:?}, those of src_desc with the last halved",
                desc.dims()
            )));
        }
        match desc.layout() {
            Layout::Any => desc.resolved_like(src),
            _ => Ok(desc.clone()),
        }
    }

    /// Lists each argument once.
    fn list_arguments(&mut self) -> Result<()> {
        let inputs = self.inputs.iter().map(|part| (part, Usage::Input));
        let outputs = self.outputs.iter().map(|part| (part, Usage::Output));
        let mut arguments: Vec<OpArgument> = Vec::new();
        for (part, usage) in inputs.chain(outputs) {
            if arguments.iter().any(|argument| argument.id == part.argument) {
                continue;
            }
            let name = match part.argument {
                sys::NORM_ARG_SRC => "src",
                sys::NORM_ARG_SRC_1 => "src_1",
                sys::NORM_ARG_DIFF_DST => "diff_dst",
                sys::NORM_ARG_DIFF_SRC => "diff_src",
                sys::NORM_ARG_DIFF_SRC_1 => "diff_src_1",
                _ => "dst",
            };
            let (id, desc) = (part.argument, part.desc.clone());
            let name = ArgumentName::Tensor(name);
            heap::push(&mut arguments, OpArgument { id, name, usage, desc })?;
        }
        self.arguments = arguments;
        Ok(())
    }

    /// Checks the attributes of forward and adds their tensors to the arguments.
    fn add_attributes(&mut self, attr: &Attr, dst: &MemoryDesc) -> Result<()> {
        const ACCEPTED: Accepted = Accepted {
            scales: &[sys::NORM_ARG_DST],
            zero_points: &[sys::NORM_ARG_DST],
            post_op: |post_op| matches!(post_op, PostOp::Eltwise { .. } | PostOp::Binary { .. }),
            dynamic: true,
            ..Accepted::NOTHING
        };
        attr.check("gated activation", &ACCEPTED)?;
        let resolved = attr.with_post_ops(attr.post_ops.resolved(dst)?);
        self.attr = checked_quantization("gated activation", resolved, dst)?;
        let tensors = [(sys::NORM_ARG_DST, dst)];
        self.attr.add_arguments(&mut self.arguments, &tensors, dst)
    }

    /// The post-operations and the scale of dst, with rows in an order of the outer dimensions.
    pub(super) fn chain(&self, order: Option<&[usize]>) -> Result<Option<PostOpChain>> {
        if !self.prop_kind.is_forward() {
            return Ok(None);
        }
        PostOpChain::new(&self.attr, &self.outputs[0].desc, order)
    }

    /// The descriptor of an argument, if the problem has it.
    pub(super) fn argument(&self, id: i32) -> Option<&MemoryDesc> {
        self.arguments.iter().find(|argument| argument.id == id).map(|argument| &argument.desc)
    }
}

fn whole(argument: i32, desc: &MemoryDesc) -> Part {
    Part { argument, desc: desc.clone(), half: Half::Whole }
}

fn checked_numbers([alpha, limit, shift]: [f32; 3]) -> Result<Numbers> {
    for (name, number) in [("alpha", alpha), ("shift", shift)] {
        if !number.is_finite() {
            return Err(Error::invalid(format_args!("{name}: {number} is not a finite number")));
        }
    }
    if limit.is_nan() || limit <= 0.0 {
        return Err(Error::invalid(format_args!(
            "limit: {limit} is not above 0; INFINITY stands for no limit"
        )));
    }
    // Adding -0 keeps all bits of up, even those of -0.
    let shift = if limit == f32::INFINITY && shift == 0.0 { -0.0 } else { shift };
    Ok(Numbers { alpha, limit, shift })
}

/// The descriptor of the second tensor of a separate packing.
fn checked_up<'a>(
    name: &str,
    separate: bool,
    desc: Option<&'a MemoryDesc>,
) -> Result<Option<&'a MemoryDesc>> {
    match (separate, desc.filter(|desc| desc.ndims() > 0)) {
        (true, None) => Err(Error::invalid(format_args!(
            "{name}: gate_separate needs two tensors, and this one is missing"
        ))),
        (false, Some(_)) => Err(Error::invalid(format_args!(
            "{name}: only gate_separate has a second tensor; otherwise src_desc contains both"
        ))),
        (_, desc) => Ok(desc),
    }
}

fn check_type(name: &str, desc: &MemoryDesc, supports: impl Fn(DataType) -> bool) -> Result<()> {
    desc.check_type(name, "gated activation", supports)
}

fn check_float(name: &str, desc: &MemoryDesc) -> Result<()> {
    check_type(name, desc, |t| t.support() == Support::Full)
}
