"""What is computed, and how it is compared with the golden files.

A case is a function of a folder (for files that it needs) that gives numbers and names. Its
outcome at revision 144077f is in a JSON file of this folder; `record.py` writes these files.
"""

import dataclasses
import functools
import json
import math
from pathlib import Path

import numpy as np
import pandas as pd

from tests.golden import api

HERE = Path(__file__).parent
#: Name of the JSON file -> name of the case -> Case.
CASES = {}


@dataclasses.dataclass(frozen=True)
class Case:
    compute: object
    rtol: float
    atol: float


def case(file, rtol=1e-8, atol=1e-8):
    """Register a function as a case of a golden file, with the tolerance of its numbers."""

    def register(function):
        known = CASES.setdefault(file, {})
        name = function.__name__
        assert name not in known, name
        known[name] = Case(function, rtol, atol)
        return function

    return register


def cases_of(module):
    """Pairs of file and name whose function a test module defines, in the module's order.

    Cases that look at the same run stand together, so that one worker of pytest-xdist does both.
    """
    lines = {
        (file, name): one.compute.__code__.co_firstlineno
        for file, known in CASES.items()
        for name, one in known.items()
        if one.compute.__module__ == module
    }
    return sorted(lines, key=lines.get)


@functools.cache
def recorded(file):
    return json.loads((HERE / f"{file}.json").read_text())


def check(file, name, folder):
    """Compute a case again and compare it with what is recorded."""
    one = CASES[file][name]
    expected = recorded(file)[name]
    differences = list(_differences(outcome(file, name, folder), expected, one, name))
    assert not differences, "\n".join(differences[:20])


def outcome(file, name, folder):
    """Compute a case, as JSON holds it and with the names of 144077f."""
    return plain(CASES[file][name].compute(folder), api.old_names(name))


def plain(value, names):
    """Turn arrays and frames into lists, names into old ones, and round to ten digits."""
    if isinstance(value, pd.DataFrame):
        value = {str(column): value[column] for column in value}
    if isinstance(value, pd.Series):
        value = value.to_numpy()
    if dataclasses.is_dataclass(value):
        value = dataclasses.asdict(value)
    if isinstance(value, dict):
        return {names.get(str(key), str(key)): plain(v, names) for key, v in value.items()}
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(entry, names) for entry in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return _round(value)
    if isinstance(value, str):
        return names.get(value, value)
    assert value is None or isinstance(value, bool | int), type(value)
    return value


def _round(value):
    if math.isnan(value) or math.isinf(value):
        return str(value)
    return float(f"{value:.10g}")


def _differences(found, expected, one, path):
    if isinstance(expected, dict) and isinstance(found, dict):
        if set(found) != set(expected):
            yield f"{path}: names {sorted(found)}, expected {sorted(expected)}"
            return
        for key, entry in expected.items():
            yield from _differences(found[key], entry, one, f"{path}/{key}")
    elif isinstance(expected, list) and isinstance(found, list):
        if len(found) != len(expected):
            yield f"{path}: {len(found)} entries, expected {len(expected)}"
            return
        for place, (left, right) in enumerate(zip(found, expected, strict=True)):
            yield from _differences(left, right, one, f"{path}[{place}]")
    elif _is_number(expected) and _is_number(found):
        if not math.isclose(found, expected, rel_tol=one.rtol, abs_tol=one.atol):
            yield f"{path}: {found}, expected {expected}"
    elif found != expected:
        yield f"{path}: {found!r}, expected {expected!r}"


def _is_number(value):
    return isinstance(value, int | float) and not isinstance(value, bool)
