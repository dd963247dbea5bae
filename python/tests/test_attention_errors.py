"""The errors of attention against f64, beside those of PyTorch's scaled_dot_product_attention."""

import itertools
import statistics

import numpy as np
import pytest
from test_attention import is_pytorch

import libnorm

B, H, G = 1, 4, 2
# Queries, keys, whether causal.
TOKENS = [
    (64, 64, True),
    (256, 256, False),
    (512, 512, True),
    (1024, 1024, True),
    (16, 1024, False),
    (1, 300, False),
    (1, 1024, False),
    (1, 4096, False),
]
SIZES = [64, 80, 128, 256]


def errors(dtype, tokens, size):
    """The root mean square of the errors of libnorm and of PyTorch, relative to that of the exact result."""
    import torch

    queries, keys, causal = tokens
    draw = np.random.default_rng([queries, keys, size])
    shapes = (B, H, queries, size), (B, G, keys, size), (B, G, keys, size)
    q, k, v = (torch.from_numpy(draw.standard_normal(shape, np.float32)).to(dtype) for shape in shapes)
    ours = libnorm.attention(q, k, v, causal=causal)
    k, v = (x.repeat_interleave(H // G, 1) for x in (k, v))
    theirs = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
    scores = q.double() @ k.double().mT / size**0.5
    if causal:
        scores = scores.masked_fill(~torch.ones(queries, keys, dtype=torch.bool).tril(), -torch.inf)
    exact = torch.softmax(scores, -1) @ v.double()
    scale = exact.square().mean().sqrt()
    return [float((result.double() - exact).square().mean().sqrt() / scale) for result in (ours, theirs)]


@pytest.mark.torch
@pytest.mark.skipif(
    not is_pytorch("scaled_dot_product_attention"), reason="PyTorch is not installed, or before 2.0"
)
# PyTorch's order of sums depends on the machine.
@pytest.mark.parametrize("dtype, most", [("float32", 1.1), ("bfloat16", 1.02), ("float16", 1.0)])
def test_the_median_error_beside_that_of_pytorch(dtype, most):
    import torch

    found = [errors(getattr(torch, dtype), *case) for case in itertools.product(TOKENS, SIZES)]
    ours, theirs = (statistics.median(errors) for errors in zip(*found))
    ratios = [own / other for own, other in found]
    ratio = statistics.median(ratios)
    print(f"{dtype}: the median error is {ours:.3g}, PyTorch's {theirs:.3g}")
    print(f"the median of the ratios is {ratio:.3f}, and they are {min(ratios):.2f} to {max(ratios):.2f}")
    assert ratio <= most
