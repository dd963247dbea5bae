//! The data of a cache: writing the keys and values of steps, rope, and the arguments of attention.

use crate::buffers::Buffer;
use crate::cache::Cache;
use crate::fill::told;
use crate::handles::{has_message, made, message};
use crate::layouts::{Descs, described};
use crate::source::Source;
use norm_sys as sys;
use std::ffi::c_void;
use std::ptr::null_mut;

/// The bytes of an element, which is a small integer that every type represents.
fn encoded(number: u8, data_type: u32) -> Vec<u8> {
    let bits = f32::from(number).to_bits();
    match data_type {
        sys::norm_f32 => bits.to_le_bytes().to_vec(),
        sys::norm_bf16 => ((bits >> 16) as u16).to_le_bytes().to_vec(),
        // The exponent's bias is 15 instead of 127; the mantissa has 10 bits.
        _ if number == 0 => vec![0, 0],
        _ => (((bits >> 13) - ((127 - 15) << 10)) as u16).to_le_bytes().to_vec(),
    }
}

/// The element of a token with this content. It depends on the head and on the index in the head.
fn element(content: u8, head: i64, place: i64) -> u8 {
    (i64::from(content) + 3 * head + place).rem_euclid(200) as u8
}

/// The strides and the element size of a descriptor with four dimensions.
fn layout(desc: sys::const_norm_memory_desc_t) -> ([i64; 4], usize, usize) {
    let mut strides: *const [i64; 4] = std::ptr::null();
    let data_type: u32 = told(desc, sys::norm_query_data_type);
    // SAFETY: descriptors lend arrays of 12 numbers.
    unsafe {
        let out = (&raw mut strides).cast::<c_void>();
        sys::norm_memory_desc_query(desc, sys::norm_query_strides, out);
        let size = sys::norm_data_type_size(data_type);
        (*strides, size, sys::norm_memory_desc_get_size(desc))
    }
}

/// A memory over a guarded buffer.
struct Tensor {
    buffer: Buffer,
    memory: sys::norm_memory_t,
}

impl Drop for Tensor {
    fn drop(&mut self) {
        // SAFETY: a live handle, or NULL, that is not used again.
        unsafe { sys::norm_memory_destroy(self.memory) };
    }
}

/// The buffer of a memory.
#[allow(clippy::undocumented_unsafe_blocks)] // live memories, lent for this long
fn data(memory: sys::norm_memory_t) -> (*const u8, sys::const_norm_memory_desc_t) {
    let (mut data, mut desc): (*mut c_void, _) = (null_mut(), std::ptr::null());
    unsafe {
        assert_eq!(sys::norm_memory_get_data_handle(memory, &raw mut data), sys::norm_success);
        assert_eq!(sys::norm_memory_get_memory_desc(memory, &raw mut desc), sys::norm_success);
    }
    (data.cast(), desc)
}

// SAFETY of the blocks in this file: handles are live, arrays have the lengths that are passed, and the memories of a
// cache have the sizes of their descriptors.
impl Cache {
    /// The rows of the open step's tensors: the number of sequences, the rows of each, and the row of each token.
    fn step_rows(&self) -> (i64, i64) {
        let Some(step) = &self.step else { return (1, 1) };
        let sum: usize = step.parts.iter().map(|part| part.tokens).sum();
        let most = step.parts.iter().map(|part| part.tokens).max().unwrap_or(0);
        if step.rows == 0 { (1, sum as i64) } else { (step.parts.len() as i64, most as i64) }
    }

    /// Calls a function with each token of the step, and its sequence and row in the tensor.
    fn each_token(&self, mut visit: impl FnMut(usize, usize, i64, i64)) {
        let (mut row, Some(step)) = (0, &self.step) else { return };
        for (b, part) in step.parts.iter().enumerate() {
            for s in 0..part.tokens {
                let Some(at) = part.at else { continue };
                let place = if step.rows == 0 { (0, row) } else { (b as i64, s as i64) };
                visit(at, part.start + s, place.0, place.1);
                row += 1;
            }
        }
    }

    /// A tensor of the step with the content `first + token`; `None` if the library refuses it.
    fn rows_of_step(
        &self,
        source: &mut Source<'_>,
        engine: sys::norm_engine_t,
        slot: usize,
        first: u8,
    ) -> Option<(Tensor, bool)> {
        let (b, s) = self.step_rows();
        let mut dims = [b, self.heads, s + source.below(2) as i64, self.sizes[slot]];
        let spoiled = source.one_in(10);
        if spoiled {
            dims[source.below(4)] = source.one_of(&[0, 1, 2, 7]);
        }
        let floats = [sys::norm_f32, sys::norm_bf16, sys::norm_f16];
        let data_type = if spoiled { sys::norm_s8 } else { source.one_of(&floats) };
        let mut descs = Descs::default();
        let dense = source.one_in(2);
        // The layout of a projection: B x S x G x D.
        let strides = [dims[1] * dims[2] * dims[3], dims[3], dims[1] * dims[3], 1];
        let desc = descs.keep(described(&dims, data_type, (!dense).then_some(&strides)));
        let bytes = unsafe { sys::norm_memory_desc_get_size(desc) };
        if desc.is_null() || bytes >= crate::buffers::MOST {
            return None;
        }
        let buffer = Buffer::new(bytes, slot, source.one_in(2), source.one_in(6));
        buffer.fill(|_| 0x7f);
        if !spoiled && bytes > 0 {
            let (strides, size, _) = layout(desc);
            self.each_token(|_, token, b, s| {
                for (g, d) in (0..dims[1]).flat_map(|g| (0..dims[3]).map(move |d| (g, d))) {
                    let at = b * strides[0] + g * strides[1] + s * strides[2] + d * strides[3];
                    let content = first.wrapping_add(token as u8);
                    let code = encoded(element(content, g, d), data_type);
                    let to = unsafe { buffer.as_mut_ptr().add(at as usize * size) };
                    unsafe { std::ptr::copy_nonoverlapping(code.as_ptr(), to, size) };
                }
            });
        }
        buffer.protect(slot);
        let handle = buffer.as_mut_ptr().cast();
        let memory = made(|out| unsafe { sys::norm_memory_create(out, desc, engine, handle) })?;
        Some((Tensor { buffer, memory }, spoiled))
    }

    /// Writes keys and values to a layer.
    pub(crate) fn write(
        &mut self,
        source: &mut Source<'_>,
        engine: sys::norm_engine_t,
        stream: sys::norm_stream_t,
    ) {
        let first = source.byte();
        let Some((keys, bad_keys)) = self.rows_of_step(source, engine, 0, first) else { return };
        let Some((values, bad_values)) = self.rows_of_step(source, engine, 1, first) else {
            return;
        };
        let has = [!source.one_in(4), !source.one_in(4)];
        let layer = if source.one_in(12) { -1 } else { source.below(self.layers + 1) as i64 };
        let memory = |has: bool, tensor: &Tensor| if has { tensor.memory } else { null_mut() };
        let (k, v) = (memory(has[0], &keys), memory(has[1], &values));
        let before = [keys.buffer.contents(), values.buffer.contents()];
        let status = unsafe { sys::norm_kv_cache_write(self.handle, stream, layer, k, v) };
        assert!(
            before == [keys.buffer.contents(), values.buffer.contents()],
            "inputs were written"
        );
        let in_range = (0..self.layers as i64).contains(&layer);
        let sound = in_range && self.step.is_some() && has != [false; 2];
        if status != sys::norm_success {
            has_message();
            let spoiled = has[0] && bad_keys || has[1] && bad_values;
            assert!(spoiled || !sound, "{}", message());
            return;
        }
        assert!(sound, "a write to layer {layer}");
        let mut written = Vec::new();
        self.each_token(|at, token, _, _| written.push((at, token)));
        if let Some(step) = self.step.as_mut() {
            let written = &mut step.written[layer as usize];
            *written = [written[0] || has[0], written[1] || has[1]];
        }
        let known = [has[0] && !bad_keys, has[1] && !bad_values];
        for (at, token) in written {
            for part in 0..2 {
                if has[part] {
                    let content = known[part].then_some(first.wrapping_add(token as u8));
                    self.sequences[at].tokens[token][layer as usize][part] = content;
                }
            }
        }
    }

    /// Whether one of the sequences has tokens in the open step that a layer lacks.
    fn lacks(&self, layer: usize, numbers: &[i64]) -> bool {
        let Some(step) = &self.step else { return false };
        let [keys, values] = step.written[layer];
        if (keys || self.roped[layer]) && values {
            return false;
        }
        let named = |at: usize| numbers.contains(&self.sequences[at].number);
        let is_new = |part: &super::cache::Part| part.tokens > 0 && part.at.is_some_and(named);
        step.parts.iter().any(is_new)
    }

    /// The arguments of a layer for sequences, with -1 for an empty place. They must be refused if the sequences'
    /// tokens were not written.
    pub(crate) fn arguments(
        &self,
        layer: usize,
        numbers: &[i64],
    ) -> Option<Vec<sys::norm_exec_arg_t>> {
        let mut args = [sys::norm_exec_arg_t { arg: 0, memory: null_mut() }; 6];
        let (mut nargs, count) = (6, numbers.len() as i32);
        let status = unsafe {
            let (numbers, nargs) = (numbers.as_ptr(), &raw mut nargs);
            let args = args.as_mut_ptr();
            sys::norm_kv_cache_get_arguments(self.handle, layer as i64, count, numbers, nargs, args)
        };
        let lacks = self.lacks(layer, numbers);
        assert_eq!(status == sys::norm_invalid_arguments, lacks, "{}", message());
        assert!(lacks || status == sys::norm_success, "{}", message());
        (!lacks).then(|| args[..nargs as usize].to_vec())
    }

    /// Requests arguments and descriptors with wrong numbers or too little room.
    pub(crate) fn ask(&mut self, source: &mut Source<'_>) {
        let hostile = [-1, 0, 1, 5, i64::MAX, i64::MIN];
        let numbers: [i64; 6] = std::array::from_fn(|_| source.one_of(&hostile));
        let mut args = [sys::norm_exec_arg_t { arg: 7, memory: null_mut() }; 8];
        let room = source.one_of(&[0, 2, 3, 4, 5, 6, -1, i32::MIN]);
        let count = source.one_of(&[0, 1, 2, 6, -1, i32::MIN]);
        let (mut nargs, layer) = (room, source.one_of(&[0, 1, 2, -1, i64::MAX]));
        let (many, out) = (&raw mut nargs, args.as_mut_ptr());
        let of_rope = source.one_in(3);
        let status = unsafe {
            if of_rope {
                sys::norm_kv_cache_get_rope_arguments(self.handle, layer, many, out)
            } else {
                let numbers = numbers.as_ptr();
                sys::norm_kv_cache_get_arguments(self.handle, layer, count, numbers, many, out)
            }
        };
        let written = args.iter().filter(|arg| arg.arg != 7).count() as i32;
        if status == sys::norm_success {
            assert!(written == nargs && nargs <= room, "{written} {nargs} {room}");
            if of_rope {
                self.roped[layer as usize] = true;
            }
        } else {
            has_message();
            assert!(written == 0 && nargs == room, "a refused call wrote arguments");
        }
        let mut descs = [std::ptr::without_provenance_mut(0x5a5a); 4];
        let at: [_; 4] = std::array::from_fn(|i| &raw mut descs[i]);
        let status =
            unsafe { sys::norm_kv_cache_get_descs(self.handle, count, at[0], at[1], at[2], at[3]) };
        if status == sys::norm_success {
            descs.iter().for_each(|desc| unsafe { _ = sys::norm_memory_desc_destroy(*desc) });
        } else {
            has_message();
            assert!(descs.iter().all(|desc| desc.addr() == 0x5a5a), "a refused call wrote");
        }
    }

    /// Compares the contents of all sequences with the model.
    pub(crate) fn verify(&self) {
        for layer in 0..self.layers {
            for sequence in &self.sequences {
                let Some(args) = self.arguments(layer, &[sequence.number]) else { continue };
                if !self.is_quantized() {
                    self.verify_sequence(layer, &sequence.tokens, &args);
                }
            }
        }
    }

    fn verify_sequence(
        &self,
        layer: usize,
        tokens: &[Vec<super::cache::Token>],
        args: &[sys::norm_exec_arg_t],
    ) {
        let (table, _) = data(args[2].memory);
        let (lengths, _) = data(args[3].memory);
        let length = unsafe { lengths.cast::<i32>().read() };
        assert_eq!(length as usize, tokens.len());
        for part in 0..2 {
            let (keys, desc) = data(args[part].memory);
            let (strides, size, bytes) = layout(desc);
            let page = crate::fill::desc_dim(desc, 3 - part);
            for (token, layers) in tokens.iter().enumerate() {
                let Some(content) = layers[layer][part] else { continue };
                // Whether the next token sees it.
                let is_seen = token + self.window > tokens.len() || token < self.first_tokens;
                if self.kind == sys::norm_kv_ring && !is_seen {
                    continue;
                }
                let (column, slot) = (token as i64 / page, token as i64 % page);
                let n = unsafe { table.cast::<i32>().add(column as usize).read() };
                for (g, d) in [(0, 0), (self.heads - 1, self.sizes[part] - 1)] {
                    let places = if part == 0 {
                        [i64::from(n), g, d, slot]
                    } else {
                        [i64::from(n), g, slot, d]
                    };
                    let at: i64 = places.iter().zip(strides).map(|(p, s)| p * s).sum();
                    assert!(at >= 0 && at as usize * size < bytes, "page {n} of token {token}");
                    let found =
                        unsafe { std::slice::from_raw_parts(keys.add(at as usize * size), size) };
                    let want = encoded(element(content, g, d), self.data_type);
                    assert_eq!(found, want, "layer {layer}, token {token}, part {part}");
                }
            }
        }
    }
}
