//! The sizes of a cache as a dictionary.

use norm_rs::kv_cache::Stats;
use pyo3::prelude::*;
use pyo3::types::PyDict;

pub(crate) fn dict<'py>(py: Python<'py>, stats: &Stats) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, value) in [
        ("sequences", stats.sequences),
        ("page_size", stats.page_size),
        ("page_bytes", stats.page_bytes),
        ("pages", stats.pages),
        ("used_pages", stats.used_pages),
        ("shared_pages", stats.shared_pages),
        ("copied_pages", stats.copied_pages),
        ("bytes", stats.bytes),
    ] {
        dict.set_item(name, value)?;
    }
    Ok(dict)
}
