"""Rotary position embedding against the formula in f64."""

import numpy as np
import pytest
from minimal import Array
from reference import close, data
from test_errors import refused

import libnorm

TOKENS, HEADS, HEAD = 7, 3, 16
X = data((TOKENS, HEADS, HEAD), "float32")
POSITIONS = np.array([0, 1, 5, 3, 131071, 2, 1 << 20], dtype=np.int64).reshape(TOKENS, 1)
FREQUENCIES = np.array(libnorm.rope_frequencies(HEAD)[0])


def pairs(pairing, rotary_dims):
    """The first and second elements of the pairs."""
    i = np.arange(rotary_dims // 2)
    if pairing == "interleaved":
        return 2 * i, 2 * i + 1
    return i, i + (HEAD if pairing == "half_split_of_head" else rotary_dims) // 2


def rotated(x, positions, frequencies, pairing, sign=1):
    """The result in f64."""
    x = np.asarray(x, dtype=np.float64)
    angle = sign * positions.astype(np.float64)[..., None] * frequencies
    first, second = pairs(pairing, 2 * len(frequencies))
    y, (a, b) = x.copy(), (x[..., first], x[..., second])
    y[..., first] = a * np.cos(angle) - b * np.sin(angle)
    y[..., second] = a * np.sin(angle) + b * np.cos(angle)
    return y


@pytest.mark.parametrize("pairing", ["interleaved", "half_split", "half_split_of_head"])
@pytest.mark.parametrize("rotary_dims", [HEAD, 6])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_formula(pairing, rotary_dims, dtype):
    x, frequencies = X.astype(data((1,), dtype).dtype), np.array(libnorm.rope_frequencies(rotary_dims)[0])
    options = {"pairing": pairing, "rotary_dims": rotary_dims}
    y = libnorm.rope(x, POSITIONS, frequencies, **options)
    assert y.dtype == x.dtype
    largest = np.abs(x.astype(np.float64)).max()
    close(y, rotated(x, POSITIONS, frequencies, pairing), np.full(x.shape, largest))
    back = libnorm.rope_backward(y, POSITIONS, frequencies, **options)
    close(back, rotated(y, POSITIONS, frequencies, pairing, -1), np.full(x.shape, largest))


def test_tables_in_place_and_other_libraries():
    expected = libnorm.rope(X, POSITIONS % 8, FREQUENCIES, pairing="half_split")
    angles = np.arange(8)[:, None] * FREQUENCIES
    tables = {"cos": np.cos(angles).astype(np.float32), "sin": np.sin(angles).astype(np.float32)}
    y = X.copy()
    assert libnorm.rope(y, (POSITIONS % 8).astype(np.int32), pairing="half_split", out=y, **tables) is y
    assert np.allclose(y, expected, rtol=1e-6, atol=1e-6)
    other = libnorm.rope(Array(X.copy()), POSITIONS % 8, FREQUENCIES, pairing="half_split")
    assert type(other) is Array and other.array.tobytes() == expected.tobytes()


def test_frequencies():
    given = libnorm.rope_frequencies(HEAD)[0]
    expected = libnorm.rope(X, POSITIONS, FREQUENCIES, pairing="half_split")
    for frequencies in (given, tuple(given)):
        assert (libnorm.rope(X, POSITIONS, frequencies, pairing="half_split") == expected).all()
    words = ["frequencies", "rope_frequencies", "magnitude"]
    refused(TypeError, words, libnorm.rope, X, POSITIONS, (given, 1.0), pairing="half_split")
    refused(ValueError, ["frequencies", "pair"], libnorm.rope, X, POSITIONS, given[1:], pairing="half_split")
    values, magnitude = libnorm.rope_frequencies(4, 100.0)
    assert values == [1.0, 0.1] and magnitude == 1.0
    assert libnorm.rope_frequencies(4, 100.0, scaling="linear", parameters=[2.0])[0] == [0.5, 0.05]


def test_errors():
    refused(ValueError, ["pairing", "neox", "half_split"], libnorm.rope, X, POSITIONS, FREQUENCIES, pairing="neox")
    words = ["positions", "(7,)", "(7, 3, 16)"]
    refused(ValueError, words, libnorm.rope, X, POSITIONS[:, 0], FREQUENCIES, pairing="interleaved")
    refused(ValueError, ["angles", "frequencies", "cos"], libnorm.rope, X, POSITIONS, pairing="interleaved")
    words = ["frequencies", "(8,)", "(3,)"]
    options = {"pairing": "interleaved", "rotary_dims": 6}
    refused(ValueError, words, libnorm.rope, X, POSITIONS, FREQUENCIES, **options)
    words = ["positions", "float32", "int32"]
    refused(TypeError, words, libnorm.rope, X, POSITIONS.astype(np.float32), FREQUENCIES, pairing="interleaved")
    out = np.empty_like(X)
    words = ["position"]
    refused(ValueError, words, libnorm.rope, X, -POSITIONS, FREQUENCIES, pairing="interleaved", out=out)
    tables = np.ones((8, 4), np.float32)
    words = ["both given"]
    given = {"pairing": "interleaved", "cos": tables, "sin": tables}
    refused(ValueError, words, libnorm.rope, X, POSITIONS, FREQUENCIES, **given)
    for scaling, words in [
        ("linear", ["parameters has the length 0", "[factor]"]),
        ("none", ["parameters has the length 1", "pass []"]),
        ("yarn", ["parameters has the length 0", "[factor, trained length], optionally followed by beta_fast"]),
        ("foo", ["scaling", "foo", "none, linear, ntk, dynamic_ntk, yarn, llama3, longrope"]),
    ]:
        parameters = [] if scaling != "none" else [2.0]
        refused(ValueError, words, libnorm.rope_frequencies, 4, scaling=scaling, parameters=parameters)
    for scaling, parameters, words in [
        ("yarn", [4], ["the length 1", "[factor, trained length]", "magnitude"]),
        ("yarn", [4, 0], ["parameters[1], trained length, is 0"]),
        ("yarn", [4, 64, 32, 1, -1], ["parameters[4], mscale, is -1"]),
        ("llama3", [8], ["[factor, low_freq_factor, high_freq_factor, trained length]"]),
        ("llama3", [0, 1, 4, 8192], ["parameters[0], factor, is 0"]),
        ("llama3", [8, 4, 1, 8192], ["low_freq_factor 4", "high_freq_factor 1"]),
        ("longrope", [8, 64], ["[factor, trained length, and 2 divisors, one for each pair]"]),
        ("longrope", [8, 64, 1, 0], ["parameters[3], a divisor, is 0"]),
    ]:
        refused(ValueError, words, libnorm.rope_frequencies, 4, scaling=scaling, parameters=parameters)
    assert libnorm.rope_frequencies(4, scaling="yarn", parameters=[4, 64, 32, 1, 0, 0])[1] > 0
    words = ["parameters is a dict", "list of numbers"]
    refused(TypeError, words, libnorm.rope_frequencies, 4, scaling="linear", parameters={"factor": 2.0})
    with pytest.raises(ValueError, match="rotary_dims"):
        libnorm.rope_frequencies(5)
