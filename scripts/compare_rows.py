#!/usr/bin/env python3
"""Times rope, gated activation and softmax against PyTorch and ONNX Runtime, alternating in one process.

    python3 -m venv VENV && VENV/bin/pip install ./python numpy ml_dtypes torch onnx onnxruntime
    VENV/bin/python scripts/compare_rows.py --csv rows.csv

Data, threads and ratios are as in scripts/compare_frameworks.py: above 1 libnorm is faster. Libraries that are not
installed are skipped, and the output says so. Results are compared before timing.

rope     Heads of 128, half-split pairs, each row at its own position. libnorm computes the angles; PyTorch
         (x * cos + rotate_half(x) * sin, as in transformers) and ONNX Runtime (RotaryEmbedding) read tables.
swiglu   silu(gate) * up of two tensors; ONNX Runtime: QuickGelu and Mul, only f32. Backward computes both gradients;
         PyTorch's is autograd's.
softmax  Over the last dimension; backward from the result.

Exit status: 0 measured, 1 results differ, 2 something failed. Times do not affect it.
"""

import argparse
import csv
import math
import os
import pathlib
import statistics
import sys

SHAPES = ["1x4096", "16x8192", "32x4096", "128x1024", "257x768", "512x4096", "2048x8192", "4096x4096"]
OPERATIONS = ["rope", "swiglu", "swiglu backward", "softmax", "softmax backward"]
PEERS = ["torch", "torch.compile", "onnxruntime"]
HEAD = 128
REASONS = {}


class Case:
    """A problem of rows x cols; its arrays are f32 with values representable in the type."""

    def __init__(self, np, operation, dtype, shape):
        import frameworks
        import ml_dtypes

        self.np, self.operation, self.dtype, self.shape = np, operation, dtype, shape
        self.aligned = lambda array: frameworks.aligned(np, array)
        self.type = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "f16": np.float16}[dtype]
        random = np.random.default_rng(1)
        self.x, self.up, self.dy = (
            self.decode(self.encode(random.standard_normal(shape, dtype=np.float32))) for _ in range(3)
        )
        if operation == "softmax backward":
            e = np.exp(self.x - self.x.max(-1, keepdims=True))
            self.x = self.decode(self.encode(e / e.sum(-1, keepdims=True)))

    def encode(self, array):
        """Converts to the problem's type."""
        return self.aligned(array.astype(self.type))

    def decode(self, array):
        """Converts from the problem's type."""
        return self.aligned(array.astype(self.np.float32))

    def heads(self):
        """The dimensions of rope's tensors."""
        return self.shape[0], self.shape[1] // HEAD, HEAD

    def frequencies(self):
        """Radians per position."""
        return 10000.0 ** -(self.np.arange(0, HEAD, 2) / HEAD)

    def angles(self):
        """The angles of every position in f64."""
        return self.np.outer(self.np.arange(self.shape[0]), self.frequencies())


def of_libnorm(case):
    """This library: a call, and its result in f32."""
    import libnorm

    x, up, dy = map(case.encode, (case.x, case.up, case.dy))
    out = case.encode(case.np.zeros_like(case.x))
    kept = {}
    if case.operation == "rope":
        x, result = x.reshape(case.heads()), out.reshape(case.heads())
        positions = case.np.arange(case.shape[0], dtype=case.np.int64)[:, None]
        frequencies = case.frequencies()
        call = lambda: libnorm.rope(x, positions, frequencies, pairing="half_split", out=result)  # noqa: E731
    elif case.operation == "swiglu":
        call = lambda: libnorm.gated(x, up, out=out)  # noqa: E731
    elif case.operation == "swiglu backward":

        def call():
            kept["gradients"] = libnorm.gated_backward(dy, x, up)

        return call, lambda: case.decode(kept["gradients"][0])
    elif case.operation == "softmax":
        call = lambda: libnorm.softmax(x, out=out)  # noqa: E731
    else:
        call = lambda: libnorm.softmax_backward(dy, x, out=out)  # noqa: E731
    return call, lambda: case.decode(out)


def torch_functions(torch, case):
    """The operation in PyTorch, and its operands."""
    functional = torch.nn.functional
    dtype = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}[case.dtype]
    x, up, dy = (torch.from_numpy(array).to(dtype) for array in (case.x, case.up, case.dy))
    if case.operation == "rope":
        angles = torch.from_numpy(case.angles())
        cos, sin = (torch.cat([t, t], -1)[:, None].to(dtype) for t in (angles.cos(), angles.sin()))

        def rope(x, cos, sin):
            halves = torch.cat([-x[..., HEAD // 2 :], x[..., : HEAD // 2]], -1)
            return x * cos + halves * sin

        return rope, (x.reshape(case.heads()), cos, sin)
    if case.operation == "swiglu":
        return lambda gate, up: functional.silu(gate) * up, (x, up)
    if case.operation == "softmax":
        return lambda x: torch.softmax(x, -1), (x,)
    if case.operation == "softmax backward":
        return lambda dy, y: torch._softmax_backward_data(dy, y, -1, y.dtype), (dy, x)  # pylint: disable=W0212
    return None, (x, up, dy)


def of_torch(case, threads):
    """PyTorch, eager and compiled for the shape."""
    try:
        import torch
        import torch._functorch.config
    except ImportError as error:
        REASONS["torch"] = str(error)
        return
    torch.set_num_threads(threads)
    torch._functorch.config.donated_buffer = False
    function, operands = torch_functions(torch, case)

    def compiled(function):
        torch.compiler.reset()
        return torch.compile(function, dynamic=False)

    for name, wrap in (("torch", lambda f: f), ("torch.compile", compiled)):
        kept = {}
        if function is None:
            gate, up, dy = operands
            inputs = [gate.clone().requires_grad_(), up.clone().requires_grad_()]
            y = wrap(lambda gate, up: torch.nn.functional.silu(gate) * up)(*inputs)

            def call(y=y, inputs=inputs, kept=kept):
                kept["out"] = torch.autograd.grad(y, inputs, dy, retain_graph=True)[0]
        else:
            run = wrap(function)

            def call(run=run, kept=kept):
                with torch.no_grad():
                    kept["out"] = run(*operands)

        yield name, call, lambda kept=kept: kept["out"].float().numpy().reshape(case.shape)


def of_onnx_runtime(case, threads):
    """ONNX Runtime, with inputs and outputs bound."""
    if case.dtype == "bf16" or "backward" in case.operation or (case.operation == "swiglu" and case.dtype != "f32"):
        return
    try:
        import onnxruntime
        from onnx import TensorProto, helper
    except ImportError as error:
        REASONS["onnxruntime"] = str(error)
        return
    np, node = case.np, helper.make_node
    rows, cols = case.shape
    arrays, shape = {"x": case.encode(case.x)}, case.shape
    if case.operation == "rope":
        shape = (1, rows, cols)
        arrays["x"] = arrays["x"].reshape(shape)
        arrays["positions"] = np.arange(rows, dtype=np.int64)[None]
        arrays["cos"], arrays["sin"] = (case.encode(f(case.angles())) for f in (np.cos, np.sin))
        nodes = [node("RotaryEmbedding", list(arrays), ["y"], domain="com.microsoft", num_heads=cols // HEAD)]
    elif case.operation == "swiglu":
        arrays["up"] = case.encode(case.up)
        nodes = [
            node("QuickGelu", ["x"], ["gate"], domain="com.microsoft", alpha=1.0),
            node("Mul", ["gate", "up"], ["y"]),
        ]
    else:
        nodes = [node("Softmax", ["x"], ["y"], axis=-1)]
    kinds = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.float16): TensorProto.FLOAT16}
    kinds[np.dtype(np.int64)] = TensorProto.INT64
    tensors = [helper.make_tensor_value_info(name, kinds[a.dtype], a.shape) for name, a in arrays.items()]
    result = case.encode(np.zeros(shape, np.float32))
    output = helper.make_tensor_value_info("y", kinds[result.dtype], shape)
    domains = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(helper.make_graph(nodes, "rows", tensors, [output]), opset_imports=domains)
    model.ir_version = 10
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads, settings.log_severity_level = threads, 4
    value = onnxruntime.OrtValue.ortvalue_from_numpy
    try:
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), settings, providers=["CPUExecutionProvider"]
        )
        binding, values = session.io_binding(), {name: value(array) for name, array in arrays.items()}
        for name, bound in values.items():
            binding.bind_ortvalue_input(name, bound)
        binding.bind_ortvalue_output("y", value(result))
        session.run_with_iobinding(binding)
    except Exception as error:  # pylint: disable=broad-except
        REASONS[f"onnxruntime, {case.operation} in {case.dtype}"] = str(error).splitlines()[0]
        return
    # Captured by the closure, so that arrays and values stay alive.
    holds = (arrays, values)
    yield "onnxruntime", lambda: session.run_with_iobinding(binding), lambda: (
        holds and case.decode(result).reshape(case.shape)
    )


class Comparison:
    """The cells, and whether all results agree."""

    def __init__(self, threads, rounds):
        self.threads, self.rounds, self.wrong, self.cells = threads, rounds, False, []

    def row(self, case):
        """Our time, and the ratios of a case by peer."""
        import compare_frameworks

        ours, our_result = of_libnorm(case)
        ours()
        allowed, times, ratios = compare_frameworks.TOLERANCE[case.dtype], [], {}
        for peers in (of_torch, of_onnx_runtime):
            for name, theirs, their_result in peers(case, self.threads):
                theirs()
                if not case.np.allclose(our_result(), their_result(), rtol=allowed, atol=allowed):
                    apart = case.np.abs(our_result() - their_result()).max()
                    print(f"{case.operation}, {case.dtype}, {case.shape}: {name}'s result differs by {apart:.3g}")
                    self.wrong = True
                ratios[name], _, our_time = compare_frameworks.contest(ours, theirs, self.rounds)
                times.append(our_time)
        ours = statistics.median(times) if times else math.nan
        key = [*(case.operation + " forward").split()[:2], case.dtype, *case.shape]
        self.cells += [[*key, name, f"{ours:.4g}", f"{ratio:.4g}"] for name, ratio in ratios.items()]
        return ours, ratios

    def table(self, np, operation, dtype, shapes):
        """Prints the table of an operation in a type."""
        rows = {s: self.row(Case(np, operation, dtype, tuple(map(int, s.split("x"))))) for s in shapes}
        peers = [peer for peer in PEERS if any(peer in ratios for _, ratios in rows.values())]
        print(f"\n### {operation}, {dtype}, {self.threads} thread(s)\n")
        print(f"| rows x columns | libnorm, us | {' | '.join([*peers, 'best'])} |\n|{'---|' * (len(peers) + 3)}")
        for shape, (ours, ratios) in rows.items():
            cells = [f"{ratios[peer]:.2f}" if peer in ratios else "-" for peer in peers]
            print(f"| {shape} | {ours:.2f} | {' | '.join([*cells, f'{min(ratios.values()):.2f}'])} |")

        def mean(ratios):
            """The geometric mean."""
            return f"{math.exp(statistics.fmean(map(math.log, ratios))):.2f}"

        means = [mean([ratios[peer] for _, ratios in rows.values() if peer in ratios]) for peer in peers]
        means.append(mean([min(ratios.values()) for _, ratios in rows.values()]))
        print(f"| geometric mean | | {' | '.join(means)} |", flush=True)


def main():
    """Reads the options and prints a table per operation and type."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--operation", action="append", choices=OPERATIONS, help="default: all")
    parser.add_argument("--dt", action="append", choices=["f32", "bf16", "f16"], help="default: all")
    parser.add_argument("--shape", action="append", help="ROWSxCOLS, columns a multiple of 128 (default: eight)")
    parser.add_argument("--csv", type=pathlib.Path, help="write every cell to this file")
    arguments = parser.parse_args()
    import compare_frameworks

    settings = {**compare_frameworks.KEEP_MEMORY, "OMP_NUM_THREADS": str(arguments.threads)}
    if any(os.environ.get(name) != value for name, value in settings.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **settings})
    try:
        import numpy as np
    except ImportError:
        sys.exit("numpy is not installed")
    compare_frameworks.set_threads(arguments.threads)
    comparison = Comparison(arguments.threads, arguments.rounds)
    for operation in arguments.operation or OPERATIONS:
        for dtype in arguments.dt or ["f32", "bf16", "f16"]:
            comparison.table(np, operation, dtype, arguments.shape or SHAPES)
    for name, reason in REASONS.items():
        print(f"\n{name}: not compared: {reason}")
    if arguments.csv:
        with arguments.csv.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["operation", "direction", "type", "rows", "cols", "library", "libnorm_us", "ratio"])
            writer.writerows(comparison.cells)
    return 1 if comparison.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
