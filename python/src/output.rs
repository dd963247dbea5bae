//! Results: arrays that the caller passed as `out`, or new ones of the library of an input.
//!
//! NumPy allocates its own arrays. For other libraries the memory is allocated here and handed over
//! through DLPack when the call is done: a library whose arrays never change may copy it.

use std::alloc::{Layout, alloc, dealloc};
use std::ffi::c_void;
use std::sync::Arc;

use dlpark::ffi::{DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned};
use dlpark::metadata::Dynamic;
use dlpark::python::consumer::exchange::ExchangeApi;
use dlpark::python::{DlpackExporter, ExportRequest, export_dlpack};
use dlpark::{DlpackFlags, Managed, ManagedTensorBase};
use norm_rs::DataType;
use pyo3::exceptions::{PyMemoryError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyModule, PyType};

use crate::call::Given;
use crate::dlpack::{dense_strides, dlpack_type};
use crate::numpy_array;
use crate::tensor::{Library, Tensor, type_name};
use crate::wanted::Wanted;

/// A result and where it goes.
pub(crate) enum Output<'py> {
    /// The caller's array, or a new NumPy array.
    Array(Bound<'py, PyAny>),
    /// Memory for an array of the object's library.
    Memory(Buffer, Bound<'py, PyAny>),
}

impl<'py> Output<'py> {
    /// The array for the caller.
    pub(crate) fn finish(self) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Self::Array(array) => Ok(array),
            Self::Memory(buffer, like) => buffer.into_array(&like),
        }
    }
}

/// Rejects a call without `out` whose result would be a new array of integers.
pub(crate) fn expect_out(name: &str, like: &Tensor<'_, '_>, out: Given<'_, '_>) -> PyResult<()> {
    let whole = matches!(like.data_type, DataType::S8 | DataType::U8 | DataType::S32);
    if out.is_some() || !whole {
        return Ok(());
    }
    Err(PyTypeError::new_err(format!(
        "{} has elements of {}, which can hold no result but whole numbers: pass {name}, such as an array of float32",
        like.name,
        type_name(like.data_type),
    )))
}

/// A new array of the library of `like`: dense, and of its element type, float32 or int32.
pub(crate) fn allocate<'a, 'py>(
    name: &'static str,
    like: &Tensor<'a, 'py>,
    data_type: DataType,
    shape: &[usize],
) -> PyResult<(Tensor<'a, 'py>, Output<'py>)> {
    let (data, output) = match like.library {
        Library::Numpy => {
            let array = numpy_array::allocate(like, data_type, shape)?;
            let wanted = Wanted::output(name, std::slice::from_ref(&data_type));
            (numpy_array::read(&wanted, &array)?.data, Output::Array(array))
        }
        Library::Dlpack => {
            let buffer = Buffer::new(data_type, shape)?;
            (buffer.memory.start, Output::Memory(buffer, like.object.clone()))
        }
    };
    let tensor = Tensor {
        name,
        object: like.object,
        library: like.library,
        data,
        data_type,
        shape: shape.iter().copied().collect(),
        strides: dense_strides(shape),
        is_output: true,
        read_only: None,
        lent: None,
    };
    Ok((tensor, output))
}

/// Alignment of new memory: a cache line and the widest vector. JAX copies memory with less.
const ALIGN: usize = 64;

/// Memory that is freed when its last owner drops it.
struct Memory {
    start: *mut u8,
    layout: Layout,
}

// SAFETY: the memory is not tied to a thread, and its users synchronize accesses.
unsafe impl Send for Memory {}
// SAFETY: as for Send; the fields never change.
unsafe impl Sync for Memory {}

impl Memory {
    fn new(size: usize) -> Option<Self> {
        let layout = Layout::from_size_align(size.max(1), ALIGN).ok()?;
        // SAFETY: the size is not 0.
        let start = unsafe { alloc(layout) };
        // `then_some` would drop a `Self` without memory.
        if start.is_null() { None } else { Some(Self { start, layout }) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.start, self.layout) };
    }
}

/// A result for a library that imports it through DLPack.
#[pyclass(frozen, module = "libnorm._libnorm")]
pub(crate) struct Buffer {
    memory: Arc<Memory>,
    shape: Vec<i64>,
    data_type: DLDataType,
}

impl Buffer {
    fn new(data_type: DataType, shape: &[usize]) -> PyResult<Self> {
        let size = shape.iter().try_fold(data_type.size(), |size, &dim| size.checked_mul(dim));
        let memory = size.and_then(Memory::new).ok_or_else(|| {
            PyMemoryError::new_err(format!("no memory for a result of the shape {shape:?}"))
        })?;
        let shape = shape.iter().map(|&size| size as i64).collect();
        Ok(Self { memory: Arc::new(memory), shape, data_type: dlpack_type(data_type) })
    }

    /// A DLPack tensor that shares ownership of the memory.
    fn managed<M: ManagedTensorBase>(&self) -> PyResult<Managed<M>> {
        let no_memory = |_| PyMemoryError::new_err("no memory for a result");
        let prepared = Dynamic::compact(&self.shape[..]).prepare_as::<M>().map_err(no_memory)?;
        let mut tensor = prepared.initialize(Arc::clone(&self.memory));
        tensor.set_data(self.memory.start.cast::<c_void>());
        tensor.set_device(DLDevice::CPU);
        tensor.set_dtype(self.data_type);
        // SAFETY: the memory has the size of the shape, and the context keeps it.
        Ok(unsafe { tensor.finish() })
    }

    /// An array of the library of `like`.
    fn into_array<'py>(self, like: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = like.py();
        if let Some(api) = ExchangeApi::from_object(like.as_borrowed())? {
            return api.managed_tensor_to_py_object_no_sync(self.managed()?, py);
        }
        let from_dlpack = from_dlpack(like)?;
        from_dlpack.call1((Bound::new(py, self)?,))
    }
}

/// The function `from_dlpack` of the library of an object, from its array API namespace or from the package of one of
/// its classes.
fn from_dlpack<'py>(like: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = like.py();
    let name = intern!(py, "from_dlpack");
    if let Some(namespace) = like.getattr_opt(intern!(py, "__array_namespace__"))? {
        return namespace.call0()?.getattr(name);
    }
    for class in like.get_type().mro() {
        let module = class.cast_into::<PyType>()?.module()?;
        let module = module.to_string();
        let package = module.split('.').next().unwrap_or_default();
        if let Ok(package) = PyModule::import(py, package)
            && let Some(function) = package.getattr_opt(name)?
        {
            return Ok(function);
        }
    }
    Err(PyTypeError::new_err(format!(
        "the library of {} has no function from_dlpack: pass arrays for the results as out",
        like.get_type().name()?,
    )))
}

impl DlpackExporter for Buffer {
    fn device(&self) -> DLDevice {
        DLDevice::CPU
    }

    fn flags(&self) -> DlpackFlags {
        DlpackFlags::empty()
    }

    fn prepare_export(&self, _: Python<'_>, _: &ExportRequest<'_>) -> PyResult<()> {
        Ok(())
    }

    fn export_legacy(&self, _: Python<'_>) -> PyResult<Managed<DLManagedTensor>> {
        self.managed()
    }

    fn export_versioned(&self, _: Python<'_>) -> PyResult<Managed<DLManagedTensorVersioned>> {
        self.managed()
    }
}

#[pymethods]
impl Buffer {
    /// The array API's method.
    #[pyo3(signature = (*, stream = None, max_version = None, dl_device = None, copy = None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(u32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Py<PyAny>> {
        export_dlpack(self, py, ExportRequest::parse(stream, max_version, dl_device, copy)?)
    }

    /// The array API's method.
    fn __dlpack_device__(&self) -> (u32, i32) {
        (DLDevice::CPU.device_type.0, 0)
    }
}
