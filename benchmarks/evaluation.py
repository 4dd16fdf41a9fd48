"""What a full comparison costs: one fold of each method measured, all folds added up.

``python -m benchmarks evaluation`` measures processor seconds of one unit per method, which a
busy machine disturbs little, and adds up 5 rates x 10 folds on two cores. ``python -m
benchmarks.evaluation --full`` runs the comparison of the smaller table for real.
"""

from __future__ import annotations

import argparse
import tempfile
import time

import numpy as np
import pandas as pd

from benchmarks._data import channel_table
from benchmarks._timing import markdown
from idfsmec.evaluation import Contestant, Protocol, accuracy, find_contestants, sensitivity
from idfsmec.evaluation._fold_data import TableArrays
from idfsmec.evaluation._units import plan_units, run_unit
from idfsmec.evaluation.contestants import (
    PAPER_GAMMAS,
    PAPER_LAMS,
    SANITY,
    idfsmec_contestant,
    known_methods,
)
from idfsmec.table import FeatureTable

RATES = (0.1, 0.2, 0.3, 0.4, 0.5)
N_UNITS = len(RATES) * 10
CORES = 2


def main() -> None:
    """Print all tables of this module."""
    small = make_table(19, n_subjects=55, n_epochs=30)
    print("## 19 channels x 18 features x 1650 samples\n")
    print(comparison(small, [*known_methods(), *SANITY]))
    print("\n## The 7 x 8 grid of lambda and gamma on the same table, one rate, 10 folds\n")
    print(grid(small))
    print("\n## 128 channels x 18 features x 2000 samples\n")
    slow = ("PS-NSGA", "MRMSR", "GRMOR")
    large = make_table(128, n_subjects=50, n_epochs=40)
    print(comparison(large, [name for name in known_methods() if name not in slow]))


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


def comparison(table: FeatureTable, methods: list[str]) -> str:
    """Processor seconds of one unit of each method, and of all of them."""
    rows, total, ours = [], 0.0, 0.0
    for contestant in find_contestants(methods):
        seconds, selection = one_unit(table, contestant, Protocol(rates=(0.3,)))
        total += seconds
        ours += seconds if contestant.name not in (*SANITY, "PS-NSGA") else 0.0
        rows.append([contestant.name, f"{selection:.2f}", f"{seconds:.1f}"])
    for name, sum_ in (("all but PS-NSGA and sanity lines", ours), ("all", total)):
        minutes = sum_ * N_UNITS / CORES / 60
        rows.append([f"**{name}**: {minutes:.1f} minutes for {N_UNITS} folds on {CORES} cores"])
        rows[-1] += ["", f"{sum_:.1f}"]
    return markdown(["method", "one selection, s", "one unit with tuning, s"], rows)


def grid(table: FeatureTable) -> str:
    """Processor seconds of the paper's grid."""
    contestant = idfsmec_contestant(lams=PAPER_LAMS, gammas=PAPER_GAMMAS)
    seconds, _ = one_unit(table, contestant, Protocol(rates=(0.3,), tuning="grid"))
    return f"{seconds:.1f} s a fold: {seconds * 10 / CORES:.0f} s for 10 folds on {CORES} cores"


def one_unit(
    table: FeatureTable, contestant: Contestant, protocol: Protocol
) -> tuple[float, float]:
    """Processor seconds of the first fold, and seconds of the selection alone in it."""
    arrays = TableArrays.of("table", table)
    unit = next(iter(plan_units([arrays], [contestant], protocol, "benchmark")))
    began = time.process_time()
    outcome = run_unit(unit, arrays)
    if outcome.result is None:
        raise RuntimeError(outcome.error)
    return time.process_time() - began, min(outcome.result.seconds)


def full() -> None:
    """Run the comparison and the grid of the smaller table for real, on two processes."""
    table = make_table(19, n_subjects=55, n_epochs=30)
    methods = [name for name in known_methods() if name != "PS-NSGA"]
    with tempfile.TemporaryDirectory() as out:
        began = time.perf_counter()
        accuracy(table, out, methods=methods, protocol=Protocol(rates=RATES), n_jobs=CORES)
        print(f"comparison: {(time.perf_counter() - began) / 60:.1f} minutes")
        began = time.perf_counter()
        sensitivity(table, out, n_jobs=CORES)
        print(f"grid: {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true")
    full() if parser.parse_args().full else main()
