//! Calls from Python, whose errors say what a wrong keyword probably means.
//!
//! pyo3's functions do not know other names of their parameters. So every function of the module and every method of
//! its class is replaced by one that calls it and, if it fails, looks at the keywords. A call that succeeds costs one
//! more jump. The new functions have the same names, signatures and documentation.

use std::ffi::{CStr, CString, c_int};
use std::sync::OnceLock;

use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyType};

use crate::hints::Signature;
use crate::options::NAMES;

/// How Python calls functions without `**options`.
const FAST: c_int = ffi::METH_FASTCALL | ffi::METH_KEYWORDS;
/// How Python calls functions with `**options`.
const PLAIN: c_int = ffi::METH_VARARGS | ffi::METH_KEYWORDS;

/// A function that has been replaced.
struct Function {
    original: ffi::PyMethodDefPointer,
    signature: Signature,
}

// SAFETY: the pointer is to code.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

/// The functions, in the order of their entries.
static FUNCTIONS: [OnceLock<Function>; ENTRIES.len()] = [const { OnceLock::new() }; ENTRIES.len()];

/// What Python calls instead of function `N`, if it is `FAST`.
///
/// # Safety
/// Python calls it, with arguments as for `FAST`.
unsafe extern "C" fn fast<const N: usize>(
    object: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    let function = FUNCTIONS[N].get().expect("it was stored before Python got this entry");
    // SAFETY: the function is `FAST`, and the arguments are those that Python would pass to it.
    unsafe {
        let call = function.original.PyCFunctionFastWithKeywords;
        let result = call(object, arguments, count, names);
        if result.is_null() {
            explain(&function.signature, count, names);
        }
        result
    }
}

/// As [`fast`], for a function that is `PLAIN`.
///
/// # Safety
/// Python calls it, with arguments as for `PLAIN`.
unsafe extern "C" fn plain<const N: usize>(
    object: *mut ffi::PyObject,
    arguments: *mut ffi::PyObject,
    keywords: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    let function = FUNCTIONS[N].get().expect("it was stored before Python got this entry");
    // SAFETY: the function is `PLAIN`, and the arguments are those that Python would pass to it.
    unsafe {
        let call = function.original.PyCFunctionWithKeywords;
        let result = call(object, arguments, keywords);
        if result.is_null() {
            explain(&function.signature, ffi::PyTuple_Size(arguments), keywords);
        }
        result
    }
}

/// Replaces the current exception if the call had keywords that the function does not have, too many arguments
/// without names, or too few.
///
/// # Safety
/// Python's lock is held, an exception is set, and `keywords` is a tuple of names, a dict or null.
#[cold]
unsafe fn explain(signature: &Signature, unnamed: ffi::Py_ssize_t, keywords: *mut ffi::PyObject) {
    // SAFETY: guaranteed by the caller.
    let (py, keywords) = unsafe {
        // Not for panics and interrupts.
        if ffi::PyErr_ExceptionMatches(ffi::PyExc_Exception) == 0 {
            return;
        }
        let py = Python::assume_attached();
        (py, Bound::from_borrowed_ptr_or_opt(py, keywords))
    };
    let error = PyErr::take(py);
    let names = keywords.map(|keywords| match keywords.cast::<PyDict>() {
        Ok(dict) => dict.keys().extract(),
        Err(_) => keywords.extract(),
    });
    let given: Vec<String> = names.and_then(Result::ok).unwrap_or_default();
    let unnamed = usize::try_from(unnamed).unwrap_or(0);
    let missing = || match &error {
        Some(error) if error.is_instance_of::<PyTypeError>(py) => {
            signature.missing(&error.value(py).to_string())
        }
        _ => None,
    };
    let message = signature.unknown(&given).or_else(|| signature.too_many(unnamed));
    let message = message.or_else(missing);
    match (message, error) {
        (Some(message), _) => PyTypeError::new_err(message).restore(py),
        (None, Some(error)) => error.restore(py),
        (None, None) => {}
    }
}

type Entry = (ffi::PyCFunctionFastWithKeywords, ffi::PyCFunctionWithKeywords);

macro_rules! entries {
    ($($n:literal)*) => { [$((fast::<$n>, plain::<$n>)),*] };
}

/// At least as many as there are functions and methods.
const ENTRIES: [Entry; 80] = entries!(
     0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
    32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63
    64 65 66 67 68 69 70 71 72 73 74 75 76 77 78 79
);

/// Replaces all functions of the module, and the methods of its class.
pub(crate) fn replace(module: &Bound<'_, PyModule>, class: &Bound<'_, PyType>) -> PyResult<()> {
    let mut at = 0;
    let members: Vec<_> = module.dict().iter().collect();
    for (name, member) in members {
        if let Ok(function) = member.cast_into::<PyCFunction>() {
            replace_function(module, &name.extract::<String>()?, &function, &mut at)?;
        }
    }
    replace_methods(class, &mut at)
}

fn replace_function(
    module: &Bound<'_, PyModule>,
    name: &str,
    function: &Bound<'_, PyCFunction>,
    at: &mut usize,
) -> PyResult<()> {
    // SAFETY: it is a built-in function.
    let (flags, original) = unsafe {
        let object = function.as_ptr();
        (ffi::PyCFunction_GetFlags(object), ffi::PyCFunction_GetFunction(object))
    };
    let (FAST | PLAIN, Some(original)) = (flags, original) else { return Ok(()) };
    let text = |attribute| function.getattr(attribute)?.extract::<String>();
    let (signature, document) = (text("__text_signature__")?, text("__doc__")?);
    // Python takes the signature from the documentation.
    let document = CString::new(format!("{name}{signature}\n--\n\n{document}"))?;
    let original = ffi::PyMethodDef {
        ml_name: CString::new(name)?.into_raw(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunction: original },
        ml_flags: flags,
        ml_doc: document.into_raw(),
    };
    let own = definition(at, original, Signature::new(name.to_owned(), &signature, &NAMES))?;
    // SAFETY: the definition lives as long as the process; a failure returns null.
    let own = unsafe {
        let own = ffi::PyCFunction_NewEx(own, module.as_ptr(), module.name()?.as_ptr());
        Bound::from_owned_ptr_or_err(module.py(), own)?
    };
    module.setattr(name, own)
}

fn replace_methods(class: &Bound<'_, PyType>, at: &mut usize) -> PyResult<()> {
    let class_name: String = class.getattr("__name__")?.extract()?;
    // SAFETY: the slot of a class with methods is an array of definitions, which ends with one without a name and lives
    // as long as the process.
    let definitions = unsafe {
        let first = ffi::PyType_GetSlot(class.as_type_ptr(), ffi::Py_tp_methods);
        let first = first.cast::<ffi::PyMethodDef>();
        let count = (0..).take_while(|&at| !(*first.add(at)).ml_name.is_null()).count();
        std::slice::from_raw_parts(first, count)
    };
    for original in definitions.iter().filter(|own| own.ml_flags == FAST) {
        // SAFETY: names end with a zero.
        let name = unsafe { CStr::from_ptr(original.ml_name).to_string_lossy() };
        let signature: String = class.getattr(&*name)?.getattr("__text_signature__")?.extract()?;
        let signature = Signature::new(format!("{class_name}.{name}"), &signature, &[]);
        let own = definition(at, *original, signature)?;
        // SAFETY: the definition lives as long as the process; a failure returns null.
        let own = unsafe {
            let own = ffi::PyDescr_NewMethod(class.as_type_ptr(), own);
            Bound::from_owned_ptr_or_err(class.py(), own)?
        };
        class.setattr(&*name, own)?;
    }
    Ok(())
}

/// The definition of the function that replaces another.
fn definition(
    at: &mut usize,
    original: ffi::PyMethodDef,
    signature: Signature,
) -> PyResult<&'static mut ffi::PyMethodDef> {
    let too_many = || PyRuntimeError::new_err("there are more functions than entries");
    let (fast, plain) = *ENTRIES.get(*at).ok_or_else(too_many)?;
    FUNCTIONS[*at].get_or_init(|| Function { original: original.ml_meth, signature });
    *at += 1;
    let ml_meth = match original.ml_flags {
        FAST => ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: fast },
        _ => ffi::PyMethodDefPointer { PyCFunctionWithKeywords: plain },
    };
    Ok(Box::leak(Box::new(ffi::PyMethodDef { ml_meth, ..original })))
}
