//! The arguments of an execution: as many as the problem asks for, over guarded buffers.

use crate::buffers::{Buffer, MOST};
use crate::handles::made;
use crate::source::Source;
use norm_sys as sys;
use std::ffi::c_void;
use std::ptr::null_mut;

/// One argument of an execution.
pub(crate) struct Argument {
    id: i32,
    desc: sys::const_norm_memory_desc_t,
    is_output: bool,
    pub(crate) buffer: Buffer,
    memory: sys::norm_memory_t,
}

pub(crate) struct Arguments {
    pub(crate) all: Vec<Argument>,
    /// Whether an input and an output share a buffer.
    in_place: bool,
}

fn value(problem: sys::norm_primitive_desc_t, what: sys::norm_query_t) -> u32 {
    let mut value = 0u32;
    // SAFETY: callers ask for what is 4 bytes long.
    unsafe { sys::norm_primitive_desc_query(problem, what, 0, (&raw mut value).cast::<c_void>()) };
    value
}

#[allow(clippy::undocumented_unsafe_blocks)]
impl Arguments {
    /// The arguments that the problem asks for; `None` if one is too large for a test.
    pub(crate) fn of(problem: sys::norm_primitive_desc_t, source: &mut Source<'_>) -> Option<Self> {
        let kind = value(problem, sys::norm_query_prop_kind);
        let is_backward = matches!(kind, sys::norm_backward | sys::norm_backward_data);
        let global = value(problem, sys::norm_query_flags) & sys::norm_use_global_stats != 0;
        let mut ids = vec![
            (sys::NORM_ARG_SRC, false),
            (sys::NORM_ARG_DST, !is_backward),
            (sys::NORM_ARG_MEAN, !is_backward && !global),
            (sys::NORM_ARG_VARIANCE, !is_backward && !global),
            (sys::NORM_ARG_SCALE, false),
            (sys::NORM_ARG_SHIFT, false),
            (sys::NORM_ARG_DIFF_DST, false),
            (sys::NORM_ARG_DIFF_SRC, true),
            (sys::NORM_ARG_DIFF_SCALE, true),
            (sys::NORM_ARG_DIFF_SHIFT, true),
            (sys::NORM_ARG_SCRATCHPAD, true),
        ];
        for arg in [sys::NORM_ARG_SRC, sys::NORM_ARG_DST] {
            ids.push((sys::NORM_ARG_ATTR_SCALES | arg, false));
            ids.push((sys::NORM_ARG_ATTR_ZERO_POINTS | arg, false));
        }
        for at in 0..4 {
            let base = sys::NORM_ARG_ATTR_MULTIPLE_POST_OP(at);
            ids.push((base | sys::NORM_ARG_SRC_1, false));
            ids.push((base | sys::NORM_ARG_SRC_2, false));
        }
        let (at_end, mut all) = (source.one_in(2), Vec::new());
        for (id, is_output) in ids {
            let what = sys::norm_query_exec_arg_md;
            let desc = unsafe { sys::norm_primitive_desc_query_md(problem, what, id) };
            let mut ndims = 0i32;
            unsafe {
                let what = sys::norm_query_ndims_s32;
                sys::norm_memory_desc_query(desc, what, (&raw mut ndims).cast::<c_void>());
            }
            let bytes = unsafe { sys::norm_memory_desc_get_size(desc) };
            if ndims == 0 {
                continue;
            }
            if bytes > MOST {
                return None;
            }
            let buffer = Buffer::new(bytes, all.len(), at_end);
            let (pattern, step) = (source.byte(), source.byte() | 1);
            buffer.fill(|at| {
                if is_output { 0x5a } else { pattern.wrapping_add((at as u8).wrapping_mul(step)) }
            });
            all.push(Argument { id, desc, is_output, buffer, memory: null_mut() });
        }
        Some(Self { all, in_place: false })
    }

    pub(crate) fn create_memories(&mut self, engine: sys::norm_engine_t, source: &mut Source<'_>) {
        // The output may take the place of an input of the same size.
        let shares = source.one_in(3);
        for at in 0..self.all.len() {
            let argument = &self.all[at];
            let mut handle = argument.buffer.as_mut_ptr().cast::<c_void>();
            let pair = [
                (sys::NORM_ARG_DST, sys::NORM_ARG_SRC),
                (sys::NORM_ARG_DIFF_SRC, sys::NORM_ARG_DIFF_DST),
            ];
            let partner = pair.iter().find(|p| p.0 == argument.id && argument.is_output);
            let input = self.all.iter().find(|a| partner.is_some_and(|p| p.1 == a.id));
            if let Some(input) = input.filter(|i| shares && i.buffer.len() == argument.buffer.len())
            {
                handle = input.buffer.as_mut_ptr().cast();
                self.in_place = true;
            }
            let desc = self.all[at].desc;
            let memory = made(|out| unsafe { sys::norm_memory_create(out, desc, engine, handle) });
            self.all[at].memory = memory.expect("a memory");
        }
    }

    /// Makes the execution one that must be refused, mostly.
    pub(crate) fn spoil(
        &mut self,
        engine: sys::norm_engine_t,
        desc: sys::norm_memory_desc_t,
        source: &mut Source<'_>,
    ) {
        if self.all.is_empty() {
            return;
        }
        let at = source.below(self.all.len());
        match source.below(4) {
            0 => self.all[at].id = sys::NORM_ARG_WORKSPACE,
            1 => unsafe {
                sys::norm_memory_set_data_handle(self.all[at].memory, null_mut());
            },
            2 => {
                let memory = std::mem::replace(&mut self.all[at].memory, null_mut());
                unsafe { sys::norm_memory_destroy(memory) };
            }
            _ => {
                // A smaller or otherwise different tensor, over no more bytes than there are.
                let bytes = unsafe { sys::norm_memory_desc_get_size(desc) };
                if desc.is_null() || bytes > self.all[at].buffer.len() {
                    return;
                }
                let handle = self.all[at].buffer.as_mut_ptr().cast::<c_void>();
                let other =
                    made(|out| unsafe { sys::norm_memory_create(out, desc, engine, handle) });
                if let Some(other) = other {
                    let memory = std::mem::replace(&mut self.all[at].memory, other);
                    unsafe { sys::norm_memory_destroy(memory) };
                }
            }
        }
    }

    pub(crate) fn list(&self) -> Vec<sys::norm_exec_arg_t> {
        self.all.iter().map(|a| sys::norm_exec_arg_t { arg: a.id, memory: a.memory }).collect()
    }

    /// Inputs become read-only, unless an output shares their memory.
    pub(crate) fn protect(&self) {
        for (slot, argument) in self.all.iter().enumerate() {
            if !argument.is_output && !self.in_place {
                argument.buffer.protect(slot);
            }
        }
    }

    /// What may have changed: outputs of an execution that succeeded.
    pub(crate) fn check(&self, before: &[Vec<u8>], succeeded: bool) {
        for (argument, before) in self.all.iter().zip(before) {
            let may_change = succeeded && (argument.is_output || self.in_place)
                || argument.id == sys::NORM_ARG_SCRATCHPAD;
            if !may_change {
                assert!(
                    argument.buffer.contents() == *before,
                    "argument {} was written",
                    argument.id
                );
            }
        }
    }

    pub(crate) fn destroy(&self) {
        for argument in &self.all {
            unsafe { sys::norm_memory_destroy(argument.memory) };
        }
    }
}
