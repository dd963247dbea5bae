"""Results in 8 bits with scales of every type: of sums with a residual, and of gated activations."""

import ml_dtypes
import numpy as np
import pytest
from minimal import Array
from reference import data
from test_errors import refused
from test_family import LARGEST, f64

import libnorm

SHAPE = (3, 5, 64)
X, RESIDUAL, UP = (data(SHAPE, "float32", seed) for seed in range(3))
SCALE = data(SHAPE[-1:], "float32", 5)
E4M3, E5M2, E8M0 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float8_e8m0fnu
QUANTIZED = {
    "layer_norm": (libnorm.layer_norm, libnorm.layer_norm_quantized),
    "rms_norm": (libnorm.rms_norm, libnorm.rms_norm_quantized),
    "gated": (libnorm.gated, libnorm.gated_quantized),
}
SECOND = {"layer_norm": SCALE, "rms_norm": SCALE, "gated": UP}


def again(out, scales, zero_points=None):
    """The result that the numbers and their scales stand for, in groups."""
    groups = f64(out).reshape(*scales.shape, -1)
    return (groups - (0 if zero_points is None else f64(zero_points)[..., None])) * f64(scales)[..., None]


@pytest.mark.parametrize("name", QUANTIZED)
@pytest.mark.parametrize("dtype, largest, step", LARGEST)
@pytest.mark.parametrize("group", [None, 16])
def test_scales_of_float32(name, dtype, largest, step, group):
    plain, quantized = QUANTIZED[name]
    count = SHAPE[-1] // (group or SHAPE[-1])
    out, given = np.empty(SHAPE, dtype), np.empty((*SHAPE[:-1], count), np.float32)
    result, scales = quantized(X, SECOND[name], out=out, group=group, scales=given)
    assert result is out and scales is given
    y = plain(X, SECOND[name]).reshape(*SHAPE[:-1], count, -1)
    assert np.allclose(scales, np.abs(y).max(-1) / largest, rtol=1e-6)
    assert np.all(np.abs(again(out, scales) - y) <= (step * 1.001) * scales[..., None])
    new = quantized(X, SECOND[name], out=np.empty(SHAPE, dtype), group=group)
    assert new[0].tobytes() == out.tobytes() and new[1].tobytes() == scales.tobytes()


@pytest.mark.parametrize("name", QUANTIZED)
def test_scales_of_float8(name):
    plain, quantized = QUANTIZED[name]
    # 127 times the rounding of a scale to 4 significant bits would exceed the range of int8: values saturate.
    out, scales = np.empty(SHAPE, np.int8), np.empty((*SHAPE[:-1], 4), E4M3)
    assert quantized(X, SECOND[name], out=out, group=16, scales=scales)[1] is scales
    y = plain(X, SECOND[name]).reshape(*SHAPE[:-1], 4, -1)
    assert scales.astype(np.float32).tobytes() == (np.abs(y).max(-1) / 127).astype(E4M3).astype(np.float32).tobytes()
    wide = f64(scales)[..., None]
    assert np.all(np.abs(again(out, scales) - np.clip(y, -128 * wide, 127 * wide)) <= 0.501 * wide)


@pytest.mark.parametrize("name", QUANTIZED)
@pytest.mark.parametrize("dtype, exponent", [(E4M3, 8), (E5M2, 15)])
def test_scales_that_are_powers_of_two(name, dtype, exponent):
    plain, quantized = QUANTIZED[name]
    out, scales = np.empty(SHAPE, dtype), np.empty((*SHAPE[:-1], 2), E8M0)
    quantized(X, SECOND[name], out=out, group=32, scales=scales)
    y = plain(X, SECOND[name]).reshape(*SHAPE[:-1], 2, -1)
    expected = 2.0 ** (np.floor(np.log2(np.abs(y).max(-1))) - exponent)
    assert np.array_equal(f64(scales), expected)
    largest = float(ml_dtypes.finfo(dtype).max)
    kept = np.abs(y) <= largest * expected[..., None]
    error = np.abs(again(out, scales) - y)
    bound = np.abs(y) * 2.0 ** -(3 if dtype is E5M2 else 4) + expected[..., None] * 2.0**-9
    assert np.all(error[kept] <= bound[kept]) and kept.mean() > 0.9


@pytest.mark.parametrize("rms", [False, True])
@pytest.mark.parametrize("stream", ["float32", "bfloat16"])
@pytest.mark.parametrize("exact", [False, True])
def test_sums(rms, stream, exact):
    add = libnorm.add_rms_norm_quantized if rms else libnorm.add_layer_norm_quantized
    norm = libnorm.rms_norm_quantized if rms else libnorm.layer_norm_quantized
    residual = RESIDUAL.astype(data((1,), stream).dtype)
    wide = X + residual.astype(np.float32)
    total = wide if exact else wide.astype(residual.dtype)
    out = np.empty(SHAPE, np.int8)
    expected = norm(total, SCALE, out=np.empty_like(out), group=16)
    result = add(X, residual, SCALE, exact=exact, out=out, group=16)
    assert len(result) == 3 and result[0] is out and result[1].tobytes() == wide.astype(residual.dtype).tobytes()
    assert out.tobytes() == expected[0].tobytes() and result[2].tobytes() == expected[1].tobytes()
    in_place = add(X, residual, SCALE, exact=exact, out=out, group=16, sum=residual)
    assert in_place[1] is residual and residual.tobytes() == result[1].tobytes()


@pytest.mark.parametrize("rms", [False, True])
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_sums_that_are_not_stored(rms, exact, dtype):
    add = libnorm.add_rms_norm_quantized if rms else libnorm.add_layer_norm_quantized
    residual = RESIDUAL.astype(ml_dtypes.bfloat16)
    out, own = np.empty(SHAPE, dtype), np.empty(SHAPE, dtype)
    expected = add(X, residual, SCALE, exact=exact, out=own)
    result = add(X, residual, SCALE, exact=exact, out=out, return_sum=False)
    assert result[0] is out and out.tobytes() == own.tobytes()
    assert [own.tobytes() for own in result[1:]] == [own.tobytes() for own in expected[2:]]
    words = ["sum is given, but return_sum is False: leave one of them out"]
    refused(ValueError, words, add, X, residual, out=out, sum=residual, return_sum=False)


def test_zero_points():
    out = np.empty(SHAPE, np.uint8)
    y = libnorm.gated(X, UP)
    _, scales, points = libnorm.gated_quantized(X, UP, out=out)
    assert points.dtype == np.int32 and points.shape == scales.shape == (3, 5, 1)
    assert np.all(np.abs(again(out, scales, points).reshape(SHAPE) - y) <= scales * 1.01)
    _, total, scales, points = libnorm.add_rms_norm_quantized(X, RESIDUAL, out=out)
    assert np.all(np.abs(again(out, scales, points).reshape(SHAPE) - libnorm.rms_norm(total)) <= scales * 1.01)


def test_packed_and_other_libraries():
    both = np.concatenate([X, UP], -1)
    expected = np.empty(SHAPE, np.int8)
    libnorm.gated_quantized(X, UP, out=expected, limit=2.0)
    out = np.empty(SHAPE, np.int8)
    _, scales = libnorm.gated_quantized(Array(both), packing="gate_first", out=Array(out), limit=2.0)
    assert type(scales) is Array and out.tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, E4M3, E5M2])
def test_gated_without_scales(dtype):
    y, out = libnorm.gated(X, UP), np.empty(SHAPE, dtype)
    assert libnorm.gated(X, UP, out=out) is out
    limits = (np.iinfo(dtype).min, np.iinfo(dtype).max) if dtype in (np.int8, np.uint8) else (-448, 448)
    rounded = np.rint(y) if dtype in (np.int8, np.uint8) else y
    assert np.array_equal(out.astype(np.float32), np.clip(rounded, *limits).astype(dtype).astype(np.float32))


def test_errors():
    out, scales = np.empty(SHAPE, E4M3), np.empty((*SHAPE[:-1], 1), E8M0)
    words = ["scales has elements of float8_e8m0fnu, which are for groups of 32 elements", "group=32"]
    for quantized, second in ((libnorm.rms_norm_quantized, SCALE), (libnorm.gated_quantized, UP)):
        refused(ValueError, words, quantized, X, second, out=out, scales=scales)
        of_two = np.empty((*SHAPE[:-1], 2), E8M0)
        refused(ValueError, words, quantized, X, second, out=np.empty(SHAPE, np.int8), group=32, scales=of_two)
        shape = ["scales has the shape (3, 5, 1), but must have (3, 5, 2)"]
        refused(ValueError, shape, quantized, X, second, out=out, group=32, scales=scales)
        types = ["scales has elements of float16: pass an array of float32, float8_e4m3fn or float8_e8m0fnu"]
        refused(TypeError, types, quantized, X, second, out=out, scales=np.empty((3, 5, 1), np.float16))
        words_of_group = ["group is 7: pass a divisor of 64, the last dimension of "]
        refused(ValueError, words_of_group, quantized, X, second, out=out, group=7)
        refused(TypeError, ["out", "float32", "int8"], quantized, X, second, out=X.copy())
    refused(ValueError, ["out has the shape"], libnorm.gated_quantized, X, UP, out=np.empty((3, 5, 32), E4M3))
    refused(ValueError, ["residual", "(5, 64)", "src"], libnorm.add_rms_norm_quantized, X, RESIDUAL[0], out=out)
    words = ["sum overlaps src"]
    x = X.copy()
    refused(ValueError, words, libnorm.add_rms_norm_quantized, x, RESIDUAL, out=out, sum=x)
