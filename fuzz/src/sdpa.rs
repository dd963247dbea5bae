//! Problems of attention: mostly consistent, with any options, sometimes spoiled.

use crate::handles::made;
use crate::layouts::{Descs, described};
use crate::source::Source;
use norm_sys as sys;
use std::ptr::null_mut;

const FLOATS: [u32; 3] = [sys::norm_f32, sys::norm_bf16, sys::norm_f16];
/// Numbers that are not valid dimensions.
const HOSTILE: [i64; 7] = [0, -1, i64::MAX, 1 << 40, 1 << 62, i64::MIN, 65537];

/// The sizes of a problem: sequences, heads, heads of keys, queries, keys, head sizes, pages, keys per page.
struct Sizes {
    b: i64,
    h: i64,
    g: i64,
    s: i64,
    t: i64,
    d: i64,
    e: i64,
    pages: i64,
    page: i64,
}

impl Sizes {
    fn of(source: &mut Source<'_>) -> Self {
        let heads = [1, 2, 3, 8, 16, 17, 33, 64];
        let g = 1 + source.below(2) as i64;
        let keys: &[i64] =
            if cfg!(miri) { &[1, 3, 16, 33] } else { &[1, 2, 7, 16, 33, 64, 255, 257, 300, 520] };
        let (page, pages) = (source.one_of(&[1, 2, 3, 16, 32]), 1 + source.below(5) as i64);
        let sizes = Self {
            b: 1 + source.below(3) as i64,
            h: g * (1 + source.below(3) as i64),
            g,
            s: source.one_of(&[1, 2, 3, 5, 17, 33]),
            t: source.one_of(keys),
            d: source.one_of(&heads),
            e: source.one_of(&heads),
            pages: if source.one_in(3) { pages } else { 0 },
            page,
        };
        sizes.limited()
    }

    /// The same with fewer queries and sequences if it would be slow, because one input makes many problems.
    fn limited(mut self) -> Self {
        let keys = if self.pages > 0 { self.pages * self.page } else { self.t };
        let most = if cfg!(miri) { 1 << 10 } else { 1 << 17 };
        for size in [&mut self.s, &mut self.b] {
            if self.h * keys * (self.d + self.e) * *size > most {
                *size = 1;
            }
        }
        self
    }
}

/// The tensors and options that forward and backward share.
struct Parts {
    query: sys::norm_memory_desc_t,
    key: sys::norm_memory_desc_t,
    value: sys::norm_memory_desc_t,
    dst: sys::norm_memory_desc_t,
    mask: sys::norm_memory_desc_t,
    table: sys::norm_memory_desc_t,
    dims: [[i64; 4]; 5],
    data_type: u32,
    mask_type: u32,
    window_kind: u32,
    window: i64,
    first_keys: i64,
    scale: f32,
    soft_cap: f32,
    flags: u32,
}

fn flags(source: &mut Source<'_>) -> u32 {
    let all = [
        sys::norm_sdpa_sinks,
        sys::norm_sdpa_alibi,
        sys::norm_sdpa_key_lengths,
        sys::norm_sdpa_query_lengths,
        sys::norm_sdpa_entropy,
        sys::norm_sdpa_query_offsets,
        sys::norm_sdpa_key_offsets,
    ];
    let mut flags = 0;
    for _ in 0..source.below(4) {
        flags |= source.one_of(&all);
    }
    flags | u32::from(source.one_in(60)) << source.below(32)
}

/// A tensor. If it is packed, its sequences are rows one after another.
fn rows(
    descs: &mut Descs,
    source: &mut Source<'_>,
    dims: &[i64; 4],
    data_type: u32,
    packed: bool,
) -> sys::norm_memory_desc_t {
    if !packed || source.one_in(12) {
        return descs.tensor(source, dims, data_type);
    }
    let strides = [0, dims[2].wrapping_mul(dims[3]), dims[3], 1];
    descs.keep(described(dims, data_type, Some(&strides)))
}

impl Parts {
    fn of(descs: &mut Descs, source: &mut Source<'_>) -> Self {
        let sizes = Sizes::of(source);
        let Sizes { b, h, g, s, t, d, e, pages, page } = sizes;
        let pool = 1 + source.below(6) as i64;
        let (n, keys) = if pages > 0 { (pool, page) } else { (b, t) };
        let all_keys = if pages > 0 { pages * page } else { t };
        let mut shared = |dim: i64| if source.one_in(2) { 1 } else { dim };
        let mask_dims = [shared(b), shared(h), shared(s), shared(all_keys)];
        let mut dims = [[b, h, s, d], [n, g, d, keys], [n, g, keys, e], [b, h, s, e], mask_dims];
        if source.one_in(6) {
            let (tensor, at) = (source.below(5), source.below(4));
            dims[tensor][at] =
                if source.one_in(2) { source.one_of(&HOSTILE) } else { dims[tensor][at] + 1 };
        }
        let (data_type, flags) = (source.one_of(&FLOATS), flags(source));
        let narrow = source.one_of(&[0, 0, 0, sys::norm_s8, sys::norm_f8_e4m3, sys::norm_u8]);
        let of_keys = if narrow == 0 { data_type } else { narrow };
        let of_dst = source.one_of(&[sys::norm_f32, sys::norm_bf16, sys::norm_f16, sys::norm_s8]);
        let packed = flags & sys::norm_sdpa_query_offsets != 0;
        let packed_keys = flags & sys::norm_sdpa_key_offsets != 0;
        let of_mask =
            source.one_of(&[sys::norm_f32, sys::norm_bf16, sys::norm_f16, sys::norm_u8, 99]);
        let key_dims = dims[1];
        let key = if source.one_in(2) && !packed_keys {
            // The usual B x G x T x D cache.
            let strides = [
                key_dims[1].wrapping_mul(key_dims[2]).wrapping_mul(key_dims[3]),
                key_dims[2].wrapping_mul(key_dims[3]),
                1,
                key_dims[2],
            ];
            descs.keep(described(&key_dims, of_keys, Some(&strides)))
        } else {
            rows(descs, source, &key_dims, of_keys, packed_keys)
        };
        let has_mask = source.one_in(3);
        let mask = has_mask.then(|| descs.tensor(source, &dims[4], of_mask));
        let table = (pages > 0).then(|| descs.tensor(source, &[b, pages], sys::norm_s32));
        let window_kind = source.one_of(&[
            sys::norm_window_none,
            sys::norm_window_none,
            sys::norm_window_with_self,
            sys::norm_window_before_self,
        ]);
        let windows = [1, 2, 5, 16, 100, 300, 0, -1, i64::MAX];
        let windowed = window_kind != sys::norm_window_none || source.one_in(30);
        Self {
            query: rows(descs, source, &dims[0], data_type, packed),
            key,
            value: rows(descs, source, &dims[2], of_keys, packed_keys),
            dst: rows(descs, source, &dims[3], of_dst, packed),
            mask: mask.unwrap_or(null_mut()),
            table: table.unwrap_or(null_mut()),
            dims,
            data_type,
            mask_type: if has_mask && source.one_in(2) { 1 } else { source.below(4) as u32 },
            window_kind,
            window: if windowed { source.one_of(&windows) } else { 0 },
            first_keys: if windowed { source.one_of(&[0, 0, 1, 4, i64::MAX, -1]) } else { 0 },
            scale: source.one_of(&[0.125, 1.0, 0.5, -1.0, 0.0, 1e30, f32::NAN, f32::INFINITY]),
            soft_cap: source.one_of(&[0.0, 0.0, 0.0, 5.0, 1e-30, -1.0, f32::NAN]),
            flags,
        }
    }
}

/// Attributes for keys and values with scales.
#[allow(clippy::undocumented_unsafe_blocks)] // handles are live
fn scales(source: &mut Source<'_>, attr: sys::norm_primitive_attr_t) {
    let masks = [(11, 7), (0, 0), (3, 3), (2, 1), (15, 15), (4, 8)];
    let (of_keys, of_values) = source.one_of(&masks);
    unsafe {
        if source.one_in(4) {
            sys::norm_primitive_attr_set_scratchpad_mode(attr, sys::norm_scratchpad_mode_user);
        }
        if !source.one_in(6) {
            sys::norm_primitive_attr_set_scales_mask(attr, sys::NORM_ARG_KEYS, of_keys);
            sys::norm_primitive_attr_set_scales_mask(attr, sys::NORM_ARG_VALUES, of_values);
        }
    }
}

/// A problem of attention, if the library accepts it. It ignores the hint.
#[allow(clippy::undocumented_unsafe_blocks)] // handles are live, or NULL where the header allows it
pub(crate) fn problem(
    source: &mut Source<'_>,
    engine: sys::norm_engine_t,
    hint: sys::norm_primitive_desc_t,
) -> Option<sys::norm_primitive_desc_t> {
    let mut descs = Descs::default();
    let p = Parts::of(&mut descs, source);
    let attr = made(|out| unsafe { sys::norm_primitive_attr_create(out) }).expect("attributes");
    let made = if source.one_in(3) {
        let mut gradient = |at: usize| descs.tensor(source, &p.dims[at], p.data_type);
        let (query, key, value) = (gradient(0), gradient(1), gradient(2));
        let (dst, mask) = (gradient(3), gradient(4));
        let mask = if p.mask.is_null() || source.one_in(2) { null_mut() } else { mask };
        made(|out| unsafe {
            sys::norm_sdpa_backward_primitive_desc_create(
                out,
                engine,
                query,
                key,
                value,
                dst,
                p.query,
                p.key,
                p.value,
                p.dst,
                p.mask,
                mask,
                p.mask_type,
                p.window_kind,
                p.window,
                p.first_keys,
                p.scale,
                p.soft_cap,
                p.flags,
                hint,
                attr,
            )
        })
    } else {
        let kind = source.one_of(&[sys::norm_forward_training, sys::norm_forward_inference, 128]);
        if source.one_in(3) || p.data_type != FLOATS[0] {
            scales(source, attr);
        }
        made(|out| unsafe {
            sys::norm_sdpa_forward_primitive_desc_create(
                out,
                engine,
                kind,
                p.query,
                p.key,
                p.value,
                p.dst,
                p.mask,
                p.table,
                p.mask_type,
                p.window_kind,
                p.window,
                p.first_keys,
                p.scale,
                p.soft_cap,
                p.flags,
                attr,
            )
        })
    };
    unsafe { sys::norm_primitive_attr_destroy(attr) };
    made
}
