//! Functions of the feature `onednn-abi` that [`exported!`](super::exported) does not generate:
//! those that oneDNN defines differently, those that only oneDNN has, and those that are not
//! implemented.

mod names;
mod own_sense;
mod unbuilt;

/// Exported for oneDNN's own tools. There is no profiling.
#[unsafe(no_mangle)]
extern "C" fn dnnl_verbose_profiling_enabled() -> std::ffi::c_int {
    0
}
