"""Numbers at the edge: whatever goes in, nothing that comes out is NaN, and it comes out."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from idfsmec import IDFSMEC
from tests.conftest import make_channels

SAID = (
    ".* got no groups",  # once in a process, by whichever test comes first
    "Channels without information",
    "Channels are weighted by the training loss",
    "Missing channels are associated with the label",
)


def fit(X, y, channels=None, **options):
    """Fit; it may give up after ``max_iter`` with a warning, or say what is in SAID."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", category=ConvergenceWarning)
        for said in SAID:
            warnings.filterwarnings("ignore", message=said)
        return IDFSMEC(channels, **options).fit(X, y)


def assert_sound(selector, n_features):
    for name in ("scores_", "feature_weights_", "channel_weights_", "objective_history_"):
        assert np.isfinite(getattr(selector, name)).all(), name
    assert not np.isnan(selector.objective_).any()
    assert sorted(selector.ranking_) == list(range(1, n_features + 1))
    assert np.isclose(selector.channel_weights_.sum(), 1)
    assert (selector.scores_ >= 0).all()
    assert (np.diff(selector.objective_history_) <= 0).all()


@pytest.mark.parametrize("exponent", [2, 6, 10, 14])
@pytest.mark.parametrize("standardize", [True, False])
def test_condition_numbers_up_to_1e14(exponent, standardize):
    rng = np.random.default_rng(exponent)
    y = np.arange(80) % 2
    left, _ = np.linalg.qr(rng.normal(size=(80, 12)))
    right, _ = np.linalg.qr(rng.normal(size=(12, 12)))
    X = left * np.logspace(0, -exponent, 12) @ right.T
    X[:, 0] += 0.1 * y
    assert_sound(fit(X, y, standardize=standardize), 12)


@pytest.mark.parametrize("standardize", [True, False])
def test_duplicated_features(standardize):
    X, y, channels = make_channels(n_channels=2, n_features=4)
    twice = np.hstack([X, X, -X])
    selector = fit(twice, y, np.tile(channels, 3), standardize=standardize)
    assert_sound(selector, 24)


@pytest.mark.parametrize("scale", [1e-30, 1e-15, 1e15, 1e30])
def test_the_ranking_does_not_depend_on_the_unit(scale):
    X, y, channels = make_channels()
    expected = fit(X, y, channels)
    scaled = fit(X * scale, y, channels)
    assert_sound(scaled, X.shape[1])
    np.testing.assert_allclose(scaled.scores_, expected.scores_, rtol=1e-4, atol=1e-8)


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_extreme_scales_without_standardising(scale):
    X, y, channels = make_channels()
    selector = fit(X * scale, y, channels, standardize=False, max_iter=100)
    assert_sound(selector, X.shape[1])


def test_features_of_all_scales_in_one_channel():
    X, y, channels = make_channels(n_channels=3)
    expected = fit(X, y, channels)
    mixed = fit(X * np.tile([1e-30, 1e-10, 1.0, 1e10, 1e30], 3), y, channels)
    assert_sound(mixed, X.shape[1])
    np.testing.assert_allclose(mixed.scores_, expected.scores_, rtol=1e-4, atol=1e-8)


@pytest.mark.parametrize("scale", [1e150, 1e300])
def test_scales_whose_squares_overflow_are_no_nan(scale):
    X, y, channels = make_channels()
    assert_sound(fit(X * scale, y, channels), X.shape[1])


@pytest.mark.parametrize("scale", [1e-160, 1e-300])
def test_scales_whose_squares_vanish_are_no_nan(scale):
    X, y, channels = make_channels()
    assert_sound(fit(X * scale, y, channels), X.shape[1])


def test_a_large_offset_leaves_the_ranking_finite():
    X, y, channels = make_channels()
    assert_sound(fit(X + 1e9, y, channels), X.shape[1])


@pytest.mark.parametrize("n_features", [1, 2, 40])
def test_three_samples(n_features):
    X = np.random.default_rng(0).normal(size=(3, n_features))
    assert_sound(fit(X, [0, 1, 1]), n_features)


@pytest.mark.parametrize("n_channels", [1000, pytest.param(10_000, marks=pytest.mark.long)])
def test_many_channels_of_one_feature(n_channels):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = rng.normal(size=(60, n_channels))
    X[:, 77] += 3 * y
    X[rng.random(X.shape) < 0.2] = np.nan
    selector = fit(X, y, np.arange(n_channels))
    assert_sound(selector, n_channels)
    assert selector.ranking_[77] == 1


@pytest.mark.parametrize("n_features", [300, pytest.param(1000, marks=pytest.mark.long)])
def test_one_channel_of_many_features(n_features):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = rng.normal(size=(60, n_features))
    X[:, 77] += 3 * y
    # Hundreds of iterations would take minutes; the cap must hold and the result be sound.
    assert_sound(fit(X, y, max_iter=5), n_features)


def test_a_hundred_classes():
    rng = np.random.default_rng(0)
    y = np.arange(300) % 100
    X = rng.normal(size=(300, 8)) + rng.normal(size=(100, 8))[y]
    X[rng.random(300) < 0.2, :4] = np.nan
    assert_sound(fit(X, y, np.repeat(["a", "b"], 4)), 8)


def test_float32_gives_what_float64_gives():
    X, y, channels = make_channels()
    single = X.astype(np.float32)
    first, second = fit(single, y, channels), fit(single.astype(np.float64), y, channels)
    assert_sound(first, X.shape[1])
    np.testing.assert_array_equal(first.scores_, second.scores_)


def test_the_iteration_cap_holds_and_is_said():
    X, y, channels = make_channels()
    with pytest.warns(ConvergenceWarning, match="Raise max_iter or tol"):
        selector = IDFSMEC(channels, max_iter=1, tol=1e-14).fit(X, y)
    assert selector.n_iter_ <= 1
    assert_sound(selector, X.shape[1])
