"""JAX: immutable arrays, imported and exported through DLPack capsules."""

import numpy as np
import pytest
from reference import data

import libnorm

jax = pytest.importorskip("jax")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_arrays_in_and_out(dtype):
    x, scale = data((5, 48), dtype), data((48,), dtype, 1)
    ours = jax.numpy.asarray(x), jax.numpy.asarray(scale)
    expected = libnorm.layer_norm_training(x, scale)
    actual = libnorm.layer_norm_training(*ours)
    assert all(isinstance(array, jax.Array) for array in actual)
    assert actual[0].dtype == x.dtype
    assert all(np.asarray(a).tobytes() == b.tobytes() for a, b in zip(actual, expected))


def test_arrays_are_not_written():
    x = jax.numpy.ones((2, 8))
    with pytest.raises(ValueError, match="out is an array of JAX, which nothing may write"):
        libnorm.layer_norm(x, out=x)


def test_no_tracing():
    with pytest.raises(ValueError, match="src does not give access to its memory through DLPack"):
        jax.jit(libnorm.layer_norm)(jax.numpy.ones((2, 8)))
