//! Backward through the normalization of heads.
//!
//! ```text
//! d        = diff_dst, rotated back, in f32
//! v        = mean(src^2) of each head
//! diff_src, diff_scale: the gradient of a layer normalization with rms_norm, of src, d and v
//! ```
//!
//! The three steps are separate problems that run one after another, each with the bits that it has on its own. The
//! normalizations are passed in, since operations do not import each other. d and v are in the scratchpad.

use super::problem::{Parameters, Rope, check_type, checked_head, checked_norm};
use crate::error::{Error, Result, Status};
use crate::heap::{Counted, LINE, Shared, counted, list};
use crate::primitive::{
    Answer, Arguments, Execution, Implementation, Op, OpArgument, PropKind, Variant,
    check_shared_layouts,
};
use crate::tensor::{DataType, MemoryDesc};
use norm_sys as sys;
use std::fmt;

/// The parameters of a normalization's gradient.
pub(crate) struct Normalized<'a> {
    /// src, and diff_src as given.
    pub(crate) src: &'a MemoryDesc,
    pub(crate) diff_src: &'a MemoryDesc,
    /// d, with a layout.
    pub(crate) diff_dst: &'a MemoryDesc,
    pub(crate) prop_kind: PropKind,
    pub(crate) scale: DataType,
    pub(crate) diff_scale: DataType,
    pub(crate) epsilon: f32,
    /// The flags of a layer normalization.
    pub(crate) flags: u32,
}

/// Makes a layer normalization.
pub(crate) type Make<'a> = &'a dyn Fn(&Normalized<'_>) -> Result<Box<Counted<dyn Op>>>;

/// The indices of the steps.
const STATISTICS: usize = 0;
const ROTATION: usize = 1;
const GRADIENT: usize = 2;
const STEPS: usize = 3;

/// A validated problem.
pub(crate) struct RopeThroughNorm {
    /// A step may also have arguments in the scratchpad, which the problem does not have.
    steps: [Shared<dyn Op>; STEPS],
    /// A second rotation, used for its checks.
    rotation: Rope,
    prop_kind: PropKind,
    epsilon: f32,
    flags: u32,
    arguments: Vec<OpArgument>,
}

impl RopeThroughNorm {
    /// `p` has the parameters of backward; its flags include `rms_norm`.
    pub(crate) fn new(
        p: &Parameters<'_>,
        src: Option<&MemoryDesc>,
        diff_scale: Option<&MemoryDesc>,
        (statistics, gradient): (Make<'_>, Make<'_>),
    ) -> Result<Self> {
        let src = src.ok_or_else(|| Error::invalid("src_desc: NULL, but flags have rms_norm"))?;
        let head = p.input.dims().last().copied().unwrap_or(0);
        let norm = checked_norm(p, p.flags, head)?;
        let own = sys::norm_rms_norm | sys::norm_use_scale | sys::norm_scale_plus_one;
        let room = MemoryDesc::with_tag(p.input.dims(), DataType::F32, sys::norm_format_tag_any)?;
        let plain = p.flags & !(own | sys::norm_rope_norm_rounded);
        let rotation = Rope::new(&Parameters {
            output: &room,
            scale: None,
            epsilon: 0.0,
            flags: plain,
            ..*p
        })?;
        let rotated = rotation.try_clone()?;
        if src.dims() != p.input.dims() {
            return Err(Error::invalid(format_args!(
                "src_desc: dimensions {:?} are not those of diff_dst_desc, {:?}",
                src.dims(),
                p.input.dims()
            )));
        }
        check_type("src_desc", src)?;
        check_type("diff_src_desc", p.output)?;
        let prop_kind = match diff_scale {
            Some(_) => PropKind::Backward,
            None => PropKind::BackwardData,
        };
        let scale = norm.and_then(|norm| norm.scale);
        let diff_scale = match (diff_scale, scale) {
            (Some(diff_scale), Some(_)) => checked_head("diff_scale_desc", diff_scale, head)?,
            (Some(_), None) => {
                return Err(Error::invalid(
                    "diff_scale_desc: not NULL, but flags have no use_scale",
                ));
            }
            (None, _) => None,
        };
        let normalized = Normalized {
            src,
            diff_src: p.output,
            diff_dst: rotated.desc(sys::NORM_ARG_DIFF_SRC),
            prop_kind,
            scale: scale.unwrap_or(DataType::F32),
            diff_scale: diff_scale.unwrap_or(DataType::F32),
            epsilon: p.epsilon,
            flags: p.flags & own,
        };
        let (statistics, gradient) = (statistics(&normalized)?, gradient(&normalized)?);
        let rotated: Box<Counted<dyn Op>> = counted(rotated)?;
        let steps = [statistics.into(), rotated.into(), gradient.into()];
        let arguments = arguments(&steps)?;
        let (epsilon, flags) = (p.epsilon, p.flags);
        Ok(Self { steps, rotation, prop_kind, epsilon, flags, arguments })
    }

    /// Where a step's argument is in the scratchpad; `None` for an argument of the problem.
    fn room(step: usize, id: i32) -> Option<Room> {
        match (step, id) {
            (STATISTICS, sys::NORM_ARG_DST)
            | (ROTATION, sys::NORM_ARG_DIFF_SRC)
            | (GRADIENT, sys::NORM_ARG_DIFF_DST) => Some(Room::Rotated),
            (STATISTICS | GRADIENT, sys::NORM_ARG_VARIANCE) => Some(Room::MeanSquares),
            _ => None,
        }
    }
}

/// The arguments of the problem, those of the rotation first.
fn arguments(steps: &[Shared<dyn Op>; STEPS]) -> Result<Vec<OpArgument>> {
    let of = |step: usize| {
        let all = steps[step].arguments().iter();
        all.filter(move |argument| RopeThroughNorm::room(step, argument.id).is_none())
    };
    list(of(ROTATION).chain(of(GRADIENT)).cloned())
}

/// Parts of the scratchpad.
#[derive(Clone, Copy)]
enum Room {
    /// d. Before that, the normalized values of the statistics step, which nothing reads.
    Rotated,
    MeanSquares,
}

impl Op for RopeThroughNorm {
    fn kind(&self) -> sys::norm_primitive_kind_t {
        sys::norm_rope
    }

    fn name(&self) -> &'static str {
        "rope"
    }

    fn prop_kind(&self) -> Option<PropKind> {
        Some(self.prop_kind)
    }

    fn query(&self, what: sys::norm_query_t) -> Option<Answer> {
        match what {
            sys::norm_query_epsilon_f32 => Some(Answer::F32(self.epsilon)),
            sys::norm_query_flags => Some(Answer::U32(self.flags)),
            _ => None,
        }
    }

    fn arguments(&self) -> &[OpArgument] {
        &self.arguments
    }

    fn auxiliary(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rotation.auxiliary(f)?;
        write!(f, " of the whole:{:#x}", self.flags)
    }

    fn implement(&self, variant: &'static Variant) -> Result<Box<Counted<dyn Implementation>>> {
        let step = |step: usize| at_level(&*self.steps[step], variant);
        let steps = [step(STATISTICS)?, step(ROTATION)?, step(GRADIENT)?];
        let ids = |step: usize| list(self.steps[step].arguments().iter().map(|a| a.id));
        let rotated = self.rotation.desc(sys::NORM_ARG_DIFF_SRC).size();
        let stat =
            self.steps[GRADIENT].query_md(sys::norm_query_exec_arg_md, sys::NORM_ARG_VARIANCE);
        let mean_squares = stat.map_or(0, MemoryDesc::size);
        Ok(counted(Steps {
            variant,
            steps,
            ids: [ids(STATISTICS)?, ids(ROTATION)?, ids(GRADIENT)?],
            rooms: [rotated, mean_squares].map(|size| size.next_multiple_of(LINE)),
        })?)
    }

    fn check_buffers(&self, arguments: &Arguments) -> Result<()> {
        check_shared_layouts(&self.arguments, arguments)?;
        self.rotation.check_positions(arguments)
    }
}

/// The best implementation of a step at the level of a variant.
fn at_level(op: &dyn Op, variant: &Variant) -> Result<Shared<dyn Implementation>> {
    let mut refusal = Error::unimplemented("no implementation of the level");
    for own in op.variants().iter().filter(|own| own.level == variant.level) {
        match op.implement(own) {
            Ok(implementation) => return Ok(implementation.into()),
            Err(reason) if reason.status == Status::Unimplemented => refusal = reason,
            Err(failure) => return Err(failure),
        }
    }
    Err(refusal)
}

struct Steps {
    variant: &'static Variant,
    steps: [Shared<dyn Implementation>; STEPS],
    /// The argument ids of each step.
    ids: [Vec<i32>; STEPS],
    /// Bytes of d and of the mean squares.
    rooms: [usize; 2],
}

impl Implementation for Steps {
    fn variant(&self) -> &'static Variant {
        self.variant
    }

    fn scratchpad_size(&self) -> usize {
        let own = self.steps.iter().map(|step| step.scratchpad_size()).max().unwrap_or(0);
        self.rooms.iter().fold(own, |sum, room| sum.saturating_add(*room))
    }

    fn execute(&self, execution: &Execution<'_>) -> usize {
        let [rotated, mean_squares] = self.rooms;
        let place = |room| match room {
            Room::Rotated => execution.scratchpad,
            Room::MeanSquares => execution.scratchpad.wrapping_add(rotated),
        };
        let mut threads = 1;
        for (step, (implementation, ids)) in self.steps.iter().zip(&self.ids).enumerate() {
            let mut arguments = Arguments::new();
            for id in ids {
                let own = || execution.arguments.get(*id);
                arguments.push(*id, RopeThroughNorm::room(step, *id).map_or_else(own, place));
            }
            threads = threads.max(implementation.execute(&Execution {
                arguments: &arguments,
                scratchpad: execution.scratchpad.wrapping_add(rotated + mean_squares),
                threads: execution.threads,
                member: execution.member,
            }));
        }
        threads
    }
}
