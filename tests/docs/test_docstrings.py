"""Docstrings of public names say what the signatures say, in numpydoc's form, with examples."""

import importlib
import inspect
import re
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

import idfsmec

pytestmark = pytest.mark.slow

validate = pytest.importorskip("numpydoc.validate").validate

PACKAGE = Path(idfsmec.__file__).parent
MODULES = ["idfsmec", "idfsmec.errors", "idfsmec.paper"] + [
    f"idfsmec.{path.parent.name}"
    for path in sorted(PACKAGE.glob("*/__init__.py"))
    if path.parent.name != "cli"  # docstrings of commands are their help
]
#: Form, and agreement with the signature. How much is said is left to the author.
CHECKS = {
    *("GL01", "GL02", "GL03", "GL05", "GL06", "GL07", "GL08", "SS01", "SS02", "SS03", "SS04"),
    *("PR02", "PR05", "PR10", "RT04", "YD01", "EX02"),
}


def public_names():
    """Classes with their methods, and functions, each once."""
    seen = set()
    for module in MODULES:
        imported = importlib.import_module(module)
        for name in getattr(imported, "__all__", []):
            public = getattr(imported, name)
            if not callable(public) or id(public) in seen:
                continue
            seen.add(id(public))
            yield f"{module}.{name}"
            if inspect.isclass(public):
                yield from (
                    f"{module}.{name}.{method}"
                    for method, value in vars(public).items()
                    if inspect.isfunction(value) and not method.startswith("_")
                )


def complaints(name):
    verdict = validate(name)
    # Who begins to list parameters lists all.
    checks = CHECKS | ({"PR01"} if "\n    Parameters\n" in f"\n{verdict['docstring']}" else set())
    return [f"{name}: {code} {text}" for code, text in verdict["errors"] if code in checks]


def test_docstrings_agree_with_signatures():
    assert [line for name in public_names() for line in complaints(name)] == []


def words_of_examples():
    """Words of all code that runs: in docstrings, in pages and in the gallery."""
    docs = PACKAGE.parents[1] / "docs"
    pages = [path.read_text("utf-8") for path in docs.rglob("*.md")]
    code = [
        *(
            line
            for path in PACKAGE.rglob("*.py")
            for line in PROMPT.findall(path.read_text("utf-8"))
        ),
        *(block for page in pages for block in SNIPPET.findall(page)),
        *(path.read_text("utf-8") for path in (docs / "examples").glob("*.py")),
    ]
    return set(re.findall(r"\w+", "\n".join(code)))


PROMPT = re.compile(r"^\s*(?:>>>|\.\.\.) (.*)$", re.MULTILINE)
SNIPPET = re.compile(r"^```(?:python|pycon)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_every_public_function_and_estimator_has_an_example_that_runs():
    shown = words_of_examples()
    lacking = []
    for module in MODULES:
        imported = importlib.import_module(module)
        for name in getattr(imported, "__all__", []):
            public = getattr(imported, name)
            # Classes that are no estimators come out of functions; data sets are not ours to ship.
            estimator = inspect.isclass(public) and issubclass(public, BaseEstimator)
            needs_data = getattr(public, "__module__", "").startswith(
                "idfsmec.recordings.datasets"
            )
            if (inspect.isfunction(public) or estimator) and not needs_data and name not in shown:
                lacking.append(f"{module}.{name}")
    # It needs the paper's data; `idfsmec reproduce` is its example.
    assert lacking == ["idfsmec.paper.reproduce"]
