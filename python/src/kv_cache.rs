//! A cache of keys and values: the class that Python sees.
//!
//! Calls on one cache do not overlap: each locks it after releasing the interpreter's lock. So no thread waits for one
//! lock while it holds the other.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use norm_rs::kv_cache::{KvCache, Sequence};
use norm_rs::sdpa::Window;
use norm_rs::{DataType, Engine, Result, Stream};
use pyo3::exceptions::{PyMemoryError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::arguments;
use crate::attention::forward;
use crate::attention_arguments::{FLOATS, Keywords, four};
use crate::attention_call::{Call, Keys};
use crate::cache_arguments::{Rows4, data_type, each, numbers, step};
use crate::cache_attend::{Attend, longest, sequences as all_of};
use crate::cache_build::{Storage, Wanted};
use crate::cache_limits::{Limits, needed, no_page, refuse};
use crate::cache_rope::{Rotated, check_rotated};
use crate::cache_stats;
use crate::call::Given;
use crate::errors::to_python;
use crate::rope_angles::Angles;
use crate::rope_norm::HeadNorm;
use crate::windows::window;

/// A cache of the keys and values of several sequences in all layers of a model.
///
/// One step of a model is extend, and then write and attend for each layer. Keys and values are stored in pages
/// of several tokens. A token has the same bits as with attention on plain arrays. A call that fails changes
/// nothing. Several threads may use one cache; their calls wait for each other.
///
/// Parameters
/// ----------
/// kind : "contiguous", "paged" or "ring"
///     One page for each sequence, for all its tokens; as many pages from a pool as the tokens need; the same,
///     but pages that no further token of a sliding window sees return to the pool.
/// tokens : int
///     The maximum number of tokens per sequence.
/// heads, key_size : int
///     Heads of keys and values, and elements in a head of keys.
/// value_size : int, optional
///     Elements in a head of values; key_size by default.
/// dtype : str or a type of an array library
///     The elements of keys and values: "float32", "bfloat16", "float16", "int8" or "float8_e4m3fn".
/// layers, sequences : int
///     Layers of the model, and the maximum number of sequences at a time.
/// step_tokens : int, optional
///     The maximum number of rows in the arrays of a step, all sequences together; by default all tokens of all
///     sequences. The memory of a ring grows with it.
/// page_size : int, optional
///     Tokens per page, 16 by default; not for "contiguous".
/// pages : int, optional
///     Pages in the pool; by default as many as all sequences can need.
/// window : ("with_self", W) or ("before_self", W), for "ring"
///     As for attention. With a third number N, the first N tokens of a sequence are also kept.
///
/// Raises
/// ------
/// TypeError, ValueError, NotImplementedError
///     An argument has the wrong type or value.
/// MemoryError
///     There is not enough memory.
#[pyclass(frozen, module = "libnorm", name = "KvCache")]
pub(crate) struct PyKvCache {
    cache: Mutex<KvCache>,
    /// The rows of the open step, 0 if there is none. Only used under the lock.
    open: AtomicUsize,
    limits: Limits,
    heads: usize,
    sizes: (usize, usize),
    data_type: DataType,
    /// The number of tokens that the pages of a sequence can hold.
    room: usize,
    window: (Window, usize),
}

impl PyKvCache {
    /// Calls `f` with the cache, without the interpreter's lock.
    fn with<R: Send>(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&mut KvCache) -> Result<R> + Send,
    ) -> PyResult<R> {
        let locked = || f(&mut self.cache.lock().unwrap_or_else(PoisonError::into_inner));
        py.detach(locked).map_err(|error| to_python(&error))
    }

    /// An error that says which limit to raise, or else the given one.
    fn or(
        &self,
        py: Python<'_>,
        error: PyErr,
        better: impl FnOnce(&KvCache) -> Option<PyErr> + Send,
    ) -> PyErr {
        self.with(py, |cache| Ok(better(cache))).ok().flatten().unwrap_or(error)
    }

    /// The error for another sequence.
    fn full(&self, py: Python<'_>, error: PyErr) -> PyErr {
        if !error.is_instance_of::<PyMemoryError>(py) {
            return error;
        }
        self.or(py, error, |cache| self.limits.sequence(cache))
    }

    /// As `with`, for a call that ends the step.
    fn ending<R: Send>(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&mut KvCache) -> Result<R> + Send,
    ) -> PyResult<R> {
        self.with(py, |cache| {
            let result = f(cache)?;
            self.open.store(0, Ordering::Relaxed);
            Ok(result)
        })
    }
}

#[pymethods]
impl PyKvCache {
    #[new]
    #[pyo3(signature = (kind=None, *unnamed, tokens=None, heads=None, key_size=None, value_size=None, dtype=None, layers=1,
                        sequences=1, step_tokens=None, page_size=None, pages=None, window=None, **others),
           text_signature = "(kind, *, tokens, heads, key_size, value_size=None, dtype=None, layers=1, sequences=1, \
                             step_tokens=None, page_size=None, pages=None, window=None)")]
    #[expect(clippy::too_many_arguments, reason = "the parameters of the Python class")]
    fn new(
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::kind)] kind: Option<&str>,
        unnamed: &Bound<'_, PyTuple>,
        #[pyo3(from_py_with = arguments::tokens)] tokens: Option<usize>,
        #[pyo3(from_py_with = arguments::heads)] heads: Option<usize>,
        #[pyo3(from_py_with = arguments::key_size)] key_size: Option<usize>,
        #[pyo3(from_py_with = arguments::value_size)] value_size: Option<usize>,
        dtype: Given<'_, '_>,
        #[pyo3(from_py_with = arguments::layers)] layers: usize,
        #[pyo3(from_py_with = arguments::sequences)] sequences: usize,
        #[pyo3(from_py_with = arguments::step_tokens)] step_tokens: Option<usize>,
        #[pyo3(from_py_with = arguments::page_size)] page_size: Option<usize>,
        #[pyo3(from_py_with = arguments::pages)] pages: Option<usize>,
        window: Given<'_, '_>,
        others: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        refuse(&py.get_type::<Self>(), unnamed, others)?;
        let (kind, heads) = (needed("kind", kind)?, needed("heads", heads)?);
        let limits = Limits { tokens: needed("tokens", tokens)?, layers, sequences };
        let key_size = needed("key_size", key_size)?;
        let value_size = value_size.unwrap_or(key_size);
        let data_type = dtype.map(data_type).transpose()?.unwrap_or(DataType::F32);
        let storage = Storage::new(kind, page_size, window.is_some())?;
        let (window, sizes) = (self::window(window)?, (key_size, value_size));
        let wanted =
            Wanted { storage, limits, data_type, heads, sizes, step_tokens, pages, window };
        let cache = wanted.build().map_err(|error| to_python(&error))?;
        let columns = cache.page_table_desc(1).map_err(|error| to_python(&error))?.dims()[1];
        let page = cache.value_desc().dims()[2];
        Ok(Self {
            cache: Mutex::new(cache),
            open: AtomicUsize::new(0),
            limits,
            heads,
            sizes,
            data_type,
            room: columns * page,
            window,
        })
    }

    /// Begins a sequence without tokens.
    ///
    /// Returns
    /// -------
    /// int, a number that no other sequence of the cache has had or will have
    ///
    /// Raises
    /// ------
    /// MemoryError
    ///     There is no place for another sequence.
    fn new_sequence(&self, py: Python<'_>) -> PyResult<i64> {
        let number = self.with(py, |cache| cache.new_sequence().map(Sequence::number));
        number.map_err(|error| self.full(py, error))
    }

    /// Begins a sequence with the tokens of another. Both share all pages; a sequence that extends a shared
    /// page that is not full gets a copy of it.
    ///
    /// Returns
    /// -------
    /// int
    ///
    /// Raises
    /// ------
    /// TypeError, ValueError
    ///     The cache has no such sequence.
    /// MemoryError
    ///     There is no place for another sequence.
    fn fork(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::sequence)] sequence: i64,
    ) -> PyResult<i64> {
        let fork = |cache: &mut KvCache| cache.fork(cache.sequence(sequence));
        let number = self.ending(py, |cache| fork(cache).map(Sequence::number));
        number.map_err(|error| self.full(py, error))
    }

    /// Ends a sequence and frees the pages that no other sequence shares.
    ///
    /// Raises
    /// ------
    /// TypeError, ValueError
    ///     The cache has no such sequence.
    fn drop(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::sequence)] sequence: i64,
    ) -> PyResult<()> {
        self.ending(py, |cache| cache.drop_sequence(cache.sequence(sequence)))
    }

    /// Drops the tokens of a sequence from length on. A ring allows at least those of the last extension.
    ///
    /// Raises
    /// ------
    /// TypeError, ValueError
    ///     The cache has no such sequence, it is shorter, or a ring no longer has what would be the last tokens.
    fn truncate(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::sequence)] sequence: i64,
        #[pyo3(from_py_with = arguments::length)] length: usize,
    ) -> PyResult<()> {
        self.ending(py, |cache| cache.truncate(cache.sequence(sequence), length))
    }

    /// The number of tokens in a sequence.
    ///
    /// Raises
    /// ------
    /// TypeError, ValueError
    ///     The cache has no such sequence.
    fn length(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::sequence)] sequence: i64,
    ) -> PyResult<usize> {
        self.with(py, |cache| cache.length(cache.sequence(sequence)))
    }

    /// Makes room for more tokens, in all layers, and opens a step, whose keys and values write stores. fork,
    /// truncate and drop end it.
    ///
    /// Parameters
    /// ----------
    /// sequences : int or list
    ///     Numbers of sequences, each once; None is an empty place, with 0 tokens.
    /// tokens : int or list of int
    ///     One number for all, or one for each.
    /// packed : bool
    ///     Whether the rows of the step's arrays are packed without gaps, as if for one sequence. Otherwise
    ///     each sequence has as many rows as the largest of tokens.
    ///
    /// Raises
    /// ------
    /// TypeError, ValueError
    ///     The cache has no such sequence, or it would have more tokens than the cache was created for.
    /// MemoryError
    ///     No page is free.
    #[pyo3(signature = (sequences, tokens, *, packed=false),
           text_signature = "($self, sequences, tokens, *, packed=False)")]
    fn extend(
        &self,
        py: Python<'_>,
        sequences: &Bound<'_, PyAny>,
        tokens: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::packed)] packed: bool,
    ) -> PyResult<()> {
        let numbers = numbers(sequences)?;
        self.limits.check_entries(numbers.len())?;
        let mut counts = each::<usize>("tokens", tokens, numbers.len())?;
        if tokens.extract::<usize>().is_ok() {
            let all = numbers.iter().zip(&mut counts);
            all.filter(|(number, _)| number.is_none()).for_each(|(_, count)| *count = 0);
        }
        let (rows, of_step) = step(&counts, packed);
        let extended = self.with(py, |cache| {
            let list: Vec<_> =
                all_of(cache, &numbers).into_iter().zip(counts.iter().copied()).collect();
            cache.extend(&list, rows)?;
            self.open.store(of_step, Ordering::Relaxed);
            Ok(())
        });
        extended.map_err(|error| match error.is_instance_of::<PyMemoryError>(py) {
            true => no_page(&error.value(py).to_string()),
            false => self.or(py, error, |cache| self.limits.tokens(cache, &numbers, &counts)),
        })
    }

    /// Writes the keys and values of the step to a layer, converted to the type of the cache. Either may be None, but not
    /// both.
    ///
    /// Parameters
    /// ----------
    /// k, v : arrays of shape (B, G, S, D) and (B, G, S, E), or None
    ///     For the sequences of extend, float32, bfloat16 or float16, any non-negative strides; S is at least
    ///     the largest of tokens, and rows beyond those of a sequence are not read. After packed=True, of shape
    ///     (1, G, T, D) and (1, G, T, E), with the tokens of all sequences.
    /// layer : int
    ///
    /// Raises
    /// ------
    /// TypeError, ValueError
    ///     An argument has the wrong type or shape, no step is open, or the cache has no such layer.
    #[pyo3(signature = (k, v, layer=0))]
    fn write(
        &self,
        py: Python<'_>,
        k: Given<'_, '_>,
        v: Given<'_, '_>,
        #[pyo3(from_py_with = arguments::layer)] layer: usize,
    ) -> PyResult<()> {
        self.limits.check_layer(layer)?;
        if k.is_none() && v.is_none() {
            return Err(PyValueError::new_err(
                "k and v are both None: pass the keys, the values or both",
            ));
        }
        let read = |name, x: Option<_>| x.map(|x| four(name, x, FLOATS)).transpose();
        let (k, v) = (read("k", k)?, read("v", v)?);
        let given = [&k, &v].map(|x| x.as_ref().map(Rows4::new));
        self.with(py, |cache| {
            let given = given;
            let engine = Engine::cpu()?;
            // SAFETY: the call keeps the arrays alive; a program that modifies them meanwhile has a data race in
            // Python, too.
            let memory = |rows: &Option<Rows4>| unsafe {
                rows.as_ref().map(|rows| rows.memory(&engine)).transpose()
            };
            let stream = Stream::new(&engine)?;
            match (memory(&given[0])?, memory(&given[1])?) {
                (Some(keys), Some(values)) => cache.write(&stream, layer, &keys, &values),
                (Some(keys), None) => cache.write_keys(&stream, layer, &keys),
                (None, Some(values)) => cache.write_values(&stream, layer, &values),
                (None, None) => Ok(()),
            }
        })
    }

    /// Rotates keys as rope does and writes them to a layer in the same pass. Their positions are those of the
    /// step's tokens. For int8 and float8_e4m3fn, use rope and write instead.
    ///
    /// Parameters
    /// ----------
    /// k : array of shape (T, G, D)
    ///     The rows of the step: float32, bfloat16 or float16, converted to the type of the cache. If sequences
    ///     are padded to S tokens, those of sequence b start at b*S. Rows without a token are not read.
    /// layer : int
    /// frequencies, pairing, rotary_dims, magnitude, cos, sin, epsilon, scale, scale_plus_one, rounded
    ///     As for rope.
    ///
    /// Raises
    /// ------
    /// TypeError, ValueError
    ///     As for write, or pairing, frequencies or tables do not fit.
    /// NotImplementedError
    ///     The cache is of int8 or float8_e4m3fn.
    #[pyo3(signature = (k, layer=0, frequencies=None, *, pairing, rotary_dims=None, magnitude=1.0, cos=None,
                        sin=None, epsilon=None, scale=None, scale_plus_one=false, rounded=false),
           text_signature = "($self, k, layer=0, frequencies=None, *, pairing, rotary_dims=None, magnitude=1.0, \
                             cos=None, sin=None, epsilon=None, scale=None, scale_plus_one=False, rounded=False)")]
    #[expect(clippy::too_many_arguments, reason = "the parameters of the Python method")]
    fn write_rope<'py>(
        &self,
        py: Python<'py>,
        k: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = arguments::layer)] layer: usize,
        frequencies: Given<'_, 'py>,
        #[pyo3(from_py_with = arguments::pairing)] pairing: &str,
        #[pyo3(from_py_with = arguments::rotated)] rotary_dims: Option<usize>,
        #[pyo3(from_py_with = arguments::magnitude)] magnitude: f64,
        cos: Given<'_, 'py>,
        sin: Given<'_, 'py>,
        #[pyo3(from_py_with = arguments::optional_epsilon)] epsilon: Option<f64>,
        scale: Given<'_, 'py>,
        #[pyo3(from_py_with = arguments::scale_plus_one)] scale_plus_one: bool,
        #[pyo3(from_py_with = arguments::rounded)] rounded: bool,
    ) -> PyResult<()> {
        check_rotated(self.data_type)?;
        self.limits.check_layer(layer)?;
        let angles = Angles::new(frequencies, [cos, sin], pairing, rotary_dims, magnitude)?;
        let norm = HeadNorm { epsilon, scale, scale_plus_one, rounded };
        let work = Rotated::new(k, (&angles, &norm), (self.heads, self.sizes.0))?;
        let open = || self.open.load(Ordering::Relaxed);
        let done = self.with(py, move |cache| work.run(cache, layer, open()))?;
        done.map_err(PyValueError::new_err)
    }

    /// Attention of queries to the keys and values of a layer; see attention. A query that sees no key gives zeros:
    /// with "bottom_right", those of q that are more than the sequence has tokens.
    ///
    /// Parameters
    /// ----------
    /// q : array of shape (B, H, S, D), of the cache's type; of any type with int8 and float8_e4m3fn
    /// sequences : int or list
    ///     One for each of B; None is an empty place without keys.
    /// layer : int
    /// causal : by default "bottom_right", so the last query sees the last key; with False every query sees every key
    /// window : by default a ring's own; it may be narrower
    /// mask : array of shape (B, H, S, T)
    ///     As for attention, with T keys: at least one for each token of the longest of the sequences.
    /// scale, soft_cap, sinks, alibi_slopes, query_lengths, query_offsets, return_lse, return_entropy, out
    ///     As for attention.
    ///
    /// Returns
    /// -------
    /// out, or a new array of the library and element type of q. With return_lse or return_entropy, a tuple of it
    /// and these results, as attention returns them.
    ///
    /// Raises
    /// ------
    /// TypeError, ValueError, NotImplementedError
    ///     As for attention; or the cache has no such sequence or layer, or no keys and values of all its tokens.
    #[pyo3(signature = (q, sequences, layer=0, *, causal=None, window=None, scale=None, soft_cap=None, sinks=None,
                        alibi_slopes=None, mask=None, query_lengths=None, query_offsets=None, return_lse=false,
                        return_entropy=false, out=None),
           text_signature = "($self, q, sequences, layer=0, *, causal=\"bottom_right\", window=None, scale=None, \
                             soft_cap=None, sinks=None, alibi_slopes=None, mask=None, query_lengths=None, \
                             query_offsets=None, return_lse=False, return_entropy=False, out=None)")]
    #[expect(clippy::too_many_arguments, reason = "the parameters of the Python method")]
    fn attend<'py>(
        &self,
        py: Python<'py>,
        q: &Bound<'py, PyAny>,
        sequences: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = arguments::layer)] layer: usize,
        causal: Given<'_, 'py>,
        window: Given<'_, 'py>,
        #[pyo3(from_py_with = arguments::scale)] scale: Option<f64>,
        #[pyo3(from_py_with = arguments::soft_cap)] soft_cap: Option<f64>,
        sinks: Given<'_, 'py>,
        alibi_slopes: Given<'_, 'py>,
        mask: Given<'_, 'py>,
        query_lengths: Given<'_, 'py>,
        query_offsets: Given<'_, 'py>,
        #[pyo3(from_py_with = arguments::return_lse)] return_lse: bool,
        #[pyo3(from_py_with = arguments::return_entropy)] return_entropy: bool,
        out: Given<'_, 'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let numbers = &numbers(sequences)?;
        self.limits.check_entries(numbers.len())?;
        self.limits.check_layer(layer)?;
        let bottom_right = pyo3::types::PyString::new(py, "bottom_right").into_any();
        let keywords = Keywords {
            causal: causal.or(Some(&bottom_right)),
            window,
            scale,
            soft_cap,
            sinks,
            alibi_slopes,
            mask,
            mask_tokens: Some(match mask {
                Some(_) => self.with(py, |cache| longest(cache, numbers))?,
                None => 0,
            }),
            query_lengths,
            query_offsets,
            ..Keywords::default()
        };
        let Self { heads: groups, room: count, sizes, data_type, .. } = *self;
        let keys = Keys { groups, count, sizes, data_type };
        let mut call = Call::of_cache(q, numbers.len(), &keys, &keywords)?;
        if self.window.0 != Window::None {
            call.set_window(self.window, window)?;
        }
        call.add_results(out, [return_lse, return_entropy])?;
        let (problem, addresses) = call.problem(forward(return_lse))?;
        let work = Attend { problem, addresses, layer, numbers };
        self.with(py, move |cache| work.run(cache))?;
        call.finish(py)
    }

    /// The sizes of the cache, and how much of it is used.
    ///
    /// Returns
    /// -------
    /// dict of int: sequences; page_size, in tokens; page_bytes, in all layers; pages; used_pages;
    /// shared_pages, which several sequences use; copied_pages, since creation; bytes, of all memory
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = self.with(py, |cache| cache.stats())?;
        cache_stats::dict(py, &stats)
    }
}
