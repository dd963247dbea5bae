//! Functions of numbers: names of enumerators, sizes of types, windows, frequencies.

use super::memories::filled;
use crate::handles::{done, got};
use crate::source::Source;
use norm_sys as sys;
use std::ffi::{CStr, c_char};
use std::ptr::null;

type Name = unsafe extern "C" fn(u32) -> *const c_char;

const NAMES: [Name; 17] = [
    sys::norm_status2str,
    sys::norm_dt2str,
    sys::norm_fmt_tag2str,
    sys::norm_engine_kind2str,
    sys::norm_fmt_kind2str,
    sys::norm_prim_kind2str,
    sys::norm_alg_kind2str,
    sys::norm_prop_kind2str,
    sys::norm_scratchpad_mode2str,
    sys::norm_fpmath_mode2str,
    sys::norm_accumulation_mode2str,
    sys::norm_rounding_mode2str,
    sys::norm_quantization_mode2str,
    sys::norm_cpu_isa2str,
    sys::norm_cpu_isa_hints2str,
    sys::norm_warning2str,
    sys::norm_remedy2str,
];

/// Asks for the names of a value and for what else depends on it alone.
// SAFETY of the blocks in this file: strings of the library, and arrays with the lengths that are passed.
pub(super) fn name(source: &mut Source<'_>) {
    let value = match source.below(3) {
        0 => u32::from(source.byte()),
        1 => 1 << source.below(32),
        _ => {
            let first = [0x100, 0x1ff00, 0x30000, 0x0100_0000, u32::MAX - 255];
            source.one_of(&first) + u32::from(source.byte())
        }
    };
    let text = unsafe { CStr::from_ptr(source.one_of(&NAMES)(value)) };
    assert!(!text.is_empty() && text.to_bytes().is_ascii(), "{value:#x} is {text:?}");
    unsafe {
        let (epsilon, bytes) =
            (sys::norm_data_type_epsilon(value), sys::norm_data_type_size(value));
        assert!(epsilon == 0.0 || epsilon > 0.0 && epsilon < 1.0 && bytes > 0);
        assert_eq!(sys::norm_engine_get_count(value), usize::from(value < sys::norm_gpu));
        let version = &*sys::norm_version();
        assert_eq!(version.major, sys::NORM_VERSION_MAJOR as i32);
    }
}

/// Chooses the next window.
pub(super) fn window(source: &mut Source<'_>) {
    let strategy = sys::norm_window_fixed + source.below(6) as u32;
    let counts = [0, 1, 2, 100, 512, 4096, 1 << 40, i64::MAX / 4, i64::MAX, -1];
    let [length, least, most, previous] = std::array::from_fn(|_| source.one_of(&counts));
    let most = if source.one_in(4) { most } else { most.max(least) };
    let max_step = source.one_of(&[0, 0, 1, 64, i64::MAX, -1]);
    let numbers = [0.0, 1.0, 2.5, 6.9, 1e5, -1.0, 1e300, f64::NAN, f64::INFINITY];
    let (measured, vocabulary) = (source.one_of(&numbers), source.one_of(&numbers));
    let smoothing = source.one_of(&[1.0, 1.0, 0.25, 1e-300, 0.0, 2.0, f64::NAN]);
    let window = got::<i64>(|out| unsafe {
        sys::norm_adaptive_window(
            strategy, length, least, most, measured, vocabulary, previous, smoothing, max_step, out,
        )
    });
    if let Some(window) = window {
        assert!((least..=most).contains(&window), "{window} is not from {least} to {most}");
    }
}

/// Computes the frequencies of a rotation.
pub(super) fn frequencies(source: &mut Source<'_>) {
    let scaling = sys::norm_rope_scaling_none + source.below(8) as u32;
    let rotary = source.one_of(&[2, 4, 8, 64, 128, 0, 7, -2, 1 << 21, i64::MAX]);
    let base = source.one_of(&[1e4, 5e5, 2.0, 1.0, f64::MAX, f64::NAN, f64::INFINITY]);
    // Mostly as many parameters as the scaling has.
    let pairs = rotary.clamp(0, 128) / 2;
    let usual = [0, 1, 1, 3, 2 + source.below(7) as i32, 4, 2 + pairs as i32, 1];
    let usual = usual[(scaling - sys::norm_rope_scaling_none) as usize];
    let count = if source.one_in(8) { source.one_of(&[0, 1, 5, 9, -1]) } else { usual };
    let numbers = [1.0, 2.0, 4.0, 8.0, 32.0, 4096.0, 0.5, 0.0, -1.0, 1e300, f64::NAN];
    let given: Vec<[u8; 8]> = (0..count)
        .map(|at| {
            let hostile = source.one_in(16);
            let number = source.one_of(if hostile { &numbers[..] } else { &numbers[..6] });
            // Factors of llama3 ascend.
            if hostile { number } else { number + f64::from(at) }.to_ne_bytes()
        })
        .collect();
    let parameters = filled(8 * given.len(), 0, source);
    parameters.fill(|at| given[at / 8][at % 8]);
    parameters.protect(0);
    let out = filled(8 * pairs as usize, 1, source);
    let before = out.contents();
    let call = |magnitude| unsafe {
        let start = parameters.as_mut_ptr().cast::<f64>();
        let (start, out) = (if count == 0 { null() } else { start.cast_const() }, out.as_mut_ptr());
        sys::norm_rope_frequencies(scaling, rotary, base, count, start, out.cast(), magnitude)
    };
    let Some(magnitude) = got::<f32>(call) else {
        assert!(out.contents() == before, "a refused call wrote");
        return;
    };
    assert!(magnitude > 0.0 && magnitude.is_finite(), "a magnitude of {magnitude}");
    for bytes in out.contents().chunks_exact(8) {
        let frequency = f64::from_ne_bytes(bytes.try_into().expect("8 bytes"));
        assert!(frequency > 0.0 && frequency <= 2.0, "a frequency of {frequency}");
    }
    assert!(done(call(std::ptr::null_mut())), "no frequencies without a magnitude");
}
