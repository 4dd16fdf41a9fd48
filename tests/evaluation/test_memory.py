"""A fold of a large table is a few copies of it, however many inner folds and methods."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from idfsmec.evaluation import Protocol
from idfsmec.evaluation.tasks import plan_folds
from idfsmec.prediction import METHODS, samples
from idfsmec.solver import scaling
from idfsmec.table import FeatureTable

from .cohorts import make_arrays

PROTOCOL = Protocol(n_splits=3, rates=(0.3,), ks=(5, 10))


def make_table(n_rows, n_channels, n_features):
    rng = np.random.default_rng(0)
    person = np.arange(n_rows) // 20
    X = rng.normal(size=(n_rows, n_channels * n_features))
    X[:, ::n_features] += 0.5 * (person % 2)[:, None]
    names = [f"E{v}__f{j}" for v in range(n_channels) for j in range(n_features)]
    return FeatureTable(pd.DataFrame(X, columns=names), person % 2, person)


def first_tasks(arrays, methods, protocol=PROTOCOL):
    planned = plan_folds(arrays, [METHODS[name] for name in methods], protocol)
    return [task for task in planned if task.coordinates["fold"] == 0]


@pytest.mark.slow
def test_a_task_on_a_large_table_takes_two_and_a_half_times_its_memory_at_most(monkeypatch):
    # The table is large in relation to what is kept and to what is worked on at a time.
    monkeypatch.setattr(samples, "KEPT_BYTES", 0)
    monkeypatch.setattr(scaling, "_BLOCK_ELEMENTS", 100_000)
    arrays = make_arrays(make_table(3000, 12, 20))
    for task in first_tasks(arrays, ["ANOVA F"]):
        tracemalloc.start()
        task.compute(arrays)
        left, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 2.5 * arrays.X.nbytes
        assert left < 0.5 * arrays.X.nbytes


def test_a_table_read_from_a_file_is_one_array_that_nobody_copies(tmp_path):
    written = make_table(500, 10, 20)
    X = written.X.copy()
    X.iloc[::7, 20:40] = np.nan
    path = FeatureTable(X, written.y, written.subjects).write(tmp_path / "table.parquet")
    table = FeatureTable.read(path)
    np.testing.assert_array_equal(table.X, X)
    assert np.shares_memory(make_arrays(table).X, table.X.to_numpy())


@pytest.mark.parametrize("missing_in", ["everywhere", "selection"])
def test_results_do_not_depend_on_how_much_is_kept(missing_in, monkeypatch):
    arrays = make_arrays(make_table(400, 4, 3))
    protocol = PROTOCOL.with_changes(missing_in=missing_in)
    kept = [task.compute(arrays) for task in first_tasks(arrays, ["IDFS-MEC", "RFS"], protocol)]
    monkeypatch.setattr(samples, "KEPT_BYTES", 0)
    other = replace(arrays, digest="the same values, not known yet")
    again = [task.compute(other) for task in first_tasks(other, ["IDFS-MEC", "RFS"], protocol)]
    assert [one.rows for one in kept] == [one.rows for one in again]
    assert [one.rankings for one in kept] == [one.rankings for one in again]
