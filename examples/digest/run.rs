//! Executions with the arguments that primitive descriptors ask for.

use crate::{Library, check, fnv};
use norm_sys as sys;
use std::ptr::null_mut;

/// The arguments of an operation, in the order of their data and of the digest.
#[derive(Clone, Copy)]
pub(crate) struct Ids<'a> {
    pub(crate) inputs: &'a [i32],
    pub(crate) outputs: &'a [i32],
}

/// The descriptor, type and bytes of an argument; no bytes if the problem does not use it.
fn argument(
    primitive: sys::norm_primitive_desc_t,
    id: i32,
) -> (sys::const_norm_memory_desc_t, u32, usize) {
    let mut data_type = sys::norm_data_type_undef;
    // SAFETY: the primitive descriptor is alive, and the answer has the type that the query says.
    unsafe {
        let desc = sys::norm_primitive_desc_query_md(primitive, sys::norm_query_exec_arg_md, id);
        let bytes = sys::norm_memory_desc_get_size(desc);
        let out = (&raw mut data_type).cast();
        check(sys::norm_memory_desc_query(desc, sys::norm_query_data_type, out));
        (desc, data_type, bytes)
    }
}

/// The digest of all outputs of primitives that are executed one after another, so backward reads what forward wrote.
/// `fill` makes the bytes of an input from its id, type and number of elements, and `source` is the id of the buffer
/// that an argument of a primitive reads or writes, usually its own.
pub(crate) fn digest(
    library: &Library,
    descs: &[sys::norm_primitive_desc_t],
    ids: Ids<'_>,
    fill: &mut dyn FnMut(i32, u32, usize) -> Vec<u8>,
    source: &dyn Fn(usize, i32) -> i32,
) -> u64 {
    let mut buffers: Vec<(i32, Vec<u8>)> = Vec::new();
    for (index, desc) in descs.iter().enumerate() {
        let mut args = Vec::new();
        for id in ids.inputs.iter().chain(ids.outputs).copied() {
            let (md, its_type, bytes) = argument(*desc, id);
            if bytes == 0 {
                continue;
            }
            let source = source(index, id);
            let at = buffers.iter().position(|(id, _)| *id == source).unwrap_or_else(|| {
                // SAFETY: no pointers.
                let count = bytes / unsafe { sys::norm_data_type_size(its_type) };
                let is_input = ids.inputs.contains(&id);
                buffers
                    .push((id, if is_input { fill(id, its_type, count) } else { vec![1; bytes] }));
                buffers.len() - 1
            });
            let memory = library.memory(md.cast_mut(), &mut buffers[at].1);
            args.push(sys::norm_exec_arg_t { arg: id, memory });
        }
        let mut primitive = null_mut();
        // SAFETY: the arguments are alive, and buffers as large as their descriptors say.
        unsafe {
            check(sys::norm_primitive_create(&raw mut primitive, *desc));
            let nargs = args.len() as i32;
            check(sys::norm_primitive_execute(primitive, library.stream, nargs, args.as_ptr()));
        }
    }
    let outputs = ids.outputs.iter().filter_map(|id| buffers.iter().find(|(other, _)| other == id));
    outputs.fold(0xcbf2_9ce4_8422_2325, |d, (_, bytes)| fnv(d, bytes))
}
