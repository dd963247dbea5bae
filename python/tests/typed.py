"""A program for `mypy --strict` (test_types.py): the results have these types."""

from typing import assert_type

import numpy as np
from numpy.typing import NDArray

import libnorm

Rows = NDArray[np.float32]


def norms(x: Rows, scale: Rows, gate: Rows) -> Rows:
    """Forward and backward, with a gate and without, and groups."""
    dst, variance = libnorm.rms_norm_training(x, scale, out=(x, None))
    diff_src, diff_scale, diff_shift = libnorm.rms_norm_backward(dst, x, variance, scale)
    assert_type(diff_src, Rows)
    assert_type(diff_scale, Rows | None)
    assert_type(diff_shift, Rows | None)
    assert_type(libnorm.rms_norm_backward(dst, x, variance, gate=gate)[3], Rows)
    dst, mean, variance = libnorm.layer_norm_training(x, gate_input=gate, gating="sigmoid")
    gradients = libnorm.layer_norm_backward(dst, x, mean, variance, gate_input=gate, out=(x, None, None, None))
    assert_type(gradients, tuple[Rows, Rows | None, Rows | None, Rows])
    assert_type(libnorm.group_norm_training(x, 2), tuple[Rows, Rows, Rows])
    assert_type(libnorm.group_norm_training(x, 2, rms=True), tuple[Rows, Rows])
    assert_type(libnorm.add_group_norm(x, x, 2, gate=gate, alpha=1.5), tuple[Rows, Rows])
    assert_type(libnorm.add_group_norm(x, x, 2, return_sum=False, out=x), Rows)
    assert_type(libnorm.add_rms_norm(x, x, return_sum=False), Rows)
    assert_type(libnorm.add_layer_norm(x, x), tuple[Rows, Rows])
    assert_type(libnorm.add_group_norm_training(x, x, 2, rms=True), tuple[Rows, Rows, Rows])
    groups = libnorm.group_norm_backward(dst, x, 2, mean, variance, gate=gate)
    assert_type(groups, tuple[Rows, Rows | None, Rows | None, Rows])
    assert_type(libnorm.group_norm_backward(dst, x, 2, mean, variance)[0], Rows)
    quantized, scales = libnorm.rms_norm_quantized(x, out=np.empty(x.shape, np.int8), partial=4)
    return libnorm.rms_norm(diff_src, scale_plus_one=True, out=x)


def softmax(x: Rows, also: bool) -> None:
    """With and without the logarithms."""
    assert_type(libnorm.softmax(x, inf_as_zero=True), Rows)
    assert_type(libnorm.softmax(x, return_lse=True), tuple[Rows, Rows])
    assert_type(libnorm.log_softmax(x, return_lse=True)[1], Rows)
    assert_type(libnorm.softmax(x, return_lse=also), Rows | tuple[Rows, Rows])


def attention(q: Rows, k: Rows, v: Rows, slopes: Rows, also: bool) -> None:
    """One type for each choice of results."""
    assert_type(libnorm.attention(q, k, v, causal=True, window=("with_self", 4), out=q), Rows)
    assert_type(libnorm.attention(q, k, v, return_entropy=True), tuple[Rows, Rows])
    assert_type(libnorm.attention(q, k, v, return_lse=True, return_entropy=True), tuple[Rows, Rows, Rows])
    assert_type(libnorm.attention(q, k, v, return_lse=also), Rows | tuple[Rows, ...])
    dst, lse = libnorm.attention(q, k, v, sinks=slopes, return_lse=True)
    assert_type(libnorm.attention_backward(dst, q, k, v, dst, lse, causal="top_left"), tuple[Rows, Rows, Rows])
    assert_type(libnorm.attention_backward(dst, q, k, v, dst, lse, sinks=slopes), tuple[Rows, ...])
    cache = libnorm.KvCache("ring", tokens=64, heads=1, key_size=8, window=("before_self", 8))
    sequence = cache.new_sequence()
    cache.extend([sequence, None], [1, 0])
    assert_type(cache.attend(q, [sequence, None], alibi_slopes=slopes), Rows)
    assert_type(cache.attend(q, sequence, return_lse=True), tuple[Rows, Rows])


def others(x: Rows, up: Rows, positions: NDArray[np.int32]) -> None:
    """Activations and rope."""
    frequencies, magnitude = libnorm.rope_frequencies(8, scaling="yarn", parameters=[4.0, 64.0])
    assert_type(libnorm.rope(x, positions, frequencies, pairing="half_split", magnitude=magnitude), Rows)
    assert_type(libnorm.rope_backward(x, positions, frequencies, pairing="half_split"), Rows)
    normalized = libnorm.rope_backward(
        x, positions, frequencies, pairing="half_split", epsilon=1e-6, scale=up, src=x, return_diff_scale=True
    )
    assert_type(normalized, tuple[Rows, Rows])
    assert_type(libnorm.gated_backward(x, x, up), tuple[Rows, Rows])
    assert_type(libnorm.gated_backward(x, x, up, return_dst=True), tuple[Rows, Rows, Rows])
    assert_type(libnorm.gated_backward(x, x, packing="gate_first"), Rows)
    assert_type(libnorm.binary(x, up, "add", out=libnorm.eltwise(x, "relu")), Rows)
    assert_type(libnorm.binary(x, up, "select", condition=x), Rows)
