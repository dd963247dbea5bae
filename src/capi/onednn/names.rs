//! Names of enumerators that only oneDNN has.

use crate::capi::guard;
use std::ffi::{CStr, c_char, c_int, c_uint};

/// Defines functions from a value to its name.
macro_rules! names {
    ($($function:ident($ty:ty) { $($value:literal => $name:literal,)* else $unknown:literal })*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $function(value: $ty) -> *const c_char {
            guard::value(stringify!($function), $unknown.as_ptr(), || {
                Ok(CStr::as_ptr(match value {
                    $($value => $name,)*
                    _ => $unknown,
                }))
            })
        }
    )*};
}

names! {
    dnnl_runtime2str(c_uint) {
        0 => c"none",
        1 => c"sequential",
        2 => c"OpenMP",
        4 => c"TBB",
        8 => c"threadpool",
        256 => c"OpenCL",
        512 => c"SYCL",
        1024 => c"Level Zero",
        // The runtime of dnnl_version(): the library's own threads.
        0x0100_0000 => c"own",
        else c"unknown"
    }
    dnnl_sparse_encoding2str(c_int) {
        0 => c"undef",
        1 => c"csr",
        2 => c"packed",
        3 => c"coo",
        4 => c"grouped",
        else c"unknown sparse_encoding"
    }
    dnnl_rnn_flags2str(c_int) {
        0 => c"undef",
        1 => c"rnn_flags_diff_weights_overwrite",
        else c"unknown rnn_flags"
    }
    dnnl_rnn_direction2str(c_int) {
        0 => c"undef",
        1 => c"unidirectional_left2right",
        2 => c"unidirectional_right2left",
        3 => c"bidirectional_concat",
        4 => c"bidirectional_sum",
        else c"unknown rnn_direction"
    }
}
