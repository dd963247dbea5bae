"""The examples of the documentation run and print what the pages show; stubs and docstrings are whole."""

import ast
import contextlib
import importlib.util
import inspect
import io
import pathlib
import re

import pytest

import libnorm

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "package" / "libnorm"
# The others refer to these.
LONG = ("layer_norm", "rms_norm", "layer_norm_backward", "rms_norm_backward")
FUNCTIONS = [name for name in libnorm.__all__ if callable(getattr(libnorm, name))]


@pytest.mark.parametrize(("page", "blocks"), [("docs/python.md", 12), ("python/README.md", 1), ("README.md", 1)])
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
    """The functions of the stub file by name."""
    tree = ast.parse((PACKAGE / "__init__.pyi").read_text(encoding="utf-8"))
    return {node.name: node.args for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_stubs_have_every_function():
    assert sorted(stub_functions()) == sorted(FUNCTIONS)
    assert (pathlib.Path(libnorm.__file__).parent / "py.typed").exists()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_stubs_have_the_parameters(name):
    arguments = stub_functions()[name]
    parameters = inspect.signature(getattr(libnorm, name)).parameters.values()
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


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_is_documented(name):
    document = getattr(libnorm, name).__doc__
    assert document and len(document.splitlines()[0]) > 20
    for parameter in inspect.signature(getattr(libnorm, name)).parameters:
        if name.removeprefix("log_").startswith("softmax") or name in LONG:
            assert re.search(rf"\b{parameter}\b", document), parameter
