#!/usr/bin/env python3
"""Writes golden vectors of softmax, eltwise and binary: PyTorch's functions and their gradients in f64.

    python3.11 -m venv VENV
    VENV/bin/pip install -r scripts/requirements.txt
    VENV/bin/python scripts/golden_elementwise.py tests/data/golden_elementwise.txt

Written with Python 3.11, torch 2.15.0. Functions are those of torch and torch.nn.functional where it has them with the
same parameters; the others are a line of tensor operations. Gradients come from autograd, those computed from dst from
the functions that autograd calls, with dst rounded to f32. Inputs are exact in bf16, and so in f32. None is where a
derivative is a matter of convention.
"""

import argparse
import pathlib
import random

try:
    import torch
except ImportError:
    torch = None  # --help works without it

DIMS = (2, 4, 5)
SEED = 15
# Function, alpha, beta, and the input: x, or positive numbers.
ELTWISE = (
    ("relu", 0.0, 0.0, "x"),
    ("relu", 0.25, 0.0, "x"),
    ("elu", 1.5, 0.0, "x"),
    ("tanh", 0.0, 0.0, "x"),
    ("logistic", 0.0, 0.0, "x"),
    ("exp", 0.0, 0.0, "x"),
    ("sqrt", 0.0, 0.0, "positive"),
    ("clip", -1.28125, 3.03125, "x"),
    ("clip_v2", -1.28125, 3.03125, "x"),
    ("abs", 0.0, 0.0, "x"),
    ("square", 0.0, 0.0, "x"),
    ("linear", 0.75, -1.5, "x"),
    ("log", 0.0, 0.0, "positive"),
    ("pow", 0.75, 1.5, "positive"),
    ("pow", 2.0, -0.5, "positive"),
    ("round", 0.0, 0.0, "x"),
    ("soft_relu", 1.0, 0.0, "x"),
    ("soft_relu", 2.5, 0.0, "x"),
    ("swish", 1.0, 0.0, "x"),
    ("swish", 1.702, 0.0, "x"),
    ("gelu_erf", 0.0, 0.0, "x"),
    ("gelu_tanh", 0.0, 0.0, "x"),
    ("mish", 0.0, 0.0, "x"),
    ("hardsigmoid", 0.3, 0.55, "x"),
    ("hardswish", 0.3, 0.55, "x"),
)
BINARY = ("add", "sub", "mul", "div", "max", "min", "ge", "gt", "le", "lt", "eq", "ne", "select")


def make_inputs():
    """{name: f64 tensor} of the inputs."""
    rng = random.Random(SEED)
    count = DIMS[0] * DIMS[1] * DIMS[2]

    def pick(low, high, unit):
        return [(rng.randint(low, high) or 1) / unit for _ in range(count)]

    x, y = pick(-120, 120, 16), pick(-40, 40, 16)
    x[:8] = [0.5, -0.5, 1.5, 2.5, 7.9375, -7.9375, 0.0078125, -0.0078125]
    y[8:16] = x[8:16]  # equal numbers for the comparisons
    positive = [abs(value) for value in pick(1, 250, 16)]
    positive[:4] = [1.0, 0.0009765625, 1024.0, 0.0078125]
    inputs = {"x": x, "y": y, "positive": positive, "diff": pick(-40, 70, 32)}
    inputs["condition"] = [float(rng.randint(-1, 1)) for _ in range(count)]
    inputs = {name: torch.tensor(v, dtype=torch.float64) for name, v in inputs.items()}
    for name, tensor in inputs.items():
        assert torch.equal(tensor, tensor.bfloat16().double()), name
    return {name: tensor.reshape(DIMS) for name, tensor in inputs.items()}


def function(name, s, alpha, beta):
    """The result of an eltwise function."""
    functional = torch.nn.functional
    table = {
        "relu": lambda: functional.leaky_relu(s, alpha),
        "elu": lambda: functional.elu(s, alpha),
        "tanh": lambda: torch.tanh(s),
        "logistic": lambda: torch.sigmoid(s),
        "exp": lambda: torch.exp(s),
        "sqrt": lambda: torch.sqrt(s),
        "clip": lambda: torch.clamp(s, alpha, beta),
        "clip_v2": lambda: torch.clamp(s, alpha, beta),
        "abs": lambda: torch.abs(s),
        "square": lambda: torch.square(s),
        "linear": lambda: alpha * s + beta,
        "log": lambda: torch.log(s),
        "pow": lambda: alpha * torch.pow(s, beta),
        "round": lambda: torch.round(s),
        "soft_relu": lambda: functional.softplus(s, alpha, 1e9),
        "swish": lambda: functional.silu(s) if alpha == 1 else s * torch.sigmoid(alpha * s),
        "gelu_erf": lambda: functional.gelu(s),
        "gelu_tanh": lambda: functional.gelu(s, approximate="tanh"),
        "mish": lambda: functional.mish(s),
        "hardsigmoid": lambda: torch.clamp(alpha * s + beta, 0, 1),
        "hardswish": lambda: s * torch.clamp(alpha * s + beta, 0, 1),
    }
    return table[name]()


def single(number):
    """A number as the library gets it."""
    return float(torch.tensor(number, dtype=torch.float32))


def line(name, tensor):
    """A tensor as one line; repr gives the shortest digits that round-trip."""
    values = (repr(float(x)).removesuffix(".0") for x in tensor.detach().flatten())
    return f"{name} {' '.join(values)}\n"


def eltwise(inputs):
    """The cases of eltwise: dst and, except for round, diff_src."""
    text = ""
    for name, alpha, beta, source in ELTWISE:
        alpha, beta = single(alpha), single(beta)
        s = inputs[source].clone().requires_grad_()
        dst = function(name, s, alpha, beta)
        text += f"eltwise {name} {alpha!r} {beta!r} {source}\n" + line("dst", dst)
        if name != "round":
            dst.backward(inputs["diff"])
            text += line("diff_src", s.grad)
    return text


def eltwise_from_dst(inputs):
    """Gradients from dst: the rounded dst, and diff_src."""
    aten, diff, alpha = torch.ops.aten, inputs["diff"], 1.5
    text = ""
    for name in ("tanh", "logistic", "elu"):
        dst = function(name, inputs["x"], alpha, 0.0).float().double()
        if name == "tanh":
            diff_src = aten.tanh_backward(diff, dst)
        elif name == "logistic":
            diff_src = aten.sigmoid_backward(diff, dst)
        else:
            diff_src = aten.elu_backward(diff, alpha, 1, 1, True, dst)
        text += f"from_dst {name} {alpha!r}\n" + line("dst", dst) + line("diff_src", diff_src)
    return text


def softmax(inputs):
    """Softmax and its logarithm along each axis, of x and of x times 8: dst, and diff_src from the rounded dst."""
    aten, text = torch.ops.aten, ""
    for name in ("accurate", "log"):
        for axis in range(len(DIMS)):
            for factor in (1, 8):
                src = inputs["x"] * factor
                dst = torch.softmax(src, axis) if name == "accurate" else torch.log_softmax(src, axis)
                backward = aten._softmax_backward_data
                if name == "log":
                    backward = aten._log_softmax_backward_data
                rounded = dst.float().double()
                diff_src = backward(inputs["diff"], rounded, axis, torch.float64)
                text += f"softmax {name} {axis} {factor}\n" + line("dst", dst)
                text += line("diff_src", diff_src)
    return text


def binary(inputs):
    """The functions of two tensors; `row` has src1 only of the first index of the other dimensions."""
    text = ""
    for name in BINARY:
        for source in ("full", "row"):
            x, y = inputs["x"], inputs["y"]
            if source == "row":
                y = y[:1, :1]
            table = {"mul": torch.multiply, "div": torch.divide, "sub": torch.subtract}
            table.update({"max": torch.maximum, "min": torch.minimum, "add": torch.add})
            if name == "select":
                dst = torch.where(inputs["condition"] != 0, x, y)
            else:
                dst = (table.get(name) or getattr(torch, name))(x, y)
            text += f"binary {name} {source}\n" + line("dst", dst.double())
    return text


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
    text = f"# scripts/golden_elementwise.py, torch {torch.__version__}\n"
    text += "".join(line(name, tensor) for name, tensor in inputs.items())
    text += eltwise(inputs) + eltwise_from_dst(inputs) + softmax(inputs) + binary(inputs)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(text)


if __name__ == "__main__":
    main()
