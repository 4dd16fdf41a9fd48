"""What a default comparison costs: one fold of each method measured, all folds added up.

``python -m benchmarks evaluation`` measures processor seconds of one unit per method, which a
busy machine disturbs little, and adds up what two cores need for all folds. With real wall time:
``python -m benchmarks.speed.evaluation --full 19``, ``--full 128`` and ``--grid``.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from benchmarks._data import channel_table
from benchmarks._timing import markdown
from idfsmec.evaluation import Protocol, accuracy
from idfsmec.evaluation.run import table_arrays
from idfsmec.evaluation.tasks import plan_folds, run_task
from idfsmec.paper import PAPER_GAMMAS, PAPER_LAMS, sensitivity
from idfsmec.prediction.methods import METHODS, Method, find_methods, settings_grid
from idfsmec.prediction.samples import Samples
from idfsmec.table import FeatureTable

N_FOLDS = len(Protocol().rates) * Protocol().n_splits
CORES = 2


def main() -> None:
    """Print all tables of this module."""
    small = small_table()
    print("## 19 channels x 18 features x 1650 samples\n")
    print(comparison(small, find_methods()))
    print("\n## The 7 x 8 grid of lambda and gamma on the same table, one rate, 10 folds\n")
    print(grid(small))
    print("\n## 128 channels x 18 features x 2000 samples\n")
    print(comparison(large_table(), quick()))


def quick() -> list[Method]:
    """Methods of a default comparison without those that take minutes."""
    return [one for one in find_methods() if not one.slow]


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
    """Processor seconds of one task of each method, and of all of them."""
    arrays, protocol = table_arrays({"table": table})["table"], Protocol(rates=(0.3,))
    rows: list[list[str]] = []
    # The first method imputes for all.
    fresh, again = (one_task(arrays, METHODS["random"], protocol)[0] for _ in range(2))
    sums = {"all but the slow ones": fresh - again, "all": fresh - again}
    rows.append(["imputing the fold and its inner folds", "", f"{fresh - again:.2f}"])
    for method in methods:
        seconds, selection = one_task(arrays, method, protocol)
        sums["all"] += seconds
        sums["all but the slow ones"] += 0.0 if method.slow else seconds
        rows.append([method.name, f"{selection:.2f}", f"{seconds:.2f}"])
    for name, sum_ in sums.items():
        minutes = sum_ * N_FOLDS / CORES / 60
        rows.append([f"**{name}**: {minutes:.1f} minutes for {N_FOLDS} folds on {CORES} cores"])
        rows[-1] += ["", f"{sum_:.1f}"]
    return markdown(["method", "one selection, s", "one task with tuning, s"], rows)


def grid(table: FeatureTable) -> str:
    """Processor seconds of the paper's grid."""
    settings = settings_grid(lam=PAPER_LAMS, gamma=PAPER_GAMMAS)
    method = replace(METHODS["IDFS-MEC"], settings=settings)
    protocol = Protocol(rates=(0.3,), tuning="grid")
    seconds, _ = one_task(table_arrays({"table": table})["table"], method, protocol)
    return f"{seconds:.1f} s a fold: {seconds * 10 / CORES:.0f} s for 10 folds on {CORES} cores"


def one_task(table: Samples, method: Method, protocol: Protocol) -> tuple[float, float]:
    """Processor seconds of the first fold, and seconds of the selection alone in it."""
    task = next(iter(plan_folds(table, [method], protocol)))
    with threadpool_limits(1):  # as in a worker
        began = time.process_time()
        result = run_task(task, {"table": table})
        seconds = time.process_time() - began
    if result.error is not None:
        raise RuntimeError(result.error)
    return seconds, min(result.seconds)


def full(n_channels: int, everything: bool, out: str | None) -> None:
    """Run a default comparison for real on two processes and print its wall time."""
    table = small_table() if n_channels == 19 else large_table()
    methods = find_methods() if everything else quick()
    with tempfile.TemporaryDirectory() as fresh:
        began = time.perf_counter()
        results = accuracy(table, Path(out or fresh), methods=methods, n_jobs=CORES)
        minutes = (time.perf_counter() - began) / 60
        print(f"{n_channels} channels, {len(methods)} methods: {minutes:.1f} minutes in all")
        used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        seconds = sum(one.ru_utime + one.ru_stime for one in used)
        print(f"processor: {seconds:.0f} s; units failed: {len(results.failures)}\n")
        print((100 * results.mean_scores()).round(1).to_string())


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
    parser.add_argument("--all", action="store_true", help="also methods that take minutes")
    parser.add_argument("--out", help="folder to keep; a run that was stopped goes on from it")
    return parser.parse_args()


if __name__ == "__main__":
    given = _parse()
    if given.full:
        full(given.full, given.all, given.out)
    elif given.grid:
        grid_for_real(small_table())
    else:
        main()
