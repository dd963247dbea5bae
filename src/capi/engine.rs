//! Engines. There is one, the CPU.

use super::exported;
use super::handle::{Handle, Out, handles};
use crate::error::{Error, Result};
use crate::mark::{Kind, Mark};
use norm_sys as sys;

/// The device that runs primitives.
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct Engine {
    mark: Mark,
}

handles! {
    Engine: norm_engine = Engine;
}

impl Engine {
    /// A handle owned by the object that contains this engine. Its C type is not const.
    pub(super) fn lend_mut(&self) -> sys::norm_engine_t {
        self.lend().cast_mut()
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
        out.set(Engine { mark: Mark::part(Kind::Engine) }.into_c()?);
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
    /// Frees an engine.
    fn norm_engine_destroy as dnnl_engine_destroy(engine: sys::norm_engine_t) {
        // SAFETY: guaranteed by the caller.
        unsafe { Engine::destroy(engine, "engine") }
    }
}
