#!/usr/bin/env python3
"""Counts the instructions per element of the kernels and compares them with the recorded counts.

    cargo build --release -p benchdnn
    scripts/instructions.py            # compares
    scripts/instructions.py --bless    # records

Each problem runs once under callgrind, which counts the instructions inside norm_primitive_execute(). Unlike
a time, a count does not depend on the load of the machine. callgrind cannot run AVX-512; loop_instructions.py
covers that level. A count is a guard, not a measure of speed: a faster kernel may execute more instructions,
and its new count is then recorded. Counts depend on the compiler. Needs valgrind and Python 3.9 or later.
Exit status: 0 within the tolerance, 1 above it, 2 something failed.
"""

import argparse
import csv
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECORD = ROOT / "scripts" / "instructions.csv"
# The tolerance, since compiler versions arrange loops a little differently.
SLACK = 0.08
PROBLEMS = [
    (isa, direction, dt, flags, shape)
    for isa in ("avx2", "portable")
    for direction, dt, flags, shape in (
        ("FWD_I", "f32", "CH", "64x1024"),
        ("FWD_I", "f32", "CM", "64x1024"),
        ("FWD_I", "bf16", "CH", "64x1024"),
        ("FWD_D", "f16", "CM", "64x1024"),
        ("FWD_I", "f32:bf16", "CH", "64x1024"),
        ("FWD_I", "f32", "CH", "1024x64"),
        ("FWD_I", "bf16", "CM", "1024x64"),
        ("BWD_DW", "f32", "CH", "64x1024"),
        ("BWD_DW", "bf16", "CM", "64x1024"),
        ("BWD_DW", "f32", "CH", "1024x64"),
    )
]


def count(benchdnn, problem):
    """Counts the instructions per element of one execution."""
    isa, direction, dt, flags, shape = problem
    command = [
        "valgrind",
        "--tool=callgrind",
        "--callgrind-out-file=/dev/null",
        "--toggle-collect=norm_primitive_execute",
        benchdnn,
        "--threads=1",
        "--mode=R",
        f"--cpu-isa={isa}",
        f"--dir={direction}",
        f"--dt={dt}",
        f"--flags={flags}",
        shape,
    ]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"Collected : (\d+)", result.stderr)
    if result.returncode != 0 or not found or int(found[1]) == 0:
        print(result.stdout, result.stderr, file=sys.stderr)
        sys.exit(2)
    rows, cols = map(int, shape.split("x"))
    return int(found[1]) / (rows * cols)


def main():
    """Reads the options, counts, and compares or records."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--benchdnn", default=ROOT / "target" / "release" / "benchdnn")
    parser.add_argument("--bless", action="store_true", help="record the counts")
    arguments = parser.parse_args()
    counted = {problem: count(arguments.benchdnn, problem) for problem in PROBLEMS}
    if arguments.bless:
        with RECORD.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["isa", "dir", "dt", "flags", "problem", "per element"])
            writer.writerows([*problem, f"{value:.3f}"] for problem, value in counted.items())
        return 0
    with RECORD.open(newline="") as file:
        record = {tuple(row[:5]): float(row[5]) for row in list(csv.reader(file))[1:]}
    above = 0
    for problem, value in counted.items():
        if problem not in record:
            sys.exit(f"{problem}: not recorded")
        known = record[problem]
        verdict = "more than recorded" if value > known * (1 + SLACK) else "ok"
        above += verdict != "ok"
        print(f"{' '.join(problem):40} {value:8.3f} recorded {known:8.3f} {verdict}")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
