"""Rope of normalized heads, to slots, with positions in parts; weights for another pairing; against f64 and PyTorch."""

import importlib.util

import ml_dtypes
import numpy as np
import pytest
from minimal import Array
from reference import close, data
from test_errors import refused
from test_rope import FREQUENCIES, HEAD, HEADS, POSITIONS, TOKENS, X, rotated

import libnorm

EPSILON = 1e-6
SCALE = data((HEAD,), "float32", 1)
DY = data(X.shape, "float32", 2)
SLOTS = np.array([4, -1, 0, 7, 9, 2, 1], np.int64)
GIVEN = {"frequencies": FREQUENCIES, "pairing": "half_split"}


def rope(x=X, positions=POSITIONS, **options):
    return libnorm.rope(x, positions, **{**GIVEN, **options})


def backward(dy=DY, positions=POSITIONS, **options):
    return libnorm.rope_backward(dy, positions, **{**GIVEN, **options})


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("options", [{}, {"scale": SCALE}, {"scale": SCALE, "scale_plus_one": True}])
def test_normalized_heads_have_the_bits_of_rms_norm_and_rope(dtype, options):
    x, wide = X.astype(data((1,), dtype).dtype), np.empty_like(X)
    scale = options.get("scale")
    plus = {"scale_plus_one": True} if "scale_plus_one" in options else {}
    libnorm.rms_norm(x, scale, epsilon=EPSILON, out=wide, **plus)
    y = rope(x, epsilon=EPSILON, **options)
    assert y.tobytes() == rope(wide, out=np.empty_like(x)).tobytes()
    # Rounded first, it is a norm in the type of x.
    narrow = libnorm.rms_norm(x, scale, epsilon=EPSILON, **plus)
    assert rope(x, epsilon=EPSILON, rounded=True, **options).tobytes() == rope(narrow).tobytes()
    f64 = np.asarray(x, np.float64)
    factor = 1.0 if scale is None else SCALE + bool(plus)
    expected = f64 / np.sqrt((f64**2).mean(-1, keepdims=True) + EPSILON) * factor
    expected = rotated(expected, POSITIONS, FREQUENCIES, "half_split")
    close(y, expected, 4 * np.abs(expected).max() * np.ones(x.shape))


def test_gradient_through_the_norm():
    options = {"epsilon": EPSILON, "scale": SCALE, "src": X}
    dx, dscale = backward(return_diff_scale=True, **options)
    assert backward(**options).tobytes() == dx.tobytes()
    narrow = SCALE.astype(ml_dtypes.bfloat16)
    out = (DY.copy(), None)
    again = libnorm.rope_backward(
        out[0], POSITIONS, return_diff_scale=True, out=out, **{**GIVEN, **options, "scale": narrow}
    )
    assert again[0] is out[0] and again[1].dtype == narrow.dtype and again[1].shape == SCALE.shape
    # The rotation back, and then the gradient of rms_norm.
    _, variance = libnorm.rms_norm_training(X, SCALE, epsilon=EPSILON)
    d = backward()
    ours = libnorm.rms_norm_backward(d, X, variance, SCALE, epsilon=EPSILON)
    assert dx.tobytes() == ours[0].tobytes() and dscale.tobytes() == ours[1].tobytes()
    src = X.copy()
    in_place = backward(**{**options, "src": src}, out=src)
    assert in_place is src and src.tobytes() == dx.tobytes()


@pytest.mark.parametrize("paged", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_slots(paged, dtype):
    out = np.full((5, 2, HEADS, HEAD) if paged else (10, HEADS, HEAD), 7, dtype)
    wanted = out.copy().reshape(10, HEADS, HEAD)
    there = SLOTS >= 0
    wanted[SLOTS[there]] = rope(out=np.empty(X.shape, dtype))[there]
    assert rope(slots=SLOTS, out=out) is out
    assert out.tobytes() == wanted.tobytes()


def test_positions_in_parts():
    parts = np.random.default_rng(1).integers(0, 99, (TOKENS, 1, 3))
    for sections, interleaved in [([4, 2, 2], False), ((4, 2, 2), True), ([8, 0], False)]:
        count = len(sections)
        own = np.repeat(np.arange(count), sections)
        if interleaved:
            pair = np.arange(HEAD // 2)
            part = pair % count
            own = np.where(pair < count * np.array(sections)[part], part, 0)
        positions = np.ascontiguousarray(parts[..., :count])
        y = rope(positions=positions, sections=sections, interleaved_sections=interleaved)
        angle = positions.astype(np.float64)[..., own] * FREQUENCIES
        a, b = np.split(X.astype(np.float64), 2, -1)
        wanted = np.concatenate([a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)], -1)
        close(y, wanted, np.full(X.shape, np.abs(X).max()))
        back = backward(y, positions=positions, sections=sections, interleaved_sections=interleaved)
        assert np.allclose(back, X, atol=1e-5)


def test_an_index_is_added_to_positions():
    x = data((2, 5, HEADS, HEAD), "float32")
    offsets = np.array([3, 40], np.int32).reshape(2, 1, 1)
    y = rope(x, offsets, index_dim=1)
    assert y.tobytes() == rope(x, offsets + np.arange(5, dtype=np.int32).reshape(1, 5, 1)).tobytes()
    back = backward(y, offsets, index_dim=1)
    assert np.allclose(back, x, atol=1e-5)


def test_keys_of_a_cache_are_normalized():
    caches = [libnorm.KvCache("paged", tokens=8, heads=HEADS, key_size=HEAD) for _ in range(2)]
    keys = X.swapaxes(0, 1)[None].copy()
    for cache, normalize in zip(caches, (True, False)):
        cache.extend(cache.new_sequence(), TOKENS)
        options = {"epsilon": EPSILON, "scale": SCALE} if normalize else {}
        cache.write_rope(X if normalize else libnorm.rms_norm(X, SCALE, epsilon=EPSILON), 0, **GIVEN, **options)
        cache.write(None, keys)
    first, second = (cache.attend(keys, [0]) for cache in caches)
    assert first.tobytes() == second.tobytes()


@pytest.mark.parametrize("rotary_dims", [None, 6])
@pytest.mark.parametrize("pairs", [("interleaved", "half_split"), ("half_split_of_head", "interleaved")])
def test_permuted_weights_give_the_same_scores(rotary_dims, pairs):
    frequencies = libnorm.rope_frequencies(rotary_dims or HEAD)[0]
    x = data((TOKENS, 5), "float32")
    weights = [data((HEADS * HEAD, 5), "float32", seed) for seed in (1, 2)]

    def scores(weights, pairing):
        def heads(w):
            rows = (x @ w.T).reshape(TOKENS, HEADS, HEAD)
            return libnorm.rope(rows, POSITIONS, frequencies, pairing=pairing, rotary_dims=rotary_dims)

        return np.einsum("thd,shd->hts", *map(heads, weights))

    options = {"from_pairing": pairs[0], "to_pairing": pairs[1], "rotary_dims": rotary_dims}
    permuted = [libnorm.rope_permute(w, HEADS, **options) for w in weights]
    assert not np.array_equal(permuted[0], weights[0])
    assert np.allclose(scores(permuted, pairs[1]), scores(weights, pairs[0]), rtol=1e-4, atol=1e-4)
    back = {**options, "from_pairing": pairs[1], "to_pairing": pairs[0]}
    assert libnorm.rope_permute(permuted[0], HEADS, **back).tobytes() == weights[0].tobytes()


def test_permuted_types_and_libraries():
    for dtype in (np.float64, np.float16, np.int8, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn):
        bias = np.arange(8).astype(dtype)
        out = np.zeros(8, dtype)
        options = {"from_pairing": "interleaved", "to_pairing": "half_split"}
        assert libnorm.rope_permute(bias, 2, out=out, **options) is out
        assert out.astype(int).tolist() == [0, 2, 1, 3, 4, 6, 5, 7]
    other = libnorm.rope_permute(Array(np.arange(4, dtype=np.float32)), 1, **options)
    assert type(other) is Array and other.array.tolist() == [0, 2, 1, 3]


def test_errors_of_norms():
    for given in ({"scale": SCALE}, {"scale_plus_one": True}, {"rounded": True}):
        words = [f"{next(iter(given))} is given, but epsilon is not: pass epsilon, such as 1e-6"]
        refused(ValueError, words, rope, **given)
    refused(ValueError, ["scale_plus_one needs scale"], rope, epsilon=EPSILON, scale_plus_one=True)
    refused(ValueError, ["scale", "(3,)", "(16,)", "head"], rope, epsilon=EPSILON, scale=SCALE[:3])
    refused(TypeError, ["scale is a float: pass an array, or epsilon=1e-06"], rope, scale=1e-6)
    refused(ValueError, ["epsilon", "number of 0 or more"], rope, epsilon=-1.0)
    refused(ValueError, ["src is missing, but epsilon is given"], backward, epsilon=EPSILON)
    refused(ValueError, ["src is given, but epsilon is not"], backward, src=X)
    refused(ValueError, ["src", "(3, 16)", "diff_dst"], backward, epsilon=EPSILON, src=X[0])
    refused(ValueError, ["return_diff_scale is True, but there is no scale"], backward, return_diff_scale=True)
    options = {"epsilon": EPSILON, "scale": SCALE, "src": X, "return_diff_scale": True}
    refused(TypeError, ["out must be a tuple (diff_src, diff_scale)"], backward, out=np.empty_like(X), **options)


def test_errors_of_slots():
    out = np.zeros((10, HEADS, HEAD), np.float32)
    refused(ValueError, ["out is missing, but slots names rows of it"], rope, slots=SLOTS)
    refused(TypeError, ["slots", "int32", "convert them to int64"], rope, slots=SLOTS.astype(np.int32), out=out)
    refused(ValueError, ["slots has the shape (6,), but must have (7,): one for each token"], rope, slots=SLOTS[1:], out=out)
    words = ["out has the shape (10, 16), but must have (slots, 3, 16) or (pages, slots of a page, 3, 16)"]
    refused(ValueError, words, rope, slots=SLOTS, out=out[:, 0])
    refused(ValueError, ["slot", "10"], rope, slots=np.where(SLOTS == 9, 10, SLOTS), out=out)
    everywhere = np.repeat(POSITIONS, HEADS, axis=1)
    words = ["positions has the shape (7, 3), but with slots a token of dimension 0 has one position"]
    refused(ValueError, words, rope, positions=everywhere, slots=SLOTS, out=out)
    both = np.zeros((10, HEADS, HEAD), np.float32)
    refused(ValueError, ["out overlaps src"], rope, both[:TOKENS], slots=SLOTS, out=both)


def test_errors_of_positions():
    parts = np.zeros((TOKENS, 1, 3), np.int32)
    for sections in ([8], [2] * 5, []):
        words = [f"sections has the length {len(sections)}: pass 2 to 4 numbers"]
        refused(ValueError, words, rope, sections=sections)
    refused(ValueError, ["sections: they add up to 7 pairs"], rope, positions=parts, sections=[4, 2, 1])
    words = ["positions has the shape (7, 1), but src has (7, 3, 16)", "and 3 at the end, the number of sections"]
    refused(ValueError, words, rope, sections=[4, 2, 2])
    refused(TypeError, ["sections is an int: pass a list of ints"], rope, sections=4)
    refused(ValueError, ["interleaved_sections is True, but there are no sections"], rope, interleaved_sections=True)
    for dim in (0, 2, 5):
        words = [f"index_dim is {dim}: pass the number of a dimension of src before the last", "positions has the shape"]
        refused(ValueError, words, rope, index_dim=dim)


def test_errors_of_weights():
    def permute(src=np.zeros((12, 2), np.float32), heads=3, **options):
        given = {"from_pairing": "interleaved", "to_pairing": "half_split", **options}
        return libnorm.rope_permute(src, heads, **given)

    refused(ValueError, ["heads is 5: pass a divisor of 12, the number of rows of src"], permute, heads=5)
    refused(ValueError, ["heads is 0"], permute, heads=0)
    refused(ValueError, ["heads is 4", "3 of the 12 rows", "pass an even rotary_dims"], permute, heads=4)
    refused(ValueError, ["rotary_dims is 6, but a head has 4 rows: pass an even number, 2 to 4"], permute, rotary_dims=6)
    refused(ValueError, ["half_split_of_head needs an even number"], permute, heads=4, rotary_dims=2,
            to_pairing="half_split_of_head")
    refused(ValueError, ["from_pairing", "neox is half_split"], permute, from_pairing="neox")
    refused(ValueError, ["src has the shape (2, 2, 2)"], permute, np.zeros((2, 2, 2), np.float32))
    refused(TypeError, ["src has elements of int64"], permute, np.zeros(4, np.int64))
    src = np.zeros((12, 2), np.float32)
    refused(ValueError, ["out overlaps src"], permute, src, out=src)
    refused(TypeError, ["out has elements of float16"], permute, src, out=src.astype(np.float16))


@pytest.mark.torch
@pytest.mark.skipif(not importlib.util.find_spec("torch"), reason="PyTorch is not installed")
def test_against_autograd():
    import torch

    x, scale, dy = (torch.from_numpy(a.copy()) for a in (X, SCALE, DY))
    wide, factor = x.double().requires_grad_(), scale.double().requires_grad_()
    angle = torch.from_numpy(POSITIONS.astype(np.float64))[..., None] * torch.from_numpy(FREQUENCIES)
    # Older releases have no rms_norm.
    y = wide / (wide.square().mean(-1, keepdim=True) + EPSILON).sqrt() * (1 + factor)
    a, b = y.chunk(2, -1)
    y = torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)
    expected = torch.autograd.grad(y, [wide, factor], dy.double())
    options = {**GIVEN, "epsilon": EPSILON, "scale": scale, "scale_plus_one": True}
    ours = libnorm.rope(x, torch.from_numpy(POSITIONS), **options)
    got = libnorm.rope_backward(dy, torch.from_numpy(POSITIONS), src=x, return_diff_scale=True, **options)
    assert type(ours) is torch.Tensor and torch.allclose(ours.double(), y, rtol=1e-5, atol=1e-5)
    for own, theirs in zip(got, expected):
        assert torch.allclose(own.double(), theirs, rtol=1e-4, atol=1e-4)
