//! Explanations of tensors, and texts of explanations in buffers that may be too short.

use super::World;
use super::memories::{Held, filled};
use crate::buffers::Buffer;
use crate::handles::{got, has_message};
use crate::layouts::Descs;
use crate::problems;
use crate::source::Source;
use norm_sys as sys;
use std::ptr::{null, null_mut};

type Remedies = [sys::norm_remedy_t; sys::NORM_REMEDIES as usize];

// SAFETY of the blocks in this file: handles are live, NULL where the header allows it, and buffers are as large as
// descriptors say.
impl World {
    pub(super) fn explain(&self, source: &mut Source<'_>) {
        let desc = self.desc(source);
        let Some(src) = self.held(desc, 0, source) else { return };
        let mut descs = Descs::default();
        let types = [sys::norm_f32, sys::norm_bf16, sys::norm_f16, sys::norm_f64, sys::norm_s8];
        let scale = match (problems::dims(desc).last(), source.below(4)) {
            (_, 0) => self.desc(source),
            (Some(cols), 1 | 2) => {
                let data_type = source.one_of(&types);
                descs.tensor(source, &[*cols], data_type)
            }
            _ => null_mut(),
        };
        let scale = self.held(scale, 1, source);
        src.buffer.protect(0);
        if let Some(scale) = &scale {
            scale.buffer.protect(1);
        }
        let rows = [-1, -1, 0, 1, 7, -2, i64::MAX];
        let row = source.one_of(&rows);
        let epsilon = source.one_of(&[1e-5, 1e-3, 0.0, 1e-8, -1.0, f32::NAN, f32::INFINITY]);
        let own = source.one_of(&[0, sys::norm_rms_norm, sys::norm_scale_plus_one, 1, u32::MAX]);
        let handle = |held: Option<&Held>| held.map_or(null(), |held| held.handle.cast_const());
        let (scale, src) = (handle(scale.as_ref()), handle(Some(&src)));
        let found = got::<sys::norm_explanation_t>(|out| unsafe {
            sys::norm_explain(src, scale, epsilon, own, row, out)
        });
        let remedies = got::<Remedies>(|out| unsafe {
            sys::norm_explain_remedies(src, scale, epsilon, own, row, out.cast())
        });
        assert_eq!(found.is_some(), remedies.is_some());
        if let (Some(found), Some(remedies)) = (found, remedies) {
            assert!(found.rows >= 0 && found.cols >= 0 && found.epsilon == f64::from(epsilon));
            assert!(remedies.iter().map(|remedy| remedy.kind).is_sorted());
            write(&found, remedies, source);
        }
    }
}

/// Writes an explanation to a buffer.
fn write(found: &sys::norm_explanation_t, mut remedies: Remedies, source: &mut Source<'_>) {
    let size = source.one_of(&[0, 1, 2, 50, 300, 3000]);
    let text: Buffer = filled(size, 2, source);
    let before = text.contents();
    let spoiled = source.one_in(8);
    if spoiled {
        remedies[source.below(remedies.len())].kind = source.one_of(&[0, 7, u32::MAX]);
    }
    let listed = if source.one_in(3) { null() } else { remedies.as_ptr() };
    let found = if source.one_in(12) { null() } else { &raw const *found };
    let start = text.as_mut_ptr().cast();
    let needed = unsafe { sys::norm_explanation_text(found, listed, start, size) };
    let refused = found.is_null() || spoiled && !listed.is_null();
    assert_eq!(needed == 0, refused);
    if refused {
        has_message();
        assert!(text.contents() == before, "a refused call wrote");
    } else if size > 0 {
        let written = text.contents();
        let end = written.iter().position(|byte| *byte == 0).expect("a text ends");
        assert_eq!(end + 1, needed.min(size));
        assert!(written[end + 1..] == before[end + 1..], "more than the text was written");
    }
    let none = unsafe { sys::norm_explanation_text(found, listed, null_mut(), 0) };
    assert_eq!(none, needed);
    if refused {
        has_message();
    }
}
