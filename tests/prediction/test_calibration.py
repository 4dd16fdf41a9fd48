"""Probabilities and their intervals come from one calibration on held-out subjects."""

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.special import expit, logit

from idfsmec.prediction.calibration import Calibration


def make_held_out(n, seed, slope=1.0, shift=0.0, prior=None):
    """Probabilities of subjects; they are true with ``slope`` and ``shift`` on its log odds."""
    rng = np.random.default_rng(seed)
    given = expit(1.5 * rng.normal(size=n))
    true = (rng.random(n) < expit(shift + slope * logit(given))).astype(int)
    prior = (np.bincount(true) / n).tolist() if prior is None else prior
    left = np.column_stack([1 - given, given])
    return {"true": true, "n_splits": 10, "prior": prior, "shares": [1.0], "left": [left.tolist()]}


def epochs(probability, n=4):
    return np.tile([1 - probability, probability], (n, 1))


@pytest.mark.parametrize(("slope", "shift"), [(1.0, 0.0), (0.5, 0.0), (1.0, 0.7)])
def test_the_interval_holds_its_probability_and_mostly_the_true_frequency(slope, shift):
    inside = []
    for seed in range(60):
        calibration = Calibration(make_held_out(80, seed, slope, shift))
        for p in (0.1, 0.3, 0.5, 0.7, 0.9):
            probabilities, low, high = calibration.apply(epochs(p), 1.0)
            assert low < probabilities.max() < high
            assert probabilities.sum() == pytest.approx(1)
            if probabilities.argmax() == 0:
                low, high = 1 - high, 1 - low
            inside.append(low <= expit(shift + slope * logit(p)) <= high)
    # Independent predictions: folds, which share training sets, need the wider interval.
    assert np.mean(inside) >= 0.97


def test_the_interval_is_that_of_the_fit_corrected_for_overlapping_training_sets():
    held_out = make_held_out(4000, 0, prior=[0.5, 0.5])
    true, given = held_out["true"], np.array(held_out["left"])[0, :, 1]
    design = sm.add_constant(logit(np.clip(given, 0.005, 0.995)))
    weights = 0.5 * true.size / np.bincount(true)[true]
    fit = sm.GLM(true, design, sm.families.Binomial(), freq_weights=weights).fit()
    x = np.array([1.0, logit(0.8)])
    error = np.sqrt(x @ fit.cov_params() @ x)
    for n_splits, t in ((10, 2.262157), (5, 2.776445)):  # tables of t with 9 and 4
        _, low, high = Calibration(held_out | {"n_splits": n_splits}).apply(epochs(0.8), 1.0)
        reach = t * error * np.sqrt(1 + n_splits / (n_splits - 1))
        assert logit([low, high]) == pytest.approx(x @ fit.params + [-reach, reach], abs=0.01)


def test_probabilities_that_were_too_sure_are_drawn_to_the_middle():
    calibration = Calibration(make_held_out(2000, 0, slope=0.5))
    probabilities, _, _ = calibration.apply(epochs(0.9), 1.0)
    assert probabilities[1] == pytest.approx(expit(0.5 * logit(0.9)), abs=0.03)


def test_more_subjects_make_the_interval_narrower_and_unequal_epochs_wider():
    few, many = (Calibration(make_held_out(n, 0)) for n in (30, 600))
    width = {
        name: np.diff(calibration.apply(given, 1.0)[1:])[0]
        for name, calibration, given in (
            ("few", few, epochs(0.8)),
            ("many", many, epochs(0.8)),
            ("unequal", many, np.vstack([epochs(0.6, 2), epochs(0.95, 2)])),
            ("one epoch", many, epochs(0.8, 1)),
        )
    }
    assert width["few"] > 2 * width["many"]
    assert width["unequal"] > 2 * width["many"]
    assert width["one epoch"] == width["many"]


def test_subjects_with_as_many_channels_count():
    held_out = make_held_out(200, 0)
    by_chance = np.random.default_rng(1).permutation(held_out["left"][0]).tolist()
    held_out |= {"shares": [1.0, 0.25], "left": [*held_out["left"], by_chance]}
    calibration = Calibration(held_out)
    assert calibration.apply(epochs(0.9), 0.9)[0][1] > 0.8
    assert calibration.apply(epochs(0.9), 0.3)[0][1] < 0.65


def test_a_rare_class_counts_as_the_models_prior_says():
    held_out = make_held_out(400, 0, prior=[0.5, 0.5])
    kept = np.flatnonzero((held_out["true"] == 0) | (np.arange(400) % 4 == 0))
    fewer = held_out | {
        "true": held_out["true"][kept],
        "left": [[held_out["left"][0][i] for i in kept]],
    }
    _, low, high = Calibration(fewer).apply(epochs(0.5), 1.0)
    assert low < 0.5 < high


def test_of_three_classes_the_probabilities_sum_to_one():
    rng = np.random.default_rng(0)
    left, true = rng.dirichlet([1, 1, 1], 90), np.arange(90) % 3
    held_out = {"true": true, "prior": [1 / 3] * 3, "shares": [1.0], "left": [left]}
    calibration = Calibration(held_out)
    probabilities, low, high = calibration.apply(left[:4], 1.0)
    assert probabilities.sum() == pytest.approx(1)
    assert low < probabilities.max() < high
    np.testing.assert_allclose(calibration.leave_one_out().sum(axis=1), 1)


def test_leaving_subjects_out_says_nothing_where_there_is_nothing():
    right = []
    for seed in range(30):
        held_out = make_held_out(60, seed, slope=0.0, prior=[0.5, 0.5])
        predicted = Calibration(held_out).leave_one_out().argmax(axis=1)
        true = held_out["true"]
        right.append(np.mean([(predicted[true == k] == k).mean() for k in (0, 1)]))
    assert np.mean(right) == pytest.approx(0.5, abs=0.04)
