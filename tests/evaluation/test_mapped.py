"""Tables in memory that processes share: the same values, there once, gone at the end."""

import gc
import os
import weakref
from pathlib import Path

import numpy as np
import pytest

from idfsmec._workers import run_in_processes
from idfsmec.evaluation.mapped import mapped
from idfsmec.evaluation.tables import TableArrays, table_digest
from tests.evaluation.cohorts import make_cohort


def map_of(X):
    """The memory map that an array is a view of."""
    return X if isinstance(X, np.memmap) else map_of(X.base)


def file_of(X):
    """The file that an array is a map of, and who says so."""
    return Path(map_of(X).filename), os.getpid()


@pytest.fixture
def table():
    return make_cohort()


def test_a_moved_table_is_the_same_table(table):
    given = {"one": table, "two": table.take(range(5))}
    kept = dict(given)
    with mapped(given, 2) as moved:
        assert list(moved) == ["one", "two"]
        for name, one in kept.items():
            assert moved[name].equals(one)
            assert table_digest(moved[name]) == table_digest(one)
            assert moved[name].X.index.equals(one.X.index)


def test_nobody_keeps_the_table_that_was_moved(table):
    given = {"one": table.take(range(5))}
    before = weakref.ref(given["one"])
    with mapped(given, 2) as moved:
        gc.collect()
        assert not given
        assert before() is None
        assert len(moved["one"]) == 5


def test_workers_map_the_file_of_the_table_and_get_no_copy_of_their_own(table):
    with mapped({"one": table}, 2) as moved:
        X = TableArrays.of("one", moved["one"]).X
        assert np.shares_memory(X, moved["one"].X.to_numpy())
        found = list(run_in_processes(file_of, [(X,), (X,)], 2, share_from="1K"))
    assert {path for path, _ in found} == {file_of(X)[0]}
    assert os.getpid() not in {process for _, process in found}


def test_the_file_is_gone_at_the_end(table):
    with mapped({"one": table}, 2) as moved:
        path, _ = file_of(TableArrays.of("one", moved["one"]).X)
        assert path.exists()
        assert path.parent.stat().st_mode & 0o077 == 0
    assert not path.exists()


def test_what_one_process_writes_no_other_sees(table):
    with mapped({"one": table}, 2) as moved:
        values = map_of(TableArrays.of("one", moved["one"]).X)
        first = float(values[0, 0])
        values[0, 0] = 1e9
        assert np.fromfile(values.filename, count=1)[0] == first


def test_for_one_process_nothing_is_moved(table):
    with mapped({"one": table}, 1) as same:
        assert same["one"] is table
