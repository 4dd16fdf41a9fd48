#!/usr/bin/env python3
"""Change a module in random places, one at a time, and see whether its tests notice.

make mutants [MODULES="metrics selection/effects"] [N=20] [SEED=1]

A mutant changes one operator, comparison, constant or branch of a copy of the tree, and the quick
tests of the module and its doctests run against it. A mutant that lives is a formula without a
test, or a change that changes nothing: these are listed with the reason in mutants.txt and do not
count. Fails if fewer than 90 % of all others die.

mutmut (3.8) leaves out constants of modules and functions with decorators, that is all of
features/families.py; cosmic-ray (8.7) starts Python anew for each mutant and draws no sample.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
#: Modules whose formulas pages rely on, and the tests that run against them.
TESTS = {
    "metrics": "test_scores.py test_metrics.py solver/test_sites.py",
    "audit/association": "audit",
    "audit/confounding": "audit",
    "audit/levels": "audit",
    "evaluation/clinical": "evaluation/test_clinical_numbers.py evaluation/test_classes.py",
    "evaluation/statistics": "evaluation/test_statistics.py",
    "evaluation/store": "evaluation/test_store.py evaluation/test_parts.py compat/test_stores.py",
    "evaluation/study_size": "evaluation/test_curves.py",
    "features/families": "features/test_spectral.py features/test_time_domain.py "
    "features/test_registry.py features/test_connectivity.py features/test_optional.py",
    "federated/release": "federated/test_release_rules.py federated/test_summaries.py "
    "federated/test_ledger.py",
    "missing/association": "missing/test_association.py",
    "missing/detection": "missing/test_detection_rules.py missing/test_detection.py",
    "prediction/calibration": "prediction/test_calibration.py",
    "selection/effects": "selection/test_effects.py",
    "selection/stability": "selection/test_agreement.py selection/test_stability.py",
    "solver/sums": "solver/test_sums.py solver/test_held_out.py",
}
PAIRS = ("Lt LtE", "LtE Lt", "Gt GtE", "GtE Gt", "Eq NotEq", "NotEq Eq", "And Or", "Or And")
PAIRS += ("Add Sub", "Sub Add", "Mult Div", "Div Mult", "Pow Mult", "USub UAdd", "BitAnd BitOr")
SWAPS = {getattr(ast, a): getattr(ast, b) for a, b in map(str.split, (*PAIRS, "BitOr BitAnd"))}


def sites(node: ast.AST, path: tuple[ast.AST, ...] = ()) -> Iterator[tuple[ast.AST, ...]]:
    """Every node that can be changed, with all that it is in."""
    changed = getattr(node, "op", None) or getattr(node, "ops", [None])[0]
    constant = isinstance(node, ast.Constant) and type(node.value) in (int, float)
    if type(changed) in SWAPS or constant or isinstance(node, ast.IfExp):
        yield (*path, node)
    for name, field in ast.iter_fields(node):
        if name not in ("annotation", "returns", "decorator_list"):
            for child in field if isinstance(field, list) else [field]:
                # Texts for readers are no formulas; "X | None" is one type or another.
                text = (
                    isinstance(child, ast.JoinedStr) or getattr(child, "arg", "") == "stacklevel"
                )
                if isinstance(child, ast.AST) and not text:
                    yield from sites(child, (*path, node))


def change(node: ast.AST) -> None:
    """Change a node for another operator, a larger constant or the other branch."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        node.value = (1.5 * node.value or 0.5) if isinstance(node.value, float) else node.value + 1
    elif isinstance(node, ast.IfExp):
        node.body, node.orelse = node.orelse, node.body
    elif isinstance(node, ast.Compare):
        node.ops[0] = SWAPS[type(node.ops[0])]()
    elif isinstance(node, ast.BinOp | ast.BoolOp | ast.UnaryOp | ast.AugAssign):
        node.op = SWAPS[type(node.op)]()


def mutant(source: str, number: int) -> tuple[str, str]:
    """Change one site: the new source, and what was changed in which function."""
    tree = ast.parse(source)
    *path, node = list(sites(tree))[number]
    scopes = [p.name for p in path if isinstance(p, ast.FunctionDef | ast.ClassDef)]
    # A constant alone says little: with the expression that it is in.
    shown = next(p for p in [node, *path[::-1]] if not isinstance(p, ast.Constant))
    before = ast.unparse(shown)
    change(node)
    what = f"{'.'.join(scopes)}: {before} -> {ast.unparse(shown)}"
    return ast.unparse(tree), " ".join(what.split())


def passes(tests: list[str], seconds: float, changed: bool = True) -> bool:
    """Whether the tests pass, in a process of its own that starts with libraries imported."""
    if not (child := os.fork()):
        os.setpgrp()
        sys.dont_write_bytecode = changed
        for stream in (1, 2) if changed else ():
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        options = [
            "-x",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist",
            "-m",
            "not long and not slow",
        ]
        os._exit(pytest.main([*options, *tests]))
    end = time.monotonic() + seconds
    while not (done := os.waitpid(child, os.WNOHANG))[0] and time.monotonic() < end:
        time.sleep(0.05)
    if not done[0]:
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return done == (child, 0)


def try_module(module: str, n: int, seed: str, known: set[str]) -> tuple[int, int]:
    """Count the mutants that died and those that should have."""
    # Libraries stay imported, the package itself does not.
    importlib.import_module(f"idfsmec.{module.replace('/', '.')}")
    for name in [name for name in sys.modules if name.partition(".")[0] == "idfsmec"]:
        del sys.modules[name]
    file = Path("src/idfsmec", f"{module}.py")
    tests = [*(f"tests/{name}" for name in TESTS[module].split()), str(file)]
    source, began = file.read_text(), time.monotonic()
    if not passes(tests, 900, changed=False):
        sys.exit(f"{module}: its tests do not pass unchanged: {' '.join(tests)}")
    limit = 30 + 5 * (time.monotonic() - began)
    for compiled in file.parent.glob(f"__pycache__/{file.stem}.*"):
        compiled.unlink()
    numbers = list(range(len(list(sites(ast.parse(source))))))
    random.Random(f"{seed} {module}").shuffle(numbers)  # noqa: S311 - not a secret
    died = tried = 0
    for number in numbers:
        text, what = mutant(source, number)
        if (name := f"{file.relative_to('src/idfsmec')} {what}") in known:
            continue
        if tried == n:
            break
        file.write_text(text)
        lives = passes(tests, limit)
        died, tried = died + (not lives), tried + 1
        if lives:
            print(f"ALIVE {name}", flush=True)
    file.write_text(source)
    print(f"{module}: {died} of {tried} died", flush=True)
    return died, tried


def main() -> int:
    """Try the modules that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="*", help="as in metrics; by default all")
    parser.add_argument("-n", type=int, default=20, help="mutants of each module")
    parser.add_argument("--seed", default="1", help="of the random sample")
    given = parser.parse_args()
    lines = (ROOT / ".ci" / "mutants.txt").read_text().splitlines()
    known = {line.rpartition(" | ")[0] for line in lines}
    with tempfile.TemporaryDirectory() as folder:
        skipped = shutil.ignore_patterns(".git", ".venv*", "__pycache__", ".*_cache", "_build")
        os.chdir(shutil.copytree(ROOT, Path(folder, "tree"), ignore=skipped))
        sys.path[:0] = [str(Path.cwd() / "src"), str(Path.cwd())]  # tests import benchmarks
        environment = {"OMP_NUM_THREADS": "1", "NUMBA_DISABLE_JIT": "1"}
        os.environ.update(environment, PYTHONPATH=str(Path.cwd() / "src"))
        counts = [try_module(m, given.n, given.seed, known) for m in given.modules or TESTS]
        os.chdir(ROOT)
    died, tried = (sum(column) for column in zip(*counts, strict=True))
    print(f"{died} of {tried} died")
    return int(died < 0.9 * tried)


if __name__ == "__main__":
    sys.exit(main())
