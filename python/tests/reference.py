"""The formulas in f64 with NumPy, and the error bounds that the library documents.

A result is within 1 ulp of the exact one plus 2**-22 times the magnitude of the terms that it is the sum of
(docs/primitives/layer_normalization.md, Numerics). `allowed` is the second part; `close` adds the rounding to
the result's type. Magnitudes of terms are bounded here by the largest of the row, so the bounds are a few
times what a result needs.
"""

import ml_dtypes
import numpy as np

TERMS = 2.0**-22
# One unit in the last place relative to the value: 2**-(bits of the mantissa).
ULP = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
# The smallest subnormals.
STEP = {"float64": 0.0, "float32": 2.0**-149, "float16": 2.0**-24, "bfloat16": 2.0**-133}
TYPES = {
    "float32": np.float32,
    "bfloat16": ml_dtypes.bfloat16,
    "float16": np.float16,
    "float64": np.float64,
}


def close(actual, expected, magnitude):
    """Asserts that results are within the documented bounds; `magnitude` is that of the terms of each sum."""
    name = actual.dtype.name
    actual = np.asarray(actual, dtype=np.float64)
    bound = np.abs(expected) * ULP[name] + STEP[name] + TERMS * magnitude
    error = np.abs(actual - expected)
    assert actual.shape == np.shape(expected)
    assert np.all(error <= bound), f"off by {np.max(error / bound):.3g} of what is allowed"


def statistics(x, rms):
    """Mean and variance of the rows in f64; with RMS normalization, 0 and the means of squares."""
    x = np.asarray(x, dtype=np.float64)
    mean = np.zeros(x.shape[:-1]) if rms else x.mean(-1)
    return mean, ((x - mean[..., None]) ** 2).mean(-1)


def forward(x, scale, shift, epsilon, rms):
    """The result in f64, and the magnitude of its terms."""
    mean, variance = statistics(x, rms)
    scale = 1.0 if scale is None else np.asarray(scale, dtype=np.float64)
    shift = 0.0 if shift is None else np.asarray(shift, dtype=np.float64)
    r = 1 / np.sqrt(variance + epsilon)[..., None]
    x = np.asarray(x, dtype=np.float64)
    result = (x - mean[..., None]) * r * scale + shift
    return result, (np.abs(x) + np.abs(mean[..., None])) * r * np.abs(scale) + np.abs(shift)


def backward(dy, x, mean, variance, scale, epsilon, rms, global_stats=False):
    """diff_src, diff_scale and diff_shift in f64, each with the magnitude of its terms."""
    dy, x = np.asarray(dy, dtype=np.float64), np.asarray(x, dtype=np.float64)
    mean = 0.0 if rms else np.asarray(mean, dtype=np.float64)[..., None]
    r = 1 / np.sqrt(np.asarray(variance, dtype=np.float64) + epsilon)[..., None]
    d = dy if scale is None else dy * np.asarray(scale, dtype=np.float64)
    xhat = (x - mean) * r
    # Two rounded factors make each xhat, so its error is relative to |x| + |mean|.
    xhat_terms = (np.abs(x) + np.abs(mean)) * r
    dx, dx_terms = d, np.abs(d)
    if not global_stats:
        product = (d * xhat).mean(-1, keepdims=True)
        product_terms = (np.abs(d) * xhat_terms).mean(-1, keepdims=True)
        dx = dx - xhat * product
        dx_terms = dx_terms + xhat_terms * product_terms
        if not rms:
            dx = dx - d.mean(-1, keepdims=True)
            dx_terms = dx_terms + np.abs(d).mean(-1, keepdims=True)
    rows = tuple(range(x.ndim - 1))
    return (
        (r * dx, r * dx_terms),
        ((dy * xhat).sum(rows), (np.abs(dy) * xhat_terms).sum(rows)),
        (dy.sum(rows), np.abs(dy).sum(rows)),
    )


def data(shape, dtype, seed=0):
    """Random numbers of a type: rows with a mean that is not 0."""
    random = np.random.default_rng([seed, *shape])
    return (random.standard_normal(shape) * 1.5 + 0.5).astype(TYPES[dtype])
