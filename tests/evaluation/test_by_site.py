"""One hospital after the other held out: inner folds, chance, and a row for each hospital."""

import numpy as np
import pytest

from idfsmec.evaluation import Protocol, Results, accuracy
from idfsmec.evaluation.results import site_scores
from idfsmec.evaluation.tasks import load_fold
from idfsmec.prediction import METHODS
from idfsmec.prediction.samples import TrainingSamples
from tests.evaluation.cohorts import make_arrays, make_cohort, make_hospitals

BY_SITE = Protocol(folds="site", rates=[0.0], ks=[2, 4])


def site_of(table, arrays, people):
    names = dict(zip(arrays.subjects, table.sites, strict=True))
    return {names[one] for one in people}


def inner_folds(training):
    return METHODS["ANOVA F"].pipeline(folds="site")._inner_folds(training)


def test_inner_folds_leave_out_the_other_hospitals():
    table = make_hospitals(3)
    arrays = make_arrays(table)
    data = load_fold(arrays, BY_SITE, "none", 0.0, 0, 1)
    assert site_of(table, arrays, data.held_out.subjects) == {"Lund"}
    inner = inner_folds(data.training)
    assert [site_of(table, arrays, one.held_out.subjects) for one in inner] == [
        {"Bern"},
        {"Oslo"},
    ]


def test_with_two_hospitals_inner_folds_are_by_person_and_that_is_said():
    arrays = make_arrays(make_hospitals(2, seed=5))
    data = load_fold(arrays, BY_SITE, "none", 0.0, 0, 0)
    with pytest.warns(UserWarning, match="Inner folds are by participant"):
        inner = inner_folds(data.training)
    assert len(inner) == BY_SITE.n_inner_splits


def test_hospitals_with_one_class_stay_in_training():
    table = make_hospitals(3)
    table = table.take(~((table.sites == "Oslo") & (table.y == "MDD")).to_numpy())
    arrays = make_arrays(table)
    inner = inner_folds(TrainingSamples(arrays))
    assert [site_of(table, arrays, one.held_out.subjects) for one in inner] == [
        {"Bern"},
        {"Lund"},
    ]
    trained = [one.training.samples.subjects for one in inner]
    assert all("Oslo" in site_of(table, arrays, one) for one in trained)


def test_a_row_for_each_hospital_with_participants_interval_and_larger_class(tmp_path):
    table = make_hospitals(3)
    table = table.take(~(table.subjects == "s00").to_numpy())
    results = accuracy(table, tmp_path, methods=["ANOVA F"], protocol=BY_SITE, n_jobs=1)
    found = site_scores(results).set_index("site")
    assert found["n_subjects"].to_dict() == {"Bern": 7, "Lund": 8, "Oslo": 8}
    scores = results.chosen().set_index("fold")["subject_accuracy"]
    np.testing.assert_allclose(found["subject_accuracy"], scores)
    assert (found["low"] <= found["subject_accuracy"]).all()
    assert found["chance"].to_dict() == pytest.approx({"Bern": 4 / 7, "Lund": 0.5, "Oslo": 0.5})
    again = accuracy(table, tmp_path, methods=["ANOVA F"], protocol=BY_SITE, n_jobs=1)
    assert again.tables["table"]["sites"][0] == {
        "site": "Bern",
        "n_subjects": 7,
        "labels": {"HC": 3, "MDD": 4},
    }


def test_other_folds_have_no_hospitals(tmp_path):
    protocol = {"rates": [0.0], "ks": [2], "n_splits": 2}
    accuracy(make_cohort(), tmp_path, methods=["ANOVA F"], protocol=protocol, n_jobs=1)
    assert site_scores(Results.read(tmp_path)).empty
