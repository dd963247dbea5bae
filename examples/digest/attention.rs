//! Attention, forward and backward: masks, windows, pages, packed sequences, and quantized keys and values.

use crate::run::{self, Ids};
use crate::{Library, Numbers, check};
use norm_sys as sys;
use std::ptr::{null, null_mut};

const BATCH: i64 = 2;
const HEADS: i64 = 4;
const GROUPS: i64 = 2;

const KEY_SCALES: i32 = sys::NORM_ARG_ATTR_SCALES | sys::NORM_ARG_KEYS;
const VALUE_SCALES: i32 = sys::NORM_ARG_ATTR_SCALES | sys::NORM_ARG_VALUES;

const IDS: Ids<'_> = Ids {
    inputs: &[
        sys::NORM_ARG_QUERIES,
        sys::NORM_ARG_KEYS,
        sys::NORM_ARG_VALUES,
        KEY_SCALES,
        VALUE_SCALES,
        sys::NORM_ARG_ATTN_MASK,
        sys::NORM_ARG_PAGE_TABLE,
        sys::NORM_ARG_SINKS,
        sys::NORM_ARG_ALIBI_SLOPES,
        sys::NORM_ARG_QUERY_LENGTHS,
        sys::NORM_ARG_KEY_LENGTHS,
        sys::NORM_ARG_QUERY_OFFSETS,
        sys::NORM_ARG_KEY_OFFSETS,
        sys::NORM_ARG_DIFF_DST,
    ],
    outputs: &[
        sys::NORM_ARG_DST,
        sys::NORM_ARG_WORKSPACE,
        sys::NORM_ARG_ENTROPY,
        sys::NORM_ARG_DIFF_QUERIES,
        sys::NORM_ARG_DIFF_KEYS,
        sys::NORM_ARG_DIFF_VALUES,
        sys::NORM_ARG_DIFF_SINKS,
        sys::NORM_ARG_DIFF_ATTN_MASK,
    ],
};

/// Queries and keys of each sequence, and the sizes of keys and values.
#[derive(Clone, Copy)]
struct Shape {
    queries: i64,
    keys: i64,
    key_size: i64,
    value_size: i64,
}

/// Few rows, more than one block of keys for many rows, and long heads.
const SHAPES: [Shape; 3] = [
    Shape { queries: 2, keys: 300, key_size: 64, value_size: 33 },
    Shape { queries: 13, keys: 260, key_size: 20, value_size: 24 },
    Shape { queries: 13, keys: 40, key_size: 130, value_size: 100 },
];

/// A problem without its shape and the type of queries.
#[derive(Clone, Copy)]
struct Options {
    name: &'static str,
    mask_type: u32,
    /// The kind, the number of keys, and the first keys.
    window: (u32, i64, i64),
    /// The type of the mask.
    mask: Option<u32>,
    /// Keys of a page; 0 without pages.
    page: i64,
    /// The type of keys and values, if it is not that of the queries.
    stored: Option<u32>,
    soft_cap: f32,
    flags: u32,
}

impl Options {
    /// Backward has neither pages nor other types of keys.
    fn has_gradient(&self) -> bool {
        self.page == 0 && self.stored.is_none()
    }

    fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    fn pages(&self, shape: Shape) -> i64 {
        (shape.keys + self.page - 1) / self.page
    }
}

fn options() -> [Options; 15] {
    let plain = Options {
        name: "plain",
        mask_type: sys::norm_attn_mask_undef,
        window: (sys::norm_window_none, 0, 0),
        mask: None,
        page: 0,
        stored: None,
        soft_cap: 0.0,
        flags: 0,
    };
    let causal = Options { name: "causal", mask_type: sys::norm_attn_mask_bottom_right, ..plain };
    let lengths = sys::norm_sdpa_query_lengths | sys::norm_sdpa_key_lengths;
    let window = (sys::norm_window_with_self, 33, 4);
    let (sinks, alibi, entropy) =
        (sys::norm_sdpa_sinks, sys::norm_sdpa_alibi, sys::norm_sdpa_entropy);
    let (f32, half) = (Some(sys::norm_f32), Some(sys::norm_bf16));
    let (s8, f8) = (Some(sys::norm_s8), Some(sys::norm_f8_e4m3));
    let buffer = sys::norm_attn_mask_buffer;
    let packed = sys::norm_sdpa_query_offsets | sys::norm_sdpa_key_offsets;
    [
        plain,
        causal,
        Options { name: "top_left", mask_type: sys::norm_attn_mask_top_left, ..plain },
        Options { name: "window", window, ..causal },
        Options { name: "before_self", window: (sys::norm_window_before_self, 9, 0), ..causal },
        Options { name: "mask", mask: f32, ..causal },
        Options { name: "u8_mask", mask_type: buffer, mask: Some(sys::norm_u8), ..plain },
        Options { name: "lengths", flags: lengths, ..causal },
        Options { name: "packed", flags: packed, ..causal },
        Options { name: "pages", page: 16, flags: lengths, ..causal },
        Options { name: "s8", stored: s8, flags: entropy, ..causal },
        Options { name: "s8_pages", stored: s8, page: 7, flags: lengths, window, ..causal },
        Options { name: "f8", stored: f8, flags: sinks, ..causal },
        Options { name: "scores", soft_cap: 5.0, flags: sinks | alibi | entropy, ..plain },
        Options {
            name: "all",
            window,
            mask: half,
            soft_cap: 5.0,
            flags: sinks | alibi | entropy | lengths,
            ..causal
        },
    ]
}

/// Sequences x heads x tokens x elements, with tokens before heads in memory.
struct Tokens {
    data_type: u32,
    dims: [i64; 4],
    strides: [i64; 4],
}

impl Tokens {
    fn new([batch, heads, tokens, size]: [i64; 4], data_type: u32, options: &Options) -> Self {
        let is_packed = options.has(sys::norm_sdpa_query_offsets);
        let rows = if is_packed { batch * tokens } else { tokens };
        let sequence = if is_packed { 0 } else { rows * heads * size };
        let (dims, strides) = ([batch, heads, rows, size], [sequence, size, heads * size, 1]);
        Self { data_type, dims, strides }
    }

    /// With the last two dimensions swapped, which changes nothing in memory.
    fn turned(mut self) -> Self {
        self.dims.swap(2, 3);
        self.strides.swap(2, 3);
        self
    }

    fn desc(&self) -> sys::norm_memory_desc_t {
        let (mut desc, ndims) = (null_mut(), self.dims.len() as i32);
        let (dims, strides) = (self.dims.as_ptr(), self.strides.as_ptr());
        let (to, data_type) = (&raw mut desc, self.data_type);
        // SAFETY: there are four dimensions and strides.
        check(unsafe {
            sys::norm_memory_desc_create_with_strides(to, ndims, dims, data_type, strides)
        });
        desc
    }
}

/// Scales for each token and head, of s8.
fn attributes(options: &Options) -> sys::norm_primitive_attr_t {
    let mut attr = null_mut();
    // SAFETY: the attributes are written before they are read.
    unsafe {
        check(sys::norm_primitive_attr_create(&raw mut attr));
        if options.stored == Some(sys::norm_s8) {
            check(sys::norm_primitive_attr_set_scales_mask(attr, sys::NORM_ARG_KEYS, 11));
            check(sys::norm_primitive_attr_set_scales_mask(attr, sys::NORM_ARG_VALUES, 7));
        }
    }
    attr
}

/// The descriptors of forward and, if there is one, of backward.
fn descriptors(
    library: &Library,
    options: &Options,
    shape: Shape,
    data_type: u32,
) -> Vec<sys::norm_primitive_desc_t> {
    let Shape { queries, keys, key_size, value_size } = shape;
    let stored = options.stored.unwrap_or(data_type);
    let (sequences, places) = match options.page {
        0 => (BATCH, keys),
        page => (BATCH * options.pages(shape) + 2, page),
    };
    let q = Tokens::new([BATCH, HEADS, queries, key_size], data_type, options).desc();
    let k = Tokens::new([sequences, GROUPS, places, key_size], stored, options).turned().desc();
    let v = Tokens::new([sequences, GROUPS, places, value_size], stored, options).desc();
    let dst = Tokens::new([BATCH, HEADS, queries, value_size], data_type, options).desc();
    let mask = match options.mask {
        Some(data_type) => Library::desc(&[BATCH, 1, queries, keys], data_type),
        None => null_mut(),
    };
    let table = match options.page {
        0 => null_mut(),
        _ => Library::desc(&[BATCH, options.pages(shape)], sys::norm_s32),
    };
    let diff_mask = if options.mask == Some(sys::norm_u8) { null_mut() } else { mask };
    let (kind, window, first_keys) = options.window;
    let (masking, cap, flags) = (options.mask_type, options.soft_cap, options.flags);
    let (scale, training) = (1.0 / (key_size as f32).sqrt(), sys::norm_forward_training);
    let (engine, attr) = (library.engine, attributes(options));
    let (mut forward, mut backward) = (null_mut(), null_mut());
    let (to, back) = (&raw mut forward, &raw mut backward);
    // SAFETY: descriptors and attributes are alive.
    unsafe {
        check(sys::norm_sdpa_forward_primitive_desc_create(
            to, engine, training, q, k, v, dst, mask, table, masking, kind, window, first_keys,
            scale, cap, flags, attr,
        ));
        if !options.has_gradient() {
            return vec![forward];
        }
        let flags = flags & !sys::norm_sdpa_entropy;
        check(sys::norm_sdpa_backward_primitive_desc_create(
            back,
            engine,
            q,
            k,
            v,
            dst,
            q,
            k,
            v,
            dst,
            mask,
            diff_mask,
            masking,
            kind,
            window,
            first_keys,
            scale,
            cap,
            flags,
            null(),
            null(),
        ));
    }
    vec![forward, backward]
}

/// The digest of all outputs.
fn digest(library: &Library, options: &Options, shape: Shape, data_type: u32) -> u64 {
    let mut numbers = Numbers(shape.keys as u64 * 31 + u64::from(data_type));
    let integers = |list: &[i64]| -> Vec<u8> {
        list.iter().flat_map(|number| (*number as i32).to_le_bytes()).collect()
    };
    let Shape { queries, keys, .. } = shape;
    let mut fill = |id, data_type, count: usize| match (id, data_type) {
        (sys::NORM_ARG_QUERY_LENGTHS, _) => integers(&[queries, queries / 2 + 1]),
        (sys::NORM_ARG_KEY_LENGTHS, _) => integers(&[keys - 3, keys / 2]),
        // The first and the last rows belong to no sequence.
        (sys::NORM_ARG_QUERY_OFFSETS, _) => integers(&[1, queries / 2 + 1, 2 * queries - 1]),
        (sys::NORM_ARG_KEY_OFFSETS, _) => integers(&[2, keys / 2, 2 * keys - 1]),
        (sys::NORM_ARG_PAGE_TABLE, _) => {
            let stored = BATCH * options.pages(shape) + 2;
            integers(&(0..count as i64).map(|i| (i * 5 + 3) % stored).collect::<Vec<_>>())
        }
        (KEY_SCALES | VALUE_SCALES, _) => {
            let mut scale = || ((numbers.next() % 64 + 1) as f32 / 2048.0).to_le_bytes();
            (0..count).flat_map(|_| scale()).collect()
        }
        (_, sys::norm_u8) => {
            (0..count).map(|_| u8::from(!numbers.next().is_multiple_of(4))).collect()
        }
        (_, sys::norm_s8 | sys::norm_f8_e4m3) => numbers.bytes(data_type, count),
        _ => numbers.calm_bytes(data_type, count),
    };
    let descs = descriptors(library, options, shape, data_type);
    run::digest(library, &descs, IDS, &mut fill, &|_, id| id)
}

/// Prints the lines of a level.
pub(crate) fn print(library: &Library, level: &str) {
    let types = [("f32", sys::norm_f32), ("bf16", sys::norm_bf16), ("f16", sys::norm_f16)];
    for shape in SHAPES {
        let Shape { queries, keys, key_size, value_size } = shape;
        for (type_name, data_type) in types {
            for options in options() {
                let name = options.name;
                let digest = digest(library, &options, shape, data_type);
                println!(
                    "{level} {type_name} {queries}x{keys} {key_size}:{value_size} sdpa {name} {digest:016x}"
                );
            }
        }
    }
}
