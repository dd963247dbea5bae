//! Calls as an engine makes them, through the C API: times do not include binding arguments in Rust. Also compares two
//! ways to do the same thing.

use norm_sys as sys;
use std::ptr::{null, null_mut};
use std::time::Instant;

pub(crate) fn must(status: sys::norm_status_t) {
    assert_eq!(status, sys::norm_success, "the call is legal");
}

/// An engine and a stream. They and all descriptors live until the program ends.
pub(crate) struct Setup {
    engine: sys::norm_engine_t,
    pub(crate) stream: sys::norm_stream_t,
}

/// RMS normalization with scale: a primitive and its arguments.
pub(crate) struct Norm {
    pub(crate) primitive: sys::norm_primitive_t,
    pub(crate) args: [sys::norm_exec_arg_t; 3],
}

impl Drop for Norm {
    /// Frees the buffers, which are large.
    fn drop(&mut self) {
        // SAFETY: the handles are live, and nothing else destroys them.
        unsafe {
            must(sys::norm_primitive_destroy(self.primitive));
            self.args.iter().for_each(|arg| must(sys::norm_memory_destroy(arg.memory)));
        }
    }
}

impl Setup {
    pub(crate) fn new() -> Self {
        let (mut engine, mut stream) = (null_mut(), null_mut());
        // SAFETY: the places for results are valid, and the engine has been created.
        unsafe {
            must(sys::norm_engine_create(&mut engine, sys::norm_cpu, 0));
            must(sys::norm_stream_create(&mut stream, engine, sys::norm_stream_default_flags));
        }
        Self { engine, stream }
    }

    /// Memory with numbers from 1 to 2, and its descriptor. Empty `strides` are those of a dense tensor.
    fn memory(
        &self,
        dims: &[i64],
        strides: &[i64],
        data_type: sys::norm_data_type_t,
    ) -> (sys::norm_memory_desc_t, sys::norm_memory_t) {
        let (mut desc, mut memory, mut data) = (null_mut(), null_mut(), null_mut());
        let strides = if strides.is_empty() { null() } else { strides.as_ptr() };
        // SAFETY: there is an entry for each dimension, and the handles are those just made. The buffer has the size
        // of the descriptor.
        unsafe {
            must(sys::norm_memory_desc_create_with_strides(
                &mut desc,
                dims.len() as i32,
                dims.as_ptr(),
                data_type,
                strides,
            ));
            must(sys::norm_memory_create(
                &mut memory,
                desc,
                self.engine,
                sys::NORM_MEMORY_ALLOCATE,
            ));
            must(sys::norm_memory_get_data_handle(memory, &mut data));
            let bytes = sys::norm_memory_desc_get_size(desc);
            let values = (0..).map(|i| 1.0 + (i * 37 % 101) as f32 / 128.0);
            if data_type == sys::norm_bf16 {
                let list = std::slice::from_raw_parts_mut(data.cast::<u16>(), bytes / 2);
                list.iter_mut().zip(values).for_each(|(to, x)| *to = (x.to_bits() >> 16) as u16);
            } else {
                let list = std::slice::from_raw_parts_mut(data.cast::<f32>(), bytes / 4);
                list.iter_mut().zip(values).for_each(|(to, x)| *to = x);
            }
        }
        (desc, memory)
    }

    /// A problem with these dimensions and strides of src and dst; empty strides are dense.
    pub(crate) fn norm(
        &self,
        dims: &[i64],
        [src, dst]: [&[i64]; 2],
        data_type: sys::norm_data_type_t,
    ) -> Norm {
        let (src_desc, src) = self.memory(dims, src, data_type);
        let (dst_desc, dst) = self.memory(dims, dst, data_type);
        let (_, scale) = self.memory(&dims[dims.len() - 1..], &[], data_type);
        let (mut problem, mut primitive) = (null_mut(), null_mut());
        // SAFETY: the handles are live, and the places for results are valid.
        unsafe {
            must(sys::norm_layer_normalization_forward_primitive_desc_create_v2(
                &mut problem,
                self.engine,
                sys::norm_forward_inference,
                src_desc,
                dst_desc,
                null(),
                data_type,
                1e-5,
                sys::norm_rms_norm | sys::norm_use_scale,
                null(),
            ));
            must(sys::norm_primitive_create(&mut primitive, problem));
        }
        let pair = |arg, memory| sys::norm_exec_arg_t { arg, memory };
        let args = [
            pair(sys::NORM_ARG_SRC, src),
            pair(sys::NORM_ARG_DST, dst),
            pair(sys::NORM_ARG_SCALE, scale),
        ];
        Norm { primitive, args }
    }

    pub(crate) fn execute(&self, norm: &Norm) {
        // SAFETY: the handles are live.
        must(unsafe {
            sys::norm_primitive_execute(norm.primitive, self.stream, 3, norm.args.as_ptr())
        });
    }
}

/// The duration of a comparison.
const SECONDS: f64 = 1.0;
/// The approximate duration of a group of calls.
const GROUP_SECONDS: f64 = 2e-4;

/// The median times of two ways in microseconds, and the median ratio of consecutive groups, second to first.
pub(crate) fn compare(first: impl Fn(), second: impl Fn()) -> [f64; 3] {
    let once = time(3, &first);
    let count = ((GROUP_SECONDS * 1e6 / once) as usize).clamp(3, 2000);
    let mut times = [vec![], vec![], vec![]];
    let begin = Instant::now();
    while begin.elapsed().as_secs_f64() < SECONDS {
        let pair = [time(count, &first), time(count, &second)];
        for (list, time) in times.iter_mut().zip([pair[0], pair[1], pair[1] / pair[0]]) {
            list.push(time);
        }
    }
    times.map(median)
}

/// Microseconds per call in a group, after one untimed call.
fn time(calls: usize, call: &impl Fn()) -> f64 {
    call();
    let begin = Instant::now();
    (0..calls).for_each(|_| call());
    begin.elapsed().as_secs_f64() * 1e6 / calls as f64
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
