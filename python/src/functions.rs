//! Functions of one array: their names, and the values of their parameters.

use norm_rs::eltwise::Eltwise;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::elementwise::named;
use crate::plan::Operation;

/// A parameter of a function.
#[derive(Clone, Copy)]
enum Parameter {
    /// The function does not have it.
    Unused,
    /// It has this value unless the caller passes one.
    Usual(f64),
    /// The caller must pass it.
    Needed,
}

use Parameter::{Needed, Unused, Usual};

/// A function, alpha, beta, and what they are if both are needed.
type Function = (Eltwise, [Parameter; 2], &'static str);

const fn plain(function: Eltwise) -> Function {
    (function, [Unused; 2], "")
}

const fn with_alpha(function: Eltwise, alpha: f64) -> Function {
    (function, [Usual(alpha), Unused], "")
}

const fn with_both(function: Eltwise, alpha: f64, beta: f64) -> Function {
    (function, [Usual(alpha), Usual(beta)], "")
}

const fn needing_both(function: Eltwise, what: &'static str) -> Function {
    (function, [Needed; 2], what)
}

/// The functions by name.
const FUNCTIONS: [(&str, Function); 20] = [
    ("abs", plain(Eltwise::Abs)),
    ("clip", needing_both(Eltwise::Clip, "the bounds")),
    ("elu", with_alpha(Eltwise::Elu, 1.0)),
    ("exp", plain(Eltwise::Exp)),
    ("gelu_erf", plain(Eltwise::GeluErf)),
    ("gelu_tanh", plain(Eltwise::GeluTanh)),
    ("hardsigmoid", with_both(Eltwise::Hardsigmoid, 1.0 / 6.0, 0.5)),
    ("hardswish", with_both(Eltwise::Hardswish, 1.0 / 6.0, 0.5)),
    ("linear", with_both(Eltwise::Linear, 1.0, 0.0)),
    ("log", plain(Eltwise::Log)),
    ("logistic", plain(Eltwise::Logistic)),
    ("mish", plain(Eltwise::Mish)),
    ("pow", needing_both(Eltwise::Pow, "for alpha * x**beta")),
    ("relu", with_alpha(Eltwise::Relu, 0.0)),
    ("round", plain(Eltwise::Round)),
    ("soft_relu", with_alpha(Eltwise::SoftRelu, 1.0)),
    ("sqrt", plain(Eltwise::Sqrt)),
    ("square", plain(Eltwise::Square)),
    ("swish", with_alpha(Eltwise::Swish, 1.0)),
    ("tanh", plain(Eltwise::Tanh)),
];

/// The functions whose gradient can be computed from their result.
const OF_DST: &[Eltwise] =
    &[Eltwise::Relu, Eltwise::Elu, Eltwise::Tanh, Eltwise::Logistic, Eltwise::Exp, Eltwise::Sqrt];

/// The operation that a name and the parameters that were passed mean.
pub(crate) fn operation(
    name: &str,
    alpha: Option<f64>,
    beta: Option<f64>,
    from_dst: bool,
) -> PyResult<Operation> {
    let (function, parameters, what) = named("function", name, &FUNCTIONS)?;
    if from_dst && !OF_DST.contains(&function) {
        return Err(PyValueError::new_err(format!(
            "from_dst is True, but the gradient of {name} is not computed from the result: pass src, or one of relu, \
             elu, tanh, logistic, exp, sqrt"
        )));
    }
    let value = |parameter, given: Option<f64>| match (parameter, given) {
        (Unused, _) => Some(0.0),
        (Usual(usual), given) => Some(given.unwrap_or(usual)),
        (Needed, given) => given,
    };
    match (value(parameters[0], alpha), value(parameters[1], beta)) {
        (Some(alpha), Some(beta)) => {
            let (alpha, beta) = (alpha as f32, beta as f32);
            Ok(Operation::Eltwise { function, alpha, beta, from_dst })
        }
        _ => Err(PyValueError::new_err(format!("{name} needs alpha and beta, {what}"))),
    }
}
