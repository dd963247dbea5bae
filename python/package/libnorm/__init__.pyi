from typing import Any, Final, Literal, overload

from typing_extensions import Unpack

from ._attention import KvCache as KvCache, attention as attention, attention_backward as attention_backward
from ._groups import (
    add_group_norm as add_group_norm,
    add_group_norm_quantized as add_group_norm_quantized,
    add_group_norm_training as add_group_norm_training,
    group_norm as group_norm,
    group_norm_backward as group_norm_backward,
    group_norm_quantized as group_norm_quantized,
    group_norm_training as group_norm_training,
)
from ._rope import (
    rope as rope,
    rope_backward as rope_backward,
    rope_frequencies as rope_frequencies,
    rope_permute as rope_permute,
)
from ._types import SupportsDLPack as SupportsDLPack, _Activation, _Array, _Function, _Gating, _Options, _Ungated

__version__: Final[str]

def layer_norm(
    src: _Array,
    scale: SupportsDLPack | None = None,
    shift: SupportsDLPack | None = None,
    epsilon: float = 1e-5,
    *,
    mean: SupportsDLPack | None = None,
    variance: SupportsDLPack | None = None,
    out: _Array | None = None,
    **options: Unpack[_Options],
) -> _Array: ...
def rms_norm(
    src: _Array,
    scale: SupportsDLPack | None = None,
    shift: SupportsDLPack | None = None,
    epsilon: float = 1e-5,
    *,
    variance: SupportsDLPack | None = None,
    out: _Array | None = None,
    **options: Unpack[_Options],
) -> _Array: ...
def layer_norm_training(
    src: _Array,
    scale: SupportsDLPack | None = None,
    shift: SupportsDLPack | None = None,
    epsilon: float = 1e-5,
    *,
    out: tuple[_Array | None, _Array | None, _Array | None] | None = None,
    **options: Unpack[_Options],
) -> tuple[_Array, _Array, _Array]: ...
def rms_norm_training(
    src: _Array,
    scale: SupportsDLPack | None = None,
    shift: SupportsDLPack | None = None,
    epsilon: float = 1e-5,
    *,
    out: tuple[_Array | None, _Array | None] | None = None,
    **options: Unpack[_Options],
) -> tuple[_Array, _Array]: ...
@overload
def layer_norm_backward(
    diff_dst: SupportsDLPack,
    src: _Array,
    mean: SupportsDLPack,
    variance: SupportsDLPack,
    scale: _Array | None = None,
    shift: _Array | None = None,
    epsilon: float = 1e-5,
    *,
    gate: SupportsDLPack,
    diff_sum: SupportsDLPack | None = None,
    global_stats: bool = False,
    data_only: bool = False,
    out: tuple[_Array | None, _Array | None, _Array | None, _Array | None] | None = None,
    **options: Unpack[_Gating],
) -> tuple[_Array, _Array | None, _Array | None, _Array]: ...
@overload
def layer_norm_backward(
    diff_dst: SupportsDLPack,
    src: _Array,
    mean: SupportsDLPack,
    variance: SupportsDLPack,
    scale: _Array | None = None,
    shift: _Array | None = None,
    epsilon: float = 1e-5,
    *,
    gate_input: SupportsDLPack,
    diff_sum: SupportsDLPack | None = None,
    global_stats: bool = False,
    data_only: bool = False,
    out: tuple[_Array | None, _Array | None, _Array | None, _Array | None] | None = None,
    **options: Unpack[_Gating],
) -> tuple[_Array, _Array | None, _Array | None, _Array]: ...
@overload
def layer_norm_backward(
    diff_dst: SupportsDLPack,
    src: _Array,
    mean: SupportsDLPack,
    variance: SupportsDLPack,
    scale: _Array | None = None,
    shift: _Array | None = None,
    epsilon: float = 1e-5,
    *,
    diff_sum: SupportsDLPack | None = None,
    global_stats: bool = False,
    data_only: bool = False,
    out: tuple[_Array | None, _Array | None, _Array | None] | None = None,
    **options: Unpack[_Ungated],
) -> tuple[_Array, _Array | None, _Array | None]: ...
@overload
def rms_norm_backward(
    diff_dst: SupportsDLPack,
    src: _Array,
    variance: SupportsDLPack,
    scale: _Array | None = None,
    shift: _Array | None = None,
    epsilon: float = 1e-5,
    *,
    gate: SupportsDLPack,
    diff_sum: SupportsDLPack | None = None,
    global_stats: bool = False,
    data_only: bool = False,
    out: tuple[_Array | None, _Array | None, _Array | None, _Array | None] | None = None,
    **options: Unpack[_Gating],
) -> tuple[_Array, _Array | None, _Array | None, _Array]: ...
@overload
def rms_norm_backward(
    diff_dst: SupportsDLPack,
    src: _Array,
    variance: SupportsDLPack,
    scale: _Array | None = None,
    shift: _Array | None = None,
    epsilon: float = 1e-5,
    *,
    gate_input: SupportsDLPack,
    diff_sum: SupportsDLPack | None = None,
    global_stats: bool = False,
    data_only: bool = False,
    out: tuple[_Array | None, _Array | None, _Array | None, _Array | None] | None = None,
    **options: Unpack[_Gating],
) -> tuple[_Array, _Array | None, _Array | None, _Array]: ...
@overload
def rms_norm_backward(
    diff_dst: SupportsDLPack,
    src: _Array,
    variance: SupportsDLPack,
    scale: _Array | None = None,
    shift: _Array | None = None,
    epsilon: float = 1e-5,
    *,
    diff_sum: SupportsDLPack | None = None,
    global_stats: bool = False,
    data_only: bool = False,
    out: tuple[_Array | None, _Array | None, _Array | None] | None = None,
    **options: Unpack[_Ungated],
) -> tuple[_Array, _Array | None, _Array | None]: ...
@overload
def add_layer_norm(
    src: _Array,
    residual: _Array,
    scale: SupportsDLPack | None = None,
    shift: SupportsDLPack | None = None,
    epsilon: float = 1e-5,
    *,
    exact: bool = False,
    return_sum: Literal[True] = True,
    out: tuple[_Array | None, _Array | None] | None = None,
    **options: Unpack[_Options],
) -> tuple[_Array, _Array]: ...
@overload
def add_layer_norm(
    src: _Array,
    residual: _Array,
    scale: SupportsDLPack | None = None,
    shift: SupportsDLPack | None = None,
    epsilon: float = 1e-5,
    *,
    exact: bool = False,
    return_sum: Literal[False],
    out: _Array | None = None,
    **options: Unpack[_Options],
) -> _Array: ...
@overload
def add_layer_norm(
    src: _Array,
    residual: _Array,
    scale: SupportsDLPack | None = None,
    shift: SupportsDLPack | None = None,
    epsilon: float = 1e-5,
    *,
    exact: bool = False,
    return_sum: bool = True,
    out: _Array | tuple[_Array | None, _Array | None] | None = None,
    **options: Unpack[_Options],
) -> _Array | tuple[_Array, _Array]: ...
@overload
def add_rms_norm(
    src: _Array,
    residual: _Array,
    scale: SupportsDLPack | None = None,
    shift: SupportsDLPack | None = None,
    epsilon: float = 1e-5,
    *,
    exact: bool = False,
    return_sum: Literal[True] = True,
    out: tuple[_Array | None, _Array | None] | None = None,
    **options: Unpack[_Options],
) -> tuple[_Array, _Array]: ...
@overload
def add_rms_norm(
    src: _Array,
    residual: _Array,
    scale: SupportsDLPack | None = None,
    shift: SupportsDLPack | None = None,
    epsilon: float = 1e-5,
    *,
    exact: bool = False,
    return_sum: Literal[False],
    out: _Array | None = None,
    **options: Unpack[_Options],
) -> _Array: ...
@overload
def add_rms_norm(
    src: _Array,
    residual: _Array,
    scale: SupportsDLPack | None = None,
    shift: SupportsDLPack | None = None,
    epsilon: float = 1e-5,
    *,
    exact: bool = False,
    return_sum: bool = True,
    out: _Array | tuple[_Array | None, _Array | None] | None = None,
    **options: Unpack[_Options],
) -> _Array | tuple[_Array, _Array]: ...
def add_layer_norm_training(
    src: _Array,
    residual: _Array,
    scale: SupportsDLPack | None = None,
    shift: SupportsDLPack | None = None,
    epsilon: float = 1e-5,
    *,
    exact: bool = False,
    out: tuple[_Array | None, _Array | None, _Array | None, _Array | None] | None = None,
    **options: Unpack[_Options],
) -> tuple[_Array, _Array, _Array, _Array]: ...
def add_rms_norm_training(
    src: _Array,
    residual: _Array,
    scale: SupportsDLPack | None = None,
    shift: SupportsDLPack | None = None,
    epsilon: float = 1e-5,
    *,
    exact: bool = False,
    out: tuple[_Array | None, _Array | None, _Array | None] | None = None,
    **options: Unpack[_Options],
) -> tuple[_Array, _Array, _Array]: ...
def layer_norm_quantized(
    src: SupportsDLPack,
    scale: SupportsDLPack | None = None,
    shift: SupportsDLPack | None = None,
    epsilon: float = 1e-5,
    *,
    out: _Array,
    group: int | None = None,
    scales: SupportsDLPack | None = None,
    **options: Unpack[_Options],
) -> tuple[_Array, ...]: ...
def rms_norm_quantized(
    src: SupportsDLPack,
    scale: SupportsDLPack | None = None,
    shift: SupportsDLPack | None = None,
    epsilon: float = 1e-5,
    *,
    out: _Array,
    group: int | None = None,
    scales: SupportsDLPack | None = None,
    **options: Unpack[_Options],
) -> tuple[_Array, ...]: ...
def add_layer_norm_quantized(
    src: SupportsDLPack,
    residual: SupportsDLPack,
    scale: SupportsDLPack | None = None,
    shift: SupportsDLPack | None = None,
    epsilon: float = 1e-5,
    *,
    exact: bool = False,
    out: _Array,
    sum: SupportsDLPack | None = None,
    return_sum: bool = True,
    group: int | None = None,
    scales: SupportsDLPack | None = None,
    **options: Unpack[_Options],
) -> tuple[_Array, ...]: ...
def add_rms_norm_quantized(
    src: SupportsDLPack,
    residual: SupportsDLPack,
    scale: SupportsDLPack | None = None,
    shift: SupportsDLPack | None = None,
    epsilon: float = 1e-5,
    *,
    exact: bool = False,
    out: _Array,
    sum: SupportsDLPack | None = None,
    return_sum: bool = True,
    group: int | None = None,
    scales: SupportsDLPack | None = None,
    **options: Unpack[_Options],
) -> tuple[_Array, ...]: ...
def explain(
    src: SupportsDLPack,
    scale: SupportsDLPack | None = None,
    epsilon: float = 1e-5,
    *,
    rms: bool = True,
    scale_plus_one: bool = False,
    row: int | None = None,
) -> dict[str, Any]: ...
def adaptive_window(
    strategy: Literal["fixed", "length", "entropy", "entropy_over_4", "perplexity"],
    length: int,
    min_window: int = 512,
    max_window: int = 4096,
    *,
    measured: float | None = None,
    vocabulary: int = 0,
    previous: int | None = None,
    smoothing: float = 1.0,
    max_step: int | None = None,
) -> int: ...
@overload
def softmax(
    src: _Array,
    axis: int = -1,
    *,
    inf_as_zero: bool = False,
    return_lse: Literal[False] = False,
    out: _Array | None = None,
) -> _Array: ...
@overload
def softmax(
    src: _Array, axis: int = -1, *, inf_as_zero: bool = False, return_lse: Literal[True], out: _Array | None = None
) -> tuple[_Array, _Array]: ...
@overload
def softmax(
    src: _Array, axis: int = -1, *, inf_as_zero: bool = False, return_lse: bool = False, out: _Array | None = None
) -> _Array | tuple[_Array, _Array]: ...
@overload
def log_softmax(
    src: _Array, axis: int = -1, *, return_lse: Literal[False] = False, out: _Array | None = None
) -> _Array: ...
@overload
def log_softmax(
    src: _Array, axis: int = -1, *, return_lse: Literal[True], out: _Array | None = None
) -> tuple[_Array, _Array]: ...
@overload
def log_softmax(
    src: _Array, axis: int = -1, *, return_lse: bool = False, out: _Array | None = None
) -> _Array | tuple[_Array, _Array]: ...
def softmax_backward(
    diff_dst: SupportsDLPack, dst: _Array, axis: int = -1, *, out: _Array | None = None
) -> _Array: ...
def log_softmax_backward(
    diff_dst: SupportsDLPack, dst: _Array, axis: int = -1, *, out: _Array | None = None
) -> _Array: ...
def eltwise(
    src: _Array,
    function: _Function,
    alpha: float | None = None,
    beta: float | None = None,
    *,
    out: _Array | None = None,
) -> _Array: ...
def eltwise_backward(
    diff_dst: SupportsDLPack,
    src: _Array,
    function: _Function,
    alpha: float | None = None,
    beta: float | None = None,
    *,
    from_dst: bool = False,
    out: _Array | None = None,
) -> _Array: ...
def binary(
    src0: _Array,
    src1: SupportsDLPack,
    function: Literal["add", "div", "eq", "ge", "gt", "le", "lt", "max", "min", "mul", "ne", "select", "sub"],
    *,
    condition: SupportsDLPack | None = None,
    out: _Array | None = None,
) -> _Array: ...
def gated(
    src: _Array,
    up: SupportsDLPack | None = None,
    *,
    activation: _Activation = "swish",
    packing: Literal["gate_first", "up_first", "interleaved"] | None = None,
    alpha: float | None = None,
    limit: float | None = None,
    shift: float = 0.0,
    out: _Array | None = None,
) -> _Array: ...
def gated_quantized(
    src: SupportsDLPack,
    up: SupportsDLPack | None = None,
    *,
    activation: _Activation = "swish",
    packing: Literal["gate_first", "up_first", "interleaved"] | None = None,
    alpha: float | None = None,
    limit: float | None = None,
    shift: float = 0.0,
    out: _Array,
    group: int | None = None,
    scales: SupportsDLPack | None = None,
) -> tuple[_Array, ...]: ...
@overload
def gated_backward(
    diff_dst: SupportsDLPack,
    src: _Array,
    up: None = None,
    *,
    activation: _Activation = "swish",
    packing: Literal["gate_first", "up_first", "interleaved"],
    alpha: float | None = None,
    limit: float | None = None,
    shift: float = 0.0,
    return_dst: Literal[False] = False,
    out: _Array | None = None,
) -> _Array: ...
@overload
def gated_backward(
    diff_dst: SupportsDLPack,
    src: _Array,
    up: None = None,
    *,
    activation: _Activation = "swish",
    packing: Literal["gate_first", "up_first", "interleaved"],
    alpha: float | None = None,
    limit: float | None = None,
    shift: float = 0.0,
    return_dst: Literal[True],
    out: tuple[_Array | None, _Array | None] | None = None,
) -> tuple[_Array, _Array]: ...
@overload
def gated_backward(
    diff_dst: SupportsDLPack,
    src: _Array,
    up: SupportsDLPack,
    *,
    activation: _Activation = "swish",
    packing: None = None,
    alpha: float | None = None,
    limit: float | None = None,
    shift: float = 0.0,
    return_dst: Literal[False] = False,
    out: tuple[_Array | None, _Array | None] | None = None,
) -> tuple[_Array, _Array]: ...
@overload
def gated_backward(
    diff_dst: SupportsDLPack,
    src: _Array,
    up: SupportsDLPack,
    *,
    activation: _Activation = "swish",
    packing: None = None,
    alpha: float | None = None,
    limit: float | None = None,
    shift: float = 0.0,
    return_dst: Literal[True],
    out: tuple[_Array | None, _Array | None, _Array | None] | None = None,
) -> tuple[_Array, _Array, _Array]: ...
@overload
def gated_backward(
    diff_dst: SupportsDLPack,
    src: _Array,
    up: SupportsDLPack | None = None,
    *,
    activation: _Activation = "swish",
    packing: Literal["gate_first", "up_first", "interleaved"] | None = None,
    alpha: float | None = None,
    limit: float | None = None,
    shift: float = 0.0,
    return_dst: Literal[False] = False,
    out: _Array | tuple[_Array | None, _Array | None] | None = None,
) -> _Array | tuple[_Array, _Array]: ...
@overload
def gated_backward(
    diff_dst: SupportsDLPack,
    src: _Array,
    up: SupportsDLPack | None = None,
    *,
    activation: _Activation = "swish",
    packing: Literal["gate_first", "up_first", "interleaved"] | None = None,
    alpha: float | None = None,
    limit: float | None = None,
    shift: float = 0.0,
    return_dst: bool = False,
    out: _Array | tuple[_Array | None, ...] | None = None,
) -> _Array | tuple[_Array, ...]: ...
def machine_epsilon(dtype: Any) -> float: ...
def set_num_threads(num_threads: int) -> None: ...
def get_num_threads() -> int: ...
def last_num_threads() -> int: ...
def set_max_cpu_isa(
    cpu_isa: Literal["portable", "avx2", "avx512", "avx512_bf16", "avx512_amx", "neon"] | None, /
) -> None: ...
def get_cpu_isa() -> Literal["portable", "avx2", "avx512", "avx512_bf16", "avx512_amx", "neon", "unknown"]: ...
def last_implementation() -> str | None: ...
