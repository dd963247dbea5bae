//! Models of a crew: members that run tasks and help with each other's blocks.

use crate::body::Body;
use crate::crew::Crew;
use crate::slot::Slot;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

/// How often each block of each task ran. A task's member reads its blocks after they have finished, and the checker
/// reports unordered accesses.
struct Counts(Vec<Vec<UnsafeCell<u32>>>);

// SAFETY: the checker's cells report unordered accesses.
unsafe impl Send for Counts {}
// SAFETY: as above.
unsafe impl Sync for Counts {}

impl Counts {
    fn new(tasks: &[usize]) -> Self {
        Self(
            tasks.iter().map(|blocks| (0..*blocks).map(|_| UnsafeCell::new(0)).collect()).collect(),
        )
    }

    fn work(&self, crew: &Crew<'_>, index: usize) {
        crew.work(index, |task, member| {
            let count = |block| self.count(task, block);
            member.run(self.0[task].len(), 2, Body::new(&count));
            self.check(task);
        });
    }

    fn count(&self, task: usize, block: usize) {
        // SAFETY: the checker reports a concurrent access.
        self.0[task][block].with_mut(|count| unsafe { *count += 1 });
    }

    fn check(&self, task: usize) {
        for block in &self.0[task] {
            // SAFETY: as above.
            assert_eq!(block.with(|count| unsafe { *count }), 1);
        }
    }
}

/// Explores the interleavings of two members. One of them may join late or never.
fn explore(preemptions: usize, tasks: &'static [usize]) {
    crate::check(preemptions, move || {
        let slots: &'static [Slot] =
            Box::leak((0..tasks.len().min(2)).map(|_| Slot::new()).collect());
        let crew = Arc::new(Crew::new(slots, tasks.len(), 2));
        let counts = Arc::new(Counts::new(tasks));
        let (their_crew, their_counts) = (crew.clone(), counts.clone());
        // The crew borrows itself while it works.
        let other = thread::spawn(move || their_counts.work(&their_crew, 1));
        counts.work(&crew, 0);
        // When a member's work ends, every task has finished.
        (0..tasks.len()).for_each(|task| counts.check(task));
        other.join().expect("a member ends well");
    });
}

#[test]
fn a_member_without_a_task_helps() {
    explore(2, &[2]);
}

#[test]
fn each_member_has_a_task() {
    explore(1, &[2, 1]);
}
