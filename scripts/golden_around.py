#!/usr/bin/env python3
"""Writes golden vectors for the steps around a normalization: residual, gates, partial RMS, 1 + scale,
rounding before the scale, dynamic scales.

    python3.11 -m venv VENV
    VENV/bin/pip install -r scripts/requirements.txt
    VENV/bin/python scripts/golden_around.py tests/data/golden_around.txt

Written with Python 3.11, torch 2.15.0, transformers 5.23.0. The file is text with one line
per tensor, which begins with its name. It has three parts:

- `case FLAGS WORDS`: PyTorch's autograd in f64. The letters are benchdnn's (C scale, H shift, M rms, P 1 + scale,
  B round before the scale, which is exact here, O and I gates); the words are `residual`, `swish`, `logistic`, `partial=N`. The gradient of the stored sum is
  part of diff_src.
- `llama TYPE`: bits of transformers' LlamaRMSNorm. Only rows for which the same formula in f64 gives the same bits;
  the others depend on the rounding of PyTorch's f32 arithmetic.
- `quantized TYPE`: the bits of scales and elements of 1 x 128 blocks, by PyTorch's conversions.
"""

import argparse
import pathlib
import random

try:
    import torch
    from transformers.models.llama.modeling_llama import LlamaRMSNorm
except ImportError:
    torch = None  # --help works without it

ROWS, COLS = 3, 19
EPSILON = 2.0**-7  # an f32 number
SEED = 21
ALPHA = 1.5
LLAMA_ROWS, LLAMA_COLS = 8, 64
BLOCKS, BLOCK = 6, 128


def line(name, tensor):
    """A tensor as one line; repr gives the shortest digits that round-trip."""
    values = (repr(float(x)).removesuffix(".0") for x in tensor.flatten())
    return f"{name} {' '.join(values)}\n"


def bits(name, tensor):
    """The bits of a tensor, in hexadecimal digits."""
    size = {4: torch.int32, 2: torch.int16, 1: torch.uint8}[tensor.element_size()]
    values = tensor.contiguous().view(size).flatten().tolist()
    mask = (1 << 8 * tensor.element_size()) - 1
    return f"{name} {' '.join(f'{value & mask:x}' for value in values)}\n"


def make_inputs():
    """{name: f64 tensor} of the inputs. They and the sum are exact in bf16 and f16."""
    rng = random.Random(SEED)

    def pick(count, low, high, unit):
        values = [rng.randint(low, high) / unit for _ in range(count)]
        tensor = torch.tensor(values, dtype=torch.float64)
        return tensor if count == COLS else tensor.reshape(ROWS, COLS)

    every = ROWS * COLS
    inputs = {
        "src": pick(every, -20, 40, 16),
        "residual": pick(every, -30, 50, 16),
        "gate": pick(every, -30, 60, 16),
        "scale": pick(COLS, 20, 90, 32),
        "shift": pick(COLS, -50, 50, 32),
        "diff_dst": pick(every, -40, 70, 32),
        "diff_sum": pick(every, -30, 60, 32),
    }
    for dtype in (torch.bfloat16, torch.float16):
        for tensor in (*inputs.values(), inputs["src"] + inputs["residual"]):
            assert torch.equal(tensor, tensor.to(dtype).double())
    return inputs


def make_results(inputs, flags, words):
    """{name: f64 tensor} of the results of one case, by autograd."""
    names = ("src", "residual", "gate", "scale", "shift")
    src, residual, gate, scale, shift = (inputs[name].clone().requires_grad_() for name in names)
    total = src + residual if "residual" in words else src
    function = torch.sigmoid if "logistic" in words else lambda g: g * torch.sigmoid(ALPHA * g)
    x = total * function(gate) if "I" in flags else total
    count = next((int(word[8:]) for word in words if word.startswith("partial=")), COLS)
    mean = 0 if "M" in flags else x.mean(-1, keepdim=True)
    variance = (x - mean)[:, :count].square().mean(-1, keepdim=True)
    n = (x - mean) / (variance + EPSILON).sqrt()
    if "C" in flags:
        n = n * (1 + scale if "P" in flags else scale)
    if "H" in flags:
        n = n + shift
    dst = n * function(gate) if "O" in flags else n
    loss = (dst * inputs["diff_dst"]).sum()
    if "residual" in words:
        loss = loss + (total * inputs["diff_sum"]).sum()
    loss.backward()
    results = {"dst": dst, "variance": variance, "diff_src": src.grad}
    if "residual" in words:
        assert torch.equal(src.grad, residual.grad)
    if "M" not in flags:
        results["mean"] = mean
    for name, tensor, used in (
        ("diff_scale", scale, "C" in flags),
        ("diff_shift", shift, "H" in flags),
        ("diff_gate", gate, "O" in flags or "I" in flags),
    ):
        if used:
            results[name] = tensor.grad
    return {name: tensor.detach() for name, tensor in results.items()}


CASES = [
    ("CH", "residual"), ("CM", "residual"), ("M", "residual"),
    ("CHO", "swish"), ("CMO", "swish"), ("CHI", "swish"), ("CMI", "swish"),
    ("CMO", "logistic"), ("CHI", "logistic"),
    ("CHP", ""), ("CMP", ""),
    ("M", "partial=5"), ("CHM", "partial=1"), ("CM", "partial=19"),
    ("CHPO", "residual swish"), ("CMI", "residual logistic"), ("CHMPO", "residual swish partial=7"),
    ("CMPI", "residual swish partial=7"), ("CMB", ""), ("CHB", ""),
    # Every pair.
    ("CHP", "residual"), ("CHB", "residual"), ("CHO", "residual swish"), ("CM", "residual partial=7"), ("CMPB", ""),
    ("CHPO", "swish"), ("CMPI", "swish"), ("CMP", "partial=7"), ("CMBO", "swish"), ("CHBI", "swish"),
    ("CMB", "partial=7"), ("CMO", "swish partial=7"), ("CMI", "swish partial=7"),
]


def llama(dtype, generator):
    """Rows whose bits do not depend on how the mean is summed."""
    module = LlamaRMSNorm(LLAMA_COLS, eps=1e-6).to(dtype)
    weight = (1 + 0.5 * torch.randn(LLAMA_COLS, generator=generator)).to(dtype)
    module.weight.data.copy_(weight)
    rows, results = [], []
    while len(rows) < LLAMA_ROWS:
        row = (3 * torch.randn(1, LLAMA_COLS, generator=generator)).to(dtype)
        result = module(row).detach()
        x = row.double()
        exact = x / (x.square().mean() + float(torch.tensor(1e-6))).sqrt()
        exact = exact.to(dtype).double() * weight.double()
        if torch.equal(exact.to(dtype), result):
            rows.append(row)
            results.append(result)
    return torch.cat(rows), weight, torch.cat(results)


def quantized(dtype, generator):
    """Blocks, their scales and their elements: scale = largest / M, elements y * (1/scale)."""
    src = torch.randn(BLOCKS, BLOCK, generator=generator) * torch.tensor([1, 4, 1e-3, 100, 0.5, 0])[:, None]
    src = src.to(torch.bfloat16)
    src[1, 7] = 30.0
    y = src.float()
    largest = torch.finfo(dtype).max if dtype.is_floating_point else torch.iinfo(dtype).max
    scale = y.abs().amax(-1, keepdim=True) / torch.tensor(float(largest))
    scale[scale == 0] = 1
    product = y * (1 / scale)
    if dtype.is_floating_point:
        elements = product.clamp(-largest, largest).to(dtype)
    else:
        elements = product.round().clamp(-128, 127).to(dtype)
    return src, scale, elements


def main():
    """Writes the file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=pathlib.Path, help="the file to write")
    arguments = parser.parse_args()
    if torch is None:
        parser.error("torch or transformers is not installed: see --help")
    torch.set_num_threads(1)
    inputs = make_inputs()
    text = f"# scripts/golden_around.py, torch {torch.__version__}\n"
    text += f"rows {ROWS}\ncols {COLS}\nepsilon {EPSILON!r}\nalpha {ALPHA}\n"
    text += "".join(line(name, tensor) for name, tensor in inputs.items())
    for flags, words in CASES:
        text += f"case {flags} {words}".rstrip() + "\n"
        text += "".join(line(*item) for item in make_results(inputs, flags, words.split()).items())
    generator = torch.Generator().manual_seed(SEED)
    for name, dtype in (("bf16", torch.bfloat16), ("f16", torch.float16)):
        src, scale, dst = llama(dtype, generator)
        text += f"llama {name}\n" + bits("src", src) + bits("scale", scale) + bits("dst", dst)
    for name, dtype in (
        ("f8_e4m3", torch.float8_e4m3fn), ("f8_e5m2", torch.float8_e5m2), ("s8", torch.int8)
    ):
        src, scale, dst = quantized(dtype, generator)
        text += f"quantized {name}\n" + bits("src", src) + bits("scale", scale) + bits("dst", dst)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(text)


if __name__ == "__main__":
    main()
