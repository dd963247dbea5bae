//! The device that runs primitives: [`Engine`].

use std::fmt;

use norm_sys as sys;

use crate::error::{Error, Result, check};
use crate::handle::Handle;

/// A kind of engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EngineKind {
    /// The CPU.
    Cpu,
    /// A GPU. Not available.
    Gpu,
}

impl EngineKind {
    fn to_c(self) -> sys::norm_engine_kind_t {
        match self {
            Self::Cpu => sys::norm_cpu,
            Self::Gpu => sys::norm_gpu,
        }
    }

    /// The number of engines of this kind: 1 for the CPU, 0 for others.
    pub fn count(self) -> usize {
        // SAFETY: no preconditions.
        unsafe { sys::norm_engine_get_count(self.to_c()) }
    }
}

/// The device that runs primitives. Objects created with an engine may outlive it.
pub struct Engine(Handle<sys::norm_engine>);

impl Engine {
    /// The CPU.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory).
    pub fn cpu() -> Result<Self> {
        Self::new(EngineKind::Cpu, 0)
    }

    /// Engine number `index` of a kind, less than [`EngineKind::count`].
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments) if there is no such
    /// engine.
    pub fn new(kind: EngineKind, index: usize) -> Result<Self> {
        // SAFETY: on success the function stores a new engine that the caller owns.
        unsafe { Handle::create(|out| sys::norm_engine_create(out, kind.to_c(), index)) }.map(Self)
    }

    /// The kind of this engine.
    ///
    /// # Errors
    /// None in practice; only an internal error of the library.
    pub fn kind(&self) -> Result<EngineKind> {
        let mut kind = sys::norm_any_engine;
        // SAFETY: the engine is valid and `kind` is a place for the answer.
        check(unsafe { sys::norm_engine_get_kind(self.as_ptr(), &mut kind) })?;
        match kind {
            sys::norm_cpu => Ok(EngineKind::Cpu),
            sys::norm_gpu => Ok(EngineKind::Gpu),
            _ => Err(Error::defect("the engine's kind does not exist")),
        }
    }

    pub(crate) fn as_ptr(&self) -> sys::norm_engine_t {
        self.0.as_ptr()
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Engine").field(&self.kind()).finish()
    }
}
