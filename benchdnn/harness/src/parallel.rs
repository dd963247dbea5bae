//! Loops over independent items on all cores.
//!
//! rayon's iterators are compiled for every combination of adapters and closures. Here they are used in one place, by
//! functions that take references to closures.

use rayon::prelude::*;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// The elements below which handing work to another thread does not pay.
pub const GRAIN: usize = 16 * 1024;

/// Calls `work` with every index below `count`.
fn for_each_index(count: usize, work: &(dyn Fn(usize) + Sync)) {
    (0..count).into_par_iter().for_each(work);
}

/// Calls `work` for each item and its index. A task has at least `grain` items.
pub fn for_each<T: Send>(
    items: impl Iterator<Item = T>,
    grain: usize,
    work: &(dyn Fn(usize, T) + Sync),
) {
    each(items.map(Some).collect(), grain.max(1), work);
}

fn each<T: Send>(mut items: Vec<Option<T>>, grain: usize, work: &(dyn Fn(usize, T) + Sync)) {
    let tasks: Vec<Mutex<&mut [Option<T>]>> = items.chunks_mut(grain).map(Mutex::new).collect();
    for_each_index(tasks.len(), &|task| {
        // Every task is taken once, so no one waits.
        let mut items = tasks[task].lock().unwrap_or_else(PoisonError::into_inner);
        for (i, item) in items.iter_mut().enumerate() {
            if let Some(item) = item.take() {
                work(task * grain + i, item);
            }
        }
    });
}

/// The results of `work` for each item and its index, in order. A task has at least `grain` items.
pub fn map<T: Send, R: Send>(
    items: impl Iterator<Item = T>,
    grain: usize,
    work: &(dyn Fn(usize, T) -> R + Sync),
) -> Vec<R> {
    let items: Vec<T> = items.collect();
    let mut results: Vec<Option<R>> = items.iter().map(|_| None).collect();
    for_each(items.into_iter().zip(&mut results), grain, &|i, (item, result)| {
        *result = Some(work(i, item));
    });
    results.into_iter().flatten().collect()
}

/// The results of `work` for every index below `count`, in order.
pub fn map_elements<R: Send + Clone>(count: usize, work: &(dyn Fn(usize) -> R + Sync)) -> Vec<R> {
    let ranges = (0..count.div_ceil(GRAIN)).map(|i| i * GRAIN..count.min((i + 1) * GRAIN));
    map(ranges, 1, &|_, range: Range<usize>| range.map(work).collect::<Vec<R>>()).concat()
}

/// Changes every element, with its index.
pub fn change<T: Send>(elements: &mut [T], work: &(dyn Fn(usize, &mut T) + Sync)) {
    for_each(elements.chunks_mut(GRAIN), 1, &|chunk, elements: &mut [T]| {
        for (i, element) in elements.iter_mut().enumerate() {
            work(chunk * GRAIN + i, element);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_visited_once_and_results_keep_their_order() {
        for grain in [0, 1, 3, 100] {
            let squares = map(10..20, grain, &|i, item| (i, item * item));
            assert_eq!(squares, (0..10).map(|i| (i, (10 + i) * (10 + i))).collect::<Vec<_>>());
        }
        assert!(map(0..0, 1, &|i, _| i).is_empty());
    }

    #[test]
    fn elements_have_their_own_indices_in_every_chunk() {
        let count = 2 * GRAIN + 5;
        assert!(map_elements(count, &|i| 3 * i).into_iter().eq((0..count).map(|i| 3 * i)));
        let mut elements: Vec<usize> = vec![1; count];
        change(&mut elements, &|i, element| *element += i);
        assert!(elements.into_iter().eq(1..=count));
    }
}
