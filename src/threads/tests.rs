//! Which thread runs which block.

use super::crew::Crew;
use super::slot::{MAX_WIDTH, Slot};
use super::{Body, Length, Threads};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread::{ThreadId, current, scope};

/// Runs a job on this thread and the given workers in lockstep, one block per thread and step.
/// Returns each thread's blocks in order.
fn lockstep(slot: &Slot, blocks: usize, workers: &[usize]) -> Vec<Vec<usize>> {
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
        let outcome = slot.run(blocks, width, Body::new(&body), || {
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
fn a_block_goes_to_the_same_thread_in_every_job() {
    let slot = Slot::new();
    for _ in 0..20 {
        assert_eq!(lockstep(&slot, 8, &[1]), [[0, 1, 2, 3], [4, 5, 6, 7]]);
        assert_eq!(lockstep(&slot, 6, &[2, 1]), [[0, 1], [4, 5], [2, 3]]);
        // Surplus workers: any of them may take part.
        assert_eq!(lockstep(&slot, 6, &[5, 4]), [[0, 1], [2, 3], [4, 5]]);
    }
}

#[test]
fn a_lone_caller_runs_every_block() {
    let slot = Slot::new();
    for width in [2, 3, 32, 33, MAX_WIDTH] {
        assert!(slot.take());
        let order = Mutex::new(vec![]);
        let body = |block| order.lock().expect("no block fails").push(block);
        let outcome = slot.run(500, width, Body::new(&body), || ());
        assert_eq!(outcome.threads, 1);
        let mut order = order.into_inner().expect("no block fails");
        let own = 500_usize.div_ceil(width.min(32));
        assert!(order[..own].iter().copied().eq(0..own), "{order:?}");
        order.sort_unstable();
        assert!(order.into_iter().eq(0..500));
    }
}

#[test]
fn a_job_admits_no_more_threads_than_its_width() {
    let slot = Slot::new();
    assert!(slot.take());
    let mut helped = true;
    let outcome = scope(|scope| {
        let (joined, tried, both) = (Barrier::new(2), Barrier::new(2), Barrier::new(2));
        let body = |block| {
            // The worker with a seat stays in its block until the other one has tried to join. The caller has the other
            // block.
            if block == 1 {
                joined.wait();
                tried.wait();
            }
            both.wait();
        };
        slot.run(2, 2, Body::new(&body), || {
            scope.spawn(|| slot.help(1));
            joined.wait();
            helped = slot.help(2);
            tried.wait();
        })
    });
    assert_eq!((outcome.threads, helped), (2, false));
}

fn free_slots(count: usize) -> Vec<Slot> {
    (0..count).map(|_| Slot::new()).collect()
}

#[test]
fn every_block_of_every_task_runs_once() {
    for (tasks, width) in [(1, 2), (3, 2), (7, 3), (2, 4)] {
        for round in 0..200 {
            let counts: Vec<Vec<AtomicUsize>> = (0..tasks)
                .map(|task| (0..1 + (task + round) % 9).map(|_| AtomicUsize::new(0)).collect())
                .collect();
            let slots = free_slots(tasks.min(width));
            let crew = Crew::new(&slots, tasks, width);
            let members = Threads::Library.run(
                width,
                width,
                Length::Long,
                Body::new(&|index| {
                    crew.work(index, |task, member| {
                        let blocks = &counts[task];
                        let ran = member.run(
                            blocks.len(),
                            width,
                            Body::new(&|block| {
                                blocks[block].fetch_add(1, Ordering::Relaxed);
                            }),
                        );
                        assert!((1..=width).contains(&ran));
                        assert!(blocks.iter().all(|count| count.load(Ordering::Relaxed) == 1));
                    });
                }),
            );
            assert!((1..=width).contains(&members));
            assert!(counts.iter().flatten().all(|count| count.load(Ordering::Relaxed) == 1));
        }
    }
}

#[test]
fn members_are_told_apart_and_one_alone_does_everything() {
    let slots = free_slots(2);
    let crew = Crew::new(&slots, 5, 2);
    let ran = AtomicUsize::new(0);
    crew.work(1, |_, member| {
        assert_eq!(member.number, 0);
        assert_eq!(member.run(3, 2, Body::new(&|_| _ = ran.fetch_add(1, Ordering::Relaxed))), 1);
    });
    assert_eq!(ran.into_inner(), 15);
}

#[test]
fn a_panic_keeps_nobody_waiting() {
    let slots = free_slots(2);
    let crew = Crew::new(&slots, 6, 2);
    let ran = AtomicUsize::new(0);
    let work = AssertUnwindSafe(|| {
        Threads::Library.run(
            2,
            2,
            Length::Long,
            Body::new(&|index| {
                crew.work(index, |task, member| {
                    member.run(2, 2, Body::new(&|block| assert!(task != 3 || block != 1)));
                    ran.fetch_add(1, Ordering::Relaxed);
                });
            }),
        )
    });
    assert!(catch_unwind(work).is_err());
    assert_eq!(ran.into_inner(), 5);
}
