//! A cache of keys and values: the class that Python sees.
//!
//! Calls for one cache do not overlap: each locks it, without the interpreter's lock, so that threads which wait for one
//! of these do not have the other.

use std::sync::{Mutex, PoisonError};

use norm_rs::kv_cache::{KvCache, Rows, Sequence};
use norm_rs::primitive::Arg;
use norm_rs::sdpa::Window;
use norm_rs::{DataType, Engine, Memory, MemoryDesc, Result, Stream};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::attention::forward;
use crate::attention_arguments::{FLOATS, Keywords, four};
use crate::attention_call::{Call, Keys};
use crate::call::{Given, to_python};
use crate::elementwise::named;
use crate::plan::{Addresses, Operand, Problem, execute};
use crate::tensor::{Dims, Tensor};
use crate::windows::window;

/// The names of element types.
const TYPES: [(&str, DataType); 5] = [
    ("float32", DataType::F32),
    ("bfloat16", DataType::Bf16),
    ("float16", DataType::F16),
    ("int8", DataType::S8),
    ("float8_e4m3fn", DataType::F8E4m3),
];

/// The tokens of a page if nothing is said.
const PAGE: usize = 16;

/// A cache of the keys and values of attention, of several sequences in all layers of a model.
///
/// One step of a model is extend, and for each layer write and attend. Keys and values lie in pages of some
/// tokens. A token has the bits that attention gives it with plain arrays. A full cache raises MemoryError; a call
/// that fails changes nothing. Threads may call one cache, whose calls then wait for each other.
///
/// Parameters
/// ----------
/// kind : "contiguous", "paged" or "ring"
///     One page of all tokens for each sequence; as many pages of a pool as the tokens need; the same, and pages
///     that no further token of a sliding window sees are given back.
/// tokens : int
///     The most tokens of a sequence.
/// heads, key_size : int
///     Heads of keys and values, and elements of a head of keys.
/// value_size : int, optional
///     Elements of a head of values; key_size by default.
/// dtype : str or a type of an array library
///     The elements of keys and values: "float32", "bfloat16", "float16", "int8" or "float8_e4m3fn".
/// layers, sequences : int
///     Layers of the model, and the most sequences at a time.
/// step_tokens : int, optional
///     The most rows of the arrays of a step, all sequences together; by default all tokens of all sequences. The
///     memory of a ring grows with it.
/// page_size : int, optional
///     Tokens of a page, 16 by default; not for "contiguous".
/// pages : int, optional
///     Pages of the pool; by default as many as all sequences can need.
/// window : ("with_self", W) or ("before_self", W), for "ring"
///     As that of attention. With a third number N, the first N tokens of a sequence stay, too.
#[pyclass(frozen, module = "libnorm", name = "KvCache")]
pub(crate) struct PyKvCache {
    cache: Mutex<KvCache>,
    heads: usize,
    sizes: (usize, usize),
    data_type: DataType,
    /// The tokens that the pages of a sequence have room for.
    room: usize,
    window: (Window, usize),
}

/// The type that an object names.
fn data_type(dtype: &Bound<'_, PyAny>) -> PyResult<DataType> {
    let attribute = |name| dtype.getattr_opt(name)?.map(|found| found.extract()).transpose();
    let name = match dtype.extract::<String>() {
        Ok(name) => name,
        // A class of NumPy or ml_dtypes, a dtype, a type of PyTorch.
        Err(_) => match attribute("__name__")?.or(attribute("name")?) {
            Some(name) => name,
            None => dtype.to_string(),
        },
    };
    named("dtype", name.strip_prefix("torch.").unwrap_or(&name), &TYPES)
}

/// A number, or a list of them, one for each of `count`.
fn each<T: Copy + for<'x> FromPyObjectOwned<'x>>(
    name: &str,
    given: &Bound<'_, PyAny>,
    count: usize,
) -> PyResult<Vec<T>> {
    if let Ok(one) = given.extract::<T>() {
        return Ok(vec![one; count]);
    }
    let list = given.extract::<Vec<T>>().map_err(|_| {
        PyTypeError::new_err(format!("{name} must be an int or a list of them, none below 0"))
    })?;
    if list.len() == count {
        return Ok(list);
    }
    let len = list.len();
    Err(PyValueError::new_err(format!("{name} has {len} entries: pass one for each of {count}")))
}

/// The numbers of sequences: one, or a list, with None for an empty place.
fn numbers(given: &Bound<'_, PyAny>) -> PyResult<Vec<Option<i64>>> {
    if let Ok(one) = given.extract::<i64>() {
        return Ok(vec![Some(one)]);
    }
    given.extract().map_err(|_| {
        PyTypeError::new_err(
            "sequences must be the number of a sequence or a list of them, with None for an empty place",
        )
    })
}

fn sequences(cache: &KvCache, numbers: &[Option<i64>]) -> Vec<Sequence> {
    let sequence = |number: &Option<i64>| number.map_or(Sequence::NONE, |n| cache.sequence(n));
    numbers.iter().map(sequence).collect()
}

/// The array of a step, without Python's object.
struct Rows4 {
    dims: Dims,
    strides: Dims,
    data_type: DataType,
    data: *mut u8,
}

// SAFETY: the call that made it keeps the array, and reads it on one thread at a time.
unsafe impl Send for Rows4 {}

impl Rows4 {
    fn new(tensor: &Tensor<'_, '_>) -> Self {
        let (dims, strides) = (tensor.shape.clone(), tensor.strides.clone());
        Self { dims, strides, data_type: tensor.data_type, data: tensor.data }
    }

    /// # Safety
    /// The array lives as long as the memory, and is not written meanwhile.
    unsafe fn memory(&self, engine: &Engine) -> Result<Memory<'static>> {
        let desc = MemoryDesc::with_strides(&self.dims, self.data_type, &self.strides)?;
        // SAFETY: the caller's promise; the address is that of an array of this type and layout.
        unsafe { Memory::from_raw(engine, &desc, self.data) }
    }
}

/// What attention computes, without Python's objects.
struct Attend<'x> {
    problem: Problem,
    addresses: Addresses,
    layer: usize,
    numbers: &'x [Option<i64>],
}

// SAFETY: as for `Rows4`; the addresses are those of arrays and of results.
unsafe impl Send for Attend<'_> {}

impl Attend<'_> {
    fn run(mut self, cache: &mut KvCache) -> Result<()> {
        let list = sequences(cache, self.numbers);
        for argument in cache.sdpa_args(self.layer, &list)?.raw()? {
            let mut dims: Dims = argument.desc.dims().iter().copied().collect();
            // The rows of these sequences are the first.
            if matches!(argument.arg, Arg::PageTable | Arg::KeyLengths) {
                dims[0] = list.len();
            }
            let strides = argument.desc.strides().map(|strides| strides.iter().copied().collect());
            let data_type = argument.desc.data_type().unwrap_or(DataType::F32);
            let (arg, strides, dims) = (argument.arg, strides.unwrap_or_default(), Some(dims));
            self.problem.operands.push(Operand { arg, data_type, strides, dims });
            self.addresses.push(argument.data);
        }
        // SAFETY: the arrays are kept by the call and have these layouts, and so do the tensors of the cache, which this
        // borrows exclusively; results overlap nothing.
        unsafe { execute(&self.problem, &self.addresses) }
    }
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
}

#[pymethods]
impl PyKvCache {
    #[new]
    #[pyo3(signature = (kind, *, tokens, heads, key_size, value_size=None, dtype=None, layers=1, sequences=1,
                        step_tokens=None, page_size=None, pages=None, window=None),
           text_signature = "(kind, *, tokens, heads, key_size, value_size=None, dtype=None, layers=1, sequences=1, \
                             step_tokens=None, page_size=None, pages=None, window=None)")]
    #[expect(clippy::too_many_arguments, reason = "the parameters of the Python class")]
    fn new(
        kind: &str,
        tokens: usize,
        heads: usize,
        key_size: usize,
        value_size: Option<usize>,
        dtype: Given<'_, '_>,
        layers: usize,
        sequences: usize,
        step_tokens: Option<usize>,
        page_size: Option<usize>,
        pages: Option<usize>,
        window: Given<'_, '_>,
    ) -> PyResult<Self> {
        let data_type = dtype.map(data_type).transpose()?.unwrap_or(DataType::F32);
        let (width, first_keys) = self::window(window)?;
        let kind = named("kind", kind, &[("contiguous", 0), ("paged", 1), ("ring", 2)])?;
        if kind == 0 && page_size.is_some() {
            return Err(PyValueError::new_err(
                "page_size is given, but a contiguous cache has a page for each sequence: leave it out",
            ));
        }
        if (kind == 2) != window.is_some() {
            return Err(PyValueError::new_err(
                "window is for a ring, which needs it: pass kind=\"ring\" and window=(\"with_self\", W)",
            ));
        }
        let build = || {
            let engine = Engine::cpu()?;
            let page = page_size.unwrap_or(PAGE);
            let builder = match kind {
                0 => KvCache::contiguous(&engine, data_type),
                1 => KvCache::paged(&engine, data_type, page),
                _ => KvCache::ring(&engine, data_type, page, width),
            };
            let builder = builder.layers(layers).heads(heads).key_size(key_size).tokens(tokens);
            let builder = builder.value_size(value_size.unwrap_or(key_size)).sequences(sequences);
            let mut builder = builder.pages(pages.unwrap_or(0)).first_tokens(first_keys);
            if let Some(step_tokens) = step_tokens {
                builder = builder.step_tokens(step_tokens);
            }
            builder.build()
        };
        let cache = build().map_err(|error| to_python(&error))?;
        let columns = cache.page_table_desc(1).map_err(|error| to_python(&error))?.dims()[1];
        let page = cache.value_desc().dims()[2];
        Ok(Self {
            cache: Mutex::new(cache),
            heads,
            sizes: (key_size, value_size.unwrap_or(key_size)),
            data_type,
            room: columns * page,
            window: (width, first_keys),
        })
    }

    /// Begins a sequence of no tokens.
    ///
    /// Returns
    /// -------
    /// int, which no other sequence of the cache has or will have
    fn new_sequence(&self, py: Python<'_>) -> PyResult<i64> {
        self.with(py, |cache| cache.new_sequence().map(Sequence::number))
    }

    /// Begins a sequence with the tokens of another. Both share all pages; the first of them to extend a page that
    /// is not full gets a copy of it.
    ///
    /// Returns
    /// -------
    /// int
    fn fork(&self, py: Python<'_>, sequence: i64) -> PyResult<i64> {
        self.with(py, |cache| cache.fork(cache.sequence(sequence)).map(Sequence::number))
    }

    /// Ends a sequence. Pages that no other sequence has are free.
    fn drop(&self, py: Python<'_>, sequence: i64) -> PyResult<()> {
        self.with(py, |cache| cache.drop_sequence(cache.sequence(sequence)))
    }

    /// Drops the tokens of a sequence from length on. In a ring at least those of the last extension can be
    /// dropped.
    fn truncate(&self, py: Python<'_>, sequence: i64, length: usize) -> PyResult<()> {
        self.with(py, |cache| cache.truncate(cache.sequence(sequence), length))
    }

    /// The tokens of a sequence.
    fn length(&self, py: Python<'_>, sequence: i64) -> PyResult<usize> {
        self.with(py, |cache| cache.length(cache.sequence(sequence)))
    }

    /// Makes room for further tokens, in all layers, and opens a step, to which write writes. fork, truncate and drop
    /// end it.
    ///
    /// Parameters
    /// ----------
    /// sequences : int or list
    ///     Numbers of sequences, each once; None is an empty place, of no tokens.
    /// tokens : int or list of int
    ///     For all, or for each of them.
    /// packed : bool
    ///     Whether the rows of the step's arrays follow each other without gaps, as of one sequence. Otherwise each
    ///     sequence has as many as the largest of tokens.
    #[pyo3(signature = (sequences, tokens, *, packed=false),
           text_signature = "($self, sequences, tokens, *, packed=False)")]
    fn extend(
        &self,
        py: Python<'_>,
        sequences: &Bound<'_, PyAny>,
        tokens: &Bound<'_, PyAny>,
        packed: bool,
    ) -> PyResult<()> {
        let numbers = numbers(sequences)?;
        let mut counts = each::<usize>("tokens", tokens, numbers.len())?;
        if tokens.extract::<usize>().is_ok() {
            let all = numbers.iter().zip(&mut counts);
            all.filter(|(number, _)| number.is_none()).for_each(|(_, count)| *count = 0);
        }
        let rows = match counts.iter().max() {
            Some(&rows) if rows > 0 && !packed => Rows::Padded(rows),
            _ => Rows::Packed,
        };
        self.with(py, |cache| {
            let list: Vec<_> =
                self::sequences(cache, &numbers).into_iter().zip(counts.iter().copied()).collect();
            cache.extend(&list, rows)
        })
    }

    /// Writes the keys and values of the step to a layer, converted to the type of the cache. Either may be None.
    ///
    /// Parameters
    /// ----------
    /// k, v : arrays of shape (B, G, S, D) and (B, G, S, E), or None
    ///     For the sequences of extend, float32, bfloat16 or float16, any strides but negative ones; S is at least
    ///     the largest of tokens, and rows beyond those of a sequence are not read. After packed=True of shape
    ///     (1, G, T, D) and (1, G, T, E), with the tokens of all sequences.
    /// layer : int
    #[pyo3(signature = (k, v, layer=0))]
    fn write(
        &self,
        py: Python<'_>,
        k: Given<'_, '_>,
        v: Given<'_, '_>,
        layer: usize,
    ) -> PyResult<()> {
        let read = |name, x: Option<_>| x.map(|x| four(name, x, FLOATS)).transpose();
        let (k, v) = (read("k", k)?, read("v", v)?);
        let given = [&k, &v].map(|x| x.as_ref().map(Rows4::new));
        self.with(py, |cache| {
            let given = given;
            let engine = Engine::cpu()?;
            // SAFETY: the call keeps the arrays, and a program that changes them meanwhile has a race of its own.
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

    /// Attention of queries to the keys and values of a layer: see attention.
    ///
    /// Parameters
    /// ----------
    /// q : array of shape (B, H, S, D), of the type of the cache; with int8 and float8_e4m3fn of any
    /// sequences : int or list
    ///     One for each of B; None is an empty place, without keys.
    /// layer : int
    /// causal : by default "bottom_right": the last query sees the last key; False: every query sees every key
    /// window : of a ring by default its own; it may be narrower
    /// scale, soft_cap, sinks, alibi_slopes, query_lengths, query_offsets, return_lse, return_entropy, out
    ///     As for attention.
    ///
    /// Returns
    /// -------
    /// out, or a new array of the library and element type of q. With return_lse or return_entropy, a tuple of it
    /// and these results, as attention returns them.
    #[pyo3(signature = (q, sequences, layer=0, *, causal=None, window=None, scale=None, soft_cap=None, sinks=None,
                        alibi_slopes=None, query_lengths=None, query_offsets=None, return_lse=false,
                        return_entropy=false, out=None),
           text_signature = "($self, q, sequences, layer=0, *, causal=\"bottom_right\", window=None, scale=None, \
                             soft_cap=None, sinks=None, alibi_slopes=None, query_lengths=None, query_offsets=None, \
                             return_lse=False, return_entropy=False, out=None)")]
    #[expect(clippy::too_many_arguments, reason = "the parameters of the Python method")]
    fn attend<'py>(
        &self,
        py: Python<'py>,
        q: &Bound<'py, PyAny>,
        sequences: &Bound<'py, PyAny>,
        layer: usize,
        causal: Given<'_, 'py>,
        window: Given<'_, 'py>,
        scale: Option<f64>,
        soft_cap: Option<f64>,
        sinks: Given<'_, 'py>,
        alibi_slopes: Given<'_, 'py>,
        query_lengths: Given<'_, 'py>,
        query_offsets: Given<'_, 'py>,
        return_lse: bool,
        return_entropy: bool,
        out: Given<'_, 'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let bottom_right = pyo3::types::PyString::new(py, "bottom_right").into_any();
        let keywords = Keywords {
            causal: causal.or(Some(&bottom_right)),
            window,
            scale,
            soft_cap,
            sinks,
            alibi_slopes,
            query_lengths,
            query_offsets,
            ..Keywords::default()
        };
        let numbers = &numbers(sequences)?;
        let Self { heads: groups, room: count, sizes, data_type, .. } = *self;
        let keys = Keys { groups, count, sizes, data_type };
        let mut call = Call::of_cache(q, numbers.len(), &keys, &keywords)?;
        if self.window.0 != Window::None {
            call.set_window(self.window, window)?;
        }
        call.add_results(out, [return_lse, return_entropy])?;
        let (problem, addresses) = call.problem(forward(return_lse))?;
        let work = Attend { problem, addresses, layer, numbers };
        self.with(py, move |cache| {
            let work = work;
            work.run(cache)
        })?;
        call.finish(py)
    }

    /// The sizes of the cache, and how much of it is used.
    ///
    /// Returns
    /// -------
    /// dict of int: sequences; page_size, in tokens; page_bytes, of all layers; pages; used_pages, of sequences;
    /// shared_pages, of several sequences; copied_pages, since the creation; bytes, of all memory
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = self.with(py, |cache| cache.stats())?;
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
}
