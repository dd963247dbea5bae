#!/usr/bin/env python3
"""Runs benchdnn's timing suites against another library with oneDNN's C interface and prints tables.

    cargo build --release -p benchdnn
    python3 -m venv VENV && VENV/bin/pip install onednn-cpu-gomp==2023.2.0
    scripts/performance.py --compare VENV/lib/libdnnl.so.3

Each problem runs on both libraries by turns in one process; a cell is the geometric mean, over the shapes of
a suite, of the medians of the ratios of neighbouring samples, above 1 where this library is faster. Behind
it stand how many shapes were compared, and how many of them are below 1. What the other library does not
offer is counted, and left out. Needs Python 3.9 or later and nothing else.
Exit status: 0 measured, 2 something failed. What was measured never decides it.
"""

import argparse
import csv
import math
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SUITES = ["perf_llm", "perf_narrow", "perf_odd", "perf_long"]


def run(arguments, suite):
    """The rows of a suite's table, as dictionaries."""
    command = [
        arguments.benchdnn,
        "--mode=F",
        f"--threads={arguments.threads}",
        f"--compare={arguments.compare}",
        f"--max-ms-per-prb={arguments.max_ms}",
        "--perf-template=csv",
        f"--batch={ROOT / 'benchdnn' / 'inputs' / 'lnorm' / suite}",
    ]
    if arguments.cpu is not None:
        command = ["taskset", "-c", arguments.cpu, *command]
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: status {result.returncode}")
    lines = [line for line in result.stdout.splitlines() if line.count(",") > 10]
    return list(csv.DictReader(lines))


def tables(rows):
    """Problems that were compared, by direction, types and flags."""
    groups = {}
    for row in rows:
        if row["ratio"]:
            key = (row["dir"], row["dt"], row["flags"])
            groups.setdefault(key, []).append((float(row["ratio"]), row["desc"]))
    return groups


def main():
    """Reads the options, runs the suites and prints Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--compare", required=True, help="the other library")
    parser.add_argument("--benchdnn", default=ROOT / "target" / "release" / "benchdnn")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cpu", help="processors to stay on, as taskset takes them")
    parser.add_argument("--max-ms", type=int, default=20, help="per problem (default: 20)")
    parser.add_argument("--suite", action="append", choices=SUITES, help="default: all")
    arguments = parser.parse_args()
    for suite in arguments.suite or SUITES:
        rows = run(arguments, suite)
        print(f"### {suite}, {arguments.threads} thread(s)\n")
        print("| direction | types | flags | ratio | compared | below 1 | least |")
        print("|---|---|---|---|---|---|---|")
        for (direction, types, flags), cells in sorted(tables(rows).items()):
            mean = math.exp(sum(math.log(ratio) for ratio, _ in cells) / len(cells))
            least, shape = min(cells)
            below = sum(ratio < 1 for ratio, _ in cells)
            print(
                f"| {direction} | {types} | {flags} | {mean:.2f} | {len(cells)} | {below} "
                f"| {least:.2f} ({shape}) |"
            )
        print(flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
