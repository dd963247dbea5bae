#!/usr/bin/env python3
"""Writes golden vectors of layer and RMS normalization: PyTorch's autograd in f64, all sets of flags.

    python3.11 -m venv VENV
    VENV/bin/pip install -r scripts/requirements.txt
    VENV/bin/python scripts/golden_vectors.py tests/data/golden.txt

Written with Python 3.11, torch 2.15.0. The file is text with one line per tensor, which begins with its name:
the inputs, then the results of each set of flags (benchdnn's letters: G global stats, C scale, H shift, M rms).
The inputs are chosen so that

- every input and every statistic is exact in f32. The library's backward reads f32 statistics and autograd
  uses f64 ones; here they are equal, so the comparison needs no tolerance for them;
- rms is not 1, scale is not 1 and mean(scale*diff_dst) is not 0: weaker data hides wrong gradients.
"""

import argparse
import pathlib
import random

try:
    import torch
except ImportError:
    torch = None  # --help works without it

ROWS, COLS = 3, 19
EPSILON = 2.0**-7  # large enough to matter, and an f32 number
SEED = 20


def exact_rows(rng):
    """Rows of eighths whose mean, variance and mean square are eighths or 64ths."""
    rows = []
    while len(rows) < ROWS:
        row = [rng.randint(-14, 30) for _ in range(COLS)]
        # The mean square is then a multiple of 1/64, and so is the variance.
        if sum(row) % COLS == 0 and sum(x * x for x in row) % COLS == 0:
            rows.append([x / 8 for x in row])
    return torch.tensor(rows, dtype=torch.float64)


def make_inputs():
    """{name: f64 tensor} of the inputs, which all sets of flags share."""
    rng = random.Random(SEED)

    def pick(count, low, high):
        values = [rng.randint(low, high) / 32 for _ in range(count)]
        return torch.tensor(values, dtype=torch.float64)

    inputs = {
        "src": exact_rows(rng),
        "diff_dst": pick(ROWS * COLS, -40, 70).reshape(ROWS, COLS),
        "scale": pick(COLS, 20, 90),
        "shift": pick(COLS, -50, 50),
        "global_mean": pick(ROWS, -30, 30),
        "global_variance": pick(ROWS, 10, 90),
    }
    inputs["src"][1] *= 1 / 16  # a row where epsilon matters
    for name, tensor in inputs.items():
        assert torch.equal(tensor, tensor.float().double()), name
    return inputs


def make_results(inputs, flags):
    """{name: f64 tensor} of the results of one set of flags, by autograd."""
    names = ("src", "scale", "shift")
    src, scale, shift = (inputs[name].clone().requires_grad_() for name in names)
    gain = scale if "C" in flags else None
    offset = shift if "H" in flags else None
    if "G" in flags:
        mean = 0 if "M" in flags else inputs["global_mean"][:, None]
        xhat = (src - mean) / (inputs["global_variance"][:, None] + EPSILON).sqrt()
        dst = xhat if gain is None else xhat * gain
        dst = dst if offset is None else dst + offset
    elif "M" in flags:
        dst = torch.nn.functional.rms_norm(src, (COLS,), gain, EPSILON)
        dst = dst if offset is None else dst + offset
    else:
        dst = torch.nn.functional.layer_norm(src, (COLS,), gain, offset, EPSILON)
    dst.backward(inputs["diff_dst"])

    results = {"dst": dst, "diff_src": src.grad}
    if "C" in flags:
        results["diff_scale"] = scale.grad
    if "H" in flags:
        results["diff_shift"] = shift.grad
    if "G" not in flags:
        if "M" in flags:
            results["variance"] = src.square().mean(-1)
        else:
            results["mean"] = src.mean(-1)
            results["variance"] = src.var(-1, correction=0)
        for name in ("mean", "variance"):
            if name in results:
                assert torch.equal(results[name], results[name].float().double()), name
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
    text = f"# scripts/golden_vectors.py, torch {torch.__version__}\n"
    text += f"rows {ROWS}\ncols {COLS}\nepsilon {EPSILON!r}\n"
    text += "".join(line(name, tensor) for name, tensor in inputs.items())
    for number in range(16):
        flags = "".join(letter for bit, letter in enumerate("GCHM") if number >> bit & 1)
        text += f"flags {flags or '-'}\n"
        text += "".join(line(*item) for item in make_results(inputs, flags).items())
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(text)


if __name__ == "__main__":
    main()
