"""Clinical scores of given probabilities, by their definitions."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from idfsmec.errors import InputError
from idfsmec.evaluation.clinical import (
    calibration_groups,
    check_prevalence,
    clinical_frame,
    clinical_scores,
    subject_groups,
    summarise_clinical,
)
from idfsmec.metrics import diagnostic_scores, net_benefit, wilson_interval
from idfsmec.prediction.calibration import Calibration
from idfsmec.table import FeatureTable


@pytest.mark.parametrize("wrong", [0, 1, -0.1, 1.5])
def test_a_prevalence_is_between_0_and_1(wrong):
    with pytest.raises(InputError, match="above 0 and below 1"):
        check_prevalence(wrong)
    check_prevalence(None)
    check_prevalence(0.01)


def test_participants_are_grouped_by_sex_age_and_site():
    ages = ["", "29", 30, 44.9, 45, 59, 60, "90", "unknown", -1]
    n = len(ages)
    subjects = [f"s{n - i:02d}" for i in range(n)]  # in the reverse order of their names
    twice = np.repeat(np.arange(n), 2)
    rows = pd.DataFrame({"age": ages, "sex": ["f", "m", "", None] * 2 + ["f", "m"]})
    X = pd.DataFrame({"Cz__alpha": np.arange(2.0 * n)})
    table = FeatureTable(
        X,
        pd.Series(np.arange(2 * n) % 2),
        pd.Series(subjects).take(twice).reset_index(drop=True),
        sites=pd.Series(["A", "B"] * n).sort_values(ignore_index=True),
        rows=rows.take(twice).reset_index(drop=True),
    )
    groups = subject_groups(table)
    assert groups["age"][::-1] == [
        "", "under 30", "30 to 44", "30 to 44", "45 to 59", "45 to 59",
        "60 and over", "60 and over", "", "",
    ]  # fmt: skip
    assert groups["sex"][::-1] == ["f", "m", "", "", "f", "m", "", "", "f", "m"]
    assert groups["site"] == ["B"] * 5 + ["A"] * 5
    assert subject_groups(FeatureTable(X, table.y, table.subjects)) == {}


@pytest.fixture
def cohort():
    rng = np.random.default_rng(0)
    ill = np.arange(60) < 24
    probability = np.clip(rng.normal(0.35 + 0.3 * ill, 0.2), 0.02, 0.98)
    probability[:2] = 0.5  # exactly: not flagged
    return ill, probability


def test_a_participant_is_flagged_above_one_half(cohort):
    ill, probability = cohort
    found = summarise_clinical("MDD", ill, probability, 0.5, {}, 0.2)
    assert found["scores"] == diagnostic_scores(ill, probability > 0.5, 0.2, 1.5)
    assert found["scores"]["sensitivity"]["mean"] == (probability[ill] > 0.5).sum() / 24
    assert (found["class"], found["prevalence"], found["groups"]) == ("MDD", 0.2, [])
    fixed = summarise_clinical("MDD", ill, probability, 0.5, {}, 0.2, inflation=1.0)
    assert fixed["scores"] == diagnostic_scores(ill, probability > 0.5, 0.2)
    rarer = {row["prevalence"]: row["scores"] for row in found["at_prevalence"]}
    assert rarer == {
        at: diagnostic_scores(ill, probability > 0.5, at, 1.5) for at in (0.05, 0.1, 0.2)
    }
    by_default = summarise_clinical("MDD", ill, probability, 0.5, {}, None)
    assert by_default["prevalence"] == 24 / 60


def test_the_decision_curve_moves_probabilities_from_the_prior_to_the_prevalence(cohort):
    ill, probability = cohort
    found = summarise_clinical("MDD", ill, probability, 0.4, {}, 0.1)
    # Bayes: odds times the ratio of prior odds.
    odds = probability / (1 - probability) * (0.1 / 0.9) / (0.4 / 0.6)
    there = odds / (1 + odds)
    thresholds = [point["threshold"] for point in found["decision_curve"]]
    assert_allclose(thresholds, np.arange(1, 20) / 20)
    for point in found["decision_curve"]:
        expected = net_benefit(ill, there, point["threshold"], 0.1, 1.5)
        assert point == pytest.approx(expected)


def test_groups_are_scored_by_themselves_in_order(cohort):
    ill, probability = cohort
    sex = np.where(np.arange(60) % 3 == 0, "m", "f")
    age = np.where(np.arange(60) < 10, "", np.where(np.arange(60) % 2, "45 to 59", "under 30"))
    groups = {"site": ["x"] * 60, "age": age.tolist(), "sex": sex.tolist()}
    found = summarise_clinical("MDD", ill, probability, 0.5, groups, 0.2)["groups"]
    names = [(group["by"], group["group"]) for group in found]
    ages = [("age", "under 30"), ("age", "45 to 59")]
    assert names == [("sex", "f"), ("sex", "m"), *ages, ("site", "x")]
    for group in found:
        here = np.array(groups[group["by"]]) == group["group"]
        expected = [(~ill[here]).sum(), ill[here].sum()]
        assert group["n_subjects"] == expected
        assert group["scores"] == diagnostic_scores(ill[here], probability[here] > 0.5, 0.2, 1.5)


def test_a_group_of_one_class_counts_both():
    ill, sex = np.arange(6) == 5, ["f"] * 5 + ["m"]
    found = summarise_clinical("MDD", ill, np.full(6, 0.3), 0.5, {"sex": sex}, 0.2)
    assert [group["n_subjects"] for group in found["groups"]] == [[5, 0], [0, 1]]


@pytest.mark.parametrize(("n", "n_bins"), [(4, 1), (5, 1), (10, 2), (14, 2), (25, 5), (60, 5)])
def test_calibration_has_up_to_five_groups_of_at_least_five(n, n_bins):
    rng = np.random.default_rng(n)
    probability, y = rng.random(n), rng.integers(2, size=n)
    found = calibration_groups(np.column_stack([1 - probability, probability]), y, ["HC", "MDD"])
    assert found["class"] == "MDD"
    assert found["brier"] == pytest.approx(np.mean((probability - y) ** 2))
    assert len(found["bins"]) == n_bins
    order = np.argsort(probability)
    for rows, group in zip(np.array_split(order, n_bins), found["bins"], strict=True):
        assert group["n"] == rows.size
        assert group["predicted"] == pytest.approx(probability[rows].mean())
        assert group["observed"] == pytest.approx(y[rows].mean())
        low, high = wilson_interval(y[rows].sum(), rows.size)
        assert (group["low"], group["high"]) == pytest.approx((low, high))


def test_of_three_classes_the_predicted_one_is_calibrated():
    calibrated = np.array([[0.6, 0.3, 0.1], [0.2, 0.3, 0.5], [0.1, 0.8, 0.1]])
    found = calibration_groups(calibrated, np.array([0, 1, 1]), ["a", "b", "c"])
    assert found["class"] == ""
    assert found["brier"] == pytest.approx((0.4**2 + 0.5**2 + 0.2**2) / 3)
    assert found["bins"][0]["observed"] == pytest.approx(2 / 3)


@pytest.fixture
def results():
    """Held-out probabilities of 40 participants in two repeats, of two methods."""
    rng = np.random.default_rng(0)
    subject = np.tile(np.arange(40), 4)
    true = subject % 4 == 0
    rows = {
        "table": "t",
        "method": np.repeat(["ANOVA F", "ours"], 80),
        "subject": subject,
        "true": true.astype(int),
        "probability": np.clip(0.4 + 0.2 * true + 0.2 * rng.normal(size=160), 0.01, 0.99),
        "rate": 0.3,
    }
    table = {"labels": ["HC", "MDD"], "groups": {"sex": ["f", "m"] * 20}}
    return SimpleNamespace(
        held_out=pd.DataFrame(rows),
        of_classes=pd.DataFrame(columns=["table", "method", "rate"]),
        tables={"t": table, "none": table},
        methods={"ours": {"family": "proposed"}},
        protocol={"prevalence": 0.1},
    )


@pytest.mark.parametrize("method", ["ours", "ANOVA F"])
def test_clinical_scores_are_those_of_mean_probabilities_calibrated_by_the_others(results, method):
    found = clinical_scores(results, method=method)
    rows = results.held_out[results.held_out["method"] == method]
    means = rows["probability"].to_numpy().reshape(2, 40).mean(axis=0)
    true = np.arange(40) % 4 == 0
    left = np.column_stack([1 - means, means])
    held_out = {"true": true.astype(int), "prior": [0.5, 0.5], "shares": [1.0], "left": [left]}
    probability = Calibration(held_out).leave_one_out()[:, 1]
    groups = {"sex": ["f", "m"] * 20}
    expected = summarise_clinical("MDD", true, probability, 0.5, groups, 0.1)
    assert {name: found[name] for name in expected} == expected
    assert (found["method"], found["rate"], found["n_subjects"]) == (method, 0.3, [30, 10])
    assert clinical_scores(results)["method"] == "ours"
    assert clinical_scores(results, "none") is None


def test_the_file_has_a_row_for_each_score_of_all_and_of_each_group(results):
    frame, scored = clinical_frame(results), clinical_scores(results)
    assert set(frame["table"]) == {"t"}
    everyone = frame[frame["by"] == "all"]
    assert set(everyone[["n_other", "n_class"]].itertuples(index=False, name=None)) == {(30, 10)}
    curve = everyone[everyone["score"] == "net benefit"]
    assert_allclose(curve["value"], [point["mean"] for point in scored["decision_curve"]])
    assert_allclose(curve["acting_on_all"], [point["all"] for point in scored["decision_curve"]])
    women = frame[frame["group"] == "f"].set_index("score")
    assert (
        women.loc["specificity", "value"] == scored["groups"][0]["scores"]["specificity"]["mean"]
    )
    assert set(frame["group"]) == {"", "f", "m"}
