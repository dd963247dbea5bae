#!/usr/bin/env python3
"""Writes golden vectors of gated activations: PyTorch's autograd in f64, all functions, with and without limits.

    python3.11 -m venv VENV
    VENV/bin/pip install -r scripts/requirements.txt
    VENV/bin/python scripts/golden_gated.py tests/data/golden_gated.txt

Written with Python 3.11, torch 2.15.0. The functions are torch.nn.functional's silu, gelu, leaky_relu and sigmoid.
Swish with another alpha and limits are written out as in GPT-OSS: torch.clamp, then (up + shift) times the function.
Inputs are exact in bf16, and so in f32. Some are beyond the limits, on both sides; none is on a limit, where the
derivative is a matter of convention.
"""

import argparse
import pathlib
import random

try:
    import torch
except ImportError:
    torch = None  # --help works without it

COUNT = 40
SEED = 33
FUNCTIONS = ("swish", "gelu_erf", "gelu_tanh", "relu", "logistic", "linear")
# alpha, limit and shift; a limit of 0 means none.
NUMBERS = ((1.0, 0.0, 0.0), (1.702, 7.0, 1.0), (0.25, 2.0, -0.5))


def make_inputs():
    """{name: f64 tensor} of the inputs."""
    rng = random.Random(SEED)

    def pick(low, high, unit):
        return [rng.randint(low, high) / unit for _ in range(COUNT)]

    gate, up = pick(-60, 60, 16), pick(-60, 60, 16)
    gate[:8] = [6.75, 7.5, 12.0, -12.0, -40.0, -0.0078125, 1.75, 30.0]
    up[:8] = [6.75, -6.75, 9.0, -9.5, 1.75, -1.75, 2.5, -60.0]
    inputs = {"gate": gate, "up": up, "diff_dst": pick(-40, 70, 32)}
    inputs = {name: torch.tensor(values, dtype=torch.float64) for name, values in inputs.items()}
    for name, tensor in inputs.items():
        assert torch.equal(tensor, tensor.bfloat16().double()), name
    return inputs


def activation(function, g, alpha):
    """The function of the gate."""
    functional = torch.nn.functional
    if function == "swish":
        return functional.silu(g) if alpha == 1 else g * torch.sigmoid(alpha * g)
    if function == "gelu_erf":
        return functional.gelu(g)
    if function == "gelu_tanh":
        return functional.gelu(g, approximate="tanh")
    if function == "relu":
        return functional.leaky_relu(g, alpha)
    return torch.sigmoid(g) if function == "logistic" else alpha * g


def make_results(inputs, function, numbers):
    """{name: f64 tensor} of the results, by autograd."""
    # In f32, PyTorch's constants equal the library's.
    alpha, limit, shift = (float(torch.tensor(number, dtype=torch.float32)) for number in numbers)
    gate, up = (inputs[name].clone().requires_grad_() for name in ("gate", "up"))
    g = gate.clamp(max=limit) if limit else gate
    u = (up.clamp(-limit, limit) if limit else up) + shift
    dst = activation(function, g, alpha) * u
    dst.backward(inputs["diff_dst"])
    results = {"dst": dst, "diff_gate": gate.grad, "diff_up": up.grad}
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
    text = f"# scripts/golden_gated.py, torch {torch.__version__}\n"
    text += "".join(line(name, tensor) for name, tensor in inputs.items())
    for function in FUNCTIONS:
        for numbers in NUMBERS:
            text += f"case {function} {' '.join(repr(number) for number in numbers)}\n"
            text += "".join(line(*item) for item in make_results(inputs, function, numbers).items())
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(text)


if __name__ == "__main__":
    main()
