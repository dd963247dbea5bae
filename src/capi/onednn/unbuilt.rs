//! oneDNN functions that are not implemented. Each returns `norm_unimplemented`. Those that dump or profile generated
//! code succeed: there is none.
//!
//! Together with the implemented functions they are the list in `tests/symbols/onednn.txt`. When a
//! function is implemented, remove it here: a duplicate name fails to link, and
//! `tests/consumers/exports.rs` reports it.
//!
//! The bodies have no parameters. In the C calling conventions of x86-64 and aarch64 the caller
//! sets up and removes the arguments, so a function may ignore them. All of them return a status.

use crate::capi::guard;
use crate::error::{Error, Result};
use norm_sys as sys;

fn unimplemented() -> Result<()> {
    Err(Error::unimplemented("libnorm does not implement this function"))
}

macro_rules! unbuilt {
    ($($name:ident)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name() -> sys::norm_status_t {
            guard::status(stringify!($name), unimplemented)
        }
    )*};
}

/// Functions that have nothing to do.
macro_rules! without_effect {
    ($($name:ident)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name() -> sys::norm_status_t {
            sys::norm_success
        }
    )*};
}

without_effect! {
    dnnl_set_jit_dump
    dnnl_set_jit_profiling_flags
    dnnl_set_jit_profiling_jitdumpdir
}

unbuilt! {
    dnnl_augru_backward_primitive_desc_create
    dnnl_augru_forward_primitive_desc_create
    dnnl_batch_normalization_backward_primitive_desc_create
    dnnl_batch_normalization_forward_primitive_desc_create
    dnnl_concat_primitive_desc_create
    dnnl_convolution_backward_data_primitive_desc_create
    dnnl_convolution_backward_weights_primitive_desc_create
    dnnl_convolution_forward_primitive_desc_create
    dnnl_deconvolution_backward_data_primitive_desc_create
    dnnl_deconvolution_backward_weights_primitive_desc_create
    dnnl_deconvolution_forward_primitive_desc_create
    dnnl_gemm_bf16bf16f32
    dnnl_gemm_s8s8s32
    dnnl_gemm_u8s8s32
    dnnl_gru_backward_primitive_desc_create
    dnnl_gru_forward_primitive_desc_create
    dnnl_inner_product_backward_data_primitive_desc_create
    dnnl_inner_product_backward_weights_primitive_desc_create
    dnnl_inner_product_forward_primitive_desc_create
    dnnl_lbr_augru_backward_primitive_desc_create
    dnnl_lbr_augru_forward_primitive_desc_create
    dnnl_lbr_gru_backward_primitive_desc_create
    dnnl_lbr_gru_forward_primitive_desc_create
    dnnl_lrn_backward_primitive_desc_create
    dnnl_lrn_forward_primitive_desc_create
    dnnl_lstm_backward_primitive_desc_create
    dnnl_lstm_forward_primitive_desc_create
    dnnl_matmul_primitive_desc_create
    dnnl_memory_desc_create_with_coo_encoding
    dnnl_memory_desc_create_with_csr_encoding
    dnnl_memory_desc_create_with_grouped_encoding
    dnnl_memory_desc_create_with_packed_encoding
    dnnl_pooling_backward_primitive_desc_create
    dnnl_pooling_forward_primitive_desc_create
    dnnl_prelu_backward_primitive_desc_create
    dnnl_prelu_forward_primitive_desc_create
    dnnl_primitive_attr_get_rnn_data_qparams
    dnnl_primitive_attr_get_rnn_weights_projection_qparams
    dnnl_primitive_attr_get_rnn_weights_qparams
    dnnl_primitive_attr_set_precomputed_reductions
    dnnl_primitive_attr_set_rnn_data_qparams
    dnnl_primitive_attr_set_rnn_weights_projection_qparams
    dnnl_primitive_attr_set_rnn_weights_qparams
    dnnl_primitive_create_from_cache_blob
    dnnl_primitive_get_cache_blob
    dnnl_query_profiling_data
    dnnl_reduction_primitive_desc_create
    dnnl_resampling_backward_primitive_desc_create
    dnnl_resampling_forward_primitive_desc_create
    dnnl_reset_profiling
    dnnl_sgemm
    dnnl_shuffle_backward_primitive_desc_create
    dnnl_shuffle_forward_primitive_desc_create
    dnnl_sum_primitive_desc_create
    dnnl_vanilla_rnn_backward_primitive_desc_create
    dnnl_vanilla_rnn_forward_primitive_desc_create
}
