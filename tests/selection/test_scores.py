"""Selection by a score: the method, effects, baselines, stability and missing channels."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import mannwhitneyu, pearsonr, spearmanr
from sklearn.datasets import load_diabetes
from sklearn.feature_selection import f_regression
from sklearn.linear_model import ElasticNet, Lasso

from idfsmec.errors import InputError
from idfsmec.missing import missingness_association
from idfsmec.prediction.sanity import AnovaF, ElasticNetOrder, ForestImportance
from idfsmec.selection import (
    CMIM,
    IDFSMEC,
    MRMR,
    RRCT,
    GroupLasso,
    ReliefF,
    StabilitySelector,
    choose_electrodes,
    feature_effects,
    idfs_path,
    rank_grid,
)
from idfsmec.selection.baselines.filters import discretize
from idfsmec.selection.effects import adjusted_effects, fisher_interval
from idfsmec.selection.stability import complementary_halves
from idfsmec.table import FeatureTable

#: Feature weights and losses of two channels by turns of convex problems, solved with CVXPY 1.9
#: and Clarabel (tests/peers/test_score_peers.py).
CVXPY = {
    0.1: ([0, 0, 0.61501, 0.38499, 0], 267.0726, [0, 0.27417, 0, 0.57963, 0.1462], 283.2301),
    1.0: ([0, 0, 0.61308, 0.38692, 0], 267.3114, [0, 0.27448, 0, 0.57853, 0.147], 283.4391),
}


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True)


@pytest.fixture
def scored():
    """Sixty participants with three samples; the score goes with a feature of Cz."""
    rng = np.random.default_rng(0)
    trait, bdi = rng.normal(size=(60, 6)), rng.integers(0, 40, 60)
    trait[:, 3] += bdi / 10
    X = np.repeat(trait, 3, axis=0) + 0.3 * rng.normal(size=(180, 6))
    X[rng.random(180) < 0.2, :3] = np.nan
    columns = [f"{v}__{f}" for v in ("F3", "Cz") for f in "abc"]
    rows = pd.DataFrame({"bdi": np.repeat(bdi, 3)})
    labels = np.where(np.repeat(bdi, 3) > 20, "MDD", "HC")
    table = FeatureTable(pd.DataFrame(X, columns=columns), labels, np.arange(180) // 3, rows=rows)
    return table.with_target("bdi")


@pytest.mark.parametrize("lam", sorted(CVXPY))
def test_weights_and_loss_are_those_that_cvxpy_found(diabetes, lam):
    X, y = diabetes
    selector = IDFSMEC([0] * 5 + [1] * 5, lam=lam, numeric=True, tol=1e-9)
    selector.fit(X, y, groups=np.arange(len(y)))
    first, loss, second, other = CVXPY[lam]
    assert_allclose(selector.feature_weights_, [*first, *second], atol=5e-5)
    assert_allclose(selector.objective_, [loss, other], rtol=1e-6)


def test_a_score_in_other_units_ranks_alike_and_grades_are_ranked_by_their_codes(scored):
    X, y = scored.X, scored.scores
    ranking = IDFSMEC(numeric=True).fit(X, y).ranking_
    assert ranking[3] == 1
    assert_array_equal(IDFSMEC(numeric=True).fit(X, 100 - 3 * y).ranking_, ranking)
    names = np.array(["none", "mild", "severe"])
    grades = FeatureTable(X.reset_index(drop=True), names[np.digitize(y, [10, 25])], X.index)
    grades = grades.with_order(names)
    by_grade = IDFSMEC(numeric=True).fit(grades.X, grades.scores)
    assert_array_equal(by_grade.ranking_, IDFSMEC(numeric=True).fit(X, grades.scores).ranking_)
    assert by_grade.ranking_[3] == 1


def test_path_and_grid_give_what_single_fits_do(scored):
    X, y, settings = scored.X, scored.scores, [{"lam": 0.1}, {"lam": 10.0}]
    by_grid = rank_grid(IDFSMEC(numeric=True), X, y, settings, groups=X.index)[0]
    path = idfs_path(X, y, lams=[0.1, 10.0], gammas=[2.0], numeric=True)
    for row, setting in enumerate(settings):
        ranking = IDFSMEC(numeric=True, **setting).fit(X, y).ranking_
        assert_array_equal(by_grid[row], ranking)
        assert_array_equal(path.rankings[row, 0], ranking)


def test_scores_that_cannot_be_ranked_are_refused(scored, tmp_path):
    with pytest.raises(ValueError, match="contains NaN"):
        IDFSMEC(numeric=True).fit(scored.X, scored.scores.where(scored.scores > 3))
    with pytest.raises(ValueError, match="All values of y are equal"):
        MRMR(numeric=True).fit(np.eye(4), np.ones(4))
    path = scored.write(tmp_path / "table.parquet")
    with pytest.raises(InputError, match="a score cannot be ranked from files"):
        IDFSMEC(numeric=True).fit(path)
    with pytest.raises(InputError, match="a score cannot be ranked from files"):
        IDFSMEC(numeric=True).fit_summaries([])


def test_correlations_are_scipys_with_fishers_intervals(scored):
    effects = IDFSMEC(numeric=True).fit(scored.X, scored.scores).effects_
    means = scored.X.groupby(level=0).mean()
    score = scored.scores.groupby(level=0).mean()
    for row, name in zip(effects.to_dict("records"), means, strict=True):
        here = means[name].notna()
        ours = pearsonr(means.loc[here, name], score[here])
        assert row["pearson"] == pytest.approx(ours.statistic)
        ci = ours.confidence_interval()
        assert_allclose([row["pearson_low"], row["pearson_high"]], ci, rtol=1e-9)
        ranked = spearmanr(means.loc[here, name], score[here])
        assert row["spearman"] == pytest.approx(ranked.statistic)
        assert row["p"] == pytest.approx(ranked.pvalue)
        assert row["spearman_high"] - row["spearman_low"] > 0
    assert effects["direction"][3] == "rises with the score"


def test_the_interval_of_spearmans_r_is_that_of_bonett_and_wright():
    # With r = 0.5 and n = 28 by hand: z 0.54931, standard error sqrt(1.125 / 25) = 0.21213.
    low, high = fisher_interval(0.5, 28, 0.125)
    assert_allclose([low, high], np.tanh([0.54931 - 0.41577, 0.54931 + 0.41577]), atol=1e-5)
    assert_allclose(fisher_interval(0.5, 3), [-1, 1])


def test_a_constant_feature_has_no_correlation():
    effects = feature_effects(
        np.column_stack([np.full(9, 0.1), np.arange(9)]), np.arange(9) ** 2, numeric=True
    )
    assert np.isnan(effects.loc[0, ["spearman", "pearson"]].astype(float)).all()
    assert effects["spearman"][1] == 1


def test_the_adjusted_correlation_is_that_of_residuals():
    rng = np.random.default_rng(1)
    age = rng.normal(40, 10, 50)
    score, x = age + rng.normal(size=50), age + 3 * rng.normal(size=50)
    found = adjusted_effects(
        x[:, None], score, np.arange(50), pd.DataFrame({"age": age}), numeric=True
    )
    rest = [part - np.polyval(np.polyfit(age, part, 1), age) for part in (x, score)]
    r = pearsonr(*rest).statistic
    assert found["r_adjusted"][0] == pytest.approx(r)
    assert abs(r) < 0.4 < pearsonr(x, score).statistic


def naive_rrelieff(X, y, k):
    """The definition of Robnik-Sikonja and Kononenko with equal weights, one pair at a time."""
    Z, t = (X - X.min(axis=0)) / np.ptp(X, axis=0), (y - y.min()) / np.ptp(y)
    of_target, of_feature, of_both = 0.0, np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for i in range(len(y)):
        distance = np.abs(Z - Z[i]).sum(axis=1)
        distance[i] = np.inf
        for j in np.argsort(distance, kind="stable")[:k]:
            of_target += abs(t[i] - t[j]) / k
            of_feature += np.abs(Z[i] - Z[j]) / k
            of_both += abs(t[i] - t[j]) * np.abs(Z[i] - Z[j]) / k
    m = len(y)
    return of_both / of_target - (of_feature - of_both) / (m - of_target)


def test_rrelieff_is_its_definition():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 5))
    y = X[:, 2] + 0.3 * rng.normal(size=40)
    selector = ReliefF(numeric=True, n_neighbors=6).fit(X, y)
    assert_allclose(selector.scores_, naive_rrelieff(X, y, 6))
    assert selector.ranking_[2] == 1


def test_the_f_test_is_scikit_learns(diabetes):
    X, y = diabetes
    assert_allclose(AnovaF(numeric=True).fit(X, y).scores_, f_regression(X, y)[0], rtol=1e-9)


@pytest.mark.parametrize("selector", [MRMR, CMIM])
def test_a_score_in_bins_is_ranked_as_classes_are(diabetes, selector):
    X, y = diabetes
    bins = discretize(y[:, None])[:, 0]
    by_score = selector(numeric=True, n_features_to_select=5).fit(X, y)
    assert_array_equal(by_score.ranking_, selector(n_features_to_select=5).fit(X, bins).ranking_)


def test_rrct_takes_whole_numbers_as_a_score(diabetes):
    X, y = diabetes
    whole = RRCT(numeric=True, n_features_to_select=4).fit(X, y.astype(int))
    assert_array_equal(whole.ranking_, RRCT(n_features_to_select=4).fit(X, y + 1e-9).ranking_)


def test_lasso_and_elastic_net_are_scikit_learns(diabetes):
    X, y = diabetes
    Z, t = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()
    ours = GroupLasso(np.arange(10), alpha=0.2, numeric=True, tol=1e-12).fit(X, y)
    theirs = Lasso(ours.penalty_, fit_intercept=False, tol=1e-12).fit(Z, t)
    assert_allclose(ours.coef_[:, 0], theirs.coef_, atol=1e-6)
    ordered = ElasticNetOrder(alpha=0.2, l1_ratio=0.5, numeric=True).fit(X, y)
    penalty = 0.2 * np.abs(Z.T @ t).max() / len(t) / 0.5
    net = ElasticNet(penalty, l1_ratio=0.5, fit_intercept=False).fit(Z, t)
    assert_allclose(ordered.scores_, np.abs(net.coef_), atol=1e-3)


@pytest.mark.parametrize(
    "selector",
    [ElasticNetOrder(), GroupLasso(), AnovaF(), ForestImportance(random_state=0), RRCT()],
)
def test_baselines_find_the_feature_that_the_score_was_made_of(scored, selector):
    means = scored.X.groupby(level=0).mean()
    X = means.fillna(means.mean())
    y = scored.scores.groupby(level=0).mean()
    assert selector.set_params(numeric=True).fit(X, y).ranking_[3] == 1


def test_halves_have_low_and_high_scores_alike(scored):
    stable = StabilitySelector(
        IDFSMEC(numeric=True), n_features_to_select=1, n_resamples=20, random_state=0
    ).fit(scored.X, scored.scores)
    assert stable.get_support(indices=True).tolist() == [3]
    scores = np.random.default_rng(0).normal(size=41)
    halves = complementary_halves(
        np.arange(41), scores, 50, np.random.RandomState(0), numeric=True
    )
    means = [scores[half].mean() for half in halves]
    assert np.std(means) < 0.3 * scores.std() / np.sqrt(20)
    assert_array_equal(np.sort(np.concatenate(halves[:2])), np.arange(41))


def test_a_channel_that_high_scores_lack_is_reported(scored):
    X = scored.X.reset_index(drop=True)
    X.loc[scored.scores.to_numpy() > 25, ["Cz__a", "Cz__b", "Cz__c"]] = np.nan
    table = FeatureTable(X, scored.y, scored.subjects, scored.info)
    found = missingness_association(table).set_index("channel")
    score = scored.scores.groupby(level=0).first()
    lacking = score > 25
    assert found.loc["Cz", "p"] == pytest.approx(
        mannwhitneyu(*(score[w] for w in (~lacking, lacking))).pvalue
    )
    assert found.loc["Cz", "have_participants"] == (~lacking).sum()
    with pytest.warns(UserWarning, match="associated with the score"):
        IDFSMEC(numeric=True).fit(table.X, table.scores)


def test_electrodes_are_chosen_by_the_score(scored):
    assert choose_electrodes(scored, 1) == ["Cz"]
