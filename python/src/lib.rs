//! The native module of the Python package `libnorm`: layer, RMS and group normalization and
//! softmax of NumPy arrays and of whatever supports DLPack, without a copy.
//!
//! A call reads its arrays (`tensor`), checks them against each other (`call`), finds the
//! primitive of an earlier call or creates one (`plan`), and executes it without the interpreter's
//! lock. The Rust API of libnorm (`norm-rs`) is the only way to the library.

mod arguments;
mod attention;
mod attention_arguments;
mod attention_call;
mod cache_arguments;
mod cache_attend;
mod cache_build;
mod cache_limits;
mod cache_mask;
mod cache_rope;
mod cache_stats;
mod call;
mod dlpack;
mod elementwise;
mod entries;
mod errors;
mod explain;
mod functions;
mod gated;
mod group_call;
mod group_residual;
mod groups;
mod hint_tables;
mod hints;
mod kv_cache;
mod layout;
mod normalization;
mod numpy_array;
mod options;
mod output;
mod plan;
mod plan_attention;
mod plan_elementwise;
mod plan_groups;
mod plan_rope;
mod quantized;
mod residual;
mod rope;
mod rope_angles;
mod rope_norm;
mod rope_positions;
mod rope_weights;
mod scales;
mod settings;
mod softmax;
mod tensor;
mod wanted;
mod windows;

/// The native part of libnorm.
#[pyo3::pymodule(gil_used = false)]
mod _libnorm {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::attention::{attention, attention_backward};
    #[pymodule_export]
    use crate::elementwise::{binary, eltwise, eltwise_backward};
    #[pymodule_export]
    use crate::explain::explain;
    #[pymodule_export]
    use crate::gated::{gated, gated_backward, gated_quantized};
    #[pymodule_export]
    use crate::group_residual::{add_group_norm, add_group_norm_training};
    #[pymodule_export]
    use crate::groups::{group_norm, group_norm_backward, group_norm_training};
    #[pymodule_export]
    use crate::kv_cache::PyKvCache;
    #[pymodule_export]
    use crate::normalization::{
        layer_norm, layer_norm_backward, layer_norm_training, rms_norm, rms_norm_backward,
        rms_norm_training,
    };
    #[pymodule_export]
    use crate::quantized::{
        add_group_norm_quantized, add_layer_norm_quantized, add_rms_norm_quantized,
        group_norm_quantized, layer_norm_quantized, rms_norm_quantized,
    };
    #[pymodule_export]
    use crate::residual::{
        add_layer_norm, add_layer_norm_training, add_rms_norm, add_rms_norm_training,
    };
    #[pymodule_export]
    use crate::rope::{rope, rope_backward};
    #[pymodule_export]
    use crate::rope_weights::{rope_frequencies, rope_permute};
    #[pymodule_export]
    use crate::settings::{
        get_cpu_isa, get_num_threads, last_implementation, last_num_threads, machine_epsilon,
        set_max_cpu_isa, set_num_threads,
    };

    #[pymodule_export]
    use crate::softmax::{log_softmax, log_softmax_backward, softmax, softmax_backward};

    #[pymodule_export]
    use crate::windows::adaptive_window;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", crate::settings::version())?;
        crate::entries::replace(module, &module.py().get_type::<PyKvCache>())
    }
}
