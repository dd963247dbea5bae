//! The limit on the instruction set, set by a call or the environment, and the resulting level.

use crate::environment::Variable;
use crate::error::{Error, Result};
use crate::simd::Level;
use crate::text::c_str;
use norm_sys as sys;
use std::ffi::CStr;
use std::sync::atomic::{AtomicU32, Ordering};

/// A value of `norm_cpu_isa_t`, its name and the level that it allows; `None` means no limit.
pub(crate) struct CpuIsa {
    pub(crate) value: sys::norm_cpu_isa_t,
    /// The name with oneDNN's prefix, `cpu_isa_`.
    prefixed: &'static CStr,
    level: Option<Level>,
}

macro_rules! isa {
    ($value:ident, $name:literal, $level:expr) => {
        CpuIsa {
            value: sys::$value,
            prefixed: c_str(concat!("cpu_isa_", $name, "\0")),
            level: $level,
        }
    };
}

/// Every value, by its primary name.
const ISAS: &[CpuIsa] = &[
    isa!(norm_cpu_isa_default, "default", None),
    isa!(norm_cpu_isa_portable, "portable", Some(Level::Portable)),
    isa!(norm_cpu_isa_neon, "neon", Some(Level::Neon)),
    isa!(norm_cpu_isa_sse41, "sse41", Some(Level::Portable)),
    isa!(norm_cpu_isa_avx, "avx", Some(Level::Portable)),
    isa!(norm_cpu_isa_avx2, "avx2", Some(Level::Avx2)),
    isa!(norm_cpu_isa_avx2_vnni, "avx2_vnni", Some(Level::Avx2)),
    isa!(norm_cpu_isa_avx2_vnni_2, "avx2_vnni_2", Some(Level::Avx2)),
    isa!(norm_cpu_isa_avx512_core, "avx512_core", Some(Level::Avx512)),
    isa!(norm_cpu_isa_avx512_core_vnni, "avx512_core_vnni", Some(Level::Avx512)),
    isa!(norm_cpu_isa_avx512_core_bf16, "avx512_core_bf16", Some(Level::Avx512Bf16)),
    isa!(norm_cpu_isa_avx10_1_512, "avx10_1_512", Some(Level::Avx512Bf16)),
    isa!(norm_cpu_isa_avx10_1_512_amx, "avx10_1_512_amx", Some(Level::Avx512Amx)),
    isa!(norm_cpu_isa_avx10_1_512_amx_fp16, "avx10_1_512_amx_fp16", Some(Level::Avx512Amx)),
    isa!(norm_cpu_isa_avx10_2_512, "avx10_2", Some(Level::Avx512Bf16)),
    isa!(norm_cpu_isa_avx10_2_512_amx_2, "avx10_2_amx_2", Some(Level::Avx512Amx)),
];

/// Other names that the environment variable accepts.
const ALIASES: &[(&str, sys::norm_cpu_isa_t)] = &[
    ("all", sys::norm_cpu_isa_default),
    ("avx512", sys::norm_cpu_isa_avx512_core),
    ("avx512_bf16", sys::norm_cpu_isa_avx512_core_bf16),
    ("avx512_amx", sys::norm_cpu_isa_avx512_core_amx),
    ("avx512_core_fp16", sys::norm_cpu_isa_avx512_core_fp16),
    ("avx512_core_amx", sys::norm_cpu_isa_avx512_core_amx),
    ("avx512_core_amx_fp16", sys::norm_cpu_isa_avx512_core_amx_fp16),
    ("avx10_2_512", sys::norm_cpu_isa_avx10_2_512),
    ("avx10_2_512_amx_2", sys::norm_cpu_isa_avx10_2_512_amx_2),
];

impl CpuIsa {
    /// The row of a C value.
    pub(crate) fn find(value: sys::norm_cpu_isa_t) -> Option<&'static Self> {
        ISAS.iter().find(|isa| isa.value == value)
    }

    /// The name for C, with oneDNN's prefix.
    #[cfg(feature = "onednn-abi")]
    pub(crate) fn prefixed_name(&self) -> &'static CStr {
        self.prefixed
    }

    /// The name for C.
    pub(crate) fn c_name(&self) -> &'static CStr {
        let bytes = &self.prefixed.to_bytes_with_nul()["cpu_isa_".len()..];
        CStr::from_bytes_with_nul(bytes).unwrap_or_default()
    }

    fn name(&self) -> &'static str {
        self.c_name().to_str().unwrap_or_default()
    }

    /// The row of a name from the environment, in any case.
    fn find_name(name: &str) -> Option<&'static Self> {
        let is = |other: &str| other.eq_ignore_ascii_case(name);
        let alias = ALIASES.iter().find(|(alias, _)| is(alias));
        alias
            .and_then(|(_, value)| Self::find(*value))
            .or_else(|| ISAS.iter().find(|isa| is(isa.name())))
    }

    /// The value of a level.
    pub(crate) fn of_level(level: Level) -> sys::norm_cpu_isa_t {
        match level {
            Level::Portable => sys::norm_cpu_isa_portable,
            Level::Neon => sys::norm_cpu_isa_neon,
            Level::Avx2 => sys::norm_cpu_isa_avx2,
            Level::Avx512 => sys::norm_cpu_isa_avx512_core,
            Level::Avx512Bf16 => sys::norm_cpu_isa_avx512_core_bf16,
            Level::Avx512Amx => sys::norm_cpu_isa_avx512_core_amx,
        }
    }

    /// Whether the level belongs to this machine's architecture.
    fn is_of_this_architecture(&self) -> bool {
        match self.level {
            None | Some(Level::Portable) => true,
            Some(Level::Neon) => cfg!(target_arch = "aarch64"),
            Some(Level::Avx2 | Level::Avx512 | Level::Avx512Bf16 | Level::Avx512Amx) => {
                cfg!(target_arch = "x86_64")
            }
        }
    }
}

/// The limit set by a call or the environment; `UNSET` before the first use.
static CAP: AtomicU32 = AtomicU32::new(UNSET);
const UNSET: u32 = u32::MAX;

/// Limits the instruction set of primitive descriptors created from now on.
pub(crate) fn set_cap(value: sys::norm_cpu_isa_t) -> Result<()> {
    check(value)?;
    CAP.store(value, Ordering::Relaxed);
    Ok(())
}

/// The same with oneDNN's restriction: once, and before the limit is first used.
#[cfg(feature = "onednn-abi")]
pub(crate) fn set_cap_once(value: sys::norm_cpu_isa_t) -> Result<()> {
    check(value)?;
    match CAP.compare_exchange(UNSET, value, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => Ok(()),
        Err(_) => Err(Error::invalid("isa: the instruction set was already set or used")),
    }
}

/// Rejects unknown values and instruction sets of other architectures.
fn check(value: sys::norm_cpu_isa_t) -> Result<()> {
    let isa = CpuIsa::find(value).ok_or_else(|| {
        Error::invalid(format_args!("isa: {value:#x} is none of the norm_cpu_isa_* values"))
    })?;
    if !isa.is_of_this_architecture() {
        return Err(Error::unimplemented(format_args!(
            "isa: {} belongs to another architecture",
            isa.name()
        )));
    }
    Ok(())
}

/// The best level of the machine within the limit.
pub(crate) fn effective_level() -> Level {
    let value = match CAP.load(Ordering::Relaxed) {
        UNSET => cap_of_environment(),
        value => value,
    };
    let cap = CpuIsa::find(value).and_then(|isa| isa.level);
    let within = |level: &&Level| cap.is_none_or(|cap| **level <= cap);
    Level::available().iter().find(within).copied().unwrap_or(Level::Portable)
}

/// Applies the environment's limit, unless one was set in the meantime. Not a `OnceLock`: after
/// fork() the thread that holds it may not exist.
#[cold]
fn cap_of_environment() -> sys::norm_cpu_isa_t {
    let variable = Variable::shared("MAX_CPU_ISA");
    let isa = variable.as_ref().and_then(|variable| CpuIsa::find_name(variable.value()));
    let usable = isa.filter(|isa| isa.is_of_this_architecture());
    let value = usable.map_or(sys::norm_cpu_isa_default, |isa| isa.value);
    if let Err(set) = CAP.compare_exchange(UNSET, value, Ordering::Relaxed, Ordering::Relaxed) {
        return set;
    }
    match (variable, isa) {
        (Some(variable), None) => variable.warn(format_args!(
            "it is not an instruction set; try portable, avx2, avx512, avx512_bf16, avx512_amx or neon"
        )),
        (Some(variable), Some(isa)) if !isa.is_of_this_architecture() => {
            variable.warn("it belongs to another architecture");
        }
        _ => (),
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environment_names_are_recognized() {
        let level = |name| CpuIsa::find_name(name).map(|isa| isa.level);
        assert_eq!(level("portable"), Some(Some(Level::Portable)));
        assert_eq!(level("AVX2"), Some(Some(Level::Avx2)));
        assert_eq!(level("avx512"), Some(Some(Level::Avx512)));
        assert_eq!(level("avx512_core_bf16"), Some(Some(Level::Avx512Bf16)));
        assert_eq!(level("avx512_bf16"), Some(Some(Level::Avx512Bf16)));
        assert_eq!(level("avx512_core_vnni"), Some(Some(Level::Avx512)));
        assert_eq!(level("avx512_core_amx"), Some(Some(Level::Avx512Amx)));
        assert_eq!(level("ALL"), Some(None));
        assert_eq!(level("avx1024"), None);
    }
}
