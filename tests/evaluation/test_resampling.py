"""How sure a ranking is: halves of the subjects, kept beside the results."""

import json

import numpy as np
import pandas as pd
import pytest

from idfsmec import IDFSMEC, StabilitySelector, evaluation
from idfsmec.errors import InputError
from idfsmec.evaluation import Protocol, Results, resample_table
from idfsmec.evaluation._export import as_typed
from idfsmec.table import FeatureTable

from .cohorts import make_cohort

SMALL = Protocol(rates=(0.0,), n_splits=2, n_inner_splits=2, ks=(2,), svm_costs=(0.1,))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("results")
    evaluation.accuracy(
        make_cohort(), out, methods=["IDFS-MEC"], protocol=SMALL, n_jobs=1, progress=False
    )
    return out


def test_the_outcome_is_that_of_the_stability_selector_with_the_setting_of_tuning(folder):
    results = evaluation.resampling(make_cohort(), folder, progress=False)
    rows = results.scores[results.scores["chosen"]]
    setting = json.loads(rows["params"].mode().iloc[0])
    setting.pop("C", None)
    table, found = make_cohort(), results.resampling["table"]
    own = StabilitySelector(IDFSMEC(**setting), random_state=0)
    own.fit(table.X, table.y, groups=table.subjects)
    assert list(found["frequency"].values()) == own.frequencies_.tolist()
    assert list(found["channel_frequency"].values()) == own.channel_frequencies_.tolist()
    assert found["threshold"] == own.threshold_
    assert found["stability"]["value"] == own.stability_.value
    assert Results.read(folder).resampling == results.resampling


def test_what_is_there_is_not_computed_again_until_something_changes(folder, monkeypatch):
    first = evaluation.resampling(make_cohort(), folder, progress=False).resampling

    def refuse(*args, **kwargs):
        raise AssertionError("computed again")

    monkeypatch.setattr("idfsmec.evaluation._resampling.resample_table", refuse)
    assert evaluation.resampling(make_cohort(), folder, progress=False).resampling == first
    for changed in ({"seed": 1}, {"n_resamples": 50}):
        with pytest.raises(AssertionError, match="computed again"):
            evaluation.resampling(make_cohort(), folder, progress=False, **changed)
    with pytest.raises(AssertionError, match="computed again"):
        evaluation.resampling(make_cohort(seed=1), folder, progress=False)


def test_progress_is_one_line_where_there_is_no_terminal(folder, capfd):
    evaluation.resampling(make_cohort(), folder, n_resamples=10)
    assert capfd.readouterr().err == "how sure: 10 halves of the subjects of table\n"


def test_blind_picks_reach_what_is_said():
    rng = np.random.default_rng(0)
    found = resample_table(make_cohort(n_channels=5, n_features=4), {}, n_resamples=2)
    picked = [rng.permutation(20)[: found["n_picked"]] for _ in range(20_000)]
    in_first = np.mean([(one < 4).any() for one in picked])
    assert found["channel_chance"]["E1"] == pytest.approx(in_first, abs=0.01)
    assert found["chance"] == found["n_picked"] / 20


def test_too_few_subjects_are_a_reason_not_an_error():
    table = FeatureTable(
        pd.DataFrame({"E1__a": [0.0, 1.0, 2.0]}), pd.Series([0, 0, 1]), pd.Series([1, 2, 3])
    )
    assert "at least 2 subjects of each class" in resample_table(table, {})["reason"]


@pytest.mark.parametrize("number", [0, 7, -2])
def test_an_impossible_number_of_halves_is_refused(folder, number):
    with pytest.raises(InputError, match="even number"):
        evaluation.resampling(make_cohort(), folder, n_resamples=number)


def test_the_command_is_kept_as_one_types_it():
    assert as_typed(["/usr/bin/idfsmec", "report", "my results"]) == "idfsmec report 'my results'"
    assert as_typed([""]) == ""
