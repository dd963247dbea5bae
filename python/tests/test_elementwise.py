"""Element-wise functions and gated activations against the formulas in f64; errors; PyTorch if installed."""

import importlib.util

import numpy as np
import pytest
from minimal import Array
from reference import data
from test_errors import refused

import libnorm

SHAPES = [(7,), (3, 6), (2, 3, 4, 66)]
X = data((3, 6), "float32")


def logistic(x):
    return 1 / (1 + np.exp(-x))


# Value and derivative.
FUNCTIONS = {
    "relu": (lambda x, a, b: np.where(x > 0, x, a * x), lambda x, a, b: np.where(x > 0, 1, a)),
    "linear": (lambda x, a, b: a * x + b, lambda x, a, b: a + 0 * x),
    "swish": (
        lambda x, a, b: x * logistic(a * x),
        lambda x, a, b: logistic(a * x) * (1 + a * x * (1 - logistic(a * x))),
    ),
    "exp": (lambda x, a, b: np.exp(x), lambda x, a, b: np.exp(x)),
    "tanh": (lambda x, a, b: np.tanh(x), lambda x, a, b: 1 - np.tanh(x) ** 2),
    "logistic": (lambda x, a, b: logistic(x), lambda x, a, b: logistic(x) * (1 - logistic(x))),
}
TOLERANCE = {"float32": 2e-6, "bfloat16": 2**-8, "float16": 2**-10, "float64": 2e-15}


def near(actual, expected, dtype):
    assert actual.dtype.name == dtype and actual.shape == expected.shape
    error = np.abs(np.asarray(actual, dtype=np.float64) - expected)
    assert np.all(error <= TOLERANCE[dtype] * (1 + np.abs(expected))), error.max()


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_functions_of_one_array(name, dtype):
    value, slope = FUNCTIONS[name]
    for shape in SHAPES:
        x, dy = data(shape, dtype), data(shape, dtype, 1)
        wide, gradient = np.asarray(x, np.float64), np.asarray(dy, np.float64)
        near(libnorm.eltwise(x, name, 0.5, 0.25), value(wide, 0.5, 0.25), dtype)
        near(libnorm.eltwise_backward(dy, x, name, 0.5, 0.25), gradient * slope(wide, 0.5, 0.25), dtype)


def test_results_go_where_they_should():
    expected = libnorm.eltwise(X, "swish", 1.0)
    strided = np.zeros((6, 6), np.float32)[::2]
    assert libnorm.eltwise(X, "swish", 1.0, out=strided) is strided and np.array_equal(strided, expected)
    x = X.copy()
    assert libnorm.eltwise(x, "swish", 1.0, out=x) is x and np.array_equal(x, expected)
    y = libnorm.eltwise(Array(X.copy()), "swish", 1.0)
    assert type(y) is Array and y.array.tobytes() == expected.tobytes()
    whole = libnorm.eltwise(X, "linear", 10.0, out=np.empty(X.shape, np.int8))
    assert np.array_equal(whole, np.clip(np.rint(10 * X), -128, 127))


@pytest.mark.parametrize(
    ("name", "function"),
    [("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("max", np.maximum), ("lt", np.less)],
)
def test_functions_of_two_arrays(name, function):
    for shape in [(3, 6), (1, 6), (3, 1), (1, 1)]:
        other = data(shape, "float32", 2)
        result = libnorm.binary(X, other, name)
        assert result.dtype == np.float32 and np.array_equal(result, function(X, other).astype(np.float32))
        assert np.array_equal(libnorm.binary(other, X, name), function(other, X).astype(np.float32))
    x = X.copy()
    assert libnorm.binary(x, X, name, out=x) is x and np.array_equal(x, function(X, X).astype(np.float32))


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint8])
@pytest.mark.parametrize("wrap", [np.asarray, Array])
def test_selection(dtype, wrap):
    other = data((1, 6), "float32", 2)
    for shape in [(3, 6), (1, 6), (3, 1)]:
        condition = np.random.default_rng(1).integers(0, 2, shape).astype(dtype)
        if dtype == np.uint8:
            condition *= 200
        result = libnorm.binary(X, other, "select", condition=wrap(condition))
        assert np.array_equal(result, np.where(condition, X, other))
    x = X.copy()
    assert libnorm.binary(other, x, "select", condition=condition, out=x) is x
    assert np.array_equal(x, np.where(condition, other, X))


@pytest.mark.parametrize("name", ["relu", "elu", "tanh", "logistic", "exp", "sqrt"])
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_gradients_from_the_result(name, dtype):
    x = np.abs(data((3, 6), dtype)) if name == "sqrt" else data((3, 6), dtype)
    dy, wide = data((3, 6), dtype, 1), np.asarray(x, np.float64)
    slopes = {name: slope for name, (_, slope) in FUNCTIONS.items()}
    slopes["elu"] = lambda x, a, b: np.where(x > 0, 1, a * np.exp(x))
    slopes["sqrt"] = lambda x, a, b: 0.5 / np.sqrt(x)
    y = libnorm.eltwise(x, name, 0.5, out=x.copy())
    got = libnorm.eltwise_backward(dy, y, name, 0.5, from_dst=True)
    # The result is rounded, and so is a gradient that is computed from it.
    expected = np.asarray(dy, np.float64) * slopes[name](wide, 0.5, 0)
    assert got.dtype == x.dtype
    assert np.all(np.abs(np.asarray(got, np.float64) - expected) <= 8 * TOLERANCE[dtype] * (1 + np.abs(expected)))
    assert libnorm.eltwise_backward(dy, y, name, 0.5, from_dst=True, out=y) is y and y.tobytes() == got.tobytes()


def pack(gate, up, packing):
    if packing == "interleaved":
        return np.stack([gate, up], -1).reshape(*gate.shape[:-1], -1)
    return np.concatenate([gate, up] if packing == "gate_first" else [up, gate], -1)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("name", ["swish", "relu", "logistic", "linear"])
def test_gated(name, dtype):
    value, slope = FUNCTIONS[name]
    for shape, limit, shift in [((3, 6), None, 0.0), ((2, 3, 70), 0.5, 1.0)]:
        gate, up, dy = (data(shape, dtype, seed) for seed in range(3))
        wide_gate, wide_up, wide_dy = (np.asarray(x, np.float64) for x in (gate, up, dy))
        bound = np.inf if limit is None else limit
        g, u = np.minimum(wide_gate, bound), np.clip(wide_up, -bound, bound) + shift
        options = {"activation": name, "alpha": 1.5, "limit": limit, "shift": shift}
        expected = value(g, 1.5, 0) * u
        diff_gate = np.where(wide_gate > bound, 0, wide_dy * u * slope(g, 1.5, 0))
        diff_up = np.where(np.abs(wide_up) > bound, 0, wide_dy * value(g, 1.5, 0))
        near(libnorm.gated(gate, up, **options), expected, dtype)
        for actual, wanted in zip(libnorm.gated_backward(dy, gate, up, **options), (diff_gate, diff_up)):
            near(actual, wanted, dtype)
        for packing in ("gate_first", "up_first", "interleaved"):
            src = pack(gate, up, packing)
            near(libnorm.gated(src, packing=packing, **options), expected, dtype)
            wanted = pack(diff_gate, diff_up, packing)
            near(libnorm.gated_backward(dy, src, packing=packing, **options), wanted, dtype)


def test_gradients_of_gated_go_where_they_should():
    gate, up, dy = (data((3, 6), "float32", seed) for seed in range(3))
    dst, (diff_gate, diff_up) = libnorm.gated(gate, up), libnorm.gated_backward(dy, gate, up)
    results = libnorm.gated_backward(dy, gate, up, return_dst=True)
    assert [x.tobytes() for x in results] == [x.tobytes() for x in (diff_gate, diff_up, dst)]
    own = [gate.copy(), up.copy(), dy.copy()]
    results = libnorm.gated_backward(own[2], *own[:2], return_dst=True, out=tuple(own))
    assert all(result is given for result, given in zip(results, own))
    assert [x.tobytes() for x in results] == [x.tobytes() for x in (diff_gate, diff_up, dst)]
    out = (None, np.empty((3, 6), np.float64).astype(np.float16))
    assert libnorm.gated_backward(dy, gate, up, out=out)[1] is out[1]
    src = pack(gate, up, "gate_first")
    diff_src = libnorm.gated_backward(dy, src, packing="gate_first")
    again, forward = libnorm.gated_backward(dy, src, packing="gate_first", return_dst=True)
    assert again.tobytes() == diff_src.tobytes() and forward.tobytes() == dst.tobytes()
    assert libnorm.gated_backward(dy, src, packing="gate_first", out=src) is src
    assert src.tobytes() == diff_src.tobytes()


def test_errors():
    refused(ValueError, ["condition is missing: select needs"], libnorm.binary, X, X, "select")
    ones = np.ones(X.shape, bool)
    words = ['condition is given, but function is "add": pass function="select"']
    refused(ValueError, words, libnorm.binary, X, X, "add", condition=ones)
    words = ["condition has the shape (2, 6), but the result has (3, 6)"]
    refused(ValueError, words, libnorm.binary, X, X, "select", condition=ones[:2])
    words = ["condition has elements of float32: convert them to bool, int8 or uint8"]
    refused(TypeError, words, libnorm.binary, X, X, "select", condition=X)
    words = ["from_dst is True, but the gradient of swish is not computed from the result", "relu"]
    refused(ValueError, words, libnorm.eltwise_backward, X, X, "swish", from_dst=True)
    refused(ValueError, ["alpha"], libnorm.eltwise_backward, X, X, "relu", -1.0, from_dst=True)
    for options, what in [
        ({"up": X}, "(diff_gate, diff_up)"),
        ({"up": X, "return_dst": True}, "(diff_gate, diff_up, dst)"),
        ({"packing": "gate_first", "return_dst": True}, "(diff_src, dst)"),
    ]:
        dy = X if "up" in options else X[:, :3].copy()
        refused(TypeError, ["out must be a tuple " + what], libnorm.gated_backward, dy, X, out=X.copy(), **options)
    words = ["out[1] has the shape (6,), but must have (3, 6): it is that of src"]
    refused(ValueError, words, libnorm.gated_backward, X, X, X, out=(None, X[0].copy()))
    both = X.copy()
    refused(ValueError, ["out[1] overlaps out[0]"], libnorm.gated_backward, X, X, X, out=(both, both))
    refused(ValueError, ["function", "sin", "swish"], libnorm.eltwise, X, "sin")
    refused(ValueError, ["function", "atan2", "add"], libnorm.binary, X, X, "atan2")
    refused(TypeError, ["src", "int64"], libnorm.eltwise, X.astype(np.int64), "exp")
    refused(TypeError, ["src1", "float64"], libnorm.binary, X, X.astype(np.float64), "add")
    refused(ValueError, ["src1", "(2, 6)", "(3, 6)"], libnorm.binary, X, data((2, 6), "float32"), "add")
    refused(ValueError, ["diff_dst", "(6,)"], libnorm.eltwise_backward, X[0], X, "exp")
    refused(ValueError, ["packing", "interleaved"], libnorm.gated, X)
    refused(ValueError, ["packing"], libnorm.gated, X, X, packing="gate_first")
    refused(ValueError, ["packing", "halves"], libnorm.gated, X, packing="halves")
    refused(ValueError, ["activation", "sin"], libnorm.gated, X, X, activation="sin")
    refused(ValueError, ["src", "(3, 5)", "even"], libnorm.gated, X[:, :5].copy(), packing="up_first")
    refused(ValueError, ["limit", "None stands for no limit"], libnorm.gated, X, X, limit=-1.0)
    refused(ValueError, ["up", "(6,)"], libnorm.gated, X, X[0])


@pytest.mark.torch
@pytest.mark.skipif(not importlib.util.find_spec("torch"), reason="PyTorch is not there")
def test_pytorch():
    import torch

    gate, up = torch.randn(5, 64, requires_grad=True), torch.randn(5, 64, requires_grad=True)
    expected = torch.nn.functional.silu(gate) * up
    expected.backward(torch.ones(5, 64))
    actual = libnorm.gated(gate.detach(), up.detach())
    assert torch.allclose(actual, expected, atol=1e-6)
    gradients = libnorm.gated_backward(torch.ones(5, 64), gate.detach(), up.detach())
    assert torch.allclose(gradients[0], gate.grad, atol=1e-6) and torch.allclose(gradients[1], up.grad, atol=1e-6)


@pytest.mark.parametrize(("name", "other"), [("silu", "swish"), ("sigmoid", "logistic")])
def test_names_of_other_libraries(name, other):
    assert (libnorm.eltwise(X, name) == libnorm.eltwise(X, other)).all()
    assert (libnorm.gated(X, X, activation=name) == libnorm.gated(X, X, activation=other)).all()


def test_hints_for_names_of_other_libraries():
    refused(ValueError, ["; gelu is gelu_erf"], libnorm.eltwise, X, "gelu")
    refused(ValueError, ["; gelu is gelu_erf"], libnorm.gated, X, X, activation="gelu")
    refused(ValueError, ["; softplus is soft_relu"], libnorm.eltwise, X, "softplus")


def hardsigmoid(x):
    return np.clip(x / 6 + 0.5, 0, 1)


# With the usual parameters.
USUAL = {
    "relu": lambda x: np.maximum(x, 0),
    "elu": lambda x: np.where(x > 0, x, np.exp(x) - 1),
    "swish": lambda x: x * logistic(x),
    "soft_relu": lambda x: np.log1p(np.exp(x)),
    "linear": lambda x: x,
    "hardsigmoid": hardsigmoid,
    "hardswish": lambda x: x * hardsigmoid(x),
    "square": lambda x: x * x,
}


@pytest.mark.parametrize("name", USUAL)
def test_usual_parameters(name):
    wide, step = X.astype(np.float64), 1e-6
    near(libnorm.eltwise(X, name), USUAL[name](wide), "float32")
    slope = (USUAL[name](wide + step) - USUAL[name](wide - step)) / (2 * step)
    gradient = libnorm.eltwise_backward(np.ones_like(X), X, name)
    assert np.allclose(gradient, slope, rtol=1e-5, atol=1e-5)
    if name == "linear":
        near(libnorm.eltwise(X, name, beta=2.0), wide + 2, "float32")


@pytest.mark.parametrize(("name", "what"), [("clip", "the bounds"), ("pow", "alpha * x**beta")])
def test_parameters_that_must_be_given(name, what):
    words = [f"{name} needs alpha and beta, ", what]
    for given in ({}, {"alpha": 1.0}, {"beta": 2.0}):
        refused(ValueError, words, libnorm.eltwise, X, name, **given)
        refused(ValueError, words, libnorm.eltwise_backward, X, X, name, **given)


def test_functions_without_a_gradient():
    refused(ValueError, ["function: round has no gradient"], libnorm.eltwise_backward, X, X, "round")
