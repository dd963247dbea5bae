# Rope, for __init__.pyi. There is no such module when a program runs.

from collections.abc import Sequence
from typing import Literal, overload

from ._types import SupportsDLPack, _Array

_Pairing = Literal["interleaved", "half_split", "half_split_of_head"]

def rope(
    src: _Array,
    positions: SupportsDLPack,
    frequencies: SupportsDLPack | Sequence[float] | None = None,
    *,
    pairing: _Pairing,
    rotary_dims: int | None = None,
    magnitude: float = 1.0,
    cos: SupportsDLPack | None = None,
    sin: SupportsDLPack | None = None,
    sections: Sequence[int] | None = None,
    interleaved_sections: bool = False,
    index_dim: int | None = None,
    epsilon: float | None = None,
    scale: SupportsDLPack | None = None,
    scale_plus_one: bool = False,
    rounded: bool = False,
    slots: SupportsDLPack | None = None,
    out: _Array | None = None,
) -> _Array: ...
@overload
def rope_backward(
    diff_dst: _Array,
    positions: SupportsDLPack,
    frequencies: SupportsDLPack | Sequence[float] | None = None,
    *,
    pairing: _Pairing,
    rotary_dims: int | None = None,
    magnitude: float = 1.0,
    cos: SupportsDLPack | None = None,
    sin: SupportsDLPack | None = None,
    sections: Sequence[int] | None = None,
    interleaved_sections: bool = False,
    index_dim: int | None = None,
    epsilon: float | None = None,
    scale: SupportsDLPack | None = None,
    scale_plus_one: bool = False,
    rounded: bool = False,
    src: SupportsDLPack | None = None,
    return_diff_scale: Literal[False] = False,
    out: _Array | None = None,
) -> _Array: ...
@overload
def rope_backward(
    diff_dst: _Array,
    positions: SupportsDLPack,
    frequencies: SupportsDLPack | Sequence[float] | None = None,
    *,
    pairing: _Pairing,
    rotary_dims: int | None = None,
    magnitude: float = 1.0,
    cos: SupportsDLPack | None = None,
    sin: SupportsDLPack | None = None,
    sections: Sequence[int] | None = None,
    interleaved_sections: bool = False,
    index_dim: int | None = None,
    epsilon: float | None = None,
    scale: SupportsDLPack | None = None,
    scale_plus_one: bool = False,
    rounded: bool = False,
    src: SupportsDLPack | None = None,
    return_diff_scale: Literal[True],
    out: tuple[_Array | None, _Array | None] | None = None,
) -> tuple[_Array, _Array]: ...
@overload
def rope_backward(
    diff_dst: _Array,
    positions: SupportsDLPack,
    frequencies: SupportsDLPack | Sequence[float] | None = None,
    *,
    pairing: _Pairing,
    rotary_dims: int | None = None,
    magnitude: float = 1.0,
    cos: SupportsDLPack | None = None,
    sin: SupportsDLPack | None = None,
    sections: Sequence[int] | None = None,
    interleaved_sections: bool = False,
    index_dim: int | None = None,
    epsilon: float | None = None,
    scale: SupportsDLPack | None = None,
    scale_plus_one: bool = False,
    rounded: bool = False,
    src: SupportsDLPack | None = None,
    return_diff_scale: bool = False,
    out: _Array | tuple[_Array | None, _Array | None] | None = None,
) -> _Array | tuple[_Array, _Array]: ...
def rope_frequencies(
    rotary_dims: int,
    base: float = 10000.0,
    *,
    scaling: Literal["none", "linear", "ntk", "dynamic_ntk", "yarn", "llama3", "longrope"] = "none",
    parameters: Sequence[float] = (),
) -> tuple[list[float], float]: ...
def rope_permute(
    src: _Array,
    heads: int,
    *,
    from_pairing: _Pairing,
    to_pairing: _Pairing,
    rotary_dims: int | None = None,
    out: _Array | None = None,
) -> _Array: ...
