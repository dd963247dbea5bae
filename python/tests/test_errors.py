"""Every error: its type, and a message that names the argument and says what to change. Nothing is written."""

import re

import numpy as np
import pytest
from reference import data

import libnorm

X = data((3, 5, 8), "float32")
COLS = data((8,), "float32", 1)
ROWS = np.ones((3, 5), np.float32)


def refused(kind, words, function, *arguments, **options):
    """Asserts the error, and that no output changed."""
    outs = options.get("out")
    outs = [out for out in (outs if isinstance(outs, tuple) else (outs,)) if isinstance(out, np.ndarray)]
    before = [out.tobytes() for out in outs]
    with pytest.raises(kind) as caught:
        function(*arguments, **options)
    message = str(caught.value)
    # No names of C.
    assert "\n" not in message and not re.search(r"(?<!layer_)(?<!rms_)(?<!group_)norm_", message)
    for word in words:
        assert word in message, message
    assert [out.tobytes() for out in outs] == before


@pytest.mark.parametrize("given", [[1.0, 2.0], 3.0, 3, "x", None, (COLS, COLS)])
def test_what_is_no_array(given):
    kind = "None" if given is None else f"{'an' if isinstance(given, int) else 'a'} {type(given).__name__}"
    words = [f"src is {kind}: pass an array"]
    refused(TypeError, words, libnorm.layer_norm, given)


def test_no_dimensions():
    refused(ValueError, ["src", "at least one"], libnorm.layer_norm, np.array(1, np.float32))


@pytest.mark.parametrize("dtype", ["int32", "int64", "bool", "complex64", "longdouble", "U3", "object"])
def test_element_types_that_do_not_exist_here(dtype):
    dtype = np.dtype(dtype)
    words = ["src", str(dtype), "convert them to float32"]
    refused(TypeError, words, libnorm.layer_norm, np.zeros((2, 4), dtype))


def test_element_types_that_an_argument_cannot_have():
    wide = COLS.astype(np.float64)
    for name in ("scale", "shift"):
        words = [name, "float64", "convert them to float32, bfloat16 or float16"]
        refused(TypeError, words, libnorm.layer_norm, X, **{name: wide})
    narrow = COLS.astype(np.float16)
    words = ["shift", "float16", "scale", "float32", "convert one"]
    refused(TypeError, words, libnorm.layer_norm, X, COLS, narrow)
    integers = X.astype(np.int8)
    for dy, x, name in [(integers, X, "diff_dst"), (X, integers, "src")]:
        words = [name, "int8", "convert them to float32, bfloat16, float16 or float64"]
        refused(TypeError, words, libnorm.rms_norm_backward, dy, x, ROWS)
    words = ["variance", "float64", "convert them to float32"]
    refused(TypeError, words, libnorm.rms_norm, X, variance=ROWS.astype(np.float64))
    words = ["out[1]", "float64", "pass an array of float32, bfloat16 or float16"]
    out = (None, np.empty(8), None)
    refused(TypeError, words, libnorm.rms_norm_backward, X, X, ROWS, COLS, out=out)
    words = ["out[2]", "float16", "out[1]", "float32"]
    out = (None, np.empty_like(COLS), np.empty_like(narrow))
    refused(TypeError, words, libnorm.rms_norm_backward, X, X, ROWS, COLS, COLS, out=out)


def test_byte_order():
    swapped = X.astype(X.dtype.newbyteorder())
    refused(ValueError, ["src", "byte order", "newbyteorder"], libnorm.layer_norm, swapped)


def test_masks():
    masked = np.ma.masked_array(X)
    refused(TypeError, ["src", "mask", "filled"], libnorm.layer_norm, masked)


@pytest.mark.parametrize(
    ("options", "name", "expected"),
    [
        ({"scale": COLS[:5]}, "scale", "(8,)"),
        ({"shift": X}, "shift", "(8,)"),
        ({"mean": COLS, "variance": ROWS}, "mean", "(3, 5)"),
        ({"mean": ROWS, "variance": ROWS[:2]}, "variance", "(3, 5)"),
        ({"out": np.empty((3, 8), np.float32)}, "out", "(3, 5, 8)"),
    ],
)
def test_shapes(options, name, expected):
    words = [name, str(options[name].shape), expected]
    refused(ValueError, words, libnorm.layer_norm, X, **options)


def test_shapes_backward():
    words = ["diff_dst", "(5, 8)", "(3, 5, 8)"]
    refused(ValueError, words, libnorm.rms_norm_backward, X[0], X, ROWS)
    words = ["out[1]", "(7,)", "(8,)"]
    out = (None, np.empty(7, np.float32), None)
    refused(ValueError, words, libnorm.rms_norm_backward, X, X, ROWS, COLS, out=out)


def test_too_many_dimensions():
    deep = np.zeros((1,) * 12 + (4,), np.float32)
    refused(ValueError, ["src", "13 dimensions", "12", "reshape"], libnorm.layer_norm, deep)
    sparse = np.zeros((4,) * 6, np.float32)[:, :3, :2, :3, :2, :]
    words = ["src", "5 dimensions of rows", "4", "contiguous"]
    refused(ValueError, words, libnorm.layer_norm, sparse)


def test_strides():
    for view in (X[::-1], X[..., ::-1]):
        refused(ValueError, ["src", "backwards", "ascontiguousarray"], libnorm.layer_norm, view)
    refused(ValueError, ["out", "backwards"], libnorm.layer_norm, X, out=X.copy()[::-1])
    fields = np.zeros((3, 4), np.dtype([("a", np.float32), ("b", np.int8)]))
    words = ["src", "multiple of the element size", "ascontiguousarray"]
    refused(ValueError, words, libnorm.layer_norm, fields["a"])
    refused(ValueError, ["scale", "contiguous"], libnorm.layer_norm, X, np.ones(16, np.float32)[::2])
    gaps = np.ones((3, 10), np.float32)[:, ::2]
    words = ["mean and variance", "strides", "contiguous"]
    refused(ValueError, words, libnorm.layer_norm, X, mean=ROWS, variance=gaps)


def test_alignment():
    shifted = np.zeros(X.nbytes + 1, np.uint8)[1:].view(np.float32).reshape(X.shape)
    refused(ValueError, ["src", "aligned", "copy"], libnorm.layer_norm, shifted)


def test_outputs_that_cannot_be_written():
    fixed = X.copy()
    fixed.flags.writeable = False
    refused(ValueError, ["out", "read-only", "writable"], libnorm.layer_norm, X, out=fixed)
    repeated = np.lib.stride_tricks.as_strided(X.copy(), X.shape, (0, 32, 4))
    refused(ValueError, ["out", "stride of 0"], libnorm.layer_norm, X, out=repeated)


def test_overlaps():
    rows = np.zeros((4, 20), np.float32)
    words = ["out", "overlaps src", "memory of its own"]
    refused(ValueError, words, libnorm.layer_norm, rows[:, :10], out=rows[:, 5:15])
    refused(ValueError, words, libnorm.layer_norm, rows[:2], out=rows[1:3])
    refused(ValueError, words, libnorm.layer_norm, rows[:, ::2], out=rows[:, :10])
    square = np.zeros((8, 8), np.float32)
    refused(ValueError, words + ["src itself"], libnorm.layer_norm, square, out=square.T)
    refused(ValueError, words, libnorm.layer_norm, square, out=square.view(np.float16)[:, :8])
    columns = rows[0]
    words = ["out", "overlaps scale"]
    refused(ValueError, words, libnorm.layer_norm, rows[1:2], columns, out=rows[:1])
    words = ["out[2]", "overlaps out[1]"]
    out = (None, COLS.copy(), None)
    out = (None, out[1], out[1])
    refused(ValueError, words, libnorm.rms_norm_backward, X, X, ROWS, COLS, COLS, out=out)
    words = ["out[0]", "overlaps src"]
    out = (X, None, None)
    refused(ValueError, words, libnorm.rms_norm_backward, X.copy(), X, ROWS, out=out)


def test_statistics_come_in_pairs():
    refused(ValueError, ["variance is missing", "both"], libnorm.layer_norm, X, mean=ROWS)
    refused(ValueError, ["mean is missing", "both"], libnorm.layer_norm, X, variance=ROWS)


@pytest.mark.parametrize("epsilon", [-1.0, float("nan"), float("inf")])
def test_epsilon(epsilon):
    refused(ValueError, ["epsilon", "finite number of 0 or more"], libnorm.layer_norm, X, None, None, epsilon)


def test_tuples_of_results():
    for out in (X, [None, None, None], (None, None), (None,) * 4):
        words = ["out", "(dst, mean, variance)", "None"]
        refused(TypeError, words, libnorm.layer_norm_training, X, out=out)
    refused(TypeError, ["(dst, variance)"], libnorm.rms_norm_training, X, out=(None,) * 3)
    words = ["(diff_src, diff_scale, diff_shift)"]
    refused(TypeError, words, libnorm.rms_norm_backward, X, X, ROWS, out=X.copy())
    out = (None, COLS.copy(), None)
    refused(ValueError, ["out[1]", "pass scale"], libnorm.rms_norm_backward, X, X, ROWS, out=out)
    refused(
        ValueError, ["out[1]", "data_only"], libnorm.rms_norm_backward, X, X, ROWS, COLS, data_only=True, out=out
    )
    out = (None, None, COLS.copy())
    refused(ValueError, ["out[2]", "pass shift"], libnorm.rms_norm_backward, X, X, ROWS, COLS, out=out)


def test_settings():
    for count in (-1, 256, 2**40):
        refused(ValueError, ["num_threads", str(count), "1 to 255"], libnorm.set_num_threads, count)
    refused(ValueError, ["cpu_isa", "avx5", "pass one of portable, ", ", or None"], libnorm.set_max_cpu_isa, "avx5")


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_integers_need_out(dtype):
    x = np.ones((2, 4, 8), dtype)
    calls = [
        (libnorm.layer_norm, (), "out"),
        (libnorm.rms_norm, (), "out"),
        (libnorm.layer_norm_training, (), "out[0]"),
        (libnorm.rms_norm_training, (), "out[0]"),
        (libnorm.group_norm, (2,), "out"),
        (libnorm.group_norm_training, (2,), "out[0]"),
        (libnorm.softmax, (), "out"),
        (libnorm.eltwise, ("exp",), "out"),
    ]
    for function, arguments, name in calls:
        words = [f"src has elements of {dtype}", "whole numbers", f"pass {name}, such as"]
        refused(TypeError, words, function, x, *arguments)
        out = np.full(x.shape, 7, np.float32)
        result = function(x, *arguments, out=out if name == "out" else (out, *[None] * results(function)))
        assert (result if name == "out" else result[0]) is out and (out != 7).all()


def results(function):
    """How many results a function has besides the first."""
    return 1 if function is libnorm.rms_norm_training else 2


def test_values_of_another_type():
    order = ["epsilon is an ndarray", "scale and shift come before", "no normalized_shape"]
    refused(TypeError, order, libnorm.layer_norm, X, (8,), COLS, COLS)
    refused(TypeError, ["scale is a tuple", "no normalized_shape"], libnorm.rms_norm, X, (8,), COLS)
    refused(TypeError, ["scale is an int", "no normalized_shape"], libnorm.rms_norm, X, 8)
    refused(TypeError, ["epsilon is None: pass a number"], libnorm.rms_norm, X, epsilon=None)
    refused(TypeError, ["axis is a tuple: pass an int"], libnorm.softmax, X, (0, 1))
    refused(ValueError, [f"axis is {2**70}: pass an int"], libnorm.softmax, X, 2**70)
    refused(TypeError, ["groups is a float: pass an int"], libnorm.group_norm, X, 5.0)
    refused(ValueError, ["groups is -1: pass an int"], libnorm.group_norm, X, -1)
    refused(TypeError, ["scale_plus_one is an int: pass True or False"], libnorm.rms_norm, X, COLS, scale_plus_one=1)
    refused(TypeError, ["scale is a bool: pass an array, or leave it out"], libnorm.layer_norm, X, scale=True)
    for call in (
        lambda: libnorm.layer_norm(X, COLS, 1e-6),
        lambda: libnorm.rms_norm(X, 1e-6),
        lambda: libnorm.add_rms_norm(X, X, 1e-6),
        lambda: libnorm.group_norm(X, 5, 1e-6),
        lambda: libnorm.explain(X, 1e-6),
    ):
        refused(TypeError, ["is a float: pass an array, or epsilon=1e-06"], call)


def test_missing_statistics():
    words = ["variance is None: pass the array that rms_norm_training returned"]
    refused(TypeError, words, libnorm.rms_norm_backward, X, X, None)
    for mean, variance, name in [(None, ROWS, "mean"), (ROWS, None, "variance")]:
        words = [f"{name} is None: pass the array that layer_norm_training returned"]
        refused(TypeError, words, libnorm.layer_norm_backward, X, X, mean, variance)
    groups = np.ones((3, 5), np.float32)
    words = ["mean is None: pass the array that group_norm_training returned, or rms=True"]
    refused(ValueError, words, libnorm.group_norm_backward, X, X, 5, None, groups)
    refused(ValueError, ["rms has none: pass None"], libnorm.group_norm_backward, X, X, 5, groups, groups, rms=True)
    words = ["variance is None: pass the array that group_norm_training returned"]
    refused(TypeError, words, libnorm.group_norm_backward, X, X, 5, groups, None)


def test_memory_that_cannot_be_had():
    # A result of 2**62 bytes, from an array with a single row in memory.
    row = np.lib.stride_tricks.as_strided(COLS, (2**57, 8), (0, 4))
    with pytest.raises(MemoryError):
        libnorm.layer_norm(row)
