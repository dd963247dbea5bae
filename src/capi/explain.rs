//! Explanations of outputs.

use super::exported;
use super::handle::{Handle, Out};
use super::memory::Memory;
use super::names::named;
use crate::error::{Error, Result};
use crate::ops::explain::{
    Explanation, REMEDIES, Remedy, RemedyKind, Subject, View, WARNINGS, explain, remedies,
    write_text,
};
use norm_sys as sys;
use std::ffi::{CStr, c_char, c_uint};
use std::fmt;

/// The tensor of a memory.
///
/// # Safety
/// A handle, as the header requires.
unsafe fn view<'a>(memory: sys::const_norm_memory_t, name: &str) -> Result<View<'a>> {
    // SAFETY: guaranteed by the caller.
    let memory = unsafe { Memory::get(memory, name) }?;
    memory.check_tensor(name)?;
    Ok(View { desc: &memory.desc, data: memory.data })
}

/// # Safety
/// As [`view`].
unsafe fn subject(
    src: sys::const_norm_memory_t,
    scale: sys::const_norm_memory_t,
    epsilon: f32,
    flags: c_uint,
    row: sys::norm_dim_t,
) -> Result<Subject> {
    // SAFETY: guaranteed by the caller; memories are as large as their descriptors say.
    unsafe {
        let src = view(src, "src")?;
        let scale = if scale.is_null() { None } else { Some(view(scale, "scale")?) };
        Subject::new((src, scale), epsilon, flags, row)
    }
}

exported! {
    /// Measures the rows of a tensor.
    fn norm_explain(
        src: sys::const_norm_memory_t,
        scale: sys::const_norm_memory_t,
        epsilon: f32,
        flags: c_uint,
        row: sys::norm_dim_t,
        explanation: *mut sys::norm_explanation_t,
    ) {
        // SAFETY: guaranteed by the caller.
        let (subject, out) = unsafe {
            (subject(src, scale, epsilon, flags, row)?, Out::new(explanation, "explanation")?)
        };
        out.set(explanation_to_c(&explain(&subject)));
        Ok(())
    }
}

exported! {
    /// Remedies that would change the size of the output.
    fn norm_explain_remedies(
        src: sys::const_norm_memory_t,
        scale: sys::const_norm_memory_t,
        epsilon: f32,
        flags: c_uint,
        row: sys::norm_dim_t,
        remedies_: *mut sys::norm_remedy_t,
    ) {
        // SAFETY: guaranteed by the caller.
        let (subject, out) = unsafe {
            let out = Out::new(remedies_.cast::<[sys::norm_remedy_t; REMEDIES]>(), "remedies")?;
            (subject(src, scale, epsilon, flags, row)?, out)
        };
        out.set(remedies(&subject).map(|remedy| remedy_to_c(&remedy)));
        Ok(())
    }
}

exported! {
    /// An explanation as readable text.
    fn norm_explanation_text(
        explanation: *const sys::norm_explanation_t,
        remedies: *const sys::norm_remedy_t,
        text: *mut c_char,
        size: usize,
    ) -> usize, else 0; {
        if explanation.is_null() {
            return Err(Error::invalid("explanation is NULL"));
        }
        if text.is_null() && size > 0 {
            return Err(Error::invalid("text is NULL and size is not 0"));
        }
        // SAFETY: guaranteed by the caller.
        let found = unsafe { explanation_of_c(&*explanation) };
        let mut given = [Remedy::NONE; REMEDIES];
        if !remedies.is_null() {
            for (index, remedy) in given.iter_mut().enumerate() {
                // SAFETY: guaranteed by the caller.
                *remedy = remedy_of_c(unsafe { &*remedies.add(index) })?;
            }
        }
        let mut out = Cut { text: text.cast(), size, written: 0, needed: 1 };
        let shown = if remedies.is_null() { &given[..0] } else { &given[..] };
        // `Cut` accepts any text.
        let _ = write_text(&mut out, &found, shown);
        Ok(out.end())
    }
}

exported! {
    /// The name of a warning.
    fn norm_warning2str(warning: sys::norm_explanation_warning_t) -> *const c_char,
        else c"unknown warning".as_ptr(); {
        let found = WARNINGS.iter().find(|(bit, _)| *bit == warning);
        Ok(named(found.map(|(_, name)| *name), c"unknown warning"))
    }
}

exported! {
    /// The name of a remedy.
    fn norm_remedy2str(kind: sys::norm_remedy_kind_t) -> *const c_char,
        else c"unknown remedy".as_ptr(); {
        let name: Option<&'static CStr> = RemedyKind::of_code(kind).map(RemedyKind::c_name);
        Ok(named(name, c"unknown remedy"))
    }
}

/// A text in a buffer of C, cut off at its end.
struct Cut {
    text: *mut u8,
    size: usize,
    written: usize,
    /// Bytes of the whole text with its NUL.
    needed: usize,
}

impl Cut {
    /// Ends the text with its NUL. Returns the size of the whole text.
    fn end(self) -> usize {
        if self.size > 0 {
            // SAFETY: `write_str` leaves room for it.
            unsafe { self.text.add(self.written).write(0) };
        }
        self.needed
    }
}

impl fmt::Write for Cut {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.size.saturating_sub(1) - self.written;
        let fits = text.len().min(room);
        // SAFETY: the buffer has so much room left.
        unsafe { self.text.wrapping_add(self.written).copy_from(text.as_ptr(), fits) };
        self.written += fits;
        self.needed += text.len();
        Ok(())
    }
}

fn explanation_to_c(found: &Explanation) -> sys::norm_explanation_t {
    sys::norm_explanation_t {
        rows: found.rows as sys::norm_dim_t,
        cols: found.cols as sys::norm_dim_t,
        epsilon: found.epsilon,
        rms_in: found.rms_in,
        divisor: found.divisor,
        ratio: found.ratio,
        smallest_ratio: found.smallest_ratio,
        smallest_ratio_row: found.smallest_ratio_row as sys::norm_dim_t,
        scale_mean: found.scale_mean,
        scale_rms: found.scale_rms,
        correlation: found.correlation,
        rms_out: found.rms_out,
        amplification: found.amplification,
        warnings: found.warnings,
    }
}

fn explanation_of_c(given: &sys::norm_explanation_t) -> Explanation {
    Explanation {
        rows: given.rows as usize,
        cols: given.cols as usize,
        epsilon: given.epsilon,
        rms_in: given.rms_in,
        divisor: given.divisor,
        ratio: given.ratio,
        smallest_ratio: given.smallest_ratio,
        smallest_ratio_row: given.smallest_ratio_row as usize,
        scale_mean: given.scale_mean,
        scale_rms: given.scale_rms,
        correlation: given.correlation,
        rms_out: given.rms_out,
        amplification: given.amplification,
        warnings: given.warnings,
    }
}

fn remedy_to_c(remedy: &Remedy) -> sys::norm_remedy_t {
    let Remedy { kind, value, ratio, rms_out, amplification, scores } = *remedy;
    sys::norm_remedy_t { kind: kind.code(), value, ratio, rms_out, amplification, scores }
}

fn remedy_of_c(given: &sys::norm_remedy_t) -> Result<Remedy> {
    let sys::norm_remedy_t { kind, value, ratio, rms_out, amplification, scores } = *given;
    let kind = RemedyKind::given(kind, "remedies")?;
    Ok(Remedy { kind, value, ratio, rms_out, amplification, scores })
}
