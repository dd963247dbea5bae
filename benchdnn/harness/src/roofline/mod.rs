//! The limit that memory sets: the best plain copy of a problem's bytes.
//!
//! An operation cannot be faster than reading its main inputs and writing its main output: for layer
//! normalization, reading src and writing dst. Small tensors do not count. Several loops do just
//! that. The fastest of them at this size, on one thread or on as many as the problem may use, is the
//! limit that a problem is compared with.

mod kernels;
mod traffic;

pub use traffic::{Region, Traffic};

use crate::contest::{self, Contestant, FEWEST, Quartiles, Terms, alternate};
use crate::rotation::Turn;
use kernels::{Kernel, Streams};
use rayon::ThreadPool;
use std::convert::Infallible;
use std::time::Duration;

/// A kind of copy, ready to be timed.
pub struct Copy<'a> {
    sets: &'a [Streams],
    kernel: Kernel,
    /// `None` for the calling thread.
    pool: Option<&'a ThreadPool>,
    turn: &'a Turn,
}

/// The traffic of one or more equal sets of buffers, used in rotation, and the threads for it.
pub struct Roofline {
    sets: Vec<Streams>,
    kernels: Vec<Kernel>,
    pool: Option<ThreadPool>,
}

impl Roofline {
    /// `None` if there is nothing to move.
    ///
    /// # Safety
    /// The regions are valid, and unused otherwise while the copies run.
    pub unsafe fn new(sets: &[Traffic], threads: usize) -> Option<Roofline> {
        let sets: Option<Vec<Streams>> = sets.iter().map(Streams::new).collect();
        let sets = sets.filter(|sets| !sets.is_empty())?;
        let kernels = kernels::suited(&sets);
        let pool = (threads > 1)
            .then(|| rayon::ThreadPoolBuilder::new().num_threads(threads).build().ok())
            .flatten();
        Some(Roofline { sets, kernels, pool })
    }

    /// The copy with the smallest median time, found in about `max_ms` milliseconds; `None` if no
    /// loop suits the ratio of bytes read and written.
    pub fn best<'a>(&'a self, max_ms: u64, turn: &'a Turn) -> Option<Copy<'a>> {
        let copies: Vec<Copy<'a>> = [None, self.pool.as_ref()]
            .into_iter()
            .enumerate()
            .filter(|(index, pool)| *index == 0 || pool.is_some())
            .flat_map(|(_, pool)| self.kernels.iter().map(move |&kernel| (kernel, pool)))
            .map(|(kernel, pool)| Copy { sets: &self.sets, kernel, pool, turn })
            .collect();
        if copies.is_empty() {
            return None;
        }
        let contestants: Vec<&dyn Contestant<Infallible>> =
            copies.iter().map(|copy| copy as _).collect();
        let threaded = self.pool.is_some();
        let terms = Terms { max_ms, rounds: 0, cold: false, fewest: FEWEST, threaded };
        let Ok(seconds) = alternate(&contestants, terms);
        let medians = seconds.into_iter().map(|samples| Quartiles::of(samples).median);
        let best = copies.into_iter().zip(medians).min_by(|a, b| a.1.total_cmp(&b.1));
        best.map(|(copy, _)| copy)
    }
}

impl Copy<'_> {
    /// The name in messages.
    pub fn name(&self) -> String {
        match self.pool.map_or(1, ThreadPool::current_num_threads) {
            1 => self.kernel.name.to_owned(),
            threads => format!("{} on {threads} threads", self.kernel.name),
        }
    }

    fn run(&self, set: &Streams) {
        // SAFETY: the promise of `Roofline::new`; the kernel suits the machine and the buffers.
        unsafe { (self.kernel.run)(set, 0, set.steps()) };
    }
}

impl<E> Contestant<E> for Copy<'_> {
    fn sample(&self, warm_up: Option<Duration>, calls: u64) -> Result<Duration, E> {
        let (sets, kernel, first) = (self.sets, self.kernel, self.turn.take(0, self.sets.len()));
        let timed = |run: &dyn Fn(&Streams)| {
            let mut run_calls = 0;
            let Ok(time) = contest::time::<Infallible>(warm_up, calls, || {
                run(&sets[(first + run_calls) % sets.len()]);
                run_calls += 1;
                Ok(())
            });
            (time, run_calls)
        };
        let (time, run_calls) = match self.pool {
            None => timed(&|set| self.run(set)),
            // Inside the pool the threads are awake: the best case of a hand-off.
            Some(pool) => pool.install(|| {
                timed(&|set| split(set, kernel, 0, set.steps(), rayon::current_num_threads()))
            }),
        };
        self.turn.take(run_calls, sets.len());
        Ok(time)
    }
}

/// Runs a range of steps on several threads.
fn split(set: &Streams, kernel: Kernel, from: usize, to: usize, threads: usize) {
    if threads <= 1 || to - from < 2 {
        // SAFETY: as in `Copy::run`; the ranges of the threads do not overlap.
        unsafe { (kernel.run)(set, from, to) };
        return;
    }
    let half = threads / 2;
    let middle = from + (to - from) * half / threads;
    rayon::join(
        || split(set, kernel, from, middle, half),
        || split(set, kernel, middle, to, threads - half),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data_type::DataType;
    use crate::tensor::{Buffer, Layout};

    fn bytes(count: usize, seed: u8) -> Vec<u8> {
        (0..count).map(|i| (i as u8).wrapping_mul(31).wrapping_add(seed)).collect()
    }

    fn buffer(bytes: &[u8]) -> (Layout, Buffer) {
        let layout = Layout::dense(&[bytes.len() / 2], DataType::Bf16);
        let buffer = Buffer::input(&layout, bytes, 0);
        (layout, buffer)
    }

    fn region((layout, buffer): &(Layout, Buffer)) -> Region {
        Region { pointer: buffer.pointer(), bytes: layout.span() }
    }

    /// Runs every kernel, on one thread and on three, and checks what it wrote.
    fn each(first: usize, second: Option<usize>, to: usize, check: impl Fn(&str, &[u8])) {
        let (of_a, of_b) = (bytes(first, 1), second.map(|count| bytes(count, 7)));
        let (a, b) = (buffer(&of_a), of_b.as_deref().map(buffer));
        let c = buffer(&bytes(to, 0));
        let traffic = Traffic { first: region(&a), second: b.as_ref().map(region), to: region(&c) };
        for threads in [1, 3] {
            // SAFETY: the buffers outlive the copies, and this thread waits for them.
            let roofline = unsafe { Roofline::new(&[traffic], threads) }.expect("bytes to move");
            assert!(roofline.kernels.iter().any(|kernel| kernel.name.contains("portable")));
            let turn = &Turn::default();
            for &kernel in &roofline.kernels {
                c.1.put(&c.0, &vec![0xaa; to]);
                let pool = roofline.pool.as_ref();
                let copy = Copy { sets: &roofline.sets, kernel, pool, turn };
                let Ok(_) = Contestant::<Infallible>::sample(&copy, None, 2);
                check(&copy.name(), &c.1.elements(&c.0));
            }
        }
        assert_eq!(a.1.unchanged(&a.0, &of_a), Ok(()));
        if let (Some((layout, buffer)), Some(elements)) = (&b, &of_b) {
            assert_eq!(buffer.unchanged(layout, elements), Ok(()));
        }
    }

    #[test]
    fn a_copy_copies() {
        for count in [2, 64, 130, 4096, 70_000] {
            each(count, None, count, |name, got| assert!(got == bytes(count, 1), "{name} {count}"));
        }
    }

    #[test]
    fn every_byte_is_read_and_written() {
        // With types of different size, the smaller stream limits how far the larger one gets.
        for (first, to) in [(8192, 4096), (4096, 8192)] {
            each(first, None, to, |name, got| {
                let (a, line) = (bytes(first, 1), 64);
                let expected: Vec<u8> = (0..to)
                    .map(|i| match first > to {
                        true => {
                            let at = i / line * 2 * line + i % line;
                            a[at] ^ a[at + line]
                        }
                        false => a[i / (2 * line) * line + i % line],
                    })
                    .collect();
                assert!(got == expected, "{name}");
            });
        }
        each(4096, Some(4096), 4096, |name, got| {
            let (a, b) = (bytes(4096, 1), bytes(4096, 7));
            assert!(got.iter().zip(a.iter().zip(&b)).all(|(c, (a, b))| *c == a ^ b), "{name}");
        });
        for (first, second) in [(8192, 4096), (4096, 8192)] {
            let untouched = |got: &[u8]| got.iter().filter(|&&byte| byte == 0xaa).count();
            each(first, Some(second), first, |name, got| {
                assert!(untouched(got) < first / 16, "{name}");
            });
        }
    }

    #[test]
    fn the_best_one_is_one_of_them() {
        let (a, b) = (buffer(&bytes(4096, 1)), buffer(&bytes(4096, 2)));
        let traffic = Traffic { first: region(&a), second: None, to: region(&b) };
        // SAFETY: the buffers outlive the copies, and this thread waits for them.
        let roofline = unsafe { Roofline::new(&[traffic], 2) }.expect("bytes to move");
        let turn = Turn::default();
        let name = roofline.best(1, &turn).expect("a copy").name();
        let known = |kernel: &Kernel| name.starts_with(kernel.name);
        assert!(roofline.kernels.iter().any(known), "{name}");
        let empty = Traffic { to: Region { bytes: 0, ..traffic.to }, ..traffic };
        // SAFETY: nothing is moved.
        assert!(unsafe { Roofline::new(&[empty], 1) }.is_none());
    }
}
