//! Library-wide functions: version, instruction set, threads, verbosity.
//!
//! Settings apply to the whole process. None of them changes a bit of a result.

use std::ffi::CStr;
use std::fmt;

use norm_sys as sys;

use crate::error::{Error, Result, check};

/// The version of the running library. With the `system` feature it may differ from this crate's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// Incremented for incompatible changes.
    pub major: i32,
    /// Incremented for additions.
    pub minor: i32,
    /// Incremented for fixes.
    pub patch: i32,
    /// The source revision, or `""` if not known.
    pub hash: &'static str,
}

impl fmt::Display for Version {
    /// "0.1.0"
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// The version of the running library.
pub fn version() -> Version {
    // SAFETY: never NULL, and static.
    let version = unsafe { &*sys::norm_version() };
    let hash = if version.hash.is_null() {
        ""
    } else {
        // SAFETY: a static NUL-terminated string.
        unsafe { CStr::from_ptr(version.hash) }.to_str().unwrap_or("")
    };
    Version { major: version.major, minor: version.minor, patch: version.patch, hash }
}

/// An instruction set that kernels are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CpuIsa {
    /// No explicit vector instructions.
    Portable,
    /// AVX2 with FMA and F16C.
    Avx2,
    /// AVX-512 F, BW, DQ and VL.
    Avx512,
    /// The same, and AVX512-BF16.
    Avx512Bf16,
    /// The same, and AMX with bf16.
    Avx512Amx,
    /// NEON, on aarch64.
    Neon,
}

impl CpuIsa {
    fn to_c(self) -> sys::norm_cpu_isa_t {
        match self {
            Self::Portable => sys::norm_cpu_isa_portable,
            Self::Avx2 => sys::norm_cpu_isa_avx2,
            Self::Avx512 => sys::norm_cpu_isa_avx512_core,
            Self::Avx512Bf16 => sys::norm_cpu_isa_avx512_core_bf16,
            Self::Avx512Amx => sys::norm_cpu_isa_avx512_core_amx,
            Self::Neon => sys::norm_cpu_isa_neon,
        }
    }
}

/// Limits the instruction set of primitives created from now on. `None` removes the limit.
///
/// Until the first call the limit comes from the environment variable `NORM_MAX_CPU_ISA`.
///
/// # Errors
/// [`ErrorKind::Unimplemented`](crate::ErrorKind::Unimplemented) for an instruction set of another
/// architecture.
pub fn set_max_cpu_isa(isa: Option<CpuIsa>) -> Result<()> {
    let isa = isa.map_or(sys::norm_cpu_isa_default, CpuIsa::to_c);
    // SAFETY: no preconditions.
    check(unsafe { sys::norm_set_max_cpu_isa(isa) })
}

/// The instruction set that a primitive created now would use.
pub fn effective_cpu_isa() -> CpuIsa {
    // SAFETY: no preconditions.
    match unsafe { sys::norm_get_effective_cpu_isa() } {
        sys::norm_cpu_isa_avx2 => CpuIsa::Avx2,
        sys::norm_cpu_isa_avx512_core => CpuIsa::Avx512,
        sys::norm_cpu_isa_avx512_core_bf16 => CpuIsa::Avx512Bf16,
        sys::norm_cpu_isa_avx512_core_amx => CpuIsa::Avx512Amx,
        sys::norm_cpu_isa_neon => CpuIsa::Neon,
        _ => CpuIsa::Portable,
    }
}

/// Sets the number of threads of an execution, including the calling thread. 0 restores the
/// default: `NORM_NUM_THREADS`, or else the number of CPUs available to the process.
///
/// # Errors
/// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments) above 255.
pub fn set_num_threads(num_threads: usize) -> Result<()> {
    let num_threads = i32::try_from(num_threads).map_err(|_| {
        Error::invalid("num_threads", format_args!("is {num_threads}; the most is 255"))
    })?;
    // SAFETY: no preconditions.
    check(unsafe { sys::norm_set_num_threads(num_threads) })
}

/// The number of threads that an execution may use.
pub fn num_threads() -> usize {
    // SAFETY: no preconditions.
    usize::try_from(unsafe { sys::norm_get_num_threads() }).unwrap_or(1)
}

/// The number of threads that took part in the calling thread's last execution; 0 before the first.
pub fn last_num_threads() -> usize {
    // SAFETY: no preconditions.
    usize::try_from(unsafe { sys::norm_get_last_num_threads() }).unwrap_or(0)
}

/// What the library prints to standard output, in lines that begin with `norm_verbose,`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Verbose {
    /// Nothing.
    #[default]
    Off,
    /// Executions with their times in milliseconds.
    Executions,
    /// Also creations, and why implementations were skipped.
    All,
}

/// Sets the verbosity. Until the first call it comes from the environment variable `NORM_VERBOSE`.
///
/// # Errors
/// None in practice; only an internal error of the library.
pub fn set_verbose(verbose: Verbose) -> Result<()> {
    let level = match verbose {
        Verbose::Off => 0,
        Verbose::Executions => 1,
        Verbose::All => 2,
    };
    // SAFETY: no preconditions.
    check(unsafe { sys::norm_set_verbose(level) })
}
