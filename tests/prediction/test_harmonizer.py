"""SiteHarmonizer: sites become alike, subjects do not."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from idfsmec.errors import ArgumentError
from idfsmec.prediction import SiteHarmonizer

SITES = np.repeat(["Bern", "Lund", "Oslo"], [40, 25, 35])


@parametrize_with_checks([SiteHarmonizer(require_sites=False)])
def test_keeps_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


def make_samples(seed=0, *, missing=0.2, n_features=8):
    """Features with gaps; Lund and Oslo shift and stretch them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(SITES.size, n_features)) * rng.uniform(1, 4, n_features)
    for site in ("Lund", "Oslo"):
        rows = site == SITES
        X[rows] = X[rows] * rng.uniform(0.5, 2, n_features) + rng.normal(2, 1, n_features)
    X[rng.random(X.shape) < missing] = np.nan
    return X


def by_site(X, statistic, sites=SITES):
    return np.array([statistic(X[site == sites], axis=0) for site in np.unique(sites)])


def location(X, sites=SITES):
    """The mean of the sites, which count by all their samples."""
    counts = np.unique(sites, return_counts=True)[1]
    return np.average(by_site(X, np.nanmean, sites), axis=0, weights=counts)


def centred(X):
    return X - location(X)


@given(seed=st.integers(0, 10**6), missing=st.sampled_from([0.0, 0.1, 0.4]))
def test_without_shrinkage_sites_have_one_mean_and_one_scale_from_observed_values(seed, missing):
    X = make_samples(seed, missing=missing)
    clean = SiteHarmonizer(empirical_bayes=False).fit_transform(X, sites=SITES)
    assert_array_equal(np.isnan(clean), np.isnan(X))
    means = by_site(clean, np.nanmean)
    assert_allclose(means, np.broadcast_to(location(X), means.shape), atol=1e-9)
    scales = by_site(clean, lambda part, axis: np.nanstd(part, axis=axis, ddof=1))
    assert_allclose(scales, np.broadcast_to(scales[0], scales.shape), rtol=1e-9)


@given(
    seed=st.integers(0, 10**6),
    shift=st.floats(-50, 50),
    missing=st.sampled_from([0.0, 0.3]),
    site=st.sampled_from(np.unique(SITES).tolist()),
)
def test_a_shift_of_one_site_disappears(seed, shift, missing, site):
    X = make_samples(seed, missing=missing)
    plain = SiteHarmonizer().fit(X, sites=SITES)
    moved = X + np.outer(site == SITES, shift * plain.scale_)  # the same for all, in their units
    before = plain.transform(X, sites=SITES)
    after = SiteHarmonizer().fit_transform(moved, sites=SITES)
    assert_array_equal(np.isnan(after), np.isnan(X))
    assert_allclose(centred(after), centred(before), atol=1e-6)


@given(seed=st.integers(0, 10**6), shift=st.floats(5, 50))
def test_a_shift_of_one_feature_at_one_site_disappears_up_to_shrinkage(seed, shift):
    X = np.random.default_rng(seed).normal(size=(SITES.size, 8))
    X[SITES == "Oslo", 3] += shift
    clean = SiteHarmonizer().fit_transform(X, sites=SITES)
    means = by_site(clean, np.mean)[:, 3]
    assert np.ptp(means) < 0.15 * shift


def test_brute_force_of_the_posterior_on_samples_with_missing_channels():
    """One feature and site after the other, straight from the formulas."""
    X = make_samples(3, missing=0.3, n_features=5)
    harmonizer = SiteHarmonizer().fit(X, sites=SITES)
    for place, site in enumerate(harmonizer.sites_):
        z = (X[site == SITES] - location(X)) / harmonizer.scale_
        means, variances = np.nanmean(z, axis=0), np.nanvar(z, axis=0, ddof=1)
        t2, m, s2 = means.var(ddof=1), variances.mean(), variances.var(ddof=1)
        a, b = (2 * s2 + m**2) / s2, (m * s2 + m**3) / s2
        for feature in range(X.shape[1]):
            seen = z[~np.isnan(z[:, feature]), feature]
            g, d = means[feature], variances[feature]
            for _ in range(200):
                g = (t2 * seen.size * means[feature] + d * means.mean()) / (t2 * seen.size + d)
                d = (np.sum((seen - g) ** 2) / 2 + b) / (seen.size / 2 + a - 1)
            assert_allclose(harmonizer.shift_[place, feature], g, atol=1e-8)
            assert_allclose(harmonizer.stretch_[place, feature], np.sqrt(d), rtol=1e-8)


def test_what_covariates_explain_stays():
    rng = np.random.default_rng(1)
    age = np.where(SITES == "Oslo", 60.0, 40.0) + rng.normal(0, 8, SITES.size)
    X = 0.2 * age[:, None] + 0.1 * rng.normal(size=(SITES.size, 6))
    kept = SiteHarmonizer().fit_transform(X, sites=SITES, covariates=age)
    lost = SiteHarmonizer().fit_transform(X, sites=SITES)
    assert np.abs(kept - X).max() < 0.3
    assert np.ptp(by_site(lost, np.mean), axis=0).max() < 0.5 < np.ptp(by_site(X, np.mean))


def test_covariates_that_cannot_be_told_from_sites_are_refused():
    with pytest.raises(ArgumentError, match="constant within sites"):
        SiteHarmonizer().fit(make_samples(), sites=SITES, covariates=SITES == "Oslo")


def test_covariates_of_fit_are_needed_in_transform():
    X, age = make_samples(), np.random.default_rng(0).normal(size=SITES.size)
    harmonizer = SiteHarmonizer().fit(X, sites=SITES, covariates=age)
    with pytest.raises(ArgumentError, match="0 columns where fit had 1"):
        harmonizer.transform(X, sites=SITES)
    with pytest.raises(ArgumentError, match="5 rows for 100"):
        harmonizer.transform(X, sites=SITES, covariates=age[:5])


def test_a_site_never_seen_goes_by_its_own_samples_or_stays():
    X, new = make_samples(), SITES == "Oslo"
    harmonizer = SiteHarmonizer(empirical_bayes=False).fit(X[~new], sites=SITES[~new])
    own = harmonizer.transform(X[new], sites=SITES[new])
    assert_allclose(np.nanmean(own, axis=0), location(X[~new], SITES[~new]), atol=1e-9)
    harmonizer.set_params(unseen="keep")
    assert_array_equal(harmonizer.transform(X[new], sites=SITES[new]), X[new])


def test_an_unseen_site_of_few_samples_stays_with_a_warning():
    X, new = make_samples(), SITES == "Oslo"
    harmonizer = SiteHarmonizer().fit(X[~new], sites=SITES[~new])
    with pytest.warns(UserWarning, match=r"Oslo .* has 4 samples: left unchanged"):
        few = harmonizer.transform(X[new][:4], sites=SITES[new][:4])
    assert_array_equal(few, X[new][:4])


def test_samples_of_sites_that_were_seen_do_not_depend_on_each_other():
    X = make_samples()
    harmonizer = SiteHarmonizer().fit(X, sites=SITES)
    together = harmonizer.transform(X, sites=SITES)
    alone = np.vstack([harmonizer.transform(X[[i]], sites=SITES[[i]]) for i in range(len(X))])
    assert_allclose(together, alone, rtol=1e-12)


def test_constant_and_empty_features_and_a_channel_that_one_site_lacks_do_no_harm():
    X = make_samples()
    X[:, 0], X[:, 1], X[SITES == "Lund", 2] = 3.0, np.nan, np.nan
    X[:, 4] = np.where(SITES == "Oslo", 1.0, 2.0)
    X[SITES == "Oslo", 5] = 7.0
    for empirical_bayes in (True, False):
        harmonizer = SiteHarmonizer(empirical_bayes=empirical_bayes).fit(X, sites=SITES)
        clean = harmonizer.transform(X, sites=SITES)
        assert_array_equal(np.isnan(clean), np.isnan(X))
        assert_array_equal(clean[:, [0, 4]], X[:, [0, 4]])
        assert np.isfinite(harmonizer.shift_).all()
        assert (harmonizer.stretch_ > 0).all()
        assert np.ptp(clean[SITES == "Oslo", 5]) < 1e-9


def test_one_site_is_left_as_it_is():
    X = make_samples()
    assert_array_equal(SiteHarmonizer().fit_transform(X, sites=np.full(len(X), "Bern")), X)


def test_data_without_sites_are_refused():
    with pytest.raises(ArgumentError, match="sites is not given"):
        SiteHarmonizer().fit(make_samples())


@pytest.mark.parametrize("mixed", [False, True])
def test_warns_where_sites_have_one_class_alone(mixed, recwarn):
    y = np.where(SITES == "Oslo", "MDD", "HC")
    if mixed:
        y = np.where(np.arange(SITES.size) % 2, "MDD", "HC")
    SiteHarmonizer().fit(make_samples(), y, sites=SITES)
    messages = [str(warning.message) for warning in recwarn]
    assert [("confounded" in m, "idfsmec audit" in m) for m in messages] == (
        [] if mixed else [(True, True)]
    )


def test_the_index_carries_sites_through_pipelines():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, SITES.size)
    X = rng.normal(size=(SITES.size, 4)) + y[:, None]
    X += 20 * (SITES == "Oslo")[:, None] * rng.choice([-1, 1], (1, 4))
    order = rng.permutation(SITES.size)
    frame = pd.DataFrame(X[order], index=pd.Index(SITES[order], name="site"))
    pipeline = make_pipeline(SiteHarmonizer(unseen="keep"), SimpleImputer(), LogisticRegression())
    assert cross_val_score(pipeline, frame, y[order]).mean() > 0.7


def test_metadata_routing_hands_on_sites():
    X, y = make_samples(), np.arange(SITES.size) % 2
    with sklearn.config_context(enable_metadata_routing=True):
        step = SiteHarmonizer().set_fit_request(sites=True).set_transform_request(sites=True)
        pipeline = make_pipeline(step, SimpleImputer()).fit(X, y, sites=SITES)
        routed = pipeline.transform(X, sites=SITES)
    own = SiteHarmonizer().fit_transform(X, sites=SITES)
    assert_allclose(routed, SimpleImputer().fit_transform(own))


def confounded(seed=0, shares=(0.2, 0.5, 0.8), effect=2.0):
    """Controls and patients, of whom each site has another share; the effect is the same."""
    rng = np.random.default_rng(seed)
    sites = np.repeat(["Bern", "Lund", "Oslo"], 100)
    y = np.where(np.tile(np.arange(100), 3) < 100 * np.repeat(shares, 100), "MDD", "HC")
    X = rng.normal(size=(300, 6)) + effect * (y == "MDD")[:, None]
    shift, stretch = rng.normal(0, 5, (3, 6)), rng.uniform(0.5, 2, (3, 6))
    place = np.repeat(np.arange(3), 100)
    return X * stretch[place] + shift[place], y, sites


def test_with_a_reference_controls_of_all_sites_are_alike_and_the_difference_stays():
    X, y, sites = confounded()
    X[::9, 0] = np.nan
    harmonizer = SiteHarmonizer(reference="HC", empirical_bayes=False)
    clean = harmonizer.fit_transform(X, y, sites=sites)
    controls, patients = (
        np.array([np.nanmean(clean[(sites == s) & (y == k)], axis=0) for s in np.unique(sites)])
        for k in ("HC", "MDD")
    )
    assert_allclose(controls, np.broadcast_to(controls[0], controls.shape), atol=1e-9)
    away = (patients - controls) / harmonizer.scale_
    assert np.abs(away.mean(axis=1) - 2).max() < 0.4
    plain = SiteHarmonizer(empirical_bayes=False).fit(X, sites=sites)
    kept = plain.transform(X, sites=sites) / plain.scale_
    plain_away = [np.nanmean(kept[(sites == s) & (y == "HC")], axis=0) for s in ("Bern", "Oslo")]
    assert (plain_away[0] - plain_away[1] > 0.5).all()  # controls beside many patients sink


def test_a_reference_learns_from_the_samples_of_its_class_alone():
    X, y, sites = confounded()
    harmonizer = SiteHarmonizer(reference="HC").fit(X, y, sites=sites)
    alone = SiteHarmonizer().fit(X[y == "HC"], sites=sites[y == "HC"])
    for name in ("shift_", "stretch_", "mean_", "scale_"):
        assert_allclose(getattr(harmonizer, name), getattr(alone, name))
    age = np.random.default_rng(1).normal(size=300)
    harmonizer.fit(X, y, sites=sites, covariates=age)
    alone.fit(X[y == "HC"], sites=sites[y == "HC"], covariates=age[y == "HC"])
    assert_allclose(harmonizer.coef_, alone.coef_)


def test_labels_that_are_numbers_can_be_the_reference():
    X, y, sites = confounded()
    by_name = SiteHarmonizer(reference="HC").fit(X, y, sites=sites)
    by_code = SiteHarmonizer(reference=0).fit(X, (y == "MDD").astype(int), sites=sites)
    assert_array_equal(by_name.shift_, by_code.shift_)


@pytest.mark.parametrize("unseen", ["keep", "all"])
def test_a_site_without_enough_controls_is_named_and_left_or_goes_by_all_its_samples(unseen):
    X, y, sites = confounded(shares=(0.5, 0.96, 0.5))
    harmonizer = SiteHarmonizer(reference="HC", unseen=unseen, empirical_bayes=False)
    with pytest.warns(UserWarning, match=rf"'HC': Lund \(4\); they are .*unseen='{unseen}'"):
        harmonizer.fit(X, y, sites=sites)
    others = (sites != "Lund") & (y == "HC")
    two = SiteHarmonizer(empirical_bayes=False).fit(X[others], sites=sites[others])
    assert_allclose(harmonizer.mean_, two.mean_)
    clean, lund = harmonizer.transform(X, sites=sites), sites == "Lund"
    assert_allclose(clean[~lund], two.transform(X[~lund], sites=sites[~lund]))
    if unseen == "keep":
        assert_array_equal(clean[lund], X[lund])
    else:  # where patients and controls of the others are together
        assert_allclose(clean[lund].mean(axis=0), clean[~lund].mean(axis=0))
        new = harmonizer.transform(X[lund], sites=np.repeat("Riga", 100))
        assert_allclose(new, clean[lund])
    # One sample of it in a test fold gets the same as all of them.
    assert_allclose(harmonizer.transform(X[lund][:1], sites=sites[lund][:1]), clean[lund][:1])


def test_one_site_with_controls_is_left_as_it_is():
    X, y, sites = confounded(shares=(0.5, 1.0, 1.0))
    with pytest.warns(UserWarning, match=r"Lund \(0\), Oslo \(0\)"):
        harmonizer = SiteHarmonizer(reference="HC", unseen="keep").fit(X, y, sites=sites)
    assert_array_equal(harmonizer.transform(X, sites=sites), X)


def test_says_what_a_reference_needs():
    X, y, sites = confounded()
    with pytest.raises(ArgumentError, match="needs y"):
        SiteHarmonizer(reference="HC").fit(X, sites=sites)
    with pytest.raises(ArgumentError, match=r"'healthy'; the labels are 'HC', 'MDD'"):
        SiteHarmonizer(reference="healthy").fit(X, y, sites=sites)
    with pytest.raises(ArgumentError, match=r"y has shape \(10,\) for 300"):
        SiteHarmonizer(reference="HC").fit(X, y[:10], sites=sites)
    with pytest.raises(ArgumentError, match="every site has fewer than 90"):
        SiteHarmonizer(reference="HC", min_reference=90).fit(X, y, sites=sites)


def test_the_reference_reaches_a_pipeline_and_a_site_never_seen_needs_no_label():
    X, y, sites = confounded()
    frame = pd.DataFrame(X, index=pd.Index(sites, name="site"))
    pipeline = make_pipeline(SiteHarmonizer(reference="HC"), LogisticRegression())
    new = sites == "Lund"
    pipeline.fit(frame[~new], y[~new])
    assert pipeline.score(frame[~new], y[~new]) > 0.9
    assert pipeline.score(frame[new], y[new]) > 0.8
