#!/usr/bin/env python3
"""Times libnorm against PyTorch, ONNX Runtime, ggml and candle, alternating in one process.

    python3 -m venv VENV && VENV/bin/pip install ./python numpy ml_dtypes torch onnx onnxruntime
    cmake -S GGML -B GGML/build -DCMAKE_BUILD_TYPE=Release && cmake --build GGML/build --target ggml-cpu
    RUSTFLAGS=-Ctarget-cpu=native cargo build --release --manifest-path scripts/compare_candle/Cargo.toml
    VENV/bin/python scripts/compare_frameworks.py --ggml GGML/build/src \\
        --candle scripts/compare_candle/target/release/libcompare_candle.so

Libraries that are not installed are skipped, and the output says so. Every library gets the same data in the
same type, warm buffers and the same number of threads. All are called from Python, which adds a microsecond or
two per call; scripts/python_overhead.py measures libnorm's overhead. PyTorch and candle allocate their outputs;
glibc is set to keep freed memory, because large outputs would otherwise page-fault on every call. torch.compile
compiles for each shape. A ratio is the median of the ratios of adjacent samples, above 1 where libnorm is
faster. Results are compared before timing.
--csv writes every cell to a file (docs/performance/zen5-frameworks.csv is one).
Exit status: 0 measured, 1 results differ, 2 something failed. Times do not affect it.
"""

import argparse
import csv
import math
import os
import pathlib
import statistics
import sys
import time

SHAPES = ["1x4096", "4x4096", "32x4096", "128x1024", "257x768", "512x4096", "2048x8192", "4096x4096"]
# Whether RMS, whether backward, and what is computed around the norm.
OPERATIONS = {
    "layer_norm forward": (False, False, None),
    "rms_norm forward": (True, False, None),
    "layer_norm backward": (False, True, None),
    "rms_norm backward": (True, True, None),
    "add_layer_norm forward": (False, False, "residual"),
    "add_rms_norm forward": (True, False, "residual"),
    "rms_norm_quantized forward": (True, False, "quantized"),
}
PEERS = ["torch", "torch.compile", "onnxruntime", "ggml", "candle"]
EPSILON = 1e-5
# Absolute and relative tolerance: a few roundings to the type.
TOLERANCE = {"f32": 1e-4, "f16": 1e-2, "bf16": 6e-2}
KEEP_MEMORY = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(8 << 30),
    "MALLOC_TOP_PAD_": str(64 << 20),
    "MALLOC_ARENA_MAX": "1",
}


def sample(call, seconds):
    """The time of one execution, averaged over enough executions to measure."""
    count = 1
    while True:
        begin = time.perf_counter()
        for _ in range(count):
            call()
        taken = time.perf_counter() - begin
        if taken >= seconds:
            return taken / count
        count = max(2 * count, int(1.2 * count * seconds / max(taken, 1e-9)))


def contest(ours, theirs, rounds):
    """The median of the ratios, and both medians in microseconds."""
    pairs = []
    for _ in range(rounds):
        pairs.append((sample(theirs, 3e-4), sample(ours, 3e-4)))
    ratio = statistics.median(a / b for a, b in pairs)
    return ratio, *(1e6 * statistics.median(times) for times in zip(*pairs))


def set_threads(threads):
    """Sets libnorm's threads."""
    try:
        import libnorm
    except ImportError:
        sys.exit("libnorm is not installed: pip install ./python")
    libnorm.set_num_threads(threads)


class Comparison:
    """The libraries and their results."""

    def __init__(self, arguments):
        self.threads, self.rounds, self.wrong = arguments.threads, arguments.rounds, False
        set_threads(arguments.threads)
        self.ggml = frameworks.load_ggml(arguments.ggml) if arguments.ggml else None
        self.candle = frameworks.load_candle(arguments.candle) if arguments.candle else None
        for name, given in (("ggml", arguments.ggml), ("candle", arguments.candle)):
            if not given:
                frameworks.REASONS[name] = f"no --{name}"
        # Cells by peer: the ratio, operation and type, shape.
        self.all = {}
        # The same, as lines of --csv.
        self.rows = []

    def others(self, case):
        """The peers that support a case."""
        yield from frameworks.of_torch(case, self.threads)
        yield from frameworks.of_onnx_runtime(case, self.threads)
        yield from frameworks.of_ggml(case, self.threads, self.ggml)
        yield from frameworks.of_candle(case, self.candle)

    def row(self, np, operation, dtype, shape):
        """Our time, and the ratios of a shape by peer."""
        dims = tuple(map(int, shape.split("x")))
        case = frameworks.Case(np, OPERATIONS[operation], dtype, dims, EPSILON)
        ours, our_result = frameworks.of_libnorm(case)
        ours()
        times, ratios = [], {}
        for name, theirs, their_result in self.others(case):
            theirs()
            # Quantized values may be one step apart, a 127th of the largest.
            allowed = TOLERANCE[dtype] + (0.05 if operation.startswith("rms_norm_quantized") else 0)
            if not np.allclose(our_result(), their_result(), rtol=allowed, atol=allowed):
                apart = np.abs(our_result() - their_result()).max()
                print(f"{operation}, {dtype}, {shape}: {name}'s result differs by {apart:.3g}")
                self.wrong = True
            ratios[name], _, our_time = contest(ours, theirs, self.rounds)
            times.append(our_time)
            self.rows.append([*operation.split(), dtype, *dims, name, f"{our_time:.4g}", f"{ratios[name]:.4g}"])
            cell = (ratios[name], f"{operation}, {dtype}", shape)
            self.all.setdefault(name, []).append(cell)
        return statistics.median(times) if times else math.nan, ratios

    def table(self, np, operation, dtype, shapes):
        """Prints the table of an operation in a type."""
        rows = {shape: self.row(np, operation, dtype, shape) for shape in shapes}
        peers = [peer for peer in PEERS if any(peer in ratios for _, ratios in rows.values())]
        print(f"\n### {operation}, {dtype}, {self.threads} thread(s)\n")
        print(f"| rows x columns | libnorm, us | {' | '.join(peers)} |\n|{'---|' * (len(peers) + 2)}")
        for shape, (ours, ratios) in rows.items():
            cells = (f"{ratios[peer]:.2f}" if peer in ratios else "-" for peer in peers)
            print(f"| {shape} | {ours:.2f} | {' | '.join(cells)} |")
        means = []
        for peer in peers:
            known = [ratios[peer] for _, ratios in rows.values() if peer in ratios]
            means.append(f"{math.exp(statistics.fmean(map(math.log, known))):.2f}")
        print(f"| geometric mean | | {' | '.join(means)} |", flush=True)

    def end(self):
        """Prints the geometric means over all operations and types: shapes down, peers across."""
        peers = [peer for peer in PEERS if peer in self.all]

        def line(name, field):
            """A row of the table."""
            print(f"| {name} | {' | '.join(field(self.all[peer]) for peer in peers)} |")

        def mean(cells):
            """The geometric mean."""
            ratios = [ratio for ratio, _, _ in cells]
            return f"{math.exp(statistics.fmean(map(math.log, ratios))):.2f}" if ratios else "-"

        print(f"\n### All operations and types, {self.threads} thread(s)\n")
        print(f"| rows x columns | {' | '.join(peers)} |\n|{'---|' * (len(peers) + 1)}")
        for shape in dict.fromkeys(shape for cells in self.all.values() for _, _, shape in cells):
            line(shape, lambda cells, shape=shape: mean([cell for cell in cells if cell[2] == shape]))
        line("geometric mean", mean)
        line("cells", lambda cells: str(len(cells)))
        line("below 1.2", lambda cells: str(sum(ratio < 1.2 for ratio, _, _ in cells)))
        line("least", lambda cells: "{:.2f} ({}, {})".format(*min(cells)))
        for name, reason in frameworks.REASONS.items():
            print(f"\n{name}: not compared: {reason}")


def main():
    """Reads the options and prints a table per operation and type."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ggml", help="folder with libggml-base.so and libggml-cpu.so")
    parser.add_argument("--candle", help="libcompare_candle.so")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--operation", action="append", choices=OPERATIONS, help="default: all")
    parser.add_argument("--dt", action="append", choices=TOLERANCE, help="default: all")
    parser.add_argument("--shape", action="append", help="ROWSxCOLS (default: eight shapes)")
    parser.add_argument("--csv", type=pathlib.Path, help="write every cell to this file")
    arguments = parser.parse_args()
    # --help needs nothing but this file.
    global frameworks
    import frameworks

    settings = {
        **KEEP_MEMORY,
        "OMP_NUM_THREADS": str(arguments.threads),
        "RAYON_NUM_THREADS": str(arguments.threads),
    }
    if any(os.environ.get(name) != value for name, value in settings.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **settings})
    try:
        import numpy as np
    except ImportError:
        sys.exit("numpy is not installed")
    comparison = Comparison(arguments)
    for operation in arguments.operation or OPERATIONS:
        for dtype in arguments.dt or TOLERANCE:
            comparison.table(np, operation, dtype, arguments.shape or SHAPES)
    comparison.end()
    if arguments.csv:
        with arguments.csv.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["operation", "direction", "type", "rows", "cols", "library", "libnorm_us", "ratio"])
            writer.writerows(comparison.rows)
    return 1 if comparison.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
