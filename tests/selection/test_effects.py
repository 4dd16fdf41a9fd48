"""Direction and size of features agree with textbooks, and with subjects drawn one by one."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.stats import f_oneway, mannwhitneyu, spearmanr, ttest_ind

from idfsmec.selection import feature_effects


@pytest.fixture
def cohort():
    rng = np.random.default_rng(0)
    y = np.repeat(["HC", "MDD"], [22, 31])
    X = rng.normal(size=(53, 4)) + np.outer(y == "MDD", [1.0, -0.5, 0.0, 0.2])
    X[rng.random(53) < 0.3, 2] = np.nan
    X[:, 3] = X[:, 3].round()  # ties
    return pd.DataFrame(X, columns=list("abcd")), y


def test_hedges_g_and_auc_are_those_of_the_textbook(cohort):
    X, y = cohort
    found = feature_effects(X, y).set_index("feature")
    for name in X:
        one, other = (X.loc[y == k, name].dropna() for k in ("HC", "MDD"))
        n = len(one) + len(other)
        t = ttest_ind(other, one).statistic
        d = t * np.sqrt(1 / len(one) + 1 / len(other))
        assert found.loc[name, "hedges_g"] == pytest.approx(d * (1 - 3 / (4 * n - 9)))
        share = mannwhitneyu(other, one).statistic / len(one) / len(other)
        assert found.loc[name, "auc"] == pytest.approx(max(share, 1 - share))
        assert found.loc[name, "n_subjects"] == n
        assert found.loc[name, "direction"] == f"higher in {'MDD' if d > 0 else 'HC'}"


@pytest.mark.slow
def test_intervals_are_those_of_subjects_drawn_one_by_one(cohort):
    X, y = cohort
    found = feature_effects(X, y, n_resamples=2000)
    rng = np.random.default_rng(1)
    rows = [np.flatnonzero(y == k) for k in ("HC", "MDD")]
    drawn = []
    for _ in range(300):
        part = np.concatenate([rng.choice(own, own.size) for own in rows])
        drawn.append(feature_effects(X.iloc[part], y[part], n_resamples=2))
    clear = found["auc_low"] > 0.5  # the others are oriented anew in every draw
    assert clear.any()
    for what, which, tolerance in (("hedges_g", clear | True, 0.12), ("auc", clear, 0.03)):
        by_hand = np.percentile([one.loc[which, what] for one in drawn], [2.5, 97.5], axis=0)
        limits = found.loc[which, [f"{what}_low", f"{what}_high"]]
        assert_allclose(limits.T, by_hand, atol=tolerance)


def test_subjects_are_the_units(cohort):
    X, y = cohort
    rng = np.random.default_rng(2)
    subjects = np.repeat(np.arange(53), 3)
    noise = rng.normal(size=(53, 3, 4))
    noise -= noise.mean(axis=1, keepdims=True)
    many = X.to_numpy()[subjects] + noise.reshape(159, 4)
    rows = rng.permutation(159)
    names = np.array([f"s{i:02}" for i in subjects])
    here = feature_effects(X, y)
    there = feature_effects(many[rows], y[subjects][rows], names[rows], names=list("abcd"))
    for what in ("n_subjects", "hedges_g", "hedges_g_low", "auc"):
        columns = [0, 1, 2]  # noise breaks the ties of the last one
        assert_allclose(here[what][columns], there[what][columns], rtol=1e-9)


def test_with_many_subjects_the_interval_of_the_auc_is_as_wide_as_by_resampling():
    rng = np.random.default_rng(3)
    y = np.arange(400) % 2
    X = rng.normal(size=(400, 2)) + 0.4 * y[:, None]
    delong = feature_effects(X, y)
    part = slice(0, 280)
    few = feature_effects(X[part], y[part])
    wide = (few["auc_high"] - few["auc_low"]) * np.sqrt(280 / 400)
    assert_allclose(delong["auc_high"] - delong["auc_low"], wide, rtol=0.15)


def test_three_classes_have_eta_squared():
    rng = np.random.default_rng(4)
    y = np.repeat([0, 1, 2], 20)
    X = rng.normal(size=(60, 2)) + np.outer(y == 1, [1.0, 0.0])
    found = feature_effects(X, y)
    F = f_oneway(*(X[y == k, 0] for k in range(3))).statistic
    assert found["eta_squared"][0] == pytest.approx(2 * F / (2 * F + 57))
    assert found["direction"][0] == "highest in 1"
    assert (found["eta_squared_low"] <= found["eta_squared_high"]).all()


def test_a_score_has_spearmans_correlation():
    rng = np.random.default_rng(5)
    score = rng.normal(size=50)
    X = np.column_stack([score + rng.normal(size=50), -score, rng.normal(size=50)])
    X[:15, 2] = np.nan
    found = feature_effects(X, score, numeric=True)
    for j in range(3):
        there = ~np.isnan(X[:, j])
        rho = spearmanr(X[there, j], score[there]).statistic
        assert found["spearman"][j] == pytest.approx(rho)
    assert found["direction"][1] == "falls with the score"
    assert found["spearman_low"][0] < found["spearman"][0] < found["spearman_high"][0]


def test_a_feature_that_one_class_lacks_says_nothing():
    X = np.array([[1.0, 2.0], [2.0, 1.0], [3.0, np.nan], [4.0, np.nan]])
    found = feature_effects(X, [0, 0, 1, 1])
    assert found["direction"].tolist() == ["higher in 1", ""]
    assert found[["hedges_g", "auc", "auc_low", "hedges_g_high"]].iloc[1].isna().all()
    assert found["auc"][0] == 1.0
