//! NumPy arrays, read through NumPy's C API: it is faster than DLPack, and NumPy does not export bfloat16 through
//! DLPack.
//!
//! NumPy is not a dependency: an object can only be an array if NumPy is loaded.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use norm_rs::DataType;
use numpy::PyUntypedArray;
use numpy::npyffi::{
    NPY_ARRAY_WRITEABLE, NPY_TYPES, PY_ARRAY_API, PyArray_Descr, PyArrayObject_fields,
    PyDataType_ELSIZE,
};
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};
use pyo3::{PyTypeInfo, ffi};

use crate::arguments::described;
use crate::tensor::{Library, Tensor, check_alignment, layout, type_name};
use crate::wanted::{READ_ONLY, Wanted};

/// The element types of the package ml_dtypes and their type numbers in NumPy; 0 until known.
static ML_DTYPES: [(&str, DataType, AtomicI32); 4] = [
    ("bfloat16", DataType::Bf16, AtomicI32::new(0)),
    ("float8_e4m3fn", DataType::F8E4m3, AtomicI32::new(0)),
    ("float8_e5m2", DataType::F8E5m2, AtomicI32::new(0)),
    ("float8_e8m0fnu", DataType::E8m0, AtomicI32::new(0)),
];

/// The first type number that NumPy gives to types of other packages.
const FIRST_OF_OTHERS: c_int = 256;

/// Whether an object is a NumPy array.
pub(crate) fn is_array(object: &Bound<'_, PyAny>) -> bool {
    static LOADED: AtomicBool = AtomicBool::new(false);
    let py = object.py();
    if !LOADED.load(Ordering::Relaxed) {
        // SAFETY: the interpreter's own dictionary, borrowed.
        let modules = unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PyImport_GetModuleDict()) };
        let modules = modules.and_then(|modules| modules.cast_into::<PyDict>().ok());
        let numpy = intern!(py, "numpy");
        if !modules.is_some_and(|modules| modules.contains(numpy).unwrap_or(false)) {
            return false;
        }
        LOADED.store(true, Ordering::Relaxed);
    }
    object.is_instance_of::<PyUntypedArray>()
}

/// The fields of an array.
fn fields<'a>(array: &'a Bound<'_, PyAny>) -> &'a PyArrayObject_fields {
    debug_assert!(is_array(array));
    // SAFETY: callers pass an array, which the reference keeps alive.
    unsafe { &(*array.as_ptr().cast::<numpy::npyffi::PyArrayObject>()).fields }
}

/// Reads a NumPy array.
pub(crate) fn read<'a, 'py>(
    wanted: &Wanted<'_>,
    object: &'a Bound<'py, PyAny>,
) -> PyResult<Tensor<'a, 'py>> {
    let py = object.py();
    reject_masked(wanted, object)?;
    let fields = fields(object);
    let data_type = data_type(wanted, object, fields.descr)?;
    let ndims = usize::try_from(fields.nd).unwrap_or(0);
    let (shape, strides): (&[isize], &[isize]) = match ndims {
        0 => (&[], &[]),
        // SAFETY: an array has a size and a stride for each dimension.
        _ => unsafe {
            (
                std::slice::from_raw_parts(fields.dimensions, ndims),
                std::slice::from_raw_parts(fields.strides, ndims),
            )
        },
    };
    // SAFETY: the descriptor is the array's.
    let size = unsafe { PyDataType_ELSIZE(py, fields.descr) };
    debug_assert_eq!(usize::try_from(size), Ok(data_type.size()));
    let shape = shape.iter().map(|&size| size as i64);
    let strides = strides.iter().map(|&stride| stride as i64);
    let (shape, strides) = layout(wanted, shape, strides, data_type.size())?;
    let data = fields.data.cast::<u8>();
    check_alignment(wanted, data, data_type)?;
    let is_read_only = fields.flags & NPY_ARRAY_WRITEABLE == 0;
    Ok(Tensor {
        name: wanted.name,
        object,
        library: Library::Numpy,
        data,
        data_type,
        shape,
        strides,
        is_output: wanted.is_output(),
        read_only: is_read_only.then_some(READ_ONLY),
        lent: None,
    })
}

/// Rejects masked arrays: their memory does not tell which elements are masked.
fn reject_masked(wanted: &Wanted<'_>, object: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = object.py();
    let own = object.get_type();
    if own.is(PyUntypedArray::type_object(py)) || !own.hasattr(intern!(py, "mask"))? {
        return Ok(());
    }
    let (name, what) = (wanted.name, described(object));
    let pass = match wanted.is_output() {
        true => "an array without one, and read the result from it after the call".to_owned(),
        false => format!("{name}.filled(...)"),
    };
    Err(PyTypeError::new_err(format!(
        "{name} is {what} with a mask, which would be ignored: pass {pass}"
    )))
}

/// The element type.
fn data_type(
    wanted: &Wanted<'_>,
    object: &Bound<'_, PyAny>,
    descr: *mut PyArray_Descr,
) -> PyResult<DataType> {
    // SAFETY: the descriptor is the array's.
    let descr = unsafe { &(*descr).fields };
    let data_type = match descr.type_num {
        n if n == NPY_TYPES::NPY_FLOAT as c_int => Some(DataType::F32),
        n if n == NPY_TYPES::NPY_DOUBLE as c_int => Some(DataType::F64),
        n if n == NPY_TYPES::NPY_HALF as c_int => Some(DataType::F16),
        n if n == NPY_TYPES::NPY_INT as c_int => Some(DataType::S32),
        n if n == NPY_TYPES::NPY_LONG as c_int => Some(DataType::S64),
        n if n == NPY_TYPES::NPY_LONGLONG as c_int => Some(DataType::S64),
        n if n == NPY_TYPES::NPY_BYTE as c_int => Some(DataType::S8),
        n if n == NPY_TYPES::NPY_UBYTE as c_int => Some(DataType::U8),
        n if n == NPY_TYPES::NPY_BOOL as c_int && wanted.has_bools() => Some(DataType::U8),
        n if n >= FIRST_OF_OTHERS => of_ml_dtypes(object, n)?,
        _ => None,
    };
    let dtype = || Ok::<_, PyErr>(object.getattr(intern!(object.py(), "dtype"))?.to_string());
    let Some(data_type) = data_type else { return Err(wanted.wrong_type(&dtype()?)) };
    if !wanted.has(data_type) {
        return Err(wanted.wrong_type(type_name(data_type)));
    }
    let foreign = if cfg!(target_endian = "little") { b'>' } else { b'<' };
    if descr.byteorder as u8 == foreign {
        let what = format!("has elements of {} in the byte order of another machine", dtype()?);
        let copy = format!(".astype({}.dtype.newbyteorder('='))", wanted.name);
        return Err(wanted.needs_copy(&what, &copy));
    }
    Ok(data_type)
}

/// The type of ml_dtypes with this type number, if there is one.
fn of_ml_dtypes(object: &Bound<'_, PyAny>, number: c_int) -> PyResult<Option<DataType>> {
    let known = ML_DTYPES.iter().find(|(_, _, known)| known.load(Ordering::Relaxed) == number);
    if let Some((_, data_type, _)) = known {
        return Ok(Some(*data_type));
    }
    let py = object.py();
    let scalar = object.getattr(intern!(py, "dtype"))?.getattr(intern!(py, "type"))?;
    let scalar = scalar.cast_into::<PyType>()?;
    // Other packages use the same names for other types.
    if scalar.module()? != "ml_dtypes" {
        return Ok(None);
    }
    let name = scalar.name()?;
    let found = ML_DTYPES.iter().find(|(own, _, _)| name == *own);
    Ok(found.map(|(_, data_type, known)| {
        known.store(number, Ordering::Relaxed);
        *data_type
    }))
}

/// A new uninitialized array of `like`'s element type, float32 or int32.
pub(crate) fn allocate<'py>(
    like: &Tensor<'_, 'py>,
    data_type: DataType,
    shape: &[usize],
) -> PyResult<Bound<'py, PyAny>> {
    let py = like.object.py();
    let mut dims: arrayvec::ArrayVec<isize, { norm_rs::memory_desc::MAX_NDIMS }> =
        shape.iter().map(|&size| size as isize).collect();
    // SAFETY: the type number is valid, and the other descriptor is an array's; NewFromDescr takes
    // over a reference to it. There are `dims.len()` sizes, and no strides or buffer.
    unsafe {
        let descr = if data_type == like.data_type {
            let descr = fields(like.object).descr;
            ffi::Py_INCREF(descr.cast());
            descr
        } else {
            debug_assert!(matches!(data_type, DataType::F32 | DataType::S32));
            let number = match data_type {
                DataType::S32 => NPY_TYPES::NPY_INT,
                _ => NPY_TYPES::NPY_FLOAT,
            };
            PY_ARRAY_API.PyArray_DescrFromType(py, number as c_int)
        };
        let array = PY_ARRAY_API.PyArray_NewFromDescr(
            py,
            PyUntypedArray::type_object_raw(py),
            descr,
            dims.len() as c_int,
            dims.as_mut_ptr(),
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            0,
            std::ptr::null_mut(),
        );
        Bound::from_owned_ptr_or_err(py, array)
    }
}
