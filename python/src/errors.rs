//! Errors of the library as exceptions, in Python's terms.

use norm_rs::{Error, ErrorKind};
use pyo3::exceptions::{PyMemoryError, PyNotImplementedError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// How messages begin in C, and in Python; the first that fits counts.
const BEGINNINGS: [(&str, &str); 10] = [
    ("flags: scale_plus_one needs use_scale", "scale_plus_one needs scale"),
    ("attr: ", ""),
    ("flags: ", ""),
    ("alg_kind: eltwise_", "function: "),
    ("count: ", "sequences: "),
    ("kv_heads: ", "heads: "),
    ("queries: ", "q: "),
    ("keys: ", "k: "),
    ("values: ", "v: "),
    ("data_desc: ", "src: "),
];

/// Other terms of C, anywhere in a message, and what they are in Python.
const TERMS: [(&str, &str); 7] = [
    ("-1, for all rows", "None, for all rows"),
    (": 1 dimensions", ": 1 dimension"),
    ("INFINITY stands for", "None stands for"),
    ("query_desc", "q"),
    ("key_desc", "k"),
    ("value_desc", "v"),
    ("_desc", ""),
];

/// Converts an error of the library to an exception.
pub(crate) fn to_python(error: &Error) -> PyErr {
    let own = error.to_string();
    let message = in_python(error.c_message().unwrap_or(&own));
    match error.kind() {
        ErrorKind::OutOfMemory => PyMemoryError::new_err(message),
        ErrorKind::InvalidArguments => PyValueError::new_err(message),
        ErrorKind::Unimplemented => PyNotImplementedError::new_err(message),
        _ => PyRuntimeError::new_err(message),
    }
}

/// A message with the names that parameters have in Python.
fn in_python(message: &str) -> String {
    // The name of the C function means nothing in Python.
    let message = match message.split_once(": ") {
        Some((function, rest)) if function.starts_with("norm_") => rest,
        _ => message,
    };
    // The constant of an argument, in lower case, is the name of the parameter.
    let message = match message.strip_prefix("args: NORM_ARG_").and_then(|m| m.split_once(':')) {
        Some((argument, rest)) => {
            let argument = argument.strip_prefix("ROPE_").unwrap_or(argument);
            format!("{}:{rest}", argument.to_lowercase())
        }
        None => message.to_owned(),
    };
    let begins =
        |(in_c, own): &(&str, &str)| message.strip_prefix(in_c).map(|rest| format!("{own}{rest}"));
    let message = BEGINNINGS.iter().find_map(begins).unwrap_or(message);
    TERMS.iter().fold(message, |message, (in_c, own)| message.replace(in_c, own))
}
