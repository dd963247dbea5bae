"""Softmax and its logarithm, forward and backward, against the formulas in f64; errors; PyTorch if installed."""

import importlib.util

import ml_dtypes
import numpy as np
import pytest
from minimal import Array
from reference import close, data
from test_errors import refused

import libnorm

SHAPES = [(7,), (3, 5), (2, 3, 4, 65), (33, 768), (1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 17)]
FORWARD = {False: libnorm.softmax, True: libnorm.log_softmax}
BACKWARD = {False: libnorm.softmax_backward, True: libnorm.log_softmax_backward}
X = data((3, 5, 8), "float32")


def forward(x, axis, log):
    """The result in f64, and the magnitude of which 2**-22 is allowed besides rounding: rfcs/0006-softmax."""
    x = np.asarray(x, dtype=np.float64)
    x = x - x.max(axis, keepdims=True)
    total = np.exp(x).sum(axis, keepdims=True)
    if log:
        result = x - np.log(total)
        return result, 1 + np.abs(result) / 2
    result = np.exp(x) / total
    return result, result * (1 + np.abs(x) / 2)


def backward(dy, y, axis, log):
    """The gradient in f64, and the magnitude of its terms."""
    dy, y = np.asarray(dy, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if log:
        sums = [np.exp(y) * part.sum(axis, keepdims=True) for part in (dy, np.abs(dy))]
        return dy - sums[0], np.abs(dy) + sums[1]
    sums = [(part * y).sum(axis, keepdims=True) for part in (dy, np.abs(dy))]
    return y * (dy - sums[0]), y * (np.abs(dy) + sums[1])


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float64"])
def test_formula(log, shape, dtype):
    x, dy = data(shape, dtype), data(shape, dtype, 1)
    for axis in {0, len(shape) // 2, -1}:
        y = FORWARD[log](x, axis)
        assert type(y) is np.ndarray and y.dtype == x.dtype and y.shape == shape
        expected, terms = forward(x, axis, log)
        close(y, expected, terms)
        diff_src = BACKWARD[log](dy, y, axis)
        assert diff_src.dtype == y.dtype and diff_src.shape == shape
        expected, terms = backward(dy, y, axis, log)
        close(diff_src, expected, terms)


@pytest.mark.parametrize("log", [False, True])
def test_axes_and_strides_change_no_bit(log):
    expected = FORWARD[log](X)
    assert FORWARD[log](X, 2).tobytes() == expected.tobytes()
    turned = np.moveaxis(X, 2, 0)
    assert np.moveaxis(FORWARD[log](turned, 0), 0, 2).tobytes() == expected.tobytes()
    wide = np.zeros((3, 5, 24), np.float32)
    wide[..., ::3] = X
    assert FORWARD[log](wide[..., ::3]).tobytes() == expected.tobytes()
    gradient = BACKWARD[log](X, expected)
    assert BACKWARD[log](wide[..., ::3], expected, 2).tobytes() == gradient.tobytes()


@pytest.mark.parametrize("log", [False, True])
def test_out_and_in_place(log):
    y = X.copy()
    assert FORWARD[log](y, out=y) is y
    assert y.tobytes() == FORWARD[log](X).tobytes()
    narrow = np.empty(X.shape, ml_dtypes.bfloat16)
    assert FORWARD[log](X, out=narrow) is narrow
    assert narrow.tobytes() == y.astype(ml_dtypes.bfloat16).tobytes()
    dy = X.copy()
    assert BACKWARD[log](dy, y, out=dy) is dy
    assert dy.tobytes() == BACKWARD[log](X, y).tobytes()


def test_integers():
    x = np.arange(12, dtype=np.int8).reshape(3, 4)
    y = libnorm.softmax(x, out=np.empty((3, 4), np.float32))
    assert y.tobytes() == libnorm.softmax(x.astype(np.float32)).tobytes()
    words = ["src", "int8", "whole numbers", "pass out"]
    refused(TypeError, words, libnorm.softmax, x)


def test_nothing_to_do():
    for shape, axis in [((0, 4), 1), ((4, 0), 1), ((4, 0), 0)]:
        x = np.empty(shape, np.float32)
        assert libnorm.softmax(x, axis).shape == libnorm.softmax_backward(x, x, axis).shape == shape


def test_dlpack():
    y = libnorm.softmax(Array(X.copy()))
    assert type(y) is Array and y.array.tobytes() == libnorm.softmax(X).tobytes()


def test_last_implementation():
    libnorm.softmax(X)
    assert libnorm.last_implementation().startswith("simd:")


def test_errors():
    for axis in (3, -4):
        words = [f"axis is {axis}", "src", "(3, 5, 8)", "pass -3 to 2"]
        refused(ValueError, words, libnorm.softmax, X, axis)
    refused(ValueError, ["src", "no dimensions"], libnorm.softmax, np.array(1, np.float32))
    words = ["src", "int64", "convert them to float32"]
    refused(TypeError, words, libnorm.log_softmax, X.astype(np.int64))
    refused(TypeError, ["src", "list", "pass an array"], libnorm.softmax, [1.0, 2.0])
    words = ["out", "(3, 5)", "(3, 5, 8)", "src"]
    refused(ValueError, words, libnorm.softmax, X, out=np.empty((3, 5), np.float32))
    refused(TypeError, ["out", "int64"], libnorm.softmax, X, out=np.empty(X.shape, np.int64))
    words = ["diff_dst", "(5, 8)", "(3, 5, 8)", "dst"]
    refused(ValueError, words, libnorm.softmax_backward, X[0], X)
    words = ["dst", "int8", "convert them to float32, bfloat16, float16 or float64"]
    refused(TypeError, words, libnorm.softmax_backward, X, X.astype(np.int8))
    both = np.zeros((4, 8), np.float32)
    words = ["out", "overlaps src", "src itself"]
    refused(ValueError, words, libnorm.softmax, both[:3], out=both[1:])
    words = ["out", "overlaps dst"]
    refused(ValueError, words, libnorm.softmax_backward, both.copy(), both, out=both)


@pytest.mark.torch
@pytest.mark.skipif(not importlib.util.find_spec("torch"), reason="PyTorch is not installed")
@pytest.mark.parametrize("log", [False, True])
def test_against_autograd(log):
    import torch

    x, dy = torch.from_numpy(X.copy()), torch.from_numpy(data(X.shape, "float32", 1))
    theirs = x.double().requires_grad_()
    function = torch.nn.functional.log_softmax if log else torch.nn.functional.softmax
    for axis in range(3):
        expected = function(theirs, axis)
        (gradient,) = torch.autograd.grad(expected, theirs, dy.double())
        y = FORWARD[log](x, axis)
        diff_src = BACKWARD[log](dy, y, axis)
        assert type(y) is torch.Tensor and type(diff_src) is torch.Tensor
        assert torch.allclose(y.double(), expected, rtol=1e-6, atol=1e-6)
        assert torch.allclose(diff_src.double(), gradient, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_logarithms_of_sums(log, axis):
    y, lse = FORWARD[log](X, axis, return_lse=True)
    assert (y == FORWARD[log](X, axis)).all()
    expected = np.log(np.exp(X.astype(np.float64)).sum(axis, keepdims=True))
    assert lse.dtype == np.float32 and lse.shape == expected.shape
    assert abs(lse - expected).max() < 2e-6
    out = np.empty_like(X)
    assert FORWARD[log](X, axis, return_lse=True, out=out)[0] is out and (out == y).all()
    of_other, other = FORWARD[log](Array(X.copy()), axis, return_lse=True)
    assert (np.from_dlpack(other) == lse).all() and (np.from_dlpack(of_other) == y).all()
    hidden = np.full((2, 3), -np.inf, dtype=np.float32)
    assert (libnorm.softmax(hidden, return_lse=True)[1] == -np.inf).all()
