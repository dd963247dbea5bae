//! Timing several things by turns.
//!
//! On a machine that others use, too, times drift by tens of per cent within seconds. Only times
//! taken one right after the other can be compared, so the contestants take turns, another one
//! begins each round, and what counts is the ratio within a round. What a contestant leaves in the
//! caches is not the next one's business: each runs once before it is timed.

use std::time::{Duration, Instant};

/// Something to be timed.
pub trait Contestant<E> {
    /// Runs so many times and says how long that took.
    fn sample(&self, calls: u64) -> Result<Duration, E>;
}

/// Every closure that runs once is a contestant.
impl<E, F: Fn() -> Result<(), E>> Contestant<E> for F {
    fn sample(&self, calls: u64) -> Result<Duration, E> {
        let start = Instant::now();
        for _ in 0..calls {
            self()?;
        }
        Ok(start.elapsed())
    }
}

/// A sample takes at least this long, so that the clock's own time does not count.
const SHORTEST: Duration = Duration::from_micros(20);
/// Fewest rounds when time decides.
const FEWEST: usize = 5;
/// A call that takes longer than this finds the caches as it leaves them itself, whoever ran before.
const CACHES_MATTER: Duration = Duration::from_millis(2);
/// Most calls in a sample.
const MOST_CALLS: u128 = 1 << 20;

/// Lets the contestants take turns for `max_ms` milliseconds, or for `rounds` rounds if that is not
/// 0. Seconds per call: of each contestant, in each round. Unless the caches are to be `cold`, each
/// sample follows a call that is not timed.
pub fn alternate<E>(
    contestants: &[&dyn Contestant<E>],
    max_ms: u64,
    rounds: u64,
    cold: bool,
) -> Result<Vec<Vec<f64>>, E> {
    let mut calls = Vec::new();
    let mut warms_up = Vec::new();
    for contestant in contestants {
        contestant.sample(1)?;
        let once = contestant.sample(1)?.as_nanos().max(1);
        let first = SHORTEST.as_nanos().div_ceil(once).min(MOST_CALLS);
        // A single call may have been disturbed; several of them say more.
        let several = contestant.sample(first as u64)?.as_nanos().max(1);
        let needed = (SHORTEST.as_nanos() * first).div_ceil(several);
        calls.push(needed.clamp(1, MOST_CALLS) as u64);
        let per_call = several / first;
        warms_up.push(!cold && contestants.len() > 1 && per_call < CACHES_MATTER.as_nanos());
    }
    let mut seconds = vec![Vec::new(); contestants.len()];
    let limit = Duration::from_millis(max_ms);
    let start = Instant::now();
    for round in 0.. {
        for turn in 0..contestants.len() {
            let index = (round + turn) % contestants.len();
            if warms_up[index] {
                contestants[index].sample(1)?;
            }
            let time = contestants[index].sample(calls[index])?;
            seconds[index].push(time.as_secs_f64() / calls[index] as f64);
        }
        let count = round + 1;
        let done = match rounds {
            0 => count >= FEWEST && start.elapsed() >= limit,
            rounds => count as u64 >= rounds,
        };
        if done {
            break;
        }
    }
    Ok(seconds)
}

/// The middle half of some numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quartiles {
    /// A quarter of them is below.
    pub low: f64,
    /// Half of them is below.
    pub median: f64,
    /// A quarter of them is above.
    pub high: f64,
}

impl Quartiles {
    /// Of numbers, at least one.
    pub fn of(mut numbers: Vec<f64>) -> Quartiles {
        numbers.sort_unstable_by(f64::total_cmp);
        let at = |quarter: usize| numbers[(numbers.len() - 1) * quarter / 4];
        Quartiles { low: at(1), median: at(2), high: at(3) }
    }

    /// Of the ratios of two contestants' times, round by round.
    pub fn of_ratios(over: &[f64], under: &[f64]) -> Quartiles {
        Quartiles::of(over.iter().zip(under).map(|(over, under)| over / under).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};

    struct Sleeper<'a> {
        name: char,
        log: &'a RefCell<String>,
        nanoseconds: u64,
        calls: Cell<u64>,
    }

    impl Contestant<()> for Sleeper<'_> {
        fn sample(&self, calls: u64) -> Result<Duration, ()> {
            self.log.borrow_mut().push(self.name);
            self.calls.set(calls);
            Ok(Duration::from_nanos(self.nanoseconds * calls))
        }
    }

    #[test]
    fn the_beginner_changes_and_samples_are_long_enough() {
        let log = RefCell::default();
        let sleeper = |name, nanoseconds| {
            let calls = Cell::new(0);
            Sleeper { name, log: &log, nanoseconds, calls }
        };
        let (a, b, c) = (sleeper('a', 100), sleeper('b', 30_000), sleeper('c', 19_000));
        let seconds = alternate(&[&a, &b, &c], 0, 2, false).expect("no error");
        assert_eq!(log.borrow().as_str(), "aaabbbcccaabbccbbccaa");
        assert_eq!([a.calls.get(), b.calls.get(), c.calls.get()], [200, 1, 2]);
        let ratios = Quartiles::of_ratios(&seconds[1], &seconds[0]);
        assert!((ratios.median - 300.0).abs() < 1e-6, "{ratios:?}");
        log.borrow_mut().clear();
        alternate(&[&a, &b, &c], 0, 4, true).expect("no error");
        assert_eq!(log.borrow().as_str(), "aaabbbcccabcbcacababc");
        assert_eq!(alternate(&[&a], 0, 0, false).expect("no error")[0].len(), FEWEST);
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        // The machine is ten times slower in half of the rounds.
        let ours = [1.0, 10.0, 1.0, 10.0, 1.0];
        let theirs = [2.0, 20.0, 2.2, 20.0, 1.8];
        let ratios = Quartiles::of_ratios(&theirs, &ours);
        assert_eq!((ratios.low, ratios.median, ratios.high), (2.0, 2.0, 2.0));
        let five = Quartiles::of(vec![5.0, 1.0, 4.0, 2.0, 3.0]);
        assert_eq!((five.low, five.median, five.high), (2.0, 3.0, 4.0));
    }

    #[test]
    fn an_error_ends_it() {
        let fails = || Err::<(), i32>(7);
        assert_eq!(alternate(&[&fails], 10, 0, false).err(), Some(7));
    }
}
