//! Cold caches: as many sets of buffers as are needed for the first one to be out of the cache when
//! its turn comes again.

use crate::execution::{Placed, Placement, Role, Tensor};
use crate::executor::{Bound, Refusal};
use crate::report::Reporter;
use crate::run::ColdCache;
use std::cell::Cell;

/// Most sets: the buffers of a small problem need more memory for what lies around them than for
/// themselves.
const MOST_SETS: usize = 4096;

/// Sets of buffers for the tensors: one, or enough to empty the cache of those that `cold` names.
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
    if bytes == 0 || placement.inplace.is_some() {
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
    /// What machines of this time have if this one does not tell.
    const USUAL: usize = 32 << 20;
    let size = |index: usize| {
        let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size");
        let text = std::fs::read_to_string(path).ok()?;
        let kilobytes: usize = text.trim().strip_suffix('K')?.parse().ok()?;
        Some(kilobytes << 10)
    };
    (0..8).filter_map(size).max().unwrap_or(USUAL)
}

/// A primitive bound to each of the sets, which take turns.
pub struct Rotation<'a> {
    bound: Vec<Box<dyn Bound + 'a>>,
    next: Cell<usize>,
}

impl<'a> Rotation<'a> {
    /// Of at least one.
    pub fn new(bound: Vec<Box<dyn Bound + 'a>>) -> Rotation<'a> {
        assert!(!bound.is_empty(), "a set of buffers");
        Rotation { bound, next: Cell::new(0) }
    }
}

impl Bound for Rotation<'_> {
    fn execute(&self) -> Result<(), Refusal> {
        let index = self.next.get();
        self.next.set(if index + 1 == self.bound.len() { 0 } else { index + 1 });
        self.bound[index].execute()
    }
}
