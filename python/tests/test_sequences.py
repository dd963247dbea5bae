"""Packed sequences, quantized keys and values, and gradients of masks: formulas in f64, bits, errors."""

import ml_dtypes
import numpy as np
import pytest
from minimal import Array
from reference import TYPES
from test_attention import ALLOWED, SLOPES, B, D, E, Expected, G, H, S, T, near, numbers, tensors
from test_errors import refused

import libnorm

OFFSETS = [2, 7, 7, 19]  # three sequences, the second one empty
KEY_OFFSETS = [0, 6, 11, 29]


def packed(dtype="float32", rows=(20, 30)):
    """q, k, v and diff_dst with the rows of all sequences; some rows belong to none."""
    shapes = (1, H, rows[0], D), (1, G, rows[1], D), (1, G, rows[1], E), (1, H, rows[0], E)
    return [numbers(shape, dtype, seed) for seed, shape in enumerate(shapes)]


def int32(*values):
    return np.array(values, np.int32)


def parts(x, offsets):
    return [x[:, :, a:b] for a, b in zip(offsets, offsets[1:])]


def outside(x, offsets):
    return np.concatenate([x[:, :, : offsets[0]], x[:, :, offsets[-1] :]], 2)


@pytest.mark.parametrize("dtype", ALLOWED)
@pytest.mark.parametrize("causal", [None, "bottom_right"])
def test_packed_sequences_have_the_bits_of_each_alone(dtype, causal):
    q, k, v, dy = packed(dtype)
    offsets = {"query_offsets": int32(*OFFSETS), "key_offsets": int32(*KEY_OFFSETS)}
    options = {"causal": causal, "sinks": SLOPES - 0.2, "alibi_slopes": SLOPES}
    results = libnorm.attention(q, k, v, return_lse=True, return_entropy=True, **options, **offsets)
    dst, lse, entropy = results
    assert dst.shape == (1, H, 20, E) and lse.shape == (1, H, 20) and entropy.shape == (3, H)
    gradients = libnorm.attention_backward(dy, q, k, v, dst, lse, **options, **offsets)
    diff_sinks = 0
    lists = [parts(x, OFFSETS) for x in (q, dst, lse, dy, gradients[0])]
    lists += [parts(x, KEY_OFFSETS) for x in (k, v, gradients[1], gradients[2])]
    for b, (own_q, own_dst, own_lse, own_dy, own_dq, own_k, own_v, own_dk, own_dv) in enumerate(zip(*lists)):
        alone = libnorm.attention(own_q, own_k, own_v, return_lse=True, return_entropy=True, **options)
        assert alone[0].tobytes() == own_dst.tobytes() and alone[1].tobytes() == own_lse.tobytes()
        assert alone[2].tobytes() == entropy[b].tobytes()
        expected = libnorm.attention_backward(
            np.ascontiguousarray(own_dy), own_q, own_k, own_v, *alone[:2], **options
        )
        for actual, wanted in zip((own_dq, own_dk, own_dv), expected):
            assert actual.tobytes() == wanted.tobytes()
        diff_sinks = diff_sinks + expected[3].astype(np.float64)
        exact = Expected(own_q, own_k, own_v, **options)
        near(own_dst, exact.dst, ALLOWED[dtype])
    near(gradients[3], diff_sinks, 1e-5)
    # Rows that belong to no sequence are zeros.
    for x, own in ((dst, OFFSETS), (lse, OFFSETS), (gradients[0], OFFSETS), (gradients[1], KEY_OFFSETS)):
        assert outside(x, own).size and not outside(x, own).any()


def test_one_side_is_packed():
    q, k, v, _ = packed()
    ends, lengths = int32(0, 3, 20), int32(8, 30)
    padded = [np.zeros((2, G, 30, x.shape[3]), np.float32) for x in (k, v)]
    for own, x in zip(padded, (k, v)):
        own[0, :, :8], own[1] = x[0, :, 5:13], x[0]
    options = {"causal": "bottom_right", "query_offsets": ends}
    dst = libnorm.attention(q, *padded, key_lengths=lengths, **options)
    first = libnorm.attention(q[:, :, :3], k[:, :, 5:13], v[:, :, 5:13], causal="bottom_right")
    second = libnorm.attention(q[:, :, 3:], k, v, causal="bottom_right")
    assert dst.tobytes() == np.concatenate([first, second], 2).tobytes()
    # Packed queries with pages of keys.
    pages = [x.reshape(2, G, 6, 5, x.shape[3]).swapaxes(1, 2).reshape(12, G, 5, x.shape[3]) for x in padded]
    table = np.arange(12, dtype=np.int32).reshape(2, 6)
    paged = libnorm.attention(q, *map(np.ascontiguousarray, pages), key_lengths=lengths, page_table=table, **options)
    assert paged.tobytes() == dst.tobytes()
    # Packed keys with padded queries.
    queries = np.concatenate([q[:, :, :5], q[:, :, 5:10]], 0)
    dst = libnorm.attention(queries, k, v, key_offsets=int32(0, 8, 30))
    for b, (a, end) in enumerate([(0, 8), (8, 30)]):
        alone = libnorm.attention(queries[b : b + 1], k[:, :, a:end], v[:, :, a:end])
        assert dst[b : b + 1].tobytes() == alone.tobytes()


def test_packed_rows_of_tokens_and_out():
    """Tokens x heads x elements, the usual layout of packed sequences."""
    q, k, v, _ = packed()
    flat = [np.ascontiguousarray(x[0].swapaxes(0, 1)) for x in (q, k, v)]
    offsets = {"query_offsets": int32(*OFFSETS), "key_offsets": int32(*KEY_OFFSETS)}
    expected = libnorm.attention(q, k, v, **offsets)
    out = np.full((20, H, E), 7, np.float32)
    views = [x.swapaxes(0, 1)[None] for x in (*flat, out)]
    libnorm.attention(*views[:3], out=views[3], **offsets)
    got = out.swapaxes(0, 1)[None]
    for own, wanted in zip(parts(got, OFFSETS), parts(expected, OFFSETS)):
        assert own.tobytes() == wanted.tobytes()
    assert np.all(outside(got, OFFSETS) == 7)
    lent = libnorm.attention(Array(q), k, v, **offsets)
    assert type(lent) is Array and lent.array.tobytes() == expected.tobytes()


def test_errors_of_offsets():
    q, k, v, _ = packed()
    ends, keys = int32(*OFFSETS), int32(*KEY_OFFSETS)
    attention = libnorm.attention
    words = ["query_offsets", "int64", "int32"]
    refused(TypeError, words, attention, q, k, v, query_offsets=ends.astype(np.int64), key_offsets=keys)
    words = ["key_offsets", "(3,)", "(4,)"]
    refused(ValueError, words, attention, q, k, v, query_offsets=ends, key_offsets=keys[:3])
    words = ["query_offsets", "(2, 2)", "(4,)"]
    refused(ValueError, words, attention, q, k, v, query_offsets=ends.reshape(2, 2), key_offsets=keys)
    words = ["q", "(2, 4, 10, 16)", "(1, 4, 10, 16)", "packed"]
    refused(ValueError, words, attention, q.reshape(2, H, 10, D), k, v, query_offsets=ends, key_offsets=keys)
    words = ["k", "(1, 2, 30, 16)", "(3, 2, 30, 16)"]
    refused(ValueError, words, attention, q, k, v, query_offsets=ends)
    words = ["query_offsets", "21", "20"]
    refused(ValueError, words, attention, q, k, v, query_offsets=int32(0, 1, 2, 21), key_offsets=keys)
    words = ["query_offsets", "1", "2"]
    refused(ValueError, words, attention, q, k, v, query_offsets=int32(0, 2, 1, 20), key_offsets=keys)
    words = ["key_offsets and key_lengths", "one of them"]
    both = {"query_offsets": ends, "key_offsets": keys}
    refused(ValueError, words, attention, q, k, v, key_lengths=int32(1, 2, 3), **both)
    refused(ValueError, ["query_offsets and mask"], attention, q, k, v, mask=np.zeros((20, 30), np.float32), **both)
    own = {"query_offsets": ends, "key_offsets": ends}
    refused(ValueError, ["causal", "bottom_right"], attention, q, q, q, causal=True, **own)


MASKS = {
    "whole": numbers((B, H, S, T), seed=9),
    "shared": numbers((S, T), seed=9),
    "heads": numbers((H, 1, T), seed=9),
    "half": numbers((B, 1, S, T), seed=9).astype(np.float16),
    "broadcast": np.broadcast_to(numbers((B, 1, S, 1), seed=9), (B, H, S, T)),
}


@pytest.mark.parametrize("name", MASKS)
def test_gradients_of_masks(name):
    q, k, v, dy = tensors()
    options = {"mask": MASKS[name], "soft_cap": 0.75, "sinks": SLOPES, "causal": "bottom_right"}
    dst, lse = libnorm.attention(q, k, v, return_lse=True, **options)
    *gradients, diff_mask = libnorm.attention_backward(dy, q, k, v, dst, lse, return_diff_mask=True, **options)
    without = libnorm.attention_backward(dy, q, k, v, dst, lse, **options)
    assert len(gradients) == len(without) == 4
    assert all(a.tobytes() == b.tobytes() for a, b in zip(gradients, without))
    exact = Expected(q, k, v, **options)
    dy = dy.astype(np.float64)
    wanted = exact.p * (dy @ exact.v.swapaxes(2, 3) - (dy * exact.dst).sum(-1, keepdims=True))
    mask = MASKS[name]
    shape = (1,) * (4 - mask.ndim) + mask.shape
    wanted = wanted.sum(tuple(d for d in range(4) if shape[d] == 1), keepdims=True).reshape(mask.shape)
    assert diff_mask.dtype == mask.dtype
    near(diff_mask, wanted, 4e-3 if mask.dtype == np.float16 else 1e-5)


def test_errors_of_gradients_of_masks():
    q, k, v, dy = tensors()
    dst, lse = libnorm.attention(q, k, v, return_lse=True)
    words = ["return_diff_mask", "mask of float32"]
    for mask in (None, np.ones((S, T), np.uint8), np.ones((S, T), bool)):
        refused(
            ValueError, words, libnorm.attention_backward, dy, q, k, v, dst, lse, mask=mask, return_diff_mask=True
        )


QUANTIZED = {"int8": np.int8, "float8_e4m3fn": ml_dtypes.float8_e4m3fn}
SHAPES = [(1,), (1, 1, 1, 1), (G, 1, 1), (1, G, 1, 1), (T, 1), (B, 1, 1, 1), (B, G, T, 1), (B, 1, T, 1)]


def quantized(name, dtype="float32"):
    """q, and keys and values of about 100."""
    q, k, v, _ = tensors(dtype)
    k, v = (np.rint(np.asarray(x, np.float32) * 80).astype(QUANTIZED[name]) for x in tensors()[1:3])
    return q, k, v


@pytest.mark.parametrize("name", QUANTIZED)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_quantized_keys_and_values(name, shape, dtype):
    q, k, v = quantized(name, dtype)
    scales = [np.abs(numbers(shape, seed=seed)) / 100 + 0.002 for seed in (5, 6)]
    scales = [x.astype(np.float32) for x in scales]
    dst, lse = libnorm.attention(
        q, k, v, key_scales=scales[0], value_scales=scales[1], causal="bottom_right", return_lse=True
    )
    wide = [x.astype(np.float64) * own for x, own in zip((k, v), scales)]
    exact = Expected(q, *wide, causal="bottom_right")
    near(dst, exact.dst, ALLOWED[dtype])
    near(lse, exact.lse, 4e-6)
    # Scales that are powers of 2 change no bit.
    scales = [np.exp2(np.rint(np.log2(x))).astype(np.float32) for x in scales]
    dst = libnorm.attention(q, k, v, key_scales=scales[0], value_scales=scales[1])
    wide = [(x.astype(np.float32) * own).astype(TYPES[dtype]) for x, own in zip((k, v), scales)]
    if dtype == "float32":
        assert dst.tobytes() == libnorm.attention(q, *wide).tobytes()


def test_one_of_them_is_quantized():
    q, k, v, _ = tensors()
    narrow = quantized("float8_e4m3fn")[2]
    assert np.array_equal(libnorm.attention(q, k, narrow), libnorm.attention(q, k, narrow.astype(np.float32)))
    _, narrow, _ = quantized("int8")
    scales = np.full((1,), 2.0**-6, np.float32)
    expected = libnorm.attention(q, narrow.astype(np.float32) / 64, v)
    assert libnorm.attention(q, narrow, v, key_scales=scales).tobytes() == expected.tobytes()


def test_quantized_pages():
    q, k, v = quantized("int8")
    q, k, v = q, k[:, :, :12], v[:, :, :12]
    scales = [np.abs(numbers((B, G, 12, 1), seed=seed)) / 100 + np.float32(0.002) for seed in (5, 6)]
    expected = libnorm.attention(q, k, v, key_scales=scales[0], value_scales=scales[1])

    def paged(x):
        return np.ascontiguousarray(
            x.reshape(B, G, 3, 4, x.shape[3]).swapaxes(1, 2).reshape(B * 3, G, 4, x.shape[3])
        )

    table = np.arange(B * 3, dtype=np.int32).reshape(B, 3)
    own = [paged(x) for x in (k, v, *scales)]
    dst = libnorm.attention(q, *own[:2], page_table=table, key_scales=own[2], value_scales=own[3])
    assert dst.tobytes() == expected.tobytes()


def test_errors_of_scales():
    q, k, v = quantized("int8")
    one = np.ones(1, np.float32)
    attention = libnorm.attention
    refused(ValueError, ["k has elements of int8", "key_scales"], attention, q, k, v, value_scales=one)
    refused(ValueError, ["v has elements of int8", "value_scales"], attention, q, k, v, key_scales=one)
    both = {"key_scales": one, "value_scales": one}
    words = ["key_scales", "int8 or float8_e4m3fn", "k does not have"]
    refused(ValueError, words, attention, q, tensors()[1], v, **both)
    words = ["key_scales", "(3,)", "(2, 2, 13, 1)"]
    refused(ValueError, words, attention, q, k, v, key_scales=np.ones(3, np.float32), value_scales=one)
    words = ["value_scales", "(13, 16)"]
    refused(ValueError, words, attention, q, k, v, key_scales=one, value_scales=np.ones((T, D), np.float32))
    wide = np.ones((2 * T, 1), np.float32)[::2]
    refused(ValueError, ["key_scales", "contiguous"], attention, q, k, v, key_scales=wide, value_scales=one)
    words = ["key_scales", "float64"]
    refused(TypeError, words, attention, q, k, v, key_scales=one.astype(np.float64), value_scales=one)
    words = ["k", "uint8", "int8"]
    refused(TypeError, words, attention, q, k.view(np.uint8), v, **both)
    dst = np.zeros((B, H, S, E), np.float32)
    lse = np.zeros((B, H, S), np.float32)
    refused(TypeError, ["k", "int8", "float32"], libnorm.attention_backward, dst, q, k, v, dst, lse)
    offsets = int32(0, T)
    words = ["key_offsets and key_scales"]
    refused(ValueError, words, attention, q[:1], k[:1], v[:1], key_offsets=offsets, **both)
