//! candle's layer and RMS normalization behind C functions, so that compare_frameworks.py can time
//! candle and the other libraries in one process.
//!
//! `RUSTFLAGS=-Ctarget-cpu=native cargo build --release --manifest-path scripts/compare_candle/Cargo.toml`

use candle_core::{DType, Device, Result, Tensor};
use half::{bf16, f16};

/// A problem and the result of its last run.
pub struct Problem {
    x: Tensor,
    scale: Tensor,
    /// `None` for RMS normalization.
    shift: Option<Tensor>,
    epsilon: f32,
    result: Option<Tensor>,
}

impl Problem {
    fn run(&mut self) -> Result<()> {
        let Self { x, scale, shift, epsilon, .. } = self;
        self.result = Some(match shift {
            Some(shift) => candle_nn::ops::layer_norm(x, scale, shift, *epsilon)?,
            None => candle_nn::ops::rms_norm(x, scale, *epsilon)?,
        });
        Ok(())
    }
}

/// f32 numbers as a tensor of another type.
///
/// # Safety
/// `numbers` points to as many numbers as the product of the dimensions.
unsafe fn tensor(numbers: *const f32, dims: &[usize], dtype: DType) -> Result<Tensor> {
    let count = dims.iter().product();
    // SAFETY: the caller's.
    let numbers = unsafe { std::slice::from_raw_parts(numbers, count) };
    match dtype {
        DType::BF16 => {
            let numbers: Vec<bf16> = numbers.iter().map(|&x| bf16::from_f32(x)).collect();
            Tensor::from_vec(numbers, dims, &Device::Cpu)
        }
        DType::F16 => {
            let numbers: Vec<f16> = numbers.iter().map(|&x| f16::from_f32(x)).collect();
            Tensor::from_vec(numbers, dims, &Device::Cpu)
        }
        _ => Tensor::from_slice(numbers, dims, &Device::Cpu),
    }
}

/// Creates a problem from copies of f32 numbers; NULL if candle refuses. `shift` is NULL for RMS
/// normalization; `bits` is 32, or 16 for f16, or -16 for bf16.
///
/// # Safety
/// `x` has `rows * cols` numbers, `scale` and `shift` have `cols`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn candle_norm_new(
    x: *const f32,
    scale: *const f32,
    shift: *const f32,
    rows: usize,
    cols: usize,
    epsilon: f32,
    bits: i32,
) -> *mut Problem {
    let dtype = match bits {
        16 => DType::F16,
        -16 => DType::BF16,
        _ => DType::F32,
    };
    // SAFETY: the caller's.
    let make = || unsafe {
        Ok::<_, candle_core::Error>(Problem {
            x: tensor(x, &[rows, cols], dtype)?,
            scale: tensor(scale, &[cols], dtype)?,
            shift: if shift.is_null() { None } else { Some(tensor(shift, &[cols], dtype)?) },
            epsilon,
            result: None,
        })
    };
    make().map_or(std::ptr::null_mut(), |problem| Box::into_raw(Box::new(problem)))
}

/// Runs the problem; returns 0, or 1 if candle refuses.
///
/// # Safety
/// `problem` is from `candle_norm_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn candle_norm_run(problem: *mut Problem) -> i32 {
    // SAFETY: the caller's.
    i32::from(unsafe { &mut *problem }.run().is_err())
}

/// Writes the last result as f32; returns 0, or 1 if there is none.
///
/// # Safety
/// `problem` is from `candle_norm_new`, and `result` has room for `rows * cols` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn candle_norm_result(problem: *mut Problem, result: *mut f32) -> i32 {
    // SAFETY: the caller's.
    let problem = unsafe { &*problem };
    let read = || {
        problem
            .result
            .as_ref()?
            .to_dtype(DType::F32)
            .ok()?
            .flatten_all()
            .ok()?
            .to_vec1::<f32>()
            .ok()
    };
    let Some(numbers) = read() else { return 1 };
    // SAFETY: the caller's.
    unsafe { std::ptr::copy_nonoverlapping(numbers.as_ptr(), result, numbers.len()) };
    0
}

/// Frees the problem.
///
/// # Safety
/// `problem` is from `candle_norm_new` and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn candle_norm_free(problem: *mut Problem) {
    // SAFETY: the caller's.
    drop(unsafe { Box::from_raw(problem) });
}
