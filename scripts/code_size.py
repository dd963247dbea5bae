#!/usr/bin/env python3
"""Counts the kernel entries of libnorm.so and their bytes, and compares them with the recorded numbers.

    cargo build --release -p benchdnn
    scripts/code_size.py            # compares
    scripts/code_size.py --bless    # records

An entry is a function `entry_<level>` that `entry_points!` makes: a kernel for one combination of types and
parameters. A row of the record is an operation (or a shared folder), a kernel and a level; the last row is the
section .text. The number of entries must not exceed the recorded one, because every build pays for one more combination.
Bytes may grow by the tolerance and shrink freely. The numbers do not depend on the machine's load, but on the
compiler and the architecture; the recorded ones are from the toolchain in rust-toolchain.toml on x86_64. Needs
binutils and Python 3.9 or later.
Exit status: 0 within the tolerance, 1 not, 2 something failed.
"""

import argparse
import csv
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECORD = ROOT / "scripts" / "code_size.csv"
TITLES = ["operation", "kernel", "level", "entries", "bytes"]
# The tolerance for the bytes of a row, since a small change of a shared function moves them a little.
SLACK = 0.05
TEXT = ("", ".text", "")
# The path of the module, the name of the module of entries, the level.
ENTRY = re.compile(r"norm(?:\[[0-9a-f]+\])?::([\w:]+)::(\w*entries)::(\w+)::entry_\3(?:::<.*>)?$")


def run(*command):
    """The output of a program."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        print(getattr(error, "stderr", "") or error, file=sys.stderr)
        sys.exit(2)


def row_of(symbol):
    """The operation, kernel and level of an entry; None for other symbols."""
    found = ENTRY.match(symbol)
    if not found:
        return None
    path, entries, level = found.groups()
    operation, _, kernel = path.removeprefix("ops::").partition("::")
    # A module may have several kernels.
    kernel += "" if entries == "entries" else f"::{entries}"
    return operation, kernel, level


def count(library):
    """Counts entries and bytes by operation, kernel and level, and the size of .text."""
    counted = {}
    for line in run("nm", "-C", "-S", "--defined-only", library).splitlines():
        words = line.split(maxsplit=3)
        row = row_of(words[-1]) if len(words) == 4 else None
        if row:
            entries, size = counted.get(row, (0, 0))
            counted[row] = entries + 1, size + int(words[1], 16)
    if not counted:
        sys.exit(f"{library}: no kernel entries; is it stripped?")
    counted = dict(sorted(counted.items()))
    text = re.search(r"^\.text\s+(\d+)", run("size", "-A", library), re.MULTILINE)
    total = sum(entries for entries, _ in counted.values())
    counted[TEXT] = total, int(text[1])
    return counted


def verdict(now, then):
    """What is wrong with a row; empty if nothing is."""
    if not now or not then:
        return "not recorded" if now else "recorded, but not in the library"
    # Fewer may be two identical kernels in one unit of compilation, where the compiler merges them.
    if now[0] > then[0]:
        return f"more than the {then[0]} entries recorded"
    return f"more than the {then[1]} bytes recorded" if now[1] > then[1] * (1 + SLACK) else ""


def main():
    """Reads the options, counts, and compares or records."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--library", default=ROOT / "target" / "release" / "deps" / "libnorm.so")
    parser.add_argument("--bless", action="store_true", help="record the numbers")
    arguments = parser.parse_args()
    counted = count(arguments.library)
    if arguments.bless:
        with RECORD.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(TITLES)
            writer.writerows([*row, *numbers] for row, numbers in counted.items())
        return 0
    with RECORD.open(newline="", encoding="utf-8") as file:
        record = {tuple(row[:3]): (int(row[3]), int(row[4])) for row in list(csv.reader(file))[1:]}
    wrong = 0
    for row in [*counted, *(row for row in record if row not in counted)]:
        numbers = counted.get(row)
        said = verdict(numbers, record.get(row))
        wrong += bool(said)
        entries, size = numbers or (0, 0)
        print(f"{' '.join(filter(None, row)):50} {entries:4} entries {size:8} bytes {said or 'ok'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
