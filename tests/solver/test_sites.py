"""What sites do, from counts, means and squares alone."""

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from idfsmec.metrics import describe_confounding, site_confounding
from idfsmec.prediction import SiteHarmonizer
from idfsmec.solver.scaling import site_maps


def moments(X, sites):
    found = []
    for site in np.unique(sites):
        own = X[sites == site]
        n = (~np.isnan(own)).sum(axis=0)
        mean = np.divide(np.nansum(own, axis=0), n, out=np.zeros(n.size), where=n > 0)
        found.append((n.astype(float), mean, np.nansum((own - mean) ** 2, axis=0)))
    return [np.array(part) for part in zip(*found, strict=True)]


@given(st.integers(0, 10_000), st.integers(2, 4), st.sampled_from([0.0, 0.3]))
def test_maps_do_what_the_harmonizer_does_to_samples(seed, n_sites, missing):
    rng = np.random.default_rng(seed)
    sites = rng.integers(0, n_sites, 60)
    sites[:n_sites] = np.arange(n_sites)
    X = rng.normal(size=(60, 6)) * rng.uniform(0.5, 3, (n_sites, 6))[sites]
    X += rng.normal(0, 4, (n_sites, 6))[sites]
    X[:, 4] = 7.0  # constant
    X[:, :3][rng.random((60, 3)) < missing] = np.nan
    X[np.ix_(sites == 0, [5])] = np.nan  # a site without it
    shares = np.bincount(sites)
    slope, offset = site_maps(*moments(X, sites), shares)
    expected = SiteHarmonizer().fit_transform(X, sites=sites)
    assert_allclose(slope[sites] * X + offset[sites], expected, rtol=1e-9, atol=1e-9)


def test_confounding_is_the_share_of_variance_that_sites_explain():
    rng = np.random.default_rng(0)
    sites, y = rng.integers(0, 4, 200), rng.integers(0, 2, 200)
    means = np.array([y[sites == site].mean() for site in range(4)])[sites]
    assert_allclose(site_confounding(pd.crosstab(sites, y)), means.var() / y.var())
    assert site_confounding([[5, 0], [0, 5], [0, 0]]) == 1.0
    assert site_confounding([[5], [5]]) == 0.0
    assert describe_confounding(0.2) == ""


def test_as_much_of_the_difference_is_taken_out():
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1], 4000)
    sites = np.where(rng.random(8000) < 0.8, y, 1 - y)
    X = rng.normal(size=(8000, 5)) + 0.5 * y[:, None]
    clean = SiteHarmonizer(empirical_bayes=False).fit_transform(X, sites=sites)
    kept = (clean[y == 1].mean() - clean[y == 0].mean()) / 0.5
    assert_allclose(kept, 1 - site_confounding(pd.crosstab(sites, y)), atol=0.03)
