//! The arguments of an execution: those that the problem needs, in guarded buffers.

use crate::buffers::{Buffer, MOST};
use crate::fill;
use crate::handles::{done, made};
use crate::source::Source;
use norm_sys as sys;
use std::ffi::c_void;
use std::ptr::null_mut;

/// One argument of an execution.
pub(crate) struct Argument {
    id: i32,
    desc: sys::const_norm_memory_desc_t,
    is_output: bool,
    buffer: Buffer,
    memory: sys::norm_memory_t,
}

pub(crate) struct Arguments {
    all: Vec<Argument>,
    /// Memories that belong to others.
    lent: Vec<sys::norm_exec_arg_t>,
    /// Whether an input and an output share a buffer.
    in_place: bool,
    /// The slot of the first buffer.
    slot: usize,
}

const INPUTS: [i32; 24] = [
    sys::NORM_ARG_SRC_0,
    sys::NORM_ARG_SRC_1,
    sys::NORM_ARG_SRC_2,
    sys::NORM_ARG_SCALE,
    sys::NORM_ARG_SHIFT,
    sys::NORM_ARG_DIFF_DST,
    sys::NORM_ARG_RESIDUAL,
    sys::NORM_ARG_DIFF_RESIDUAL_DST,
    sys::NORM_ARG_GATE,
    sys::NORM_ARG_ATTR_DROPOUT_OFFSET,
    sys::NORM_ARG_ATTR_DROPOUT_PROBABILITY,
    sys::NORM_ARG_ATTR_DROPOUT_SEED,
    sys::NORM_ARG_POSITIONS,
    sys::NORM_ARG_ROPE_FREQUENCIES,
    sys::NORM_ARG_ROPE_COS,
    sys::NORM_ARG_ROPE_SIN,
    sys::NORM_ARG_SLOTS,
    sys::NORM_ARG_SINKS,
    sys::NORM_ARG_ALIBI_SLOPES,
    sys::NORM_ARG_QUERY_LENGTHS,
    sys::NORM_ARG_KEY_LENGTHS,
    sys::NORM_ARG_PAGE_TABLE,
    sys::NORM_ARG_QUERY_OFFSETS,
    sys::NORM_ARG_KEY_OFFSETS,
];

/// DIFF_SRC is also DIFF_QUERIES, and DIFF_SRC_1 is DIFF_KEYS.
const OUTPUTS: [i32; 13] = [
    sys::NORM_ARG_DIFF_SRC,
    sys::NORM_ARG_DIFF_KEYS,
    sys::NORM_ARG_DIFF_VALUES,
    sys::NORM_ARG_DIFF_ATTN_MASK,
    sys::NORM_ARG_DIFF_SINKS,
    sys::NORM_ARG_DIFF_SCALE,
    sys::NORM_ARG_DIFF_SHIFT,
    sys::NORM_ARG_SCRATCHPAD,
    sys::NORM_ARG_ENTROPY,
    sys::NORM_ARG_RESIDUAL_DST,
    sys::NORM_ARG_DIFF_GATE,
    sys::NORM_ARG_ATTR_DROPOUT_MASK,
    sys::NORM_ARG_SOFTMAX_STATS,
];

fn value(problem: sys::norm_primitive_desc_t, what: sys::norm_query_t) -> u32 {
    let mut value = 0u32;
    // SAFETY: callers query values of 4 bytes.
    unsafe { sys::norm_primitive_desc_query(problem, what, 0, (&raw mut value).cast::<c_void>()) };
    value
}

/// The arguments that a problem may have, and whether it writes them.
fn ids(problem: sys::norm_primitive_desc_t, dynamic: bool) -> Vec<(i32, bool)> {
    let kind = value(problem, sys::norm_query_prop_kind);
    let is_backward = matches!(kind, sys::norm_backward | sys::norm_backward_data);
    let global = value(problem, sys::norm_query_flags) & sys::norm_use_global_stats != 0;
    let is_gated = value(problem, sys::norm_query_primitive_kind) == sys::norm_gated;
    let mut ids: Vec<(i32, bool)> = INPUTS.iter().map(|id| (*id, false)).collect();
    ids.extend(OUTPUTS.iter().map(|id| (*id, true)));
    ids.push((sys::NORM_ARG_DST, !is_backward || is_gated));
    ids.push((sys::NORM_ARG_WORKSPACE, !is_backward));
    for id in [sys::NORM_ARG_MEAN, sys::NORM_ARG_VARIANCE] {
        ids.push((id, !is_backward && !global));
    }
    for arg in [sys::NORM_ARG_SRC_0, sys::NORM_ARG_SRC_1, sys::NORM_ARG_SRC_2, sys::NORM_ARG_DST] {
        let is_output = dynamic && arg == sys::NORM_ARG_DST;
        ids.push((sys::NORM_ARG_ATTR_SCALES | arg, is_output));
        ids.push((sys::NORM_ARG_ATTR_ZERO_POINTS | arg, is_output));
    }
    for at in 0..4 {
        let base = sys::NORM_ARG_ATTR_MULTIPLE_POST_OP(at);
        ids.push((base | sys::NORM_ARG_SRC_1, false));
        ids.push((base | sys::NORM_ARG_SRC_2, false));
    }
    ids
}

impl Arguments {
    /// The arguments that the problem needs, except the lent ones; `None` if one is too large for a test. Problems that
    /// are `dynamic` write scales.
    pub(crate) fn of(
        problem: sys::norm_primitive_desc_t,
        dynamic: bool,
        lent: &[sys::norm_exec_arg_t],
        source: &mut Source<'_>,
    ) -> Option<Self> {
        Self::from_slot(0, problem, dynamic, lent, source)
    }

    /// The same, with buffers from a slot on.
    pub(crate) fn from_slot(
        slot: usize,
        problem: sys::norm_primitive_desc_t,
        dynamic: bool,
        lent: &[sys::norm_exec_arg_t],
        source: &mut Source<'_>,
    ) -> Option<Self> {
        let (at_end, mut all) = (source.one_in(2), Vec::new());
        for (id, is_output) in ids(problem, dynamic) {
            let what = sys::norm_query_exec_arg_md;
            let desc = unsafe { sys::norm_primitive_desc_query_md(problem, what, id) };
            let bytes = unsafe { sys::norm_memory_desc_get_size(desc) };
            let is_lent = lent.iter().any(|arg| arg.arg == id);
            if is_lent || fill::told::<i32>(desc, sys::norm_query_ndims_s32) == 0 {
                continue;
            }
            if bytes >= MOST {
                return None;
            }
            // No alignment is required.
            let odd = source.one_in(6);
            let buffer = Buffer::new(bytes, slot + all.len(), at_end, odd);
            let (pattern, step) = (source.byte(), source.byte() | 1);
            buffer.fill(|at| {
                if is_output { 0x5a } else { pattern.wrapping_add((at as u8).wrapping_mul(step)) }
            });
            fill::indices(problem, id, desc, &buffer, source);
            all.push(Argument { id, desc, is_output, buffer, memory: null_mut() });
        }
        Some(Self { all, lent: lent.to_vec(), in_place: false, slot })
    }

    /// Executes a primitive, checks what it has written, and returns whether it succeeded.
    pub(crate) fn execute(
        &self,
        primitive: sys::norm_primitive_t,
        stream: sys::norm_stream_t,
    ) -> bool {
        let (list, before) = (self.list(), self.prepared());
        let count = list.len() as i32;
        let succeeded =
            done(unsafe { sys::norm_primitive_execute(primitive, stream, count, list.as_ptr()) });
        self.check(&before, succeeded);
        succeeded
    }

    /// Makes inputs read-only, unless an output shares their memory. Returns the contents of all buffers.
    pub(crate) fn prepared(&self) -> Vec<Vec<u8>> {
        for (at, argument) in self.all.iter().enumerate() {
            if !argument.is_output && !self.in_place {
                argument.buffer.protect(self.slot + at);
            }
        }
        self.all.iter().map(|argument| argument.buffer.contents()).collect()
    }

    /// Gives buffers that an execution may have changed their earlier contents.
    pub(crate) fn restore(&self, before: &[Vec<u8>]) {
        for (argument, before) in self.all.iter().zip(before) {
            if argument.is_output || self.in_place {
                argument.buffer.fill(|at| before[at]);
            }
        }
    }

    /// The contents of all buffers except a scratchpad.
    pub(crate) fn results(&self) -> Vec<Vec<u8>> {
        let kept = self.all.iter().filter(|argument| argument.id != sys::NORM_ARG_SCRATCHPAD);
        kept.map(|argument| argument.buffer.contents()).collect()
    }

    /// The number of slots of its buffers.
    pub(crate) fn slots(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn create_memories(&mut self, engine: sys::norm_engine_t, source: &mut Source<'_>) {
        // The output may share the buffer of an input of the same size.
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
            let kind = fill::told::<u32>(desc, sys::norm_query_format_kind);
            let memory = made(|out| unsafe {
                if kind == sys::norm_format_kind_host_scalar {
                    sys::norm_memory_create_host_scalar(out, desc, handle)
                } else if at % 2 == 1 {
                    sys::norm_memory_create_v2(out, desc, engine, 1, &raw mut handle)
                } else {
                    sys::norm_memory_create(out, desc, engine, handle)
                }
            });
            self.all[at].memory = memory.expect("a memory");
        }
    }

    /// Spoils the execution, so that it must be refused in most cases.
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
            1 => {
                done(unsafe { sys::norm_memory_set_data_handle(self.all[at].memory, null_mut()) });
            }
            2 => {
                let memory = std::mem::replace(&mut self.all[at].memory, null_mut());
                unsafe { sys::norm_memory_destroy(memory) };
            }
            _ => {
                // A smaller or otherwise different tensor that fits the same bytes.
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
        let own = self.all.iter().map(|a| sys::norm_exec_arg_t { arg: a.id, memory: a.memory });
        own.chain(self.lent.iter().copied()).collect()
    }

    /// Checks that nothing changed except the outputs of a successful execution.
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
