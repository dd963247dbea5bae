//! The `--attr-*` options and the other problem options that all drivers share. Each combination of list items is a
//! problem.

use super::arguments::argument;
use super::quantization::{self, SCALES, ZERO_POINTS, number};
use super::{
    Accumulation, Attributes, Dropout, MathMode, Rounding, RoundingModes, Scratchpad, Written,
    post_ops,
};
use crate::language::options::{Info, Opt, multiply};
use crate::language::value::{BadValue, boolean, integer, list, one_of, starts};
use crate::tensor::Tag;

/// The state behind [`ATTRIBUTES`].
#[derive(Clone, Debug, Default)]
pub struct AttributeSettings {
    scales: Vec<Written<Vec<super::Quantization>>>,
    zero_points: Vec<Written<Vec<super::Quantization>>>,
    post_ops: Vec<Written<Vec<super::PostOp>>>,
    scratchpads: Vec<Written<Scratchpad>>,
    math_modes: Vec<Written<(MathMode, bool)>>,
    accumulations: Vec<Written<Accumulation>>,
    deterministic: Vec<Written<bool>>,
    rounding: Vec<Written<RoundingModes>>,
    dropouts: Vec<Written<Option<Dropout>>>,
    /// Threads for creating and for executing.
    contexts: [Vec<Context>; 2],
}

/// Threads of a context: `auto`, or a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Context(pub Option<u64>);

impl Context {
    /// The text on the command line.
    pub fn text(self) -> String {
        self.0.map_or_else(|| "auto".to_owned(), |threads| threads.to_string())
    }
}

impl AttributeSettings {
    /// Multiplies problems by all combinations of attributes, then by all pairs of contexts. `places` gives those of a
    /// problem.
    pub fn multiply<P: Clone>(
        &self,
        problems: &mut Vec<P>,
        places: impl Fn(&mut P) -> (&mut Attributes, &mut [Context; 2]),
    ) {
        multiply(problems, &self.combinations(), |problem, value| {
            *places(problem).0 = value.clone();
        });
        multiply(problems, &self.contexts(), |problem, &contexts| *places(problem).1 = contexts);
    }

    /// Every combination of the attributes.
    pub fn combinations(&self) -> Vec<Attributes> {
        let mut all = vec![Attributes {
            scales: Written::default(),
            zero_points: Written::default(),
            post_ops: Written::default(),
            scratchpad: Written::default(),
            math_mode: Written::default(),
            accumulation: Written::default(),
            deterministic: Written::default(),
            rounding: Written::default(),
            dropout: Written::default(),
        }];
        multiply(&mut all, &self.scales, |all, value| all.scales = value.clone());
        multiply(&mut all, &self.zero_points, |all, value| all.zero_points = value.clone());
        multiply(&mut all, &self.post_ops, |all, value| all.post_ops = value.clone());
        multiply(&mut all, &self.scratchpads, |all, value| all.scratchpad = value.clone());
        multiply(&mut all, &self.math_modes, |all, value| all.math_mode = value.clone());
        multiply(&mut all, &self.accumulations, |all, value| all.accumulation = value.clone());
        multiply(&mut all, &self.deterministic, |all, value| all.deterministic = value.clone());
        multiply(&mut all, &self.rounding, |all, value| all.rounding = value.clone());
        multiply(&mut all, &self.dropouts, |all, value| all.dropout = value.clone());
        all
    }

    /// Every pair of contexts, for creation and for execution.
    pub fn contexts(&self) -> Vec<[Context; 2]> {
        let [init, exe] = &self.contexts;
        init.iter().flat_map(|&init| exe.iter().map(move |&exe| [init, exe])).collect()
    }
}

/// Reads a list of values and the text of each.
fn each<T>(
    text: &str,
    read: impl Fn(&str) -> Result<T, BadValue>,
) -> Result<Vec<Written<T>>, BadValue> {
    list(text, ',', |item| Ok(Written { text: item.to_owned(), value: read(item)? }))
}

fn math_mode(text: &str) -> Result<(MathMode, bool), BadValue> {
    const MODES: [(&str, MathMode); 5] = [
        ("strict", MathMode::Strict),
        ("bf16", MathMode::Bf16),
        ("f16", MathMode::F16),
        ("tf32", MathMode::Tf32),
        ("any", MathMode::Any),
    ];
    match text.split_once(':') {
        None => Ok((one_of(text, &MODES)?, false)),
        Some((mode, whole)) => {
            let whole = boolean(whole).map_err(|error| error.shifted(mode.len() + 1))?;
            Ok((one_of(mode, &MODES)?, whole))
        }
    }
}

fn accumulation(text: &str) -> Result<Accumulation, BadValue> {
    one_of(
        text,
        &[
            ("strict", Accumulation::Strict),
            ("relaxed", Accumulation::Relaxed),
            ("any", Accumulation::Any),
            ("f32", Accumulation::F32),
            ("s32", Accumulation::S32),
            ("f16", Accumulation::F16),
        ],
    )
}

fn rounding(text: &str) -> Result<RoundingModes, BadValue> {
    let mut all = RoundingModes::default();
    if text.is_empty() {
        return Ok(all);
    }
    list(text, '+', |entry| {
        let pieces: Vec<(&str, usize)> = entry.split(':').zip(starts(entry, ':')).collect();
        let id = argument(pieces[0].0)?;
        let mode = match pieces.get(1) {
            None => return Err(BadValue::at(entry.len(), "the mode is missing: ARG:MODE")),
            Some((mode, at)) => one_of(
                mode,
                &[("environment", Rounding::Environment), ("stochastic", Rounding::Stochastic)],
            )
            .map_err(|error| error.shifted(*at))?,
        };
        if let Some((seed, at)) = pieces.get(2) {
            all.seed = whole(seed).map_err(|error| error.shifted(*at))?;
        }
        all.modes.push((id, mode));
        match pieces.get(3) {
            None => Ok(()),
            Some((text, at)) => Err(BadValue::at(*at, format!("'{text}' is one value too many"))),
        }
    })?;
    Ok(all)
}

fn whole(text: &str) -> Result<i64, BadValue> {
    text.parse().map_err(|_| BadValue::new(format!("'{text}' is not an integer")))
}

fn dropout(text: &str) -> Result<Option<Dropout>, BadValue> {
    if text.is_empty() {
        return Ok(None);
    }
    let pieces: Vec<(&str, usize)> = text.split(':').zip(starts(text, ':')).collect();
    let at = |index: usize| pieces.get(index).copied();
    let probability = number(pieces[0].0)?;
    if !(0.0..=1.0).contains(&probability) {
        return Err(BadValue::new(format!("'{}' is not a probability from 0 to 1", pieces[0].0)));
    }
    let mut dropout =
        Dropout { probability, seed: 0, tag: Tag::Any, offset: 0, host_scalars: false };
    if let Some((text, at)) = at(1) {
        dropout.seed = whole(text).map_err(|error| error.shifted(at))?;
    }
    if let Some((text, at)) = at(2) {
        dropout.tag = Tag::parse(text).map_err(|error| error.shifted(at))?;
    }
    if let Some((text, at)) = at(3) {
        let offset = integer(text, 0..=i64::MAX as u64).map_err(|error| error.shifted(at))?;
        dropout.offset = offset as i64;
    }
    if let Some((text, at)) = at(4) {
        dropout.host_scalars = boolean(text).map_err(|error| error.shifted(at))?;
    }
    if let Some((text, at)) = at(5) {
        return Err(BadValue::at(at, format!("'{text}' is one value too many")));
    }
    Ok((probability != 0.0).then_some(dropout))
}

/// `MAX_CONCURRENCY[:CORE_TYPE[:THREADS_PER_CORE]]`; only the first has an effect.
fn context(text: &str) -> Result<Context, BadValue> {
    let piece = |item: &str| match item {
        "auto" => Ok(None),
        item => integer(item, 0..=255).map(Some),
    };
    let pieces = list(text, ':', piece)?;
    match pieces[..] {
        [Some(0), ..] => Err(BadValue::new("a context has at least one thread")),
        [threads] => Ok(Context(threads)),
        [threads, None] | [threads, None, None] => Ok(Context(threads)),
        _ => Err(BadValue::new("core types and threads per core cannot be chosen: only auto")),
    }
}

const fn row(
    name: &'static str,
    value: &'static str,
    default: &'static str,
    help: &'static str,
) -> Info {
    Info { name, short: None, value, topic: "Attributes (lists multiply out)", default, help }
}

/// The options of [`AttributeSettings`].
pub const ATTRIBUTES: &[Opt<AttributeSettings>] = &[
    Opt {
        info: row(
            "attr-scales",
            "LIST",
            "",
            "Scales for tensors: ARG:POLICY[:VALUE[:TYPE]][+...], as in\n\
             src:common:64+dst:common:0.5 (ARG: src, dst, ...; POLICY: common, per_oc, per_dim_0,\n\
             per_dim_1, per_dim_01, ...)",
        ),
        set: |state, text| {
            each(text, |item| quantization::parse(item, &SCALES)).map(|list| state.scales = list)
        },
    },
    Opt {
        info: row(
            "attr-zero-points",
            "LIST",
            "",
            "Zero points for tensors: ARG:POLICY[:VALUE[:TYPE]][+...]",
        ),
        set: |state, text| {
            each(text, |item| quantization::parse(item, &ZERO_POINTS))
                .map(|list| state.zero_points = list)
        },
    },
    Opt {
        info: row(
            "attr-post-ops",
            "LIST",
            "",
            "Post-operations on dst, joined by +: ELTWISE[:ALPHA[:BETA]],\n\
             BINARY:TYPE[:MASK[:TAG]], select:TYPE[.MASK[.TAG]], sum[:SCALE[:ZERO_POINT[:TYPE]]],\n\
             prelu[:POLICY], dw:kKsSpP[:TYPE]; a MASK is a policy or a number whose bits stand\n\
             for dimensions",
        ),
        set: |state, text| each(text, post_ops::parse).map(|list| state.post_ops = list),
    },
    Opt {
        info: row(
            "attr-scratchpad",
            "LIST",
            "library",
            "Who allocates the scratchpad: library, user",
        ),
        set: |state, text| {
            let mode = |item: &str| {
                post_ops::choose(
                    item,
                    &[("library", Scratchpad::Library), ("user", Scratchpad::User)],
                )
            };
            each(text, mode).map(|list| state.scratchpads = list)
        },
    },
    Opt {
        info: row(
            "attr-fpmath",
            "LIST",
            "strict",
            "Lowest precision of arithmetic: strict, bf16, f16, tf32, any; with :true also for\n\
             integers",
        ),
        set: |state, text| each(text, math_mode).map(|list| state.math_modes = list),
    },
    Opt {
        info: row(
            "attr-acc-mode",
            "LIST",
            "strict",
            "Precision of sums: strict, relaxed, any, f32, s32, f16",
        ),
        set: |state, text| each(text, accumulation).map(|list| state.accumulations = list),
    },
    Opt {
        info: row(
            "attr-deterministic",
            "LIST",
            "false",
            "Whether repeated calls must give the same bits: true, false",
        ),
        set: |state, text| each(text, boolean).map(|list| state.deterministic = list),
    },
    Opt {
        info: row(
            "attr-rounding-mode",
            "LIST",
            "",
            "Rounding of results: ARG:MODE[:SEED][+...]; MODE: environment, stochastic",
        ),
        set: |state, text| each(text, rounding).map(|list| state.rounding = list),
    },
    Opt {
        info: row(
            "attr-dropout",
            "LIST",
            "",
            "Dropout: PROBABILITY[:SEED[:TAG[:OFFSET[:HOST_SCALARS]]]]",
        ),
        set: |state, text| each(text, dropout).map(|list| state.dropouts = list),
    },
    Opt {
        info: row(
            "ctx-init",
            "LIST",
            "auto",
            "Threads during creation: N or auto (N:auto:auto is the same); no effect",
        ),
        set: |state, text| list(text, ',', context).map(|list| state.contexts[0] = list),
    },
    Opt {
        info: row("ctx-exe", "LIST", "auto", "Threads during execution: N, or auto for --threads"),
        set: |state, text| list(text, ',', context).map(|list| state.contexts[1] = list),
    },
];
