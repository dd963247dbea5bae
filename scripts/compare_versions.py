#!/usr/bin/env python3
"""Compares this tree with an earlier commit of it: the bits of the results, and the speed.

    cargo build --release -p benchdnn
    scripts/compare_versions.py 540724d --cpu 0,1

The commit is checked out and built in target/versions, once. Its digests (examples/digest) must all be among this
tree's. Then benchdnn runs its timing suites on both libraries, alternating in one process, on one thread and on two,
--repeats times, each time with new copies of the files. A ratio is the median of the ratios of adjacent samples, above
1 where this tree is faster; a cell is one problem. Printed are the geometric mean of each suite and direction, and the
cells that are below --limit in every repeat. Of some hundred cells, a few are there by chance, so these cells are
measured again, with five times the time; the second ratios are printed after the first. --csv writes all ratios.

Needs git and Python 3.9 or later. Run it with nothing else running.
Exit status: 0 the bits are the same, 1 they are not, 2 something failed. Times do not affect it.
"""

import argparse
import csv
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
# The suites, and the types that are compared if not all of a suite's.
SUITES = {
    "perf_llm": "f32,bf16,f16",
    "perf_narrow": "f32,bf16,f16",
    "perf_odd": "f32,bf16,f16",
    "perf_long": "f32,bf16,f16",
    "perf_types": None,
    "perf_chains": None,
}
FOLDER = ROOT / "benchdnn" / "inputs" / "lnorm"


def built(commit):
    """The release folder of a commit, built if it is not there yet."""
    from performance import run

    name = run(["git", "-C", ROOT, "rev-parse", "--short=7", f"{commit}^{{commit}}"]).strip()
    tree = ROOT / "target" / "versions" / name
    if not tree.exists():
        run(["git", "-C", ROOT, "worktree", "prune"])
        run(["git", "-C", ROOT, "worktree", "add", "--detach", tree, name])
    build(tree)
    return tree / "target" / "release"


def build(tree):
    """Builds the library and the example that prints digests."""
    command = ["cargo", "build", "--release", "--package", "libnorm", "--lib", "--example", "digest"]
    environment = {name: value for name, value in os.environ.items() if name != "CARGO_TARGET_DIR"}
    if subprocess.run(command, cwd=tree, env=environment, check=False).returncode != 0:
        print(f"{' '.join(command)} in {tree}: failed", file=sys.stderr)
        sys.exit(2)


def compare_digests(ours, theirs):
    """Prints the digests that differ. Returns whether there are none."""
    from performance import run

    here = set(run([ours / "examples" / "digest"]).splitlines())
    lines = run([theirs / "examples" / "digest"]).splitlines()
    missing = [line for line in lines if line not in here]
    for line in missing[:20]:
        print(f"another digest here: {line}")
    print(f"digests: {len(lines)} of the commit, {len(missing)} of them differ here")
    return bool(lines) and not missing


def ratios(arguments, library, problems, threads, max_ms):
    """The ratio of each problem of a batch file's text: maps direction and problem to it."""
    from performance import on_processors, run

    with tempfile.TemporaryDirectory() as folder:
        # Copies: how fast code runs may depend on the pages of memory that its file happens to occupy. Of a file and its
        # copy, one took 1.4 times as long as the other for RMSNorm of 1x1024.
        benchdnn = shutil.copy(arguments.benchdnn, folder)
        library = shutil.copy(library, folder)
        batch = pathlib.Path(folder, "problems")
        batch.write_text(problems + "\n", encoding="utf-8")
        command = on_processors(arguments, threads)
        command += [benchdnn, "--mode=P", f"--threads={threads}", f"--compare={library}"]
        command += [f"--max-ms-per-prb={max_ms}", "--perf-template=csv", f"--batch={batch}"]
        text = run(command)
    rows = csv.DictReader(line for line in text.splitlines() if line.count(",") > 10)
    own = f"--compare={library} "
    measured = [row for row in rows if row["ratio"]]
    return {(row["dir"], row["prb"].rpartition(own)[2]): float(row["ratio"]) for row in measured}


def repeated(arguments, library, problems, threads, max_ms):
    """The ratios of each problem in every repeat: maps direction and problem to them."""
    repeats = [ratios(arguments, library, problems, threads, max_ms) for _ in range(arguments.repeats)]
    return {key: [repeat[key] for repeat in repeats] for key in repeats[0]}


def measure(arguments, library):
    """Runs the suites and prints their means. Returns a line for each cell."""
    from performance import batch

    print(f"{'suite':12} {'threads':>7} {'direction':10} {'cells':>5} {'mean':>6} {'least':>6} below in all repeats")
    cells = []
    for threads in arguments.threads:
        for suite in arguments.suite or SUITES:
            problems = batch(FOLDER / suite, SUITES[suite])
            found = repeated(arguments, library, problems, threads, arguments.max_ms)
            below = [key for key, values in found.items() if max(values) < arguments.limit]
            again = {}
            if below:
                problems = "\n".join(f"--reset {problem}" for _, problem in below)
                again = repeated(arguments, library, problems, threads, 5 * arguments.max_ms)
            some = [(suite, threads, *key, values, again.get(key, [])) for key, values in found.items()]
            report(some, arguments.limit)
            cells += some
    return cells


def report(cells, limit):
    """Prints a line for each direction of a suite, and the cells that are below the limit in every repeat."""
    from performance import mean

    for forward in (True, False):
        some = [cell for cell in cells if cell[2].startswith("FWD") == forward]
        if not some:
            continue
        medians = [statistics.median(cell[4]) for cell in some]
        below = [cell for cell in some if max(cell[4]) < limit]
        suite, threads = some[0][:2]
        direction = "forward" if forward else "backward"
        print(
            f"{suite:12} {threads:7} {direction:10} {len(some):5} {mean(medians):6.3f} {min(medians):6.3f} {len(below)}"
        )
        for *_, problem, values, again in below:
            first, second = (" ".join(f"{value:.3f}" for value in ratios) for ratios in (values, again))
            print(f"    {first}, again {second} {problem}")
    sys.stdout.flush()


def options():
    """Reads the options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("commit", help="the earlier version")
    parser.add_argument("--cpu", help="processors: one thread runs on the first, two on the first two")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="default: 1 2")
    parser.add_argument("--suite", action="append", choices=SUITES, help="default: all of them")
    parser.add_argument("--repeats", type=int, default=3, help="default: 3")
    parser.add_argument("--max-ms", type=int, default=20, help="time per problem (default: 20)")
    parser.add_argument("--limit", type=float, default=0.95, help="default: 0.95")
    parser.add_argument("--csv", type=pathlib.Path, help="a file for the ratios of all cells")
    parser.add_argument("--no-digests", action="store_true", help="compare the speed only")
    arguments = parser.parse_args()
    arguments.benchdnn = ROOT / "target" / "release" / "benchdnn"
    return arguments


def main():
    """Builds the commit, compares the bits, then the speed."""
    arguments = options()
    theirs = built(arguments.commit)
    same = True
    if not arguments.no_digests:
        build(ROOT)
        same = compare_digests(ROOT / "target" / "release", theirs)
    cells = measure(arguments, theirs / "libnorm.so") if arguments.repeats else []
    if arguments.csv:
        with arguments.csv.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["suite", "threads", "direction", "problem", "ratios", "again"])
            texts = [[" ".join(f"{value:.4g}" for value in values) for values in cell[4:]] for cell in cells]
            writer.writerows([*cell[:4], *text] for cell, text in zip(cells, texts))
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
