//! The steps around a normalization, from flags and attributes: the valid combinations, and their arguments.

use super::{Flags, Normalization};
use crate::error::{Error, Result};
use crate::heap;
use crate::primitive::{
    ArgumentName, Arguments, Around, Attr, BeforePostOps, Gate, Gating, OpArgument, PostOpChain,
    Quantized, Residual, ResidualRounding, Usage,
};
use crate::tensor::{DataType, MAX_NDIMS, MemoryDesc, Support};
use norm_sys as sys;

impl Normalization {
    /// Adds the checked attributes to the problem, and their tensors to the arguments.
    pub(super) fn add_around(&mut self, attr: &Attr) -> Result<()> {
        let Around { residual, gate, partial } = &attr.around;
        self.flags.check(gate.is_some())?;
        let around_row = residual.is_some() || gate.is_some() || partial.is_some();
        let double = [&self.src, &self.dst, &self.diff_src]
            .into_iter()
            .any(|desc| desc.data_type() == Some(DataType::F64));
        if double && (around_row || self.flags.round_before_scale()) {
            return Err(Error::unimplemented(
                "attr: a residual, a gate, a partial norm and round_before_scale are computed in f32, and a tensor is f64",
            ));
        }
        if let Some(residual) = residual {
            self.add_residual(residual)?;
        }
        if let Some(gate) = gate {
            self.add_gate(gate)?;
        }
        self.around = attr.around.clone();
        Ok(())
    }

    fn add_residual(&mut self, residual: &Residual) -> Result<()> {
        let forward = self.prop_kind.is_forward();
        check_float("src_desc", "with a residual, src", &self.src)?;
        let like_src = |name: &str, desc: &MemoryDesc| {
            let desc = desc.resolved_for(format_args!("{name}"), ("src_desc", &self.src))?;
            check_strided(name, &desc)?;
            Ok(desc)
        };
        let desc = like_src("residual_desc", &residual.desc)?;
        let sum = match &residual.sum {
            Some(sum) => Some(like_src("sum_desc", sum)?),
            None => None,
        };
        if forward {
            self.add_argument(sys::NORM_ARG_RESIDUAL, "residual", Usage::Input, &desc)?;
            if let Some(sum) = &sum {
                sum.check_output("sum_desc")?;
                self.add_argument(sys::NORM_ARG_RESIDUAL_DST, "residual_dst", Usage::Output, sum)?;
            }
            return Ok(());
        }
        let Some(sum) = sum else {
            return Err(Error::invalid(
                "attr: backward reads the sum that forward stored, so the residual needs a sum_desc",
            ));
        };
        if sum.data_type() != self.src.data_type() {
            return Err(Error::invalid(format_args!(
                "src_desc: backward reads the sum, which is {}, not {}",
                Self::type_of(&sum).name(),
                Self::type_of(&self.src).name()
            )));
        }
        let id = sys::NORM_ARG_DIFF_RESIDUAL_DST;
        self.add_argument(id, "diff_residual_dst", Usage::Input, &sum)
    }

    fn add_gate(&mut self, gate: &Gate) -> Result<()> {
        let desc = gate.desc.resolved_for("gate_desc", ("src_desc", &self.src))?;
        check_strided("gate_desc", &desc)?;
        self.add_argument(sys::NORM_ARG_GATE, "gate", Usage::Input, &desc)?;
        if self.prop_kind.is_forward() {
            return Ok(());
        }
        desc.check_output("gate_desc")?;
        self.add_argument(sys::NORM_ARG_DIFF_GATE, "diff_gate", Usage::Output, &desc)?;
        if self.flags.gate_output() && self.flags.shift() {
            let shift = self.scale_shift.clone();
            self.add_argument(sys::NORM_ARG_SHIFT, "shift", Usage::Input, &shift)?;
        }
        Ok(())
    }

    fn add_argument(
        &mut self,
        id: i32,
        name: &'static str,
        usage: Usage,
        desc: &MemoryDesc,
    ) -> Result<()> {
        let (name, desc) = (ArgumentName::Tensor(name), desc.clone());
        heap::push(&mut self.arguments, OpArgument { id, name, usage, desc })
    }

    /// The descriptor of an argument; that of src if there is no such argument.
    pub(crate) fn argument(&self, id: i32) -> &MemoryDesc {
        let found = self.arguments.iter().find(|argument| argument.id == id);
        found.map_or(&self.src, |argument| &argument.desc)
    }

    pub(crate) fn has_argument(&self, id: i32) -> bool {
        self.arguments.iter().any(|argument| argument.id == id)
    }

    /// Whether the normalized rows are the rounded and stored sum of src and a residual.
    pub(crate) fn normalizes_stored_sum(&self) -> bool {
        self.has_argument(sys::NORM_ARG_RESIDUAL_DST)
            && !self.flags.gate_input()
            && self.rounds_sum()
    }

    /// The argument whose rows the kernels read, unless they are computed.
    pub(crate) fn normalized_argument(&self) -> i32 {
        if self.normalizes_stored_sum() { sys::NORM_ARG_RESIDUAL_DST } else { sys::NORM_ARG_SRC }
    }

    pub(crate) fn rounds_sum(&self) -> bool {
        let rounding = self.around.residual.as_deref().map(|residual| residual.rounding);
        rounding == Some(ResidualRounding::Rounded)
    }

    /// Whether the rows to normalize are first computed in f32.
    pub(crate) fn computes_src(&self) -> bool {
        let adds = self.has_argument(sys::NORM_ARG_RESIDUAL);
        self.flags.gate_input() || adds && !self.normalizes_stored_sum()
    }

    /// The data type of the sum.
    pub(crate) fn sum_type(&self) -> Option<DataType> {
        let residual = self.around.residual.as_deref()?;
        residual.sum.as_ref().unwrap_or(&residual.desc).data_type()
    }

    /// The data type of the values that are normalized.
    pub(crate) fn normalized_type(&self) -> DataType {
        match self.sum_type() {
            _ if self.flags.gate_input() => DataType::F32,
            Some(sum) if self.prop_kind.is_forward() => {
                if self.rounds_sum() {
                    sum
                } else {
                    DataType::F32
                }
            }
            _ => Self::type_of(&self.src),
        }
    }

    /// The flags that the forward kernels see. Parameters that follow a rounding are steps of the post-op chain.
    pub(crate) fn kernel_flags(&self) -> Flags {
        let later = self.prop_kind.is_forward() && self.flags.round_before_scale();
        if later { self.flags.without_parameters() } else { self.flags }
    }

    /// Whether rows need steps around the kernels, on a stage.
    pub(crate) fn has_steps(&self) -> bool {
        let gate = self.flags.gate_input() || self.has_argument(sys::NORM_ARG_DIFF_GATE);
        self.around.residual.is_some() || gate || self.dynamic_scales().is_some()
    }

    /// The chain of forward: the steps after a rounding, the gate, and the attributes. Rows are those of dst with
    /// dimension `last`, if any, moved to the end. They have the order `order`, or logical order.
    pub(crate) fn chain(
        &self,
        last: Option<usize>,
        order: Option<&[usize]>,
    ) -> Result<Option<PostOpChain>> {
        let rounded = self.sum_type().unwrap_or(Self::type_of(&self.src));
        let later = self.flags.round_before_scale();
        let view =
            |desc: &MemoryDesc| last.map_or_else(|| desc.clone(), |axis| desc.with_last(axis));
        // One value for each element along the axis.
        let ndims = self.src.ndims();
        let mut dims = [1; MAX_NDIMS];
        dims[self.axis] = self.src.dims()[self.axis];
        let parameter = view(&MemoryDesc::dense(&dims[..ndims], Self::type_of(&self.scale_shift))?);
        let given = [self.flags.scale(), self.flags.shift()];
        let gate = self.around.gate.as_deref().filter(|_| self.flags.gate_output());
        let gate = gate.map(|gate| (view(self.argument(sys::NORM_ARG_GATE)), Gating::of(gate)));
        let before = BeforePostOps {
            round: (later && rounded.is_half()).then_some(rounded),
            parameters: given.map(|given| (given && later).then_some(&parameter)),
            plus_one: self.flags.plus_one(),
            gate: gate.as_ref().map(|(desc, gating)| (desc, *gating)),
            start: None,
        };
        match last {
            None => PostOpChain::after(&before, &self.attr, &self.dst, order),
            Some(axis) => {
                PostOpChain::after(&before, &self.attr.with_last(axis)?, &view(&self.dst), order)
            }
        }
    }

    /// Rejects buffers that overlap in a way that no order of steps allows.
    pub(crate) fn check_shared(&self, arguments: &Arguments) -> Result<()> {
        if self.around.residual.is_none() && self.around.gate.is_none() {
            return Ok(());
        }
        // An input and an output may share a buffer if elements are at the same offsets.
        let overwritten = [
            (sys::NORM_ARG_SRC, sys::NORM_ARG_RESIDUAL_DST, "SRC and RESIDUAL_DST"),
            (sys::NORM_ARG_RESIDUAL, sys::NORM_ARG_RESIDUAL_DST, "RESIDUAL and RESIDUAL_DST"),
            (sys::NORM_ARG_RESIDUAL, sys::NORM_ARG_DST, "RESIDUAL and DST"),
            (sys::NORM_ARG_GATE, sys::NORM_ARG_DST, "GATE and DST"),
            (sys::NORM_ARG_GATE, sys::NORM_ARG_DIFF_GATE, "GATE and DIFF_GATE"),
            (
                sys::NORM_ARG_DIFF_RESIDUAL_DST,
                sys::NORM_ARG_DIFF_SRC,
                "DIFF_RESIDUAL_DST and DIFF_SRC",
            ),
        ];
        let shared = |a: i32, b: i32| {
            let present = self.has_argument(a) && self.has_argument(b) && !self.src.has_zero_dim();
            present && arguments.get(a) == arguments.get(b)
        };
        for (input, output, names) in overwritten {
            if shared(input, output) && !self.argument(input).same_layout(self.argument(output)) {
                return Err(Error::invalid(format_args!(
                    "args: {names} share a buffer, but differ in data type or layout"
                )));
            }
        }
        let outputs = [
            (sys::NORM_ARG_DST, sys::NORM_ARG_RESIDUAL_DST, "DST and RESIDUAL_DST"),
            (sys::NORM_ARG_DIFF_SRC, sys::NORM_ARG_DIFF_GATE, "DIFF_SRC and DIFF_GATE"),
        ];
        if shared(sys::NORM_ARG_GATE, sys::NORM_ARG_RESIDUAL_DST) {
            return Err(Error::invalid(
                "args: GATE and RESIDUAL_DST share a buffer, but the gate is read after the sum is stored",
            ));
        }
        match outputs.into_iter().find(|(a, b, _)| shared(*a, *b)) {
            Some((_, _, names)) => {
                Err(Error::invalid(format_args!("args: {names} are outputs and share a buffer")))
            }
            None => Ok(()),
        }
    }

    /// The scales of dst, if they are computed.
    pub(crate) fn dynamic_scales(&self) -> Option<Quantized> {
        self.attr.scales.get(sys::NORM_ARG_DST).filter(Quantized::is_dynamic)
    }
}

fn check_float(name: &str, what: &str, desc: &MemoryDesc) -> Result<()> {
    desc.check_type(name, what, |data_type| data_type.support() == Support::Full)
}

fn check_strided(name: &str, desc: &MemoryDesc) -> Result<()> {
    if desc.is_blocked() {
        return Err(Error::unimplemented(format_args!("{name}: the layout is blocked")));
    }
    Ok(())
}
