//! Models of the board: callers and workers running successive jobs. The checker reports a thread
//! that sleeps forever.

use crate::board::Board;
use crate::job::Length;
use crate::runners::Runners;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

struct Scene<const SLOTS: usize> {
    board: Board<SLOTS>,
    ends: AtomicBool,
}

/// Explores the interleavings of `callers` and `workers` workers with at most `preemptions`
/// preemptions.
fn explore<const SLOTS: usize>(
    preemptions: usize,
    workers: usize,
    callers: &'static [fn(&Board<SLOTS>)],
) {
    crate::check(preemptions, move || {
        let scene = Arc::new(Scene { board: Board::<SLOTS>::new(), ends: AtomicBool::new(false) });
        let serving: Vec<_> = (1..=workers)
            .map(|worker| {
                let scene = scene.clone();
                let ends = |scene: &Scene<SLOTS>| scene.ends.load(Ordering::Relaxed);
                thread::spawn(move || scene.board.serve(worker, || ends(&scene)))
            })
            .collect();
        let (here, elsewhere) = callers.split_first().expect("a scene has a caller");
        let calling: Vec<_> = elsewhere
            .iter()
            .map(|caller| {
                let scene = scene.clone();
                thread::spawn(move || caller(&scene.board))
            })
            .collect();
        here(&scene.board);
        for caller in calling {
            caller.join().expect("a caller ends well");
        }
        scene.ends.store(true, Ordering::Relaxed);
        scene.board.events.advance();
        scene.board.events.wake(workers);
        for worker in serving {
            worker.join().expect("a worker ends well");
        }
    });
}

/// Runs a job of `blocks` blocks on two threads.
fn share<const SLOTS: usize>(board: &Board<SLOTS>, blocks: usize) {
    Runners::of(blocks, 2, |body| board.run(blocks, 2, Length::Long, body));
}

#[test]
fn a_job_is_shared() {
    explore::<1>(3, 1, &[|board| share(board, 2)]);
}

#[test]
fn a_slot_is_used_again_for_a_larger_job() {
    explore::<1>(
        1,
        1,
        &[|board| {
            share(board, 1);
            share(board, 2);
        }],
    );
}

#[test]
fn two_workers_sleep() {
    explore::<1>(0, 2, &[|board| share(board, 1)]);
}

#[test]
fn two_callers_and_two_slots() {
    explore::<2>(0, 1, &[|board| share(board, 1), |board| share(board, 1)]);
}
