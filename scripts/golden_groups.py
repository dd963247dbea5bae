#!/usr/bin/env python3
"""Writes golden vectors of group and grouped RMS normalization: PyTorch's autograd in f64, all sets of flags, and
residuals, gates, partial norms and 1 + scale.

    python3.11 -m venv VENV
    VENV/bin/pip install -r scripts/requirements.txt
    VENV/bin/python scripts/golden_groups.py tests/data/golden_groups.txt

Written with Python 3.11, torch 2.15.0. The format is that of scripts/golden_vectors.py. Group normalization is
torch.nn.functional.group_norm; grouped RMS normalization, which PyTorch does not have, is written out. Groups have 16
elements, so that every input and every statistic is exact in f32. rms is not 1, scale is not 1 and
mean(scale*diff_dst) is not 0: weaker data hides wrong gradients.

The sets of flags are followed by `case FLAGS WORDS`: the letters are benchdnn's (P 1 + scale, B round before the scale,
which is exact here, O and I gates), the words `residual`, `swish`, `logistic`, `partial=N`. The gradient of the stored sum is part of diff_src.
"""

import argparse
import pathlib
import random

try:
    import torch
except ImportError:
    torch = None  # --help works without it

SAMPLES, CHANNELS, GROUPS, POSITIONS = 2, 6, 3, 8
EPSILON = 2.0**-7  # large enough to matter, and an f32 number
SEED = 21
ALPHA = 1.5

CASES = [
    ("CH", "residual"), ("CM", "residual"), ("CHP", ""), ("CMP", ""),
    ("CHO", "swish"), ("CMO", "swish"), ("CHI", "swish"), ("CMI", "swish"), ("CMO", "logistic"), ("I", "logistic"),
    ("CHPO", "residual swish"), ("CHMPI", "residual swish"), ("CMO", "residual logistic"),
    ("CMB", ""), ("M", "partial=8"), ("CHM", "partial=16"),
    # Every pair.
    ("CHP", "residual"), ("CHB", "residual"), ("CHI", "residual swish"), ("CM", "residual partial=8"), ("CMPB", ""),
    ("CHPO", "swish"), ("CMPI", "swish"), ("CMP", "partial=8"), ("CMBO", "swish"), ("CHBI", "swish"),
    ("CMB", "partial=8"), ("CMO", "swish partial=8"), ("CMI", "swish partial=8"),
]


def make_inputs():
    """{name: f64 tensor} of the inputs, which all sets of flags share."""
    rng = random.Random(SEED)

    def pick(shape, low, high, unit):
        count = 1
        for size in shape:
            count *= size
        values = [rng.randint(low, high) / unit for _ in range(count)]
        return torch.tensor(values, dtype=torch.float64).reshape(shape)

    shape = (SAMPLES, CHANNELS, POSITIONS)
    inputs = {
        "src": pick(shape, -14, 30, 8),
        "diff_dst": pick(shape, -40, 70, 32),
        "scale": pick((CHANNELS,), 20, 90, 32),
        "shift": pick((CHANNELS,), -50, 50, 32),
        "global_mean": pick((SAMPLES, GROUPS), -30, 30, 32),
        "global_variance": pick((SAMPLES, GROUPS), 10, 90, 32),
        "residual": pick(shape, -30, 50, 16),
        "gate": pick(shape, -30, 60, 16),
        "diff_sum": pick(shape, -30, 60, 32),
    }
    inputs["src"][1, :2] *= 1 / 16  # a group where epsilon matters
    for name, tensor in inputs.items():
        assert torch.equal(tensor, tensor.float().double()), name
    return inputs


def make_results(inputs, flags):
    """{name: f64 tensor} of the results of one set of flags, by autograd."""
    names = ("src", "scale", "shift")
    src, scale, shift = (inputs[name].clone().requires_grad_() for name in names)
    gain = scale if "C" in flags else None
    offset = shift if "H" in flags else None
    rows = src.reshape(SAMPLES, GROUPS, -1)
    if "G" in flags or "M" in flags:
        if "G" in flags:
            mean = 0 if "M" in flags else inputs["global_mean"][:, :, None]
            variance = inputs["global_variance"][:, :, None]
        else:
            mean, variance = 0, rows.square().mean(-1, keepdim=True)
        dst = ((rows - mean) / (variance + EPSILON).sqrt()).reshape(src.shape)
        dst = dst if gain is None else dst * gain[None, :, None]
        dst = dst if offset is None else dst + offset[None, :, None]
    else:
        dst = torch.nn.functional.group_norm(src, GROUPS, gain, offset, EPSILON)
    dst.backward(inputs["diff_dst"])

    results = {"dst": dst, "diff_src": src.grad}
    if "C" in flags:
        results["diff_scale"] = scale.grad
    if "H" in flags:
        results["diff_shift"] = shift.grad
    if "G" not in flags:
        if "M" in flags:
            results["variance"] = rows.square().mean(-1)
        else:
            # Not var(), whose running means round.
            results["mean"] = rows.mean(-1)
            results["variance"] = (rows - rows.mean(-1, keepdim=True)).square().mean(-1)
        for name in ("mean", "variance"):
            if name in results:
                assert torch.equal(results[name], results[name].float().double()), name
    return {name: tensor.detach() for name, tensor in results.items()}


def make_case(inputs, flags, words):
    """{name: f64 tensor} of the results of one case, by autograd."""
    names = ("src", "residual", "gate", "scale", "shift")
    src, residual, gate, scale, shift = (inputs[name].clone().requires_grad_() for name in names)
    total = src + residual if "residual" in words else src
    function = torch.sigmoid if "logistic" in words else lambda g: g * torch.sigmoid(ALPHA * g)
    x = (total * function(gate) if "I" in flags else total).reshape(SAMPLES, GROUPS, -1)
    mean = torch.zeros(SAMPLES, GROUPS, 1, dtype=torch.float64) if "M" in flags else x.mean(-1, keepdim=True)
    count = next((int(word[8:]) for word in words if word.startswith("partial=")), x.shape[-1])
    variance = (x - mean)[..., :count].square().mean(-1, keepdim=True)
    n = ((x - mean) / (variance + EPSILON).sqrt()).reshape(src.shape)
    if "C" in flags:
        n = n * (1 + scale if "P" in flags else scale)[None, :, None]
    if "H" in flags:
        n = n + shift[None, :, None]
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


def line(name, tensor):
    """A tensor as one line; repr gives the shortest digits that round-trip."""
    values = (repr(float(x)).removesuffix(".0") for x in tensor.flatten())
    return f"{name} {' '.join(values)}\n"


def main():
    """Writes the file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=pathlib.Path, help="the file to write")
    arguments = parser.parse_args()
    if torch is None:
        parser.error("torch is not installed: see --help")
    torch.set_num_threads(1)
    inputs = make_inputs()
    text = f"# scripts/golden_groups.py, torch {torch.__version__}\n"
    text += f"sizes {SAMPLES} {CHANNELS} {GROUPS} {POSITIONS}\nepsilon {EPSILON!r}\nalpha {ALPHA}\n"
    text += "".join(line(name, tensor) for name, tensor in inputs.items())
    for number in range(16):
        flags = "".join(letter for bit, letter in enumerate("GCHM") if number >> bit & 1)
        text += f"flags {flags or '-'}\n"
        text += "".join(line(*item) for item in make_results(inputs, flags).items())
    for flags, words in CASES:
        text += f"case {flags} {words}".rstrip() + "\n"
        text += "".join(line(*item) for item in make_case(inputs, flags, words.split()).items())
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(text)


if __name__ == "__main__":
    main()
