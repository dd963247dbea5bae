//! Tables of C functions, either linked into the program or from an opened shared library.

use crate::executor::{Refusal, RefusalKind};
use libloading::Library as SharedObject;
use std::error::Error;
use std::fmt;

/// Declares a table: a struct of function pointers, and the ways of filling it. A field has the
/// function's name without its prefix.
macro_rules! functions {
    ($(#[$about:meta])* $visible:vis $table:ident {
        $($name:ident = $function:ident: fn($($type:ty),*) $(-> $result:ty)?;)*
    }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug)]
        #[allow(missing_docs, reason = "named after the functions that norm.h documents")]
        $visible struct $table {
            $($visible $name: unsafe extern "C" fn($($type),*) $(-> $result)?,)*
        }

        impl $table {
            /// The functions of an opened library, or of the linked one.
            #[allow(dead_code, reason = "not every table is filled in every way")]
            $visible fn of(
                source: Option<&$crate::library::functions::Opened>,
            ) -> Result<$table, $crate::executor::Refusal> {
                match source {
                    None => Ok($table::linked()),
                    Some(library) => $table::opened(library),
                }
            }

            /// The functions linked into the program.
            $visible fn linked() -> $table {
                $table { $($name: $function,)* }
            }

            /// The functions of an opened library; the refusal names a missing one.
            $visible fn opened(
                library: &$crate::library::functions::Opened,
            ) -> Result<$table, $crate::executor::Refusal> {
                // SAFETY: functions of these names have oneDNN's prototypes, which norm.h shares.
                Ok(unsafe { $table { $($name: library.function(stringify!($name))?,)* } })
            }
        }
    };
}
pub(crate) use functions;

/// The prefixes of libraries' functions, in order of preference. A library with both is used by oneDNN's names, under
/// which it is compared.
const PREFIXES: [&str; 2] = ["dnnl", "norm"];

/// A shared library that stays open until the program ends.
pub struct Opened {
    // Closing it would unmap code that its own threads are executing.
    handle: &'static SharedObject,
    prefix: &'static str,
}

impl Opened {
    /// Opens the library at `path` and determines its prefix.
    pub fn open(path: &str) -> Result<Opened, Refusal> {
        // SAFETY: the user named the library, so its initialization is as trusted as the program.
        let handle = unsafe { open_locally(path) }
            .map_err(|error| failure(format!("cannot open {path}: {}", reason(&error))))?;
        let handle: &'static SharedObject = Box::leak(Box::new(handle));
        let has = |prefix: &str| {
            // SAFETY: the symbol is looked up but not used.
            unsafe { handle.get::<*const ()>(format!("{prefix}_engine_create").as_str()) }.is_ok()
        };
        match PREFIXES.into_iter().find(|prefix| has(prefix)) {
            Some(prefix) => Ok(Opened { handle, prefix }),
            None => {
                let names = PREFIXES.map(|prefix| format!("{prefix}_engine_create")).join(" nor ");
                Err(failure(format!("{path} has neither {names}; it is not a library like oneDNN")))
            }
        }
    }

    /// The prefix of the library's functions.
    pub fn prefix(&self) -> &'static str {
        self.prefix
    }

    /// The function with this name after the prefix.
    ///
    /// # Safety
    /// `F` is a pointer to a function with the prototype of that function.
    pub unsafe fn function<F: Copy>(&self, name: &str) -> Result<F, Refusal> {
        // SAFETY: guaranteed by the caller.
        Ok(unsafe { pointer(self.address_of(name)?) })
    }

    /// The symbol with exactly this name, in the library or its dependencies.
    ///
    /// # Safety
    /// `F` is a pointer to a function with the prototype of that function.
    pub unsafe fn symbol<F: Copy>(&self, name: &str) -> Option<F> {
        // SAFETY: guaranteed by the caller; the library stays open.
        self.address(name).map(|address| unsafe { pointer(address) })
    }

    fn address_of(&self, name: &str) -> Result<*const (), Refusal> {
        let name = format!("{}_{name}", self.prefix);
        self.address(&name).ok_or_else(|| Refusal {
            kind: RefusalKind::Unimplemented,
            message: format!("the library has no {name}"),
        })
    }

    fn address(&self, name: &str) -> Option<*const ()> {
        // SAFETY: the address is not used here.
        unsafe { self.handle.get::<*const ()>(name) }.ok().map(|symbol| *symbol)
    }
}

/// An address as a pointer to a function of type `F`.
///
/// # Safety
/// `F` is a pointer to a function with the prototype of the one at that address.
unsafe fn pointer<F: Copy>(address: *const ()) -> F {
    const { assert!(size_of::<F>() == size_of::<*const ()>()) }
    // SAFETY: both are pointers; the rest is guaranteed by the caller.
    unsafe { std::mem::transmute_copy(&address) }
}

impl fmt::Debug for Opened {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Opened({})", self.prefix)
    }
}

/// Opens with all symbols bound immediately, and preferably within the library itself.
#[cfg(unix)]
unsafe fn open_locally(path: &str) -> Result<SharedObject, libloading::Error> {
    use libloading::os::unix;
    // SAFETY: guaranteed by the caller.
    unsafe { unix::Library::open(Some(path), unix::RTLD_NOW | unix::RTLD_LOCAL) }.map(Into::into)
}

#[cfg(not(unix))]
unsafe fn open_locally(path: &str) -> Result<SharedObject, libloading::Error> {
    // SAFETY: guaranteed by the caller.
    unsafe { SharedObject::new(path) }
}

/// The system's message, without libloading's wrapping.
fn reason(error: &libloading::Error) -> String {
    error.source().map_or_else(|| error.to_string(), |source| source.to_string())
}

fn failure(message: String) -> Refusal {
    Refusal { kind: RefusalKind::Failure, message }
}
