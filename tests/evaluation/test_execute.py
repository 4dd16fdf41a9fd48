"""Processes here: what they are sent, and what happens when one is killed."""

import os
import signal
import sys

import numpy as np
import pytest

from idfsmec.errors import InputError
from idfsmec.evaluation import Method, Protocol, execution
from idfsmec.evaluation.execution import execute
from idfsmec.evaluation.sanity import AnovaF
from idfsmec.evaluation.tables import TableArrays
from idfsmec.evaluation.units import UnitOutcome, plan_folds

from .cohorts import make_cohort

PROTOCOL = Protocol(rates=[0.3], n_splits=4, ks=[2], svm_costs=[0.1])


class KillsItsWorker(AnovaF):
    """Takes its process down: the first time only, or always."""

    def __init__(self, *, n_features_to_select=20, flag=None):
        super().__init__(n_features_to_select=n_features_to_select)
        self.flag = flag

    def fit(self, X, y):
        if self.flag is not None:
            try:
                os.close(os.open(self.flag, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return super().fit(X, y)
        os.kill(os.getpid(), signal.SIGKILL)
        return self


def say_kind_of_array(unit, table):
    return UnitOutcome(unit.key, error=f"{type(table.X).__name__} {table.X.flags.writeable}")


def plan(method, table=None):
    arrays = TableArrays.of("t", make_cohort() if table is None else table)
    return list(plan_folds([arrays], [method], PROTOCOL)), {"t": arrays}


@pytest.mark.slow
def test_a_table_reaches_the_processes_as_a_memory_map_not_with_each_unit(monkeypatch):
    monkeypatch.setattr(execution, "run_unit", say_kind_of_array)
    units, tables = plan(Method("a", AnovaF()), make_cohort(n_features=800))
    assert tables["t"].X.nbytes > 2**20
    assert {outcome.error for outcome in execute(units, tables, n_jobs=2)} == {"memmap False"}


def test_the_arrays_that_are_sent_say_all_that_the_table_says():
    table = make_cohort()
    arrays = TableArrays.of("t", table)
    assert np.array_equal(arrays.X, table.X.to_numpy())
    assert [table.channels[code] for code in arrays.channel_of] == table.column_channels
    assert (table.y[arrays.y == 1] == "MDD").all()
    assert np.unique(arrays.subjects).size == 24


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:A worker stopped")
def test_a_process_killed_once_costs_nothing_but_time(tmp_path):
    units, tables = plan(Method("k", KillsItsWorker(flag=str(tmp_path / "flag"))))
    outcomes = list(execute(units, tables, n_jobs=2))
    assert (tmp_path / "flag").exists()
    assert {outcome.key for outcome in outcomes} == {unit.key for unit in units}
    assert all(outcome.error is None for outcome in outcomes)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:A worker stopped")
def test_processes_killed_again_and_again_end_the_run_with_advice(monkeypatch):
    monkeypatch.setattr(execution, "_MOST_BREAKS", 2)
    units, tables = plan(Method("k", KillsItsWorker()))
    with pytest.raises(
        RuntimeError, match=r"killed 2 times in a row; give fewer, such as n_jobs=1"
    ):
        list(execute(units, tables, n_jobs=2))


def test_nothing_to_do_starts_nothing():
    assert list(execute([], {}, n_jobs=2)) == []


def test_a_cluster_without_the_package_for_it_is_refused_with_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    for name in ("idfsmec._cluster", "idfsmec.evaluation._cluster"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    table = TableArrays.of("t", make_cohort())
    units = list(plan_folds([table], [Method("f", AnovaF())], PROTOCOL))
    with pytest.raises(InputError, match=r"needs the package .*install idfsmec\[dask\]"):
        execute(units, {"t": table}, dask="tcp://127.0.0.1:1")
