//! The library that `--compare` names, opened before anything runs.

use crate::language::value::BadValue;
use crate::library::{Connection, Opened};
use crate::outcome::Halt;
use std::cell::OnceCell;
use std::fmt;
use std::rc::Rc;

/// Another library with the same C interface.
pub struct Peer {
    written: String,
    path: String,
    environment: Vec<(String, String)>,
    connection: OnceCell<Rc<Connection>>,
}

impl Peer {
    /// Reads `LIB[,NAME=VALUE...]`; `None` for an empty text.
    pub fn parse(text: &str) -> Result<Option<Peer>, BadValue> {
        if text.is_empty() {
            return Ok(None);
        }
        let mut pieces = text.split(',');
        let path = pieces.next().unwrap_or_default().to_owned();
        if path.is_empty() {
            return Err(BadValue::new("a library's path is missing"));
        }
        let mut offset = path.len() + 1;
        let mut environment = Vec::new();
        for piece in pieces {
            match piece.split_once('=') {
                Some((name, value)) if !name.is_empty() && !piece.contains('\0') => {
                    environment.push((name.to_owned(), value.to_owned()));
                }
                _ => return Err(BadValue::at(offset, format!("'{piece}' is not NAME=VALUE"))),
            }
            offset += piece.len() + 1;
        }
        let (written, connection) = (text.to_owned(), OnceCell::new());
        Ok(Some(Peer { written, path, environment, connection }))
    }

    /// As written.
    pub fn written(&self) -> &str {
        &self.written
    }

    /// Sets the environment and opens the library, unless it is open. If `threads` is not 0, also sets OpenMP's number
    /// of threads in the environment, because a runtime may create its threads while it is loaded.
    pub fn open(&self, threads: u64) -> Result<&Rc<Connection>, Halt> {
        if let Some(connection) = self.connection.get() {
            return Ok(connection);
        }
        let said = |name: &str| self.environment.iter().any(|(said, _)| said == name);
        if threads > 0 && !said(OPENMP_THREADS) {
            set_variable(OPENMP_THREADS, &threads.to_string());
        }
        self.environment.iter().for_each(|(name, value)| set_variable(name, value));
        let connection = Opened::open(&self.path)
            .and_then(Connection::opened)
            .map_err(|refusal| Halt(format!("--compare: {}", refusal.message)))?;
        Ok(self.connection.get_or_init(|| Rc::new(connection)))
    }

    /// The library's path, version and names.
    pub fn about(&self) -> Result<String, Halt> {
        let connection = self.open(0)?;
        let prefix = connection.source().map_or("", Opened::prefix);
        Ok(format!("{}, version {}, {prefix}_*", self.path, connection.version()))
    }
}

const OPENMP_THREADS: &str = "OMP_NUM_THREADS";

fn set_variable(name: &str, value: &str) {
    // SAFETY: libraries are opened before the first problem runs, and the program's other threads, if any, are idle and
    // read no variables.
    unsafe { std::env::set_var(name, value) };
}

impl fmt::Debug for Peer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Peer({:?})", self.written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_and_an_environment() {
        let peer = Peer::parse("./lib.so,A=1,B=x=y,C=").expect("read").expect("a library");
        assert_eq!(peer.path, "./lib.so");
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(peer.environment, [pair("A", "1"), pair("B", "x=y"), pair("C", "")]);
        assert_eq!(peer.written(), "./lib.so,A=1,B=x=y,C=");
        assert!(Peer::parse("").expect("read").is_none());
        let offset = |text| Peer::parse(text).expect_err(text).offset;
        assert_eq!(offset(",A=1"), 0);
        assert_eq!(offset("lib.so,A=1,B"), 11);
        assert_eq!(offset("lib.so,=1"), 7);
    }

    #[test]
    fn what_is_no_such_library_is_refused() {
        let open = |path| Peer::parse(path).expect("read").expect("a library").open(0).err();
        let halt = open("/nowhere/libnone.so").expect("no such file");
        assert!(halt.0.starts_with("--compare: cannot open /nowhere/libnone.so: "), "{halt}");
        #[cfg(target_os = "linux")]
        {
            let halt = open("libm.so.6").expect("another kind of library");
            let expected = "--compare: libm.so.6 has neither dnnl_engine_create nor \
                            norm_engine_create; it is not a library like oneDNN";
            assert_eq!(halt.0, expected);
        }
    }
}
