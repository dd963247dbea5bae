//! Statuses and the version.

use super::exported;
use norm_sys as sys;
use std::ffi::c_char;

exported! {
    /// The name of a status.
    fn norm_status2str as dnnl_status2str(status: sys::norm_status_t) -> *const c_char, else c"unknown status".as_ptr(); {
        Ok(match status {
            sys::norm_success => c"success",
            sys::norm_out_of_memory => c"out_of_memory",
            sys::norm_invalid_arguments => c"invalid_arguments",
            sys::norm_unimplemented => c"unimplemented",
            sys::norm_last_impl_reached => c"last_impl_reached",
            sys::norm_runtime_error => c"runtime_error",
            sys::norm_not_required => c"not_required",
            _ => c"unknown status",
        }.as_ptr())
    }
}

/// The version, shareable between threads.
struct Version(sys::norm_version_t);

// SAFETY: its only pointer is to a static string.
unsafe impl Sync for Version {}

/// Parses a component of the Cargo version.
const fn number(text: &str) -> i32 {
    let (bytes, mut value, mut i) = (text.as_bytes(), 0, 0);
    while i < bytes.len() {
        value = value * 10 + (bytes[i] - b'0') as i32;
        i += 1;
    }
    value
}

/// The revision passed to the build, for example by `cargo xtask stage` in a git repository.
const REVISION: &str = match option_env!("NORM_REVISION") {
    Some(revision) => revision,
    None => "",
};

/// The revision as a C string.
static HASH: [u8; REVISION.len() + 1] = {
    let (text, mut bytes, mut i) = (REVISION.as_bytes(), [0; REVISION.len() + 1], 0);
    while i < text.len() {
        bytes[i] = text[i];
        i += 1;
    }
    bytes
};

static VERSION: Version = Version(sys::norm_version_t {
    major: number(env!("CARGO_PKG_VERSION_MAJOR")),
    minor: number(env!("CARGO_PKG_VERSION_MINOR")),
    patch: number(env!("CARGO_PKG_VERSION_PATCH")),
    hash: HASH.as_ptr().cast(),
    cpu_runtime: 0x0100_0000,
    gpu_runtime: 0,
});

const _: () = assert!(
    VERSION.0.major == sys::NORM_VERSION_MAJOR
        && VERSION.0.minor == sys::NORM_VERSION_MINOR
        && VERSION.0.patch == sys::NORM_VERSION_PATCH,
    "norm.h and Cargo.toml give different versions"
);

exported! {
    /// The library's version.
    fn norm_version() -> *const sys::norm_version_t, else &raw const VERSION.0; {
        Ok(&raw const VERSION.0)
    }
}
