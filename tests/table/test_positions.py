"""Dirty names become standard ones, and electrodes are where anatomy says they are."""

import mne
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from idfsmec.errors import InputError
from idfsmec.table.positions import (
    angles_between,
    channel_positions,
    choose_montage,
    plan_channels,
    standard_montage,
    standard_name,
)

TEMPLATE = mne.channels.make_standard_montage(choose_montage(["Cz"])).ch_names


@pytest.mark.parametrize(
    ("dirty", "clean"),
    [
        ("Fp1", "Fp1"),
        ("EEG Fp1-LE", "Fp1"),
        ("EEG FP1-REF", "Fp1"),
        ("FP1.", "Fp1"),
        ("Fc5.", "FC5"),
        ("Cz..", "Cz"),
        ("EEG FPZ-Ref", "Fpz"),
        ("EEG:Oz", "Oz"),
        ("EEGPz", "Pz"),
        ("C3-A2", "C3"),
        ("C3 - M2", "C3"),
        ("F3_REF", "F3"),
        ("O1-AVG", "O1"),
        (" fcz ", "FCz"),
        ("Ｆｐ１", "Fp1"),
        ("T3", "T7"),
        ("EEG T4-LE", "T8"),
        ("t5", "P7"),
        ("T6-Ref", "P8"),
        ("AFF5H", "AFF5h"),
        ("cb1", "CB1"),
    ],
)
def test_dirty_names_become_standard_names(dirty, clean):
    assert standard_name(dirty) == clean


@pytest.mark.parametrize(
    "name", ["Fp1-F7", "T3-T5", "Fp1-Cz", "Fp1-0", "EEG 001", "EEG001", "E17", "X3", "FP", "1", ""]
)
def test_names_in_doubt_stand_for_nothing(name):
    assert standard_name(name) is None


def test_every_name_of_the_template_stands_for_itself():
    old = {"T3": "T7", "T4": "T8", "T5": "P7", "T6": "P8"}
    assert {name: standard_name(name) for name in TEMPLATE} == {
        name: old.get(name, name) for name in TEMPLATE
    }


def test_an_old_name_is_kept_beside_the_new_one():
    plan = plan_channels(["T3", "Fz"])
    assert plan.renamed == {"T3": "T7", "Fz": "Fz"}


@pytest.mark.parametrize(
    "name",
    [
        *("EOG", "HEOG", "VEOG", "VEO", "HEOL", "EOG left", "EEG LOC-REF", "ROC"),
        *("ECG", "EKG1", "EEG EKG-REF", "EMG chin", "Chin1"),
        *("A1", "A2", "M1", "M2", "A2-A1", "EEG A1-REF", "EEG A2-A1", "REF", "VREF"),
        *("Status", "STATUS", "TRIGGER", "STI 014", "DIN_1", "EDF Annotations", "Photic"),
        *("SpO2", "Resp nasal", "EXG3", "AUX1", "acc_x", "IBI", ""),
    ],
)
def test_what_is_no_eeg_is_dropped_with_a_reason(name):
    plan = plan_channels(["Cz", name])
    assert plan.renamed == {"Cz": "Cz"}
    assert plan.dropped[name]


def test_channels_of_other_types_are_dropped_but_misc_with_a_standard_name_is_eeg():
    plan = plan_channels(["FP1", "CB1", "X", "Cz"], ["misc", "misc", "misc", "eog"])
    assert plan.renamed == {"FP1": "Fp1", "CB1": "CB1"}
    assert plan.dropped == {"X": "of type misc", "Cz": "of type eog"}


def test_unknown_channels_keep_their_names():
    names = ["Fp1-F7", "EEG 001", "left ear-hole"]
    assert plan_channels(names).renamed == {name: name for name in names}


@pytest.mark.parametrize(
    ("names", "renamed"),
    [
        (["T3", "T7"], ["T3", "T7"]),
        (["Fp1-A1", "Fp1-A2"], ["Fp1-A1", "Fp1-A2"]),
        (["FP1", "Fp1"], ["FP1", "Fp1"]),
        (["EEG Fp1-LE", "FP1"], ["EEG Fp1-LE", "Fp1"]),
        (["Fp1", "Fp1-A1", "F3-A1"], ["Fp1", "Fp1-A1", "F3"]),
    ],
)
def test_two_channels_never_get_one_name(names, renamed):
    assert list(plan_channels(names).renamed.values()) == renamed


dirt = st.tuples(
    st.sampled_from(["", "EEG ", "EEG", "eeg-"]),
    st.sampled_from([*TEMPLATE[:60], "T3", "T5", "CB1", "EOG", "A1", "X7", "Fp1-F7"]),
    st.sampled_from(["", ".", "-LE", "-REF", "-A1", " "]),
    st.sampled_from([str, str.upper, str.lower]),
).map(lambda parts: parts[3]("".join(parts[:3])))


@given(st.lists(dirt, max_size=20, unique=True))
def test_no_channel_is_lost_or_there_twice(names):
    plan = plan_channels(names)
    assert sorted([*plan.renamed, *plan.dropped]) == sorted(names)
    assert len(set(plan.renamed.values())) == len(plan.renamed)
    again = plan_channels(plan.renamed.values())
    assert not again.dropped


def test_a1_and_a2_of_a_biosemi_cap_are_not_taken_for_ears():
    names = [f"{letter}{number}" for letter in "ABCD" for number in range(1, 33)]
    plan = plan_channels(names)
    assert list(plan.renamed.values()) == names
    assert choose_montage(names) == "biosemi128"


@pytest.mark.parametrize(
    ("names", "montage"),
    [
        (["Fp1", "odd"], choose_montage(["Cz"])),
        (["Cz"], choose_montage(["Cz"])),
        ([f"E{i}" for i in range(1, 129)], "GSN-HydroCel-128"),
        ([*(f"E{i}" for i in range(1, 129)), "Cz"], "GSN-HydroCel-129"),
        ([f"E{i}" for i in range(1, 130)], "GSN-HydroCel-128"),
        ([f"E{i}" for i in range(1, 257)], "GSN-HydroCel-256"),
        (["E1", "E2"], None),
        (["CB1", "odd"], None),
    ],
)
def test_the_montage_fits_the_names(names, montage):
    assert choose_montage(names) == montage


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
