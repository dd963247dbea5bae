"""Layer, RMS and group normalization, rope and softmax on the CPU: fast, and the same bits everywhere.

Arrays are NumPy's (also with the types of ml_dtypes) and those of any library that supports DLPack, such as
PyTorch and JAX. None is copied. A result is written to `out` or is a new array of the library of `src`.

The bits of a row's result depend on the row, scale, shift, epsilon and the element types alone: not on the
instruction set, the number of threads, the other rows, or the layout. The sums over rows (diff_scale,
diff_shift) depend on the rows and their order alone.

Calls release the interpreter's lock while they compute. Do not change an array that another thread passes.
"""

from ._libnorm import (
    __version__,
    add_layer_norm,
    add_layer_norm_training,
    add_rms_norm,
    add_rms_norm_training,
    explain,
    get_cpu_isa,
    get_num_threads,
    group_norm,
    group_norm_backward,
    group_norm_training,
    last_implementation,
    last_num_threads,
    layer_norm,
    layer_norm_backward,
    layer_norm_quantized,
    layer_norm_training,
    log_softmax,
    log_softmax_backward,
    rms_norm,
    rms_norm_backward,
    rms_norm_quantized,
    rms_norm_training,
    rope,
    rope_backward,
    rope_frequencies,
    set_max_cpu_isa,
    set_num_threads,
    softmax,
    softmax_backward,
)

__all__ = [
    "__version__",
    "add_layer_norm",
    "add_layer_norm_training",
    "add_rms_norm",
    "add_rms_norm_training",
    "explain",
    "get_cpu_isa",
    "get_num_threads",
    "group_norm",
    "group_norm_backward",
    "group_norm_training",
    "last_implementation",
    "last_num_threads",
    "layer_norm",
    "layer_norm_backward",
    "layer_norm_quantized",
    "layer_norm_training",
    "log_softmax",
    "log_softmax_backward",
    "rms_norm",
    "rms_norm_backward",
    "rms_norm_quantized",
    "rms_norm_training",
    "rope",
    "rope_backward",
    "rope_frequencies",
    "set_max_cpu_isa",
    "set_num_threads",
    "softmax",
    "softmax_backward",
]
