#!/usr/bin/env python3
"""Compares the Python package's functions and their parameters with the recorded ones.

The functions are those of the stubs python/package/libnorm/*.pyi, which python/tests compares with
the module. tests/symbols/python.txt records for each one what every call must pass, what it returns, and
every parameter with its position or as a keyword, and its default. norm-sys/tests/compatibility.rs
compares that list with the last release's.

    scripts/python_names.py

Needs Python 3.9 or later. Exit status: 0 the record agrees, 1 it does not. --bless writes the record.
"""

import argparse
import ast
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
STUBS = ROOT / "python" / "package" / "libnorm"
RECORD = ROOT / "tests" / "symbols" / "python.txt"


def fields(classes, name):
    """The fields of a class and of its bases."""
    if name not in classes:
        return []
    own = [node.target.id for node in classes[name].body if isinstance(node, ast.AnnAssign)]
    return own + [field for base in classes[name].bases for field in fields(classes, ast.unparse(base))]


def signature(name, function, classes):
    """The lines of a function, whose ** parameter is Unpack[class]."""
    arguments = function.args
    positional = arguments.posonlyargs + arguments.args
    if positional and positional[0].arg in ("self", "cls"):
        positional = positional[1:]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + arguments.defaults
    # Without its name if it cannot be passed by it.
    parameters = [
        (str(number) if p in arguments.posonlyargs else f"{number} {p.arg}", p.arg, default)
        for number, (p, default) in enumerate(zip(positional, defaults), 1)
    ]
    keywords = zip(arguments.kwonlyargs, arguments.kw_defaults)
    parameters += [(f"keyword {p.arg}", p.arg, default) for p, default in keywords]
    required = ", ".join(own for _, own, default in parameters if default is None)
    yield f"{name}({required}) -> {ast.unparse(function.returns)}"
    for place, own, default in parameters:
        yield f"{name}: {place}"
        if default is not None:
            yield f"{name}: {own} = {ast.unparse(default)}"
    if arguments.kwarg:
        options = fields(classes, ast.unparse(arguments.kwarg.annotation.slice))
        yield from (f"{name}: keyword {option}" for option in options)


def names(text):
    """The lines that the record should have."""
    body = ast.parse(text).body
    classes = {node.name: node for node in body if isinstance(node, ast.ClassDef)}
    found = set()
    for node in body:
        if isinstance(node, ast.FunctionDef):
            found.update(signature(node.name, node, classes))
        elif isinstance(node, ast.AnnAssign):
            found.add(node.target.id)
    methods = [node for node in classes["KvCache"].body if isinstance(node, ast.FunctionDef)]
    for method in methods:
        found.update(signature(f"KvCache.{method.name}", method, classes))
    return found


def main():
    """Compares the record with the stub."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bless", action="store_true", help="write the record")
    arguments = parser.parse_args()
    stubs = [stub.read_text(encoding="utf-8") for stub in sorted(STUBS.glob("*.pyi"))]
    present = names("\n".join(stubs))
    if arguments.bless:
        RECORD.write_text("".join(f"{line}\n" for line in sorted(present)))
    recorded = set(RECORD.read_text().splitlines())
    problems = [f"not recorded: {line}" for line in sorted(present - recorded)]
    problems += [f"only recorded: {line}" for line in sorted(recorded - present)]
    print("\n".join(problems + [f"lines about the Python package: {len(present)}"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
