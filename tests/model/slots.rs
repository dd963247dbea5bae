//! Models of one slot: who may claim which block. A worker looks for work a fixed number of times
//! and does not sleep. It may arrive before, during or after a job.

use crate::runners::Runners;
use crate::slot::Slot;
use loom::sync::Arc;
use loom::thread;
use std::sync::Mutex;

/// Explores the interleavings of a caller and `workers` workers that each look for work `looks`
/// times, with at most `preemptions` preemptions.
fn explore(preemptions: usize, workers: usize, looks: usize, caller: fn(&Slot)) {
    crate::check(preemptions, move || {
        let slot = Arc::new(Slot::new());
        let looking: Vec<_> = (1..=workers)
            .map(|worker| {
                let slot = slot.clone();
                thread::spawn(move || (0..looks).for_each(|_| _ = slot.help(worker)))
            })
            .collect();
        caller(&slot);
        for worker in looking {
            worker.join().expect("a worker ends well");
        }
    });
}

/// Runs a job. Returns, per block, whether this thread ran it.
fn run(slot: &Slot, blocks: usize, width: usize) -> Vec<bool> {
    assert!(slot.take());
    Runners::of(blocks, width, |body| slot.run(blocks, width, body, || ()))
}

/// One of the two callers may find the slot taken.
#[test]
fn two_callers_and_one_slot() {
    const CALLER: fn(&Slot) = |slot| {
        if slot.take() {
            Runners::of(2, 2, |body| slot.run(2, 2, body, || ()));
        }
    };
    crate::check(3, || {
        let slot = Arc::new(Slot::new());
        let other = slot.clone();
        let other = thread::spawn(move || CALLER(&other));
        CALLER(&slot);
        other.join().expect("a caller ends well");
    });
}

/// Either thread may run the caller's share and the worker's, even if the worker comes late or never.
#[test]
fn either_thread_may_run_a_share() {
    static SEEN: Mutex<Vec<Vec<bool>>> = Mutex::new(vec![]);
    explore(3, 1, 1, |slot| {
        let by_caller = run(slot, 2, 2);
        let mut seen = SEEN.lock().expect("no caller fails");
        if !seen.contains(&by_caller) {
            seen.push(by_caller);
        }
    });
    let seen = SEEN.lock().expect("no caller fails");
    for by_caller in [[true, false], [true, true], [false, false]] {
        assert!(seen.contains(&by_caller.to_vec()), "{by_caller:?} is not among {seen:?}");
    }
}

/// The worker may still hold a share of the first job while the second is written.
#[test]
fn a_worker_is_late_for_a_job() {
    explore(3, 1, 1, |slot| {
        run(slot, 1, 2);
        run(slot, 1, 2);
    });
}

#[test]
fn a_worker_is_late_for_a_job_of_another_size() {
    explore(3, 1, 1, |slot| {
        run(slot, 2, 2);
        run(slot, 3, 2);
    });
}

#[test]
fn two_workers_and_one_seat() {
    explore(2, 2, 1, |slot| _ = run(slot, 3, 2));
}

#[test]
fn three_threads_and_two_shares() {
    explore(2, 2, 1, |slot| _ = run(slot, 3, 3));
}
