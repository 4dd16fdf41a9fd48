"""Factors that channels share, checked against brute force on every pattern of gaps."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import subspace_angles
from scipy.stats import multivariate_normal

from idfsmec.prediction.factors import CommonFactors

N_CHANNELS, N_FEATURES = 6, 4
COLUMNS = [np.arange(v * N_FEATURES, (v + 1) * N_FEATURES) for v in range(N_CHANNELS)]
CHANNEL = np.repeat(np.arange(N_CHANNELS), N_FEATURES)


def make_samples(n_samples=300, *, n_factors=2, noise=0.3, missing=0.3, seed=0):
    """Values (0 in gaps), who has which channel, labels, loadings."""
    rng = np.random.default_rng(seed)
    loadings = rng.normal(size=(CHANNEL.size, n_factors))
    y = np.arange(n_samples) % 2
    values = rng.normal(size=(n_samples, n_factors)) @ loadings.T
    values += np.sqrt(noise) * rng.normal(size=values.shape) + y[:, None]
    observed = rng.random((n_samples, N_CHANNELS)) >= missing
    return np.where(observed[:, CHANNEL], values, 0.0), observed, y, loadings


def learn(values, observed, y, n_factors=2, neutral=(0.5, 0.5), **options):
    design = np.eye(2)[y]
    return CommonFactors.learn(
        values, observed, CHANNEL, design, np.array(neutral), n_factors, **options
    )


def class_means(values, observed, y):
    """Over the samples that have the channel, shape (2, n_features)."""
    seen = np.where(observed[:, CHANNEL], values, np.nan)
    return np.array([np.nanmean(seen[y == k], axis=0) for k in (0, 1)])


def log_posterior(rest, observed, loadings, noise):
    """Of observed values, with the prior that draws loadings towards 0."""
    total = -0.5 * np.sum(loadings**2)
    covariance = loadings @ loadings.T + noise * np.eye(CHANNEL.size)
    for row, there in zip(rest, observed[:, CHANNEL], strict=True):
        if there.any():
            total += multivariate_normal.logpdf(row[there], cov=covariance[np.ix_(there, there)])
    return total


def test_what_is_left_is_the_inverse_covariance_of_the_observed_features_times_the_sample():
    values, observed, y, _ = make_samples(40)
    common = learn(values, observed, y)
    covariance = common.loadings @ common.loadings.T + common.noise * np.eye(CHANNEL.size)
    left = common.specific(values, observed)
    for row, there, found in zip(values, observed[:, CHANNEL], left, strict=True):
        inverse = np.linalg.inv(covariance[np.ix_(there, there)])
        wanted = common.noise * inverse @ (row - common.centre)[there]
        assert_allclose(found[there], wanted, atol=1e-10)
        assert_array_equal(found[~there], 0.0)


@pytest.mark.parametrize("missing", [0.0, 0.5])
def test_it_finds_the_factors_the_samples_were_made_of(missing):
    values, observed, y, loadings = make_samples(2000, missing=missing)
    common = learn(values, observed, y)
    assert np.degrees(subspace_angles(common.loadings, loadings).max()) < 5
    assert_allclose(common.noise, 0.3, rtol=0.1)
    assert_allclose(common.centre, 0.5, atol=0.2)


def test_every_step_makes_the_observed_values_more_probable():
    values, observed, y, _ = make_samples(60, missing=0.5)
    rest = np.where(observed[:, CHANNEL], values - class_means(values, observed, y)[y], 0.0)
    course = []
    for n_iter in range(9):
        found = learn(values, observed, y, n_iter=n_iter)
        course.append(log_posterior(rest, observed, found.loadings, found.noise))
    assert np.all(np.diff(course) > -1e-8)
    assert course[-1] > course[0] + 1


@pytest.mark.parametrize("k", [0, 1])
def test_the_centre_lies_among_the_classes_means_over_the_samples_that_have_the_channel(k):
    values, observed, y, _ = make_samples(50)
    found = learn(values, observed, y, neutral=np.eye(2)[k])
    assert_allclose(found.centre, class_means(values, observed, y)[k])


def test_a_channel_nobody_has_changes_nothing():
    values, observed, y, _ = make_samples(80)
    observed[:, 2] = False
    values[:, COLUMNS[2]] = 0.0
    common = learn(values, observed, y)
    assert_array_equal(common.loadings[COLUMNS[2]], 0.0)
    assert np.isfinite(common.specific(values, observed)).all()


def test_flat_features_do_not_count_as_well_explained():
    values, observed, y, _ = make_samples(200, missing=0.0)
    with_flat = values.copy()
    with_flat[:, 20:] = 0.0
    few = learn(with_flat, observed, y)
    assert_allclose(few.noise, 0.3, rtol=0.15)
    assert_array_equal(few.loadings[20:], 0.0)


def test_without_factors_samples_are_only_centred():
    values, observed, y, _ = make_samples(30)
    common = learn(values, observed, y, n_factors=0)
    wanted = np.where(observed[:, CHANNEL], values - common.centre, 0.0)
    assert_array_equal(common.specific(values, observed), wanted)


def test_never_more_factors_than_a_quarter_of_features_or_samples():
    values, observed, y, _ = make_samples(30)
    assert learn(values, observed, y, n_factors=50).loadings.shape[1] == 6
    assert learn(values[:8], observed[:8], y[:8], n_factors=50).loadings.shape[1] == 2
    assert learn(values[:3], observed[:3], y[:3], n_factors=50).loadings.shape[1] == 0
