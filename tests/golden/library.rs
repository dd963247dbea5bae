//! Runs one problem through the C functions.

use half::{bf16, f16};
use norm as _;
use norm_sys::*;
use std::ffi::{CStr, c_char};

/// A layer normalization of `rows` x `cols` elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Problem {
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    /// Type of src, dst, diff_src and diff_dst.
    pub(crate) data: norm_data_type_t,
    /// Type of scale, shift and their gradients.
    pub(crate) parameters: norm_data_type_t,
    pub(crate) flags: norm_normalization_flags_t,
    pub(crate) epsilon: f32,
}

impl Problem {
    pub(crate) fn has(&self, flag: norm_normalization_flags_t) -> bool {
        self.flags & flag != 0
    }
}

/// The inputs of an execution. Values must be exact in their types. Inputs that the flags exclude
/// are not read and may be empty.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inputs {
    pub(crate) src: Vec<f64>,
    pub(crate) diff_dst: Vec<f64>,
    pub(crate) scale: Vec<f64>,
    pub(crate) shift: Vec<f64>,
    /// Read by backward and with global stats.
    pub(crate) mean: Vec<f64>,
    pub(crate) variance: Vec<f64>,
}

/// The outputs of forward training; `mean` and `variance` are empty if they are not outputs.
#[derive(Debug, PartialEq)]
pub(crate) struct Forward {
    pub(crate) implementation: String,
    pub(crate) dst: Vec<f64>,
    pub(crate) mean: Vec<f64>,
    pub(crate) variance: Vec<f64>,
}

/// The outputs of backward; `diff_scale` and `diff_shift` are empty if they are not outputs.
#[derive(Debug, PartialEq)]
pub(crate) struct Backward {
    pub(crate) implementation: String,
    pub(crate) diff_src: Vec<f64>,
    pub(crate) diff_scale: Vec<f64>,
    pub(crate) diff_shift: Vec<f64>,
}

/// Rounds `value` to the type, ties to even.
pub(crate) fn round_to(data_type: norm_data_type_t, value: f64) -> f64 {
    match data_type {
        norm_f32 => f64::from(value as f32),
        norm_bf16 => bf16::from_f64(value).to_f64(),
        norm_f16 => f16::from_f64(value).to_f64(),
        _ => panic!("no rounding to data type {data_type}"),
    }
}

pub(crate) fn encode(data_type: norm_data_type_t, values: &[f64]) -> Vec<u8> {
    for &value in values {
        assert_eq!(round_to(data_type, value), value, "an input is not exact in its type");
    }
    let bytes = |value: &f64| match data_type {
        norm_f32 => (*value as f32).to_le_bytes().to_vec(),
        norm_bf16 => bf16::from_f64(*value).to_le_bytes().to_vec(),
        _ => f16::from_f64(*value).to_le_bytes().to_vec(),
    };
    values.iter().flat_map(bytes).collect()
}

pub(crate) fn decode(data_type: norm_data_type_t, bytes: &[u8]) -> Vec<f64> {
    let (pairs, quads) = (bytes.as_chunks().0, bytes.as_chunks().0);
    match data_type {
        norm_f32 => quads.iter().map(|b| f64::from(f32::from_le_bytes(*b))).collect(),
        norm_bf16 => pairs.iter().map(|b| bf16::from_le_bytes(*b).to_f64()).collect(),
        _ => pairs.iter().map(|b| f16::from_le_bytes(*b).to_f64()).collect(),
    }
}

/// An owned handle of the library.
pub(crate) struct Handle<T> {
    pub(crate) pointer: *mut T,
    destroy: unsafe extern "C" fn(*mut T) -> norm_status_t,
}

impl<T> Drop for Handle<T> {
    fn drop(&mut self) {
        // SAFETY: `pointer` came from the create function that matches `destroy`, and is destroyed
        // once.
        unsafe { (self.destroy)(self.pointer) };
    }
}

impl<T> Handle<T> {
    pub(crate) fn new(
        destroy: unsafe extern "C" fn(*mut T) -> norm_status_t,
        create: impl FnOnce(*mut *mut T) -> norm_status_t,
    ) -> Self {
        let mut pointer = std::ptr::null_mut();
        check(create(&raw mut pointer));
        Handle { pointer, destroy }
    }
}

#[track_caller]
pub(crate) fn check(status: norm_status_t) {
    if status != norm_success {
        // SAFETY: the library returns a NUL-terminated string, valid until the next failing call.
        let message = unsafe { CStr::from_ptr(norm_get_last_error()) };
        panic!("status {status}: {}", message.to_string_lossy());
    }
}

pub(crate) type Engine = Handle<norm_engine>;
pub(crate) type MemoryDesc = Handle<norm_memory_desc>;
pub(crate) type PrimitiveDesc = Handle<norm_primitive_desc>;

pub(crate) fn memory_desc(dims: &[usize], data_type: norm_data_type_t) -> MemoryDesc {
    let mut sizes = [0; NORM_MAX_NDIMS as usize];
    for (size, dim) in sizes.iter_mut().zip(dims) {
        *size = *dim as norm_dim_t;
    }
    let count = dims.len() as i32;
    Handle::new(norm_memory_desc_destroy, |out| {
        // SAFETY: `sizes` has NORM_MAX_NDIMS entries; no strides mean dense row-major.
        unsafe {
            let strides = std::ptr::null();
            let sizes = sizes.as_ptr();
            norm_memory_desc_create_with_strides(out, count, sizes, data_type, strides)
        }
    })
}

/// An execution argument: its id, dimensions, type, and data if it is an input.
pub(crate) struct Argument {
    pub(crate) id: i32,
    pub(crate) dims: Vec<usize>,
    pub(crate) data_type: norm_data_type_t,
    pub(crate) input: Option<Vec<u8>>,
}

/// Executes and returns the bytes of every output, in the given order.
pub(crate) fn execute(
    engine: &Engine,
    desc: &PrimitiveDesc,
    arguments: &[Argument],
) -> Vec<Vec<u8>> {
    let primitive = Handle::new(norm_primitive_destroy, |out| {
        // SAFETY: `desc` is alive.
        unsafe { norm_primitive_create(out, desc.pointer) }
    });
    let stream = Handle::new(norm_stream_destroy, |out| {
        // SAFETY: `engine` is alive.
        unsafe { norm_stream_create(out, engine.pointer, norm_stream_default_flags) }
    });
    let mut memories = Vec::new();
    for argument in arguments {
        let desc = memory_desc(&argument.dims, argument.data_type);
        // SAFETY: `desc` is alive.
        let size = unsafe { norm_memory_desc_get_size(desc.pointer) };
        // Outputs start as NaN in every type.
        let bytes = argument.input.clone().unwrap_or_else(|| vec![0xff; size]);
        assert_eq!(bytes.len(), size, "argument {}", argument.id);
        let memory = Handle::new(norm_memory_destroy, |out| {
            // SAFETY: both handles are alive; the library allocates the buffer.
            unsafe { norm_memory_create(out, desc.pointer, engine.pointer, NORM_MEMORY_ALLOCATE) }
        });
        let mut buffer = std::ptr::null_mut();
        // SAFETY: the memory is alive, and its buffer has `size` bytes.
        unsafe {
            check(norm_memory_get_data_handle(memory.pointer, &raw mut buffer));
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), buffer.cast::<u8>(), size);
        }
        memories.push((memory, buffer.cast::<u8>(), size));
    }
    let pairs: Vec<_> = arguments
        .iter()
        .zip(&memories)
        .map(|(argument, (memory, ..))| norm_exec_arg_t {
            arg: argument.id,
            memory: memory.pointer,
        })
        .collect();
    // SAFETY: all handles are alive, and `pairs` has that many entries.
    check(unsafe {
        let count = pairs.len() as i32;
        norm_primitive_execute(primitive.pointer, stream.pointer, count, pairs.as_ptr())
    });
    let outputs = arguments.iter().zip(&memories).filter(|(argument, _)| argument.input.is_none());
    let read = |(_, (_, buffer, size)): (_, &(_, *mut u8, usize))| {
        // SAFETY: the memory, alive until the end of the function, owns `size` bytes there.
        unsafe { std::slice::from_raw_parts(*buffer, *size) }.to_vec()
    };
    outputs.map(read).collect()
}

/// Switches to implementation `number`; None if the list is shorter.
fn choose(desc: &PrimitiveDesc, number: usize) -> Option<String> {
    for _ in 0..number {
        // SAFETY: the handle is alive.
        match unsafe { norm_primitive_desc_next_impl(desc.pointer) } {
            norm_last_impl_reached => return None,
            status => check(status),
        }
    }
    let mut name: *const c_char = std::ptr::null();
    // SAFETY: this query writes a `const char *`, owned by the descriptor.
    let name = unsafe {
        let result = (&raw mut name).cast();
        check(norm_primitive_desc_query(desc.pointer, norm_query_impl_info_str, 0, result));
        CStr::from_ptr(name)
    };
    Some(name.to_string_lossy().into_owned())
}

impl Problem {
    fn argument(&self, id: i32, values: Option<&[f64]>) -> Argument {
        let (dims, data_type) = match id {
            NORM_ARG_MEAN | NORM_ARG_VARIANCE => (vec![self.rows], norm_f32),
            NORM_ARG_SCALE | NORM_ARG_SHIFT | NORM_ARG_DIFF_SCALE | NORM_ARG_DIFF_SHIFT => {
                (vec![self.cols], self.parameters)
            }
            _ => (vec![self.rows, self.cols], self.data),
        };
        Argument { id, dims, data_type, input: values.map(|values| encode(data_type, values)) }
    }

    fn descs(&self) -> (Engine, MemoryDesc, MemoryDesc) {
        let engine = Handle::new(norm_engine_destroy, |out| {
            // SAFETY: `out` is writable.
            unsafe { norm_engine_create(out, norm_cpu, 0) }
        });
        let data = memory_desc(&[self.rows, self.cols], self.data);
        (engine, data, memory_desc(&[self.rows], norm_f32))
    }

    /// Forward training on implementation `number`; None if there are fewer.
    pub(crate) fn forward(&self, inputs: &Inputs, number: usize) -> Option<Forward> {
        let (engine, data, stat) = self.descs();
        let desc = Handle::new(norm_primitive_desc_destroy, |out| {
            // SAFETY: all handles are alive; attributes may be NULL.
            unsafe {
                norm_layer_normalization_forward_primitive_desc_create_v2(
                    out,
                    engine.pointer,
                    norm_forward_training,
                    data.pointer,
                    data.pointer,
                    stat.pointer,
                    self.parameters,
                    self.epsilon,
                    self.flags,
                    std::ptr::null(),
                )
            }
        });
        let implementation = choose(&desc, number)?;
        let mut arguments =
            vec![self.argument(NORM_ARG_SRC, Some(&inputs.src)), self.argument(NORM_ARG_DST, None)];
        let global = self.has(norm_use_global_stats);
        let mean = global.then_some(&*inputs.mean);
        let variance = global.then_some(&*inputs.variance);
        arguments.push(self.argument(NORM_ARG_VARIANCE, variance));
        if !self.has(norm_rms_norm) {
            arguments.push(self.argument(NORM_ARG_MEAN, mean));
        }
        self.push_parameters(&mut arguments, inputs, true);
        let mut outputs = execute(&engine, &desc, &arguments).into_iter();
        let mut next = |data_type| decode(data_type, &outputs.next().unwrap_or_default());
        let dst = next(self.data);
        Some(Forward { implementation, dst, variance: next(norm_f32), mean: next(norm_f32) })
    }

    /// Backward on implementation `number`; None if there are fewer.
    pub(crate) fn backward(&self, inputs: &Inputs, number: usize) -> Option<Backward> {
        let (engine, data, stat) = self.descs();
        let desc = Handle::new(norm_primitive_desc_destroy, |out| {
            // SAFETY: all handles are alive; the hint and the attributes may be NULL.
            unsafe {
                norm_layer_normalization_backward_primitive_desc_create_v2(
                    out,
                    engine.pointer,
                    norm_backward,
                    data.pointer,
                    data.pointer,
                    data.pointer,
                    stat.pointer,
                    self.parameters,
                    self.parameters,
                    self.epsilon,
                    self.flags,
                    std::ptr::null(),
                    std::ptr::null(),
                )
            }
        });
        let implementation = choose(&desc, number)?;
        let mut arguments = vec![
            self.argument(NORM_ARG_SRC, Some(&inputs.src)),
            self.argument(NORM_ARG_DIFF_DST, Some(&inputs.diff_dst)),
            self.argument(NORM_ARG_VARIANCE, Some(&inputs.variance)),
            self.argument(NORM_ARG_DIFF_SRC, None),
        ];
        if !self.has(norm_rms_norm) {
            arguments.push(self.argument(NORM_ARG_MEAN, Some(&inputs.mean)));
        }
        self.push_parameters(&mut arguments, inputs, false);
        for (flag, id) in
            [(norm_use_scale, NORM_ARG_DIFF_SCALE), (norm_use_shift, NORM_ARG_DIFF_SHIFT)]
        {
            if self.has(flag) {
                arguments.push(self.argument(id, None));
            }
        }
        let mut outputs = execute(&engine, &desc, &arguments).into_iter();
        let mut next = |data_type| decode(data_type, &outputs.next().unwrap_or_default());
        let diff_src = next(self.data);
        let mut column = |flag| if self.has(flag) { next(self.parameters) } else { vec![] };
        let (diff_scale, diff_shift) = (column(norm_use_scale), column(norm_use_shift));
        Some(Backward { implementation, diff_src, diff_scale, diff_shift })
    }

    fn push_parameters(&self, arguments: &mut Vec<Argument>, inputs: &Inputs, shift: bool) {
        if self.has(norm_use_scale) {
            arguments.push(self.argument(NORM_ARG_SCALE, Some(&inputs.scale)));
        }
        if shift && self.has(norm_use_shift) {
            arguments.push(self.argument(NORM_ARG_SHIFT, Some(&inputs.shift)));
        }
    }
}
