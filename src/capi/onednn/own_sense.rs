//! Functions whose meaning differs between the two libraries.

use crate::capi::exported;
use crate::capi::names::named;
use crate::primitive::{CpuIsa, effective_level, set_cap_once};
use crate::simd::Level;
use norm_sys as sys;
use std::ffi::c_char;

/// The version of the oneDNN API that is implemented. Programs can identify this library by the
/// hash.
struct Version(sys::norm_version_t);

// SAFETY: its only pointer is to a static string.
unsafe impl Sync for Version {}

static VERSION: Version = Version(sys::norm_version_t {
    major: 3,
    minor: 14,
    patch: 0,
    hash: HASH.as_ptr().cast(),
    cpu_runtime: 0x0100_0000,
    gpu_runtime: 0,
});

const HASH: &str = concat!("libnorm-", env!("CARGO_PKG_VERSION"), "\0");

exported! {
    /// The version of the API.
    fn dnnl_version like norm_version() -> *const sys::norm_version_t, else &raw const VERSION.0; {
        Ok(&raw const VERSION.0)
    }
}

/// oneDNN numbers instruction sets per architecture. On aarch64 all of its values include NEON.
fn from_onednn(isa: sys::norm_cpu_isa_t) -> sys::norm_cpu_isa_t {
    match isa {
        0x1 | 0x3 | 0x7 | 0xf if cfg!(target_arch = "aarch64") => sys::norm_cpu_isa_neon,
        // oneDNN does not have these values.
        sys::norm_cpu_isa_portable | sys::norm_cpu_isa_neon => u32::MAX as sys::norm_cpu_isa_t,
        other => other,
    }
}

exported! {
    /// Limits the instruction set, once and before its first use.
    fn dnnl_set_max_cpu_isa like norm_set_max_cpu_isa(isa: sys::norm_cpu_isa_t) {
        set_cap_once(from_onednn(isa))
    }
}

exported! {
    /// The instruction set in use, as a oneDNN value. Portable code maps to the lowest.
    fn dnnl_get_effective_cpu_isa like norm_get_effective_cpu_isa() -> sys::norm_cpu_isa_t,
        else sys::norm_cpu_isa_default; {
        Ok(match effective_level() {
            Level::Portable | Level::Neon => sys::norm_cpu_isa_sse41,
            Level::Avx2 => sys::norm_cpu_isa_avx2,
            Level::Avx512 => sys::norm_cpu_isa_avx512_core,
            Level::Avx512Bf16 => sys::norm_cpu_isa_avx512_core_bf16,
            Level::Avx512Amx => sys::norm_cpu_isa_avx512_core_amx,
        })
    }
}

exported! {
    /// The name of an instruction set, with oneDNN's prefix.
    fn dnnl_cpu_isa2str like norm_cpu_isa2str(isa: sys::norm_cpu_isa_t) -> *const c_char,
        else c"unknown cpu_isa".as_ptr(); {
        Ok(named(CpuIsa::find(isa).map(CpuIsa::prefixed_name), c"unknown cpu_isa"))
    }
}
