//! What is modelled: callers and workers, jobs one after another in a slot, more callers than slots.
//!
//! A block writes a cell that nothing protects; its caller reads it after the job. The checker ends
//! with an error if the two are not ordered, if a block runs twice or not at all, and if a thread
//! sleeps for ever.

use crate::board::Board;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

/// How often each block of a job ran.
struct Counts(Vec<UnsafeCell<usize>>);

// SAFETY: the checker's cells report accesses that are not ordered.
unsafe impl Send for Counts {}
// SAFETY: as above.
unsafe impl Sync for Counts {}

impl Counts {
    fn new(blocks: usize) -> Self {
        Self((0..blocks).map(|_| UnsafeCell::new(0)).collect())
    }

    /// Runs a job of one block per count, and finds each once.
    fn run<const SLOTS: usize>(&self, board: &Board<SLOTS>, width: usize) {
        let outcome = board.run(self.0.len(), width, &|block| {
            // SAFETY: the checker reports another access at the same time.
            self.0[block].with_mut(|count| unsafe { *count += 1 });
        });
        assert!((1..=width).contains(&outcome.threads), "{} of {width}", outcome.threads);
        assert!(!outcome.panicked);
        for count in &self.0 {
            // SAFETY: as above.
            assert_eq!(count.with(|count| unsafe { *count }), 1);
        }
    }
}

struct Scene<const SLOTS: usize> {
    board: Board<SLOTS>,
    ends: AtomicBool,
}

/// Runs every order of `callers` beside `workers` workers, with at most `preemptions` threads stopped
/// against their will in each.
fn explore<const SLOTS: usize>(
    preemptions: usize,
    workers: usize,
    callers: &'static [fn(&Board<SLOTS>)],
) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(move || {
        let scene = Arc::new(Scene { board: Board::<SLOTS>::new(), ends: AtomicBool::new(false) });
        let serving: Vec<_> = (0..workers)
            .map(|_| {
                let scene = scene.clone();
                thread::spawn(move || scene.board.serve(|| scene.ends.load(Ordering::Relaxed)))
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
        scene.board.bell.ring();
        scene.board.bell.wake(workers);
        for worker in serving {
            worker.join().expect("a worker ends well");
        }
    });
}

#[test]
fn a_job_is_shared() {
    explore::<1>(3, 1, &[|board| Counts::new(2).run(board, 2)]);
}

#[test]
fn a_slot_is_used_again_for_a_larger_job() {
    explore::<1>(
        2,
        1,
        &[|board| {
            let (small, large) = (Counts::new(1), Counts::new(2));
            small.run(board, 2);
            large.run(board, 2);
        }],
    );
}

#[test]
fn two_workers_and_room_for_one() {
    explore::<1>(1, 2, &[|board| Counts::new(2).run(board, 2)]);
}

#[test]
fn two_callers_and_one_slot() {
    const CALLER: fn(&Board<1>) = |board| Counts::new(2).run(board, 2);
    explore(1, 1, &[CALLER; 2]);
}

#[test]
fn two_callers_and_two_slots() {
    const CALLER: fn(&Board<2>) = |board| Counts::new(1).run(board, 2);
    explore(1, 1, &[CALLER; 2]);
}
