"""Results on NumPy arrays against the formulas in f64: types, shapes, strides, statistics, out."""

import numpy as np
import pytest
import reference
from reference import TYPES, close, data

import libnorm

EPSILON = 1e-5
SHAPES = [(1, 1), (7,), (3, 5), (2, 3, 4, 65), (33, 768), (2, 1, 2, 1, 2, 1, 2, 1, 17)]
FORWARD = {False: libnorm.layer_norm, True: libnorm.rms_norm}


def training(rms, x, scale=None, shift=None, epsilon=EPSILON):
    """The result, mean and variance; the mean is 0 with RMS normalization."""
    if not rms:
        return libnorm.layer_norm_training(x, scale, shift, epsilon)
    dst, variance = libnorm.rms_norm_training(x, scale, shift, epsilon)
    return dst, np.zeros_like(variance), variance


def backward(rms, dy, x, mean, variance, scale=None, shift=None, **options):
    """The three gradients."""
    if rms:
        return libnorm.rms_norm_backward(dy, x, variance, scale, shift, EPSILON, **options)
    return libnorm.layer_norm_backward(dy, x, mean, variance, scale, shift, EPSILON, **options)


@pytest.mark.parametrize("rms", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", TYPES)
def test_forward(rms, shape, dtype):
    x = data(shape, dtype)
    params = "float32" if dtype == "float64" else dtype
    for scale, shift in [(None, None), (data(shape[-1:], params, 1), data(shape[-1:], params, 2))]:
        y = FORWARD[rms](x, scale, shift, EPSILON)
        assert y.dtype == x.dtype and y.shape == x.shape and type(y) is np.ndarray
        expected, terms = reference.forward(x, scale, shift, EPSILON, rms)
        close(y, expected, terms)
        again, mean, variance = training(rms, x, scale, shift)
        assert again.tobytes() == y.tobytes()
        assert mean.shape == variance.shape == shape[:-1]
        own_mean, own_variance = reference.statistics(x, rms)
        # Within 4 ulp of the exact variance, and 4 ulp of the mean of |x|.
        assert np.all(np.abs(variance - own_variance) <= 4 * 2.0**-23 * own_variance)
        assert np.all(np.abs(mean - own_mean) <= 4 * 2.0**-23 * np.abs(x.astype(np.float64)).mean(-1))


@pytest.mark.parametrize("rms", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", TYPES)
def test_backward(rms, shape, dtype):
    x, dy = data(shape, dtype), data(shape, dtype, 3)
    params = "float32" if dtype == "float64" else dtype
    scale, shift = data(shape[-1:], params, 1), data(shape[-1:], params, 2)
    _, mean, variance = training(rms, x, scale, shift)
    # With f64 the library recomputes the statistics from src, because saved ones are f32.
    exact = reference.statistics(x, rms) if dtype == "float64" else (mean, variance)
    expected = reference.backward(dy, x, *exact, scale, EPSILON, rms)
    gradients = backward(rms, dy, x, mean, variance, scale, shift)
    for gradient, like, (value, terms) in zip(gradients, (x, scale, shift), expected):
        assert gradient.dtype == like.dtype and gradient.shape == like.shape
        close(gradient, value, terms)
    alone = backward(rms, dy, x, mean, variance, scale, shift, data_only=True)
    assert alone[0].tobytes() == gradients[0].tobytes() and alone[1:] == (None, None)
    assert backward(rms, dy, x, mean, variance)[1:] == (None, None)
    diff_src, diff_scale, diff_shift = backward(rms, dy, x, mean, variance, None, shift)
    assert diff_scale is None and diff_shift.tobytes() == gradients[2].tobytes()


@pytest.mark.parametrize("rms", [False, True])
def test_given_statistics(rms):
    x, dy = data((6, 40), "float32"), data((6, 40), "float32", 1)
    mean, variance = data((6,), "float32", 2), np.abs(data((6, 1), "float32", 3))
    given = {"variance": variance} if rms else {"mean": mean, "variance": variance}
    y = FORWARD[rms](x, epsilon=EPSILON, **given)
    centred = x.astype(np.float64) - (0 if rms else mean[:, None])
    r = 1 / np.sqrt(variance.astype(np.float64) + EPSILON)
    close(y, centred * r, (np.abs(x) + np.abs(mean[:, None])) * r)
    gradients = backward(rms, dy, x, mean, variance, global_stats=True)
    expected = reference.backward(dy, x, mean, variance[:, 0], None, EPSILON, rms, global_stats=True)
    close(gradients[0], *expected[0])


def test_mixed_types():
    x, scale = data((5, 64), "bfloat16"), data((64,), "float32", 1)
    y = libnorm.layer_norm(x, scale, out=np.empty((5, 64), np.float32))
    close(y, *reference.forward(x, scale, None, EPSILON, False))
    _, mean, variance = libnorm.layer_norm_training(x, scale)
    dy = data((5, 64), "float16", 2)
    diff_src, diff_scale, _ = libnorm.layer_norm_backward(dy, x, mean, variance, scale)
    assert diff_src.dtype == x.dtype and diff_scale.dtype == np.float32
    expected = reference.backward(dy, x, mean, variance, scale, EPSILON, False)
    close(diff_src, *expected[0])
    close(diff_scale, *expected[1])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "float8_e4m3fn", "float8_e5m2"])
def test_eight_bits(dtype):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    dtype = np.dtype(getattr(ml_dtypes, dtype, dtype))
    x = np.arange(48).reshape(4, 12).astype(dtype)
    expected, _ = reference.forward(x, None, None, EPSILON, False)
    y = libnorm.layer_norm(x, out=np.empty(x.shape, np.float32))
    assert np.allclose(y, expected, rtol=1e-6, atol=1e-6)
    # A new array of integers must be asked for.
    narrow = libnorm.layer_norm(x, out=np.empty_like(x)) if dtype.kind in "iu" else libnorm.layer_norm(x)
    assert narrow.dtype == dtype
    rounded = np.rint(y).clip(0 if dtype == np.uint8 else None, None) if dtype.kind in "iu" else y
    assert narrow.tobytes() == rounded.astype(dtype).tobytes()


def test_strides():
    wide = data((4, 6, 40), "float32")
    views = [wide[:, ::2, 3:20], wide.transpose(1, 0, 2), wide[..., ::3], wide.transpose(2, 1, 0)]
    views.append(np.broadcast_to(wide[0, 0], (3, 2, 40)))
    for x in views:
        dense = np.ascontiguousarray(x)
        expected = libnorm.layer_norm_training(dense)
        actual = libnorm.layer_norm_training(x)
        assert all(a.tobytes() == b.tobytes() for a, b in zip(actual, expected))
        gradients = libnorm.layer_norm_backward(x, x, *actual[1:], x[0, 0].copy())
        like_dense = libnorm.layer_norm_backward(dense, dense, *expected[1:], dense[0, 0].copy())
        assert gradients[0].tobytes() == like_dense[0].tobytes()
        assert gradients[1].tobytes() == like_dense[1].tobytes()


def test_strided_outputs_leave_the_gaps_alone():
    x = data((5, 8), "float32")
    out = np.full((5, 24), 7, np.float32)
    assert libnorm.rms_norm(x, out=out[:, 1:17:2]).base is out
    assert out[:, 1:17:2].tobytes() == libnorm.rms_norm(x).tobytes()
    untouched = np.delete(out, np.s_[1:17:2], axis=1)
    assert np.all(untouched == 7)


def test_out_and_in_place():
    x, scale = data((9, 33), "float32"), data((33,), "float32", 1)
    expected = libnorm.layer_norm(x, scale)
    y = x.copy()
    assert libnorm.layer_norm(y, scale, out=y) is y
    assert y.tobytes() == expected.tobytes()

    dst, mean, variance = libnorm.layer_norm_training(x, scale)
    outs = (np.empty_like(dst), None, np.empty((9, 1), np.float32))
    returned = libnorm.layer_norm_training(x, scale, out=outs)
    assert returned[0] is outs[0] and returned[2] is outs[2]
    assert [a.tobytes() for a in returned] == [a.tobytes() for a in (dst, mean, variance)]

    dy = data((9, 33), "float32", 2)
    gradients = libnorm.layer_norm_backward(dy, x, mean, variance, scale)
    in_place = dy.copy()
    outs = (in_place, np.empty(33, np.float32), None)
    returned = libnorm.layer_norm_backward(in_place, x, mean, variance, scale, out=outs)
    assert returned[0] is in_place and returned[1] is outs[1] and returned[2] is None
    assert returned[0].tobytes() == gradients[0].tobytes()
    assert returned[1].tobytes() == gradients[1].tobytes()


def test_interleaved_arrays_do_not_overlap():
    both = data((6, 20), "float32")
    expected = libnorm.layer_norm(both[:, :10].copy())
    assert libnorm.layer_norm(both[:, :10], out=both[:, 10:]).tobytes() == expected.tobytes()
    expected = libnorm.layer_norm(both[:, ::2].copy())
    assert libnorm.layer_norm(both[:, ::2], out=both[:, 1::2]).tobytes() == expected.tobytes()


@pytest.mark.parametrize("shape", [(0, 7), (2, 0, 7), (3, 0), (0, 0), (0,)])
def test_nothing_to_do(shape):
    x, scale = np.empty(shape, np.float32), np.ones(shape[-1:], np.float32)
    dst, mean, variance = libnorm.layer_norm_training(x, scale, scale)
    assert dst.shape == shape and mean.shape == variance.shape == shape[:-1]
    assert libnorm.rms_norm(x).shape == shape
    gradients = libnorm.layer_norm_backward(x, x, mean, variance, scale, scale)
    assert gradients[0].shape == shape
    assert not gradients[1].any() and not gradients[2].any()


def test_constant_rows_and_special_values():
    x = np.full((4, 16), 3, np.float32)
    x[1, 5], x[2, 5] = np.nan, np.inf
    y = libnorm.layer_norm(x, epsilon=0.0)
    assert not y[0].any() and not y[3].any()
    assert np.isnan(y[1]).all() and np.isnan(y[2]).all()


def test_subclasses_are_arrays():
    class Named(np.ndarray):
        """An array with a name."""

    x = data((3, 4), "float32").view(Named)
    y = libnorm.layer_norm(x)
    assert type(y) is np.ndarray and y.tobytes() == libnorm.layer_norm(np.asarray(x)).tobytes()


def test_inputs_are_not_written_and_may_be_read_only():
    arrays = [data((5, 12), "float32"), data((12,), "float32", 1), data((12,), "float32", 2)]
    copies = [array.copy() for array in arrays]
    for array in arrays:
        array.flags.writeable = False
    _, mean, variance = libnorm.layer_norm_training(*arrays)
    libnorm.layer_norm_backward(arrays[0], arrays[0], mean, variance, *arrays[1:])
    assert all(np.array_equal(array, copy) for array, copy in zip(arrays, copies))
