#!/usr/bin/env python3
"""Times libnorm against a plain copy and against oneDNN 3.2, taking turns in one process.

Builds compare_onednn.c with the system's C compiler and runs it on one processor with one thread:

    cargo build --release
    python3 -m venv VENV && VENV/bin/pip install onednn-cpu-gomp==2023.2.0
    scripts/compare_onednn.py --venv VENV

Without the wheel only the copies are compared. Needs Python 3.9 or later and nothing else.
Exit status: 0 measured or skipped, 1 the libraries' results differ, 2 something failed. What was
measured never decides it.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
WHEEL = "onednn-cpu-gomp==2023.2.0"


def newest_build():
    """The shared library of the last release build, or None."""
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    library = target / "release" / "libnorm.so"
    return library if library.exists() else None


def find_theirs(venv):
    """libdnnl.so.3 in a virtual environment, or None."""
    found = sorted(pathlib.Path(venv).rglob("libdnnl.so.3"))
    return found[0] if found else None


def main():
    """Reads the options, builds the C program and runs it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--venv", help=f"a virtual environment with {WHEEL}")
    parser.add_argument("--ours", type=pathlib.Path, help="libnorm.so (default: the release build)")
    parser.add_argument("--rounds", type=int, default=200, help="alternations (default: 200)")
    parser.add_argument("--cpu", type=int, help="processor to stay on (default: the last allowed)")
    parser.add_argument(
        "--null-test",
        action="store_true",
        help="oneDNN against itself: how far from 1 the ratios are when nothing differs",
    )
    arguments = parser.parse_args()

    theirs = find_theirs(arguments.venv) if arguments.venv else None
    if theirs is None:
        print(f"oneDNN: skipped; `pip install {WHEEL}` in a virtual environment and give --venv")
        if arguments.null_test:
            return 0
    ours = theirs if arguments.null_test else arguments.ours or newest_build()
    if ours is None:
        print("no libnorm.so: run `cargo build --release` or give --ours", file=sys.stderr)
        return 2
    compiler = os.environ.get("CC") or shutil.which("cc") or "gcc"
    cpu = max(os.sched_getaffinity(0)) if arguments.cpu is None else arguments.cpu
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "compare_onednn"
        subprocess.run(
            [compiler, "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror"]
            + ["-I", ROOT / "include", HERE / "compare_onednn.c", "-o", program, "-ldl", "-lm"],
            check=True,
        )
        command = [program, str(cpu), str(arguments.rounds), ours.resolve()]
        command += ["dnnl" if arguments.null_test else "norm"]
        if theirs:
            command += [theirs, "dnnl"]
        return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
