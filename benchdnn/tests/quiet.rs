//! Waits for the other threads of the process. There is a single test, because it would also wait for the threads of
//! other tests.
#![cfg(target_os = "linux")]

use benchdnn::contest::{Contestant, Terms, alternate};
use benchdnn::quiet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

/// Longer than any test takes.
const LONG: Duration = Duration::from_secs(60);
/// Shorter than any wait.
const SHORT: Duration = Duration::from_millis(5);

/// The number of spinning threads.
static SPINNERS: AtomicUsize = AtomicUsize::new(0);

/// Spins on another thread until the time is over or `enough` is true. Returns once the thread spins.
fn spin<'s>(scope: &'s Scope<'s, '_>, time: Duration, enough: impl Fn() -> bool + Send + 's) {
    SPINNERS.fetch_add(1, Ordering::SeqCst);
    scope.spawn(move || {
        let begin = Instant::now();
        while begin.elapsed() < time && !enough() {
            std::hint::spin_loop();
        }
        SPINNERS.fetch_sub(1, Ordering::SeqCst);
    });
}

fn spinners() -> usize {
    SPINNERS.load(Ordering::SeqCst)
}

#[test]
fn who_spins_is_waited_for_but_not_for_ever() {
    thread::scope(|scope| {
        spin(scope, SHORT, || false);
        assert!(quiet::wait_for(LONG));
        assert_eq!(spinners(), 0);
    });
    // It does not wait for threads that have ended.
    assert!(quiet::wait_for(LONG));

    let enough = AtomicUsize::new(0);
    thread::scope(|scope| {
        spin(scope, LONG, || enough.load(Ordering::SeqCst) > 0);
        assert!(!quiet::wait_for(SHORT));
        assert_eq!(spinners(), 1);
        enough.store(1, Ordering::SeqCst);
    });

    // A contestant whose threads spin after its last call, and one that these would disturb.
    let (calls, met) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        let leaves = || {
            if spinners() == 0 {
                spin(scope, SHORT, || false);
            }
            Ok::<(), ()>(())
        };
        let meets = || {
            calls.fetch_add(1, Ordering::SeqCst);
            met.fetch_add(spinners(), Ordering::SeqCst);
            Ok::<(), ()>(())
        };
        let contestants: [&dyn Contestant<()>; 2] = [&leaves, &meets];
        let terms = Terms { max_ms: 0, rounds: 4, cold: false, fewest: 1, threaded: true };
        alternate(&contestants, terms).expect("no error");
    });
    // Without waiting, nearly every call would be disturbed. On a busy machine, a wait may time out.
    let [calls, met] = [calls, met].map(AtomicUsize::into_inner);
    assert!(calls > 4 && met < calls / 2, "{met} of {calls}");
}
