"""Arrays of other libraries: inputs, results, and errors."""

import numpy as np
import pytest
from reference import data

import libnorm
import minimal

X = data((3, 4, 16), "float32")
EXPECTED = libnorm.layer_norm(X)


@pytest.mark.parametrize("legacy", [False, True])
def test_an_array_of_an_unknown_library(legacy):
    x = minimal.Array(X.copy(), legacy=legacy)
    y = libnorm.layer_norm(x)
    assert type(y) is minimal.Array
    assert y.array.tobytes() == EXPECTED.tobytes() and y.array.shape == X.shape
    assert y.array.ctypes.data % 64 == 0
    dst, mean, variance = libnorm.layer_norm_training(x)
    assert type(mean) is type(variance) is minimal.Array and mean.array.shape == (3, 4)
    gradients = libnorm.layer_norm_backward(x, x, mean, variance)
    expected = libnorm.layer_norm_backward(X, X, mean.array, variance.array)
    assert type(gradients[0]) is minimal.Array
    assert gradients[0].array.tobytes() == expected[0].tobytes()
    assert dst.array.tobytes() == EXPECTED.tobytes()


def test_nothing_is_copied():
    x, out = minimal.Array(X.copy()), minimal.Array(np.zeros_like(X))
    assert libnorm.layer_norm(x, out=out) is out
    assert out.array.tobytes() == EXPECTED.tobytes()
    # Arrays of several libraries in one call.
    assert libnorm.layer_norm(X, out=out) is out
    assert type(libnorm.layer_norm(X, minimal.Array(np.ones(16, np.float32)))) is np.ndarray
    view = minimal.Array(out.array[:, ::2])
    assert libnorm.rms_norm(minimal.Array(X[:, 1::2]), out=view) is view
    assert out.array[:, ::2].tobytes() == libnorm.rms_norm(X[:, 1::2]).tobytes()


def test_results_outlive_everything_else():
    y = libnorm.layer_norm(minimal.Array(X.copy()))
    for _ in range(20):
        libnorm.layer_norm(minimal.Array(X + 1))
    assert y.array.tobytes() == EXPECTED.tobytes()
    y.array += 1


@pytest.mark.parametrize(("device", "words"), [((2, 0), "a CUDA device"), ((8, 0), "a Metal"), ((17, 1), "not the CPU")])
def test_other_devices(device, words):
    x = minimal.Array(X.copy(), device=device)
    with pytest.raises(ValueError, match=rf"src is on {words}.*src\.cpu\(\)" if "not" not in words else words):
        libnorm.layer_norm(x)
    assert x.lent == 0


def test_what_is_not_lent():
    x = minimal.Array(X.copy(), refuses="the memory is elsewhere\nframe 1")
    words = r"src does not give access to its memory through DLPack \(the memory is elsewhere\): pass a dense tensor"
    with pytest.raises(ValueError, match=words):
        libnorm.layer_norm(x)


def test_read_only_memory():
    fixed = X.copy()
    fixed.flags.writeable = False
    assert libnorm.layer_norm(minimal.Array(fixed)).array.tobytes() == EXPECTED.tobytes()
    with pytest.raises(ValueError, match="out is read-only"):
        libnorm.layer_norm(X, out=minimal.Array(fixed))
    with pytest.raises(ValueError, match="out has no __setitem__"):
        libnorm.layer_norm(X, out=minimal.Immutable(X.copy()))


@pytest.mark.parametrize("dtype", ["int16", "complex64", "bool", "uint64"])
def test_element_types(dtype):
    with pytest.raises(TypeError, match=rf"src has elements of \w+: convert them to float32"):
        libnorm.layer_norm(minimal.Array(X.astype(dtype)))


def test_gradients_are_not_lost():
    x = minimal.Array(X.copy())
    x.requires_grad = True
    with pytest.raises(ValueError, match=r"src requires a gradient.*src\.detach\(\)"):
        libnorm.layer_norm(x)


def test_negated_views():
    x = minimal.Array(X.copy())
    x.is_neg = lambda: True
    with pytest.raises(ValueError, match=r"src is a view with the opposite sign.*resolve_neg"):
        libnorm.layer_norm(x)


def test_a_library_without_from_dlpack():
    x = minimal.Homeless(X.copy())
    with pytest.raises(TypeError, match="Homeless has no function from_dlpack: pass arrays for the results as out"):
        libnorm.layer_norm(x)
    out = np.empty_like(X)
    assert libnorm.layer_norm(x, out=out).tobytes() == EXPECTED.tobytes()


def test_memory_that_cannot_be_had():
    # A result of 2**60 bytes, from an array with a single row in memory.
    row = np.lib.stride_tricks.as_strided(X, (2**56, 4), (0, 4))
    with pytest.raises(MemoryError, match="no memory for a result"):
        libnorm.layer_norm(minimal.Array(row))


def test_memory_is_given_back():
    x = minimal.Array(X.copy())
    libnorm.layer_norm(x)
    with pytest.raises(ValueError):
        libnorm.layer_norm(x, x)
    # The library has dropped all references to the array.
    assert x.holders() == 1
