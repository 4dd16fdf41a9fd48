"""Tests of acquisition variables, and the EEG without them, against brute force and peers."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import mannwhitneyu
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from idfsmec import FeatureTable
from idfsmec.audit.association import Fact
from idfsmec.audit.confounding import (
    LabelledSubjects,
    adjusting_columns,
    among_matched,
    auc_in_strata,
    auc_of_folds,
    held_out_auc,
    judge_facts,
    propensity,
    residuals,
    separation_p,
)
from idfsmec.audit.variables import read_columns
from idfsmec.errors import InputError
from idfsmec.metrics import draw_within_classes, fold_interval
from idfsmec.prediction.samples import Samples

Y = np.arange(30) % 2
FOLDS = np.arange(30) // 2 % 5


def variables(values):
    return {f"v{i}": Fact(column[:, None], ("",)) for i, column in enumerate(values.T)}


def subjects(y=Y):
    return LabelledSubjects(np.arange(y.size), y, int(y.max()) + 1)


def auc(decisions, y):
    return roc_auc_score(y, decisions[:, 1] - decisions[:, 0])


def test_the_auc_of_held_out_subjects_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(30, 4)) + Y[:, None] * [1.0, 0, 0, 0]
    expected = np.zeros(30)
    for fold in range(5):
        train, test = fold != FOLDS, fold == FOLDS
        mean, std = values[train].mean(axis=0), values[train].std(axis=0)
        model = LogisticRegression(class_weight="balanced", tol=1e-10, max_iter=1000)
        model.fit((values[train] - mean) / std, Y[train])
        expected[test] = model.decision_function((values[test] - mean) / std)
    assert held_out_auc(values, Y, FOLDS, 2) == pytest.approx(roc_auc_score(Y, expected))


def test_adjusting_for_facts_knows_extremes_and_pairs():
    rng = np.random.default_rng(0)
    y, folds = np.arange(80) % 2, np.arange(80) // 2 % 5
    distant = np.where(y == 0, rng.normal(0, 0.3, 80), rng.choice([-3.0, 3.0], 80))
    sign = rng.choice([-1.0, 1.0], 80)
    facts = variables(np.column_stack([distant, sign, sign * (2 * y - 1)]))
    assert held_out_auc(adjusting_columns(facts, [["v0"]]), y, folds, 2) > 0.95
    assert held_out_auc(adjusting_columns(facts, [["v1", "v2"]]), y, folds, 2) > 0.95
    assert held_out_auc(adjusting_columns(facts, [["v1"], ["v2"]]), y, folds, 2) < 0.7


def test_subjects_with_the_same_acquisition_have_the_same_log_odds():
    values = np.column_stack([Y, Y % 2]).astype(float)
    values[:5] = 1 - values[:5]
    found = propensity(values, Y, 2)[:, 1]
    assert len(np.unique(found.round(9))) == 2
    assert np.corrcoef(found, values[:, 0])[0, 1] > 0.99


def test_of_three_classes_each_has_the_log_odds_of_scikit_learn():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    values = rng.normal(size=(60, 2)) + np.eye(3)[y][:, :2]
    found = propensity(values, y, 3)
    scaled = (values - values.mean(axis=0)) / values.std(axis=0)
    for k in range(3):
        model = LogisticRegression(class_weight="balanced", tol=1e-10, max_iter=1000)
        expected = model.fit(scaled, y == k).decision_function(scaled)
        np.testing.assert_allclose(found[:, k], expected, atol=1e-5)


def test_two_folds_are_enough_for_an_interval_over_folds():
    rng = np.random.default_rng(0)
    decisions = np.column_stack([np.zeros(30), rng.normal(size=30) + Y])
    fold_of, whole = np.arange(30) // 15, np.r_[np.arange(29) // 30, 1]
    aucs = [auc(decisions[fold_of == fold], Y[fold_of == fold]) for fold in (0, 1)]
    interval = fold_interval(np.array(aucs), n_subjects=30)
    assert auc_of_folds(decisions, Y, fold_of) == pytest.approx(
        {"auc": interval.mean, "low": interval.low, "high": interval.high}
    )
    # One fold has a single subject: the AUC is that of all.
    assert auc_of_folds(decisions, Y, whole)["auc"] == pytest.approx(auc(decisions, Y))


def test_a_moderate_fact_is_higher_where_its_auc_is_above_one_half():
    y = np.arange(90) % 3
    fact = np.random.default_rng(1).normal(size=90) + 0.7 * (y == 1)
    (row,) = judge_facts(variables(fact[:, None]), subjects(y))["facts"]
    assert (row["class"], row["higher"]) == (1, True)
    assert row["auc"] == pytest.approx(roc_auc_score(y == 1, fact))
    assert 0.6 < row["auc"] < 0.75


def test_the_interval_among_matched_pairs_is_a_bootstrap_within_classes():
    rng = np.random.default_rng(0)
    y, recording = np.arange(60) % 2, np.zeros((60, 2))
    eeg = np.column_stack([np.zeros(60), rng.normal(size=60) + 0.5 * y])
    found = among_matched(eeg, recording, y)
    patients, controls = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    aucs = []
    for counts in draw_within_classes(y, 1000, np.random.default_rng(0)).astype(int):
        above, below = (eeg[np.repeat(of, counts[of]), 1] for of in (patients, controls))
        aucs.append(np.mean((above[:, None] > below) + 0.5 * (above[:, None] == below)))
    expected = np.quantile(aucs, [0.025, 0.975])
    assert [found["low"], found["high"]] == pytest.approx(expected.tolist(), abs=1e-4)
    assert found["auc"] == pytest.approx(roc_auc_score(y, eeg[:, 1]))


def test_a_fact_is_described_by_its_class_and_its_auc():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(30, 3))
    values[:, 1] -= 1.5 * Y
    found = judge_facts(variables(values), subjects())
    row = found["facts"][1]
    assert (row["class"], row["higher"], row["shape"]) == (0, True, "value")
    assert row["auc"] == pytest.approx(roc_auc_score(Y == 0, values[:, 1]))
    assert row["low"] < row["auc"] < row["high"]
    assert row["p_corrected"] < 0.005
    assert found["pairs"] == []


def test_the_test_of_decisions_is_the_rank_test():
    rng = np.random.default_rng(0)
    decisions = np.column_stack([np.zeros(30), rng.normal(size=30) + 0.7 * Y])
    expected = mannwhitneyu(
        decisions[Y == 1, 1],
        decisions[Y == 0, 1],
        alternative="greater",
        use_continuity=False,
        method="asymptotic",
    )
    assert separation_p(decisions, Y) == pytest.approx(expected.pvalue)
    several = decisions[:, [1, 1, 0]] * [-1, 1, 1]  # two classes say the same, nobody is of one
    assert separation_p(several, Y) == pytest.approx(2 * expected.pvalue)
    assert separation_p(np.zeros((30, 2)), Y) == 1.0


def test_who_was_recorded_and_how_are_two_families():
    rng = np.random.default_rng(0)
    age, sfreq, device = variables(rng.normal(size=(30, 3)) + np.outer(Y, [5, 0, 0])).values()
    found = judge_facts({"age": age, "sfreq": sfreq, "device": device}, subjects())
    assert {row["variable"]: row["family"] for row in found["facts"]} == {
        "age": "participants",
        "sfreq": "acquisition",
        "device": "acquisition",
    }
    assert found["critical_p"].keys() == {"acquisition", "participants"}


def test_an_extreme_fact_is_described_by_its_distance_from_the_median():
    distance = np.where(Y == 1, 2.0, 0.5) * np.where(np.arange(30) // 2 % 2, 1, -1)
    values = distance + np.random.default_rng(0).normal(0, 0.1, 30)
    (row,) = judge_facts(variables(values[:, None]), subjects())["facts"]
    assert (row["shape"], row["class"], row["higher"]) == ("extremes", 1, True)
    assert row["auc"] > 0.95


def test_among_matching_subjects_a_proxy_of_the_acquisition_tells_nothing():
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    device = np.where(rng.random(200) < 0.8, y, 1 - y)
    recording, eeg = np.zeros((200, 2)), np.zeros((200, 2))
    recording[:, 1] = device
    eeg[:, 1] = device + 0.5 * rng.normal(size=200)
    found = among_matched(eeg, recording, y)
    assert found["estimable"]
    assert auc(eeg, y) > 0.65
    assert found["low"] < 0.5 < found["high"]
    assert found["acquisition_auc"] == pytest.approx(0.5)


def test_few_subjects_who_are_in_most_pairs_count_as_few():
    # Ten controls have a match, but three of them are in 72 of 79 pairs.
    rng = np.random.default_rng(0)
    y = np.array([0] * 40 + [1] * 40)
    recording = np.zeros((80, 2))
    apart = np.array([-0.8, -0.6, -0.4, -0.2, 0.2, 0.4, 0.6])
    recording[:40, 1] = np.r_[np.zeros(3), apart, np.full(30, -1.0)]
    recording[40:, 1] = np.r_[np.zeros(24), apart, np.full(9, 1.0)]
    found = among_matched(rng.normal(size=(80, 2)), recording, y)
    assert (found["n_subjects"], found["n_pairs"]) == ([10, 31], 79)
    assert found["n_effective"][0] == pytest.approx(79**2 / (3 * 24**2 + 7))
    assert not found["estimable"]


def test_a_match_after_which_acquisition_still_separates_has_failed():
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    recording = np.zeros((200, 2))
    recording[:, 1] = 100.0 * (np.arange(200) // 67) + rng.normal(size=200)
    found = among_matched(rng.normal(size=(200, 2)), recording, y)
    assert found["estimable"]
    assert not found["failed"]
    recording[:, 1] += y  # small against the caliper, and yet patients lie above controls
    found = among_matched(rng.normal(size=(200, 2)), recording, y)
    assert found["estimable"]
    assert found["acquisition_auc"] > 0.6
    assert found["failed"]


def test_the_eeg_within_strata_is_scored_among_their_subjects():
    rng = np.random.default_rng(0)
    y, levels = np.arange(40) % 2, ["19"] * 20 + ["64"] * 18 + ["128"] * 2
    eeg = np.column_stack([np.zeros(40), rng.normal(size=40) + y])
    few, nineteen, sixty_four = auc_in_strata(eeg, levels, y)
    assert few == {"level": "128", "n_subjects": [1, 1], "auc": None}
    assert nineteen["auc"] == pytest.approx(auc(eeg[:20], y[:20]))
    assert sixty_four["low"] < sixty_four["auc"] < sixty_four["high"]


def test_without_matching_subjects_nothing_is_estimated():
    recording = np.zeros((30, 2))
    recording[:, 1] = 10.0 * Y
    assert among_matched(recording, recording, Y)["estimable"] is False


def test_residuals_of_training_subjects_are_not_associated_with_the_nuisance():
    rng = np.random.default_rng(0)
    nuisance = rng.normal(size=(50, 2))
    X = nuisance @ [[3.0, 2, 0, 4], [0, 2, 5, 1]] + rng.normal(size=(50, 4)) + 5.0
    X[rng.random(X.shape) < 0.2] = np.nan
    train = np.arange(50) < 40
    left = residuals(X, nuisance, subjects(np.arange(50) % 2), train)
    assert (np.isnan(left) == np.isnan(X)).all()
    for column in range(4):
        own = train & ~np.isnan(X[:, column])
        for one in nuisance[own].T:
            assert abs(np.corrcoef(one, left[own, column])[0, 1]) < 0.15


def test_what_is_learned_comes_from_training_samples_alone():
    rng = np.random.default_rng(1)
    nuisance, X = rng.normal(size=(30, 1)), rng.normal(size=(30, 3))
    X[:, 0] += 3 * nuisance[:, 0]
    train, other = np.arange(30) < 20, X.copy()
    other[20:] += 100.0
    one, two = (residuals(values, nuisance, subjects(), train) for values in (X, other))
    assert one[:20] == pytest.approx(two[:20])
    assert two[20:] == pytest.approx(one[20:] + 100.0)


def test_what_the_nuisance_does_not_touch_stays_as_it_is():
    rng = np.random.default_rng(2)
    X, nuisance = rng.normal(size=(200, 50)), rng.normal(size=(200, 1))
    left = residuals(X, nuisance, subjects(np.arange(200) % 2), np.ones(200, dtype=bool))
    assert (left == X).all(axis=0).mean() > 0.5


def test_labels_are_permuted_within_sites():
    samples = np.arange(36) // 2
    y, sites = samples % 2, samples // 2 % 3
    labelled = LabelledSubjects(samples, np.arange(18) % 2, 2)
    permuted = labelled.permute(np.random.default_rng(0), sites)[samples]
    assert (permuted != y).any()
    for site in range(3):
        assert permuted[sites == site].sum() == y[sites == site].sum()


def test_a_subject_under_two_labels_counts_once_within_each():
    X = pd.DataFrame({"Cz__alpha": np.arange(4.0)})
    table = FeatureTable(X, ["HC", "HC", "MDD", "MDD"], ["s5", "s5", "s5", "s6"])
    found = LabelledSubjects.of(Samples.of("", table))
    assert found.y.tolist() == [0, 1, 1]
    assert found.member.tolist() == [0, 0, 1, 2]
    means = found.mean(np.array([[1.0], [np.nan], [4.0], [6.0]]))
    assert means.tolist() == [[1.0], [4.0], [6.0]]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_table_of_any_columns_is_read_as_spreadsheets_of_all_countries_write_it(
    tmp_path, encoding
):
    path = tmp_path / "embeddings.csv"
    lines = ["subject;label;age;tested;e1;e2", "01;HC;30;2020-01-31;0,5;1", "02;MDD;;;1,5;2"]
    path.write_text("\n".join(lines) + "\n", encoding=encoding)
    table = read_columns(path)
    assert table.subjects.tolist() == ["01", "02"]
    assert table.X.to_numpy().tolist() == [[0.5, 1.0], [1.5, 2.0]]
    assert table.rows["age"].tolist() == pytest.approx([30, np.nan], nan_ok=True)
    assert table.rows["tested"].iloc[0] == "2020-01-31"
    path.write_text("subject,label,e1\ns1,HC,1\ns2,MDD\n")
    with pytest.raises(InputError, match=r"embeddings\.csv: not a readable CSV file .*got 2"):
        read_columns(path)
