//! The library as a whole: version, instruction set, threads, verbosity.
//!
//! These functions govern the whole process. None of the settings changes a bit of a result.

use std::ffi::CStr;
use std::fmt;

use norm_sys as sys;

use crate::error::{Error, Result, check};

/// The version of the library that runs (with the `system` feature it may differ from this
/// crate's).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// Changes when programs must change.
    pub major: i32,
    /// Changes when something was added.
    pub minor: i32,
    /// Changes when something was mended.
    pub patch: i32,
    /// The sources' revision, or `""` if not known.
    pub hash: &'static str,
}

impl fmt::Display for Version {
    /// "0.1.0"
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// The version of the library that runs.
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

/// An instruction set that the kernels exist for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CpuIsa {
    /// Plain code, no vector instructions.
    Portable,
    /// AVX2 with FMA and F16C.
    Avx2,
    /// AVX-512 F, BW, DQ and VL.
    Avx512,
    /// NEON, on aarch64.
    Neon,
}

impl CpuIsa {
    fn to_c(self) -> sys::norm_cpu_isa_t {
        match self {
            Self::Portable => sys::norm_cpu_isa_portable,
            Self::Avx2 => sys::norm_cpu_isa_avx2,
            Self::Avx512 => sys::norm_cpu_isa_avx512_core,
            Self::Neon => sys::norm_cpu_isa_neon,
        }
    }
}

/// Caps the instruction set of the primitives that are created from now on; `None` takes the cap
/// away.
///
/// Until the first call the environment variable `NORM_MAX_CPU_ISA` sets the cap.
///
/// # Errors
/// [`ErrorKind::Unimplemented`](crate::ErrorKind::Unimplemented) for a level of another
/// architecture than the machine's.
pub fn set_max_cpu_isa(isa: Option<CpuIsa>) -> Result<()> {
    let isa = isa.map_or(sys::norm_cpu_isa_default, CpuIsa::to_c);
    // SAFETY: no preconditions.
    check(unsafe { sys::norm_set_max_cpu_isa(isa) })
}

/// The level that a primitive created now would use.
pub fn effective_cpu_isa() -> CpuIsa {
    // SAFETY: no preconditions.
    match unsafe { sys::norm_get_effective_cpu_isa() } {
        sys::norm_cpu_isa_avx2 => CpuIsa::Avx2,
        sys::norm_cpu_isa_avx512_core => CpuIsa::Avx512,
        sys::norm_cpu_isa_neon => CpuIsa::Neon,
        _ => CpuIsa::Portable,
    }
}

/// How many threads, the caller's included, an execution may use. 0 goes back to the default:
/// `NORM_NUM_THREADS`, or else the processors that the process may run on.
///
/// # Errors
/// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments) above 1024.
pub fn set_num_threads(num_threads: usize) -> Result<()> {
    let num_threads = i32::try_from(num_threads)
        .map_err(|_| Error::invalid("num_threads", format_args!("is {num_threads}")))?;
    // SAFETY: no preconditions.
    check(unsafe { sys::norm_set_num_threads(num_threads) })
}

/// How many threads an execution may use.
pub fn num_threads() -> usize {
    // SAFETY: no preconditions.
    usize::try_from(unsafe { sys::norm_get_num_threads() }).unwrap_or(1)
}

/// How many different threads took part in the calling thread's last execution; 0 before the first.
pub fn last_num_threads() -> usize {
    // SAFETY: no preconditions.
    usize::try_from(unsafe { sys::norm_get_last_num_threads() }).unwrap_or(0)
}

/// What the library writes to standard output, in lines that begin with `norm_verbose,`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Verbose {
    /// Nothing.
    #[default]
    Off,
    /// Each execution, with its time in milliseconds.
    Executions,
    /// Also each creation, and why implementations were passed over.
    All,
}

/// Sets what is written. Until the first call the environment variable `NORM_VERBOSE` does.
///
/// # Errors
/// None in practice; a defect of the library would be one.
pub fn set_verbose(verbose: Verbose) -> Result<()> {
    let level = match verbose {
        Verbose::Off => 0,
        Verbose::Executions => 1,
        Verbose::All => 2,
    };
    // SAFETY: no preconditions.
    check(unsafe { sys::norm_set_verbose(level) })
}
