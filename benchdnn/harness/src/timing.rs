//! Measures an execution: one warm-up run, then many, until a time or a count is reached.

use std::time::{Duration, Instant};

/// The fewest measured executions if the time decides, so that minimum and median are meaningful.
const FEWEST: u64 = 5;

/// Time per execution, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timing {
    /// The quickest.
    pub min_ms: f64,
    /// The mean.
    pub avg_ms: f64,
    /// The slowest.
    pub max_ms: f64,
    /// The median.
    pub median_ms: f64,
    /// How many were measured.
    pub executions: usize,
}

impl Timing {
    /// From at least one sample, each the seconds of an execution.
    pub fn of_seconds(samples: &[f64]) -> Timing {
        let mut samples = samples.to_vec();
        samples.sort_unstable_by(f64::total_cmp);
        let count = samples.len();
        Timing {
            min_ms: 1e3 * samples[0],
            avg_ms: 1e3 * samples.iter().sum::<f64>() / count as f64,
            max_ms: 1e3 * samples[count - 1],
            median_ms: 1e3 * samples[count / 2],
            executions: count,
        }
    }
}

/// Measures `execute` `fix_times` times, or for `max_ms` milliseconds if that is 0.
pub fn measure<E>(
    max_ms: u64,
    fix_times: u64,
    mut execute: impl FnMut() -> Result<(), E>,
) -> Result<Timing, E> {
    execute()?;
    let limit = Duration::from_millis(max_ms);
    let mut samples = Vec::new();
    let mut total = Duration::ZERO;
    loop {
        let start = Instant::now();
        execute()?;
        let time = start.elapsed();
        total += time;
        samples.push(time.as_secs_f64());
        let count = samples.len() as u64;
        let done =
            if fix_times > 0 { count >= fix_times } else { count >= FEWEST && total >= limit };
        if done {
            break;
        }
    }
    Ok(Timing::of_seconds(&samples))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    fn count(max_ms: u64, fix_times: u64, sleep: u64) -> (usize, Timing) {
        let mut calls = 0;
        let timing = measure(max_ms, fix_times, || {
            calls += 1;
            std::thread::sleep(Duration::from_millis(sleep));
            Ok::<(), Infallible>(())
        });
        let Ok(timing) = timing;
        (calls, timing)
    }

    #[test]
    fn counts_and_limits() {
        let (calls, timing) = count(10, 3, 0);
        assert_eq!((calls, timing.executions), (4, 3));
        let (calls, timing) = count(1, 0, 2);
        assert_eq!((calls, timing.executions), (6, 5));
        let (_, timing) = count(20, 0, 1);
        assert!((6..=20).contains(&timing.executions), "{timing:?}");
        assert!(1.0 <= timing.min_ms && timing.min_ms <= timing.median_ms);
        assert!(timing.min_ms <= timing.avg_ms);
    }

    #[test]
    fn an_error_ends_it() {
        assert_eq!(measure(10, 0, || Err::<(), i32>(7)), Err(7));
    }
}
