from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, Protocol, TypedDict, TypeVar, overload

from typing_extensions import Unpack

class SupportsDLPack(Protocol):
    """An array of a library with DLPack, such as numpy.ndarray, torch.Tensor or jax.Array."""

    @property
    def __dlpack__(self) -> Callable[..., Any]: ...
    @property
    def __dlpack_device__(self) -> Callable[[], tuple[Any, Any]]: ...

_Array = TypeVar("_Array", bound=SupportsDLPack)

_Activation = Literal["swish", "silu", "gelu_erf", "gelu_tanh", "relu", "logistic", "sigmoid", "linear"]
# Parameters that have a usual value need not be passed: see help(libnorm.eltwise).
_Function = Literal[
    "abs",
    "clip",
    "elu",
    "exp",
    "gelu_erf",
    "gelu_tanh",
    "hardsigmoid",
    "hardswish",
    "linear",
    "log",
    "logistic",
    "mish",
    "pow",
    "relu",
    "round",
    "sigmoid",
    "silu",
    "soft_relu",
    "sqrt",
    "square",
    "swish",
    "tanh",
]

# Which keys count in the width, the width, and how many first keys are seen besides.
_Window = (
    tuple[Literal["with_self", "before_self"], int] | tuple[Literal["with_self", "before_self"], int, int]
)

class _Options(TypedDict, total=False):
    """What all normalizations of rows take as keywords; partial is of RMS normalization."""

    gate: SupportsDLPack | None
    gate_input: SupportsDLPack | None
    gating: Literal["silu", "swish", "sigmoid", "logistic"]
    scale_plus_one: bool
    round_before_scale: bool
    partial: int | None

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
    out: tuple[_Array | None, ...] | None = None,
    **options: Unpack[_Options],
) -> tuple[_Array | None, ...]: ...
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
    out: tuple[_Array | None, ...] | None = None,
    **options: Unpack[_Options],
) -> tuple[_Array | None, ...]: ...
def add_layer_norm(
    src: _Array,
    residual: _Array,
    scale: SupportsDLPack | None = None,
    shift: SupportsDLPack | None = None,
    epsilon: float = 1e-5,
    *,
    exact: bool = False,
    out: tuple[_Array | None, _Array | None] | None = None,
    **options: Unpack[_Options],
) -> tuple[_Array, _Array]: ...
def add_rms_norm(
    src: _Array,
    residual: _Array,
    scale: SupportsDLPack | None = None,
    shift: SupportsDLPack | None = None,
    epsilon: float = 1e-5,
    *,
    exact: bool = False,
    out: tuple[_Array | None, _Array | None] | None = None,
    **options: Unpack[_Options],
) -> tuple[_Array, _Array]: ...
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
    **options: Unpack[_Options],
) -> tuple[_Array, ...]: ...
def group_norm(
    src: _Array,
    groups: int,
    scale: SupportsDLPack | None = None,
    shift: SupportsDLPack | None = None,
    epsilon: float = 1e-5,
    *,
    rms: bool = False,
    mean: SupportsDLPack | None = None,
    variance: SupportsDLPack | None = None,
    out: _Array | None = None,
) -> _Array: ...
def group_norm_training(
    src: _Array,
    groups: int,
    scale: SupportsDLPack | None = None,
    shift: SupportsDLPack | None = None,
    epsilon: float = 1e-5,
    *,
    rms: bool = False,
    out: tuple[_Array | None, ...] | None = None,
) -> tuple[_Array, ...]: ...
def group_norm_backward(
    diff_dst: SupportsDLPack,
    src: _Array,
    groups: int,
    mean: SupportsDLPack | None,
    variance: SupportsDLPack,
    scale: SupportsDLPack | None = None,
    shift: SupportsDLPack | None = None,
    epsilon: float = 1e-5,
    *,
    rms: bool = False,
    global_stats: bool = False,
    data_only: bool = False,
    out: tuple[_Array | None, _Array | None, _Array | None] | None = None,
) -> tuple[_Array, _Array | None, _Array | None]: ...
def explain(
    src: SupportsDLPack,
    scale: SupportsDLPack | None = None,
    epsilon: float = 1e-5,
    *,
    rms: bool = True,
    row: int | None = None,
) -> dict[str, Any]: ...
def rope(
    src: _Array,
    positions: SupportsDLPack,
    frequencies: SupportsDLPack | Sequence[float] | None = None,
    *,
    pairing: Literal["interleaved", "half_split", "half_split_of_head"],
    rotary_dims: int | None = None,
    magnitude: float = 1.0,
    cos: SupportsDLPack | None = None,
    sin: SupportsDLPack | None = None,
    out: _Array | None = None,
) -> _Array: ...
def rope_backward(
    diff_dst: _Array,
    positions: SupportsDLPack,
    frequencies: SupportsDLPack | Sequence[float] | None = None,
    *,
    pairing: Literal["interleaved", "half_split", "half_split_of_head"],
    rotary_dims: int | None = None,
    magnitude: float = 1.0,
    cos: SupportsDLPack | None = None,
    sin: SupportsDLPack | None = None,
    out: _Array | None = None,
) -> _Array: ...
def rope_frequencies(
    rotary_dims: int,
    base: float = 10000.0,
    *,
    scaling: Literal["none", "linear", "ntk", "dynamic_ntk", "yarn", "llama3", "longrope"] = "none",
    parameters: Sequence[float] = (),
) -> tuple[list[float], float]: ...
def attention(
    q: _Array,
    k: SupportsDLPack,
    v: SupportsDLPack,
    *,
    causal: Literal["top_left", "bottom_right"] | bool | None = None,
    window: _Window | None = None,
    scale: float | None = None,
    soft_cap: float | None = None,
    sinks: SupportsDLPack | None = None,
    alibi_slopes: SupportsDLPack | None = None,
    mask: SupportsDLPack | None = None,
    query_lengths: SupportsDLPack | None = None,
    key_lengths: SupportsDLPack | None = None,
    query_offsets: SupportsDLPack | None = None,
    key_offsets: SupportsDLPack | None = None,
    page_table: SupportsDLPack | None = None,
    key_scales: SupportsDLPack | None = None,
    value_scales: SupportsDLPack | None = None,
    return_lse: bool = False,
    return_entropy: bool = False,
    out: _Array | None = None,
) -> Any: ...
def attention_backward(
    diff_dst: SupportsDLPack,
    q: _Array,
    k: SupportsDLPack,
    v: SupportsDLPack,
    dst: SupportsDLPack,
    lse: SupportsDLPack,
    *,
    causal: Literal["top_left", "bottom_right"] | bool | None = None,
    window: _Window | None = None,
    scale: float | None = None,
    soft_cap: float | None = None,
    sinks: SupportsDLPack | None = None,
    alibi_slopes: SupportsDLPack | None = None,
    mask: SupportsDLPack | None = None,
    query_lengths: SupportsDLPack | None = None,
    key_lengths: SupportsDLPack | None = None,
    query_offsets: SupportsDLPack | None = None,
    key_offsets: SupportsDLPack | None = None,
    return_diff_mask: bool = False,
) -> tuple[_Array, ...]: ...

class KvCache:
    def __new__(
        cls,
        kind: Literal["contiguous", "paged", "ring"],
        *,
        tokens: int,
        heads: int,
        key_size: int,
        value_size: int | None = None,
        dtype: Any = None,
        layers: int = 1,
        sequences: int = 1,
        step_tokens: int | None = None,
        page_size: int | None = None,
        pages: int | None = None,
        window: _Window | None = None,
    ) -> KvCache: ...
    def new_sequence(self) -> int: ...
    def fork(self, sequence: int) -> int: ...
    def drop(self, sequence: int) -> None: ...
    def truncate(self, sequence: int, length: int) -> None: ...
    def length(self, sequence: int) -> int: ...
    def extend(
        self, sequences: int | Sequence[int | None], tokens: int | Sequence[int], *, packed: bool = False
    ) -> None: ...
    def write(self, k: SupportsDLPack | None, v: SupportsDLPack | None, layer: int = 0) -> None: ...
    def write_rope(
        self,
        k: SupportsDLPack,
        layer: int = 0,
        frequencies: SupportsDLPack | Sequence[float] | None = None,
        *,
        pairing: Literal["interleaved", "half_split", "half_split_of_head"],
        rotary_dims: int | None = None,
        magnitude: float = 1.0,
        cos: SupportsDLPack | None = None,
        sin: SupportsDLPack | None = None,
    ) -> None: ...
    def attend(
        self,
        q: _Array,
        sequences: int | Sequence[int | None],
        layer: int = 0,
        *,
        causal: Literal["top_left", "bottom_right"] | bool | None = "bottom_right",
        window: _Window | None = None,
        scale: float | None = None,
        soft_cap: float | None = None,
        sinks: SupportsDLPack | None = None,
        alibi_slopes: SupportsDLPack | None = None,
        mask: SupportsDLPack | None = None,
        query_lengths: SupportsDLPack | None = None,
        query_offsets: SupportsDLPack | None = None,
        return_lse: bool = False,
        return_entropy: bool = False,
        out: _Array | None = None,
    ) -> Any: ...
    def stats(self) -> dict[str, int]: ...

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
    src: _Array, axis: int = -1, *, inf_as_zero: bool = False, return_lse: bool = False, out: _Array | None = None
) -> Any: ...
@overload
def log_softmax(
    src: _Array, axis: int = -1, *, return_lse: Literal[False] = False, out: _Array | None = None
) -> _Array: ...
@overload
def log_softmax(src: _Array, axis: int = -1, *, return_lse: bool = False, out: _Array | None = None) -> Any: ...
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
    out: _Array | None = None,
) -> _Array: ...
def binary(
    src0: _Array,
    src1: SupportsDLPack,
    function: Literal["add", "div", "eq", "ge", "gt", "le", "lt", "max", "min", "mul", "ne", "sub"],
    *,
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
) -> _Array | tuple[_Array, _Array]: ...
def set_num_threads(num_threads: int) -> None: ...
def get_num_threads() -> int: ...
def last_num_threads() -> int: ...
def set_max_cpu_isa(cpu_isa: Literal["portable", "avx2", "avx512", "avx512_bf16", "avx512_amx", "neon"] | None, /) -> None: ...
def get_cpu_isa() -> Literal["portable", "avx2", "avx512", "avx512_bf16", "avx512_amx", "neon", "unknown"]: ...
def last_implementation() -> str | None: ...
