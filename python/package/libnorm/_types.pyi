# Types that the signatures in __init__.pyi share. There is no such module when a program runs.

from collections.abc import Callable
from typing import Any, Literal, Protocol, TypedDict, TypeVar

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

class _Ungated(TypedDict, total=False):
    """What all normalizations of rows take as keywords, besides a gate; partial is of RMS normalization."""

    scale_plus_one: bool
    round_before_scale: bool
    partial: int | None

class _Gating(_Ungated, total=False):
    """The same, beside a gate."""

    gating: Literal["silu", "swish", "sigmoid", "logistic"]
    alpha: float | None

class _Options(_Gating, total=False):
    """The same, with a gate or without."""

    gate: SupportsDLPack | None
    gate_input: SupportsDLPack | None

class _Masks(TypedDict, total=False):
    """Keyword arguments of attention forward, backward and over a cache."""

    causal: Literal["top_left", "bottom_right"] | bool | None
    window: _Window | None
    scale: float | None
    soft_cap: float | None
    alibi_slopes: SupportsDLPack | None
    mask: SupportsDLPack | None
    query_lengths: SupportsDLPack | None
    query_offsets: SupportsDLPack | None

class _OfCache(_Masks, total=False):
    """Keyword arguments of attention over a cache."""

    sinks: SupportsDLPack | None

class _OfKeys(_Masks, total=False):
    """Keyword arguments of attention over arrays, forward and backward."""

    key_lengths: SupportsDLPack | None
    key_offsets: SupportsDLPack | None

class _Attention(_OfKeys, total=False):
    """Keyword arguments of attention over arrays."""

    sinks: SupportsDLPack | None
    page_table: SupportsDLPack | None
    key_scales: SupportsDLPack | None
    value_scales: SupportsDLPack | None
