//! The checked arguments of a call of attention.

use arrayvec::ArrayVec;
use norm_rs::DataType;
use norm_rs::primitive::{Arg, PropKind};
use norm_rs::sdpa::{Causal, Window};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::attention_arguments::{
    Bound4, FLOATS, KEYS, Keywords, Offsets, bound_scales, dense, four, mask4, pages, scales,
};
use crate::cache_mask::mask_of_cache;
use crate::call::{Given, compute};
use crate::elementwise::output;
use crate::layout::check_overlaps;
use crate::output::{Output, allocate};
use crate::plan::{Addresses, Attention, Operand, Operation, Problem};
use crate::tensor::{Tensor, type_name};
use crate::wanted::Wanted;
use crate::windows::window;

/// Sizes of keys and values, of arrays or of a cache.
pub(crate) struct Keys {
    /// Heads.
    pub(crate) groups: usize,
    /// The most keys of a sequence.
    pub(crate) count: usize,
    /// Elements of a head of keys, and of values.
    pub(crate) sizes: (usize, usize),
    pub(crate) data_type: DataType,
}

/// The arguments of a call.
pub(crate) struct Call<'a, 'py> {
    attention: Attention,
    /// Queries first.
    inputs: ArrayVec<Bound4<'a, 'py>, 13>,
    outputs: ArrayVec<Bound4<'a, 'py>, 5>,
    results: ArrayVec<Output<'py>, 5>,
    batch: usize,
    value_size: usize,
    /// The numbers of packed sequences of queries and of keys, and whether some rows belong to none.
    packed: [Option<usize>; 2],
    leaves: [bool; 2],
    /// The memory of a mask that was copied.
    _memory: Vec<u64>,
}

/// The number of sequences of queries; packed ones share one dimension of rows.
fn batch(q: &Tensor<'_, '_>, offsets: Option<&Offsets<'_, '_>>) -> PyResult<usize> {
    let Some(offsets) = offsets else { return Ok(q.shape[0]) };
    let mut shape = q.shape.clone();
    shape[0] = 1;
    q.expect_shape(&shape, "packed sequences are one after another, as one")?;
    Ok(offsets.sequences())
}

impl<'a, 'py> Call<'a, 'py> {
    /// The arguments of both directions, with arrays of keys and values.
    pub(crate) fn new(
        [q, k, v]: [&'a Bound<'py, PyAny>; 3],
        keywords: &Keywords<'a, 'py>,
        forward: bool,
    ) -> PyResult<Self> {
        keywords.check()?;
        let types = if forward { KEYS } else { FLOATS };
        let (q, k, v) = (four("q", q, FLOATS)?, four("k", k, types)?, four("v", v, types)?);
        let offsets = Offsets::read("query_offsets", keywords.query_offsets)?;
        let key_offsets = Offsets::read("key_offsets", keywords.key_offsets)?;
        let batch = batch(&q, offsets.as_ref())?;
        let pages = keywords.page_table.map(|table| pages(table, batch)).transpose()?;
        let [groups, page] = [1, 2].map(|at| k.shape[at]);
        let sequences = match (&pages, &key_offsets) {
            (Some(_), _) => k.shape[0],
            (None, Some(_)) => 1,
            (None, None) => batch,
        };
        let why = "sequences and elements are those of q";
        k.expect_shape(&[sequences, groups, page, q.shape[3]], why)?;
        let why = "sequences, heads and tokens are those of k";
        v.expect_shape(&[sequences, groups, page, v.shape[3]], why)?;
        if let Some(own) = &key_offsets
            && own.sequences() != batch
        {
            own.tensor.expect_shape(&[batch + 1], "one more than the sequences of q")?;
        }
        let count = page * pages.as_ref().map_or(1, |pages| pages.shape[1]);
        let sizes = (k.shape[3], v.shape[3]);
        let keys = Keys { groups, count, sizes, data_type: k.data_type };
        let mut call = Self::of(q, batch, &keys, keywords, offsets)?;
        let packed = key_offsets.as_ref().map(Offsets::sequences);
        call.packed[1] = packed;
        for (name, x, object, arg, is_keys) in [
            ("key_scales", &k, keywords.key_scales, Arg::KeyScales, true),
            ("value_scales", &v, keywords.value_scales, Arg::ValueScales, false),
        ] {
            let found = scales(name, x, call.q(), object)?;
            let bound = if is_keys { Bound4::keys } else { Bound4::new };
            call.inputs.extend(found.map(|scales| bound_scales(arg, scales, bound)));
        }
        // Keys and values come second and third.
        call.inputs.insert(1, Bound4::keys(Arg::Keys, k).packed(packed));
        call.inputs.insert(2, Bound4::new(Arg::Values, v).packed(packed));
        call.inputs.extend(pages.map(|pages| Bound4::new(Arg::PageTable, pages)));
        if let Some(own) = key_offsets {
            call.leaves[1] = own.leaves(page);
            call.inputs.push(Bound4::new(Arg::KeyOffsets, own.tensor));
        }
        Ok(call)
    }

    /// The arguments for queries of `count` sequences of a cache.
    pub(crate) fn of_cache(
        q: &'a Bound<'py, PyAny>,
        count: usize,
        keys: &Keys,
        keywords: &Keywords<'a, 'py>,
    ) -> PyResult<Self> {
        keywords.check()?;
        let q = four("q", q, FLOATS)?;
        let offsets = Offsets::read("query_offsets", keywords.query_offsets)?;
        let batch = batch(&q, offsets.as_ref())?;
        if batch != count {
            return Err(PyValueError::new_err(format!(
                "sequences has {count} entries, but q has {batch} sequences: pass one for each of them"
            )));
        }
        if FLOATS.contains(&keys.data_type) && keys.data_type != q.data_type {
            let wanted = [keys.data_type];
            return Err(Wanted::input("q", &wanted).wrong_type(type_name(q.data_type)));
        }
        let shape = [q.shape[0], q.shape[1], q.shape[2], keys.sizes.0];
        q.expect_shape(&shape, "elements are those of the keys of the cache")?;
        Self::of(q, batch, keys, keywords, offsets)
    }

    /// Queries, and all options except those of keys.
    fn of(
        q: Tensor<'a, 'py>,
        batch: usize,
        keys: &Keys,
        keywords: &Keywords<'a, 'py>,
        offsets: Option<Offsets<'a, 'py>>,
    ) -> PyResult<Self> {
        let ([heads, queries], groups) = ([1, 2].map(|at| q.shape[at]), keys.groups);
        if groups == 0 && heads > 0 || groups > 0 && heads % groups > 0 {
            return Err(PyValueError::new_err(format!(
                "q has {heads} heads and k {groups}: pass a multiple, such as {groups} or {}",
                2 * groups
            )));
        }
        let (window, first_keys) = window(keywords.window)?;
        let attention = Attention {
            causal: keywords.causal(queries, keys.count)?,
            window,
            first_keys,
            scale: keywords.scale.map(|scale| scale as f32),
            soft_cap: keywords.soft_cap.unwrap_or(0.0) as f32,
        };
        let packed = offsets.as_ref().map(Offsets::sequences);
        let leaves = offsets.as_ref().is_some_and(|offsets| offsets.leaves(queries));
        let mut inputs: ArrayVec<_, 13> = ArrayVec::new();
        inputs.push(Bound4::new(Arg::Queries, q).packed(packed));
        let mut memory = Vec::new();
        if let Some(mask) = keywords.mask {
            let scores = [batch, heads, queries, keys.count];
            inputs.push(match keywords.mask_tokens {
                None => mask4(mask, scores)?,
                Some(tokens) => {
                    let (mask, own) = mask_of_cache(mask, scores, tokens)?;
                    memory = own;
                    mask
                }
            });
        }
        let per_head = (DataType::F32, &[heads][..], "one element for each head of q");
        let per_sequence = (DataType::S32, &[batch][..], "one element for each sequence of q");
        for (arg, name, object, expected) in [
            (Arg::Sinks, "sinks", keywords.sinks, per_head),
            (Arg::AlibiSlopes, "alibi_slopes", keywords.alibi_slopes, per_head),
            (Arg::QueryLengths, "query_lengths", keywords.query_lengths, per_sequence),
            (Arg::KeyLengths, "key_lengths", keywords.key_lengths, per_sequence),
        ] {
            let tensor = object.map(|object| dense(name, object, expected)).transpose()?;
            inputs.extend(tensor.map(|tensor| Bound4::new(arg, tensor)));
        }
        inputs.extend(offsets.map(|own| Bound4::new(Arg::QueryOffsets, own.tensor)));
        Ok(Self {
            attention,
            inputs,
            outputs: ArrayVec::new(),
            results: ArrayVec::new(),
            batch,
            value_size: keys.sizes.1,
            packed: [packed, None],
            leaves: [leaves, false],
            _memory: memory,
        })
    }

    fn q(&self) -> &Tensor<'a, 'py> {
        &self.inputs[0].tensor
    }

    /// The sizes of the result; without the last, those of log-sum-exp.
    fn shape_of_dst(&self) -> [usize; 4] {
        let [batch, heads, queries] = [0, 1, 2].map(|at| self.q().shape[at]);
        [batch, heads, queries, self.value_size]
    }

    fn add(&mut self, bound: Bound4<'a, 'py>, result: Output<'py>) {
        self.outputs.push(bound);
        self.results.push(result);
    }

    /// Adds the results of the forward pass.
    pub(crate) fn add_results(
        &mut self,
        out: Given<'a, 'py>,
        [lse, entropy]: [bool; 2],
    ) -> PyResult<()> {
        let shape = self.shape_of_dst();
        let expected = (FLOATS, &shape[..], "heads and tokens are those of q, elements those of v");
        let (dst, result) = output("out", out, self.q(), expected)?;
        if out.is_none() {
            clear(&dst, self.leaves[0]);
        }
        self.add(Bound4::new(Arg::Dst, dst).packed(self.packed[0]), result);
        if lse {
            let (sums, result) = allocate("lse", self.q(), DataType::F32, &shape[..3])?;
            clear(&sums, self.leaves[0]);
            self.add(Bound4::sums(sums), result);
        }
        if entropy {
            let shape = [self.batch, shape[1]];
            let (entropy, result) = allocate("entropy", self.q(), DataType::F32, &shape)?;
            self.add(Bound4::new(Arg::Entropy, entropy), result);
        }
        Ok(())
    }

    /// Adds the results of the forward pass that backward reads, and the gradients.
    pub(crate) fn add_gradients(
        &mut self,
        [dst, diff_dst, lse]: [&'a Bound<'py, PyAny>; 3],
        diff_mask: bool,
    ) -> PyResult<()> {
        let shape = self.shape_of_dst();
        let why = "it is that of the result of attention";
        let dst = four("dst", dst, FLOATS)?;
        dst.expect_shape(&shape, why)?;
        let gradient = four("diff_dst", diff_dst, FLOATS)?;
        gradient.expect_type_of(self.q())?;
        gradient.expect_shape(&shape, why)?;
        let sums = dense("lse", lse, (DataType::F32, &shape[..3], "one element for each query"))?;
        for (index, name, arg) in [
            (0, "diff_q", Arg::DiffQueries),
            (1, "diff_k", Arg::DiffKeys),
            (2, "diff_v", Arg::DiffValues),
        ] {
            let like = &self.inputs[index].tensor;
            let (tensor, result) = allocate(name, like, like.data_type, &like.shape)?;
            let side = index.min(1);
            clear(&tensor, self.leaves[side]);
            let bound = if index == 1 { Bound4::keys } else { Bound4::new };
            self.add(bound(arg, tensor).packed(self.packed[side]), result);
        }
        let find = |arg| self.inputs.iter().find(|bound: &&Bound4<'_, '_>| bound.arg == arg);
        if let Some(sinks) = find(Arg::Sinks) {
            let like = &sinks.tensor;
            let (tensor, result) = allocate("diff_sinks", like, DataType::F32, &like.shape)?;
            self.add(Bound4::new(Arg::DiffSinks, tensor), result);
        }
        if diff_mask {
            let find = |arg| self.inputs.iter().find(|bound: &&Bound4<'_, '_>| bound.arg == arg);
            let mask = find(Arg::AttnMask).filter(|mask| mask.tensor.data_type != DataType::U8);
            let like = &mask.ok_or_else(no_gradient)?.tensor;
            let (tensor, result) = allocate("diff_mask", like, like.data_type, &like.shape)?;
            self.add(Bound4::new(Arg::DiffAttnMask, tensor).widened(), result);
        }
        self.inputs.push(Bound4::new(Arg::Dst, dst).packed(self.packed[0]));
        self.inputs.push(Bound4::new(Arg::DiffDst, gradient).packed(self.packed[0]));
        self.inputs.push(Bound4::sums(sums));
        Ok(())
    }

    /// Checks the arguments against each other. Returns the key of the primitive and the addresses.
    pub(crate) fn problem(&self, prop_kind: PropKind) -> PyResult<(Problem, Addresses)> {
        let written: ArrayVec<_, 5> = self.outputs.iter().map(|bound| &bound.tensor).collect();
        let read: ArrayVec<_, 13> = self.inputs.iter().map(|bound| &bound.tensor).collect();
        let in_place = (self.q(), written[0]);
        let in_place = if prop_kind == PropKind::Backward { &[][..] } else { &[in_place] };
        check_overlaps(&written, &read, in_place)?;
        let (mut operands, mut addresses) = (ArrayVec::new(), Addresses::new());
        for Bound4 { arg, tensor, dims, strides } in self.inputs.iter().chain(&self.outputs) {
            let (strides, dims) = (strides.clone(), Some(dims.clone()));
            operands.push(Operand { arg: *arg, data_type: tensor.data_type, strides, dims });
            addresses.push(tensor.data);
        }
        let operation = Operation::Attention(self.attention);
        let dims = self.inputs[0].dims.clone();
        Ok((Problem { prop_kind, operation, dims, operands }, addresses))
    }

    /// Sets the window of a ring, which no longer has the pages before it: its own, or a narrower one.
    pub(crate) fn set_window(
        &mut self,
        (window, first_keys): (Window, usize),
        given: Given<'_, '_>,
    ) -> PyResult<()> {
        if self.attention.causal != Causal::BottomRight {
            return Err(PyValueError::new_err(
                "causal is not \"bottom_right\", but a ring has the last tokens alone: leave it out",
            ));
        }
        let own = &mut self.attention;
        if given.is_none() {
            (own.window, own.first_keys) = (window, first_keys);
        }
        if own.window.keys() > window.keys() || own.first_keys > first_keys {
            return Err(PyValueError::new_err(
                "window is wider than that of the ring, which does not keep what it sees: pass a narrower one or none",
            ));
        }
        Ok(())
    }

    /// The arrays for the caller.
    pub(crate) fn finish(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut results = ArrayVec::<_, 5>::new();
        for result in self.results {
            results.push(result.finish()?);
        }
        if results.len() == 1 {
            return Ok(results.remove(0));
        }
        Ok(pyo3::types::PyTuple::new(py, results)?.into_any())
    }

    pub(crate) fn run(self, py: Python<'py>, prop_kind: PropKind) -> PyResult<Bound<'py, PyAny>> {
        let (problem, addresses) = self.problem(prop_kind)?;
        compute(py, &problem, &addresses)?;
        self.finish(py)
    }
}

/// Sets a new array to zeros if some rows are not written.
fn clear(tensor: &Tensor<'_, '_>, leaves: bool) {
    if leaves {
        // SAFETY: a new array is dense, and nobody else has it yet.
        unsafe { tensor.data.write_bytes(0, tensor.len() * tensor.data_type.size()) };
    }
}

fn no_gradient() -> PyErr {
    PyValueError::new_err(
        "return_diff_mask is True, but there is no mask that is added: pass a mask of float32, bfloat16 or float16",
    )
}
