"""What a full comparison costs: one fold of each method measured, all folds added up.

``python -m benchmarks evaluation`` measures processor seconds of one unit per method, which a
busy machine disturbs little, and adds up 5 rates x 10 folds on two cores. With real wall time:
``python -m benchmarks.speed.evaluation --full 19``, ``--full 128`` and ``--grid``.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks._data import channel_table
from benchmarks._timing import markdown
from idfsmec.evaluation import METHODS, Method, Protocol, accuracy, find_methods
from idfsmec.evaluation.method import settings_grid
from idfsmec.evaluation.methods import COMPARED
from idfsmec.evaluation.tables import TableArrays
from idfsmec.evaluation.units import plan_folds, run_unit
from idfsmec.paper import sensitivity
from idfsmec.paper.experiments import PAPER_GAMMAS, PAPER_LAMS
from idfsmec.table import FeatureTable

RATES = (0.1, 0.2, 0.3, 0.4, 0.5)
N_UNITS = len(RATES) * 10
CORES = 2
#: Left out on 128 channels.
SLOW = ("PS-NSGA", "MRMSR", "GRMOR")


def main() -> None:
    """Print all tables of this module."""
    small = small_table()
    print("## 19 channels x 18 features x 1650 samples\n")
    print(comparison(small, find_methods()))
    print("\n## The 7 x 8 grid of lambda and gamma on the same table, one rate, 10 folds\n")
    print(grid(small))
    print("\n## 128 channels x 18 features x 2000 samples\n")
    print(comparison(large_table(), named(SLOW)))


def named(left_out: tuple[str, ...], sanity: bool = False) -> list[Method]:
    """Methods without those left out."""
    families = [family for family in COMPARED if sanity or family != "sanity"]
    return [one for one in find_methods(families=families) if one.name not in left_out]


def small_table() -> FeatureTable:
    """19 channels x 18 features x 1650 samples."""
    return make_table(19, n_subjects=55, n_epochs=30)


def large_table() -> FeatureTable:
    """128 channels x 18 features x 2000 samples."""
    return make_table(128, n_subjects=50, n_epochs=40)


def make_table(n_channels: int, n_subjects: int, n_epochs: int) -> FeatureTable:
    """A generated table in which epochs of a subject resemble each other."""
    n_samples = n_subjects * n_epochs
    X, y, channels = channel_table(n_channels, n_samples=n_samples, missing=0.0)
    order = np.argsort(y, kind="stable")  # so that a subject has one label
    X, y = X[order], y[order]
    subjects = np.repeat(np.arange(n_subjects), n_epochs)
    person = np.random.default_rng(1).normal(size=(n_subjects, X.shape[1]))
    names = [f"E{channel + 1}__f{i % 18 + 1}" for i, channel in enumerate(channels)]
    labels = pd.Series(y).groupby(subjects).transform("first")
    return FeatureTable(pd.DataFrame(X + person[subjects], columns=names), labels, subjects)


def comparison(table: FeatureTable, methods: list[Method]) -> str:
    """Processor seconds of one unit of each method, and of all of them."""
    rows, total, ours = [], 0.0, 0.0
    for method in methods:
        seconds, selection = one_unit(table, method, Protocol(rates=(0.3,)))
        total += seconds
        ours += seconds if method.family not in ("sanity", "wrapper") else 0.0
        rows.append([method.name, f"{selection:.2f}", f"{seconds:.1f}"])
    for name, sum_ in (("all but PS-NSGA and sanity lines", ours), ("all", total)):
        minutes = sum_ * N_UNITS / CORES / 60
        rows.append([f"**{name}**: {minutes:.1f} minutes for {N_UNITS} folds on {CORES} cores"])
        rows[-1] += ["", f"{sum_:.1f}"]
    return markdown(["method", "one selection, s", "one unit with tuning, s"], rows)


def grid(table: FeatureTable) -> str:
    """Processor seconds of the paper's grid."""
    settings = settings_grid(lam=PAPER_LAMS, gamma=PAPER_GAMMAS)
    method = replace(METHODS["IDFS-MEC"], settings=settings)
    seconds, _ = one_unit(table, method, Protocol(rates=(0.3,), tuning="grid"))
    return f"{seconds:.1f} s a fold: {seconds * 10 / CORES:.0f} s for 10 folds on {CORES} cores"


def one_unit(table: FeatureTable, method: Method, protocol: Protocol) -> tuple[float, float]:
    """Processor seconds of the first fold, and seconds of the selection alone in it."""
    arrays = TableArrays.of("table", table)
    unit = next(iter(plan_folds([arrays], [method], protocol)))
    began = time.process_time()
    outcome = run_unit(unit, arrays)
    if outcome.result is None:
        raise RuntimeError(outcome.error)
    return time.process_time() - began, min(outcome.result.seconds)


def full(n_channels: int, sanity: bool, out: str | None) -> None:
    """Run a comparison for real on two processes and print its wall time, then the grid's."""
    table = small_table() if n_channels == 19 else large_table()
    left_out = ("PS-NSGA",) if n_channels == 19 else SLOW
    methods = named(left_out, sanity)
    with tempfile.TemporaryDirectory() as fresh:
        folder = Path(out or fresh)
        began = time.perf_counter()
        results = accuracy(
            table, folder, methods=methods, protocol=Protocol(rates=RATES), n_jobs=CORES
        )
        minutes = (time.perf_counter() - began) / 60
        print(f"{n_channels} channels, {len(methods)} methods: {minutes:.1f} minutes in all")
        print(f"units failed: {len(results.failures)}\n")
        print((100 * results.mean_scores()).round(1).to_string())
        if n_channels == 19:
            grid_for_real(table)


def grid_for_real(table: FeatureTable) -> None:
    """Run the 7 x 8 grid at one rate and ten folds, and print its wall time."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        sensitivity(table, folder, n_jobs=CORES)
        print(f"grid of 7 x 8, one rate, 10 folds: {time.perf_counter() - began:.0f} s in all")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", type=int, choices=(19, 128), help="channels of a run for real")
    parser.add_argument("--grid", action="store_true", help="the 7 x 8 grid for real")
    parser.add_argument("--sanity", action="store_true", help="with the sanity lines")
    parser.add_argument("--out", help="folder to keep; a run that was stopped goes on from it")
    return parser.parse_args()


if __name__ == "__main__":
    given = _parse()
    if given.full:
        full(given.full, given.sanity, given.out)
    elif given.grid:
        grid_for_real(small_table())
    else:
        main()
