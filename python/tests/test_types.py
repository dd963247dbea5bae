"""The types in the stub files, as mypy sees them."""

import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

TESTS = pathlib.Path(__file__).resolve().parent
ENVIRONMENT = {**os.environ, "MYPYPATH": str(TESTS.parent / "package")}

pytestmark = pytest.mark.skipif(not importlib.util.find_spec("mypy"), reason="mypy is not installed")


def mypy(program):
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull, program]
    run = subprocess.run(command, capture_output=True, text=True, cwd=TESTS, env=ENVIRONMENT, check=False)
    return run.stdout + run.stderr


def test_a_program_has_the_types_that_it_says():
    said = mypy(TESTS / "typed.py")
    assert said.startswith("Success"), said


MISTAKES = [
    ('libnorm.rope(X, X, [1.0], pairing="neox")', "arg-type"),
    ("libnorm.rms_norm(X, weight=X)", "call-arg"),
    ("libnorm.softmax(X, return_lse=True).sum()", "attr-defined"),
    ("libnorm.attention(X, X, X, window=(4, 0))", "arg-type"),
    ("libnorm.rms_norm([1.0])", "type-var"),
]


def test_mistakes_are_found(tmp_path):
    program = tmp_path / "program.py"
    lines = ["import numpy as np", "import libnorm", "X = np.ones((2, 4), np.float32)"]
    program.write_text("\n".join([*lines, *(line for line, _ in MISTAKES), ""]), encoding="utf-8")
    said = mypy(program).splitlines()
    for at, (line, error) in enumerate(MISTAKES, len(lines) + 1):
        assert any(f"program.py:{at}: error" in text and f"[{error}]" in text for text in said), (line, said)
    assert said[-1].startswith(f"Found {len(MISTAKES)} errors")
