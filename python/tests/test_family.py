"""Residuals, gates, other scales and quantization around a normalization; groups; explanations."""

import importlib.util

import ml_dtypes
import numpy as np
import pytest
import reference
from minimal import Array
from reference import close, data
from test_errors import refused

import libnorm

NORM = {False: libnorm.layer_norm, True: libnorm.rms_norm}
TRAINING = {False: libnorm.layer_norm_training, True: libnorm.rms_norm_training}
ADD = {False: libnorm.add_layer_norm, True: libnorm.add_rms_norm}
ADD_TRAINING = {False: libnorm.add_layer_norm_training, True: libnorm.add_rms_norm_training}
QUANTIZED = {False: libnorm.layer_norm_quantized, True: libnorm.rms_norm_quantized}
SHAPE = (3, 5, 40)
EPSILON = 1e-5
# The largest value of a type, and half of the distance to its neighbour.
LARGEST = [(np.int8, 127, 0.5), (ml_dtypes.float8_e4m3fn, 448, 16), (ml_dtypes.float8_e5m2, 57344, 4096)]
X, Y, DY, G = (data(SHAPE, "float32", seed) for seed in range(4))
SCALE, SHIFT = data(SHAPE[-1:], "float32", 5), data(SHAPE[-1:], "float32", 6)


def f64(array):
    return np.asarray(array, dtype=np.float64)


def silu(g, alpha=1.0):
    return f64(g) / (1 + np.exp(-alpha * f64(g)))


def sigmoid(g):
    return 1 / (1 + np.exp(-f64(g)))


def silu_slope(g, alpha=1.0):
    s = sigmoid(alpha * f64(g))
    return s * (1 + alpha * f64(g) * (1 - s))


def backward(rms, dy, x, statistics, scale=None, shift=None, **options):
    """The gradients, from the statistics that training returned."""
    if rms:
        return libnorm.rms_norm_backward(dy, x, *statistics, scale, shift, EPSILON, **options)
    return libnorm.layer_norm_backward(dy, x, *statistics, scale, shift, EPSILON, **options)


@pytest.mark.parametrize("rms", [False, True])
@pytest.mark.parametrize("stream", ["float32", "bfloat16", "float16"])
def test_residual_has_the_bits_of_an_addition_and_a_norm(rms, stream):
    x, residual = data(SHAPE, "bfloat16"), data(SHAPE, stream, 1)
    dst, total = ADD[rms](x, residual, SCALE, SHIFT, EPSILON)
    added = (x.astype(np.float32) + residual.astype(np.float32)).astype(residual.dtype)
    assert total.tobytes() == added.tobytes() and dst.dtype == x.dtype
    expected = NORM[rms](added, SCALE, SHIFT, EPSILON, out=np.empty_like(x))
    assert dst.tobytes() == expected.tobytes()


@pytest.mark.parametrize("rms", [False, True])
def test_exact_residual(rms):
    x, residual = data(SHAPE, "bfloat16"), data(SHAPE, "bfloat16", 1)
    out = (np.empty(SHAPE, np.float32), None)
    dst, total = ADD[rms](x, residual, exact=True, out=out)
    exact = x.astype(np.float32) + residual.astype(np.float32)
    assert dst is out[0] and dst.tobytes() == NORM[rms](exact).tobytes()
    assert total.tobytes() == exact.astype(total.dtype).tobytes()


@pytest.mark.parametrize("rms", [False, True])
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("stream", ["float32", "bfloat16"])
def test_a_sum_that_is_not_stored(rms, exact, stream):
    x, residual = data(SHAPE, "bfloat16"), data(SHAPE, stream, 1)
    expected, _ = ADD[rms](x, residual, SCALE, SHIFT, EPSILON, exact=exact)
    dst = ADD[rms](x, residual, SCALE, SHIFT, EPSILON, exact=exact, return_sum=False)
    assert dst.dtype == x.dtype and dst.tobytes() == expected.tobytes()
    assert ADD[rms](x, residual, SCALE, SHIFT, EPSILON, exact=exact, return_sum=False, out=x) is x
    assert x.tobytes() == expected.tobytes()


@pytest.mark.parametrize("rms", [False, True])
def test_residual_in_place(rms):
    stream, dst = Y.copy(), np.empty_like(X)
    returned = ADD[rms](X, stream, SCALE, out=(dst, stream))
    expected = ADD[rms](X, Y, SCALE)
    assert returned[1] is stream and stream.tobytes() == expected[1].tobytes()
    assert dst.tobytes() == expected[0].tobytes()


@pytest.mark.parametrize("rms", [False, True])
def test_residual_gradient(rms):
    dst, total, *statistics = ADD_TRAINING[rms](X, Y, SCALE, SHIFT, EPSILON)
    assert dst.tobytes() == ADD[rms](X, Y, SCALE, SHIFT, EPSILON)[0].tobytes()
    alone = backward(rms, DY, total, statistics, SCALE, SHIFT)
    both = backward(rms, DY, total, statistics, SCALE, SHIFT, diff_sum=G)
    mean = 0 if rms else statistics[0]
    (dx, terms), _, _ = reference.backward(DY, total, mean, statistics[-1], SCALE, EPSILON, rms)
    close(both[0], dx + f64(G), terms + np.abs(G))
    assert [part.tobytes() for part in both[1:]] == [part.tobytes() for part in alone[1:]]


@pytest.mark.parametrize("rms", [False, True])
@pytest.mark.parametrize(
    "gating, function", [("silu", silu), ("swish", silu), ("sigmoid", sigmoid), ("logistic", sigmoid)]
)
def test_gate_of_the_result(rms, gating, function):
    y = NORM[rms](X, SCALE, SHIFT, EPSILON, gate=G, gating=gating)
    expected, terms = reference.forward(X, SCALE, SHIFT, EPSILON, rms)
    close(y, expected * function(G), (terms + np.abs(expected)) * np.abs(function(G)) * 4)
    if function is silu:
        y = NORM[rms](X, SCALE, SHIFT, EPSILON, gate=G, gating=gating, alpha=1.702)
        close(y, expected * silu(G, 1.702), (terms + np.abs(expected)) * np.abs(silu(G, 1.702)) * 4)


@pytest.mark.parametrize("rms", [False, True])
@pytest.mark.parametrize("alpha", [1.0, 1.702, -0.5])
def test_gate_of_what_is_normalized(rms, alpha):
    y = NORM[rms](X, SCALE, SHIFT, EPSILON, gate_input=G, alpha=alpha)
    product = f64(X) * silu(G, alpha)
    expected, terms = reference.forward(product, SCALE, SHIFT, EPSILON, rms)
    close(y, expected, terms * 4)


@pytest.mark.parametrize("rms", [False, True])
@pytest.mark.parametrize("place", ["gate", "gate_input"])
@pytest.mark.parametrize("alpha", [1.0, 1.702])
def test_gradient_of_a_gate(rms, place, alpha):
    options = {place: G, "alpha": alpha}
    _, *statistics = TRAINING[rms](X, SCALE, SHIFT, EPSILON, **options)
    got = backward(rms, DY, X, statistics, SCALE, SHIFT, **options)
    assert len(got) == 4
    factor = silu(G, alpha)
    mean = 0 if rms else statistics[0]
    if place == "gate":
        normalized, _ = reference.forward(X, SCALE, SHIFT, EPSILON, rms)
        (dx, terms), *_ = reference.backward(f64(DY) * factor, X, mean, statistics[-1], SCALE, EPSILON, rms)
        dgate = f64(DY) * normalized * silu_slope(G, alpha)
    else:
        (du, terms), *_ = reference.backward(DY, f64(X) * factor, mean, statistics[-1], SCALE, EPSILON, rms)
        dx, dgate = du * factor, du * f64(X) * silu_slope(G, alpha)
    assert np.allclose(got[0], dx, rtol=1e-5, atol=1e-5 * np.max(terms))
    assert np.allclose(got[3], dgate, rtol=1e-5, atol=1e-5 * np.max(np.abs(dgate)))


@pytest.mark.parametrize("rms", [False, True])
def test_one_is_added_to_scale_in_float32(rms):
    small = np.full(SHAPE[-1:], 2.0**-9, ml_dtypes.bfloat16)  # 1 + small is 1 in bfloat16
    y = NORM[rms](X, small, epsilon=EPSILON, scale_plus_one=True)
    assert y.tobytes() == NORM[rms](X, 1 + small.astype(np.float32), epsilon=EPSILON).tobytes()


def test_rounding_before_scale():
    x, scale = X.astype(ml_dtypes.bfloat16), SCALE.astype(ml_dtypes.bfloat16)
    y = libnorm.rms_norm(x, scale, epsilon=EPSILON, round_before_scale=True)
    normalized = libnorm.rms_norm(x, epsilon=EPSILON).astype(np.float32)
    assert y.tobytes() == (normalized * scale.astype(np.float32)).astype(x.dtype).tobytes()


def test_partial_norm():
    y = libnorm.rms_norm(X, SCALE, epsilon=EPSILON, partial=10)
    variance = (f64(X[..., :10]) ** 2).mean(-1, keepdims=True)
    close(y, f64(X) / np.sqrt(variance + EPSILON) * SCALE, np.abs(f64(X) * SCALE) / np.sqrt(variance))


@pytest.mark.parametrize("rms", [False, True])
@pytest.mark.parametrize("group", [None, 20, 8])
@pytest.mark.parametrize("dtype, largest, step", LARGEST)
def test_quantized(rms, group, dtype, largest, step):
    out = np.empty(SHAPE, dtype)
    result, scales = QUANTIZED[rms](X, SCALE, SHIFT, EPSILON, out=out, group=group)
    count = SHAPE[-1] // (group or SHAPE[-1])
    assert result is out and scales.shape == (*SHAPE[:-1], count) and scales.dtype == np.float32
    y = NORM[rms](X, SCALE, SHIFT, EPSILON).reshape(*SHAPE[:-1], count, -1)
    assert np.allclose(scales, np.abs(y).max(-1) / largest, rtol=1e-6)
    again = f64(out).reshape(y.shape) * f64(scales)[..., None]
    assert np.all(np.abs(again - y) <= (step * 1.001) * scales[..., None])


def test_quantized_with_zero_points():
    out = np.empty(SHAPE, np.uint8)
    _, scales, zero_points = libnorm.rms_norm_quantized(X, SCALE, epsilon=EPSILON, out=out)
    assert zero_points.dtype == np.int32 and zero_points.shape == (*SHAPE[:-1], 1)
    again = (f64(out) - zero_points) * scales
    y = libnorm.rms_norm(X, SCALE, epsilon=EPSILON)
    assert np.all(np.abs(again - y) <= scales * 1.01)


def groups_of(x, groups):
    return f64(x).reshape(x.shape[0], groups, -1)


@pytest.mark.parametrize("rms", [False, True])
@pytest.mark.parametrize("shape", [(2, 8), (2, 8, 3), (3, 12, 4, 5), (1, 4, 2, 3, 2)])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_groups(rms, shape, dtype):
    x, dy, groups = data(shape, dtype), data(shape, dtype, 1), 4
    channels = (1, shape[1], *[1] * (len(shape) - 2))
    scale, shift = data(shape[1:2], "float32", 2), data(shape[1:2], "float32", 3)
    y = libnorm.group_norm(x, groups, scale, shift, EPSILON, rms=rms)
    dst, *statistics = libnorm.group_norm_training(x, groups, scale, shift, EPSILON, rms=rms)
    assert dst.tobytes() == y.tobytes() and statistics[0].shape == (shape[0], groups)
    plain, terms = reference.forward(groups_of(x, groups), None, None, EPSILON, rms)
    plain, terms = plain.reshape(shape), terms.reshape(shape)
    wide = f64(scale).reshape(channels)
    close(y, plain * wide + shift.reshape(channels), terms * np.abs(wide) + np.abs(shift.reshape(channels)))
    mean = None if rms else statistics[0]
    got = libnorm.group_norm_backward(dy, x, groups, mean, statistics[-1], scale, shift, EPSILON, rms=rms)
    (dx, terms), *_ = reference.backward(
        groups_of(f64(dy) * wide, groups), groups_of(x, groups), 0 if rms else mean, statistics[-1], None, EPSILON, rms
    )
    close(got[0], dx.reshape(shape), terms.reshape(shape))
    rest = (0, *range(2, len(shape)))
    assert np.allclose(got[1], (f64(dy) * plain).sum(rest), rtol=1e-5, atol=1e-4)
    assert np.allclose(got[2], f64(dy).sum(rest), rtol=1e-5, atol=1e-5)


def test_channels_last_changes_no_bit():
    x = data((2, 8, 4, 4), "float32")
    last = np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1)
    assert libnorm.group_norm(last, 2).tobytes() == libnorm.group_norm(x, 2).tobytes()


def test_group_statistics_from_elsewhere():
    x = data((2, 8, 5), "float32")
    _, mean, variance = libnorm.group_norm_training(x, 4)
    assert libnorm.group_norm(x, 4, mean=mean, variance=variance).shape == x.shape


def test_explain():
    found = libnorm.explain(np.full((2, 64), 0.005, np.float32), epsilon=1e-5)
    assert found["rows"] == 2 and abs(found["ratio"] - 0.84515) < 1e-5
    assert found["warnings"] == ["epsilon dominates"] and "epsilon" in found["report"]
    assert libnorm.explain(X, SCALE, row=3)["rows"] == 1


def test_explain_adds_one_to_scale():
    small = np.full(SHAPE[-1:], 0.25, np.float32)
    found = libnorm.explain(X, small, scale_plus_one=True)
    assert found["scale_mean"] == 1.25 and found["rms_out"] == pytest.approx(libnorm.explain(X, 1 + small)["rms_out"])
    refused(ValueError, ["scale_plus_one needs scale"], libnorm.explain, X, scale_plus_one=True)


def test_machine_epsilon():
    for dtype in (np.float32, np.float64, np.float16):
        for name in (dtype, np.dtype(dtype), np.dtype(dtype).name):
            assert libnorm.machine_epsilon(name) == np.finfo(dtype).eps
    for dtype in (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2):
        assert libnorm.machine_epsilon(dtype) == float(ml_dtypes.finfo(dtype).eps)
    refused(ValueError, ["dtype is", "int8", "pass one of float32, "], libnorm.machine_epsilon, np.int8)


def test_other_libraries():
    dst, total = libnorm.add_rms_norm(Array(X.copy()), Array(Y.copy()))
    assert type(dst) is type(total) is Array
    assert type(libnorm.group_norm(Array(X.copy()), 5)) is Array


def test_errors():
    refused(TypeError, ["rms_norm", "no keyword gates", "gate_input"], libnorm.rms_norm, X, gates=G)
    words = ["gate and gate_input"]
    refused(ValueError, words, libnorm.rms_norm, X, gate=G, gate_input=G)
    refused(ValueError, ["gating", "silu", "sigmoid"], libnorm.rms_norm, X, gate=G, gating="gelu")
    refused(ValueError, ["gate", "(5, 40)", "(3, 5, 40)", "src"], libnorm.rms_norm, X, gate=G[0])
    refused(ValueError, ["alpha is given, but no gate: pass the array as gate"], libnorm.rms_norm, X, alpha=2.0)
    words = ["alpha is given, but the sigmoid of a gate has none: leave it out"]
    refused(ValueError, words, libnorm.rms_norm, X, gate=G, gating="sigmoid", alpha=2.0)
    refused(ValueError, ["alpha is 1e40, more than float32 can hold"], libnorm.rms_norm, X, gate=G, alpha=1e40)
    refused(ValueError, ["alpha"], libnorm.rms_norm, X, gate=G, alpha=float("nan"))
    refused(TypeError, ["gate", "float64"], libnorm.rms_norm, X, gate=f64(G))
    refused(ValueError, ["partial is 0"], libnorm.rms_norm, X, partial=0)
    refused(ValueError, ["partial is 41", "40"], libnorm.rms_norm, X, partial=41)
    refused(ValueError, ["partial is 4, but only RMS normalization has it"], libnorm.layer_norm, X, partial=4)
    refused(ValueError, ["residual", "(3, 5)", "src"], libnorm.add_rms_norm, X, X[..., 0])
    words = ["out must be a tuple (dst, sum)"]
    refused(TypeError, words, libnorm.add_rms_norm, X, Y, out=np.empty_like(X))
    refused(TypeError, ["out", "tuple"], libnorm.add_rms_norm, X, Y, return_sum=False, out=(None, None))
    words = ["add_rms_norm_training() has no keyword return_sum"]
    refused(TypeError, words, libnorm.add_rms_norm_training, X, Y, return_sum=False)
    words = ["out[1]", "overlaps src"]
    both = X.copy()
    refused(ValueError, words, libnorm.add_rms_norm, both, Y, out=(None, both))
    words = ["diff_sum", "bfloat16", "src", "float32"]
    narrow = G.astype(ml_dtypes.bfloat16)
    variance = np.ones(SHAPE[:-1], np.float32)
    refused(TypeError, words, libnorm.rms_norm_backward, DY, X, variance, diff_sum=narrow)
    out = np.empty(SHAPE, np.int8)
    words = ["group is 7", "divisor of 40"]
    refused(ValueError, words, libnorm.rms_norm_quantized, X, out=out, group=7)
    words = ["out", "float32", "int8"]
    refused(TypeError, words, libnorm.rms_norm_quantized, X, out=np.empty_like(X))
    refused(ValueError, ["3 groups", "8 channels"], libnorm.group_norm, data((2, 8), "float32"), 3)
    refused(ValueError, ["src", "(40,)", "2 to 5"], libnorm.group_norm, SCALE, 2)
    words = ["scale", "(3,)", "(5,)", "channel"]
    refused(ValueError, words, libnorm.group_norm, X, 5, np.ones(3, np.float32))
    refused(ValueError, ["variance is missing"], libnorm.group_norm, X, 5, mean=np.zeros((3, 5), np.float32))
    refused(ValueError, ["row", "15", "None, for all rows"], libnorm.explain, X, row=15)
    refused(ValueError, ["scale_plus_one needs scale"], libnorm.rms_norm, X, scale_plus_one=True)


@pytest.mark.torch
@pytest.mark.skipif(not importlib.util.find_spec("torch"), reason="PyTorch is not installed")
def test_against_autograd():
    import torch

    x, residual, gate, dy, dsum = (torch.from_numpy(a.copy()) for a in (X, Y, G, DY, DY[::-1].copy()))
    scale = torch.from_numpy(SCALE.copy())
    wide = [t.double().requires_grad_() for t in (x, residual, gate, scale)]
    total = wide[0] + wide[1]
    r = torch.rsqrt((total * total).mean(-1, keepdim=True) + EPSILON)
    result = total * r * (1 + wide[3]) * wide[2] * torch.sigmoid(1.702 * wide[2])
    expected = torch.autograd.grad([result, total], wide, [dy.double(), dsum.double()])
    options = {"gate": gate, "alpha": 1.702, "scale_plus_one": True}
    dst, own, variance = libnorm.add_rms_norm_training(x, residual, scale, epsilon=EPSILON, **options)
    got = libnorm.rms_norm_backward(dy, own, variance, scale, epsilon=EPSILON, diff_sum=dsum, **options)
    assert torch.allclose(dst.double(), result, rtol=1e-5, atol=1e-5)
    for ours, theirs in [(got[0], expected[0]), (got[1], expected[3]), (got[3], expected[2])]:
        assert torch.allclose(ours.double(), theirs, rtol=1e-4, atol=1e-4)
