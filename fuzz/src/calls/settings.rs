//! Settings of the whole process. Other threads of a soak change them, too, so that a setting is not always the one
//! that was made here.

use crate::handles::{done, got};
use crate::source::Source;
use norm_sys as sys;
use std::ffi::CStr;

/// The capacity of the cache when the library is loaded.
const CAPACITY: i32 = 1024;

/// Changes a setting, or tries to.
// SAFETY of the blocks in this file: no pointers, or strings of the library.
pub(super) fn change(source: &mut Source<'_>) {
    match source.below(5) {
        0 => {
            // More threads than 1 would start a team, which Miri does not support.
            let valid = if cfg!(miri) { 1 } else { source.one_of(&[0, 1, 2]) };
            let count = source.one_of(&[valid, valid, -1, 256, i32::MIN]);
            assert_eq!(done(unsafe { sys::norm_set_num_threads(count) }), count == valid);
            assert!((1..=255).contains(&unsafe { sys::norm_get_num_threads() }));
        }
        1 => {
            let capacity = source.one_of(&[CAPACITY, 0, 7, i32::MAX, -1, i32::MIN]);
            let set = done(unsafe { sys::norm_set_primitive_cache_capacity(capacity) });
            assert_eq!(set, capacity >= 0);
            let told = got::<i32>(|out| unsafe { sys::norm_get_primitive_cache_capacity(out) });
            assert!(told.is_some_and(|capacity| capacity >= 0));
        }
        2 => {
            let mode = source.one_of(&[0, 1, 2, 3, 4, 5, u32::MAX]);
            let set = done(unsafe { sys::norm_set_default_fpmath_mode(mode) });
            assert_eq!(set, mode <= sys::norm_fpmath_mode_tf32);
            let told = got::<u32>(|out| unsafe { sys::norm_get_default_fpmath_mode(out) });
            assert!(told.is_some_and(|mode| mode <= sys::norm_fpmath_mode_tf32));
        }
        3 => {
            let hints = source.one_of(&[0, 1, 2, u32::MAX]);
            let set = done(unsafe { sys::norm_set_cpu_isa_hints(hints) });
            assert_eq!(set, hints <= sys::norm_cpu_isa_prefer_ymm);
            assert!(unsafe { sys::norm_get_cpu_isa_hints() } <= sys::norm_cpu_isa_prefer_ymm);
        }
        _ => {
            let isa = source.one_of(&[
                sys::norm_cpu_isa_default,
                sys::norm_cpu_isa_portable,
                sys::norm_cpu_isa_avx2,
                sys::norm_cpu_isa_neon,
                sys::norm_cpu_isa_avx512_core_amx,
                2,
            ]);
            done(unsafe { sys::norm_set_max_cpu_isa(isa) });
            let effective = unsafe { sys::norm_get_effective_cpu_isa() };
            let name = unsafe { CStr::from_ptr(sys::norm_cpu_isa2str(effective)) };
            assert!(name != c"unknown cpu_isa", "{effective:#x}");
        }
    }
}

/// Restores the settings.
pub(super) fn restore() {
    // See `change`.
    let threads = i32::from(cfg!(miri));
    let statuses = unsafe {
        [
            sys::norm_set_num_threads(threads),
            sys::norm_set_primitive_cache_capacity(CAPACITY),
            sys::norm_set_default_fpmath_mode(sys::norm_fpmath_mode_strict),
            sys::norm_set_cpu_isa_hints(sys::norm_cpu_isa_no_hints),
            sys::norm_set_max_cpu_isa(sys::norm_cpu_isa_default),
        ]
    };
    assert!(statuses.into_iter().all(done));
}
