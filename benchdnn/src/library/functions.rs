//! Tables of C functions: filled with those that the program is linked with, or with those of a
//! shared library that was opened.

use crate::executor::{Refusal, RefusalKind};
use libloading::Library as SharedObject;
use std::error::Error;
use std::fmt;

/// Declares a table: a struct of function pointers, and the two ways of filling it. A field is
/// named as the function is behind its prefix.
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
            /// The functions of a connection's library.
            #[allow(dead_code, reason = "not every table is filled in every way")]
            $visible fn of(
                connection: &$crate::library::Connection,
            ) -> Result<$table, $crate::executor::Refusal> {
                match connection.source() {
                    None => Ok($table::linked()),
                    Some(library) => $table::opened(library),
                }
            }

            /// The functions that the program is linked with.
            $visible fn linked() -> $table {
                $table { $($name: $function,)* }
            }

            /// The functions of an opened library; refused with the name of one that is missing.
            $visible fn opened(
                library: &$crate::library::Opened,
            ) -> Result<$table, $crate::executor::Refusal> {
                // SAFETY: functions of these names have oneDNN's prototypes, which norm.h shares.
                Ok(unsafe { $table { $($name: library.function(stringify!($name))?,)* } })
            }
        }
    };
}
pub(crate) use functions;

/// The prefixes that a library's functions may have, in the order of looking. A library that has
/// both is asked by oneDNN's names, which are what it is compared by.
const PREFIXES: [&str; 2] = ["dnnl", "norm"];

/// A shared library that stays open to the end of the program.
pub struct Opened {
    // Closing would take the code from under a library's own threads.
    handle: &'static SharedObject,
    prefix: &'static str,
}

impl Opened {
    /// Opens the library at `path` and finds out how its functions are called.
    pub fn open(path: &str) -> Result<Opened, Refusal> {
        // SAFETY: the user named the library; its initialisation is as trusted as the program.
        let handle = unsafe { open_locally(path) }
            .map_err(|error| failure(format!("cannot open {path}: {}", reason(&error))))?;
        let handle: &'static SharedObject = Box::leak(Box::new(handle));
        let has = |prefix: &str| {
            // SAFETY: the symbol is only looked for.
            unsafe { handle.get::<*const ()>(format!("{prefix}_engine_create").as_str()) }.is_ok()
        };
        match PREFIXES.into_iter().find(|prefix| has(prefix)) {
            Some(prefix) => Ok(Opened { handle, prefix }),
            None => {
                let names = PREFIXES.map(|prefix| format!("{prefix}_engine_create")).join(" nor ");
                Err(failure(format!("{path} has neither {names}: no library like oneDNN")))
            }
        }
    }

    /// What the names of the library's functions begin with.
    pub fn prefix(&self) -> &'static str {
        self.prefix
    }

    /// The function of this name behind the prefix.
    ///
    /// # Safety
    /// `F` is a pointer to a function with the prototype of that function.
    pub unsafe fn function<F: Copy>(&self, name: &str) -> Result<F, Refusal> {
        let name = format!("{}_{name}", self.prefix);
        // SAFETY: the caller's promise.
        unsafe { self.symbol(&name) }.ok_or_else(|| Refusal {
            kind: RefusalKind::Unimplemented,
            message: format!("the library has no {name}"),
        })
    }

    /// The symbol of this very name in the library or in one that it depends on.
    ///
    /// # Safety
    /// `F` is a pointer to a function with the prototype of that function.
    pub unsafe fn symbol<F: Copy>(&self, name: &str) -> Option<F> {
        // SAFETY: the caller's promise; the library stays open.
        unsafe { self.handle.get::<F>(name) }.ok().map(|symbol| *symbol)
    }
}

impl fmt::Debug for Opened {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Opened({})", self.prefix)
    }
}

/// Opens with all symbols bound at once, and to the library itself before anything else.
#[cfg(unix)]
unsafe fn open_locally(path: &str) -> Result<SharedObject, libloading::Error> {
    use libloading::os::unix;
    // SAFETY: the caller's promise.
    unsafe { unix::Library::open(Some(path), unix::RTLD_NOW | unix::RTLD_LOCAL) }.map(Into::into)
}

#[cfg(not(unix))]
unsafe fn open_locally(path: &str) -> Result<SharedObject, libloading::Error> {
    // SAFETY: the caller's promise.
    unsafe { SharedObject::new(path) }
}

/// What the system says, without libloading's own frame around it.
fn reason(error: &libloading::Error) -> String {
    error.source().map_or_else(|| error.to_string(), |source| source.to_string())
}

fn failure(message: String) -> Refusal {
    Refusal { kind: RefusalKind::Failure, message }
}
