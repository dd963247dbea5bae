//! Primitives of attention.

use norm_rs::primitive::{Arg, PropKind};
use norm_rs::sdpa::{self, Causal, Window};
use norm_rs::{Attr, Engine, MemoryDesc, Result};

use crate::plan::Problem;

/// Attention with its parameters. The other options follow from the arguments.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Attention {
    pub(crate) causal: Causal,
    pub(crate) window: Window,
    /// The number of first keys that are visible besides the window.
    pub(crate) first_keys: usize,
    /// `None` for `1/sqrt(D)`.
    pub(crate) scale: Option<f32>,
    /// 0 for none.
    pub(crate) soft_cap: f32,
}

/// The options that both builders have.
macro_rules! with_options {
    ($builder:expr, $attention:expr, $problem:expr, $mask:expr) => {{
        let mut builder = $builder.causal($attention.causal).window($attention.window);
        builder = builder.first_keys($attention.first_keys);
        if let Some(scale) = $attention.scale {
            builder = builder.scale(scale);
        }
        if $attention.soft_cap != 0.0 {
            builder = builder.soft_cap($attention.soft_cap);
        }
        if let Some(mask) = $mask {
            builder = builder.mask(mask);
        }
        let has = |arg| $problem.operands.iter().any(|operand| operand.arg == arg);
        if has(Arg::Sinks) {
            builder = builder.sinks();
        }
        if has(Arg::AlibiSlopes) {
            builder = builder.alibi();
        }
        if has(Arg::QueryLengths) {
            builder = builder.query_lengths();
        }
        if has(Arg::KeyLengths) {
            builder = builder.key_lengths();
        }
        if has(Arg::QueryOffsets) {
            builder = builder.query_offsets();
        }
        if has(Arg::KeyOffsets) {
            builder = builder.key_offsets();
        }
        builder
    }};
}

impl Attention {
    pub(crate) fn forward(self, engine: &Engine, problem: &Problem) -> Result<sdpa::Forward> {
        let [query, key, value, dst] = descs(problem)?;
        let mask = problem.desc_of(Arg::AttnMask)?;
        let table = problem.desc_of(Arg::PageTable)?;
        let builder = match problem.prop_kind {
            PropKind::ForwardTraining => sdpa::Forward::training(engine, &query, &key, &value),
            _ => sdpa::Forward::inference(engine, &query, &key, &value),
        };
        let mut builder = with_options!(builder.dst(&dst), self, problem, mask.as_ref());
        let attr = scales(problem)?;
        if let Some(attr) = &attr {
            builder = builder.attr(attr);
        }
        if let Some(table) = &table {
            builder = builder.page_table(table);
        }
        if problem.desc_of(Arg::Entropy)?.is_some() {
            builder = builder.entropy();
        }
        builder.build()
    }

    pub(crate) fn backward(self, engine: &Engine, problem: &Problem) -> Result<sdpa::Backward> {
        let [query, key, value, dst] = descs(problem)?;
        let mask = problem.desc_of(Arg::AttnMask)?;
        let of = |arg| Ok::<_, norm_rs::Error>(problem.desc_of(arg)?.expect("a gradient"));
        let (diff_query, diff_key) = (of(Arg::DiffQueries)?, of(Arg::DiffKeys)?);
        let (diff_value, diff_dst) = (of(Arg::DiffValues)?, of(Arg::DiffDst)?);
        let builder = sdpa::Backward::new(engine, &query, &key, &value).dst(&dst);
        let builder = builder.diff_dst(&diff_dst).gradients(&diff_query, &diff_key, &diff_value);
        let mut builder = with_options!(builder, self, problem, mask.as_ref());
        let diff_mask = problem.desc_of(Arg::DiffAttnMask)?;
        if let Some(diff_mask) = &diff_mask {
            builder = builder.diff_mask(diff_mask);
        }
        builder.build()
    }
}

/// The attributes for the scales of quantized keys and values. Scales differ along the dimensions that are not 1.
fn scales(problem: &Problem) -> Result<Option<Attr>> {
    let mut attr = None;
    for (arg, of) in [(Arg::KeyScales, Arg::Keys), (Arg::ValueScales, Arg::Values)] {
        let Some(desc) = problem.desc_of(arg)? else { continue };
        let mask = desc.dims().iter().enumerate().map(|(at, dim)| u16::from(*dim != 1) << at).sum();
        let attr = match &mut attr {
            Some(attr) => attr,
            none => none.insert(Attr::new()?),
        };
        attr.set_scales(of, mask)?;
    }
    Ok(attr)
}

/// The descriptors that both directions have.
fn descs(problem: &Problem) -> Result<[MemoryDesc; 4]> {
    let of = |arg| Ok::<_, norm_rs::Error>(problem.desc_of(arg)?.expect("an argument"));
    Ok([of(Arg::Queries)?, of(Arg::Keys)?, of(Arg::Values)?, of(Arg::Dst)?])
}
