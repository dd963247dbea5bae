"""Normalization, attention, rope, softmax and activations on the CPU: fast, and the same bits everywhere.

Arrays may come from NumPy (also with the types of ml_dtypes) and any library that supports DLPack, such as
PyTorch and JAX. They are not copied. A result is written to `out` or is a new array of the same library as
`src`.

The bits of a row's result depend only on the row, scale, shift, epsilon and the element types, not on the
instruction set, the number of threads, the other rows, or the layout. The sums over rows (diff_scale,
diff_shift) depend only on the rows and their order.

Calls release the interpreter's lock while they compute. Do not change an array while another thread's call
uses it.
"""

try:
    from . import _libnorm as _module
except ImportError as error:
    if "libnorm.so" in str(error):
        raise ImportError(
            f"{error}: this package was built for an installed libnorm; set LD_LIBRARY_PATH to the folder of that "
            "library, or run ldconfig if it is one of the system's"
        ) from error
    raise
del _module

from ._libnorm import (
    KvCache,
    __version__,
    adaptive_window,
    add_group_norm,
    add_group_norm_quantized,
    add_group_norm_training,
    add_layer_norm,
    add_layer_norm_quantized,
    add_layer_norm_training,
    add_rms_norm,
    add_rms_norm_quantized,
    add_rms_norm_training,
    attention,
    attention_backward,
    binary,
    eltwise,
    eltwise_backward,
    explain,
    gated,
    gated_backward,
    gated_quantized,
    get_cpu_isa,
    get_num_threads,
    group_norm,
    group_norm_backward,
    group_norm_quantized,
    group_norm_training,
    last_implementation,
    last_num_threads,
    layer_norm,
    layer_norm_backward,
    layer_norm_quantized,
    layer_norm_training,
    log_softmax,
    log_softmax_backward,
    machine_epsilon,
    rms_norm,
    rms_norm_backward,
    rms_norm_quantized,
    rms_norm_training,
    rope,
    rope_backward,
    rope_frequencies,
    rope_permute,
    set_max_cpu_isa,
    set_num_threads,
    softmax,
    softmax_backward,
)

__all__ = [
    "KvCache",
    "__version__",
    "adaptive_window",
    "add_group_norm",
    "add_group_norm_quantized",
    "add_group_norm_training",
    "add_layer_norm",
    "add_layer_norm_quantized",
    "add_layer_norm_training",
    "add_rms_norm",
    "add_rms_norm_quantized",
    "add_rms_norm_training",
    "attention",
    "attention_backward",
    "binary",
    "eltwise",
    "eltwise_backward",
    "explain",
    "gated",
    "gated_backward",
    "gated_quantized",
    "get_cpu_isa",
    "get_num_threads",
    "group_norm",
    "group_norm_backward",
    "group_norm_quantized",
    "group_norm_training",
    "last_implementation",
    "last_num_threads",
    "layer_norm",
    "layer_norm_backward",
    "layer_norm_quantized",
    "layer_norm_training",
    "log_softmax",
    "log_softmax_backward",
    "machine_epsilon",
    "rms_norm",
    "rms_norm_backward",
    "rms_norm_quantized",
    "rms_norm_training",
    "rope",
    "rope_backward",
    "rope_frequencies",
    "rope_permute",
    "set_max_cpu_isa",
    "set_num_threads",
    "softmax",
    "softmax_backward",
]
