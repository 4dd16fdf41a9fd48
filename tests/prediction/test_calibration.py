"""Probabilities and their intervals come from one calibration on held-out subjects."""

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.optimize import minimize
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


def test_epochs_at_the_end_of_the_scale_widen_the_interval_as_at_0995():
    calibration = Calibration(make_held_out(2000, 0))

    def widened(mean, deviation):
        """Squared half width beyond that of equal epochs."""
        unequal = np.vstack([epochs(mean - deviation, 2), epochs(mean + deviation, 2)])
        (low, high), equal = (
            logit(calibration.apply(given, 1.0)[1:]) for given in (unequal, epochs(mean))
        )
        return ((high - low) ** 2 - np.diff(equal)[0] ** 2) / deviation**2

    # The delta method: the slope of log odds at the mean, 1 / (p (1 - p)), squared.
    expected = (0.8 * 0.2 / (0.995 * 0.005)) ** 2
    assert widened(0.999, 0.001) / widened(0.8, 0.05) == pytest.approx(expected, rel=1e-3)


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


def line_by_definition(held_out, code, left_out=None):
    """Most probable shift and slope, and the inverse of the curvature there, by a minimiser."""
    true, prior = np.array(held_out["true"]), np.array(held_out["prior"])
    x = logit(np.clip(np.array(held_out["left"][0])[:, code], 0.005, 0.995))
    kept = np.arange(true.size) != (-1 if left_out is None else left_out)
    counts = np.array([np.sum(kept & (true == k)) for k in range(prior.size)])
    w = (prior * true.size / counts)[true] * kept
    hit = true == code

    def loss(line):
        z = line[0] + line[1] * x
        penalty = 0.25 * line[0] ** 2 / 2 + (line[1] - 1) ** 2 / 2
        return np.sum(w * (np.logaddexp(0, z) - hit * z)) + penalty

    line = minimize(loss, [0.0, 1.0], method="BFGS", options={"gtol": 1e-9}).x
    p = expit(line[0] + line[1] * x)
    design = np.column_stack([np.ones(x.size), x])
    curvature = (design * (w * p * (1 - p))[:, None]).T @ design + np.diag([0.25, 1.0])
    return line, np.linalg.inv(curvature)


@pytest.mark.parametrize("n_splits", [5, 10])
def test_the_line_and_its_interval_are_those_of_the_definition(n_splits):
    held_out = make_held_out(60, 3, slope=0.7, prior=[0.7, 0.3]) | {"n_splits": n_splits}
    calibration = Calibration(held_out)
    given = np.column_stack([[0.2, 0.35, 0.3], [0.8, 0.65, 0.7]])
    probabilities, low, high = calibration.apply(given, 1.0)
    lines = [line_by_definition(held_out, code) for code in (0, 1)]
    values = [line @ [1, logit(given[:, code].mean())] for code, (line, _) in enumerate(lines)]
    best = int(np.argmax(values))
    line, covariance = lines[best]
    at = np.array([1, logit(given[:, best].mean())])
    # Nadeau and Bengio's factor for the fit; the epochs' mean by the delta method.
    variance = (1 + n_splits / (n_splits - 1)) * at @ covariance @ at
    mean = given[:, best].mean()
    variance += (line[1] / (mean * (1 - mean))) ** 2 * given[:, best].var() / 3
    half = {5: 2.776445, 10: 2.262157}[n_splits] * np.sqrt(variance)
    assert probabilities[best] == pytest.approx(expit(values[best]), abs=1e-5)
    assert (low, high) == pytest.approx(
        (expit(values[best] - half), expit(values[best] + half)), abs=1e-4
    )


def test_older_models_had_five_folds():
    held_out = make_held_out(60, 3)
    held_out.pop("n_splits", None)
    with_five = Calibration(held_out | {"n_splits": 5}).apply(epochs(0.7), 1.0)
    assert Calibration(held_out).apply(epochs(0.7), 1.0)[1:] == with_five[1:]


def test_each_is_calibrated_by_the_others():
    rng = np.random.default_rng(4)
    left, true = rng.dirichlet([1, 1, 1], 24), np.arange(24) % 3
    left[0], left[1] = [1.0, 0.0, 0.0], [0.001, 0.998, 0.001]  # beyond what is distinguished
    held_out = {"true": true, "prior": [0.5, 0.3, 0.2], "shares": [1.0], "left": [left]}
    found = Calibration(held_out).leave_one_out()
    for i in (0, 1, 7, 23):
        x = logit(np.clip(left[i], 0.005, 0.995))
        lines = [line_by_definition(held_out, code, left_out=i)[0] for code in range(3)]
        p = expit([line @ [1, x[code]] for code, line in enumerate(lines)])
        np.testing.assert_allclose(found[i], p / p.sum(), atol=1e-5)
