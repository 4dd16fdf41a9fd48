"""A user adds a feature without touching the package."""

import numpy as np
import pytest

from idfsmec.errors import InputError
from idfsmec.features import (
    DEFAULT_FEATURES,
    FEATURES,
    Feature,
    FeatureSettings,
    extract_features,
    register_feature,
)
from idfsmec.features.extract import compute_features


@pytest.fixture
def noise():
    return np.random.default_rng(0).standard_normal((4, 3, 2500))


@pytest.fixture
def line_length():
    @register_feature("line_length")
    def function(signal):
        return np.abs(np.diff(signal.data)).mean(axis=-1)

    yield function
    del FEATURES["line_length"]


def test_a_registered_feature_is_computed_by_name(noise, line_length):
    settings = FeatureSettings(features=[*DEFAULT_FEATURES, "line_length"])
    frame = extract_features(noise, settings, sfreq=250)
    assert frame.shape == (4, 3 * 19)
    assert frame.columns[18] == "ch000__line_length"


def test_a_feature_that_is_not_asked_for_is_not_computed(noise, line_length):
    assert extract_features(noise, sfreq=250).shape == (4, 3 * 18)


def test_a_feature_may_have_several_named_outputs(noise):
    hjorth = Feature(
        "hjorth",
        lambda signal: np.stack(
            [signal.variance, np.diff(signal.data).var(axis=-1) / signal.variance], axis=-1
        ),
        outputs=["activity", "squared_mobility"],
    )
    values, names = compute_features(noise, 250, FeatureSettings(features=[hjorth, "variance"]))
    assert names == ["activity", "squared_mobility", "variance"]
    np.testing.assert_array_equal(values[..., 0], values[..., 2])


def test_outputs_may_depend_on_the_bands(noise):
    relative = Feature(
        "relative_power",
        lambda s: np.stack([s.band_power(b) / s.psd.sum(-1) for b in s.settings.bands], axis=-1),
        outputs=lambda settings: [f"rp_{band}" for band in settings.bands],
    )
    settings = FeatureSettings(features=[relative], bands={"mu": (8, 12)})
    assert compute_features(noise, 250, settings)[1] == ["rp_mu"]


def test_a_users_function_never_sees_a_missing_channel(noise):
    seen = []

    def picky(signal):
        seen.append(np.isfinite(signal.data).all() and (np.ptp(signal.data, axis=-1) > 0).all())
        return signal.mean

    noise[1, 2] = 5.0
    noise[2, 0, 7] = np.nan
    values, _ = compute_features(noise, 250, FeatureSettings(features=[Feature("picky", picky)]))
    assert all(seen)
    assert np.argwhere(np.isnan(values[..., 0])).tolist() == [[1, 2], [2, 0]]


def test_an_infinite_result_becomes_nan_for_that_value_only(noise):
    broken = Feature("broken", lambda signal: np.where(signal.mean > 0, np.inf, 1.0))
    values, _ = compute_features(noise, 250, FeatureSettings(features=[broken, "variance"]))
    np.testing.assert_array_equal(np.isnan(values[..., 0]), noise.mean(axis=-1) > 0)
    assert np.isfinite(values[..., 1]).all()


def test_a_wrong_shape_is_refused_by_the_features_name(noise):
    wrong = Feature("wrong", lambda signal: signal.data.mean(axis=0))
    with pytest.raises(InputError, match="Feature 'wrong' returned shape"):
        compute_features(noise, 250, FeatureSettings(features=[wrong]))


def test_an_unknown_feature_is_refused_with_what_there_is(noise):
    with pytest.raises(InputError, match=r"no feature 'kurtosis'; there are: .*variance"):
        compute_features(noise, 250, FeatureSettings(features=["kurtosis"]))


def test_one_name_may_be_given_without_a_list(noise):
    assert compute_features(noise, 250, FeatureSettings(features="variance"))[1] == ["variance"]


def test_a_taken_name_needs_overwrite(line_length):
    with pytest.raises(InputError, match="overwrite=True"):
        register_feature("line_length")
    other = register_feature("line_length", overwrite=True)(lambda signal: signal.variance)
    assert FEATURES["line_length"].function is other


def test_two_features_cannot_write_one_column(noise):
    double = Feature("again", lambda signal: signal.mean, outputs=["variance"])
    with pytest.raises(InputError, match="column variance"):
        compute_features(noise, 250, FeatureSettings(features=["variance", double]))


@pytest.mark.parametrize("name", ["", "a__b", "_a", "a_", " a", 3])
def test_names_that_would_confuse_columns_are_refused(name):
    with pytest.raises(InputError, match="cannot name a feature"):
        register_feature(name)


@pytest.mark.parametrize(
    ("constants", "message"),
    [
        ({"bands": {"x": (8, 4)}}, "Band 'x' must have"),
        ({"bands": {"x": (8,)}}, "is not a table of bands: a name and two edges in Hz"),
        ({"bands": {"x__y": (4, 8)}}, "cannot name a band"),
        ({"hoc_orders": 0}, "hoc_orders"),
        ({"c0_ratio": -1}, "c0_ratio = -1 is not a multiple"),
    ],
)
def test_settings_without_meaning_are_refused(constants, message):
    with pytest.raises(InputError, match=message):
        FeatureSettings(**constants)


def test_the_default_is_eighteen_columns(noise):
    assert compute_features(noise, 250)[1] == [
        *("mean", "variance", "nsi", "hoc", "c0", "spectral_entropy", "shannon_entropy"),
        *(f"de_{band}" for band in ("delta", "theta", "alpha", "beta", "gamma")),
        *(f"ap_{band}" for band in ("delta", "theta", "alpha", "beta", "gamma")),
        "ap_beta_theta_ratio",
    ]
