//! Problems, their data, and the output bits of each implementation.

use norm as _;
use norm_sys as sys;
use std::ffi::{CStr, c_void};
use std::ptr::{null, null_mut};

pub(crate) fn check(status: sys::norm_status_t) {
    if status != sys::norm_success {
        // SAFETY: the message belongs to this thread and is valid until its next failure.
        let text = unsafe { CStr::from_ptr(sys::norm_get_last_error()) };
        panic!("status {status}: {}", text.to_string_lossy());
    }
}

pub(crate) fn size_of_type(data_type: u32) -> usize {
    // SAFETY: no pointers.
    unsafe { sys::norm_data_type_size(data_type) }
}

/// Reproducible pseudo-random numbers.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    /// Between -4 and 4.
    pub(crate) fn small(&mut self) -> f64 {
        (self.next() as f64 - (1u64 << 30) as f64) / (1u64 << 28) as f64
    }

    /// `count` elements of a type without NaN and infinities.
    pub(crate) fn bytes(&mut self, data_type: u32, count: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        for _ in 0..count {
            let x = self.small();
            match data_type {
                sys::norm_f32 => bytes.extend((x as f32).to_le_bytes()),
                sys::norm_f64 => bytes.extend((x * (1.0 + 1e-9)).to_le_bytes()),
                sys::norm_bf16 => bytes.extend(half::bf16::from_f64(x).to_le_bytes()),
                sys::norm_f16 => bytes.extend(half::f16::from_f64(x).to_le_bytes()),
                sys::norm_s32 => bytes.extend(((x * 100.0) as i32).to_le_bytes()),
                sys::norm_s8 | sys::norm_u8 => bytes.push(self.next() as u8),
                // Finite, with exponents near that of 1.
                sys::norm_f8_e4m3 | sys::norm_f8_e5m2 => bytes.push(self.next() as u8 & 0xb7),
                other => panic!("no numbers of type {other}"),
            }
        }
        bytes
    }
}

/// A tensor: a type, and the strides of its dimensions.
#[derive(Clone, Debug)]
pub(crate) struct Tensor {
    pub(crate) data_type: u32,
    pub(crate) strides: Vec<i64>,
}

/// Strides of a dense tensor with its dimensions in this order, outermost first, and `gap` extra
/// elements after each innermost row.
pub(crate) fn strides_of(dims: &[i64], order: &[usize], gap: i64) -> Vec<i64> {
    let mut strides = vec![0; dims.len()];
    let mut stride = 1;
    for (i, &d) in order.iter().rev().enumerate() {
        strides[d] = stride;
        stride = stride * dims[d] + if i == 0 { gap } else { 0 };
    }
    strides
}

#[derive(Clone, Debug)]
pub(crate) struct Problem {
    pub(crate) kind: u32,
    pub(crate) dims: Vec<i64>,
    pub(crate) src: Tensor,
    /// diff_dst in backward.
    pub(crate) dst: Tensor,
    pub(crate) diff_src: Tensor,
    pub(crate) flags: u32,
    pub(crate) scale_shift: u32,
    /// Rows of a dense f32 src to multiply, and the factor, for example to exceed the range of f32.
    pub(crate) scaled_rows: Vec<(usize, f32)>,
}

impl Problem {
    /// Dense tensors of the given types.
    pub(crate) fn dense(kind: u32, dims: &[i64], types: [u32; 3], flags: u32) -> Self {
        let order: Vec<usize> = (0..dims.len()).collect();
        let strides = strides_of(dims, &order, 0);
        let tensor = |data_type| Tensor { data_type, strides: strides.clone() };
        let [src, dst, diff_src] = types.map(tensor);
        let (dims, scale_shift) = (dims.to_vec(), sys::norm_f32);
        Self { kind, dims, src, dst, diff_src, flags, scale_shift, scaled_rows: Vec::new() }
    }

    fn is_forward(&self) -> bool {
        matches!(self.kind, sys::norm_forward_training | sys::norm_forward_inference)
    }
}

/// A memory and its bytes, which live as long as the test.
pub(crate) struct Buffer {
    pub(crate) bytes: Vec<u8>,
    pub(crate) memory: sys::norm_memory_t,
}

pub(crate) struct Library {
    pub(crate) engine: sys::norm_engine_t,
    stream: sys::norm_stream_t,
}

impl Library {
    pub(crate) fn new() -> Self {
        let (mut engine, mut stream) = (null_mut(), null_mut());
        // SAFETY: both are written before they are read.
        unsafe {
            check(sys::norm_engine_create(&raw mut engine, sys::norm_cpu, 0));
            check(sys::norm_stream_create(&raw mut stream, engine, sys::norm_stream_in_order));
        }
        Self { engine, stream }
    }

    pub(crate) fn desc(dims: &[i64], data_type: u32, strides: &[i64]) -> sys::norm_memory_desc_t {
        let mut desc = null_mut();
        let strides = if strides.is_empty() { null() } else { strides.as_ptr() };
        // SAFETY: the dimensions and strides have `ndims` entries.
        unsafe {
            check(sys::norm_memory_desc_create_with_strides(
                &raw mut desc,
                dims.len() as i32,
                dims.as_ptr(),
                data_type,
                strides,
            ));
        }
        desc
    }

    pub(crate) fn buffer(&self, desc: sys::norm_memory_desc_t, mut bytes: Vec<u8>) -> Buffer {
        let mut memory = null_mut();
        let handle: *mut c_void = bytes.as_mut_ptr().cast();
        // SAFETY: the buffer has the size of the descriptor and is kept with the memory.
        unsafe { check(sys::norm_memory_create(&raw mut memory, desc, self.engine, handle)) };
        Buffer { bytes, memory }
    }

    /// A memory of random elements.
    pub(crate) fn random(
        &self,
        desc: sys::norm_memory_desc_t,
        data_type: u32,
        seed: u64,
    ) -> Buffer {
        // SAFETY: a live descriptor.
        let size = unsafe { sys::norm_memory_desc_get_size(desc) };
        self.buffer(desc, Numbers(seed).bytes(data_type, size / size_of_type(data_type)))
    }

    /// A memory filled with a pattern, which gaps must keep.
    pub(crate) fn blank(&self, desc: sys::norm_memory_desc_t) -> Buffer {
        // SAFETY: a live descriptor.
        let size = unsafe { sys::norm_memory_desc_get_size(desc) };
        self.buffer(desc, vec![0x5a; size])
    }
}

/// The name and the outputs of each implementation of a problem.
pub(crate) fn run(library: &Library, problem: &Problem) -> Vec<(String, Vec<Vec<u8>>)> {
    // SAFETY: new attributes, destroyed below.
    unsafe {
        let mut attr = null_mut();
        check(sys::norm_primitive_attr_create(&raw mut attr));
        let outputs = run_with(library, problem, attr, &[]);
        check(sys::norm_primitive_attr_destroy(attr));
        outputs
    }
}

/// As [`run`], with attributes and the memories that they read.
pub(crate) fn run_with(
    library: &Library,
    problem: &Problem,
    attr: sys::norm_primitive_attr_t,
    more: &[sys::norm_exec_arg_t],
) -> Vec<(String, Vec<Vec<u8>>)> {
    let desc = create(library, problem, attr);
    let mut all = Vec::new();
    loop {
        let mut name: *const std::ffi::c_char = null();
        // SAFETY: the descriptor is live and owns the name.
        let name = unsafe {
            check(sys::norm_primitive_desc_query(
                desc,
                sys::norm_query_impl_info_str,
                0,
                (&raw mut name).cast(),
            ));
            CStr::from_ptr(name).to_string_lossy().into_owned()
        };
        all.push((name, execute(library, problem, desc, more)));
        // SAFETY: a live descriptor.
        if unsafe { sys::norm_primitive_desc_next_impl(desc) } != sys::norm_success {
            break;
        }
    }
    // SAFETY: it is not used again.
    unsafe {
        check(sys::norm_primitive_desc_destroy(desc));
    }
    all
}

fn tensor_desc(problem: &Problem, tensor: &Tensor) -> sys::norm_memory_desc_t {
    Library::desc(&problem.dims, tensor.data_type, &tensor.strides)
}

/// The status and descriptor of a problem.
pub(crate) fn try_create(
    library: &Library,
    problem: &Problem,
    attr: sys::norm_primitive_attr_t,
) -> (sys::norm_status_t, sys::norm_primitive_desc_t) {
    let mut desc = null_mut();
    let (src, dst) = (tensor_desc(problem, &problem.src), tensor_desc(problem, &problem.dst));
    // SAFETY: live descriptors.
    let status = unsafe {
        if problem.is_forward() {
            sys::norm_layer_normalization_forward_primitive_desc_create_v2(
                &raw mut desc,
                library.engine,
                problem.kind,
                src,
                dst,
                null(),
                problem.scale_shift,
                1e-3,
                problem.flags,
                attr,
            )
        } else {
            sys::norm_layer_normalization_backward_primitive_desc_create_v2(
                &raw mut desc,
                library.engine,
                problem.kind,
                tensor_desc(problem, &problem.diff_src),
                dst,
                src,
                null(),
                problem.scale_shift,
                problem.scale_shift,
                1e-3,
                problem.flags,
                null(),
                attr,
            )
        }
    };
    (status, desc)
}

fn create(
    library: &Library,
    problem: &Problem,
    attr: sys::norm_primitive_attr_t,
) -> sys::norm_primitive_desc_t {
    let (status, desc) = try_create(library, problem, attr);
    check(status);
    desc
}

fn execute(
    library: &Library,
    problem: &Problem,
    desc: sys::norm_primitive_desc_t,
    more: &[sys::norm_exec_arg_t],
) -> Vec<Vec<u8>> {
    let cols = *problem.dims.last().expect("dimensions");
    let outer = &problem.dims[..problem.dims.len() - 1];
    let rows: i64 = outer.iter().product();
    let forward = problem.is_forward();
    let global = problem.flags & sys::norm_use_global_stats != 0;
    let stat = Library::desc(outer, sys::norm_f32, &[]);
    let parameter = Library::desc(&[cols], problem.scale_shift, &[]);
    let src_desc = tensor_desc(problem, &problem.src);
    let dst_desc = tensor_desc(problem, &problem.dst);
    let mut src = library.random(src_desc, problem.src.data_type, 1);
    if !problem.scaled_rows.is_empty() {
        scale_rows(problem, &mut src.bytes);
    }
    let dst = if forward {
        library.blank(dst_desc)
    } else {
        library.random(dst_desc, problem.dst.data_type, 2)
    };
    let diff_src = library.blank(tensor_desc(problem, &problem.diff_src));
    let scale = library.random(parameter, problem.scale_shift, 3);
    let shift = library.random(parameter, problem.scale_shift, 4);
    let diff_scale = library.blank(parameter);
    let diff_shift = library.blank(parameter);
    let mut numbers = Numbers(5);
    let mut statistics = |read: bool| {
        let mut bytes = Vec::new();
        for _ in 0..rows {
            let x = (numbers.small().abs() + 0.5) as f32;
            bytes.extend(if read { x.to_le_bytes() } else { [0x5a; 4] });
        }
        bytes
    };
    let read = global || !forward;
    let mean = library.buffer(stat, statistics(read));
    let variance = library.buffer(stat, statistics(read));
    let (dst_arg, to) =
        if forward { (sys::NORM_ARG_DST, &dst) } else { (sys::NORM_ARG_DIFF_DST, &dst) };
    let mut args: Vec<sys::norm_exec_arg_t> = [
        (sys::NORM_ARG_SRC, &src),
        (dst_arg, to),
        (sys::NORM_ARG_DIFF_SRC, &diff_src),
        (sys::NORM_ARG_SCALE, &scale),
        (sys::NORM_ARG_SHIFT, &shift),
        (sys::NORM_ARG_DIFF_SCALE, &diff_scale),
        (sys::NORM_ARG_DIFF_SHIFT, &diff_shift),
        (sys::NORM_ARG_MEAN, &mean),
        (sys::NORM_ARG_VARIANCE, &variance),
    ]
    .into_iter()
    .map(|(arg, buffer)| sys::norm_exec_arg_t { arg, memory: buffer.memory })
    .collect();
    args.extend(more);
    // SAFETY: all handles are alive, and buffers have the sizes of their descriptors.
    unsafe {
        let mut primitive = null_mut();
        check(sys::norm_primitive_create(&raw mut primitive, desc));
        let count = args.len() as i32;
        check(sys::norm_primitive_execute(primitive, library.stream, count, args.as_ptr()));
        check(sys::norm_primitive_destroy(primitive));
    }
    let buffers = [dst, diff_src, mean, variance, diff_scale, diff_shift];
    buffers
        .into_iter()
        .map(|buffer| {
            // SAFETY: it is not used again.
            unsafe { check(sys::norm_memory_destroy(buffer.memory)) };
            buffer.bytes
        })
        .collect()
}

fn scale_rows(problem: &Problem, src: &mut [u8]) {
    let cols = *problem.dims.last().expect("dimensions") as usize;
    for &(row, factor) in &problem.scaled_rows {
        for bytes in src.as_chunks_mut().0.iter_mut().skip(row * cols).take(cols) {
            *bytes = (f32::from_le_bytes(*bytes) * factor).to_le_bytes();
        }
    }
}

/// The kernels for each level and the reference: at least one level besides portable code, if any is built.
const FEWEST: usize = if cfg!(any(
    all(target_arch = "x86_64", any(feature = "avx2", feature = "avx512")),
    target_arch = "aarch64"
)) {
    3
} else {
    2
};

/// Asserts that all implementations agree and that a vector one is among them. Returns the outputs.
pub(crate) fn assert_same(problem: &Problem, all: &[(String, Vec<Vec<u8>>)]) -> Vec<Vec<u8>> {
    let (last, expected) = all.last().expect("an implementation");
    assert_eq!(last, "ref:any");
    assert!(all.len() >= FEWEST, "{problem:?}: {} implementations", all.len());
    for (name, outputs) in all {
        for (which, (ours, theirs)) in outputs.iter().zip(expected).enumerate() {
            if let Some(at) = (0..ours.len()).find(|i| ours[*i] != theirs[*i]) {
                panic!(
                    "{name}, output {which}, byte {at}: {} and {}: {problem:?}",
                    ours[at], theirs[at]
                );
            }
        }
    }
    expected.clone()
}

pub(crate) const CH: u32 = sys::norm_use_scale | sys::norm_use_shift;

/// dst of each implementation for a given dense src, with mean 0 and variance 1 - epsilon.
pub(crate) fn convert_with(library: &Library, problem: &Problem, src: Vec<u8>) -> Vec<Vec<u8>> {
    let stat = Library::desc(&problem.dims[..1], sys::norm_f32, &[]);
    let rows = problem.dims[0] as usize;
    let src = library.buffer(tensor_desc(problem, &problem.src), src);
    let mean = library.buffer(stat, vec![0; 4 * rows]);
    let variance = library.buffer(stat, 1f32.to_le_bytes().repeat(rows));
    let mut all = Vec::new();
    let mut desc = null_mut();
    // SAFETY: all handles are alive, and buffers have the sizes of their descriptors.
    unsafe {
        check(sys::norm_layer_normalization_forward_primitive_desc_create(
            &raw mut desc,
            library.engine,
            problem.kind,
            tensor_desc(problem, &problem.src),
            tensor_desc(problem, &problem.dst),
            null(),
            0.0,
            problem.flags,
            null(),
        ));
        loop {
            let dst = library.blank(tensor_desc(problem, &problem.dst));
            let args = [
                (sys::NORM_ARG_SRC, &src),
                (sys::NORM_ARG_DST, &dst),
                (sys::NORM_ARG_MEAN, &mean),
                (sys::NORM_ARG_VARIANCE, &variance),
            ]
            .map(|(arg, buffer)| sys::norm_exec_arg_t { arg, memory: buffer.memory });
            let mut primitive = null_mut();
            check(sys::norm_primitive_create(&raw mut primitive, desc));
            check(sys::norm_primitive_execute(primitive, library.stream, 4, args.as_ptr()));
            all.push(dst.bytes);
            if sys::norm_primitive_desc_next_impl(desc) != sys::norm_success {
                return all;
            }
        }
    }
}
