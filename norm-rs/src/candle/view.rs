//! candle's tensors as tensors of a call.

use ::candle_core::backend::BackendStorage;
use ::candle_core::{CpuStorage, DType, Device, Error, Layout, Result, Storage, Tensor, WithDType};
use half::{bf16, f16};

use crate::data_type::{DataType, Element};
use crate::tensors::{self, Input, Output, Shape};

/// An error that begins with the argument's name.
pub(super) fn refused(name: &str, reason: impl std::fmt::Display) -> Error {
    Error::msg(format_args!("{name} {reason}"))
}

/// The address of a tensor's first element, the number of elements from there on, and their type.
fn elements(
    name: &str,
    storage: &CpuStorage,
    start: usize,
) -> Result<(*const u8, usize, DataType)> {
    fn from<T: Element>(elements: &[T], start: usize) -> Option<(*const u8, usize, DataType)> {
        let rest = elements.get(start..)?;
        Some((rest.as_ptr().cast(), rest.len(), T::DATA_TYPE))
    }
    let found = match storage {
        CpuStorage::F32(elements) => from(elements, start),
        CpuStorage::F64(elements) => from(elements, start),
        CpuStorage::BF16(elements) => from(elements, start),
        CpuStorage::F16(elements) => from(elements, start),
        other => {
            let dtype = other.dtype();
            return Err(refused(
                name,
                format_args!("is {dtype:?}; convert it with to_dtype to F32, BF16, F16 or F64"),
            ));
        }
    };
    found.ok_or_else(|| refused(name, "begins behind the end of its storage"))
}

/// A tensor of a custom operation, with its strides.
pub(super) fn input<'a>(name: &str, storage: &'a CpuStorage, layout: &Layout) -> Result<Input<'a>> {
    let (data, len, data_type) = elements(name, storage, layout.start_offset())?;
    let (dims, strides) = (layout.dims(), layout.stride());
    let last = dims.iter().zip(strides).map(|(dim, stride)| dim.saturating_sub(1) * stride);
    if layout.shape().elem_count() != 0 && last.sum::<usize>() >= len {
        return Err(refused(name, "ends behind the end of its storage"));
    }
    let shape = Shape::strided(dims, strides)
        .ok_or_else(|| refused(name, format_args!("has {} dimensions", dims.len())))?;
    // SAFETY: the first and the last element lie in the storage, and with them all others; the
    // storage is borrowed for 'a.
    Ok(unsafe { Input::from_raw(tensors::Tensor { data_type, shape }, data) })
}

/// A parameter, which is contiguous.
pub(super) fn vector<'a>(
    name: &str,
    storage: &'a CpuStorage,
    layout: &Layout,
) -> Result<Input<'a>> {
    if layout.dims().len() != 1 || !layout.is_contiguous() {
        return Err(refused(
            name,
            format_args!(
                "has the shape {:?} and strides {:?}; pass a contiguous vector, as contiguous() \
                 and flatten_all() make it",
                layout.dims(),
                layout.stride()
            ),
        ));
    }
    input(name, storage, layout)
}

/// The elements of a tensor on the CPU.
pub(super) fn on_cpu<'a>(name: &str, storage: &'a Storage) -> Result<&'a CpuStorage> {
    match storage {
        Storage::Cpu(storage) => Ok(storage),
        _ => Err(refused(name, "is not on the CPU; move it with to_device(&Device::Cpu)")),
    }
}

/// The elements of a new tensor, and room for a result of any type.
pub(super) enum Buffer {
    F32(Vec<f32>),
    F64(Vec<f64>),
    Bf16(Vec<bf16>),
    F16(Vec<f16>),
}

impl Buffer {
    /// Zeros of the type and number of a tensor's elements.
    pub(super) fn like(input: &Input<'_>) -> Result<Self> {
        let len = input.tensor.shape.dims().iter().product();
        let dtype = match input.tensor.data_type {
            DataType::F64 => DType::F64,
            DataType::Bf16 => DType::BF16,
            DataType::F16 => DType::F16,
            _ => DType::F32,
        };
        Self::zeros(dtype, len)
    }

    pub(super) fn zeros(dtype: DType, len: usize) -> Result<Self> {
        Ok(match dtype {
            DType::F32 => Self::F32(vec![0.0; len]),
            DType::F64 => Self::F64(vec![0.0; len]),
            DType::BF16 => Self::Bf16(vec![bf16::ZERO; len]),
            DType::F16 => Self::F16(vec![f16::ZERO; len]),
            other => return Err(refused("dst", format_args!("cannot be {other:?}"))),
        })
    }

    /// The buffer as a dense tensor.
    pub(super) fn output(&mut self, dims: &[usize]) -> Result<Output<'_>> {
        fn of<'a, T: Element>(elements: &'a mut [T], dims: &[usize]) -> Option<Output<'a>> {
            let mut strides = vec![1; dims.len()];
            for axis in (1..dims.len()).rev() {
                strides[axis - 1] = strides[axis] * dims[axis];
            }
            if dims.iter().product::<usize>() != elements.len() {
                return None;
            }
            let tensor =
                tensors::Tensor { data_type: T::DATA_TYPE, shape: Shape::strided(dims, &strides)? };
            // SAFETY: the slice holds exactly the elements of a dense tensor of these dimensions,
            // and is borrowed exclusively for 'a.
            Some(unsafe { Output::from_raw(tensor, elements.as_mut_ptr().cast()) })
        }
        let output = match self {
            Self::F32(elements) => of(elements, dims),
            Self::F64(elements) => of(elements, dims),
            Self::Bf16(elements) => of(elements, dims),
            Self::F16(elements) => of(elements, dims),
        };
        output.ok_or_else(|| refused("dst", format_args!("cannot have the shape {dims:?}")))
    }

    pub(super) fn into_storage(self) -> CpuStorage {
        match self {
            Self::F32(elements) => CpuStorage::F32(elements),
            Self::F64(elements) => CpuStorage::F64(elements),
            Self::Bf16(elements) => CpuStorage::BF16(elements),
            Self::F16(elements) => CpuStorage::F16(elements),
        }
    }

    pub(super) fn into_tensor(self, dims: &[usize]) -> Result<Tensor> {
        fn of<T: WithDType>(elements: Vec<T>, dims: &[usize]) -> Result<Tensor> {
            Tensor::from_vec(elements, dims, &Device::Cpu)
        }
        match self {
            Self::F32(elements) => of(elements, dims),
            Self::F64(elements) => of(elements, dims),
            Self::Bf16(elements) => of(elements, dims),
            Self::F16(elements) => of(elements, dims),
        }
    }
}

/// Rejects types that parameters cannot have.
pub(super) fn check_parameter(name: &str, tensor: &Tensor) -> Result<()> {
    match tensor.dtype() {
        DType::F32 | DType::BF16 | DType::F16 => Ok(()),
        other => Err(refused(
            name,
            format_args!("is {other:?}; convert it with to_dtype to F32, BF16 or F16"),
        )),
    }
}
