"""A fold of a large table is a few copies of it, however many inner folds and methods."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from idfsmec.evaluation import METHODS, Protocol, fold_data
from idfsmec.evaluation.shelf import Shelf
from idfsmec.evaluation.tables import TableArrays
from idfsmec.evaluation.units import plan_folds
from idfsmec.solver import scaling
from idfsmec.table import FeatureTable

PROTOCOL = Protocol(n_splits=3, rates=(0.3,), ks=(5, 10))


def make_table(n_rows, n_channels, n_features):
    rng = np.random.default_rng(0)
    person = np.arange(n_rows) // 20
    X = rng.normal(size=(n_rows, n_channels * n_features))
    X[:, ::n_features] += 0.5 * (person % 2)[:, None]
    names = [f"E{v}__f{j}" for v in range(n_channels) for j in range(n_features)]
    return FeatureTable(pd.DataFrame(X, columns=names), person % 2, person)


def first_units(arrays, methods, protocol=PROTOCOL):
    units = plan_folds([arrays], [METHODS[name] for name in methods], protocol)
    return [unit for unit in units if unit.fold == 0]


@pytest.mark.slow
def test_a_unit_on_a_large_table_takes_four_times_its_memory_at_most(monkeypatch):
    # The table is large in relation to what is kept and to what is worked on at a time.
    monkeypatch.setattr(fold_data, "KEPT", 0)
    monkeypatch.setattr(fold_data, "_BLOCK_ROWS", 128)
    monkeypatch.setattr(scaling, "_BLOCK_ELEMENTS", 100_000)
    arrays = TableArrays.of("t", make_table(3000, 12, 20))
    for unit in first_units(arrays, ["ANOVA F"]):
        tracemalloc.start()
        unit.compute(arrays)
        left, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 4 * arrays.X.nbytes
        assert left < 0.5 * arrays.X.nbytes


def test_a_table_read_from_a_file_is_one_array_that_nobody_copies(tmp_path):
    written = make_table(500, 10, 20)
    X = written.X.copy()
    X.iloc[::7, 20:40] = np.nan
    path = FeatureTable(X, written.y, written.subjects).write(tmp_path / "table.parquet")
    table = FeatureTable.read(path)
    np.testing.assert_array_equal(table.X, X)
    assert np.shares_memory(TableArrays.of("t", table).X, table.X.to_numpy())


@pytest.mark.parametrize("gaps", ["everywhere", "selection"])
def test_results_do_not_depend_on_how_much_is_kept(gaps, monkeypatch):
    arrays = TableArrays.of("t", make_table(400, 4, 3))
    protocol = PROTOCOL.with_changes(gaps=gaps)
    kept = [unit.compute(arrays) for unit in first_units(arrays, ["IDFS-MEC", "RFS"], protocol)]
    monkeypatch.setattr(fold_data, "KEPT", 0)
    other = replace(arrays, digest="the same values, not known yet")
    again = [unit.compute(other) for unit in first_units(other, ["IDFS-MEC", "RFS"], protocol)]
    assert [one.rows for one in kept] == [one.rows for one in again]
    assert [one.rankings for one in kept] == [one.rankings for one in again]


def test_a_shelf_keeps_the_first_things_that_fit_and_makes_the_others_again():
    made = []

    def make(name):
        made.append(name)
        return name.upper()

    shelf = Shelf(100)
    for name in "abcabc":
        assert shelf.get(name, 40, lambda name=name: make(name)) == name.upper()
        assert shelf.size <= 100
    assert "".join(made) == "abcbc"
    assert shelf.get("large", 1000, lambda: make("large")) == "LARGE"
    assert shelf.size == 1000
    shelf.trim()
    assert shelf.size == 0
