//! Cold caches: enough sets of buffers that each one has left the cache before it is reused.

use crate::execution::{Placed, Placement, Role, Tensor};
use crate::executor::{Bound, Refusal};
use crate::report::Reporter;
use crate::run::ColdCache;
use std::cell::Cell;

/// The most sets. For small problems, the guard zones need more memory than the tensors.
const MOST_SETS: usize = 4096;

/// Sets of buffers for the tensors: one set, or enough to keep those that `cold` names out of the cache.
pub fn sets<'t>(
    tensors: &'t [Tensor],
    placement: Placement,
    cold: ColdCache,
    weights: &[i32],
    reporter: &mut Reporter<'_>,
) -> Vec<Placed<'t>> {
    let mut sets = vec![Placed::new(tensors, placement)];
    let changes = |tensor: &Tensor| {
        tensor.role != Role::Unused
            && match cold {
                ColdCache::None => false,
                ColdCache::Weights => weights.contains(&tensor.id),
                ColdCache::All => true,
            }
    };
    let bytes: usize =
        tensors.iter().filter(|tensor| changes(tensor)).map(|tensor| tensor.layout.span()).sum();
    if cold == ColdCache::None {
        return sets;
    }
    if bytes == 0 || !placement.inplace.is_empty() {
        let why = if bytes == 0 { "no such tensor" } else { "the problem works in place" };
        reporter.say(&format!("  cold cache: none: {why}"));
        return sets;
    }
    let cache = cache_bytes();
    let count = (2 * cache).div_ceil(bytes).clamp(2, MOST_SETS);
    reporter.detail(3, &format!("cold cache: {count} sets of {bytes} bytes, cache {cache}"));
    for _ in 1..count {
        let set = sets[0].again(changes);
        sets.push(set);
    }
    sets
}

/// The largest cache of the machine.
fn cache_bytes() -> usize {
    /// A typical size, if the machine does not report it.
    const USUAL: usize = 32 << 20;
    let size = |index: usize| {
        let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size");
        let text = std::fs::read_to_string(path).ok()?;
        let kilobytes: usize = text.trim().strip_suffix('K')?.parse().ok()?;
        Some(kilobytes << 10)
    };
    (0..8).filter_map(size).max().unwrap_or(USUAL)
}

/// The next of several sets of buffers. All contestants share one, so that none finds in the cache what another has
/// just used.
#[derive(Debug, Default)]
pub struct Turn(Cell<usize>);

impl Turn {
    /// Takes the next `calls` of `sets` sets and returns the index of the first.
    pub fn take(&self, calls: usize, sets: usize) -> usize {
        let first = self.0.get() % sets;
        self.0.set((first + calls) % sets);
        first
    }
}

/// A primitive bound to each of the sets, which are used in rotation.
pub struct Rotation<'a> {
    bound: Vec<Box<dyn Bound + 'a>>,
    turn: &'a Turn,
}

impl<'a> Rotation<'a> {
    /// A rotation of at least one set.
    pub fn new(bound: Vec<Box<dyn Bound + 'a>>, turn: &'a Turn) -> Rotation<'a> {
        assert!(!bound.is_empty(), "a set of buffers");
        Rotation { bound, turn }
    }
}

impl Bound for Rotation<'_> {
    fn execute(&self) -> Result<(), Refusal> {
        match self.bound.as_slice() {
            [only] => only.execute(),
            bound => bound[self.turn.take(1, bound.len())].execute(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    struct Set<'a>(usize, &'a RefCell<Vec<usize>>);

    impl Bound for Set<'_> {
        fn execute(&self) -> Result<(), Refusal> {
            self.1.borrow_mut().push(self.0);
            Ok(())
        }
    }

    #[test]
    fn no_set_is_reused_at_once() {
        let (turn, log) = (Turn::default(), RefCell::default());
        let bound = || (0..5).map(|i| Box::new(Set(i, &log)) as Box<dyn Bound + '_>).collect();
        let (ours, theirs) = (Rotation::new(bound(), &turn), Rotation::new(bound(), &turn));
        for _ in 0..2 {
            ours.execute().expect("no refusal");
            theirs.execute().expect("no refusal");
            theirs.execute().expect("no refusal");
        }
        assert_eq!(turn.take(3, 5), 1);
        ours.execute().expect("no refusal");
        assert_eq!(*log.borrow(), [0, 1, 2, 3, 4, 0, 4]);
    }
}
