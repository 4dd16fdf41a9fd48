"""Splines on the scalp: as MNE draws them, feature by feature."""

import mne
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from idfsmec.prediction.imputer import ScalpSplines, spherical_splines
from idfsmec.table.positions import channel_positions
from tests.prediction.scalp_maps import NAMES, smooth_maps


@pytest.fixture
def samples():
    return smooth_maps()


def test_a_map_is_interpolated_as_mne_does():
    places = dict(zip(NAMES, 0.09 * channel_positions(NAMES), strict=True))
    montage = mne.channels.make_dig_montage(places, coord_frame="head")
    info = mne.create_info(NAMES, 100.0, "eeg").set_montage(montage)
    rng = np.random.default_rng(1)
    maps = rng.normal(size=(13, 4))
    evoked = mne.EvokedArray(maps, info)
    evoked.info["bads"] = ["Fz", "P4"]
    theirs = evoked.interpolate_bads(origin=(0.0, 0.0, 0.0), verbose="error").data
    positions = np.array([one["loc"][:3] for one in info["chs"]])
    gappy = maps.T.copy()
    gappy[:, [NAMES.index("Fz"), NAMES.index("P4")]] = np.nan
    ours = ScalpSplines(np.arange(13), np.zeros(13), positions).fit_transform(gappy)
    assert_allclose(ours.T, theirs, atol=1e-4)


def test_a_constant_map_stays_constant_and_features_do_not_mix(samples):
    about = samples[2]
    X = np.tile([2.0, -1.0], 13)[None, :].copy()
    X[0, [0, 1, 8]] = np.nan
    found = ScalpSplines(**about).fit_transform(X)
    assert_allclose(found, np.tile([2.0, -1.0], 13)[None, :], atol=1e-8)


def test_channels_nowhere_and_samples_without_channels_get_zero(samples):
    X, _, about = samples
    channels, features, positions = about.values()
    positions = positions.copy()
    positions[3] = np.nan
    X = X[:2].copy()
    X[0] = np.nan
    X[1, channels == 3] = np.nan
    found = ScalpSplines(channels, features, positions).fit_transform(X)
    assert (found[0] == 0).all()
    assert (found[1, channels == 3] == 0).all()
    alone = ScalpSplines().fit_transform(X)
    assert_array_equal(alone, np.nan_to_num(X))


def test_the_series_converges():
    cosines = np.linspace(-1, 1, 9)
    assert_allclose(spherical_splines(cosines), spherical_splines(cosines, n_terms=200), atol=1e-7)
