//! Weights that are permuted for another pairing, and back.

use super::{TYPES, World};
use crate::handles::done;
use crate::layouts::Descs;
use crate::source::Source;
use norm_sys as sys;

// SAFETY of the blocks in this file: handles are live, NULL where the header allows it, and buffers are as large as
// descriptors say.
impl World {
    pub(super) fn permute(&self, source: &mut Source<'_>) {
        let heads = source.one_of(&[1, 2, 3]);
        let head = source.one_of(&[2, 4, 8, 10, 7]);
        let dims = [heads * head, source.one_of(&[1, 3, 17])];
        let dims = &dims[..1 + source.below(2)];
        let data_type = source.one_of(&TYPES);
        let mut descs = Descs::default();
        // The permuted weights may have gaps; the others are compared byte by byte.
        let dense = descs.keep(crate::layouts::described(dims, data_type, None));
        let any = if source.one_in(8) {
            self.desc(source)
        } else {
            descs.tensor(source, dims, data_type)
        };
        let [first, last] = [0, 2].map(|slot| self.held(dense, slot, source));
        let permuted = self.held(any, 1, source);
        let (Some(first), Some(permuted), Some(last)) = (first, permuted, last) else { return };
        let pairings: [u32; 2] = std::array::from_fn(|_| {
            sys::norm_rope_interleaved + source.below(3) as u32 + u32::from(source.one_in(30)) * 9
        });
        let heads = source.one_of(&[heads, heads, heads, 1, 2, 0, -1, i64::MAX]);
        let rotary = source.one_of(&[head / 2 * 2, 2, 4, 0, -2, 3, i64::MAX]);
        let before = permuted.buffer.contents();
        first.buffer.protect(0);
        let (from, to) = (pairings[0], pairings[1]);
        let (src, weights, dst) = (first.handle, permuted.handle, last.handle);
        if !done(unsafe { sys::norm_rope_permute(from, to, heads, rotary, src, weights) }) {
            assert!(permuted.buffer.contents() == before, "a refused call wrote");
            return;
        }
        permuted.buffer.protect(1);
        let back = unsafe { sys::norm_rope_permute(to, from, heads, rotary, weights, dst) };
        assert!(done(back), "no way back");
        assert!(last.buffer.contents() == first.buffer.contents(), "other weights");
    }

    /// Calls a function with numbers, names or a tensor of its own.
    pub(super) fn measure(&self, source: &mut Source<'_>) {
        match source.below(8) {
            0 | 1 => super::numbers::name(source),
            2 => super::numbers::window(source),
            3 | 4 => super::numbers::frequencies(source),
            5 => self.permute(source),
            _ => self.explain(source),
        }
    }
}
