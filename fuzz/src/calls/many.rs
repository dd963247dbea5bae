//! Several primitives in one call. It does what calls one after another do, with the same bits.

use super::World;
use crate::execution::Arguments;
use crate::handles::{done, made};
use crate::source::Source;
use norm_sys as sys;
use std::ptr::null;

/// A primitive and the arguments of its execution.
struct Call {
    primitive: sys::norm_primitive_t,
    arguments: Arguments,
}

// SAFETY of the blocks in this file: handles are live, NULL where the header allows it, and arrays have the lengths
// that are passed.
impl World {
    pub(super) fn execute_many(&mut self, source: &mut Source<'_>) {
        self.refuse_many(source);
        let (mut calls, mut slot) = (Vec::new(), 0);
        for _ in 0..source.below(4) {
            if self.problems.is_empty() {
                break;
            }
            let (problem, dynamic) = source.one_of(&self.problems);
            let arguments = Arguments::from_slot(slot, problem, dynamic, &[], source);
            let Some(mut arguments) = arguments else { continue };
            let primitive = made(|out| unsafe { sys::norm_primitive_create(out, problem) });
            let Some(primitive) = primitive else { continue };
            slot += arguments.slots();
            arguments.create_memories(self.engine, source);
            if source.one_in(8) {
                arguments.spoil(self.engine, self.desc(source), source);
            }
            calls.push(Call { primitive, arguments });
        }
        Self::set_threads(source);
        if execute(&calls, self.stream) {
            self.executed += calls.len() as u64;
        }
        for call in calls {
            unsafe { sys::norm_primitive_destroy(call.primitive) };
            call.arguments.destroy();
        }
    }

    /// Calls without the arrays, or with a wrong number of primitives.
    fn refuse_many(&self, source: &mut Source<'_>) {
        let (primitive, nargs) = (null(), source.one_of(&[0, 1, -1]));
        let (count, args) = (source.one_of(&[1, 2, -1, i32::MIN]), null());
        let status = unsafe {
            match source.below(2) {
                0 => sys::norm_primitive_execute_many(count, null(), self.stream, null(), null()),
                _ => sys::norm_primitive_execute_many(
                    1,
                    &raw const primitive,
                    self.stream,
                    &raw const nargs,
                    &raw const args,
                ),
            }
        };
        assert!(!done(status), "an execution of nothing");
    }
}

/// Executes the calls together and one after another. Returns whether they succeeded.
fn execute(calls: &[Call], stream: sys::norm_stream_t) -> bool {
    let lists: Vec<_> = calls.iter().map(|call| call.arguments.list()).collect();
    let before: Vec<_> = calls.iter().map(|call| call.arguments.prepared()).collect();
    let primitives: Vec<_> = calls.iter().map(|call| call.primitive.cast_const()).collect();
    let nargs: Vec<i32> = lists.iter().map(|list| list.len() as i32).collect();
    let args: Vec<_> = lists.iter().map(|list| list.as_ptr()).collect();
    let together = done(unsafe {
        sys::norm_primitive_execute_many(
            calls.len() as i32,
            primitives.as_ptr(),
            stream,
            nargs.as_ptr(),
            args.as_ptr(),
        )
    });
    let mut results = Vec::new();
    for (call, before) in calls.iter().zip(&before) {
        call.arguments.check(before, together);
        results.push(call.arguments.results());
        call.arguments.restore(before);
    }
    let alone = calls.iter().filter(|call| call.arguments.execute(call.primitive, stream)).count();
    assert_eq!(together, alone == calls.len(), "{alone} of {} succeed alone", calls.len());
    if together {
        for (call, results) in calls.iter().zip(&results) {
            assert!(call.arguments.results() == *results, "other bits than alone");
        }
    }
    together
}
