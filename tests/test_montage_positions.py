"""Electrodes are where anatomy says they are."""

import mne
import numpy as np
import pytest

from idfsmec.errors import InputError
from idfsmec.montage import angles_between, channel_positions, standard_montage


def test_left_right_front_and_back_are_as_the_names_say():
    right, front, up = channel_positions(["C3", "C4", "Fpz", "Oz", "Cz"]).T
    assert right[0] < -0.4 < 0.4 < right[1]
    assert front[3] < -0.8 < 0.8 < front[2]
    assert up[4] > 0.95


def test_names_are_found_whatever_their_capitals_and_unknown_ones_are_nan():
    places = channel_positions(["FP1", "fp1", "Fp1", "CB1"])
    assert np.array_equal(places[0], places[1])
    assert np.array_equal(places[0], places[2])
    assert np.isnan(places[3]).all()
    assert np.allclose(np.linalg.norm(places[:3], axis=1), 1)


@pytest.mark.parametrize("montage", ["biosemi64", "easycap-M1", "brainproducts-RNP-BA-128"])
def test_montages_agree_with_the_10_05_system_on_where_a_name_is(montage):
    names = ["F3", "F4", "Fz", "C3", "Pz", "T7", "O2"]
    own = channel_positions(names, montage)
    angles = angles_between(own, channel_positions(names)).diagonal()
    assert angles.max() < 15


def test_old_and_new_names_of_montages_are_both_understood_without_a_warning():
    for old, new in [("standard_1005", "colin27_1005"), ("standard_1020", "colin27_1020")]:
        assert standard_montage(old).ch_names == standard_montage(new).ch_names


def test_a_montage_object_serves_as_well_as_its_name():
    made = mne.channels.make_standard_montage("GSN-HydroCel-128")
    by_name = channel_positions(["E1", "E128"], "GSN-HydroCel-128")
    assert np.array_equal(channel_positions(["E1", "E128"], made), by_name)


def test_an_unknown_montage_is_refused_with_examples():
    with pytest.raises(InputError, match="'standard_1005', 'biosemi64'"):
        standard_montage("cap")
