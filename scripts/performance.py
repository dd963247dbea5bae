#!/usr/bin/env python3
"""Times benchdnn's suites against another library with oneDNN's C interface.

    cargo build --release -p benchdnn
    scripts/performance.py --compare LIBDNNL --out FOLDER --cpu 0,1

One run measures everything about oneDNN in docs/performance.md: the suites on one thread, on two, and
in f32 with both libraries capped at AVX2. Each problem runs on both libraries and as a plain copy, alternating
in one process. A ratio is the median of the ratios of adjacent samples, above 1 where this library is
faster; a share is the copy's time over the problem's. With --separate each library runs in its own process, and
the two processes alternate, so worker threads left spinning by one library cannot slow down the other. There is
no copy then. The files in FOLDER:

    MACHINE-RUN.csv          every cell; MACHINE comes from --machine
    MACHINE-RUN-summary.csv  geometric means by suite, direction, types and flags
    MACHINE-*.svg            heat maps by rows and columns, times by size (with matplotlib installed)

A problem that the other library does not support has no ratio. --redraw makes new summaries and pictures from the
cells. Needs Python 3.9 or later and, for --separate, a C compiler.
Exit status: 0 measured, 2 something failed. Times do not affect it.
"""

import argparse
import csv
import itertools
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
SUITES = ["perf_llm", "perf_narrow", "perf_odd", "perf_long"]
# Name, threads, level, and the types if they differ from the suite's.
RUNS = [("1-thread", 1, None, None), ("2-threads", 2, None, None), ("1-thread-avx2", 1, "avx2", "f32")]
KEYS = ["suite", "direction", "types", "flags", "rows", "cols"]
VALUES = ["ratio", "share", "ours_ms", "theirs_ms", "copy_ms"]
SIZES = {"f32": 4, "bf16": 2, "f16": 2}
MIB = 1 << 20
# The length of a --separate sample in seconds, and the number of rounds per problem.
SAMPLE, FEWEST_ROUNDS = 200e-6, 9


def batch(suite, types):
    """The lines of a suite, given by name or path, with its types replaced if any are given."""
    path = pathlib.Path(suite)
    if suite in SUITES:
        path = ROOT / "benchdnn" / "inputs" / "lnorm" / suite
    lines = path.read_text(encoding="utf-8").splitlines()
    return "\n".join(f"--dt={types}" if types and line.startswith("--dt=") else line for line in lines)


def run(command, environment=None):
    """The output of a program. Ends the script if the program fails."""
    result = subprocess.run(
        list(map(str, command)), stdout=subprocess.PIPE, text=True, check=False, env=environment
    )
    if result.returncode != 0:
        print(f"{' '.join(map(str, command))}: status {result.returncode}", file=sys.stderr)
        sys.exit(2)
    return result.stdout


def on_processors(arguments, threads):
    """The command that pins the rest of a command line to processors."""
    if arguments.cpu is None:
        return []
    return ["taskset", "-c", ",".join(arguments.cpu.split(",")[:threads])]


def library_environment(library, **more):
    """The environment with the library's folder on the loader's path."""
    folders = [str(pathlib.Path(library).resolve().parent)]
    folders += filter(None, [os.environ.get("LD_LIBRARY_PATH")])
    return {**os.environ, "LD_LIBRARY_PATH": ":".join(folders), **more}


def cell_of(suite, direction, types, flags, shape, values):
    """The cell of a problem, from its measured values."""
    *outer, cols = map(int, shape.split("x"))
    key = dict(zip(KEYS, (suite, direction, types, flags, math.prod(outer), cols)))
    return {**key, **{name: values.get(name) for name in VALUES}}


def measure_together(arguments, suite, threads, level, types):
    """Measures a suite's cells with benchdnn: both libraries and the copy in one process."""
    compare, isa = arguments.compare, []
    if level:
        compare, isa = f"{compare},ONEDNN_MAX_CPU_ISA={level.upper()}", [f"--cpu-isa={level}"]
    command = on_processors(arguments, threads)
    command += [arguments.benchdnn, "--mode=F", f"--threads={threads}", f"--compare={compare}", *isa]
    command += ["--roofline", f"--max-ms-per-prb={arguments.max_ms}", "--perf-template=csv"]
    with tempfile.NamedTemporaryFile("w", suffix=".batch", encoding="utf-8") as file:
        file.write(batch(suite, types) + "\n")
        file.flush()
        text = run([*command, f"--batch={file.name}"], library_environment(arguments.compare))
    rows = csv.DictReader(line for line in text.splitlines() if line.count(",") > 10)
    columns = ("ratio", "roof", "median_time", "median_peer_time", "median_copy_time")
    cells = []
    for row in rows:
        values = {n: float(row[c]) for n, c in zip(VALUES, columns) if row[c]}
        cells.append(cell_of(name_of(suite), row["dir"], row["dt"], row["flags"], row["desc"], values))
    return cells


class Worker:
    """A process that times one library; see time_library.c."""

    def __init__(self, program, arguments, library, prefix, threads, level):
        environment = {"OMP_NUM_THREADS": str(threads), "NORM_NUM_THREADS": str(threads)}
        if level:
            environment |= {"NORM_MAX_CPU_ISA": level, "ONEDNN_MAX_CPU_ISA": level.upper()}
        self.process = subprocess.Popen(
            [*on_processors(arguments, threads), program, str(library), prefix],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=library_environment(library, **environment),
        )

    def ask(self, command):
        """Sends a command. Returns the answer."""
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if not answer:
            print(f"time_library ended at: {command}", file=sys.stderr)
            sys.exit(2)
        return answer

    def settle(self):
        """Waits until every thread of the process sleeps, at most 50 ms: OpenMP's threads spin for some
        milliseconds after each execution."""
        deadline = time.perf_counter() + 50e-3
        while time.perf_counter() < deadline:
            states = pathlib.Path(f"/proc/{self.process.pid}/task").glob("*/stat")
            if all(state.read_text().rpartition(")")[2].split()[0] != "R" for state in states):
                return

    def end(self):
        """Ends the process."""
        self.process.stdin.close()
        self.process.wait()


def problems_of(arguments, suite, types):
    """Direction, types, flags and shape of each problem, as benchdnn lists them."""
    with tempfile.NamedTemporaryFile("w", suffix=".batch", encoding="utf-8") as file:
        file.write(batch(suite, types) + "\n")
        file.flush()
        text = run([arguments.benchdnn, "--mode=L", "--canonical=true", f"--batch={file.name}"])
    for line in re.findall(r"__REPRO: (.*)", text):
        options = dict(re.findall(r"--(\w+)=(\S*)", line))
        yield options["dir"], options["dt"], options["flags"], line.split()[-1]


def measure_separately(arguments, suite, threads, level, types):
    """Measures a suite's cells, each library in its own process."""
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "time_library"
        source = ROOT / "scripts" / "time_library.c"
        compiler = os.environ.get("CC", "cc")
        include = ROOT / "include"
        run([compiler, "-std=gnu11", "-O2", "-I", include, source, "-o", program, "-ldl"])
        libraries = [(arguments.ours, "norm"), (arguments.compare, arguments.prefix)]
        workers = [Worker(program, arguments, *library, threads, level) for library in libraries]
        cells = []
        for problem in problems_of(arguments, suite, types):
            values = alternate(workers, *problem, arguments.max_ms)
            cells.append(cell_of(name_of(suite), *problem, values))
        for worker in workers:
            worker.end()
    return cells


def alternate(workers, direction, types, flags, shape, max_ms):
    """The values of a problem, from samples of the workers. The first worker changes in each round."""
    src, _, dst = types.partition(":")
    rows, _, cols = shape.partition("x")
    command = f"problem {direction} {src} {dst or src} {flags or '-'} {rows} {cols}"
    ready = [worker.ask(command) == "ready" for worker in workers]
    if not all(ready):
        return {}
    sample, pairs, spent = f"sample {SAMPLE}", [], 0.0
    while len(pairs) < FEWEST_ROUNDS or spent < max_ms / 1e3:
        order = workers if len(pairs) % 2 == 0 else workers[::-1]
        taken = {}
        for worker in order:
            for other in workers:
                other.settle()
            taken[worker] = float(worker.ask(sample))
        pairs.append([taken[worker] for worker in workers])
        spent += 2 * SAMPLE + sum(pairs[-1])
    ours, theirs = (1e3 * statistics.median(times) for times in zip(*pairs))
    ratio = statistics.median(theirs / ours for ours, theirs in pairs)
    return {"ratio": ratio, "ours_ms": ours, "theirs_ms": theirs}


def write_cells(path, cells):
    """Writes the cells as a table."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(KEYS + VALUES)
        for cell in cells:
            numbers = ("" if cell[v] is None else f"{cell[v]:.4g}" for v in VALUES)
            writer.writerow([*(cell[key] for key in KEYS), *numbers])


def read_cells(path):
    """Reads the cells of a table and adds what their shapes imply."""
    cells = []
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            cell = {key: row[key] for key in KEYS}
            cell |= {name: float(row[name]) if row.get(name) else None for name in VALUES}
            cell["rows"], cell["cols"] = int(cell["rows"]), int(cell["cols"])
            cell["forward"] = cell["direction"].startswith("FWD")
            src, _, dst = cell["types"].partition(":")
            elements = cell["rows"] * cell["cols"]
            read, written = elements * SIZES[src], elements * SIZES[dst or src]
            cell["bytes"] = read + written if cell["forward"] else 2 * read + written
            cell["written"] = written if cell["forward"] else read
            cells.append(cell)
    return cells


def mean(numbers):
    """The geometric mean."""
    return math.exp(sum(map(math.log, numbers)) / len(numbers))


# Parts of perf_llm that docs/performance.md mentions: the name, and which cells.
PARTS = [
    ("forward, 1 and 4 rows", lambda c: c["forward"] and c["rows"] <= 4),
    ("forward, dst of 32 MiB or more", lambda c: c["forward"] and c["written"] >= 32 * MIB),
    (
        "forward, f32, 128 KiB to 1 MiB",
        lambda c: c["forward"] and c["types"] == "f32" and MIB // 8 <= c["bytes"] <= MIB,
    ),
    (
        "forward, bf16 and f16, 128 KiB to 1 MiB",
        lambda c: c["forward"] and c["types"] in ("bf16", "f16") and MIB // 8 <= c["bytes"] <= MIB,
    ),
    ("backward, diff_src of 32 MiB or more", lambda c: not c["forward"] and c["written"] >= 32 * MIB),
]


def summary_line(suite, selection, cells):
    """A line with the geometric means of some cells."""
    ratios = [cell for cell in cells if cell["ratio"] is not None]
    shares = [cell["share"] for cell in cells if cell["share"] is not None]
    line = [suite, selection, len(cells), len(ratios)]
    if ratios:
        least = min(ratios, key=lambda cell: cell["ratio"])
        below = sum(cell["ratio"] < 1 for cell in ratios)
        line += [f"{mean([c['ratio'] for c in ratios]):.2f}", below, f"{least['ratio']:.2f}"]
        line += [f"{least['rows']}x{least['cols']}"]
    else:
        line += ["", "", "", ""]
    return line + [f"{mean(shares):.2f}" if shares else ""]


SUMMARY = ["suite", "selection", "cells", "compared", "ratio", "below_1", "least", "at", "share"]


def summary(cells):
    """The lines of a summary: by suite and direction, by part, and by direction, types and flags."""
    lines = []
    suites = list(dict.fromkeys(cell["suite"] for cell in cells))
    for suite, forward in itertools.product(suites, (True, False)):
        some = [c for c in cells if c["suite"] == suite and c["forward"] == forward]
        if some:
            lines.append(summary_line(suite, "forward" if forward else "backward", some))
    for name, belongs in PARTS:
        some = [cell for cell in cells if cell["suite"] == "perf_llm" and belongs(cell)]
        if some:
            lines.append(summary_line("perf_llm", name, some))
    general = len(lines)
    lines += [summary_line(suite, " ".join(key), some) for suite, key, some in by_key(cells)]
    return lines, general


def by_key(cells):
    """The cells of each suite, direction, types and flags."""
    groups = {}
    for cell in cells:
        key = (cell["direction"], cell["types"], cell["flags"])
        groups.setdefault((cell["suite"], key), []).append(cell)
    return [(suite, key, some) for (suite, key), some in groups.items()]


def report(arguments, name):
    """Writes the summary and the pictures of a run whose cells are in the folder."""
    stem = f"{arguments.machine}-{name}"
    cells = read_cells(arguments.out / f"{stem}.csv")
    lines, general = summary(cells)
    with (arguments.out / f"{stem}-summary.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([SUMMARY, *lines])
    print(f"\n{stem}")
    for line in [SUMMARY, *lines[:general]]:
        print("{:12} {:40} {:>6} {:>8} {:>6} {:>8} {:>6} {:>14} {:>6}".format(*map(str, line)))
    if arguments.no_pictures:
        return
    try:
        import pictures
    except ImportError as error:
        print(f"no pictures: {error}")
        return
    for suite, key, some in by_key(cells):
        title = f"{suite}, {name}: {' '.join(key)}"
        file = "-".join([arguments.machine, suite, name, *key]).replace(":", "-")
        if arguments.picture and not any(part in file for part in arguments.picture):
            continue
        pictures.times(arguments.out / f"{file}-times.svg", title, some)
        if pictures.is_grid(some):
            pictures.maps(arguments.out / f"{file}-cells.svg", title, some)


def name_of(suite):
    """The name of a suite, which may be given by its path."""
    return pathlib.Path(suite).name


def options():
    """Reads and checks the options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--compare", help="the other library")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="the folder for the results")
    parser.add_argument("--machine", default="this", help="prefix of the file names")
    parser.add_argument("--cpu", help="processors: one thread runs on the first, two on the first two")
    parser.add_argument("--max-ms", type=int, default=20, help="time per problem (default: 20)")
    parser.add_argument("--suite", action="append", help="a name or a file (default: all four)")
    names = [name for name, *_ in RUNS]
    parser.add_argument("--run", action="append", choices=names, help="default: all of them")
    parser.add_argument("--separate", action="store_true", help="each library in its own process")
    parser.add_argument("--prefix", default="dnnl", help="prefix of the other library's functions, for --separate")
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
    parser.add_argument("--benchdnn", default=target / "benchdnn")
    parser.add_argument("--ours", default=target / "libnorm.so", help="this library, for --separate")
    parser.add_argument("--redraw", action="store_true", help="redraw from the cells, without measuring")
    parser.add_argument("--no-pictures", action="store_true")
    parser.add_argument("--picture", action="append", help="only pictures whose name contains this")
    arguments = parser.parse_args()
    if not (arguments.redraw or arguments.compare):
        parser.error("--compare is needed")
    return arguments


def main():
    """Runs the suites and writes tables and pictures."""
    arguments = options()
    arguments.out.mkdir(parents=True, exist_ok=True)
    measure = measure_separately if arguments.separate else measure_together
    for name, threads, level, types in RUNS:
        if arguments.run and name not in arguments.run:
            continue
        stem = name + ("-separate" if arguments.separate else "")
        path = arguments.out / f"{arguments.machine}-{stem}.csv"
        if not arguments.redraw:
            cells = []
            for suite in arguments.suite or SUITES:
                cells += measure(arguments, suite, threads, level, types)
                print(f"{name_of(suite)}, {stem}: {len(cells)} problems so far", flush=True)
            write_cells(path, cells)
        if path.exists():
            report(arguments, stem)
    return 0


if __name__ == "__main__":
    sys.exit(main())
