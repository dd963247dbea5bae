//! The limits with which a cache was created. An error about one says how to raise it.

use norm_rs::kv_cache::KvCache;
use pyo3::exceptions::{PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};

use crate::hints::Signature;

/// What to pass to the class.
const EXAMPLE: &str = "pass kind, tokens, heads and key_size, such as KvCache(\"paged\", tokens=4096, heads=8, \
                       key_size=128)";

/// How many there may be.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// Per sequence.
    pub(crate) tokens: usize,
    pub(crate) layers: usize,
    /// At a time.
    pub(crate) sequences: usize,
}

impl Limits {
    pub(crate) fn check_layer(&self, layer: usize) -> PyResult<()> {
        let count = self.layers;
        if layer < count {
            return Ok(());
        }
        let pass = if count == 1 { "0".to_owned() } else { format!("0 to {}", count - 1) };
        Err(PyValueError::new_err(format!(
            "layer is {layer}, but layers count from 0 and the cache was created with layers={count}: pass {pass}, or \
             create it with layers={}",
            layer.saturating_add(1)
        )))
    }

    pub(crate) fn check_entries(&self, count: usize) -> PyResult<()> {
        if count <= self.sequences {
            return Ok(());
        }
        Err(PyValueError::new_err(format!(
            "sequences has {count} entries, but the cache was created with sequences={}: create it with \
             sequences={count}",
            self.sequences
        )))
    }

    /// The error for another sequence, if there is no place for it.
    pub(crate) fn sequence(&self, cache: &KvCache) -> Option<PyErr> {
        let used = cache.stats().ok()?.sequences;
        (used >= self.sequences).then(|| {
            PyMemoryError::new_err(format!(
                "all places for sequences of the cache are taken, {used}: drop a sequence, or create the cache with \
                 sequences={}",
                used + 1
            ))
        })
    }

    /// The error for more tokens of some sequences, if one of them becomes too long.
    pub(crate) fn tokens(
        &self,
        cache: &KvCache,
        numbers: &[Option<i64>],
        counts: &[usize],
    ) -> Option<PyErr> {
        numbers.iter().zip(counts).find_map(|(number, count)| {
            let number = (*number)?;
            let length = cache.length(cache.sequence(number)).ok()?;
            let needed = length.checked_add(*count).filter(|needed| *needed > self.tokens)?;
            Some(PyValueError::new_err(format!(
                "tokens is {count} for sequence {number}, which has {length} of at most {}: create the cache with \
                 tokens={needed}",
                self.tokens
            )))
        })
    }
}

/// The error for tokens that need more pages than are free.
pub(crate) fn no_page(message: &str) -> PyErr {
    PyMemoryError::new_err(format!(
        "{message}: drop or truncate sequences, or create the cache with more pages"
    ))
}

/// Refuses a ring without a window, and a window of anything else.
pub(crate) fn check_window(is_ring: bool, is_given: bool) -> PyResult<()> {
    match (is_ring, is_given) {
        (true, false) => Err(PyValueError::new_err(
            "window is missing, but a ring keeps the tokens of one: pass window=(\"with_self\", W)",
        )),
        (false, true) => Err(PyValueError::new_err(
            "window is for a ring: pass kind=\"ring\", or leave window out and pass it to attend",
        )),
        _ => Ok(()),
    }
}

/// The value of a parameter without a default.
pub(crate) fn needed<T>(name: &str, value: Option<T>) -> PyResult<T> {
    value.ok_or_else(|| PyTypeError::new_err(format!("{name} is missing: {EXAMPLE}")))
}

/// Refuses arguments without names, and keywords that the class does not have.
pub(crate) fn refuse(
    class: &Bound<'_, PyType>,
    unnamed: &Bound<'_, PyTuple>,
    others: Option<&Bound<'_, PyDict>>,
) -> PyResult<()> {
    if !unnamed.is_empty() {
        return Err(PyTypeError::new_err(format!("only kind is passed without a name: {EXAMPLE}")));
    }
    let Some(others) = others else { return Ok(()) };
    let (name, text): (String, String) =
        (class.getattr("__name__")?.extract()?, class.getattr("__text_signature__")?.extract()?);
    let given = others.keys().extract::<Vec<String>>()?;
    let message = Signature::new(name, &text, &[]).unknown(&given);
    Err(PyTypeError::new_err(message.unwrap_or_default()))
}
