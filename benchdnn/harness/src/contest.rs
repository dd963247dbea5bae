//! Times several contestants in alternation.
//!
//! On a shared machine, times drift by tens of per cent within seconds. Only adjacent samples can be compared, so the
//! contestants alternate, each round starts with a different one, and the result is the ratio within a round. A
//! contestant may leave the caches filled with its data, so each runs once before it is timed. It may also leave
//! threads spinning: with several threads, each sample starts when all others sleep, and the contestant first runs
//! untimed for a while to wake its own.

use crate::quiet;
use std::time::{Duration, Instant};

/// Something to time.
pub trait Contestant<E> {
    /// Runs for at least `warm_up`, if given, and at least once. Then runs `calls` times and returns how long that
    /// took.
    fn sample(&self, warm_up: Option<Duration>, calls: u64) -> Result<Duration, E>;
}

/// Every closure that runs the contestant once is a contestant.
impl<E, F: Fn() -> Result<(), E>> Contestant<E> for F {
    fn sample(&self, warm_up: Option<Duration>, calls: u64) -> Result<Duration, E> {
        time(warm_up, calls, self)
    }
}

/// Samples a closure that runs the contestant once.
pub fn time<E>(
    warm_up: Option<Duration>,
    calls: u64,
    mut run: impl FnMut() -> Result<(), E>,
) -> Result<Duration, E> {
    if let Some(least) = warm_up {
        let start = Instant::now();
        run()?;
        while start.elapsed() < least {
            run()?;
        }
    }
    let start = Instant::now();
    for _ in 0..calls {
        run()?;
    }
    Ok(start.elapsed())
}

/// How long the contest lasts, and under what conditions.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// Milliseconds, if `rounds` is 0.
    pub max_ms: u64,
    /// The number of rounds; 0 lets the time decide.
    pub rounds: u64,
    /// Each call must find cold caches, so there are no warm-up calls.
    pub cold: bool,
    /// The fewest rounds if the time decides.
    pub fewest: usize,
    /// A contestant may use several threads.
    pub threaded: bool,
}

/// Enough rounds for a median.
pub const FEWEST: usize = 5;
/// Enough rounds for a median of ratios even if in some of them a thread wakes too late.
pub const FEWEST_THREADED: usize = 9;

/// The lengths of a sample.
struct Pace {
    /// The shortest sample.
    shortest: Duration,
    /// The shortest warm-up, which is at least one call.
    warm_up: Duration,
}

/// Long enough to hide the clock's overhead.
const SINGLE: Pace = Pace { shortest: Duration::from_micros(20), warm_up: Duration::ZERO };
/// Longer than waking a thread, which takes 50 us if its processor sleeps.
const THREADED: Pace =
    Pace { shortest: Duration::from_micros(100), warm_up: Duration::from_micros(200) };

/// A longer call replaces the contents of the caches itself, whatever ran before. Some third-level caches hold hundreds
/// of MiB, and non-temporal stores take twice as long to lines that another contestant has left modified there.
const CACHES_MATTER: Duration = Duration::from_millis(50);
/// The most calls in a sample.
const MOST_CALLS: u128 = 1 << 20;

/// Runs the contestants in alternation. Returns the seconds per call of each contestant in each
/// round.
pub fn alternate<E>(contestants: &[&dyn Contestant<E>], terms: Terms) -> Result<Vec<Vec<f64>>, E> {
    let settle = || {
        if terms.threaded {
            quiet::wait();
        }
    };
    alternate_after(contestants, terms, settle)
}

/// The same, with `settle` before each sample.
fn alternate_after<E>(
    contestants: &[&dyn Contestant<E>],
    terms: Terms,
    settle: impl Fn(),
) -> Result<Vec<Vec<f64>>, E> {
    let pace = if terms.threaded { THREADED } else { SINGLE };
    let mut calls = Vec::new();
    let mut warm_ups = Vec::new();
    for contestant in contestants {
        settle();
        let once = contestant.sample(Some(Duration::ZERO), 1)?.as_nanos().max(1);
        let first = pace.shortest.as_nanos().div_ceil(once).min(MOST_CALLS);
        // A single call may have been disturbed; several are more reliable.
        let several = contestant.sample(None, first as u64)?.as_nanos().max(1);
        let needed = (pace.shortest.as_nanos() * first).div_ceil(several);
        calls.push(needed.clamp(1, MOST_CALLS) as u64);
        let caches_matter = !terms.cold && several / first < CACHES_MATTER.as_nanos();
        let warms_up = contestants.len() > 1 && (caches_matter || terms.threaded);
        warm_ups.push(warms_up.then_some(pace.warm_up));
    }
    let mut seconds = vec![Vec::new(); contestants.len()];
    let limit = Duration::from_millis(terms.max_ms);
    let start = Instant::now();
    for round in 0.. {
        for turn in 0..contestants.len() {
            let index = (round + turn) % contestants.len();
            settle();
            let time = contestants[index].sample(warm_ups[index], calls[index])?;
            seconds[index].push(time.as_secs_f64() / calls[index] as f64);
        }
        let count = round + 1;
        let done = match terms.rounds {
            0 => count >= terms.fewest && start.elapsed() >= limit,
            rounds => count as u64 >= rounds,
        };
        if done {
            break;
        }
    }
    Ok(seconds)
}

/// Median and quartiles.
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
    /// The quartiles of at least one number.
    pub fn of(mut numbers: Vec<f64>) -> Quartiles {
        numbers.sort_unstable_by(f64::total_cmp);
        let at = |quarter: usize| numbers[(numbers.len() - 1) * quarter / 4];
        Quartiles { low: at(1), median: at(2), high: at(3) }
    }

    /// The quartiles of the ratios of two contestants' times, per round.
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
        warm_up: Cell<Option<Duration>>,
        calls: Cell<u64>,
    }

    impl<'a> Sleeper<'a> {
        fn new(name: char, nanoseconds: u64, log: &'a RefCell<String>) -> Self {
            Sleeper { name, log, nanoseconds, warm_up: Cell::new(None), calls: Cell::new(0) }
        }
    }

    impl Contestant<()> for Sleeper<'_> {
        fn sample(&self, warm_up: Option<Duration>, calls: u64) -> Result<Duration, ()> {
            let mut log = self.log.borrow_mut();
            log.extend(warm_up.map(|_| self.name));
            log.push(self.name);
            self.warm_up.set(warm_up);
            self.calls.set(calls);
            Ok(Duration::from_nanos(self.nanoseconds * calls))
        }
    }

    fn terms(rounds: u64, cold: bool, threaded: bool) -> Terms {
        Terms { max_ms: 0, rounds, cold, fewest: 7, threaded }
    }

    #[test]
    fn the_beginner_changes_and_samples_are_long_enough() {
        let log = RefCell::default();
        let sleeper = |name, nanoseconds| Sleeper::new(name, nanoseconds, &log);
        let (a, b, c) = (sleeper('a', 100), sleeper('b', 30_000), sleeper('c', 19_000));
        let long = sleeper('l', 60_000_000);
        let seconds = alternate(&[&a, &b, &c], terms(2, false, false)).expect("no error");
        assert_eq!(log.borrow().as_str(), "aaabbbcccaabbccbbccaa");
        assert_eq!([a.calls.get(), b.calls.get(), c.calls.get()], [200, 1, 2]);
        assert_eq!(a.warm_up.get(), Some(Duration::ZERO));
        let ratios = Quartiles::of_ratios(&seconds[1], &seconds[0]);
        assert!((ratios.median - 300.0).abs() < 1e-6, "{ratios:?}");
        log.borrow_mut().clear();
        alternate(&[&a, &b, &c], terms(4, true, false)).expect("no error");
        assert_eq!(log.borrow().as_str(), "aaabbbcccabcbcacababc");
        log.borrow_mut().clear();
        alternate(&[&a, &long], terms(1, false, false)).expect("no error");
        assert_eq!(log.borrow().as_str(), "aaalllaal");
        assert_eq!(alternate(&[&a], terms(0, false, false)).expect("no error")[0].len(), 7);
    }

    #[test]
    fn with_threads_a_turn_begins_in_quiet_and_wakes_its_own() {
        let log = RefCell::default();
        let (a, long) = (Sleeper::new('a', 100, &log), Sleeper::new('l', 3_000_000, &log));
        let settle = || log.borrow_mut().push('.');
        for cold in [false, true] {
            log.borrow_mut().clear();
            alternate_after(&[&a, &long], terms(2, cold, true), settle).expect("no error");
            assert_eq!(log.borrow().as_str(), ".aaa.lll.aa.ll.ll.aa", "cold: {cold}");
            assert_eq!([a.calls.get(), long.calls.get()], [1000, 1]);
            let warm_ups = [a.warm_up.get(), long.warm_up.get()];
            assert_eq!(warm_ups, [Some(Duration::from_micros(200)); 2]);
        }
    }

    #[test]
    fn a_warm_up_is_a_call_and_a_time() {
        let calls = Cell::new(0);
        let run = || {
            calls.set(calls.get() + 1);
            Ok::<(), ()>(())
        };
        let count = |warm_up, times| {
            calls.set(0);
            time(warm_up, times, run).expect("no error");
            calls.get()
        };
        assert_eq!(count(None, 3), 3);
        assert_eq!(count(Some(Duration::ZERO), 3), 4);
        let long = Duration::from_millis(2);
        let start = Instant::now();
        assert!(count(Some(long), 1) > 2);
        assert!(start.elapsed() >= long);
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
        assert_eq!(
            alternate(&[&fails], Terms { max_ms: 10, ..terms(0, false, false) }).err(),
            Some(7)
        );
    }
}
