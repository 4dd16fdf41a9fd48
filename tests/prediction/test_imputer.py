"""ChannelImputer, checked against brute force on every pattern of gaps."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import subspace_angles
from scipy.stats import multivariate_normal
from sklearn.decomposition import FactorAnalysis
from sklearn.utils.estimator_checks import parametrize_with_checks

from idfsmec import ChannelImputer

N_CHANNELS, N_FEATURES = 6, 4
CHANNELS = np.repeat([f"E{v + 1}" for v in range(N_CHANNELS)], N_FEATURES)


@parametrize_with_checks([ChannelImputer()])
def test_keeps_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


def make_samples(n_samples=300, *, n_factors=2, noise=0.3, missing=0.3, seed=0):
    """Samples without and with gaps, and their loadings."""
    rng = np.random.default_rng(seed)
    loadings = rng.normal(size=(CHANNELS.size, n_factors))
    whole = 3 + rng.normal(size=(n_samples, n_factors)) @ loadings.T
    whole += np.sqrt(noise) * rng.normal(size=whole.shape)
    gaps = rng.random((n_samples, N_CHANNELS)) < missing
    X = np.where(np.repeat(gaps, N_FEATURES, axis=1), np.nan, whole)
    return whole, X, loadings


def covariance_of(imputer):
    """In the units of X."""
    loadings, noise = imputer.model_.loadings, imputer.model_.noise
    unit = imputer.scale_
    return (loadings @ loadings.T + np.diag(noise)) * np.outer(unit, unit)


def log_posterior(imputer, X):
    """Of what was observed, with the prior that draws loadings towards 0."""
    total = -0.5 * imputer.ridge * np.sum(imputer.model_.loadings**2)
    covariance = covariance_of(imputer)
    for row in X - imputer.mean_:
        there = ~np.isnan(row)
        if there.any():
            total += multivariate_normal.logpdf(row[there], cov=covariance[np.ix_(there, there)])
    return total


def test_what_is_imputed_is_the_conditional_normal_distribution_by_brute_force():
    _, X, _ = make_samples(60, missing=0.5)
    imputer = ChannelImputer(CHANNELS, n_factors=3).fit(X)
    covariance, mean = covariance_of(imputer), imputer.mean_
    for row, found in zip(X, imputer.transform(X), strict=True):
        gap, there = np.isnan(row), ~np.isnan(row)
        turn = covariance[np.ix_(gap, there)] @ np.linalg.inv(covariance[np.ix_(there, there)])
        wanted = mean[gap] + turn @ (row - mean)[there]
        assert_allclose(found[gap], wanted)
        assert_array_equal(found[there], row[there])


def test_factors_are_their_posterior_means():
    _, X, _ = make_samples(40, missing=0.5)
    imputer = ChannelImputer(CHANNELS, n_factors=2).fit(X)
    covariance = covariance_of(imputer)
    loadings = imputer.model_.loadings * imputer.scale_[:, None]
    for row, found in zip(X, imputer.factors(X), strict=True):
        there = ~np.isnan(row)
        inverse = np.linalg.inv(covariance[np.ix_(there, there)])
        assert_allclose(
            found, loadings[there].T @ inverse @ (row - imputer.mean_)[there], atol=1e-12
        )


def test_on_complete_samples_it_is_factor_analysis():
    """scikit-learn's estimator is the oracle."""
    whole, _, _ = make_samples(400)
    oracle = FactorAnalysis(2, tol=1e-10, max_iter=5000, svd_method="lapack").fit(whole)
    own = ChannelImputer(CHANNELS, n_factors=2, ridge=0.0, min_noise=1e-6, max_iter=1500)
    own.fit(whole)
    wanted = oracle.get_covariance()
    assert np.abs(covariance_of(own) - wanted).max() < 1e-3 * np.abs(wanted).max()
    assert log_posterior(own, whole) == pytest.approx(400 * oracle.score(whole), rel=1e-6)


@pytest.mark.parametrize("ridge", [0.0, 1.0, 30.0])
def test_every_round_makes_what_was_observed_more_probable(ridge):
    _, X, _ = make_samples(60, missing=0.5)
    course = [
        log_posterior(ChannelImputer(CHANNELS, ridge=ridge, max_iter=rounds).fit(X), X)
        for rounds in range(1, 9)
    ]
    assert np.all(np.diff(course) > -1e-8)
    assert course[-1] > course[0]


@pytest.mark.parametrize("missing", [0.0, 0.5])
def test_it_finds_the_factors_the_samples_were_made_of(missing):
    _, X, loadings = make_samples(2000, missing=missing)
    imputer = ChannelImputer(CHANNELS, n_factors=2).fit(X)
    found = imputer.model_.loadings * imputer.scale_[:, None]
    assert np.degrees(subspace_angles(found, loadings).max()) < 5
    assert_allclose(imputer.model_.noise * imputer.scale_**2, 0.3, rtol=0.25)


def test_imputed_values_are_near_the_true_ones():
    whole, X, _ = make_samples(600, missing=0.4)
    imputer = ChannelImputer(CHANNELS, n_factors=2).fit(X[:300])
    gap = np.isnan(X[300:])
    off = (imputer.transform(X[300:]) - whole[300:])[gap]
    from_mean = (imputer.mean_ - whole[300:])[gap]
    assert np.mean(off**2) < 0.4 * np.mean(from_mean**2)


def test_more_features_than_samples_changes_the_road_not_the_result():
    """Columns that nobody has make the table wide, and tell nothing."""
    _, X, _ = make_samples(40)
    narrow = ChannelImputer(CHANNELS).fit_transform(X)
    nothing = np.full((40, 30), np.nan)
    wide = ChannelImputer(np.r_[CHANNELS, ["none"] * 30]).fit(np.hstack([X, nothing]))
    assert_allclose(wide.transform(np.hstack([X, nothing]))[:, :24], narrow, rtol=1e-6)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_order_of_channels_and_units_of_features_do_not_matter(seed):
    _, X, _ = make_samples(50, missing=0.4, seed=seed)
    rng = np.random.default_rng(seed)
    order = rng.permutation(CHANNELS.size)
    unit = 10.0 ** rng.integers(-6, 6, CHANNELS.size)
    offset = unit * rng.normal(size=CHANNELS.size)
    other = (X * unit + offset)[:, order]
    here = ChannelImputer(CHANNELS).fit(X)
    there = ChannelImputer(CHANNELS[order]).fit(other)
    scale = (unit * here.scale_)[order]
    wanted = (here.transform(X) * unit + offset)[:, order]
    assert_allclose(there.transform(other) / scale, wanted / scale, atol=1e-6)


def test_of_a_channel_with_some_values_missing_nothing_is_used_but_its_values_stay():
    _, X, _ = make_samples(100)
    imputer = ChannelImputer(CHANNELS).fit(X)
    part = X[~np.isnan(X).any(axis=1)][:3].copy()
    whole = part.copy()
    whole[:, :4] = np.nan
    part[:, 0] = np.nan
    given, imputed = imputer.transform(part), imputer.transform(whole)
    assert_array_equal(given[:, 0], imputed[:, 0])
    assert_array_equal(given[:, 1:4], part[:, 1:4])
    assert_array_equal(imputer.factors(part), imputer.factors(whole))


def test_wild_values_count_as_six_deviations_away_but_stay():
    _, X, _ = make_samples(100, missing=0.0)
    imputer = ChannelImputer(CHANNELS).fit(X)
    far, farther = (imputer.mean_ + away * imputer.scale_ for away in (6, 1000))
    both = np.stack([far, farther])
    both[:, :4] = np.nan
    imputed = imputer.transform(both)
    assert_allclose(imputed[1, :4], imputed[0, :4])
    assert_array_equal(imputed[:, 4:], both[:, 4:])


def test_a_sample_without_any_channel_gets_the_mean():
    _, X, _ = make_samples(100)
    imputer = ChannelImputer(CHANNELS).fit(X)
    empty = np.full((1, CHANNELS.size), np.nan)
    assert_allclose(imputer.transform(empty)[0], np.nanmean(X, axis=0))


def test_constant_features_get_their_constant_and_never_seen_ones_zero():
    _, X, _ = make_samples(100)
    X[~np.isnan(X[:, 5]), 5] = 7.0
    X[:, 8:12] = np.nan
    imputer = ChannelImputer(CHANNELS).fit(X)
    empty = np.full((1, CHANNELS.size), np.nan)
    imputed = imputer.transform(empty)[0]
    assert imputed[5] == 7.0
    assert_array_equal(imputed[8:12], 0.0)
    seen = np.ones((1, CHANNELS.size))
    assert_array_equal(imputer.transform(seen), seen)


def test_without_factors_the_mean_is_filled_in():
    _, X, _ = make_samples(50)
    imputed = ChannelImputer(CHANNELS, n_factors=0).fit_transform(X)
    assert_allclose(imputed, np.where(np.isnan(X), np.nanmean(X, axis=0), X))


def test_never_more_factors_than_half_of_the_features_or_samples():
    _, X, _ = make_samples(30)
    assert ChannelImputer(CHANNELS, n_factors=50).fit(X).n_factors_ == 12
    assert ChannelImputer(CHANNELS, n_factors=50).fit(X[:8]).n_factors_ == 4


def test_channels_come_from_names_or_every_feature_is_one():
    _, X, _ = make_samples(80)
    frame = pd.DataFrame(X, columns=[f"{c}__f{j % 4}" for j, c in enumerate(CHANNELS)])
    imputer = ChannelImputer().set_output(transform="pandas").fit(frame)
    assert imputer.channel_names_.tolist() == [f"E{v + 1}" for v in range(6)]
    imputed = imputer.transform(frame)
    assert_array_equal(imputed.columns, frame.columns)
    assert_allclose(imputed, ChannelImputer(CHANNELS).fit_transform(X))
    assert ChannelImputer().fit(X).channel_names_.size == CHANNELS.size


@pytest.mark.parametrize(
    "wrong",
    [{"n_factors": "many"}, {"n_factors": -1}, {"ridge": -1.0}, {"min_noise": 0}, {"max_iter": 0}],
)
def test_says_what_is_wrong_with_a_parameter(wrong):
    _, X, _ = make_samples(20)
    (name,) = wrong
    with pytest.raises(ValueError, match=f"'{name}' parameter"):
        ChannelImputer(CHANNELS, **wrong).fit(X)


def test_samples_with_the_same_channels_share_what_is_worked_out():
    """With many samples of few patterns, and with patterns of their own, imputer are the same."""
    _, few, _ = make_samples(12, missing=0.5)
    _, other, _ = make_samples(200, missing=0.0, seed=1)
    many = np.where(np.isnan(few[np.arange(200) % 4]), np.nan, other)
    imputer = ChannelImputer(CHANNELS, n_factors=3).fit(many)
    alone = np.vstack([imputer.factors(many[[row]]) for row in range(8)])
    assert_allclose(imputer.factors(many)[:8], alone, atol=1e-12)


@pytest.mark.parametrize("shape", [(1100, 520), (520, 1100)])
def test_large_tables_begin_from_the_leading_directions_too(shape):
    """One round from the start: singular vectors of the samples, by brute force."""
    rng = np.random.default_rng(1)
    X = 5 * rng.normal(size=(shape[0], 3)) @ rng.normal(size=(3, shape[1]))
    X += rng.normal(size=shape)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    imputer = ChannelImputer(np.arange(shape[1]) // 10, n_factors=3, max_iter=1).fit(X)
    directions = np.linalg.svd(Z, full_matrices=False)[2][:3].T
    assert np.degrees(subspace_angles(imputer.model_.loadings, directions).max()) < 1
