#!/usr/bin/env python3
"""Compares include/norm.h with the headers of an installed oneDNN.

Everything that both declare (norm_x and dnnl_x, NORM_X and DNNL_X) must agree: the value of every
enumerator and argument id, the prototype of every function, the layout of every struct. Values that
only libnorm has must lie outside oneDNN's range: argument ids from 0x40000000, other enumerators
from 0x01000000.

    python3 -m venv VENV && VENV/bin/pip install onednn-devel==2026.1.0
    scripts/check_enumerators.py VENV/include

Needs Python 3.9 or later and a C compiler. Exit status: 0 they agree, 1 they do not, 2 the check
could not run.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
THEIRS = "#include <oneapi/dnnl/dnnl.h>\n#include <oneapi/dnnl/dnnl_debug.h>\n"
OURS = '#include "norm.h"\n'

# A macro without a value, and a count.
NO_VALUES = {"NORM_API", "NORM_REMEDIES"}
VERSIONS = {"NORM_VERSION_MAJOR", "NORM_VERSION_MINOR", "NORM_VERSION_PATCH"}
# oneDNN has these values, but their names are not public.
PUBLIC_HERE_ONLY = {"norm_blocked"}
PUBLIC_HERE_ONLY |= {f"norm_attn_mask_{kind}" for kind in ("undef", "buffer", "top_left", "bottom_right")}
PUBLIC_HERE_ONLY |= {f"NORM_ARG_{name}" for name in ("QUERIES", "KEYS", "VALUES", "ATTN_MASK")}
PUBLIC_HERE_ONLY |= {f"NORM_ARG_DIFF_{name}" for name in ("QUERIES", "KEYS", "VALUES", "ATTN_MASK")}
OWN_ARGUMENTS = 0x40000000
OWN_ENUMERATORS = 0x01000000


def theirs(name):
    """oneDNN's spelling of one of libnorm's names."""
    return re.sub(r"^(const_)?norm_", r"\1dnnl_", re.sub(r"^NORM_", "DNNL_", name))


def rename(text):
    """C source with libnorm's names replaced by oneDNN's."""
    return re.sub(r"\b(?:const_)?(?:norm|NORM)_\w+", lambda match: theirs(match[0]), text)


class Compiler:
    """The C compiler with both include directories."""

    def __init__(self, include):
        self.command = [os.environ.get("CC") or shutil.which("cc") or "gcc", "-std=c11"]
        self.command += ["-I", str(include), "-I", str(ROOT / "include")]

    def run(self, text, *options):
        """Compiles a source text from standard input."""
        return subprocess.run(
            self.command + [*options, "-x", "c", "-"],
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )

    def preprocess(self, text, *options):
        """The text with includes expanded and comments removed."""
        done = self.run(text, "-E", "-P", *options)
        if done.returncode:
            raise RuntimeError(done.stderr)
        return done.stdout

    def values(self, names):
        """The numeric value of each expression."""
        text = "#include <stddef.h>\n#include <stdint.h>\n#include <stdio.h>\n"
        text += f"{THEIRS}{OURS}int main(void) {{\n"
        for name in names:
            text += f'    printf("%lld\\n", (long long)(intptr_t)({name}));\n'
        text += "    return 0;\n}\n"
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "values")
            done = self.run(text, "-o", program)
            if done.returncode:
                raise RuntimeError(done.stderr)
            output = subprocess.run([program], capture_output=True, text=True, check=True).stdout
        return dict(zip(names, map(int, output.split())))


def enumerators(text):
    """The names in the bodies of all enums."""
    names = []
    for body in re.findall(r"\benum\b[^{;]*\{(.*?)\}", text, re.S):
        names += re.findall(r"(?:^|,)\s*(\w+)", body)
    return names


def macros(text, prefix):
    """The names of object-like macros that have a value."""
    return re.findall(rf"^#define ({prefix}_\w+) \S", text, re.M)


def functions(text, prefix):
    """{name: declaration} of the functions whose name begins with the prefix."""
    text = re.sub(r"__attribute__\s*\(\(.*?\)\)\)", "", text)
    start, result = r"(?:^|[;{}])\s*", r"(?:const\s+)?\w[\w\s*]*?\b"
    pattern = rf"{start}({result}({prefix}_\w+)\s*\([^;{{}}]*\))\s*(?=;)"
    return {
        match[2]: " ".join(match[1].split())
        for match in re.finditer(pattern, text, re.S)
        if not match[1].startswith("typedef")
    }


def structs(text, prefix):
    """{type name: members} of the structs that have a body."""
    found = {}
    for body, name in re.findall(r"typedef struct\s*\w*\s*\{([^{}]*)\}\s*(\w+)\s*;", text, re.S):
        if name.startswith(prefix):
            found[name] = re.findall(r"(\w+)\s*(?:\[[^]]*\])?\s*;", body)
    return found


def check_values(compiler, our_text, their_text):
    """The mismatches among enumerators and macros, and the number of shared ones."""
    our_macros = set(macros(compiler.preprocess(OURS, "-dM"), "NORM")) - NO_VALUES
    our_names = enumerators(our_text) + sorted(our_macros)
    their_macros = macros(compiler.preprocess(THEIRS, "-dM"), "DNNL")
    their_names = set(enumerators(their_text)) | set(their_macros)
    shared = [n for n in our_names if theirs(n) in their_names and n not in VERSIONS]
    value = compiler.values(our_names + [theirs(n) for n in shared])
    problems = [
        f"{n} is {value[n]:#x}, {theirs(n)} is {value[theirs(n)]:#x}"
        for n in shared
        if value[n] != value[theirs(n)]
    ]
    for name in sorted(set(our_names) - set(shared) - VERSIONS - PUBLIC_HERE_ONLY):
        least = OWN_ARGUMENTS if name.startswith("NORM_ARG_") else OWN_ENUMERATORS
        if value[name] < least:
            problems.append(f"{name} is {value[name]:#x}; oneDNN lacks it, so it must be {least:#x} or more")
    return problems, len(shared)


def check_functions(compiler, our_text, their_text):
    """Redeclares each shared function under oneDNN's name, so the compiler reports mismatches."""
    their_functions = functions(their_text, "dnnl")
    shared = {n: d for n, d in functions(our_text, "norm").items() if theirs(n) in their_functions}
    problems = []
    for name, declaration in shared.items():
        done = compiler.run(f"{THEIRS}{rename(declaration)};\n", "-fsyntax-only")
        if done.returncode:
            problems.append(f"{declaration}\n    oneDNN: {their_functions[theirs(name)]}")
    return problems, len(shared)


def check_structs(compiler, our_text, their_text):
    """Compares the sizes of structs, and their members and offsets."""
    ours, others = structs(our_text, "norm"), structs(their_text, "dnnl")
    shared = [name for name in ours if theirs(name) in others]
    problems = []
    for name in shared:
        other = theirs(name)
        if ours[name] != others[other]:
            problems.append(f"{name} has {ours[name]}, {other} has {others[other]}")
            continue
        pairs = [(f"sizeof({name})", f"sizeof({other})")]
        for member in ours[name]:
            for what in ("offsetof({}, {})", "sizeof((({} *)0)->{})"):
                pairs.append((what.format(name, member), what.format(other, member)))
        value = compiler.values([expression for pair in pairs for expression in pair])
        for a, b in pairs:
            if value[a] != value[b]:
                problems.append(f"{a} is {value[a]}, {b} is {value[b]}")
    return problems, len(shared)


def main():
    """Runs all comparisons and prints the differences."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("include", type=pathlib.Path, help="the folder with oneapi/dnnl/dnnl.h")
    parser.add_argument("--list-own", action="store_true", help="functions that oneDNN lacks")
    arguments = parser.parse_args()
    if not (arguments.include / "oneapi" / "dnnl" / "dnnl.h").exists():
        print(f"{arguments.include}: no oneapi/dnnl/dnnl.h", file=sys.stderr)
        return 2
    compiler = Compiler(arguments.include)
    try:
        our_text, their_text = compiler.preprocess(OURS), compiler.preprocess(THEIRS)
        if arguments.list_own:
            known = functions(their_text, "dnnl")
            print("\n".join(n for n in functions(our_text, "norm") if theirs(n) not in known))
        failed = 0
        for what, check in (
            ("enumerators and constants", check_values),
            ("functions", check_functions),
            ("structs", check_structs),
        ):
            problems, count = check(compiler, our_text, their_text)
            print(f"{what}: {count} shared, {len(problems)} wrong")
            print("".join(f"  {problem}\n" for problem in problems), end="")
            # An empty comparison proves nothing.
            failed += len(problems) + (count == 0)
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 2
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
