//! Two layouts of one tensor as a loop nest.

use crate::error::Result;
use crate::heap;
use crate::tensor::{MemoryDesc, Offsets};

/// One loop: its trip count, and its strides in src and dst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Loop {
    pub(super) count: usize,
    pub(super) src: usize,
    pub(super) dst: usize,
}

/// The loops over all elements, with the smallest stride in dst innermost. `None` if the blocks of src and dst do not
/// divide each other or a dimension.
pub(super) fn loops(src: &MemoryDesc, dst: &MemoryDesc) -> Result<Option<Vec<Loop>>> {
    let (from, to) = (Offsets::of(src)?, Offsets::of(dst)?);
    let mut loops = Vec::new();
    for d in 0..src.ndims() {
        let (size, from, to) = (src.dims()[d] as usize, from.dim(d), to.dim(d));
        let mut steps = heap::list(from.steps().chain(to.steps()))?;
        steps.sort_unstable();
        steps.dedup();
        let mut steps = steps.into_iter().filter(|step| *step < size.max(2)).peekable();
        while let Some(step) = steps.next() {
            let end = *steps.peek().unwrap_or(&size);
            if end % step != 0 {
                return Ok(None);
            }
            let (src, dst) = (from.offset(step), to.offset(step));
            heap::push(&mut loops, Loop { count: end / step, src, dst })?;
        }
    }
    loops.retain(|l| l.count != 1);
    // Loops with equal strides are interchangeable.
    loops.sort_unstable_by_key(|l| (std::cmp::Reverse(l.dst), std::cmp::Reverse(l.src)));
    let mut merged: Vec<Loop> = Vec::new();
    for l in loops {
        match merged.last_mut() {
            Some(outer) if outer.src == l.src * l.count && outer.dst == l.dst * l.count => {
                *outer = Loop { count: outer.count * l.count, ..l };
            }
            _ => heap::push(&mut merged, l)?,
        }
    }
    Ok(Some(merged))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::DataType;
    use norm_sys as sys;

    fn desc(dims: &[i64], tag: sys::norm_format_tag_t) -> MemoryDesc {
        MemoryDesc::with_tag(dims, DataType::F32, tag).unwrap()
    }

    #[test]
    fn equal_layouts_are_one_loop() {
        for tag in [sys::norm_abc, sys::norm_cab, sys::norm_ABc16b16a] {
            let it = desc(&[32, 48, 3], tag);
            let one = Loop { count: 32 * 48 * 3, src: 1, dst: 1 };
            assert_eq!(loops(&it, &it).unwrap(), Some(vec![one]));
        }
    }

    #[test]
    fn loops_reach_every_element_once() {
        let tags =
            [sys::norm_abc, sys::norm_cba, sys::norm_bac, sys::norm_aBc16b, sys::norm_ABc16b16a];
        let dims = [32, 48, 3];
        for (s, d) in tags.iter().flat_map(|s| tags.iter().map(move |d| (*s, *d))) {
            let (src, dst) = (desc(&dims, s), desc(&dims, d));
            let mut pairs = vec![(0, 0)];
            for l in loops(&src, &dst).unwrap().unwrap() {
                pairs = pairs
                    .iter()
                    .flat_map(|&(a, b)| (0..l.count).map(move |i| (a + i * l.src, b + i * l.dst)))
                    .collect();
            }
            let (from, to) = (Offsets::of(&src).unwrap(), Offsets::of(&dst).unwrap());
            let mut expected: Vec<_> =
                (0..32 * 48 * 3).map(|i| (from.offset(i), to.offset(i))).collect();
            pairs.sort_unstable();
            expected.sort_unstable();
            assert_eq!(pairs, expected, "{s} {d}");
        }
    }

    #[test]
    fn ragged_blocks_have_no_loop_nest() {
        let (plain, blocked) =
            (desc(&[20, 3, 2], sys::norm_abc), desc(&[20, 3, 2], sys::norm_Abc16a));
        assert_eq!(loops(&plain, &blocked).unwrap(), None);
        let short = |tag| desc(&[7, 3, 2], tag);
        assert!(loops(&short(sys::norm_abc), &short(sys::norm_Abc16a)).unwrap().is_some());
    }
}
