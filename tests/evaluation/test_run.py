import itertools
import json

import joblib
import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from idfsmec.errors import InputError
from idfsmec.evaluation import Contestant, Protocol, Results, _run, accuracy
from idfsmec.evaluation._sanity import AnovaF, RandomOrder
from idfsmec.missing import make_gaps
from idfsmec.table import FeatureTable

from .cohorts import comparable, make_cohort

PROTOCOL = Protocol(rates=[0.0, 0.3], n_splits=3, ks=[2, 4], svm_costs=[0.1])
METHODS = ["random", "ANOVA F"]
WITH_OURS = ["IDFS-MEC", "random"]


@pytest.fixture
def counted(monkeypatch):
    """Units that are really computed."""
    seen = []

    def execute(units, *rest):
        seen.extend(units)
        return real(units, *rest)

    real = _run.execute
    monkeypatch.setattr(_run, "execute", execute)
    return seen


def run(out, protocol=PROTOCOL, methods=METHODS, tables=None, **how):
    how = {"n_jobs": 1, "progress": False, **how}
    tables = make_cohort() if tables is None else tables
    return accuracy(tables, out, methods=methods, protocol=protocol, **how)


class FailsAtFirst(AnovaF):
    """Fails as long as a file is there."""

    def __init__(self, *, n_features_to_select=None, flag=None):
        super().__init__(n_features_to_select=n_features_to_select)
        self.flag = flag

    def fit(self, X, y):
        from pathlib import Path

        if Path(self.flag).exists():
            raise RuntimeError("the disk is full")
        return super().fit(X, y)


def test_two_processes_give_what_one_gives_to_the_last_bit(tmp_path):
    one = run(tmp_path / "one", methods=WITH_OURS)
    two = run(tmp_path / "two", methods=WITH_OURS, n_jobs=2)
    assert len(one.scores) == 2 * 3 * 2 * 2
    for a, b in zip(comparable(one), comparable(two), strict=True):
        assert_frame_equal(a, b, check_exact=True)


def test_a_finished_run_computes_nothing_again_and_gives_the_same_files(tmp_path, counted):
    first = run(tmp_path)
    assert len(counted) == 12
    before = (tmp_path / "results.csv").read_bytes()
    counted.clear()
    again = run(tmp_path)
    assert counted == []
    assert (tmp_path / "results.csv").read_bytes() == before
    assert_frame_equal(first.scores, again.scores, check_exact=True)


@pytest.mark.parametrize(
    ("change", "n_computed"),
    [
        ({"rates": [0.0, 0.3, 0.5]}, 6),  # a new rate only
        ({"seeds": [0, 1]}, 12),  # a new seed only
        ({"patterns": ["random", "uneven"]}, 6),  # without gaps there is nothing new
        ({"ks": [2]}, 12),  # touches all
    ],
)
def test_a_change_recomputes_only_what_it_touches(tmp_path, counted, change, n_computed):
    run(tmp_path)
    counted.clear()
    protocol = PROTOCOL.with_changes(**change)
    results = run(tmp_path, protocol)
    assert len(counted) == n_computed
    planned = len(protocol.rates) * len(protocol.seeds) * len(protocol.patterns) * 3 * 2
    assert len(results.selections) == planned


def test_another_setting_of_one_method_recomputes_that_method_only(tmp_path, counted):
    run(tmp_path, methods=["random", Contestant("mine", AnovaF())])
    counted.clear()
    run(tmp_path, methods=["random", Contestant("mine", RandomOrder())])
    assert {unit.contestant.name for unit in counted} == {"mine"}


def test_rows_taken_away_by_a_change_leave_the_results(tmp_path):
    run(tmp_path)
    less = run(tmp_path, PROTOCOL.with_changes(rates=[0.3]), methods=["random"])
    assert set(less.scores["method"]) == {"random"}
    assert set(less.scores["rate"]) == {0.3}


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_failed_unit_is_recorded_not_done_and_tried_again(tmp_path, n_jobs):
    flag = tmp_path / "full"
    flag.touch()
    methods = ["random", Contestant("shaky", FailsAtFirst(flag=str(flag)))]
    protocol = PROTOCOL.with_changes(rates=[0.3])
    failed = run(tmp_path / "out", protocol, methods, n_jobs=n_jobs)
    assert set(failed.scores["method"]) == {"random"}
    assert len(failed.failures) == 3
    assert "RuntimeError: the disk is full" in failed.failures["traceback"][0]
    flag.unlink()
    mended = run(tmp_path / "out", protocol, methods, n_jobs=n_jobs)
    assert len(mended.failures) == 0
    assert set(mended.scores["method"]) == {"random", "shaky"}


def test_ctrl_c_leaves_what_is_done_readable_and_the_next_start_goes_on(tmp_path, monkeypatch):
    whole = run(tmp_path / "whole")

    def interrupted(units, *rest):
        for i, outcome in enumerate(real(units, *rest)):
            if i == 5:
                raise KeyboardInterrupt
            yield outcome

    real = _run.execute
    monkeypatch.setattr(_run, "execute", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "out")
    part = Results.read(tmp_path / "out")
    assert len(part.selections) == 5
    monkeypatch.undo()
    assert_frame_equal(
        comparable(run(tmp_path / "out"))[0], comparable(whole)[0], check_exact=True
    )


def test_the_folder_holds_everything_a_reader_needs(tmp_path):
    table = make_gaps(make_cohort(), 0.1, "recording", 0)
    results = run(tmp_path, tables={"first": table, "second": make_cohort(seed=1)})
    assert_frame_equal(
        pd.read_csv(tmp_path / "results.csv", dtype={"params": str}).drop(columns="seconds"),
        results.scores.drop(columns="seconds"),
        check_dtype=False,
    )
    assert results.protocol["folds"] == "subject"
    assert results.protocol["sizes"]["first"] == {
        "n_samples": 96,
        "n_subjects": 24,
        "n_classes": 2,
    }
    band = results.protocol["chance"]["first"]["subject_accuracy"]
    assert band["chance"] == 0.5
    assert band["n"] == 24
    described = results.tables["first"]
    assert described["channels"] == ["E1", "E2", "E3", "E4"]
    assert described["share_missing"] == pytest.approx(0.1, abs=0.02)
    assert np.shape(described["missing_by_recording"]["share"]) == (24, 4)
    assert results.environment["versions"]["numpy"] == np.__version__
    assert results.environment["seeds"] == [0]
    assert results.environment["start"] <= results.environment["end"]
    json.dumps(results.protocol)


def test_the_ranking_of_the_whole_table_has_the_stability_of_its_features(tmp_path):
    results = run(tmp_path, methods=["IDFS-MEC"], tables=make_cohort(effect=3.0))
    best = results.ranking.iloc[0]
    assert best["rank"] == 1
    assert (best["channel"], best["feature"]) in {("E1", "f1"), ("E2", "f1")}
    assert best["stability"] == 1.0
    assert results.ranking["stability"].between(0, 1).all()
    history = results.convergence["table"]
    assert all(a >= b for a, b in itertools.pairwise(history))


def test_selections_name_features_best_first(tmp_path):
    results = run(tmp_path, tables=make_cohort(effect=3.0))
    anova = results.selections[results.selections["method"] == "ANOVA F"]
    assert {frozenset(ranking[:2]) for ranking in anova["ranking"]} == {
        frozenset({"E1__f1", "E2__f1"})
    }
    assert set(anova["k"]) <= {2, 4}


def test_oracle_marks_the_setting_that_is_best_on_average_over_folds(tmp_path):
    protocol = PROTOCOL.with_changes(tuning="oracle", rates=[0.3], svm_costs=[0.01, 1.0])
    results = run(tmp_path, protocol)
    assert results.protocol["optimistic"]
    for _, own in results.scores.groupby("method"):
        means = own.groupby(["k", "params"])["balanced_accuracy"].mean()
        chosen = own[own["chosen"]]
        assert len(chosen) == 3
        assert chosen["balanced_accuracy"].mean() == pytest.approx(means.max())
    assert set(results.selections["k"]) <= {2, 4}


def test_a_table_that_cannot_be_split_is_refused_by_name_before_any_work(tmp_path):
    with pytest.raises(InputError, match="table small: 3 folds by subject are not possible"):
        run(tmp_path, tables={"small": make_cohort(n_subjects=4)})
    one_class = make_cohort()
    one_class = FeatureTable(one_class.X, ["HC"] * len(one_class), one_class.subjects)
    with pytest.raises(InputError, match="table table: all samples have the label 'HC'"):
        run(tmp_path, tables=one_class)
    with pytest.raises(InputError, match="needs to know where the electrodes are"):
        run(tmp_path, PROTOCOL.with_changes(patterns=["region"]))
    assert not (tmp_path / "store.sqlite").exists()


def test_gaps_by_region_work_with_known_electrodes(tmp_path):
    table = make_cohort()
    names = dict(zip(["E1", "E2", "E3", "E4"], ["F3", "F4", "O1", "O2"], strict=True))
    X = table.X.rename(columns=lambda c: names[c[:2]] + c[2:])
    protocol = PROTOCOL.with_changes(patterns=["region"], rates=[0.3])
    results = run(tmp_path, protocol, ["random"], tables=FeatureTable(X, table.y, table.subjects))
    assert len(results.failures) == 0
    assert len(results.selections) == 3


@pytest.mark.parametrize(("n_jobs", "counted"), [(-1, 4), (-2, 3), (-9, 1), (None, 4), (3, 3)])
def test_jobs_are_counted_as_joblib_counts_them(tmp_path, monkeypatch, n_jobs, counted):
    seen = []
    monkeypatch.setattr(joblib, "cpu_count", lambda: 4)
    monkeypatch.setattr(
        _run, "execute", lambda units, arrays, jobs, dask: seen.append(jobs) or iter(())
    )
    run(tmp_path, n_jobs=n_jobs)
    assert seen == [counted]


def test_no_jobs_are_refused(tmp_path):
    with pytest.raises(InputError, match="n_jobs=0: give 1 or more"):
        run(tmp_path, n_jobs=0)


def test_a_folder_without_results_says_how_to_make_some(tmp_path):
    with pytest.raises(InputError, match="idfsmec benchmark TABLE"):
        Results.read(tmp_path)
