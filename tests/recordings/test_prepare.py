import mne
import numpy as np
import pytest

from idfsmec.errors import InputError
from idfsmec.features import FeatureSettings, extract_features
from idfsmec.recordings import channel_plan, prepare_raw
from idfsmec.table.positions import choose_montage


def places(raw):
    return {channel["ch_name"]: channel["loc"][:3] for channel in raw.info["chs"]}


def test_signals_go_with_their_channels(make_raw):
    raw = make_raw(["EEG T3-LE", "EKG", "FP2.", "odd", "A1"])
    signals = raw.get_data()
    clean = prepare_raw(raw)
    assert clean.ch_names == ["T7", "Fp2", "odd"]
    np.testing.assert_array_equal(clean.get_data(), signals[[0, 2, 3]])
    assert clean.get_channel_types() == ["eeg", "eeg", "misc"]  # "odd" has no place on the scalp


@pytest.mark.parametrize("preload", [True, False])
def test_the_callers_raw_stays_as_it_is(make_raw, identified, tmp_path, preload):
    raw = identified(make_raw(["EEG T3-LE", "EKG", "Cz"]))
    raw.info["bads"] = ["EKG"]
    raw.set_annotations(mne.Annotations([1.0], [0.5], ["blink"], raw.info["meas_date"]))
    raw.save(tmp_path / "s1_raw.fif", verbose="ERROR")
    raw = mne.io.read_raw(tmp_path / "s1_raw.fif", preload=preload, verbose="ERROR")
    before = raw.copy()
    prepare_raw(raw, bads=["Cz"])
    assert mne.utils.object_diff(raw.info, before.info) == ""
    assert mne.utils.object_diff(raw.annotations, before.annotations) == ""
    assert raw.preload == preload
    np.testing.assert_array_equal(raw.get_data(), before.get_data())


def test_preparing_twice_is_preparing_once(make_raw):
    once = prepare_raw(make_raw(["EEG T3-LE", "EKG", "FP1"]), bads=["T3"])
    twice = prepare_raw(once)
    assert twice.ch_names == once.ch_names
    assert twice.info["bads"] == once.info["bads"]
    assert channel_plan(twice) == channel_plan(once)
    assert channel_plan(twice).renamed == {"EEG T3-LE": "T7", "FP1": "Fp1"}


def test_what_became_of_the_channels_survives_copies_and_resampling(make_raw):
    raw = prepare_raw(make_raw(["EEG T3-LE", "EKG"]))
    raw = raw.copy().resample(100.0, verbose="ERROR")
    assert channel_plan(raw).renamed == {"EEG T3-LE": "T7"}
    assert channel_plan(raw).dropped == {"EKG": "no EEG by its name"}
    assert channel_plan(raw).montage == choose_montage(["Cz"])


def test_a_prepared_recording_can_be_hashed_and_its_epochs_saved(make_raw, tmp_path):
    raw = make_raw(["EEG Fp1-LE", "EKG", "VEOG", "Cz"])
    prepared = prepare_raw(raw)
    assert hash(prepared) == hash(prepare_raw(raw))
    epochs = mne.make_fixed_length_epochs(prepared, 1.0, preload=True, verbose="error")
    assert channel_plan(epochs).renamed == {"EEG Fp1-LE": "Fp1", "Cz": "Cz"}
    epochs.save(tmp_path / "s1-epo.fif", verbose="error")
    assert mne.read_epochs(tmp_path / "s1-epo.fif", verbose="error").ch_names == ["Fp1", "Cz"]


def test_mne_takes_for_eeg_what_feature_extraction_takes(make_raw):
    raw = prepare_raw(make_raw(["EEG Fp1-LE", "EEG 23A-23R", "EEG CB1-LE", "EEG T3-LE"]))
    assert raw.copy().pick("eeg").ch_names == ["Fp1", "CB1", "T7"] == used_channels(raw)
    raw = prepare_raw(raw)
    assert raw.copy().pick("eeg").ch_names == ["Fp1", "CB1", "T7"] == used_channels(raw)
    # Of a cap that no montage knows all channels count.
    raw = prepare_raw(make_raw(["X1", "X2", "X3", "Cz"]))
    assert raw.copy().pick("eeg").ch_names == ["X1", "X2", "X3", "Cz"] == used_channels(raw)


def used_channels(raw):
    settings = FeatureSettings(features=["mean"], epoch=4)
    return list(extract_features(raw, settings).columns.str.removesuffix("__mean"))


def test_a_recording_that_was_never_prepared_has_an_empty_plan(make_raw):
    assert channel_plan(make_raw()).renamed == {}
    assert channel_plan(make_raw()).montage is None


def test_channels_lie_where_the_template_has_them(make_raw):
    raw = prepare_raw(make_raw(["CZ", "T3", "CB1", "odd"]))
    template = mne.channels.make_standard_montage(choose_montage(["Cz"]))
    head = make_raw(["Cz", "T7"]).set_montage(template)
    for name, place in places(head).items():
        np.testing.assert_allclose(places(raw)[name], place)
    assert np.isnan(places(raw)["CB1"]).all()
    assert np.isnan(places(raw)["odd"]).all()


def test_positions_from_the_file_give_way_to_the_template(make_raw):
    raw = make_raw(["Fp1", "odd"])
    own = {"Fp1": [0, 0, 0.1], "odd": [0, 0.1, 0]}
    raw.set_montage(mne.channels.make_dig_montage(own, coord_frame="head"))
    raw = prepare_raw(raw)
    assert places(raw)["Fp1"][1] > 0.05  # in front, as a frontal pole should be
    assert np.isnan(places(raw)["odd"]).all()


def test_a_recording_with_names_of_its_own_keeps_its_positions(make_raw):
    raw = make_raw(["left", "right"])
    own = {"left": [-0.1, 0, 0], "right": [0.1, 0, 0]}
    raw.set_montage(mne.channels.make_dig_montage(own, coord_frame="head"))
    raw = prepare_raw(raw)
    assert channel_plan(raw).montage is None
    np.testing.assert_allclose(places(raw)["left"], [-0.1, 0, 0])


def test_a_scalp_map_can_be_drawn(make_raw):
    raw = prepare_raw(make_raw(["FP1", "FP2", "T3", "T4", "OZ"]))
    positions = mne.channels.layout._find_topomap_coords(raw.info, picks="eeg")
    assert positions.shape == (5, 2)
    assert np.isfinite(positions).all()


def test_bad_channels_are_found_by_either_name(make_raw):
    raw = prepare_raw(make_raw(["EEG T3-LE", "FP1", "Cz"]), bads=["T3", "Fp1"])
    assert raw.info["bads"] == ["T7", "Fp1"]
    raw = prepare_raw(make_raw(["EEG T3-LE", "FP1", "Cz"]), bads=["EEG T3-LE", "T7"])
    assert raw.info["bads"] == ["T7"]


def test_bad_channels_of_the_file_are_kept(make_raw):
    raw = make_raw(["T3", "EKG", "Cz"])
    raw.info["bads"] = ["T3", "EKG"]
    assert prepare_raw(raw, bads=["Cz"]).info["bads"] == ["T7", "Cz"]


def test_a_bad_channel_that_is_dropped_anyway_does_not_matter(make_raw):
    assert prepare_raw(make_raw(["Cz", "A1", "EKG"]), bads=["a1", "EKG"]).info["bads"] == []


def test_a_bad_channel_that_is_not_there_is_named(make_raw):
    with pytest.raises(InputError, match=r"s1\.edf: the bad channel 'F7' .*Fp1, Cz"):
        prepare_raw(make_raw(), bads=["F7"], source="s1.edf")


def test_a_recording_without_eeg_is_refused_with_its_channels(make_raw):
    with pytest.raises(InputError, match=r"s1\.edf: no EEG channel .*EKG \(no EEG by its name\)"):
        prepare_raw(make_raw(["EKG", "Status"]), source="s1.edf")


@pytest.mark.parametrize("dated", [True, False])
def test_the_person_is_forgotten(make_raw, identified, dated):
    raw = identified(make_raw())
    raw.info["experimenter"] = "Dr. Li"
    raw.info["description"] = "Zhang San, ward 3"
    if not dated:
        raw.set_meas_date(None)
    raw = prepare_raw(raw)
    text = repr(dict(raw.info)) + repr(raw.info["subject_info"])
    for secret in ("Zhang", "P0815", "1980", "2015", "Li", "ward"):
        assert secret not in text
    assert raw.info["subject_info"] is None


def test_events_keep_their_times(make_raw, identified):
    raw = identified(make_raw())
    raw.set_annotations(mne.Annotations([1.5], [0.5], ["blink"], orig_time=raw.info["meas_date"]))
    raw = prepare_raw(raw)
    events, _ = mne.events_from_annotations(raw, verbose="ERROR")
    assert events[0, 0] == 375
