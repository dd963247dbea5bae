//! What the feature `onednn-abi` adds to the second names that [`exported!`](super::exported) makes: functions
//! that oneDNN has in another sense or alone, and those that this library does not have.

mod names;
mod own_sense;
mod unbuilt;

/// oneDNN exports it for its own tools; nothing is profiled here.
#[unsafe(no_mangle)]
extern "C" fn dnnl_verbose_profiling_enabled() -> std::ffi::c_int {
    0
}
