"""Scores and their intervals by published definitions, written out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import brentq
from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import mean_absolute_error, roc_auc_score

from idfsmec.metrics import (
    SCORE_CRITERIA,
    auc_interval,
    auc_variance,
    describe_confounding,
    diagnostic_scores,
    draw_within_classes,
    fold_interval,
    holm,
    net_benefit,
    score_predictions,
    site_confounding,
    weighted_aucs,
    wilson_interval,
)


def newcombe(theta_hat, m, n, z):
    """Method 5 of Newcombe (Stat. Med. 25, 559, 2006): where the deviate is z on either side."""

    def deviate(theta):
        star = (m + n) / 2 - 1
        spread = 1 + star * ((1 - theta) / (2 - theta) + theta / (1 + theta))
        return (theta_hat - theta) / np.sqrt(theta * (1 - theta) * spread / (m * n))

    edges = 1e-12, 1 - 1e-12
    low = brentq(lambda theta: deviate(theta) - z, edges[0], theta_hat)
    return low, brentq(lambda theta: deviate(theta) + z, theta_hat, edges[1])


@pytest.mark.parametrize(("m", "n"), [(51, 58), (12, 30), (5, 5)])
@pytest.mark.parametrize("n_looks", [1, 3])
def test_the_interval_of_an_auc_is_newcombes(m, n, n_looks):
    z = {1: 1.959964, 3: 2.393980}[n_looks]  # of 2.5 % and of a third of that, as tables give it
    for value in (0.35, 0.5, 0.893):
        assert_allclose(auc_interval(value, m, n, n_looks), newcombe(value, m, n, z), atol=1e-6)
    assert auc_interval(1.0, m, n, n_looks)[1] == 1.0
    assert auc_interval(0.0, m, n, n_looks)[0] == 0.0


def test_the_variance_of_an_auc_is_hanley_and_mcneils():
    # Their example (Radiology 143, 29, 1982): 51 abnormal and 58 normal images, AUC 0.893, with a
    # standard error of 0.032 from the ratings.
    assert np.sqrt(auc_variance(0.893, 51, 58)) == pytest.approx(0.032, abs=1e-3)
    q1, q2 = 0.893 / (2 - 0.893), 2 * 0.893**2 / (1 + 0.893)
    by_hand = 0.893 * 0.107 + 50 * (q1 - 0.893**2) + 57 * (q2 - 0.893**2)
    assert auc_variance(0.893, 51, 58) == pytest.approx(by_hand / (51 * 58))
    assert auc_variance(1.0, 5, 5) == 0.0


@pytest.mark.parametrize("scores", [[0.7, 0.8, 0.9, 0.8, 0.7], [[0.5, 0.75, 1.0], [1, 1, 0.5]]])
def test_the_interval_of_scores_by_fold_is_nadeau_and_bengios_between_0_and_1_wilsons(scores):
    folds = np.atleast_2d(scores)
    k, mean = folds.shape[1], folds.mean()
    error = np.sqrt((1 / folds.size + 1 / (k - 1)) * folds.var(ddof=1))
    found = fold_interval(scores)
    t = {5: 2.776445, 3: 4.302653}[k]  # with k - 1 degrees of freedom, as tables give it
    assert (found.low, found.high) == pytest.approx((mean - t * error, mean + t * error))
    assert (found.standard_error, found.degrees_of_freedom) == (pytest.approx(error), k - 1)
    for n in (20, 4000):
        share = (mean * n + 1) / (n + 2)
        at_least = max(error, np.sqrt(share * (1 - share) / n))
        # Wilson's of as many participants as have this error: where the deviate is t.
        n_effective = share * (1 - share) / at_least**2

        def beyond(p, n=n_effective):
            return (mean - p) ** 2 - t**2 * p * (1 - p) / n

        found = fold_interval(scores, n)
        ends = brentq(beyond, 1e-9, mean), brentq(beyond, mean, 1 - 1e-9)
        assert (found.low, found.high) == pytest.approx(ends)
        assert found.standard_error == pytest.approx(at_least)
    perfect = fold_interval([1.0] * 5, 40)
    assert perfect.low < 0.95 < perfect.high == perfect.mean == 1.0


def test_wilsons_interval_never_leaves_0_to_1():
    for n in range(1, 400):
        low, high = wilson_interval(n, n)
        assert low < high <= 1.0
        low, high = wilson_interval(0, n)
        assert 0.0 <= low < high
    # Newcombe (Stat. Med. 17, 857, 1998), table I: 81 of 263, 15 of 148, 0 of 20, 1 of 29.
    published = {(81, 263): (0.2553, 0.3662), (15, 148): (0.0624, 0.1605),
                 (0, 20): (0.0, 0.1611), (1, 29): (0.0061, 0.1718)}  # fmt: skip
    for counts, limits in published.items():
        assert_allclose(wilson_interval(*counts), limits, atol=5e-5)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_weighted_aucs_are_those_of_scikit_learn(n_classes):
    rng = np.random.default_rng(n_classes)
    y = np.r_[np.arange(n_classes), rng.integers(n_classes, size=30)]
    decisions = rng.normal(size=(y.size, n_classes)).round(1)
    weights = draw_within_classes(y, 5, rng)
    assert_allclose(weights @ np.eye(n_classes)[y], np.tile(np.bincount(y), (5, 1)))
    found = weighted_aucs(decisions, y, weights)
    for row, value in zip(weights, found, strict=True):
        each = [
            roc_auc_score(
                y == k,
                decisions[:, k] - (decisions[:, 1 - k] if n_classes == 2 else 0),
                sample_weight=row,
            )
            for k in range(n_classes)
        ]
        assert value == pytest.approx(np.mean(each))


def test_weighted_aucs_may_count_only_pairs_that_are_near():
    y = np.array([1, 1, 0, 0])
    decisions = np.column_stack([np.zeros(4), [3.0, 1.0, 2.0, 1.0]])
    near = np.array([[0, 0, 0, 1], [0, 0, 1, 1], [0, 1, 0, 0], [1, 1, 0, 0]], dtype=bool)
    # Pairs (3, 1) won, (1, 2) lost, (1, 1) tied; with twice the first subject 2.5 of 4.
    assert weighted_aucs(decisions, y, np.ones((1, 4)), near) == pytest.approx(1.5 / 3)
    assert weighted_aucs(decisions, y, np.array([[2.0, 1, 1, 1]]), near) == pytest.approx(2.5 / 4)


def ratio_interval(a, m, b, n):
    """MOVER-R (Donner and Zou, Stat. Methods Med. Res. 21, 347, 2012) of a/m over b/n."""
    p, q = a / m, b / n
    (l1, u1), (l2, u2) = wilson_interval(a, m), wilson_interval(b, n)
    low = (p * q - np.sqrt((p * q) ** 2 - l1 * u2 * (2 * p - l1) * (2 * q - u2))) / (
        u2 * (2 * q - u2)
    )
    high = (p * q + np.sqrt((p * q) ** 2 - u1 * l2 * (2 * p - u1) * (2 * q - l2))) / (
        l2 * (2 * q - l2)
    )
    return low, high


@pytest.mark.parametrize("counts", [(20, 30, 9, 40), (3, 12, 2, 9), (29, 30, 38, 40)])
@pytest.mark.parametrize("prevalence", [0.1, 0.5])
def test_predictive_values_follow_from_ratios_of_shares(counts, prevalence):
    hits, n_ill, alarms, n_well = counts
    ill = np.arange(n_ill + n_well) < n_ill
    flagged = np.r_[np.arange(n_ill) < hits, np.arange(n_well) < alarms]
    found = diagnostic_scores(ill, flagged, prevalence)
    odds = prevalence / (1 - prevalence)
    ratios = ratio_interval(hits, n_ill, alarms, n_well)
    expected = [odds * ratio / (1 + odds * ratio) for ratio in ratios]
    assert_allclose([found["PPV"]["low"], found["PPV"]["high"]], expected)
    low, high = ratio_interval(n_ill - hits, n_ill, n_well - alarms, n_well)
    expected = [1 / (1 + odds * ratio) for ratio in (high, low)]
    assert_allclose([found["NPV"]["low"], found["NPV"]["high"]], expected)
    assert found["sensitivity"]["mean"] == hits / n_ill
    assert found["specificity"]["mean"] == pytest.approx(1 - alarms / n_well)
    specificity = wilson_interval(n_well - alarms, n_well)
    assert_allclose([found["specificity"][name] for name in ("low", "high")], specificity)


def test_predictive_values_where_no_one_is_wrong_or_no_one_is_flagged():
    ill = np.arange(20) < 8
    perfect = diagnostic_scores(ill, ill, 0.3)
    assert perfect["PPV"]["mean"] == perfect["PPV"]["high"] == perfect["NPV"]["mean"] == 1.0
    assert 0.3 < perfect["PPV"]["low"] < 1
    # Over 0 alarms the lower end of the ratio has a closed form in the limit of few alarms.
    almost = ratio_interval(8, 8, 1e-7, 12)[0]
    assert perfect["PPV"]["low"] == pytest.approx(1 - 1 / (1 + 0.3 / 0.7 * almost), rel=1e-4)
    everyone = diagnostic_scores(ill, np.ones(20, dtype=bool), 0.3)
    assert everyone["PPV"]["mean"] == pytest.approx(0.3)
    assert "NPV" not in everyone
    no_one = diagnostic_scores(ill, np.zeros(20, dtype=bool), 0.3)
    assert no_one["NPV"]["mean"] == pytest.approx(0.7)
    assert "PPV" not in no_one
    assert set(diagnostic_scores(np.ones(5, dtype=bool), np.ones(5, dtype=bool), 0.3)) == {
        "sensitivity"
    }


def test_net_benefit_and_its_interval_by_mover():
    ill = np.arange(60) < 24
    probability = np.r_[np.linspace(0.05, 0.95, 24), np.linspace(0.01, 0.6, 36)]
    threshold, prevalence = 0.25, 0.2
    found = net_benefit(ill, probability, threshold, prevalence)
    hits, alarms = (probability[ill] >= 0.25).sum(), (probability[~ill] >= 0.25).sum()
    sensitivity, false = hits / 24, alarms / 36
    weight = 0.25 / 0.75 * (1 - prevalence)
    value = prevalence * sensitivity - weight * false
    (l1, u1), (l2, u2) = wilson_interval(hits, 24), wilson_interval(alarms, 36)
    low = value - np.hypot(prevalence * (sensitivity - l1), weight * (u2 - false))
    high = value + np.hypot(prevalence * (u1 - sensitivity), weight * (false - l2))
    assert [found[k] for k in ("mean", "low", "high")] == pytest.approx([value, low, high])
    assert found["all"] == pytest.approx(prevalence - weight)
    # Whoever has exactly the threshold is acted on.
    at = net_benefit(np.array([True, False]), np.array([0.25, 0.2]), 0.25, 0.5)
    assert at["mean"] == pytest.approx(0.5)


def test_holms_adjustment_is_that_of_r():
    # p.adjust(c(0.01, 0.02, 0.03, 0.04, 0.05), "holm")
    adjusted = holm([0.01, 0.02, 0.03, 0.04, 0.05])
    assert adjusted == pytest.approx([0.05, 0.08, 0.09, 0.09, 0.09])
    assert holm([0.9, 0.4]) == pytest.approx([0.9, 0.8])
    assert holm([0.6, 0.7]) == pytest.approx([1.0, 1.0])


def test_confounding_of_sites_is_goodman_and_kruskals_tau():
    table = np.array([[20, 5], [10, 25]])
    # Share of the Gini impurity of the labels that is gone within sites.
    whole = 2 * 0.5 * 0.5
    within = 25 / 60 * 2 * 0.8 * 0.2 + 35 / 60 * 2 * (10 / 35) * (25 / 35)
    assert site_confounding(table) == pytest.approx(1 - within / whole)
    assert describe_confounding(0.249) == ""
    assert "25 % of the difference" in describe_confounding(0.25)


def test_scores_by_participant_are_those_of_scipy_and_scikit_learn():
    rng = np.random.default_rng(1)
    subjects, trained = np.repeat(np.arange(12), 3), rng.normal(14, 6, 40)
    y = np.repeat(rng.normal(15, 6, 12), 3)
    predicted = y + rng.normal(0, 4, 36)
    scores = score_predictions(predicted, y, subjects, trained, SCORE_CRITERIA)
    given, true = predicted.reshape(12, 3).mean(axis=1), y[::3]
    assert scores["subject_spearman"] == pytest.approx(spearmanr(given, true).statistic)
    assert scores["subject_pearson"] == pytest.approx(pearsonr(given, true).statistic)
    assert -scores["subject_neg_squared_error"] == pytest.approx(np.mean((given - true) ** 2))
    gain = np.mean((true - trained.mean()) ** 2 - (true - given) ** 2)
    assert scores["subject_r2"] == pytest.approx(gain / (trained.var(ddof=1) * (1 + 1 / 40)))
    errors = score_predictions(
        predicted, y, subjects, trained, ["subject_mae", "subject_mae_of_mean"]
    )
    assert errors["subject_mae"] == pytest.approx(mean_absolute_error(true, given))
    mean = np.full(12, trained.mean())
    assert errors["subject_mae_of_mean"] == pytest.approx(mean_absolute_error(true, mean))


def test_the_training_mean_has_an_r2_of_zero_and_no_correlation():
    rng = np.random.default_rng(2)
    trained, y = rng.normal(size=30), rng.normal(size=8)
    scores = score_predictions(
        np.full(8, trained.mean()), y, np.arange(8), trained, SCORE_CRITERIA
    )
    assert scores["subject_r2"] == pytest.approx(0)
    assert np.isnan(scores["subject_pearson"])
    assert np.isnan(scores["subject_spearman"])
