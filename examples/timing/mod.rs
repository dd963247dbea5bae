//! A forward problem that can be executed again and again, and medians, for the examples that time.

use norm_sys as sys;
use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::time::Instant;

pub(crate) fn check(status: sys::norm_status_t) {
    assert_eq!(status, sys::norm_success);
}

/// A primitive with its arguments. A process this short leaves the objects to the system.
pub(crate) struct Problem {
    primitive: sys::norm_primitive_t,
    stream: sys::norm_stream_t,
    args: Vec<sys::norm_exec_arg_t>,
    _buffers: Vec<Vec<f32>>,
}

impl Problem {
    /// f32, forward inference, dense.
    pub(crate) fn new(rows: usize, cols: usize, flags: u32) -> Self {
        let (mut engine, mut stream) = (null_mut(), null_mut());
        let (mut desc, mut primitive) = (null_mut(), null_mut());
        let data = describe(&[rows as i64, cols as i64]);
        let parameter = describe(&[cols as i64]);
        // SAFETY: results are written before they are read; descriptors are alive.
        unsafe {
            check(sys::norm_engine_create(&raw mut engine, sys::norm_cpu, 0));
            check(sys::norm_stream_create(&raw mut stream, engine, sys::norm_stream_in_order));
            check(sys::norm_layer_normalization_forward_primitive_desc_create(
                &raw mut desc,
                engine,
                sys::norm_forward_inference,
                data,
                data,
                null(),
                1e-5,
                flags,
                null(),
            ));
            check(sys::norm_primitive_create(&raw mut primitive, desc));
        }
        let numbers = |n: usize| (0..n).map(|i| (i * 37 % 101) as f32 / 50.0 - 1.0).collect();
        let mut buffers: Vec<Vec<f32>> =
            [rows * cols, rows * cols, cols, cols].map(numbers).into_iter().collect();
        let wanted = [
            (sys::NORM_ARG_SRC, data, true),
            (sys::NORM_ARG_DST, data, true),
            (sys::NORM_ARG_SCALE, parameter, flags & sys::norm_use_scale != 0),
            (sys::NORM_ARG_SHIFT, parameter, flags & sys::norm_use_shift != 0),
        ];
        let mut args = Vec::new();
        for ((arg, desc, wanted), buffer) in wanted.into_iter().zip(&mut buffers) {
            let mut memory = null_mut();
            let handle: *mut c_void = buffer.as_mut_ptr().cast();
            if wanted {
                // SAFETY: the buffer is as large as the descriptor says and lives as long.
                unsafe { check(sys::norm_memory_create(&raw mut memory, desc, engine, handle)) };
                args.push(sys::norm_exec_arg_t { arg, memory });
            }
        }
        Self { primitive, stream, args, _buffers: buffers }
    }

    #[inline]
    pub(crate) fn execute(&self) {
        let count = self.args.len() as i32;
        // SAFETY: primitive, stream and arguments are alive.
        let status = unsafe {
            sys::norm_primitive_execute(self.primitive, self.stream, count, self.args.as_ptr())
        };
        assert_eq!(status, sys::norm_success);
    }

    /// Nanoseconds of one of `times` executions.
    pub(crate) fn time(&self, times: usize) -> f64 {
        let begin = Instant::now();
        for _ in 0..times {
            self.execute();
        }
        begin.elapsed().as_secs_f64() * 1e9 / times as f64
    }
}

fn describe(dims: &[i64]) -> sys::norm_memory_desc_t {
    let mut desc = null_mut();
    // SAFETY: the dimensions are as many as said.
    unsafe {
        check(sys::norm_memory_desc_create_with_strides(
            &raw mut desc,
            dims.len() as i32,
            dims.as_ptr(),
            sys::norm_f32,
            null(),
        ));
    }
    desc
}

pub(crate) fn median(values: Vec<f64>) -> f64 {
    percentile(values, 0.5)
}

/// The value that a share of all lies below.
pub(crate) fn percentile(mut values: Vec<f64>, share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * share) as usize]
}
