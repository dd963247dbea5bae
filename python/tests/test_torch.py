"""PyTorch: tensors in and out, and results against PyTorch's own in f64."""

import pathlib
import runpy

import numpy as np
import pytest
from reference import close

import libnorm

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

EPSILON = 1e-5
TYPES = [torch.float32, torch.bfloat16, torch.float16, torch.float64]
SHAPES = [(5, 16), (3, 7, 129), (2, 768), (16,)]
EXAMPLE = pathlib.Path(__file__).parent.parent / "examples" / "torch_autograd.py"


def tensors(shape, dtype, seed=0):
    """x, dy, scale and shift."""
    generator = torch.Generator().manual_seed(seed)
    params = torch.float32 if dtype == torch.float64 else dtype
    x, dy = (torch.randn(shape, generator=generator, dtype=torch.float64) + 0.3 for _ in range(2))
    scale, shift = (torch.randn(shape[-1], generator=generator, dtype=torch.float64) for _ in range(2))
    return x.to(dtype), dy.to(dtype), scale.to(params), shift.to(params)


def autograd(x, dy, scale, shift, rms):
    """The result and the gradients that PyTorch computes in f64."""
    x, scale, shift = (tensor.double().requires_grad_() for tensor in (x, scale, shift))
    if rms:
        y = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + EPSILON) * scale + shift
    else:
        y = torch.nn.functional.layer_norm(x, x.shape[-1:], scale, shift, EPSILON)
    y.backward(dy.double())
    return y.detach(), x.grad, scale.grad, shift.grad


def as_numpy(tensor):
    """An array for `close`; NumPy gets bfloat16 from ml_dtypes."""
    import ml_dtypes

    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()


@pytest.mark.parametrize("rms", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", TYPES)
def test_against_autograd(rms, shape, dtype):
    x, dy, scale, shift = tensors(shape, dtype)
    if rms:
        y, variance = libnorm.rms_norm_training(x, scale, shift, EPSILON)
        gradients = libnorm.rms_norm_backward(dy, x, variance, scale, shift, EPSILON)
    else:
        y, mean, variance = libnorm.layer_norm_training(x, scale, shift, EPSILON)
        gradients = libnorm.layer_norm_backward(dy, x, mean, variance, scale, shift, EPSILON)
    assert all(type(tensor) is torch.Tensor for tensor in (y, variance, *gradients))
    assert y.dtype == x.dtype and y.shape == x.shape and gradients[1].dtype == scale.dtype
    # Elements are of the order of 1. The magnitude of a sum over a row or over all rows is bounded by the largest
    # term times the number of terms.
    rows, cols = x.numel() // x.shape[-1], x.shape[-1]
    of_row = 40 * (1 + np.sqrt(cols))
    for actual, expected, magnitude in zip(
        (y, *gradients), autograd(x, dy, scale, shift, rms), (40, of_row, 40 * rows, 40 * rows)
    ):
        close(as_numpy(actual), expected.numpy(), magnitude)


def test_same_bits_as_numpy():
    x, dy, scale, shift = tensors((9, 200), torch.float32)
    arrays = [tensor.numpy() for tensor in (x, dy, scale, shift)]
    ours = libnorm.layer_norm_training(x, scale, shift)
    theirs = libnorm.layer_norm_training(arrays[0], arrays[2], arrays[3])
    assert all(a.numpy().tobytes() == b.tobytes() for a, b in zip(ours, theirs))


def test_strides_out_and_in_place():
    x = torch.randn(6, 4, 32)
    expected = libnorm.layer_norm(x.transpose(0, 1).contiguous())
    assert torch.equal(libnorm.layer_norm(x.transpose(0, 1)), expected)
    expanded = torch.randn(32).expand(3, 32)
    assert torch.equal(libnorm.layer_norm(expanded), libnorm.layer_norm(expanded.contiguous()))
    expected, address = libnorm.rms_norm(x), x.data_ptr()
    assert libnorm.rms_norm(x, out=x) is x
    assert torch.equal(x, expected) and x.data_ptr() == address
    with pytest.raises(ValueError, match="out has a stride of 0"):
        libnorm.layer_norm(torch.randn(3, 32), out=expanded)


def test_results_are_ordinary_tensors():
    y = libnorm.layer_norm(torch.randn(4, 16))
    y.requires_grad_()
    (y * 2).sum().backward()
    assert torch.equal(y.grad, torch.full((4, 16), 2.0))
    assert libnorm.layer_norm(torch.empty(0, 16)).shape == (0, 16)


@pytest.mark.skipif(not hasattr(torch, "float8_e4m3fn"), reason="PyTorch has float8 from 2.1 on")
def test_float8():
    x = torch.randn(4, 32).to(torch.float8_e4m3fn)
    y = libnorm.rms_norm(x, out=torch.empty(4, 32))
    expected = x.double() * torch.rsqrt(x.double().square().mean(-1, keepdim=True) + EPSILON)
    assert torch.allclose(y.double(), expected, rtol=1e-6, atol=1e-6)
    assert torch.equal(libnorm.rms_norm(x).float(), y.to(torch.float8_e4m3fn).float())


def test_gradients_are_recorded_or_refused():
    x, scale = torch.randn(4, 16), torch.nn.Parameter(torch.ones(16))
    with pytest.raises(ValueError, match=r"scale requires a gradient.*autograd.Function.*scale\.detach\(\)"):
        libnorm.rms_norm(x, scale)
    expected = libnorm.rms_norm(x, scale.detach())
    with torch.no_grad():
        assert torch.equal(libnorm.rms_norm(x, scale), expected)
    with torch.inference_mode():
        assert torch.equal(libnorm.rms_norm(x, scale), expected)


def test_what_is_not_lent():
    for x, words in [
        (torch.empty(3, 4, device="meta"), "dense tensor on the CPU"),
        (torch.zeros(3, 4).to_sparse(), "dense tensor on the CPU"),
        (torch.complex(torch.ones(3, 4), torch.ones(3, 4)).conj().imag, "resolve_neg"),
    ]:
        with pytest.raises(ValueError, match=words) as caught:
            libnorm.layer_norm(x)
        assert "\n" not in str(caught.value)
    # PyTorch lends bool from 2.0 on.
    for dtype in (torch.int64, torch.complex64, *([torch.bool] if torch.__version__ >= "2" else [])):
        with pytest.raises(TypeError, match="src has elements of .* convert them to float32, .*float8_e5m2$"):
            libnorm.layer_norm(torch.zeros(3, 4).to(dtype))


def test_the_example_trains_as_pytorch_does():
    example = runpy.run_path(str(EXAMPLE))
    ours = example["train"](example["LayerNorm"], example["RMSNorm"], steps=40)
    # PyTorch has RMSNorm from 2.4 on.
    rms_norm = example["RMSNorm"]
    if hasattr(torch.nn, "RMSNorm"):
        rms_norm = lambda cols: torch.nn.RMSNorm(cols, eps=1e-5)
    theirs = example["train"](torch.nn.LayerNorm, rms_norm, steps=40)
    # The losses of the first steps differ by rounding alone, which Adam's steps make larger.
    assert np.allclose(ours, theirs, rtol=1e-3)
    assert ours[-1] < 0.8 * ours[0]
