import dataclasses

import pytest

from idfsmec.evaluation import Contestant, Protocol, find_contestants
from idfsmec.evaluation._fold_data import TableArrays
from idfsmec.evaluation._sanity import AnovaF
from idfsmec.evaluation._units import plan_units, run_unit, unit_key
from idfsmec.selection import IDFSMEC

from .cohorts import make_cohort

WHERE = ("random", 0.3, 0, 0)


@pytest.fixture(scope="module")
def arrays():
    return TableArrays.of("t", make_cohort())


def key(table, where=WHERE, contestant=None, protocol=None, version="1"):
    contestant = contestant or Contestant("x", IDFSMEC())
    return unit_key(table, where, contestant, protocol or Protocol(), version)


def test_a_key_changes_with_all_that_decides_the_result(arrays):
    changed = [
        key(TableArrays.of("t", make_cohort(seed=1))),
        *(
            key(arrays, where=where)
            for where in [
                ("uneven", 0.3, 0, 0),
                ("random", 0.4, 0, 0),
                ("random", 0.3, 1, 0),
                ("random", 0.3, 0, 1),
            ]
        ),
        key(arrays, contestant=Contestant("x", IDFSMEC(), grid=({"lam": 2.0},))),
        key(arrays, contestant=Contestant("x", IDFSMEC(max_iter=5))),
        key(arrays, contestant=Contestant("x", AnovaF())),
        key(arrays, version="2"),
        *(
            key(arrays, protocol=Protocol(**{name: value}))
            for name, value in {
                "folds": "sample",
                "gaps": "selection",
                "tuning": "oracle",
                "n_splits": 5,
                "n_inner_splits": 4,
                "ks": [10],
                "metric": "accuracy",
                "svm_costs": [1.0],
                "class_weight": None,
            }.items()
        ),
    ]
    assert len({key(arrays), *changed}) == len(changed) + 1


def test_a_key_does_not_change_with_names_of_files_or_with_other_units(arrays):
    assert key(dataclasses.replace(arrays, name="other")) == key(arrays)
    more = Protocol(rates=[0.3, 0.7], seeds=[0, 5], patterns=["random", "uneven"])
    assert key(arrays, protocol=more) == key(arrays)


def test_without_gaps_all_patterns_share_a_unit(arrays):
    assert key(arrays, ("random", 0.0, 0, 0)) == key(arrays, ("burst", 0.0, 0, 0))


def test_units_that_share_a_fold_follow_each_other(arrays):
    protocol = Protocol(rates=[0.0, 0.3], n_splits=2)
    units = list(plan_units([arrays], find_contestants(["random", "ANOVA F"]), protocol, "1"))
    assert len(units) == 8
    assert [(u.rate, u.fold) for u in units[:4]] == [(0.0, 0), (0.0, 0), (0.0, 1), (0.0, 1)]


def test_an_error_becomes_part_of_the_outcome(arrays):
    class Broken(AnovaF):
        def fit(self, X, y):
            raise RuntimeError("no luck today")

    (unit, *_) = plan_units([arrays], [Contestant("b", Broken())], Protocol(n_splits=2), "1")
    outcome = run_unit(unit, arrays)
    assert outcome.result is None
    assert "RuntimeError: no luck today" in outcome.error


def test_warnings_of_a_unit_are_kept_with_it():
    table = make_cohort()
    X = table.X.copy()
    X[["E4__f1", "E4__f2", "E4__f3"]] = 1.0
    arrays = TableArrays.of("t", dataclasses.replace(table, X=X))
    protocol = Protocol(n_splits=2, ks=[2])
    (unit, *_) = plan_units([arrays], find_contestants(["IDFS-MEC"]), protocol, "1")
    (note,) = run_unit(unit, arrays).result.notes
    assert "rank last: 3" in note
