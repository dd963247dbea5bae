# Attention and its cache, for __init__.pyi. There is no such module when a program runs.

from collections.abc import Sequence
from typing import Any, Literal, overload

from typing_extensions import Unpack

from ._types import SupportsDLPack, _Array, _Attention, _OfCache, _OfKeys, _Window

@overload
def attention(
    q: _Array,
    k: SupportsDLPack,
    v: SupportsDLPack,
    *,
    return_lse: Literal[True],
    return_entropy: Literal[True],
    out: _Array | None = None,
    **options: Unpack[_Attention],
) -> tuple[_Array, _Array, _Array]: ...
@overload
def attention(
    q: _Array,
    k: SupportsDLPack,
    v: SupportsDLPack,
    *,
    return_lse: Literal[True],
    return_entropy: Literal[False] = False,
    out: _Array | None = None,
    **options: Unpack[_Attention],
) -> tuple[_Array, _Array]: ...
@overload
def attention(
    q: _Array,
    k: SupportsDLPack,
    v: SupportsDLPack,
    *,
    return_lse: Literal[False] = False,
    return_entropy: Literal[True],
    out: _Array | None = None,
    **options: Unpack[_Attention],
) -> tuple[_Array, _Array]: ...
@overload
def attention(
    q: _Array,
    k: SupportsDLPack,
    v: SupportsDLPack,
    *,
    return_lse: Literal[False] = False,
    return_entropy: Literal[False] = False,
    out: _Array | None = None,
    **options: Unpack[_Attention],
) -> _Array: ...
@overload
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
) -> _Array | tuple[_Array, ...]: ...
@overload
def attention_backward(
    diff_dst: SupportsDLPack,
    q: _Array,
    k: SupportsDLPack,
    v: SupportsDLPack,
    dst: SupportsDLPack,
    lse: SupportsDLPack,
    *,
    sinks: None = None,
    return_diff_mask: Literal[False] = False,
    **options: Unpack[_OfKeys],
) -> tuple[_Array, _Array, _Array]: ...
@overload
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
        epsilon: float | None = None,
        scale: SupportsDLPack | None = None,
        scale_plus_one: bool = False,
        rounded: bool = False,
    ) -> None: ...
    @overload
    def attend(
        self,
        q: _Array,
        sequences: int | Sequence[int | None],
        layer: int = 0,
        *,
        return_lse: Literal[True],
        return_entropy: Literal[True],
        out: _Array | None = None,
        **options: Unpack[_OfCache],
    ) -> tuple[_Array, _Array, _Array]: ...
    @overload
    def attend(
        self,
        q: _Array,
        sequences: int | Sequence[int | None],
        layer: int = 0,
        *,
        return_lse: Literal[True],
        return_entropy: Literal[False] = False,
        out: _Array | None = None,
        **options: Unpack[_OfCache],
    ) -> tuple[_Array, _Array]: ...
    @overload
    def attend(
        self,
        q: _Array,
        sequences: int | Sequence[int | None],
        layer: int = 0,
        *,
        return_lse: Literal[False] = False,
        return_entropy: Literal[True],
        out: _Array | None = None,
        **options: Unpack[_OfCache],
    ) -> tuple[_Array, _Array]: ...
    @overload
    def attend(
        self,
        q: _Array,
        sequences: int | Sequence[int | None],
        layer: int = 0,
        *,
        return_lse: Literal[False] = False,
        return_entropy: Literal[False] = False,
        out: _Array | None = None,
        **options: Unpack[_OfCache],
    ) -> _Array: ...
    @overload
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
    ) -> _Array | tuple[_Array, ...]: ...
    def stats(self) -> dict[str, int]: ...
