#!/usr/bin/env python3
"""Runs benchdnn's timing suites against another library with oneDNN's C interface: tables and pictures.

    cargo build --release -p benchdnn
    scripts/performance.py --compare LIBDNNL --out FOLDER --cpu 0,1

One run measures all of docs/performance.md that is about oneDNN: the suites on one thread and on two, and
those of f32 with both libraries held to AVX2 on one. Each problem runs on both libraries and as a plain copy
by turns in one process; a ratio is the median of the ratios of neighbouring samples, above 1 where this
library is faster, a share is the copy's time over the problem's. FOLDER gets

    groups.md    geometric means by suite and size, and how many cells miss a bound
    tables.md    the same by direction, types and flags
    cells.md     every cell
    *.svg        ratio and share by rows and columns; times by size
    *.csv        what was measured, a file a suite

What the other library does not offer is counted, and left out of ratios. --redraw makes all of it anew from
the CSV files, without measuring. Needs Python 3.9 or later and nothing else.
Exit status: 0 measured, 2 something failed. What was measured never decides it.
"""

import argparse
import csv
import math
import os
import pathlib
import subprocess
import sys
import tempfile

import pictures

ROOT = pathlib.Path(__file__).resolve().parent.parent
SUITES = ["perf_llm", "perf_narrow", "perf_odd", "perf_long"]
# Name, threads, level, and the types of the suites that are run, if not all.
RUNS = [("1 thread", 1, None, None), ("2 threads", 2, None, None), ("1 thread, avx2", 1, "avx2", "f32")]
SIZES = {"f32": 4, "bf16": 2, "f16": 2}
MIB = 1 << 20


def batch(suite, types):
    """The lines of a suite, which is a name or a path, with other types if any are given."""
    path = pathlib.Path(suite)
    if suite in SUITES:
        path = ROOT / "benchdnn" / "inputs" / "lnorm" / suite
    lines = path.read_text(encoding="utf-8").splitlines()
    return "\n".join(f"--dt={types}" if types and line.startswith("--dt=") else line for line in lines)


def measure(arguments, suite, threads, level, types):
    """The CSV that benchdnn prints of a suite."""
    compare, isa = arguments.compare, []
    if level:
        compare, isa = f"{compare},ONEDNN_MAX_CPU_ISA={level.upper()}", [f"--cpu-isa={level}"]
    command = [arguments.benchdnn, "--mode=F", f"--threads={threads}", f"--compare={compare}", *isa]
    command += ["--roofline", f"--max-ms-per-prb={arguments.max_ms}", "--perf-template=csv"]
    if arguments.cpu is not None:
        processors = ",".join(arguments.cpu.split(",")[:threads])
        command = ["taskset", "-c", processors, *command]
    with tempfile.NamedTemporaryFile("w", suffix=".batch", encoding="utf-8") as file:
        file.write(batch(suite, types) + "\n")
        file.flush()
        command.append(f"--batch={file.name}")
        folders = [str(pathlib.Path(arguments.compare).resolve().parent)]
        folders += filter(None, [os.environ.get("LD_LIBRARY_PATH")])
        environment = {**os.environ, "LD_LIBRARY_PATH": ":".join(folders)}
        result = subprocess.run(
            command, stdout=subprocess.PIPE, text=True, check=False, env=environment
        )
    if result.returncode != 0:
        print(f"{' '.join(map(str, command))}: status {result.returncode}", file=sys.stderr)
        sys.exit(2)
    return "".join(f"{line}\n" for line in result.stdout.splitlines() if line.count(",") > 10)


def cells_of(path):
    """A file's problems as cells."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    cells = []
    for row in rows:
        *outer, cols = map(int, row["desc"].split("x"))
        src, _, dst = row["dt"].partition(":")
        elements, forward = math.prod(outer) * cols, row["dir"].startswith("FWD")
        into, out = elements * SIZES[src], elements * SIZES[dst or src]

        def number(name, row=row):
            return float(row[name]) if row[name] else None

        cells.append(
            {
                "rows": math.prod(outer),
                "cols": cols,
                "forward": forward,
                "types": row["dt"],
                "key": (row["dir"], row["dt"], row["flags"]),
                "bytes": into + out if forward else 2 * into + out,
                "written": out if forward else into,
                "ours": number("median_time"),
                "theirs": number("median_peer_time"),
                "limit": number("median_copy_time"),
                "ratio": number("ratio"),
                "share": number("roof"),
            }
        )
    return cells


def mean(numbers):
    """The geometric mean."""
    return math.exp(sum(map(math.log, numbers)) / len(numbers))


def measured(cells, name):
    """A value of the cells that have it."""
    return [cell[name] for cell in cells if cell[name] is not None]


# What is asked of the cells of a group: a name, the suite, which cells, and whether one is good enough.
GROUPS = [
    ("forward", "perf_llm", lambda c: c["forward"], "ratio 1", lambda c: c["ratio"] >= 1),
    (
        "forward, 1 and 4 rows",
        "perf_llm",
        lambda c: c["forward"] and c["rows"] <= 4,
        "ratio 3 or share 0.85",
        lambda c: c["ratio"] >= 3 or c["share"] >= 0.85,
    ),
    (
        "forward, dst past 32 MiB",
        "perf_llm",
        lambda c: c["forward"] and c["written"] >= 32 * MIB,
        "share 0.9",
        lambda c: c["share"] >= 0.9,
    ),
    (
        "forward, f32, in the second-level cache",
        "perf_llm",
        lambda c: c["forward"] and c["types"] == "f32" and MIB // 8 <= c["bytes"] <= MIB,
        "share 0.85",
        lambda c: c["share"] >= 0.85,
    ),
    (
        "forward, bf16 and f16, in the second-level cache",
        "perf_llm",
        lambda c: c["forward"] and c["types"] in ("bf16", "f16") and MIB // 8 <= c["bytes"] <= MIB,
        "ratio 1.15",
        lambda c: c["ratio"] >= 1.15,
    ),
    ("backward", "perf_llm", lambda c: not c["forward"], "ratio 1.3", lambda c: c["ratio"] >= 1.3),
    (
        "backward, diff_src past 32 MiB",
        "perf_llm",
        lambda c: not c["forward"] and c["written"] >= 32 * MIB,
        "share 0.85",
        lambda c: c["share"] >= 0.85,
    ),
    *(
        (
            name,
            suite,
            lambda c, forward=forward: c["forward"] == forward,
            "ratio 1",
            lambda c: c["ratio"] >= 1,
        )
        for suite in ("perf_narrow", "perf_odd", "perf_long")
        for name, forward in (("forward", True), ("backward", False))
    ),
]


def write_groups(file, run, suites):
    """A line per group of cells."""
    print(f"\n### {run}\n", file=file)
    print("| suite | cells | compared | ratio | least | share | least | below their bound |", file=file)
    print(f"{'|---' * 8}|", file=file)
    for name, suite, belongs, bound, good in GROUPS:
        cells = [cell for cell in suites.get(suite, []) if belongs(cell)]
        if not cells:
            continue
        fields, known = [], cells
        for value in ("ratio", "share"):
            numbers = measured(cells, value)
            fields += [f"{mean(numbers):.2f} | {min(numbers):.2f}" if numbers else "- | -"]
            if value in bound:
                known = [cell for cell in known if cell[value] is not None]
        compared = len(measured(cells, "ratio"))
        missed = sum(not good(cell) for cell in known)
        print(
            f"| {suite}: {name} | {len(cells)} | {compared} | {' | '.join(fields)} "
            f"| {missed} of {len(known)} ({bound}) |",
            file=file,
        )


def by_key(cells):
    """The cells of each direction, types and flags."""
    groups = {}
    for cell in cells:
        groups.setdefault(cell["key"], []).append(cell)
    return sorted(groups.items())


def write_tables(file, title, cells):
    """A line per direction, types and flags."""
    print(f"\n### {title}\n\n{len(cells)} problems.\n", file=file)
    print("| direction | types | flags | ratio | compared | below 1 | least | share |", file=file)
    print(f"{'|---' * 8}|", file=file)
    for key, group in by_key(cells):
        compared, shares = [cell for cell in group if cell["ratio"]], measured(group, "share")
        share = f"{mean(shares):.2f}" if shares else "-"
        ratios = "- | 0 | - | -"
        if compared:
            least = min(compared, key=lambda cell: cell["ratio"])
            below = sum(cell["ratio"] < 1 for cell in compared)
            ratios = (
                f"{mean(measured(compared, 'ratio')):.2f} | {len(compared)} | {below} "
                f"| {least['ratio']:.2f} ({least['rows']}x{least['cols']})"
            )
        print(f"| {' | '.join(key)} | {ratios} | {share} |", file=file)


def write_cells(file, title, cells):
    """Every cell of a suite: ratio and share of the limit, rows down and columns across."""
    for key, group in by_key(cells):
        print(f"\n### {title}: {', '.join(key)}\n", file=file)
        place = {(cell["rows"], cell["cols"]): said(cell) for cell in group}
        if pictures.is_grid(group):
            across = sorted({cols for _, cols in place})
            print(f"| rows | {' | '.join(map(str, across))} |", file=file)
            print(f"{'|---' * (len(across) + 1)}|", file=file)
            for rows in sorted({rows for rows, _ in place}):
                print(f"| {rows} | {' | '.join(place[rows, cols] for cols in across)} |", file=file)
        else:
            print(f"| {' | '.join(f'{rows}x{cols}' for rows, cols in place)} |", file=file)
            print(f"{'|---' * len(place)}|\n| {' | '.join(place.values())} |", file=file)


def said(cell):
    """`1.25 (0.80)`: the ratio, and the share of the limit."""
    ratio, share = (f"{cell[name]:.2f}" if cell[name] else "-" for name in ("ratio", "share"))
    return f"{ratio} ({share})"


def draw(folder, title, cells):
    """The pictures of a suite, per direction, types and flags."""
    for key, group in by_key(cells):
        heading = f"{title}: {' '.join(key)}"
        name = heading.replace(": ", "-").replace(", ", "-").replace(":", "-").replace(" ", "-")
        drawn = {"times": pictures.times(heading, group)}
        if pictures.is_grid(group):
            drawn["cells"] = pictures.maps(heading, group)
        for kind, text in drawn.items():
            (folder / f"{name}-{kind}.svg").write_text(text, encoding="utf-8")


def report(folder, suites):
    """Tables and pictures of what lies in the folder."""
    with (
        (folder / "groups.md").open("w", encoding="utf-8") as groups,
        (folder / "tables.md").open("w", encoding="utf-8") as tables,
        (folder / "cells.md").open("w", encoding="utf-8") as every,
    ):
        for run, _, _, _ in RUNS:
            known = {}
            for suite in suites:
                path = folder / file_name(suite, run)
                if path.exists():
                    known[pathlib.Path(suite).name] = cells = cells_of(path)
                    title = f"{pathlib.Path(suite).name}, {run}"
                    write_tables(tables, title, cells)
                    write_cells(every, title, cells)
                    draw(folder, title, cells)
            if known:
                write_groups(groups, run, known)
    print((folder / "groups.md").read_text(encoding="utf-8"), end="")


def file_name(suite, run):
    """The CSV of a suite in one of the runs."""
    return f"{pathlib.Path(suite).name}-{run.replace(', ', '-').replace(' ', '-')}.csv"


def main():
    """Reads the options, runs the suites, writes tables and pictures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--compare", help="the other library")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder for what comes of it")
    parser.add_argument("--benchdnn", default=ROOT / "target" / "release" / "benchdnn")
    parser.add_argument("--cpu", help="processors: one thread runs on the first, two on the first two")
    parser.add_argument("--max-ms", type=int, default=20, help="per problem (default: 20)")
    parser.add_argument("--suite", action="append", help="a name or a file (default: all four)")
    names = [run for run, _, _, _ in RUNS]
    parser.add_argument("--run", action="append", choices=names, help="default: all of these")
    parser.add_argument("--redraw", action="store_true", help="from the CSV files, without measuring")
    arguments = parser.parse_args()
    suites = arguments.suite or SUITES
    arguments.out.mkdir(parents=True, exist_ok=True)
    if not arguments.redraw:
        if not arguments.compare:
            parser.error("--compare is needed")
        for run, threads, level, types in RUNS:
            if run in (arguments.run or names):
                for suite in suites:
                    text = measure(arguments, suite, threads, level, types)
                    (arguments.out / file_name(suite, run)).write_text(text, encoding="utf-8")
                    print(f"{suite}, {run}: {text.count(chr(10)) - 1} problems", flush=True)
    report(arguments.out, suites)
    return 0


if __name__ == "__main__":
    sys.exit(main())
