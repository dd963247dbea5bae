# Group normalization, for __init__.pyi. There is no such module when a program runs.

from typing import Literal, overload

from typing_extensions import Unpack

from ._types import SupportsDLPack, _Array, _Gating, _Options, _Ungated

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
    **options: Unpack[_Options],
) -> _Array: ...
@overload
def group_norm_training(
    src: _Array,
    groups: int,
    scale: SupportsDLPack | None = None,
    shift: SupportsDLPack | None = None,
    epsilon: float = 1e-5,
    *,
    rms: Literal[True],
    out: tuple[_Array | None, _Array | None] | None = None,
    **options: Unpack[_Options],
) -> tuple[_Array, _Array]: ...
@overload
def group_norm_training(
    src: _Array,
    groups: int,
    scale: SupportsDLPack | None = None,
    shift: SupportsDLPack | None = None,
    epsilon: float = 1e-5,
    *,
    rms: Literal[False] = False,
    out: tuple[_Array | None, _Array | None, _Array | None] | None = None,
    **options: Unpack[_Options],
) -> tuple[_Array, _Array, _Array]: ...
@overload
def group_norm_training(
    src: _Array,
    groups: int,
    scale: SupportsDLPack | None = None,
    shift: SupportsDLPack | None = None,
    epsilon: float = 1e-5,
    *,
    rms: bool = False,
    out: tuple[_Array | None, ...] | None = None,
    **options: Unpack[_Options],
) -> tuple[_Array, ...]: ...
@overload
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
    gate: SupportsDLPack,
    rms: bool = False,
    diff_sum: SupportsDLPack | None = None,
    global_stats: bool = False,
    data_only: bool = False,
    out: tuple[_Array | None, _Array | None, _Array | None, _Array | None] | None = None,
    **options: Unpack[_Gating],
) -> tuple[_Array, _Array | None, _Array | None, _Array]: ...
@overload
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
    gate_input: SupportsDLPack,
    rms: bool = False,
    diff_sum: SupportsDLPack | None = None,
    global_stats: bool = False,
    data_only: bool = False,
    out: tuple[_Array | None, _Array | None, _Array | None, _Array | None] | None = None,
    **options: Unpack[_Gating],
) -> tuple[_Array, _Array | None, _Array | None, _Array]: ...
@overload
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
    diff_sum: SupportsDLPack | None = None,
    global_stats: bool = False,
    data_only: bool = False,
    out: tuple[_Array | None, _Array | None, _Array | None] | None = None,
    **options: Unpack[_Ungated],
) -> tuple[_Array, _Array | None, _Array | None]: ...
@overload
def add_group_norm(
    src: _Array,
    residual: _Array,
    groups: int,
    scale: SupportsDLPack | None = None,
    shift: SupportsDLPack | None = None,
    epsilon: float = 1e-5,
    *,
    rms: bool = False,
    exact: bool = False,
    return_sum: Literal[True] = True,
    out: tuple[_Array | None, _Array | None] | None = None,
    **options: Unpack[_Options],
) -> tuple[_Array, _Array]: ...
@overload
def add_group_norm(
    src: _Array,
    residual: _Array,
    groups: int,
    scale: SupportsDLPack | None = None,
    shift: SupportsDLPack | None = None,
    epsilon: float = 1e-5,
    *,
    rms: bool = False,
    exact: bool = False,
    return_sum: Literal[False],
    out: _Array | None = None,
    **options: Unpack[_Options],
) -> _Array: ...
@overload
def add_group_norm(
    src: _Array,
    residual: _Array,
    groups: int,
    scale: SupportsDLPack | None = None,
    shift: SupportsDLPack | None = None,
    epsilon: float = 1e-5,
    *,
    rms: bool = False,
    exact: bool = False,
    return_sum: bool = True,
    out: _Array | tuple[_Array | None, _Array | None] | None = None,
    **options: Unpack[_Options],
) -> _Array | tuple[_Array, _Array]: ...
@overload
def add_group_norm_training(
    src: _Array,
    residual: _Array,
    groups: int,
    scale: SupportsDLPack | None = None,
    shift: SupportsDLPack | None = None,
    epsilon: float = 1e-5,
    *,
    rms: Literal[True],
    exact: bool = False,
    out: tuple[_Array | None, _Array | None, _Array | None] | None = None,
    **options: Unpack[_Options],
) -> tuple[_Array, _Array, _Array]: ...
@overload
def add_group_norm_training(
    src: _Array,
    residual: _Array,
    groups: int,
    scale: SupportsDLPack | None = None,
    shift: SupportsDLPack | None = None,
    epsilon: float = 1e-5,
    *,
    rms: Literal[False] = False,
    exact: bool = False,
    out: tuple[_Array | None, _Array | None, _Array | None, _Array | None] | None = None,
    **options: Unpack[_Options],
) -> tuple[_Array, _Array, _Array, _Array]: ...
@overload
def add_group_norm_training(
    src: _Array,
    residual: _Array,
    groups: int,
    scale: SupportsDLPack | None = None,
    shift: SupportsDLPack | None = None,
    epsilon: float = 1e-5,
    *,
    rms: bool = False,
    exact: bool = False,
    out: tuple[_Array | None, ...] | None = None,
    **options: Unpack[_Options],
) -> tuple[_Array, ...]: ...
def group_norm_quantized(
    src: SupportsDLPack,
    groups: int,
    scale: SupportsDLPack | None = None,
    shift: SupportsDLPack | None = None,
    epsilon: float = 1e-5,
    *,
    rms: bool = False,
    out: _Array,
    group: int | None = None,
    scales: SupportsDLPack | None = None,
    **options: Unpack[_Options],
) -> tuple[_Array, ...]: ...
def add_group_norm_quantized(
    src: SupportsDLPack,
    residual: SupportsDLPack,
    groups: int,
    scale: SupportsDLPack | None = None,
    shift: SupportsDLPack | None = None,
    epsilon: float = 1e-5,
    *,
    rms: bool = False,
    exact: bool = False,
    out: _Array,
    sum: SupportsDLPack | None = None,
    return_sum: bool = True,
    group: int | None = None,
    scales: SupportsDLPack | None = None,
    **options: Unpack[_Options],
) -> tuple[_Array, ...]: ...
