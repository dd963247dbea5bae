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


def write_cells(file, title, groups):
    """Every cell of a suite: a table per direction, types and flags, rows down and columns across."""
    for (direction, types, flags), cells in sorted(groups.items()):
        ratios = {tuple(map(int, shape.split("x"))): ratio for ratio, shape in cells}
        grid = len(ratios) == len({r for r, _ in ratios}) * len({c for _, c in ratios})
        print(f"\n### {title}: {direction}, {types}, {flags}\n", file=file)
        if grid:
            across = sorted({cols for _, cols in ratios})
            print(f"| rows | {' | '.join(map(str, across))} |\n|{'---|' * (len(across) + 1)}", file=file)
            for rows in sorted({rows for rows, _ in ratios}):
                values = (f"{ratios[rows, cols]:.2f}" for cols in across)
                print(f"| {rows} | {' | '.join(values)} |", file=file)
        else:
            print(f"| {' | '.join(f'{r}x{c}' for r, c in ratios)} |\n|{'---|' * len(ratios)}", file=file)
            print(f"| {' | '.join(f'{ratio:.2f}' for ratio in ratios.values())} |", file=file)


def colour(ratio):
    """Red below 1, white at 1, blue above; full at a factor of 3."""
    share = max(-1.0, min(1.0, math.log(ratio) / math.log(3)))
    other = round(255 * (1 - abs(share)))
    return f"rgb(255,{other},{other})" if share < 0 else f"rgb({other},{other},255)"


def draw(folder, title, groups):
    """A heat map of the ratios by rows and columns, per direction, types and flags, as SVG."""
    for (direction, types, flags), cells in sorted(groups.items()):
        ratios = {tuple(map(int, shape.split("x"))): ratio for ratio, shape in cells}
        across, down = sorted({c for _, c in ratios}), sorted({r for r, _ in ratios})
        width, height = 70 * len(across) + 90, 30 * len(down) + 60
        heading = f"{title}: {direction} {types} {flags}"
        text = "font-family='sans-serif' font-size='13' text-anchor='middle'"
        parts = [
            f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}'>",
            f"<rect width='{width}' height='{height}' fill='white'/>",
            f"<text x='{width / 2}' y='18' {text}>{heading}</text>",
        ]
        for i, cols in enumerate(across):
            parts.append(f"<text x='{115 + 70 * i}' y='42' {text}>{cols}</text>")
        for j, rows in enumerate(down):
            parts.append(f"<text x='40' y='{70 + 30 * j}' {text}>{rows}</text>")
            for i, cols in enumerate(across):
                ratio = ratios.get((rows, cols))
                if ratio is not None:
                    box = f"x='{80 + 70 * i}' y='{50 + 30 * j}' width='70' height='30'"
                    parts.append(f"<rect {box} fill='{colour(ratio)}' stroke='grey'/>")
                    parts.append(f"<text x='{115 + 70 * i}' y='{70 + 30 * j}' {text}>{ratio:.2f}</text>")
        name = f"{title.split(',', maxsplit=1)[0]}-{direction}-{types.replace(':', '-')}-{flags}.svg"
        path = pathlib.Path(folder) / name
        path.write_text("\n".join([*parts, "</svg>", ""]), encoding="utf-8")


def main():
    """Reads the options, runs the suites and prints Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--compare", required=True, help="the other library")
    parser.add_argument("--benchdnn", default=ROOT / "target" / "release" / "benchdnn")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cpu", help="processors to stay on, as taskset takes them")
    parser.add_argument("--max-ms", type=int, default=20, help="per problem (default: 20)")
    parser.add_argument("--cells", help="a Markdown file that gets every cell")
    parser.add_argument("--pictures", help="a folder that gets a heat map per table of cells")
    parser.add_argument("--suite", action="append", choices=SUITES, help="default: all")
    arguments = parser.parse_args()
    for suite in arguments.suite or SUITES:
        rows = run(arguments, suite)
        title = f"{suite}, {arguments.threads} thread(s)"
        if arguments.cells:
            with open(arguments.cells, "a", encoding="utf-8") as file:
                write_cells(file, title, tables(rows))
        if arguments.pictures:
            draw(arguments.pictures, title, tables(rows))
        print(f"### {title}\n\n{len(rows)} problems.\n")
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
