//! Engines. There is one, the CPU.

use super::exported;
use super::handle::{Handle, Out, handles, is_owned, remove};
use crate::error::{Error, Result};
use crate::mark::{Kind, Mark};
use norm_sys as sys;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};

/// The device that runs primitives.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Engine {
    mark: Mark,
    /// The objects that were created with it, plus one until C destroys it.
    holders: AtomicUsize,
    /// Until C destroys it. Not part of the mark, which other threads may read: objects give out the handle.
    is_owned: AtomicBool,
}

handles! {
    Engine: norm_engine = Engine;
}

/// The engine of an object: it stays alive, with the handle that the caller knows, until its last holder ends.
#[derive(Debug)]
pub(super) struct HeldEngine(sys::norm_engine_t);

// SAFETY: the handle is read, and the count is atomic.
unsafe impl Send for HeldEngine {}
// SAFETY: as above.
unsafe impl Sync for HeldEngine {}

impl HeldEngine {
    /// # Safety
    /// As [`Handle::get`].
    pub(super) unsafe fn new(engine: sys::norm_engine_t, name: &str) -> Result<Self> {
        // SAFETY: guaranteed by the caller.
        unsafe { Engine::get(engine, name) }?.holders.fetch_add(1, Ordering::Relaxed);
        Ok(Self(engine))
    }

    pub(super) fn handle(&self) -> sys::norm_engine_t {
        self.0
    }
}

impl Clone for HeldEngine {
    fn clone(&self) -> Self {
        // SAFETY: this keeps the engine alive.
        unsafe { (*self.0.cast::<Engine>()).holders.fetch_add(1, Ordering::Relaxed) };
        Self(self.0)
    }
}

impl Drop for HeldEngine {
    fn drop(&mut self) {
        // SAFETY: until here this kept the engine alive. It came from `into_c`.
        unsafe {
            if (*self.0.cast::<Engine>()).holders.fetch_sub(1, Ordering::Release) == 1 {
                fence(Ordering::Acquire);
                remove::<Engine>(self.0);
            }
        }
    }
}

/// The number of engines of a kind.
fn count(kind: sys::norm_engine_kind_t) -> usize {
    usize::from(matches!(kind, sys::norm_cpu | sys::norm_any_engine))
}

exported! {
    /// The number of engines of a kind.
    fn norm_engine_get_count as dnnl_engine_get_count(kind: sys::norm_engine_kind_t) -> usize, else 0; {
        Ok(count(kind))
    }
}

exported! {
    /// Creates an engine.
    fn norm_engine_create as dnnl_engine_create(
        engine: *mut sys::norm_engine_t,
        kind: sys::norm_engine_kind_t,
        index: usize,
    ) {
        // SAFETY: guaranteed by the caller.
        let out = unsafe { Out::new(engine, "engine") }?;
        check(kind, index)?;
        let (mark, holders) = (Mark::part(Kind::Engine), AtomicUsize::new(1));
        out.set(Engine { mark, holders, is_owned: AtomicBool::new(true) }.into_c()?);
        Ok(())
    }
}

fn check(kind: sys::norm_engine_kind_t, index: usize) -> Result<()> {
    if kind == sys::norm_gpu {
        return Err(Error::invalid("kind: there is no GPU engine"));
    }
    match count(kind) {
        0 => Err(Error::invalid(format_args!("kind: {} is not an engine kind", kind as i32))),
        n if index >= n => {
            Err(Error::invalid(format_args!("index: {index}, but the only engine is number 0")))
        }
        _ => Ok(()),
    }
}

exported! {
    /// The kind of an engine.
    fn norm_engine_get_kind as dnnl_engine_get_kind(engine: sys::norm_engine_t, kind: *mut sys::norm_engine_kind_t) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            Engine::get(engine, "engine")?;
            Out::new(kind, "kind")?.set(sys::norm_cpu);
        }
        Ok(())
    }
}

exported! {
    /// Frees an engine once no object holds it.
    fn norm_engine_destroy as dnnl_engine_destroy(engine: sys::norm_engine_t) {
        if !engine.is_null() {
            // SAFETY: guaranteed by the caller.
            if !unsafe { Engine::get(engine, "engine") }?.is_owned.swap(false, Ordering::Relaxed) {
                return Err(is_owned("engine"));
            }
            // It has the caller's share of the count.
            drop(HeldEngine(engine));
        }
        Ok(())
    }
}
