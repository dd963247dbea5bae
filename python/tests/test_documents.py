"""The examples in the documentation run and print what the pages show; stubs, docstrings and records are complete."""

import ast
import contextlib
import importlib.metadata
import importlib.util
import inspect
import io
import pathlib
import re
import subprocess
import sys

import pytest

import libnorm

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "package" / "libnorm"
# Docstrings of the other functions refer to these.
LONG = ("layer_norm", "rms_norm", "layer_norm_backward", "rms_norm_backward")
FUNCTIONS = [name for name in libnorm.__all__ if inspect.isbuiltin(getattr(libnorm, name))]
METHODS = [f"KvCache.{name}" for name, own in vars(libnorm.KvCache).items() if name[0] != "_" or name == "__new__"]


@pytest.mark.parametrize(("page", "blocks"), [("docs/python.md", 12), ("docs/python-attention.md", 7), ("docs/getting-started.md", 1), ("python/README.md", 1), ("README.md", 1)])
def test_examples(page, blocks):
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.findall(r"```(python|text)\n(.*?)```", text, re.DOTALL)
    assert sum(kind == "python" for kind, _ in found) == blocks
    names, printed = {}, None
    for kind, code in found:
        if kind == "python":
            if "import torch" in code and not importlib.util.find_spec("torch"):
                continue
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(compile(code, page, "exec"), names)
            printed = output.getvalue()
        elif printed:
            assert printed == code
            printed = None


def stub_functions():
    """The functions in the stub files by name, and the methods of the class. The last overload is the whole one."""
    nodes = [node for file in PACKAGE.glob("*.pyi") for node in ast.parse(file.read_text(encoding="utf-8")).body]
    cache = next(node for node in nodes if isinstance(node, ast.ClassDef) and node.name == "KvCache")
    methods = {f"KvCache.{node.name}": node.args for node in cache.body}
    return {node.name: node.args for node in nodes if isinstance(node, ast.FunctionDef)} | methods


def found(name):
    """The function or the method; a constructor has the signature of its class."""
    if name == "KvCache.__new__":
        return libnorm.KvCache
    return getattr(libnorm.KvCache, name.split(".")[1]) if "." in name else getattr(libnorm, name)


def test_stubs_have_every_function():
    assert sorted(stub_functions()) == sorted(FUNCTIONS + METHODS)
    assert (pathlib.Path(libnorm.__file__).parent / "py.typed").exists()


@pytest.mark.parametrize("name", FUNCTIONS + METHODS)
def test_stubs_have_the_parameters(name):
    arguments = stub_functions()[name]
    parameters = inspect.signature(found(name)).parameters.values()
    if name == "KvCache.__new__":
        arguments.args.pop(0)
    options = [p.name for p in parameters if p.kind == p.VAR_KEYWORD]
    assert ([arguments.kwarg.arg] if arguments.kwarg else []) == options
    parameters = [p for p in parameters if p.kind != p.VAR_KEYWORD]
    positional = [p.name for p in parameters if p.kind != p.KEYWORD_ONLY]
    required = [p.name for p in parameters if p.default is p.empty and p.name in positional]
    defaults = [p.default for p in parameters if p.kind != p.KEYWORD_ONLY and p.default is not p.empty]
    keywords = {p.name: p.default for p in parameters if p.kind == p.KEYWORD_ONLY}
    own = [argument.arg for argument in arguments.posonlyargs + arguments.args]
    assert own == positional
    assert own[: len(own) - len(arguments.defaults)] == required
    assert [ast.literal_eval(value) for value in arguments.defaults] == defaults
    own_keywords = [argument.arg for argument in arguments.kwonlyargs]
    values = [inspect.Parameter.empty if v is None else ast.literal_eval(v) for v in arguments.kw_defaults]
    assert dict(zip(own_keywords, values)) == keywords


def test_stubs_are_recorded():
    script = [sys.executable, ROOT / "scripts" / "python_names.py"]
    told = subprocess.run(script, capture_output=True, text=True, check=False)
    assert told.returncode == 0, f"{told.stdout}{told.stderr}scripts/python_names.py --bless writes the record"


def test_the_licenses_are_installed():
    installed = {path.name for path in importlib.metadata.files("libnorm")}
    assert {"LICENSE-APACHE", "LICENSE-MIT"} <= installed


@pytest.mark.parametrize("name", [*FUNCTIONS, "KvCache", *(name for name in METHODS if "__" not in name)])
def test_docstrings_have_shapes_results_and_errors(name):
    document, parameters = inspect.getdoc(found(name)), inspect.signature(found(name)).parameters
    if name in FUNCTIONS:
        assert ("Returns\n-------\n" in document) == (not name.startswith("set_"))
    assert ("Raises\n------\n" in document) == (bool(parameters) and name != "KvCache.stats")
    if parameters.keys() & {"src", "src0", "q", "diff_dst"}:
        assert "shape" in document or "Parameters are those of" in document
    # The sections come in this order, and no line is longer than the others.
    at = [document.find(f"\n{title}\n---") for title in ("Parameters", "Returns", "Raises")]
    assert [place for place in at if place > 0] == sorted(place for place in at if place > 0)
    assert max(map(len, document.splitlines())) <= 116


@pytest.mark.parametrize("name", FUNCTIONS + METHODS)
def test_every_function_is_documented(name):
    document = found(name).__doc__
    assert document and len(document.splitlines()[0]) > 20
    for parameter in inspect.signature(found(name)).parameters:
        if name.removeprefix("log_").startswith("softmax") or name in LONG:
            assert re.search(rf"\b{parameter}\b", document), parameter
