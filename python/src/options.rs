//! The keyword options that all normalizations have.

use norm_rs::Gating;
use norm_rs::layer_normalization::Flags;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::arguments::{self, convert};
use crate::elementwise::named;

const SILU: Gating = Gating::Swish(1.0);

/// What the options change besides flags and arguments.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Options {
    pub(crate) gating: Gating,
    /// Whether the f32 sum with a residual is normalized rather than the rounded sum.
    pub(crate) exact: bool,
    /// The number of elements in the mean square; 0 for the whole row.
    pub(crate) partial: usize,
    /// The number of elements that share a dynamic scale; 0 without dynamic scales.
    pub(crate) group: usize,
}

impl Options {
    pub(crate) const NONE: Self = Self { gating: SILU, exact: false, partial: 0, group: 0 };

    /// Refuses a partial norm where there is none, and one of more elements than `what`, a row or a group, has.
    pub(crate) fn check_partial(&self, rms: bool, what: &str, size: usize) -> PyResult<()> {
        let partial = self.partial;
        if partial > 0 && !rms {
            return Err(PyValueError::new_err(format!(
                "partial is {partial}, but only RMS normalization has it: {}, or leave it out",
                match what {
                    "group" => "pass rms=True",
                    _ => "use the function for that, such as rms_norm",
                }
            )));
        }
        if partial > size {
            return Err(PyValueError::new_err(format!(
                "partial is {partial}, but a {what} of src has {size} elements: pass 1 to {size}"
            )));
        }
        Ok(())
    }

    /// Refuses a partial norm over part of a channel, which has this many positions.
    pub(crate) fn check_channels(&self, positions: usize) -> PyResult<()> {
        if positions == 0 || self.partial.is_multiple_of(positions) {
            return Ok(());
        }
        Err(PyValueError::new_err(format!(
            "partial is {}, but a channel of src has {positions} elements: pass a multiple of {positions}",
            self.partial
        )))
    }
}

/// The options as they were passed.
pub(crate) struct Keywords<'py> {
    pub(crate) flags: Flags,
    pub(crate) options: Options,
    /// The gate and the name of its keyword.
    pub(crate) gate: Option<(&'static str, Bound<'py, PyAny>)>,
}

/// The names of all options.
pub(crate) const NAMES: [&str; 7] =
    ["gate", "gate_input", "gating", "alpha", "scale_plus_one", "round_before_scale", "partial"];

impl<'py> Keywords<'py> {
    pub(crate) fn read(given: Option<&Bound<'py, PyDict>>) -> PyResult<Self> {
        let mut keywords = Self { flags: Flags::NONE, options: Options::NONE, gate: None };
        let mut alpha = None;
        for (name, value) in given.into_iter().flat_map(|given| given.iter()) {
            let name = name.cast_into::<PyString>()?;
            match name.to_str()? {
                "alpha" => alpha = arguments::alpha(&value)?,
                name => keywords.set(name, value)?,
            }
        }
        let has = |name| given.is_some_and(|given| given.contains(name).unwrap_or(false));
        let gated = has("gate") || has("gate_input");
        if let Some(name) = ["gating", "alpha"].into_iter().find(|name| has(*name) && !gated) {
            return Err(PyValueError::new_err(format!(
                "{name} is given, but no gate: pass the array as gate or gate_input, or leave {name} out"
            )));
        }
        match (alpha, keywords.options.gating) {
            (None, _) => {}
            (Some(alpha), Gating::Swish(_)) => {
                keywords.options.gating = Gating::Swish(alpha as f32);
            }
            _ => {
                return Err(PyValueError::new_err(
                    "alpha is given, but the sigmoid of a gate has none: leave it out, or pass gating=\"silu\"",
                ));
            }
        }
        Ok(keywords)
    }

    fn set(&mut self, name: &str, value: Bound<'py, PyAny>) -> PyResult<()> {
        match name {
            "gate" => self.set_gate("gate", Flags::GATE_OUTPUT, value)?,
            "gate_input" => self.set_gate("gate_input", Flags::GATE_INPUT, value)?,
            "gating" => self.options.gating = gating(&value)?,
            "scale_plus_one" if truth("scale_plus_one", &value)? => {
                self.flags |= Flags::SCALE_PLUS_ONE
            }
            "round_before_scale" if truth("round_before_scale", &value)? => {
                self.flags |= Flags::ROUND_BEFORE_SCALE
            }
            "scale_plus_one" | "round_before_scale" => {}
            "partial" if value.is_none() => {}
            "partial" => {
                let count: i64 = convert("partial", &value, "an int, or None for all of a row")?;
                self.options.partial =
                    usize::try_from(count).ok().filter(|&count| count > 0).ok_or_else(|| {
                        PyValueError::new_err(format!(
                            "partial is {count}: pass the number of elements whose mean square is taken, 1 or \
                             more, or None for all of a row"
                        ))
                    })?;
            }
            _ => return Err(PyTypeError::new_err(format!("there is no keyword {name}"))),
        }
        Ok(())
    }

    fn set_gate(
        &mut self,
        name: &'static str,
        flag: Flags,
        value: Bound<'py, PyAny>,
    ) -> PyResult<()> {
        if value.is_none() {
            return Ok(());
        }
        if self.gate.is_some() {
            return Err(PyValueError::new_err(
                "gate and gate_input are both given: pass one of them",
            ));
        }
        self.flags |= flag;
        self.gate = Some((name, value));
        Ok(())
    }
}

fn truth(name: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    convert(name, value, "True or False")
}

fn gating(value: &Bound<'_, PyAny>) -> PyResult<Gating> {
    let name: String = convert("gating", value, "\"silu\" or \"sigmoid\"")?;
    named(
        "gating",
        &name,
        &[
            ("silu", SILU),
            ("swish", SILU),
            ("sigmoid", Gating::Logistic),
            ("logistic", Gating::Logistic),
        ],
    )
}
