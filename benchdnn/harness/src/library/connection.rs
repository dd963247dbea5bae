//! A library with an engine and a stream, and its process-wide settings.

use super::functions::Opened;
use super::handle::Handle;
use super::tables::{Library, Own};
use super::values::text;
use crate::executor::{Control, CpuIsa, Refusal, RefusalKind};
use norm_sys::*;
use std::ffi::c_int;
use std::rc::Rc;

/// A library with its engine and its stream.
#[derive(Debug)]
pub struct Connection {
    library: Library,
    /// `None` for oneDNN.
    own: Option<Own>,
    /// The source of the functions; `None` if they are linked in.
    opened: Option<Opened>,
    /// OpenMP's functions, if an opened library uses its threads.
    openmp: Option<OpenMp>,
    // The stream is dropped before its engine.
    stream: Handle<norm_stream>,
    engine: Handle<norm_engine>,
    /// The library's default level, or that of the environment.
    initial_isa: norm_cpu_isa_t,
}

/// Sets the number of OpenMP's threads for the calling thread.
#[derive(Clone, Copy, Debug)]
struct OpenMp {
    set_num_threads: unsafe extern "C" fn(c_int),
    /// OpenMP's default.
    initial: c_int,
}

impl OpenMp {
    fn of(opened: &Opened) -> Option<OpenMp> {
        type Set = unsafe extern "C" fn(c_int);
        type Get = unsafe extern "C" fn() -> c_int;
        // SAFETY: OpenMP's functions of these names have these prototypes; the second one takes
        // nothing.
        unsafe {
            let set_num_threads = opened.symbol::<Set>("omp_set_num_threads")?;
            let initial = opened.symbol::<Get>("omp_get_max_threads")?();
            Some(OpenMp { set_num_threads, initial })
        }
    }
}

impl Connection {
    /// The library that the program is linked with.
    pub fn linked() -> Result<Connection, Refusal> {
        Connection::new(Library::linked(), Some(Own::linked()), None)
    }

    /// A library that was opened.
    pub fn opened(opened: Opened) -> Result<Connection, Refusal> {
        // In a library with oneDNN's names, they have oneDNN's meanings, which differ from those in `Own`.
        let own = if opened.prefix() == "norm" { Some(Own::opened(&opened)?) } else { None };
        Connection::new(Library::opened(&opened)?, own, Some(opened))
    }

    fn new(
        library: Library,
        own: Option<Own>,
        opened: Option<Opened>,
    ) -> Result<Connection, Refusal> {
        let check = |call, status| check(&library, own.as_ref(), opened.as_ref(), call, status);
        let engine = Handle::create(library.engine_destroy, |engine| {
            // SAFETY: `engine` is a valid place for a handle.
            check("engine_create", unsafe { (library.engine_create)(engine, norm_cpu, 0) })
        })?;
        let stream = Handle::create(library.stream_destroy, |stream| {
            // SAFETY: `stream` is a valid place for a handle and the engine is alive.
            let status =
                unsafe { (library.stream_create)(stream, engine.raw(), norm_stream_default_flags) };
            check("stream_create", status)
        })?;
        // SAFETY: the function has no parameters.
        let effective_isa = |own: Own| unsafe { (own.get_effective_cpu_isa)() };
        let initial_isa = own.map_or(norm_cpu_isa_default, effective_isa);
        if let (Some(own), None) = (own, &opened) {
            // Read the environment now, before `--compare` changes it for another library.
            // SAFETY: the function has no parameters.
            unsafe { (own.get_num_threads)() };
        }
        let openmp = if own.is_none() { opened.as_ref().and_then(OpenMp::of) } else { None };
        Ok(Connection { library, own, opened, openmp, stream, engine, initial_isa })
    }

    /// The functions.
    pub fn library(&self) -> &Library {
        &self.library
    }

    /// The source of the functions; `None` if they are linked in.
    pub fn source(&self) -> Option<&Opened> {
        self.opened.as_ref()
    }

    /// Whether the number of threads can be set: it can if the threads are the library's own or OpenMP's.
    pub fn sets_threads(&self) -> bool {
        self.own.is_some() || self.openmp.is_some()
    }

    /// The library's version, as in `3.2.0`.
    pub fn version(&self) -> String {
        // SAFETY: the function has no parameters and returns a structure that the library keeps.
        let version = unsafe { (self.library.version)().as_ref() };
        version.map_or_else(String::new, |version| {
            format!("{}.{}.{}", version.major, version.minor, version.patch)
        })
    }

    /// Turns a status into a result; `call` names the function, without its prefix, for the
    /// message.
    pub fn check(&self, call: &str, status: norm_status_t) -> Result<(), Refusal> {
        check(&self.library, self.own.as_ref(), self.opened.as_ref(), call, status)
    }

    /// The engine, owned by the connection.
    pub fn engine(&self) -> norm_engine_t {
        self.engine.raw()
    }

    /// The stream, owned by the connection.
    pub(super) fn stream(&self) -> norm_stream_t {
        self.stream.raw()
    }
}

fn check(
    library: &Library,
    own: Option<&Own>,
    opened: Option<&Opened>,
    call: &str,
    status: norm_status_t,
) -> Result<(), Refusal> {
    if status == norm_success {
        return Ok(());
    }
    let kind = if status == norm_unimplemented {
        RefusalKind::Unimplemented
    } else if status == norm_invalid_arguments {
        RefusalKind::InvalidArguments
    } else {
        RefusalKind::Failure
    };
    // SAFETY: both functions accept any argument, and return NUL-terminated text that stays valid
    // until the next failing call on this thread.
    let (name, reason) = unsafe {
        let reason = own.map_or_else(String::new, |own| text((own.get_last_error)()));
        (text((library.status2str)(status)), reason)
    };
    let message = if reason.is_empty() {
        format!("{}_{call}: {name}", opened.map_or("norm", Opened::prefix))
    } else {
        format!("{name}: {reason}")
    };
    Err(Refusal { kind, message })
}

impl Control for Rc<Connection> {
    fn set_cpu_isa(&self, isa: CpuIsa) -> Result<bool, Refusal> {
        let Some(own) = &self.own else { return Ok(isa == CpuIsa::Default) };
        let value = match isa {
            CpuIsa::Default => self.initial_isa,
            CpuIsa::Portable => norm_cpu_isa_portable,
            CpuIsa::Avx2 => norm_cpu_isa_avx2,
            CpuIsa::Avx512 => norm_cpu_isa_avx512_core,
            CpuIsa::Avx512Bf16 => norm_cpu_isa_avx512_core_bf16,
            CpuIsa::Avx512Amx => norm_cpu_isa_avx512_core_amx,
            CpuIsa::Neon => norm_cpu_isa_neon,
        };
        // SAFETY: the function accepts any value.
        let status = unsafe { (own.set_max_cpu_isa)(value) };
        if status == norm_unimplemented {
            return Ok(false);
        }
        self.check("set_max_cpu_isa", status)?;
        // SAFETY: the function has no parameters.
        let effective = unsafe { (own.get_effective_cpu_isa)() };
        Ok(isa == CpuIsa::Default || effective == value)
    }

    fn set_threads(&self, threads: u64) -> Result<(), Refusal> {
        let count = c_int::try_from(threads).unwrap_or(c_int::MAX);
        match (&self.own, &self.openmp) {
            (Some(own), _) => {
                // SAFETY: the function accepts any value.
                self.check("set_num_threads", unsafe { (own.set_num_threads)(count) })
            }
            (None, Some(openmp)) => {
                let count = if count == 0 { openmp.initial } else { count };
                // SAFETY: the function accepts any positive number.
                unsafe { (openmp.set_num_threads)(count) };
                Ok(())
            }
            // See `sets_threads`.
            (None, None) => Ok(()),
        }
    }

    fn threads(&self) -> u64 {
        // SAFETY: the function has no parameters.
        let threads = self.own.map_or(0, |own| unsafe { (own.get_num_threads)() });
        u64::try_from(threads).unwrap_or(0)
    }

    fn last_threads(&self) -> u64 {
        // SAFETY: the function has no parameters.
        let threads = self.own.map_or(0, |own| unsafe { (own.get_last_num_threads)() });
        u64::try_from(threads).unwrap_or(0)
    }
}
