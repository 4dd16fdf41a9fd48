"""Direction and size of features agree with textbooks."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import brentq
from scipy.stats import chi2, f_oneway, mannwhitneyu, ncf, nct, spearmanr, ttest_ind
from scipy.stats import f as f_distribution
from scipy.stats import t as student

from idfsmec.metrics import auc_interval
from idfsmec.selection import feature_effects
from idfsmec.selection.effects import _covariates, adjusted_effects, effects_of_sums


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
        limits = found.loc[name, ["auc_low", "auc_high"]].tolist()
        assert limits == pytest.approx(auc_interval(max(share, 1 - share), len(one), len(other)))
        assert found.loc[name, "n_subjects"] == n
        assert found.loc[name, "direction"] == f"higher in {'MDD' if d > 0 else 'HC'}"


def by_definition(t, n0, n1, p):
    """Size of the effect for which smaller t come with a chance of p."""
    error = np.sqrt(1 / n0 + 1 / n1)
    return brentq(lambda size: nct.cdf(t, n0 + n1 - 2, size / error) - p, -30, 30)


@pytest.mark.parametrize(("n0", "n1", "shift"), [(12, 12, 0.8), (8, 32, -0.4), (2, 2, 3.0)])
def test_the_interval_of_hedges_g_inverts_the_noncentral_t(n0, n1, shift):
    rng = np.random.default_rng(n0)
    X = rng.normal(size=(n0 + n1, 1))
    X[n0:] += shift
    found = feature_effects(X, np.repeat([0, 1], [n0, n1])).iloc[0]
    t, of_t = ttest_ind(X[n0:, 0], X[:n0, 0])
    limits = [by_definition(t, n0, n1, p) for p in (0.975, 0.025)]
    assert_allclose(found[["hedges_g_low", "hedges_g_high"]].astype(float), limits, atol=2e-3)
    assert found["p"] == pytest.approx(of_t)
    assert (found["hedges_g_low"] > 0 or found["hedges_g_high"] < 0) == (of_t < 0.05)


def test_effects_of_any_size_have_an_interval_about_them():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 20)
    X = 1e-7 * rng.normal(size=(40, 3)) + np.outer(y, [1.0, -1e-4, 0.0])
    X[:, 2] = y
    found = feature_effects(X, y)
    # The chi distribution alone decides where t is large.
    t = found["hedges_g"] / (1 - 3 / (4 * 38 - 1))
    for name, p in (("low", 0.025), ("high", 0.975)):
        assert_allclose(
            found[f"hedges_g_{name}"][:1], t[:1] * np.sqrt(chi2.ppf(p, 38) / 38), rtol=2e-3
        )
    assert found["hedges_g_low"][1] < found["hedges_g"][1] < found["hedges_g_high"][1] < -100
    assert found[["hedges_g", "hedges_g_low", "p", "q"]].iloc[2].isna().all()  # no variance


def test_q_values_are_those_of_benjamini_and_hochberg(cohort):
    X, y = cohort
    found = feature_effects(X.assign(never=np.nan), y)
    # Adjusted by hand: the smallest of p n / rank among the features from this one on.
    p = found["p"].to_numpy()[:4]
    q = [min(p[k] * 4 / (p <= p[k]).sum() for k in range(4) if p[k] >= p[j]) for j in range(4)]
    assert_allclose(found["q"][:4], q)
    assert np.isnan(found["q"][4])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_sums_give_the_same_sizes_and_p_values(n_classes):
    rng = np.random.default_rng(6)
    y = np.arange(50) % n_classes
    X = rng.normal(size=(50, 3)) + np.outer(y == 1, [1.0, 0.0, -0.5])
    parts = [X[y == k] for k in range(n_classes)]
    sums = [(np.full(3, float(len(x))), x.sum(axis=0), (x**2).sum(axis=0)) for x in parts]
    of_sums = effects_of_sums(sums, range(n_classes), list("abc"))
    whole = feature_effects(X, y, names=list("abc"))
    assert {"p", "q"} < set(of_sums)
    for name in of_sums.columns.drop(["feature", "direction"]):
        assert_allclose(of_sums[name], whole[name], rtol=1e-8)
    assert of_sums["direction"].equals(whole["direction"])


def adjusted_by_definition(values, y, covariates):
    """Slope of the class, its t, and p: the normal equations."""
    A = np.column_stack([np.ones(y.size), y, covariates])
    coefs, (left,), *_ = np.linalg.lstsq(A, values)
    freedom = y.size - A.shape[1]
    error = np.sqrt(left / freedom * np.linalg.inv(A.T @ A)[1, 1])
    within = [values[y == k] for k in (0, 1)]
    spread = np.sqrt(sum(((w - w.mean()) ** 2).sum() for w in within) / (y.size - 2))
    size = coefs[1] / spread * (1 - 3 / (4 * (y.size - 2) - 1))
    return size, 2 * student.sf(abs(coefs[1] / error), freedom)


def test_the_adjusted_difference_is_that_of_least_squares():
    rng = np.random.default_rng(7)
    y = np.repeat(["HC", "MDD"], [30, 40])
    age = rng.normal(40, 10, 70) + 8 * (y == "MDD")
    sex = rng.choice(["f", "m"], 70)
    X = rng.normal(size=(70, 2)) + np.outer(age / 10, [1.0, 0.0]) + np.outer(sex == "f", [0.5, 1])
    X[:6, 1] = np.nan
    twice = np.repeat(np.arange(70), 2)
    covariates = pd.DataFrame({"age": age, "sex": sex})
    noise = np.tile([0.3, -0.3], 70)[:, None]
    found = adjusted_effects(X[twice] + noise, y[twice], twice, covariates.iloc[twice])
    for j, there in enumerate((slice(None), slice(6, None))):
        numbers = np.column_stack([age, sex == "m"])[there]
        expected = adjusted_by_definition(X[there, j], (y == "MDD").astype(int)[there], numbers)
        assert_allclose(found.iloc[j], expected)
    raw = feature_effects(X, y)
    assert raw["p"][0] < 0.05 < found["p_adjusted"][0]  # it was the age


def test_who_has_no_age_is_left_out_and_what_cannot_be_told_apart_is_nan():
    rng = np.random.default_rng(8)
    y, X = np.arange(40) % 2, rng.normal(size=(40, 1))
    known = pd.DataFrame({"age": rng.normal(40, 9, 40), "sex": np.where(y, "f", "")})
    part = np.arange(4, 40)
    known.loc[:3, "age"] = np.nan
    by_age = adjusted_effects(X, y, np.arange(40), known[["age"]])
    alone = adjusted_effects(X[part], y[part], part, known.loc[part, ["age"]])
    assert_allclose(by_age, alone)
    assert adjusted_effects(X, y, np.arange(40), known[["sex"]]).isna().all(axis=None)
    constant = known.assign(sex="f")
    assert_allclose(adjusted_effects(X, y, np.arange(40), constant), by_age)


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


def test_three_classes_have_eta_squared():
    rng = np.random.default_rng(4)
    y = np.repeat([0, 1, 2], 20)
    X = rng.normal(size=(60, 2)) + np.outer(y == 1, [1.0, 0.0])
    found = feature_effects(X, y)
    F, p = f_oneway(*(X[y == k, 0] for k in range(3)))
    assert found["p"][0] == pytest.approx(p)
    assert found["eta_squared"][0] == pytest.approx(2 * F / (2 * F + 57))
    assert found["direction"][0] == "highest in 1"
    # The noncentralities for which an F as large or as small is as rare as 2.5 %.
    shifts = [brentq(lambda nc, q=q: ncf.cdf(F, 2, 57, nc) - q, 0, 200) for q in (0.975, 0.025)]
    expected = [shift / (shift + 60) for shift in shifts]
    assert_allclose(found.loc[0, ["eta_squared_low", "eta_squared_high"]].tolist(), expected, 1e-3)
    assert found["eta_squared_low"][1] == 0 < found["eta_squared_high"][1]  # p is above 0.025


def test_one_degree_of_freedom_is_enough():
    found = feature_effects([[0.0], [1.0], [3.0], [5.0]], [0, 1, 2, 2])
    between, within = 14.75 - 2.0, 2.0  # of 14.75 about the mean 2.25
    F = between / 2 / within
    assert found["eta_squared"][0] == pytest.approx(between / 14.75)
    assert found["p"][0] == pytest.approx(f_distribution.sf(F, 2, 1))


def test_eta_squared_of_any_size_has_an_interval_about_it():
    y, noise = np.repeat([0, 1, 2], 20), np.random.default_rng(1).normal(size=60)
    X = np.column_stack([100 * y + noise, 1e6 * y + noise, y, np.full(60, 3.0)])
    found = feature_effects(X, y)
    assert (found["eta_squared_low"] <= found["eta_squared"])[:3].all()
    assert (found["eta_squared"] <= found["eta_squared_high"])[:3].all()
    assert found["eta_squared_low"][0] > 0.999
    assert found.loc[3, ["eta_squared", "eta_squared_low", "p"]].isna().all()


@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_eta_squared_knows_no_unit_and_no_origin(offset):
    rng = np.random.default_rng(9)
    y = np.repeat([0, 1, 2], [4, 5, 6])
    X = rng.normal(size=(15, 2)) + np.outer(y == 2, [1.0, 0.0])
    F, p = f_oneway(*(X[y == k] for k in range(3)))
    found = feature_effects(1e-3 * (X + offset), y)
    assert_allclose(found["eta_squared"], 2 * F / (2 * F + 12))
    assert_allclose(found["p"], p)


def test_a_covariate_is_a_number_where_half_of_its_values_are():
    known = pd.DataFrame({"dose": ["1", "2", "x", "y"], "drug": ["1", "x", "y", "y"]})
    dose, *drug = _covariates(known)
    assert_allclose(dose, [-0.5, 0.5, np.nan, np.nan])
    assert_allclose(drug, np.eye(3)[[0, 1, 2, 2]].T)


def test_a_score_has_spearmans_correlation():
    rng = np.random.default_rng(5)
    score = rng.normal(size=50)
    X = np.column_stack([score + rng.normal(size=50), -score, rng.normal(size=50)])
    X[:15, 2] = np.nan
    found = feature_effects(X, score, numeric=True)
    for j in range(3):
        there = ~np.isnan(X[:, j])
        rho, p = spearmanr(X[there, j], score[there])
        assert found["spearman"][j] == pytest.approx(rho)
        assert found["p"][j] == pytest.approx(p)
    assert found["direction"][1] == "falls with the score"
    assert found["spearman_low"][0] < found["spearman"][0] < found["spearman_high"][0]


def test_three_classes_of_which_one_has_missing_values():
    y = np.repeat(["BD", "HC", "MDD"], 20)
    X = np.random.default_rng(0).normal(size=(60, 2))
    X[:5, 0] = np.nan
    parts = [X[(y == k) & ~np.isnan(X[:, 0]), 0] for k in ("BD", "HC", "MDD")]
    p = feature_effects(X, y)["p"]
    assert p[0] == pytest.approx(f_oneway(*parts).pvalue)
    assert p[1] == pytest.approx(f_oneway(*(X[y == k, 1] for k in ("BD", "HC", "MDD"))).pvalue)


def test_a_feature_that_one_class_lacks_says_nothing():
    X = np.array([[1.0, 2.0], [2.0, 1.0], [3.0, np.nan], [4.0, np.nan]])
    found = feature_effects(X, [0, 0, 1, 1])
    assert found["direction"].tolist() == ["higher in 1", ""]
    assert found[["hedges_g", "auc", "auc_low", "hedges_g_high"]].iloc[1].isna().all()
    assert found["auc"][0] == 1.0
