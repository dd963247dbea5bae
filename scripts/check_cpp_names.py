#!/usr/bin/env python3
"""Compares the list of oneDNN's C++ names with the headers of an installed oneDNN.

tests/symbols/onednn_cpp.txt lists the classes, members, enumerators and functions of oneDNN's C++
interface that libnorm should have; tests/consumers proves that norm.hpp has each of them.
tests/symbols/onednn_cpp_absent.txt lists those that libnorm lacks, with the reason. Together the two
lists must be everything that the headers declare in these classes.

    python3 -m venv VENV && VENV/bin/pip install onednn-devel==2026.1.0
    scripts/check_cpp_names.py VENV/include

Needs Python 3.9 or later. Exit status: 0 the lists are complete, 1 they are not, 2 the check could
not run. --bless writes the list of what libnorm should have.
"""

import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIST = ROOT / "tests" / "symbols" / "onednn_cpp.txt"
ABSENT = ROOT / "tests" / "symbols" / "onednn_cpp_absent.txt"
HEADERS = ["dnnl_common.hpp", "dnnl.hpp"]

# The classes and enumerations that libnorm has. The values of format tags are compared by
# check_enumerators.py; many name weights of convolutions.
SCOPES = {
    "",
    "error",
    "handle",
    "engine",
    "engine::kind",
    "stream",
    "stream::flags",
    "memory",
    "memory::data_type",
    "memory::desc",
    "memory::format_kind",
    "post_ops",
    "primitive",
    "primitive::kind",
    "primitive_attr",
    "primitive_desc",
    "primitive_desc_base",
    "status",
    "prop_kind",
    "algorithm",
    "normalization_flags",
    "scratchpad_mode",
    "fpmath_mode",
    "accumulation_mode",
    "rounding_mode",
    "quantization_mode",
    "query",
    "cpu_isa",
    "cpu_isa_hints",
}
OPERATIONS = re.compile(r"(layer_normalization|group_normalization|softmax|eltwise)_(forward|backward)|reorder|binary")
NAME = re.compile(r"[A-Za-z_]\w*$")
# Inherited constructors and conversions are not names.
MACROS = {"DNNL_DEFINE_BITMASK_OPS"}
NOT_NAMES = {"handle_traits", "operator", "T", "bool", "primitive_desc_base"}


def tokens(text):
    """The tokens of a C++ header without comments, strings and preprocessor lines."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)
    text = re.sub(r'"(?:\\.|[^"\\])*"', '""', text)
    text = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", "", text, flags=re.M)
    return re.findall(r"[A-Za-z_]\w*|::|\S", text)


def behind(words, at, begin, end):
    """The index after the balanced group that starts at `at`."""
    depth = 0
    while True:
        depth += (words[at] == begin) - (words[at] == end)
        at += 1
        if depth == 0:
            return at


def declared(statement):
    """The name that a statement of a class or namespace declares, or None."""
    if not statement or statement[0] in ("friend", "struct", "class", "enum"):
        return None
    if statement[0] == "using":
        return statement[1] if "=" in statement else statement[-1]
    if statement[0] == "typedef":
        return statement[-1]
    if "(" in statement:
        before = statement[: statement.index("(")]
        if "::" in before[-2:]:
            return None  # a member, defined outside its class
        return before[before.index("=") - 1] if "=" in before else before[-1]
    before = statement[: statement.index("=")] if "=" in statement else statement
    names = [word for word in before if NAME.match(word)]
    return names[-1] if names else None


class Reader:
    """Collects (kind, scope, name) of the public declarations of a header."""

    def __init__(self, text):
        self.words = tokens(text)
        self.scopes = []  # (kind, name, access); a hidden class stays hidden
        self.found = []

    def path(self):
        """The qualified name of the current scope."""
        return "::".join(name for _, name, _ in self.scopes if name)

    def public(self):
        """Whether a declaration here is public."""
        return not self.scopes or self.scopes[-1][2] == "public"

    def emit(self, name, kind=None):
        """Records a name of the current scope."""
        if name and NAME.match(name) and self.public():
            own = self.scopes[-1] if self.scopes else ("namespace", "", "public")
            if name != own[1]:
                self.found.append((kind or own[0], self.path(), name))

    def read(self):
        """Reads all declarations."""
        at, statement = 0, []
        while at < len(self.words):
            word = self.words[at]
            in_class = self.scopes and self.scopes[-1][0] == "class"
            if word == "}":
                self.scopes.pop()
                at, statement = at + 1, []
            elif in_class and word in ("public", "private", "protected") and self.words[at + 1] == ":":
                _, name, access = self.scopes[-1]
                self.scopes[-1] = ("class", name, access if access == "hidden" else word)
                at, statement = at + 2, []
            elif word == "template":
                at = behind(self.words, at + 1, "<", ">")
            elif word == ";":
                self.emit(declared(statement))
                at, statement = at + 1, []
            elif word == "{":
                at, statement = self.open(at, statement)
            else:
                statement.append(word)
                at += 1
        return self.found

    def open(self, at, statement):
        """Enters a scope or skips a body. Returns the next index and the rest of the statement."""
        first = statement[0] if statement else ""
        if first in ("namespace", "extern"):
            name = statement[1] if first == "namespace" and len(statement) > 1 else ""
            self.scopes.append(("namespace", name, "public"))
            return at + 1, []
        if first in ("struct", "class"):
            self.emit(statement[1])
            hidden = not self.public() or "<" in statement[:4]
            access = "public" if first == "struct" else "private"
            self.scopes.append(("class", statement[1], "hidden" if hidden else access))
            return at + 1, []
        end = behind(self.words, at, "{", "}")
        if first == "enum":
            name = next((word for word in statement[1:] if word not in ("class", "struct")), "")
            self.emit(name)
            if name and self.public():
                self.enumerators(name, self.words[at + 1 : end - 1])
            return end, []
        if "(" in statement:
            self.emit(declared(statement))
            # Braces in a constructor's initializers are followed by its body.
            return end, statement if self.words[end : end + 1] in (["{"], [","]) else []
        return end, statement

    def enumerators(self, name, body):
        """Records the names in the body of an enumeration."""
        self.scopes.append(("enum", name, "public"))
        depth, expected = 0, True
        for word in body:
            if expected and NAME.match(word):
                self.emit(word)
                expected = False
            depth += (word in "({") - (word in "})")
            expected = expected or (word == "," and depth == 0)
        self.scopes.pop()


def theirs(include):
    """The lines that the list should have according to the headers."""
    lines = set()
    for header in HEADERS:
        text = (include / "oneapi" / "dnnl" / header).read_text()
        for kind, path, name in Reader(text).read():
            scope = path.removeprefix("dnnl").removeprefix("::")
            operation = OPERATIONS.fullmatch(scope.removesuffix("::primitive_desc"))
            inherited = name == "handle" and scope
            if name not in NOT_NAMES | MACROS and not inherited and (scope in SCOPES or operation):
                lines.add(f"{kind} {scope or 'norm'} {name}")
    return lines


def main():
    """Compares the lists with the headers."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("include", type=pathlib.Path, help="the folder with oneapi/dnnl/dnnl.hpp")
    parser.add_argument("--bless", action="store_true", help="write the list")
    arguments = parser.parse_args()
    if not (arguments.include / "oneapi" / "dnnl" / "dnnl.hpp").exists():
        print(f"{arguments.include}: no oneapi/dnnl/dnnl.hpp", file=sys.stderr)
        return 2
    absent = {" ".join(line.split()[:3]) for line in ABSENT.read_text().splitlines()}
    wanted = theirs(arguments.include)
    if arguments.bless:
        LIST.write_text("".join(f"{line}\n" for line in sorted(wanted - absent)))
    listed = set(LIST.read_text().splitlines())
    problems = [f"in both lists: {line}" for line in sorted(listed & absent)]
    problems += [f"in the headers only: {line}" for line in sorted(wanted - listed - absent)]
    problems += [f"in the lists only: {line}" for line in sorted((listed | absent) - wanted)]
    print("\n".join(problems + [f"C++ names: {len(listed)} here, {len(absent)} absent"]))
    # An empty comparison proves nothing.
    return 1 if problems or not wanted else 0


if __name__ == "__main__":
    sys.exit(main())
