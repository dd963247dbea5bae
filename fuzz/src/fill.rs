//! The contents of arguments: arbitrary bytes, but mostly sensible numbers for indices, lengths and probabilities, so
//! that most executions pass the checks of these.

use crate::buffers::Buffer;
use crate::source::Source;
use norm_sys as sys;
use std::ffi::c_void;

/// A number from a query; 0 if it is refused.
pub(crate) fn told<T: Default>(desc: sys::const_norm_memory_desc_t, what: sys::norm_query_t) -> T {
    let mut answer = T::default();
    // SAFETY: callers ask for the type that the header specifies.
    unsafe { sys::norm_memory_desc_query(desc, what, (&raw mut answer).cast::<c_void>()) };
    answer
}

/// Dimension `d` of an argument of a problem; 0 if it has none.
pub(crate) fn dim(problem: sys::norm_primitive_desc_t, id: i32, d: usize) -> i64 {
    // SAFETY: a live problem.
    let desc =
        unsafe { sys::norm_primitive_desc_query_md(problem, sys::norm_query_exec_arg_md, id) };
    let ndims: i32 = told(desc, sys::norm_query_ndims_s32);
    if d < ndims as usize { desc_dim(desc, d) } else { 0 }
}

/// What the numbers of an argument are like.
enum Numbers {
    /// Below this number.
    Below(i64),
    /// All different.
    Different,
    /// Ascending, up to this number.
    Ascending(i64),
}

fn numbers(problem: sys::norm_primitive_desc_t, id: i32) -> Option<Numbers> {
    let of = |id, d| dim(problem, id, d);
    let keys = || match of(sys::NORM_ARG_PAGE_TABLE, 1) {
        0 => of(sys::NORM_ARG_KEYS, 3),
        pages => pages.saturating_mul(of(sys::NORM_ARG_KEYS, 3)),
    };
    Some(match id {
        sys::NORM_ARG_POSITIONS => Numbers::Below(match of(sys::NORM_ARG_ROPE_COS, 0) {
            0 => 1 << 12,
            rows => rows,
        }),
        sys::NORM_ARG_SLOTS => Numbers::Different,
        sys::NORM_ARG_QUERY_LENGTHS => Numbers::Below(of(sys::NORM_ARG_QUERIES, 2) + 1),
        sys::NORM_ARG_KEY_LENGTHS => Numbers::Below(keys() + 1),
        sys::NORM_ARG_PAGE_TABLE => Numbers::Below(of(sys::NORM_ARG_KEYS, 0)),
        sys::NORM_ARG_QUERY_OFFSETS => Numbers::Ascending(of(sys::NORM_ARG_QUERIES, 2)),
        sys::NORM_ARG_KEY_OFFSETS => Numbers::Ascending(of(sys::NORM_ARG_KEYS, 3)),
        _ => return None,
    })
}

/// Fills an argument of a problem with indices, if it consists of indices.
pub(crate) fn indices(
    problem: sys::norm_primitive_desc_t,
    id: i32,
    desc: sys::const_norm_memory_desc_t,
    buffer: &Buffer,
    source: &mut Source<'_>,
) {
    if id == sys::NORM_ARG_ATTR_DROPOUT_PROBABILITY && buffer.len() == 4 {
        let chosen: f32 = source.one_of(&[0.5, 0.0, 1.0, 0.1, -0.5, 2.0, f32::NAN]);
        let bytes = chosen.to_le_bytes();
        return buffer.fill(|at| bytes[at % 4]);
    }
    let Some(kind) = numbers(problem, id) else { return };
    let data_type: u32 = told(desc, sys::norm_query_data_type);
    let size = if data_type == sys::norm_s64 { 8 } else { 4 };
    let count = buffer.len() / size;
    let mut all: Vec<i64> = Vec::with_capacity(count);
    let limit = match kind {
        Numbers::Below(limit) | Numbers::Ascending(limit) => limit.clamp(1, 1 << 20),
        Numbers::Different => 1 << 20,
    };
    let first = i64::from(source.byte() & 3);
    for at in 0..count {
        let byte = i64::from(source.byte());
        all.push(match kind {
            Numbers::Below(_) => (byte * 17 + at as i64) % limit,
            Numbers::Different if byte == 77 => -1,
            Numbers::Different => first + at as i64,
            Numbers::Ascending(_) => {
                let before = all.last().copied().unwrap_or(0);
                (before + byte % (2 * limit / count as i64 + 1)).min(limit)
            }
        });
    }
    if source.one_in(8) && count > 0 {
        let hostile =
            [-1, -2, limit, limit + 1, i64::from(i32::MAX), i64::from(i32::MIN), i64::MAX];
        all[source.below(count.min(256))] = source.one_of(&hostile);
    }
    buffer.fill(|at| all.get(at / size).map_or(0, |number| number.to_le_bytes()[at % size]));
}

/// Dimension `d` of a descriptor that has it.
pub(crate) fn desc_dim(desc: sys::const_norm_memory_desc_t, d: usize) -> i64 {
    let mut dims: *const i64 = std::ptr::null();
    let out = (&raw mut dims).cast::<c_void>();
    // SAFETY: descriptors lend arrays of 12 numbers.
    unsafe {
        sys::norm_memory_desc_query(desc, sys::norm_query_dims, out);
        dims.add(d).read()
    }
}
