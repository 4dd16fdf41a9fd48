import itertools
import json
import shutil

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from idfsmec.errors import InputError
from idfsmec.evaluation import Protocol, Results, accuracy, cost
from idfsmec.evaluation.run import describe_table
from idfsmec.missing import simulate_missing
from idfsmec.prediction import Method
from idfsmec.prediction.sanity import AnovaF, RandomOrder
from idfsmec.table import FeatureTable

from .cohorts import OURS, Computed, comparable, make_cohort

pytestmark = pytest.mark.slow

PROTOCOL = Protocol(rates=[0.0, 0.3], n_splits=2, ks=[2, 4], svm_costs=[0.1], n_inner_splits=2)
METHODS = ["random", "ANOVA F"]
WITH_OURS = [OURS, "random"]


def run(out, protocol=PROTOCOL, methods=METHODS, tables=None, **how):
    how = {"n_jobs": 1, **how}
    tables = make_cohort() if tables is None else tables
    return accuracy(tables, out, methods=methods, protocol=protocol, **how)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of a finished run."""
    return run(tmp_path_factory.mktemp("whole")).folder


@pytest.fixture
def finished(whole, tmp_path):
    """A copy of it, for a test that goes on from there."""
    return shutil.copytree(whole, tmp_path / "finished")


class FailsAtFirst(AnovaF):
    """Fails as long as a file is there."""

    def __init__(self, *, n_features_to_select=20, flag=None):
        super().__init__(n_features_to_select=n_features_to_select)
        self.flag = flag

    def fit(self, X, y):
        from pathlib import Path

        if Path(self.flag).exists():
            raise RuntimeError("the disk is full")
        return super().fit(X, y)


def test_two_processes_give_what_one_gives_to_the_last_bit(tmp_path):
    protocol = PROTOCOL.with_changes(rates=[0.3])
    one = run(tmp_path / "one", protocol, WITH_OURS)
    two = run(tmp_path / "two", protocol, WITH_OURS, n_jobs=2)
    assert len(one.scores) == 2 * 2 * 2
    for a, b in zip(comparable(one), comparable(two), strict=True):
        assert_frame_equal(a, b, check_exact=True)


def test_a_finished_run_computes_nothing_again_and_gives_the_same_files(tmp_path):
    computed, again_computed = Computed(), Computed()
    first = run(tmp_path, progress=computed)
    assert len(computed.tasks()) == 8
    before = (tmp_path / "results.csv").read_bytes()
    again = run(tmp_path, progress=again_computed)
    assert again_computed.events == []
    assert (tmp_path / "results.csv").read_bytes() == before
    assert_frame_equal(first.scores, again.scores, check_exact=True)


@pytest.mark.parametrize(
    ("change", "n_computed"),
    [
        ({"rates": [0.0, 0.3, 0.5]}, 4),  # a new rate only
        ({"seeds": [0, 1]}, 8),  # a new seed only
        ({"patterns": ["random", "uneven"]}, 4),  # without gaps there is nothing new
        ({"ks": [2]}, 8),  # touches all
    ],
)
def test_a_change_recomputes_only_what_it_touches(finished, change, n_computed):
    computed = Computed()
    protocol = PROTOCOL.with_changes(**change)
    results = run(finished, protocol, progress=computed)
    assert len(computed.tasks()) == n_computed
    planned = len(protocol.rates) * len(protocol.seeds) * len(protocol.patterns) * 2 * 2
    assert len(results.selections) == planned


def test_another_setting_of_one_method_recomputes_that_method_only(tmp_path):
    run(tmp_path, methods=["random", Method("mine", AnovaF())])
    computed = Computed()
    run(tmp_path, methods=["random", Method("mine", RandomOrder())], progress=computed)
    assert {unit.method.name for unit in computed.tasks()} == {"mine"}


def test_rows_taken_away_by_a_change_leave_the_results(finished):
    less = run(finished, PROTOCOL.with_changes(rates=[0.3]), methods=["random"])
    assert set(less.scores["method"]) == {"random"}
    assert set(less.scores["rate"]) == {0.3}


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_failed_unit_is_recorded_not_done_and_tried_again(tmp_path, n_jobs):
    flag = tmp_path / "full"
    flag.touch()
    methods = ["random", Method("shaky", FailsAtFirst(flag=str(flag)))]
    protocol = PROTOCOL.with_changes(rates=[0.3])
    failed = run(tmp_path / "out", protocol, methods, n_jobs=n_jobs)
    assert set(failed.scores["method"]) == {"random"}
    assert len(failed.failures) == 2
    assert "RuntimeError: the disk is full" in failed.failures["traceback"][0]
    flag.unlink()
    mended = run(tmp_path / "out", protocol, methods, n_jobs=n_jobs)
    assert len(mended.failures) == 0
    assert set(mended.scores["method"]) == {"random", "shaky"}


def test_ctrl_c_leaves_what_is_done_readable_and_the_next_start_goes_on(whole, tmp_path):
    def interrupt(event):
        if event.done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "out", progress=interrupt)
    part = Results.read(tmp_path / "out")
    assert len(part.selections) == 5
    assert part.ranking.empty  # nothing is fitted on the way out
    assert len(pd.read_parquet(tmp_path / "out" / "results.parquet")) == len(part.scores)
    again = run(tmp_path / "out")
    assert_frame_equal(comparable(again)[0], comparable(Results.read(whole))[0], check_exact=True)


def constant_cohort(n_subjects=24):
    table = make_cohort(n_subjects)
    return FeatureTable(table.X * 0 + 1.0, table.y, table.subjects)


def test_a_table_that_cannot_be_ranked_as_a_whole_still_has_results(tmp_path):
    results = run(tmp_path, methods=["random"], tables=constant_cohort())
    assert set(results.scores["method"]) == {"random"}
    assert results.failures.empty
    assert results.ranking.empty


def test_the_ranking_of_the_whole_table_is_a_unit_that_is_done_once(tmp_path):
    first, again = Computed(), Computed()
    protocol = PROTOCOL.with_changes(rates=[0.3])
    run(tmp_path, protocol, methods=WITH_OURS, progress=first)
    (unit,) = first.tasks("ranking")
    assert (unit.table, unit.method.name) == ("table", "IDFS-MEC")
    run(tmp_path, protocol, methods=["random"], progress=again)
    assert len(again.tasks("ranking")) <= 1  # the setting of no comparison is another one
    third = Computed()
    run(tmp_path, protocol.with_changes(n_splits=3), methods=["random"], progress=third)
    assert third.tasks("ranking") == []


def test_the_proposed_method_of_a_comparison_ranks_the_whole_table(tmp_path):
    mine = Method("mine", AnovaF(), "proposed", "my own")
    results = run(tmp_path, methods=["random", mine])
    assert set(results.ranking["method"]) == {"mine"}
    assert results.ranking["channel_weight"].isna().all()
    known = {"family": "proposed", "label": "my own", "classifier": "svm"}
    assert results.methods["mine"] == known
    assert results.methods["random"]["family"] == "sanity"


@pytest.mark.parametrize("what", ["columns", "values", "a channel fewer"])
def test_another_table_under_an_old_name_is_refused_and_old_names_stay(tmp_path, what):
    table, protocol = make_cohort(), PROTOCOL.with_changes(rates=[0.3])
    first = run(tmp_path, protocol, tables={"clinic": table})
    X = {
        "columns": table.X.rename(columns=lambda name: name.replace("E1", "E9")),
        "values": table.X + 1.0,
        "a channel fewer": table.X.iloc[:, 3:],
    }[what]
    changed = FeatureTable(X, table.y, table.subjects)
    with pytest.raises(InputError, match=r"another table named 'clinic'.*overwrite=True"):
        run(tmp_path, protocol, tables={"clinic": changed}, methods=["random"])
    with pytest.raises(InputError, match="another table named 'clinic'"):
        cost({"clinic": changed}, tmp_path, methods=["mRMR"])
    assert_frame_equal(Results.read(tmp_path).selections, first.selections)
    apart = run(tmp_path, protocol, tables={"clinic 2": changed})
    assert set(apart.selections["table"]) == {"clinic 2"}
    replaced = run(tmp_path, protocol, tables={"clinic": changed}, overwrite=True)
    assert set(replaced.selections["ranking"].explode()) <= set(X.columns)


def test_the_folder_holds_everything_a_reader_needs(tmp_path):
    table = simulate_missing(make_cohort(), 0.1, "recording", 0)
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
    described = results.tables["first"]
    assert described["channels"] == ["E1", "E2", "E3", "E4"]
    assert described["share_missing"] == pytest.approx(0.1, abs=0.02)
    assert np.shape(described["missing_by_recording"]["share"]) == (24, 4)
    assert results.environment["versions"]["numpy"] == np.__version__
    assert results.environment["seeds"] == [0]
    assert results.environment["start"] <= results.environment["end"]
    json.dumps(results.protocol)


def test_the_ranking_of_the_whole_table_has_the_stability_of_its_features(tmp_path):
    protocol = PROTOCOL.with_changes(rates=[0.0])
    results = run(tmp_path, protocol, [OURS], tables=make_cohort(effect=3.0))
    best = results.ranking.iloc[0]
    assert best["rank"] == 1
    assert (best["channel"], best["feature"]) in {("E1", "f1"), ("E2", "f1")}
    assert best["fold_frequency"] == 1.0
    assert results.ranking["fold_frequency"].between(0, 1).all()
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
        means = own.groupby(["k", "params"])["subject_balanced_accuracy"].mean()
        chosen = own[own["chosen"]]
        assert len(chosen) == 2
        assert chosen["subject_balanced_accuracy"].mean() == pytest.approx(means.max())
    assert set(results.selections["k"]) <= {2, 4}


def test_a_table_that_cannot_be_split_is_refused_by_name_before_any_work(tmp_path):
    small = {"small": make_cohort(n_subjects=4)}
    with pytest.raises(InputError, match="table small: 3 folds by participant are not possible"):
        run(tmp_path, PROTOCOL.with_changes(n_splits=3), tables=small)
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
    assert len(results.selections) == 2


def test_no_jobs_are_refused(tmp_path):
    with pytest.raises(InputError, match="n_jobs=0: give 1 or more"):
        run(tmp_path, n_jobs=0)


def test_a_folder_without_results_says_how_to_make_some(tmp_path):
    with pytest.raises(InputError, match="make some with `idfsmec benchmark`"):
        Results.read(tmp_path)


def test_a_table_says_who_has_each_channel(tmp_path):
    table = make_cohort()
    X = table.X.copy()
    X.loc[(table.y == "MDD").to_numpy(), ["E3__f1", "E3__f2", "E3__f3"]] = np.nan
    gappy = FeatureTable(X, table.y, table.subjects)
    about = describe_table(gappy)
    rows = {row["channel"]: row for row in json.loads(json.dumps(about["missing_by_class"]))}
    assert (rows["E3"]["have_HC"], rows["E3"]["have_MDD"], rows["E3"]["dead"]) == (12, 0, True)
    assert rows["E3"]["p_holm"] < 1e-5
    assert rows["E1"]["p_holm"] == 1


def test_folds_that_leave_one_participant_of_a_class_to_train_on_are_refused_at_once(tmp_path):
    with pytest.raises(InputError, match=r"table table: a fold leaves one participant of a class"):
        run(tmp_path, tables=make_cohort(n_subjects=4))
    protocol = PROTOCOL.with_changes(rates=[0.0], n_splits=3)
    assert run(tmp_path, protocol, ["random"], make_cohort(n_subjects=6)).failures.empty
