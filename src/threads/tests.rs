//! Who runs which block.

use super::slot::{MAX_WIDTH, Slot};
use std::collections::HashMap;
use std::sync::{Barrier, Mutex};
use std::thread::{ThreadId, current, scope};

/// Runs a job of a slot on this thread and the workers of these numbers, each block beside one of every
/// other thread, and gives the blocks of each in its order.
fn in_step(slot: &Slot, blocks: usize, workers: &[usize]) -> Vec<Vec<usize>> {
    let width = workers.len() + 1;
    let step = Barrier::new(width);
    let ran = Mutex::new(HashMap::<ThreadId, Vec<usize>>::new());
    let body = |block: usize| {
        step.wait();
        ran.lock().expect("no block fails").entry(current().id()).or_default().push(block);
    };
    assert!(slot.take());
    let mut ids = vec![current().id()];
    scope(|scope| {
        let outcome = slot.run(blocks, width, &body, || {
            let begin = |worker: &usize| {
                let worker = *worker;
                scope.spawn(move || assert!(slot.help(worker))).thread().id()
            };
            ids.extend(workers.iter().map(begin));
        });
        assert_eq!((outcome.threads, outcome.panicked), (width, false));
    });
    let mut ran = ran.into_inner().expect("no block fails");
    ids.iter().map(|id| ran.remove(id).expect("each thread ran a block")).collect()
}

#[test]
fn a_block_meets_the_same_thread_in_every_job() {
    let slot = Slot::new();
    for _ in 0..20 {
        assert_eq!(in_step(&slot, 8, &[1]), [[0, 1, 2, 3], [4, 5, 6, 7]]);
        assert_eq!(in_step(&slot, 6, &[2, 1]), [[0, 1], [4, 5], [2, 3]]);
        // More workers than the job has room for: any of them may come.
        assert_eq!(in_step(&slot, 6, &[5, 4]), [[0, 1], [2, 3], [4, 5]]);
    }
}

#[test]
fn who_is_alone_runs_all_blocks() {
    let slot = Slot::new();
    for width in [2, 3, 32, 33, MAX_WIDTH] {
        assert!(slot.take());
        let order = Mutex::new(vec![]);
        let body = |block| order.lock().expect("no block fails").push(block);
        let outcome = slot.run(500, width, &body, || ());
        assert_eq!(outcome.threads, 1);
        let mut order = order.into_inner().expect("no block fails");
        let own = 500_usize.div_ceil(width.min(32));
        assert!(order[..own].iter().copied().eq(0..own), "{order:?}");
        order.sort_unstable();
        assert!(order.into_iter().eq(0..500));
    }
}

#[test]
fn no_more_threads_take_part_than_may() {
    let slot = Slot::new();
    assert!(slot.take());
    let mut helped = true;
    let outcome = scope(|scope| {
        let (begun, went) = (Barrier::new(2), Barrier::new(2));
        let body = |block| {
            // The worker with the seat stays in its own block until the one without was there.
            if block == 1 {
                begun.wait();
                went.wait();
            }
        };
        slot.run(2, 2, &body, || {
            scope.spawn(|| slot.help(1));
            begun.wait();
            helped = slot.help(2);
            went.wait();
        })
    });
    assert_eq!((outcome.threads, helped), (2, false));
}
