//! A forward problem that can be executed again and again, and medians, for the examples that time.

use norm_sys as sys;
use std::ffi::{c_int, c_void};
use std::ptr::{null, null_mut};
use std::rc::Rc;
use std::time::Instant;

pub(crate) fn check(status: sys::norm_status_t) {
    assert_eq!(status, sys::norm_success);
}

macro_rules! library {
    ($($name:literal $field:ident = $linked:ident: fn($($argument:ty),*);)*) => {
        /// The functions that the examples call: this library's, or another one's with oneDNN's C
        /// interface.
        #[derive(Clone, Copy)]
        pub(crate) struct Library {
            $($field: unsafe extern "C" fn($($argument),*) -> sys::norm_status_t,)*
            /// OpenMP's, of another library.
            omp_set_num_threads: Option<unsafe extern "C" fn(c_int)>,
        }

        impl Library {
            /// This one.
            pub(crate) fn linked() -> Self {
                Self { $($field: sys::$linked,)* omp_set_num_threads: None }
            }

            /// The one at a path, which stays open.
            #[allow(dead_code, reason = "not every example has another library")]
            pub(crate) fn open(path: &str) -> Self {
                // SAFETY: what is loaded is the caller's choice.
                let opened = unsafe { libloading::Library::new(path) };
                let opened = Box::leak(Box::new(opened.expect("a shared library")));
                // SAFETY: under oneDNN's and OpenMP's names stand functions of their types.
                unsafe {
                    let omp = opened.get::<unsafe extern "C" fn(c_int)>("omp_set_num_threads");
                    Self {
                        $($field: *opened.get(concat!("dnnl_", $name)).expect("oneDNN's functions"),)*
                        omp_set_num_threads: omp.ok().map(|set| *set),
                    }
                }
            }
        }
    };
}

library! {
    "engine_create" engine_create = norm_engine_create:
        fn(*mut sys::norm_engine_t, sys::norm_engine_kind_t, usize);
    "stream_create" stream_create = norm_stream_create:
        fn(*mut sys::norm_stream_t, sys::norm_engine_t, u32);
    "memory_desc_create_with_strides" describe = norm_memory_desc_create_with_strides:
        fn(*mut sys::norm_memory_desc_t, c_int, *const i64, sys::norm_data_type_t, *const i64);
    "memory_create" memory_create = norm_memory_create:
        fn(*mut sys::norm_memory_t, sys::const_norm_memory_desc_t, sys::norm_engine_t, *mut c_void);
    "layer_normalization_forward_primitive_desc_create" forward =
        norm_layer_normalization_forward_primitive_desc_create:
        fn(
            *mut sys::norm_primitive_desc_t,
            sys::norm_engine_t,
            sys::norm_prop_kind_t,
            sys::const_norm_memory_desc_t,
            sys::const_norm_memory_desc_t,
            sys::const_norm_memory_desc_t,
            f32,
            u32,
            sys::const_norm_primitive_attr_t
        );
    "primitive_create" primitive_create = norm_primitive_create:
        fn(*mut sys::norm_primitive_t, sys::const_norm_primitive_desc_t);
    "primitive_execute" execute = norm_primitive_execute:
        fn(
            sys::const_norm_primitive_t,
            sys::norm_stream_t,
            c_int,
            *const sys::norm_exec_arg_t
        );
}

impl Library {
    /// Sets how many threads an execution may use: OpenMP's number in another library, which counts
    /// its threads when it creates a primitive, too.
    pub(crate) fn set_num_threads(&self, threads: i32) {
        match self.omp_set_num_threads {
            // SAFETY: no pointers.
            Some(set) => unsafe { set(threads) },
            // SAFETY: no pointers.
            None => unsafe { check(sys::norm_set_num_threads(threads)) },
        }
    }

    fn dense(&self, dims: &[i64]) -> sys::norm_memory_desc_t {
        let mut strides = vec![1; dims.len()];
        for i in (1..dims.len()).rev() {
            strides[i - 1] = strides[i] * dims[i];
        }
        let (mut desc, count) = (null_mut(), dims.len() as i32);
        let (dims, strides) = (dims.as_ptr(), strides.as_ptr());
        // SAFETY: dimensions and strides are as many as said.
        unsafe { check((self.describe)(&raw mut desc, count, dims, sys::norm_f32, strides)) };
        desc
    }
}

/// A primitive with its arguments. A process this short leaves the objects to the system.
pub(crate) struct Problem {
    library: Library,
    engine: sys::norm_engine_t,
    data: sys::norm_memory_desc_t,
    flags: u32,
    primitive: sys::norm_primitive_t,
    stream: sys::norm_stream_t,
    args: Vec<sys::norm_exec_arg_t>,
    buffers: Rc<Vec<Vec<f32>>>,
}

impl Problem {
    /// f32, forward inference, dense.
    pub(crate) fn new(library: Library, rows: usize, cols: usize, flags: u32) -> Self {
        let (mut engine, mut stream) = (null_mut(), null_mut());
        let data = library.dense(&[rows as i64, cols as i64]);
        let parameter = library.dense(&[cols as i64]);
        // SAFETY: results are written before they are read.
        unsafe {
            check((library.engine_create)(&raw mut engine, sys::norm_cpu, 0));
            check((library.stream_create)(&raw mut stream, engine, sys::norm_stream_in_order));
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
                unsafe { check((library.memory_create)(&raw mut memory, desc, engine, handle)) };
                args.push(sys::norm_exec_arg_t { arg, memory });
            }
        }
        let (buffers, primitive) = (Rc::new(buffers), null_mut());
        Self { library, engine, data, flags, primitive, stream, args, buffers }.again()
    }

    /// The same on the same buffers, with a primitive that is created now.
    pub(crate) fn again(&self) -> Self {
        let (mut desc, mut primitive) = (null_mut(), null_mut());
        let (kind, data, flags) = (sys::norm_forward_inference, self.data, self.flags);
        // SAFETY: results are written before they are read; descriptors are alive.
        unsafe {
            let create = self.library.forward;
            let (engine, stats, attr) = (self.engine, null(), null());
            check(create(&raw mut desc, engine, kind, data, data, stats, 1e-5, flags, attr));
            check((self.library.primitive_create)(&raw mut primitive, desc));
        }
        Self { primitive, args: self.args.clone(), buffers: self.buffers.clone(), ..*self }
    }

    #[inline]
    pub(crate) fn execute(&self) {
        let count = self.args.len() as i32;
        // SAFETY: primitive, stream and arguments are alive. With OpenMP's threads, too, the work is
        // done when the call returns.
        check(unsafe {
            (self.library.execute)(self.primitive, self.stream, count, self.args.as_ptr())
        });
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

pub(crate) fn median(values: Vec<f64>) -> f64 {
    percentile(values, 0.5)
}

/// The value that a share of all lies below.
pub(crate) fn percentile(mut values: Vec<f64>, share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * share) as usize]
}
