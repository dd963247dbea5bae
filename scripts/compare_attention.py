#!/usr/bin/env python3
"""Times attention of libnorm against PyTorch and ONNX Runtime, alternating in one process.

    python3 -m venv VENV && VENV/bin/pip install ./python numpy ml_dtypes torch onnx onnxruntime
    VENV/bin/python scripts/compare_attention.py --threads 2

Libraries that are not installed are skipped, and the output says so. Every library gets the same numbers in the same
type, warm buffers and the same number of threads.

torch       scaled_dot_product_attention. Keys and values that several heads share are passed shared (enable_gqa) and,
            as another peer, repeated before the clock starts. In a decode the heads of a group are folded into
            queries, so that they share one pass over the keys. Windows are a bool mask. Backward is autograd's.
onnxruntime GroupQueryAttention, which also copies keys and values to its cache; in a decode it appends one token.
            Only forward, f32 and f16.

A ratio is the median of the ratios of adjacent samples, above 1 where libnorm is faster. Errors are against f64: the
RMS error of some rows, relative to the RMS of the rows; for backward, of the gradient of queries. With a window,
`pairs` is how many times fewer pairs of a query and a key there are than without, and `gain` how many times faster
libnorm is. `GB/s` is the size of a decode's cache over libnorm's time.
--csv writes every cell to a file. Exit status: 0 measured, 1 a result is wrong, 2 something failed. Times do not
affect it.
"""

import argparse
import csv
import math
import os
import pathlib
import platform
import statistics
import sys

GROUPS = ["prefill", "window", "decode", "backward"]
LENGTHS = {"prefill": [512, 2048, 8192], "decode": [1024, 8192], "backward": [512, 2048]}
WINDOWS = ["512:2048", "4096:8192"]
BATCHES = {"prefill": [1], "window": [1], "decode": [1, 8], "backward": [1]}
# The largest error against f64. A wrong mask gives about 1.
TOLERANCE = {"f32": 1e-4, "f16": 2e-2, "bf16": 1e-1}
# Rows that are also computed in f64.
SAMPLES = 24
REASONS = {}


class Case:
    """A problem: q, k, v and dy of heads x tokens x elements, in f32 with values representable in the type."""

    def __init__(self, np, group, dtype, batch, tokens, window, heads):
        import ml_dtypes

        self.np, self.group, self.dtype, self.window = np, group, dtype, window
        (self.heads, self.groups, self.size), self.batch, self.tokens = heads, batch, tokens
        self.type = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "f16": np.float16}[dtype]
        self.queries = 1 if group == "decode" else tokens
        random = np.random.default_rng(1)

        def numbers(count, rows):
            exact = random.standard_normal((batch, count, rows, self.size), dtype=np.float32)
            return np.ascontiguousarray(exact.astype(self.type))

        self.q, self.dy = (numbers(self.heads, self.queries) for _ in range(2))
        self.k, self.v = (numbers(self.groups, tokens) for _ in range(2))

    def seen(self, query):
        """The keys that a query sees: first and one past the last."""
        last = query + self.tokens - self.queries + 1
        return max(0, last - self.window) if self.window else 0, last

    def pairs(self):
        """How many times fewer pairs the window has."""
        window, tokens = self.window, self.tokens
        return tokens * (tokens + 1) / 2 / (window * (window + 1) / 2 + (tokens - window) * window)

    def expected(self):
        """Some queries, and their rows of the result, or of the gradient of queries, in f64."""
        np, random = self.np, self.np.random.default_rng(2)
        limits = (self.batch, self.heads, self.queries)
        places = [tuple(int(random.integers(limit)) for limit in limits) for _ in range(SAMPLES)]
        rows = []
        for b, h, i in places:
            own, seen = h // (self.heads // self.groups), slice(*self.seen(i))
            q, dy = (x[b, h, i].astype(np.float64) for x in (self.q, self.dy))
            k, v = (x[b, own, seen].astype(np.float64) for x in (self.k, self.v))
            score = k @ q / math.sqrt(self.size)
            p = np.exp(score - score.max())
            p /= p.sum()
            if self.group == "backward":
                of_p = v @ dy
                rows.append((p * (of_p - p @ of_p)) @ k / math.sqrt(self.size))
            else:
                rows.append(p @ v)
        return places, np.array(rows)

    def error(self, result, expected):
        """The error of a result with the shape of q."""
        places, rows = expected
        found = self.np.array([self.np.asarray(result[place], dtype=self.np.float64) for place in places])
        error = math.sqrt(((found - rows) ** 2).mean() / (rows**2).mean())
        return float(error) if math.isfinite(error) else math.inf


def of_libnorm(case, window=True):
    """This library."""
    import libnorm

    np, kept = case.np, {}
    options = {"causal": "bottom_right"}
    if case.window and window:
        options["window"] = ("with_self", case.window)
    q, k, v = case.q, case.k, case.v
    if case.group == "backward":
        y, lse = libnorm.attention(q, k, v, return_lse=True, **options)

        def call():
            kept["y"] = libnorm.attention_backward(case.dy, q, k, v, y, lse, **options)[0]
    else:
        kept["y"] = np.empty_like(q)

        def call():
            libnorm.attention(q, k, v, out=kept["y"], **options)

    return call, lambda: kept["y"]


def of_torch(case, threads):
    """PyTorch."""
    try:
        import torch
    except ImportError as error:
        REASONS["torch"] = str(error)
        return
    torch.set_num_threads(threads)
    np, function, kept = case.np, torch.nn.functional.scaled_dot_product_attention, {}
    dtype = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}[case.dtype]
    q, k, v, dy = (torch.from_numpy(x.astype(np.float32)).to(dtype) for x in (case.q, case.k, case.v, case.dy))
    share, shape = case.heads // case.groups, q.shape

    def result():
        return kept["y"].float().reshape(shape).numpy()

    if case.group == "decode":
        folded = q.reshape(case.batch, case.groups, share, case.size)

        @torch.no_grad()
        def decode():
            kept["y"] = function(folded, k, v)

        yield "torch", decode, result
        return
    options = {"is_causal": True}
    if case.window:
        i = torch.arange(case.tokens)
        seen = (i <= i[:, None]) & (i > i[:, None] - case.window)
        options = {"attn_mask": seen}
    peers = {"torch": (k, v, {"enable_gqa": True} if share > 1 else {})}
    if share > 1:
        peers["torch repeated"] = (*(x.repeat_interleave(share, 1) for x in (k, v)), {})
    for name, (keys, values, shared) in peers.items():
        if case.group == "backward":
            tensors = [x.detach().clone().requires_grad_() for x in (q, keys, values)]
            y = function(*tensors, **options, **shared)

            def call(y=y, tensors=tensors):
                kept["y"] = torch.autograd.grad(y, tensors, dy, retain_graph=True)[0]
        else:

            @torch.no_grad()
            def call(keys=keys, values=values, shared=shared):
                kept["y"] = function(q, keys, values, **options, **shared)

        yield name, call, result


def of_onnx_runtime(case, threads):
    """ONNX Runtime, with inputs and outputs bound."""
    if case.group == "backward" or case.dtype == "bf16":
        return
    try:
        import onnxruntime
        from onnx import TensorProto, helper
    except ImportError as error:
        REASONS["onnxruntime"] = str(error)
        return
    np, kind = case.np, {"f32": TensorProto.FLOAT, "f16": TensorProto.FLOAT16}[case.dtype]
    batch, decode = case.batch, case.group == "decode"

    def flat(x):
        """Reshapes to sequences x tokens x (heads and elements)."""
        return np.ascontiguousarray(x.swapaxes(1, 2)).reshape(batch, x.shape[2], -1)

    inputs = {"q": flat(case.q), "k": flat(case.k[:, :, -case.queries :]), "v": flat(case.v[:, :, -case.queries :])}
    cache = {"past_k": case.k.copy(), "past_v": case.v.copy()}
    numbers = {"last": np.full(batch, case.tokens - 1, np.int32), "total": np.array([case.tokens], np.int32)}
    names = [*inputs, *(cache if decode else ("", "")), *numbers]
    options = {"num_heads": case.heads, "kv_num_heads": case.groups, "local_window_size": case.window or -1}
    node = helper.make_node("GroupQueryAttention", names, ["y", "k1", "v1"], domain="com.microsoft", **options)
    tensor = helper.make_tensor_value_info
    given = {**inputs, **(cache if decode else {})}
    graph = helper.make_graph(
        [node],
        "attention",
        [tensor(name, kind, x.shape) for name, x in given.items()]
        + [tensor(name, TensorProto.INT32, x.shape) for name, x in numbers.items()],
        [tensor(name, kind, shape) for name, shape in
         (("y", inputs["q"].shape), ("k1", case.k.shape), ("v1", case.v.shape))],
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    )
    model.ir_version = 10
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = threads
    settings.log_severity_level = 4
    y = np.empty_like(inputs["q"])
    try:
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), settings, providers=["CPUExecutionProvider"]
        )
        binding = session.io_binding()
        values = {name: onnxruntime.OrtValue.ortvalue_from_numpy(x) for name, x in {**given, **numbers}.items()}
        for name, value in values.items():
            binding.bind_ortvalue_input(name, value)
        # A decode appends to the cache in place.
        for name, past, like in (("k1", "past_k", case.k), ("v1", "past_v", case.v)):
            values[name] = values[past] if decode else onnxruntime.OrtValue.ortvalue_from_numpy(like.copy())
            binding.bind_ortvalue_output(name, values[name])
        values["y"] = onnxruntime.OrtValue.ortvalue_from_numpy(y)
        binding.bind_ortvalue_output("y", values["y"])
        session.run_with_iobinding(binding)
    except Exception as error:  # pylint: disable=broad-except
        REASONS[f"onnxruntime, {case.group} in {case.dtype}"] = str(error).splitlines()[0]
        return

    def result():
        rows = values["y"].numpy().reshape(batch, case.queries, case.heads, case.size)
        return rows.swapaxes(1, 2)

    # Captured by the closure, so that arrays and values stay alive.
    holds = (given, numbers, values)
    yield "onnxruntime", lambda: session.run_with_iobinding(binding), lambda: holds and result()


PEERS = {"torch": of_torch, "onnxruntime": of_onnx_runtime}


def versions():
    """The versions of the libraries, and the machine."""
    import libnorm
    import numpy

    lines = [f"libnorm {libnorm.__version__} ({libnorm.get_cpu_isa()})", f"numpy {numpy.__version__}"]
    for name in PEERS:
        try:
            lines.append(f"{name} {__import__(name).__version__}")
        except ImportError:
            lines.append(f"{name}: not installed")
    return f"{', '.join(lines)}, Python {platform.python_version()}, {platform.processor() or platform.machine()}"


def run(case, arguments):
    """Measures a case. Returns a row: our time, and the ratio and error of every peer."""
    from compare_frameworks import contest, sample

    expected = case.expected()
    ours, our_result = of_libnorm(case)
    ours()
    our_error = case.error(our_result(), expected)
    wrong = our_error > TOLERANCE[case.dtype]
    times, cells = [], {}
    for name in arguments.peer or PEERS:
        for peer, theirs, their_result in PEERS[name](case, arguments.threads):
            theirs()
            error = case.error(their_result(), expected)
            ratio, _, our_time = contest(ours, theirs, arguments.rounds)
            times.append(our_time)
            cells[peer] = (ratio, error)
            wrong |= error > TOLERANCE[case.dtype]
    time = statistics.median(times) if times else 1e6 * statistics.median(
        sample(ours, 3e-4) for _ in range(arguments.rounds)
    )
    more = ""
    if case.group == "decode":
        more = f"{(case.k.nbytes + case.v.nbytes) / time / 1e3:.1f} GB/s"
    elif case.window:
        gain, _, _ = contest(ours, of_libnorm(case, window=False)[0], arguments.rounds)
        more = f"pairs {case.pairs():.2f}, gain {gain:.2f}"
    return time, our_error, cells, more, wrong


def problems(group, arguments):
    """Tokens and windows of a group."""
    if group == "window":
        for text in arguments.window or WINDOWS:
            window, tokens = map(int, text.split(":"))
            yield tokens, window
    else:
        for tokens in arguments.length or LENGTHS[group]:
            yield tokens, 0


def table(np, group, dtype, arguments, rows):
    """Prints the table of a group in a type. Returns whether a result is wrong."""
    heads = tuple(map(int, arguments.heads.split(":"))) + (arguments.size,)
    print(f"\n### {group}, {dtype}, {arguments.heads} heads of {arguments.size}, {arguments.threads} thread(s)\n")
    print("| batch | tokens | window | libnorm, us | error | peers: ratio (error) | |\n|---|---|---|---|---|---|---|")
    any_wrong = False
    for batch in arguments.batch or BATCHES[group]:
        for tokens, window in problems(group, arguments):
            case = Case(np, group, dtype, batch, tokens, window, heads)
            time, error, cells, more, wrong = run(case, arguments)
            peers = ", ".join(f"{name} {ratio:.2f} ({off:.1e})" for name, (ratio, off) in cells.items()) or "-"
            mark = " WRONG" if wrong else ""
            line = f"| {batch} | {tokens} | {window or '-'} | {time:.1f} | {error:.1e} | {peers} | {more}{mark} |"
            print(line, flush=True)
            for name, (ratio, off) in cells.items():
                rows.append([group, dtype, batch, tokens, window, name, f"{time:.5g}", f"{error:.3g}",
                             f"{ratio:.4g}", f"{off:.3g}"])
            any_wrong |= wrong
    return any_wrong


def main():
    """Reads the options and prints a table per group and type."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--group", action="append", choices=GROUPS, help="default: all")
    parser.add_argument("--dt", action="append", choices=TOLERANCE, help="default: all")
    parser.add_argument("--peer", action="append", choices=PEERS, help="default: all")
    parser.add_argument("--heads", default="32:8", help="of queries, and of keys (default: 32:8)")
    parser.add_argument("--size", type=int, default=128, help="elements of a head (default: 128)")
    parser.add_argument("--length", action="append", type=int, help="tokens (default: by group)")
    parser.add_argument("--window", action="append", help=f"KEYS:TOKENS (default: {' '.join(WINDOWS)})")
    parser.add_argument("--batch", action="append", type=int, help="sequences (default: 1; of decode 1 and 8)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--csv", type=pathlib.Path, help="write every cell to this file")
    arguments = parser.parse_args()
    # --help needs nothing but this file.
    from compare_frameworks import KEEP_MEMORY, set_threads

    settings = {**KEEP_MEMORY, "OMP_NUM_THREADS": str(arguments.threads)}
    if any(os.environ.get(name) != value for name, value in settings.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **settings})
    try:
        import ml_dtypes  # noqa: F401
        import numpy as np
    except ImportError as error:
        sys.exit(str(error))
    set_threads(arguments.threads)
    print(versions())
    rows, wrong = [], False
    for group in arguments.group or GROUPS:
        for dtype in arguments.dt or TOLERANCE:
            wrong |= table(np, group, dtype, arguments, rows)
    for name, reason in REASONS.items():
        print(f"\n{name}: not compared: {reason}")
    if arguments.csv:
        with arguments.csv.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["group", "type", "batch", "tokens", "window", "library", "libnorm_us", "libnorm_error",
                             "ratio", "error"])
            writer.writerows(rows)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
