"""Residuals, gates, other scales and quantization around a group normalization, against f64 and PyTorch."""

import importlib.util

import ml_dtypes
import numpy as np
import pytest
from minimal import Array
from reference import data
from test_errors import refused
from test_family import EPSILON, LARGEST, f64, sigmoid, silu

import libnorm

SHAPES = [(3, 12), (2, 12, 5)]
GROUPS = 3


def tensors(shape, dtype="float32"):
    """src, residual, gate and the gradient of the result."""
    return [data(shape, dtype, seed) for seed in range(4)]


def parameters(shape):
    return data(shape[1:2], "float32", 5), data(shape[1:2], "float32", 6)


def wide(parameter, shape):
    """A parameter that broadcasts with src, in f64."""
    return f64(parameter).reshape(1, -1, *[1] * (len(shape) - 2))


def normalized(x, rms, partial=None):
    """The normalized groups in f64."""
    x = f64(x)
    flat = x.reshape(x.shape[0], GROUPS, -1)
    mean = 0.0 if rms else flat.mean(-1, keepdims=True)
    variance = ((flat - mean) ** 2)[..., :partial].mean(-1, keepdims=True)
    return ((flat - mean) / np.sqrt(variance + EPSILON)).reshape(x.shape)


def near(actual, expected, tolerance=2e-5):
    assert actual.shape == expected.shape
    assert np.allclose(f64(actual), expected, rtol=tolerance, atol=tolerance * np.abs(expected).max())


@pytest.mark.parametrize("rms", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("stream", ["float32", "bfloat16", "float16"])
def test_residual_has_the_bits_of_an_addition_and_a_norm(rms, shape, stream):
    x, residual = data(shape, "bfloat16"), data(shape, stream, 1)
    scale, shift = parameters(shape)
    dst, total = libnorm.add_group_norm(x, residual, GROUPS, scale, shift, EPSILON, rms=rms)
    added = (x.astype(np.float32) + residual.astype(np.float32)).astype(residual.dtype)
    assert total.tobytes() == added.tobytes() and dst.dtype == x.dtype
    expected = libnorm.group_norm(added, GROUPS, scale, shift, EPSILON, rms=rms, out=np.empty_like(x))
    assert dst.tobytes() == expected.tobytes()
    out = (np.empty(shape, np.float32), residual.copy())
    dst, total = libnorm.add_group_norm(x, out[1], GROUPS, rms=rms, exact=True, out=out)
    exact = x.astype(np.float32) + residual.astype(np.float32)
    assert dst is out[0] and dst.tobytes() == libnorm.group_norm(exact, GROUPS, rms=rms).tobytes()
    assert total is out[1] and total.tobytes() == exact.astype(residual.dtype).tobytes()


@pytest.mark.parametrize("rms", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("exact", [False, True])
def test_a_sum_that_is_not_stored(rms, shape, exact):
    x, residual = data(shape, "bfloat16"), data(shape, "bfloat16", 1)
    expected, _ = libnorm.add_group_norm(x, residual, GROUPS, rms=rms, exact=exact)
    dst = libnorm.add_group_norm(x, residual, GROUPS, rms=rms, exact=exact, return_sum=False)
    assert dst.dtype == x.dtype and dst.tobytes() == expected.tobytes()


@pytest.mark.parametrize("rms", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("gating, function", [("silu", silu), ("sigmoid", sigmoid)])
def test_gates(rms, shape, gating, function):
    x, _, gate, _ = tensors(shape)
    scale, shift = parameters(shape)
    options = {"rms": rms, "gating": gating}
    y = libnorm.group_norm(x, GROUPS, scale, shift, EPSILON, gate=gate, **options)
    plain = normalized(x, rms) * wide(scale, shape) + wide(shift, shape)
    near(y, plain * function(gate))
    if function is silu:
        y = libnorm.group_norm(x, GROUPS, scale, shift, EPSILON, gate=gate, alpha=1.702, **options)
        near(y, plain * silu(gate, 1.702))
    y = libnorm.group_norm(x, GROUPS, scale, shift, EPSILON, gate_input=gate, **options)
    plain = normalized(f64(x) * function(gate), rms) * wide(scale, shape) + wide(shift, shape)
    near(y, plain)


@pytest.mark.parametrize("shape", SHAPES)
def test_other_scales(shape):
    x, *_ = tensors(shape)
    scale, _ = parameters(shape)
    y = libnorm.group_norm(x, GROUPS, scale, epsilon=EPSILON, scale_plus_one=True)
    assert y.tobytes() == libnorm.group_norm(x, GROUPS, 1 + scale, epsilon=EPSILON).tobytes()
    narrow = x.astype(ml_dtypes.bfloat16)
    y = libnorm.group_norm(narrow, GROUPS, scale, epsilon=EPSILON, rms=True, round_before_scale=True)
    plain = libnorm.group_norm(narrow, GROUPS, epsilon=EPSILON, rms=True).astype(np.float32)
    assert y.tobytes() == (plain * wide(scale, shape).astype(np.float32)).astype(narrow.dtype).tobytes()
    partial = 2 * int(np.prod(shape[2:]))  # two channels
    y = libnorm.group_norm(x, GROUPS, scale, epsilon=EPSILON, rms=True, partial=partial)
    near(y, normalized(x, True, partial) * wide(scale, shape))


@pytest.mark.parametrize("rms", [False, True])
@pytest.mark.parametrize("group", [None, 2])
@pytest.mark.parametrize("dtype, largest, step", LARGEST)
def test_quantized(rms, group, dtype, largest, step):
    shape = (3, 12)
    x, *_ = tensors(shape)
    scale, shift = parameters(shape)
    out = np.empty(shape, dtype)
    result, scales = libnorm.group_norm_quantized(x, GROUPS, scale, shift, EPSILON, rms=rms, out=out, group=group)
    count = shape[-1] // (group or shape[-1])
    assert result is out and scales.shape == (3, count) and scales.dtype == np.float32
    y = libnorm.group_norm(x, GROUPS, scale, shift, EPSILON, rms=rms).reshape(3, count, -1)
    assert np.allclose(scales, np.abs(y).max(-1) / largest, rtol=1e-6)
    again = f64(out).reshape(y.shape) * f64(scales)[..., None]
    assert np.all(np.abs(again - y) <= (step * 1.001) * scales[..., None])


@pytest.mark.parametrize("rms", [False, True])
@pytest.mark.parametrize("stream", ["float32", "bfloat16"])
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_quantized_sums(rms, stream, exact, shape):
    x, residual = data(shape, "float32"), data(shape, stream, 1)
    scale, shift = parameters(shape)
    wide_sum = x + residual.astype(np.float32)
    total = wide_sum if exact else wide_sum.astype(residual.dtype)
    out, own = np.empty(shape, np.int8), np.empty(shape, np.int8)
    options = {"scale": scale, "shift": shift, "rms": rms}
    expected = libnorm.group_norm_quantized(total, GROUPS, out=own, **options)
    result = libnorm.add_group_norm_quantized(x, residual, GROUPS, exact=exact, out=out, **options)
    assert len(result) == 3 and result[0] is out and out.tobytes() == own.tobytes()
    assert result[1].tobytes() == wide_sum.astype(residual.dtype).tobytes()
    assert result[2].tobytes() == expected[1].tobytes()
    out[:] = 0
    alone = libnorm.add_group_norm_quantized(
        x, residual, GROUPS, exact=exact, out=out, return_sum=False, **options
    )
    assert len(alone) == 2 and out.tobytes() == own.tobytes() and alone[1].tobytes() == expected[1].tobytes()
    again = libnorm.add_group_norm_quantized(x, residual, GROUPS, exact=exact, out=out, sum=residual, **options)
    assert again[1] is residual and residual.tobytes() == result[1].tobytes()
    unsigned = np.empty(shape, np.uint8)
    result = libnorm.add_group_norm_quantized(x, residual, GROUPS, out=unsigned, return_sum=False)
    assert len(result) == 3 and result[2].dtype == np.int32


def test_quantized_with_zero_points_and_positions():
    x, *_ = tensors((2, 12, 8))
    out = np.empty(x.shape, np.uint8)
    _, scales, zero_points = libnorm.group_norm_quantized(x, GROUPS, out=out, group=4)
    assert zero_points.dtype == np.int32 and zero_points.shape == scales.shape == (2, 12, 2)
    again = (f64(out).reshape(2, 12, 2, 4) - zero_points[..., None]) * scales[..., None]
    y = libnorm.group_norm(x, GROUPS).reshape(again.shape)
    assert np.all(np.abs(again - y) <= scales[..., None] * 1.01)


def test_other_libraries():
    x, residual, gate, _ = tensors((3, 12))
    dst, total = libnorm.add_group_norm(Array(x), Array(residual), GROUPS, gate=gate)
    assert type(dst) is type(total) is Array
    results = libnorm.add_group_norm_training(x, residual, GROUPS)
    assert [result.shape for result in results] == [(3, 12)] * 2 + [(3, GROUPS)] * 2
    assert len(libnorm.add_group_norm_training(x, residual, GROUPS, rms=True)) == 3


def test_errors():
    x, residual, gate, dy = tensors((2, 12, 5))
    refused(ValueError, ["partial is 7, but a channel of src has 5 elements"], libnorm.group_norm, x, 3, rms=True, partial=7)
    refused(ValueError, ["partial is 25, but a group of src has 20"], libnorm.group_norm, x, 3, rms=True, partial=25)
    words = ["partial is 5, but only RMS normalization has it: pass rms=True"]
    refused(ValueError, words, libnorm.group_norm, x, 3, partial=5)
    refused(ValueError, ["gate", "(12, 5)", "src"], libnorm.group_norm, x, 3, gate=gate[0])
    refused(TypeError, ["gate", "float64"], libnorm.group_norm, x, 3, gate=f64(gate))
    refused(ValueError, ["scale_plus_one needs scale"], libnorm.group_norm, x, 3, scale_plus_one=True)
    refused(ValueError, ["residual", "(12, 5)", "src"], libnorm.add_group_norm, x, residual[0], 3)
    words = ["out must be a tuple (dst, sum)"]
    refused(TypeError, words, libnorm.add_group_norm, x, residual, 3, out=x.copy())
    words = ["out must be a tuple (diff_src, diff_scale, diff_shift, diff_gate)"]
    statistics = libnorm.group_norm_training(x, 3, gate=gate)[1:]
    refused(TypeError, words, libnorm.group_norm_backward, dy, x, 3, *statistics, gate=gate, out=(None,) * 3)
    words = ["diff_sum", "bfloat16", "src", "float32"]
    narrow = gate.astype(ml_dtypes.bfloat16)
    refused(TypeError, words, libnorm.group_norm_backward, dy, x, 3, *statistics, diff_sum=narrow)
    swapped = gate.swapaxes(1, 2).copy().swapaxes(1, 2)
    words = ["gate and out[3] have different strides", "contiguous"]
    refused(ValueError, words, libnorm.group_norm_backward, dy, x, 3, *statistics, gate=swapped)
    out = np.empty(x.shape, np.int8)
    refused(ValueError, ["group is 2", "divisor of 5"], libnorm.group_norm_quantized, x, 3, out=out, group=2)
    refused(TypeError, ["out", "float32", "int8"], libnorm.group_norm_quantized, x, 3, out=x.copy())
    words = ["sum is given, but return_sum is False: leave one of them out"]
    options = {"out": out, "sum": residual, "return_sum": False}
    refused(ValueError, words, libnorm.add_group_norm_quantized, x, residual, 3, **options)
    refused(ValueError, ["residual", "(12, 5)", "src"], libnorm.add_group_norm_quantized, x, residual[0], 3, out=out)


@pytest.mark.torch
@pytest.mark.skipif(not importlib.util.find_spec("torch"), reason="PyTorch is not installed")
@pytest.mark.parametrize("rms", [False, True])
@pytest.mark.parametrize("place", ["gate", "gate_input"])
@pytest.mark.parametrize("shape", SHAPES)
def test_against_autograd(rms, place, shape):
    import torch

    x, residual, gate, dy = (torch.from_numpy(a) for a in tensors(shape))
    dsum = dy.flip(0).contiguous()
    scale, shift = (torch.from_numpy(a) for a in parameters(shape))
    wides = [t.double().requires_grad_() for t in (x, residual, gate, scale, shift)]
    total = wides[0] + wides[1]
    f = wides[2] * torch.sigmoid(1.702 * wides[2])
    inner = (total * f if place == "gate_input" else total).reshape(shape[0], GROUPS, -1)
    mean = 0.0 if rms else inner.mean(-1, keepdim=True)
    r = torch.rsqrt(((inner - mean) ** 2).mean(-1, keepdim=True) + EPSILON)
    of_channels = (1, -1, *[1] * (len(shape) - 2))
    result = ((inner - mean) * r).reshape(shape) * (1 + wides[3].reshape(of_channels)) + wides[4].reshape(of_channels)
    result = result * f if place == "gate" else result
    expected = torch.autograd.grad([result, total], wides, [dy.double(), dsum.double()])
    options = {place: gate, "alpha": 1.702, "scale_plus_one": True, "rms": rms}
    dst, own, *statistics = libnorm.add_group_norm_training(x, residual, GROUPS, scale, shift, EPSILON, **options)
    mean = None if rms else statistics[0]
    got = libnorm.group_norm_backward(
        dy, own, GROUPS, mean, statistics[-1], scale, shift, EPSILON, diff_sum=dsum, **options
    )
    assert torch.allclose(dst.double(), result, rtol=1e-5, atol=1e-5)
    for ours, theirs in zip(got, [expected[0], expected[3], expected[4], expected[2]]):
        assert torch.allclose(ours.double(), theirs, rtol=1e-4, atol=1e-4)
