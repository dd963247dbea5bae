#!/usr/bin/env python3
"""Counts the instructions per element of the kernels and compares them with those on record.

    cargo build --release -p benchdnn
    scripts/instructions.py            # compares
    scripts/instructions.py --bless    # records

Each problem is executed once under callgrind, which counts what norm_primitive_execute() comes to. Unlike a
time, a count does not depend on what else the machine does. callgrind does not run AVX-512, so that level is
left to loop_instructions.py. A count is a guard, not a measure of speed: what makes a kernel faster may take
more instructions, and is then recorded. Needs valgrind, Python 3.9 or later and nothing else; another
compiler makes other counts.
Exit status: 0 within the slack, 1 above it, 2 something failed.
"""

import argparse
import csv
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECORD = ROOT / "scripts" / "instructions.csv"
# What may be above the record: other versions of the compiler arrange loops a little differently.
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
    """Instructions per element of one execution."""
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
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--benchdnn", default=ROOT / "target" / "release" / "benchdnn")
    parser.add_argument("--bless", action="store_true", help="record what is counted")
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
            sys.exit(f"{problem}: not on record")
        known = record[problem]
        verdict = "more than recorded" if value > known * (1 + SLACK) else "ok"
        above += verdict != "ok"
        print(f"{' '.join(problem):40} {value:8.3f} recorded {known:8.3f} {verdict}")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
