"""One hospital after the other held out: inner folds, chance, and a row for each hospital."""

import numpy as np
import pytest
from scipy.stats import binomtest

from idfsmec.evaluation import Protocol, Results, accuracy, chance_bands, site_scores
from idfsmec.evaluation.fold_data import load_fold, load_whole
from idfsmec.evaluation.intervals import wilson_interval
from idfsmec.evaluation.tables import TableArrays
from tests.evaluation.cohorts import make_cohort, make_hospitals

BY_SITE = Protocol(folds="site", rates=[0.0], ks=[2, 4])


def site_of(table, arrays, people):
    names = dict(zip(arrays.subjects, table.sites, strict=True))
    return {names[one] for one in people}


def test_inner_folds_leave_out_the_other_hospitals():
    table = make_hospitals(3)
    arrays = TableArrays.of("t", table)
    data = load_fold(arrays, BY_SITE, "none", 0.0, 0, 1, True)
    assert site_of(table, arrays, data.subjects_test) == {"Lund"}
    assert [site_of(table, arrays, one.subjects_test) for one in data.inner] == [
        {"Bern"},
        {"Oslo"},
    ]


def test_with_two_hospitals_inner_folds_are_by_person_and_that_is_said():
    arrays = TableArrays.of("t", make_hospitals(2, seed=5))
    with pytest.warns(UserWarning, match="Inner folds are by subject"):
        data = load_fold(arrays, BY_SITE, "none", 0.0, 0, 0, True)
    assert len(data.inner) == BY_SITE.n_inner_splits


def test_hospitals_with_one_class_stay_in_training():
    table = make_hospitals(3)
    table = table.take(~((table.sites == "Oslo") & (table.y == "MDD")).to_numpy())
    arrays = TableArrays.of("t", table)
    data = load_whole(arrays, BY_SITE, 0)
    assert [site_of(table, arrays, one.subjects_test) for one in data.inner] == [
        {"Bern"},
        {"Lund"},
    ]
    trained = [arrays.subjects[one.training.places] for one in data.inner]
    assert all("Oslo" in site_of(table, arrays, one) for one in trained)


def test_results_of_folds_by_subject_stay_known():
    assert "inner_folds" not in Protocol().per_unit()
    assert Protocol(folds="site").per_unit()["inner_folds"] == "site"


@pytest.mark.parametrize("hits", [0, 3, 10])
def test_the_interval_of_a_share_is_scipys(hits):
    expected = binomtest(hits, 10).proportion_ci(method="wilson")
    assert wilson_interval(hits, 10) == pytest.approx((expected.low, expected.high))


def test_a_row_for_each_hospital_with_people_interval_and_chance(tmp_path):
    table = make_hospitals(3)
    table = table.take(~(table.subjects == "s00").to_numpy())
    results = accuracy(table, tmp_path, methods=["ANOVA F"], protocol=BY_SITE, n_jobs=1)
    found = site_scores(results).set_index("site")
    assert found["n_subjects"].to_dict() == {"Bern": 7, "Lund": 8, "Oslo": 8}
    scores = results.chosen().set_index("fold")["subject_accuracy"]
    np.testing.assert_allclose(found["subject_accuracy"], scores)
    assert (found["low"] <= found["subject_accuracy"]).all()
    assert found.loc["Lund", "chance_high"] == pytest.approx(7 / 8)
    expected = chance_bands(table.y, table.subjects, folds=table.sites)["balanced_accuracy"]
    assert results.protocol["chance"]["table"]["balanced_accuracy"] == expected.as_dict()
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
