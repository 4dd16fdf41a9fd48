"""How stable a ranking is: halves of the subjects, units of the store like any other."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest

from idfsmec import IDFSMEC, StabilitySelector, evaluation
from idfsmec.errors import InputError
from idfsmec.evaluation import Protocol, Results
from idfsmec.table import FeatureTable

from .cohorts import Computed, make_cohort

pytestmark = pytest.mark.slow

SMALL = Protocol(rates=(0.0,), n_splits=2, n_inner_splits=2, ks=(2,), svm_costs=(0.1,))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("results")
    evaluation.accuracy(make_cohort(), out, methods=["IDFS-MEC"], protocol=SMALL, n_jobs=1)
    return out


def test_the_outcome_is_that_of_the_stability_selector_with_the_setting_of_tuning(folder):
    results = evaluation.resampling(make_cohort(), folder, n_resamples=20)
    rows = results.scores[results.scores["chosen"]]
    setting = json.loads(rows["params"].mode().iloc[0])
    setting.pop("C", None)
    table, found = make_cohort(), results.resampling["table"]
    own = StabilitySelector(IDFSMEC(**setting), n_resamples=20, random_state=0)
    own.fit(table.X, table.y, groups=table.subjects)
    assert list(found["frequency"].values()) == own.frequencies_.tolist()
    assert list(found["channel_frequency"].values()) == own.channel_frequencies_.tolist()
    assert found["threshold"] == own.threshold_
    assert found["stability"]["value"] == own.stability_.value
    assert Results.read(folder).resampling == results.resampling


def test_processes_share_the_halves_of_one_table(tmp_path):
    found = [
        evaluation.resampling(make_cohort(), tmp_path / str(n), n_resamples=8, n_jobs=n).resampling
        for n in (1, 2)
    ]
    assert found[0] == found[1]


def computed(folder, table=None, **options):
    listener = Computed()
    evaluation.resampling(table or make_cohort(), folder, progress=listener, **options)
    return len(listener.tasks())


def test_what_is_there_is_not_computed_again_until_something_changes(tmp_path, folder):
    shutil.copy(folder / "store.sqlite", tmp_path)
    assert computed(tmp_path, n_resamples=4) == 1
    assert computed(tmp_path, n_resamples=4) == 0
    for changed in ({"seed": 1}, {"n_resamples": 6}):
        assert computed(tmp_path, **{"n_resamples": 4, **changed}) == 1
    other = make_cohort(seed=1)
    assert computed(tmp_path, other, n_resamples=4, overwrite=True) == 1
    assert computed(tmp_path, {"other": other}, n_resamples=4) == 0  # the same under another name


def test_blind_picks_reach_what_is_said(tmp_path):
    rng = np.random.default_rng(0)
    table = make_cohort(n_channels=5, n_features=4)
    found = evaluation.resampling(table, tmp_path, n_resamples=2).resampling["table"]
    picked = [rng.permutation(20)[: found["n_picked"]] for _ in range(20_000)]
    in_first = np.mean([(one < 4).any() for one in picked])
    assert found["channel_chance"]["E1"] == pytest.approx(in_first, abs=0.01)
    assert found["chance"] == found["n_picked"] / 20


def test_too_few_subjects_are_a_reason_not_an_error(tmp_path):
    table = FeatureTable(
        pd.DataFrame({"E1__a": [0.0, 1.0, 2.0]}), pd.Series([0, 0, 1]), pd.Series([1, 2, 3])
    )
    results = evaluation.resampling(table, tmp_path)
    assert "at least 2 participants of each class" in results.resampling["table"]["reason"]


@pytest.mark.parametrize("number", [0, 7, -2])
def test_an_impossible_number_of_halves_is_refused(folder, number):
    with pytest.raises(InputError, match="give an even number"):
        evaluation.resampling(make_cohort(), folder, n_resamples=number)
