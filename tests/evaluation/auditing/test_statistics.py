"""The audit's own mathematics, against brute force and other people's programs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from idfsmec.evaluation.auditing.alike import among_alike
from idfsmec.evaluation.auditing.areas import area_interval, areas, difference, figure
from idfsmec.evaluation.auditing.decisions import residuals
from idfsmec.evaluation.auditing.people import People
from idfsmec.evaluation.auditing.single import judge_alone
from idfsmec.evaluation.auditing.together import (
    boosting_decisions,
    judge_together,
    logistic_decisions,
    propensity,
)
from idfsmec.evaluation.auditing.variables import Variables

Y = np.arange(30) % 2
FOLDS = np.arange(30) // 2 % 5


def variables(values):
    n = values.shape[1]
    names = tuple(f"v{i}" for i in range(n))
    return Variables(names, ("device",) * n, values, np.arange(n), ("",) * n)


def crowd(y=Y):
    return People(np.arange(y.size), y, int(y.max()) + 1)


@given(st.integers(0, 10_000), st.integers(2, 3))
@settings(max_examples=30, deadline=None)
def test_areas_are_those_of_scikit_learn(seed, n_classes):
    rng = np.random.default_rng(seed)
    y = np.r_[np.arange(n_classes), rng.integers(0, n_classes, 20)]
    values = rng.integers(0, 5, (y.size, 3)).astype(float)
    found = areas(values, y, n_classes)
    for k in range(n_classes):
        for column in range(3):
            expected = roc_auc_score(y == k, values[:, column])
            assert found[k, column] == pytest.approx(expected)


@given(st.floats(0, 1), st.integers(1, 200), st.integers(1, 200))
@settings(max_examples=60, deadline=None)
def test_an_interval_holds_its_area_and_turns_with_it(area, n_in, n_out):
    low, high = area_interval(area, n_in, n_out)
    assert 0 <= low <= area <= high <= 1
    turned = area_interval(1 - area, n_in, n_out)
    assert turned == pytest.approx((1 - high, 1 - low), abs=1e-9)


def test_intervals_hold_the_truth_as_often_as_they_say():
    rng = np.random.default_rng(0)
    truth, hits = 0.9213, 0  # chance that N(2, 1) is above N(0, 1)
    for _ in range(400):
        values = np.r_[rng.normal(size=15), rng.normal(2.0, 1.0, 15)]
        low, high = area_interval(roc_auc_score(np.repeat([0, 1], 15), values), 15, 15)
        hits += low <= truth <= high
    assert hits / 400 > 0.92


def test_the_interval_of_the_best_of_several_holds_its_truth():
    rng = np.random.default_rng(1)
    plain = hits = 0
    for _ in range(400):  # three figures that tell nothing: the best of them looks like something
        areas_of = [roc_auc_score(np.repeat([0, 1], 20), rng.normal(size=40)) for _ in range(3)]
        low, high = area_interval(max(areas_of), 20, 20, n_looks=3)
        hits += low <= 0.5 <= high
        low, high = area_interval(max(areas_of), 20, 20)
        plain += low <= 0.5 <= high
    assert plain / 400 < 0.95 <= hits / 400


def test_the_logistic_regression_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(30, 4)) + Y[:, None] * [1.0, 0, 0, 0]
    found = logistic_decisions(values, Y, FOLDS, 2)
    for fold in range(5):
        train, test = fold != FOLDS, fold == FOLDS
        mean, std = values[train].mean(axis=0), values[train].std(axis=0)
        model = LogisticRegression(class_weight="balanced", tol=1e-10, max_iter=1000)
        model.fit((values[train] - mean) / std, Y[train])
        expected = model.decision_function((values[test] - mean) / std)
        assert found[test, 1] - found[test, 0] == pytest.approx(expected, abs=1e-4)


def test_people_with_the_same_recording_have_the_same_log_odds():
    values = np.column_stack([Y, Y % 2]).astype(float)
    values[:5] = 1 - values[:5]
    found = propensity(values, Y, 2)[:, 1]
    assert len(np.unique(found.round(9))) == 2
    assert np.corrcoef(found, values[:, 0])[0, 1] > 0.99


def test_luck_gives_even_p_values():
    rng = np.random.default_rng(1)
    alone, together = [], []
    for _ in range(60):
        values = rng.normal(size=(30, 2))
        alone += [one["p"] for one in judge_alone(variables(values), crowd(), n_permutations=199)]
        together.append(judge_together(values, crowd(), FOLDS, n_permutations=99))
    for found in (alone, together):
        assert 0.35 < np.mean(found) < 0.65
        assert np.mean(np.array(found) < 0.1) < 0.25


def test_a_variable_that_separates_is_found_alone_and_together():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(30, 3))
    values[:, 1] -= 3 * Y
    found = judge_alone(variables(values), crowd())
    assert found[1]["p"] < 0.002
    assert (found[1]["class"], found[1]["higher"]) == (0, True)
    assert found[1]["auc"] > 0.9
    assert judge_together(values, crowd(), FOLDS, n_permutations=199) < 0.02


def test_boosting_sees_what_no_line_separates():
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    values = np.where(y == 0, rng.normal(0, 0.3, 80), rng.choice([-3.0, 3.0], 80))[:, None]
    folds = np.arange(80) // 2 % 5
    assert figure(boosting_decisions(values, y, folds, 2), y)["auc"] > 0.95
    assert figure(logistic_decisions(values, y, folds, 2), y)["auc"] < 0.7


def test_the_difference_of_a_figure_and_itself_is_nothing():
    decisions = np.random.default_rng(0).normal(size=(30, 2))
    found = difference(decisions, decisions, Y)
    assert found == {"value": 0.0, "low": 0.0, "high": 0.0}


def test_a_better_figure_is_better_beyond_doubt():
    rng = np.random.default_rng(0)
    good, bad = np.zeros((30, 2)), rng.normal(size=(30, 2))
    good[:, 1] = Y
    assert difference(good, bad, Y)["low"] > 0


def test_among_alike_people_a_proxy_of_the_recording_tells_nothing():
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    device = np.where(rng.random(200) < 0.8, y, 1 - y)
    recording, eeg = np.zeros((200, 2)), np.zeros((200, 2))
    recording[:, 1] = device
    eeg[:, 1] = device + 0.5 * rng.normal(size=200)
    found = among_alike(eeg, recording, y)
    assert found["told"]
    assert figure(eeg, y)["auc"] > 0.65
    assert found["low"] < 0.5 < found["high"]
    assert found["recording_auc"] == pytest.approx(0.5)


def test_nobody_alike_cannot_be_told():
    recording = np.zeros((30, 2))
    recording[:, 1] = 10.0 * Y
    assert among_alike(recording, recording, Y)["told"] is False


def test_residuals_of_people_trained_on_do_not_go_with_the_nuisance():
    rng = np.random.default_rng(0)
    nuisance = rng.normal(size=(50, 2))
    X = nuisance @ [[3.0, 2, 0, 4], [0, 2, 5, 1]] + rng.normal(size=(50, 4)) + 5.0
    X[rng.random(X.shape) < 0.2] = np.nan
    train = np.arange(50) < 40
    left = residuals(X, nuisance, np.arange(50), train)
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
    people = np.arange(30)
    one, two = (residuals(values, nuisance, people, train) for values in (X, other))
    assert one[:20] == pytest.approx(two[:20])
    assert two[20:] == pytest.approx(one[20:] + 100.0)


def test_what_the_nuisance_does_not_touch_stays_as_it_is():
    rng = np.random.default_rng(2)
    X, nuisance = rng.normal(size=(200, 50)), rng.normal(size=(200, 1))
    left = residuals(X, nuisance, np.arange(200), np.ones(200, dtype=bool))
    assert (left == X).all(axis=0).mean() > 0.5
