import dataclasses
import os
import subprocess
import sys
import threading
import warnings

import pytest
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from idfsmec.evaluation import Protocol
from idfsmec.evaluation.tasks import plan_folds, run_task
from idfsmec.prediction.methods import Imputer, Method, find_methods
from idfsmec.prediction.sanity import AnovaF
from idfsmec.selection import IDFSMEC

from .cohorts import make_arrays, make_cohort

PROTOCOL = Protocol(rates=[0.3], n_splits=2)


@pytest.fixture(scope="module")
def arrays():
    return make_arrays(make_cohort())


def key(table, method=None, fold=0, **changes):
    """Key of one unit of a plan."""
    protocol = PROTOCOL.with_changes(**changes)
    return list(plan_folds(table, [method or Method("x", IDFSMEC())], protocol))[fold].key


def test_a_key_changes_with_all_that_decides_the_result(arrays):
    changed = [
        key(make_arrays(make_cohort(seed=1))),
        key(arrays, fold=1),
        key(arrays, Method("x", IDFSMEC(), settings=({"lam": 2.0},))),
        key(arrays, Method("x", IDFSMEC(max_iter=5))),
        key(arrays, Method("x", IDFSMEC(), costs=(1.0,))),
        key(arrays, Method("x", IDFSMEC(), classifier="boosting")),
        key(arrays, Method("x", IDFSMEC(), imputer=Imputer("nearest", KNNImputer()))),
        key(arrays, Method("x", AnovaF())),
        *(
            key(arrays, **{name: value})
            for name, value in {
                "patterns": ["uneven"],
                "rates": [0.4],
                "seeds": [1],
                "folds": "sample",
                "missing_in": "selection",
                "tuning": "oracle",
                "n_splits": 5,
                "n_inner_splits": 4,
                "ks": [10],
                "metric": "accuracy",
                "svm_costs": [1.0],
            }.items()
        ),
    ]
    assert len({key(arrays), *changed}) == len(changed) + 1


def test_a_key_changes_with_the_version_of_the_package(arrays, monkeypatch):
    before = key(arrays)
    monkeypatch.setattr("idfsmec.evaluation.tasks.__version__", "99.0")
    assert key(arrays) != before


PIPELINE = make_pipeline(SimpleImputer(), SelectKBest(f_classif), LogisticRegression())


def test_another_process_finds_the_tasks_of_a_pipeline_of_scikit_learn(arrays):
    command = f"from {__name__} import *; print(key(make_arrays(), Method('pipe', PIPELINE)))"
    done = subprocess.run(
        [sys.executable, "-c", command],
        env=os.environ | {"PYTHONHASHSEED": "7", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == key(arrays, Method("pipe", PIPELINE))


def test_a_method_that_cannot_be_described_has_new_keys_and_that_is_said_once(arrays):
    select = SelectKBest(closure_of(threading.Lock()))
    locked = Method("locked", make_pipeline(SimpleImputer(), select, LogisticRegression()))
    with pytest.warns(UserWarning, match="The method 'locked' cannot be described .* not cached"):
        first = key(arrays, locked)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert key(arrays, locked) != first  # of another table or experiment, too


def closure_of(lock):
    def score(X, y):
        with lock:
            return f_classif(X, y)

    return score


def test_a_key_does_not_change_with_names_of_files_or_with_other_units(arrays):
    assert key(dataclasses.replace(arrays, name="other")) == key(arrays)
    more = {"rates": [0.3, 0.7], "seeds": [0, 5], "patterns": ["random", "uneven"]}
    assert key(arrays, **more) == key(arrays)
    assert key(arrays, Method("x", IDFSMEC(), "wrapper", "in other words")) == key(arrays)


def test_without_gaps_all_patterns_share_a_unit(arrays):
    one, other = (key(arrays, rates=[0.0], patterns=[name]) for name in ("random", "burst"))
    assert one == other


def test_units_that_share_a_fold_follow_each_other(arrays):
    protocol = Protocol(rates=[0.0, 0.3], n_splits=2)
    units = list(plan_folds(arrays, find_methods(["random", "ANOVA F"]), protocol))
    assert len(units) == 8
    assert [(u.coordinates["rate"], u.coordinates["fold"]) for u in units[:4]] == [
        (0.0, 0),
        (0.0, 0),
        (0.0, 1),
        (0.0, 1),
    ]


def test_an_error_becomes_part_of_the_result(arrays):
    class Broken(AnovaF):
        def fit(self, X, y):
            raise RuntimeError("no luck today")

    (unit, *_) = plan_folds(arrays, [Method("b", Broken())], Protocol(n_splits=2))
    result = run_task(unit, {"t": arrays})
    assert result.rows == []
    assert "RuntimeError: no luck today" in result.error


def test_warnings_of_a_unit_are_kept_with_it():
    table = make_cohort()
    X = table.X.copy()
    X[["E4__f1", "E4__f2", "E4__f3"]] = 1.0
    arrays = make_arrays(dataclasses.replace(table, X=X))
    protocol = Protocol(n_splits=2, ks=[2])
    (unit, *_) = plan_folds(arrays, find_methods(["IDFS-MEC"]), protocol)
    notes = run_task(unit, {"t": arrays}).notes
    assert any("rank last: 3" in note for note in notes), notes
