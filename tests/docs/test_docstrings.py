"""Docstrings of public names say what the signatures say, in numpydoc's form."""

import importlib
import inspect

import pytest

pytestmark = pytest.mark.slow

validate = pytest.importorskip("numpydoc.validate").validate

ROOMS = [
    "recordings",
    "missing",
    "features",
    "solver",
    "federated",
    "selection",
    "prediction",
    "evaluation",
]
MODULES = ["idfsmec", *(f"idfsmec.{room}" for room in [*ROOMS, "paper", "report", "errors"])]
#: Form, and agreement with the signature. How much is said is left to the author.
CHECKS = {
    *("GL01", "GL02", "GL03", "GL05", "GL06", "GL07", "GL08", "SS01", "SS02", "SS03", "SS04"),
    *("PR02", "PR05", "PR10", "RT04", "YD01", "EX02"),
}


def public_names():
    """Classes with their methods, and functions, each once."""
    seen = set()
    for module in MODULES:
        room = importlib.import_module(module)
        for name in getattr(room, "__all__", []):
            found = getattr(room, name)
            if not callable(found) or id(found) in seen:
                continue
            seen.add(id(found))
            yield f"{module}.{name}"
            if inspect.isclass(found):
                yield from (
                    f"{module}.{name}.{method}"
                    for method, value in vars(found).items()
                    if inspect.isfunction(value) and not method.startswith("_")
                )


def complaints(name):
    found = validate(name)
    # Who begins to list parameters lists all.
    checks = CHECKS | ({"PR01"} if "\n    Parameters\n" in f"\n{found['docstring']}" else set())
    return [f"{name}: {code} {text}" for code, text in found["errors"] if code in checks]


def test_docstrings_agree_with_signatures():
    assert [line for name in public_names() for line in complaints(name)] == []
