"""One recording: every source of missing channels, and that none of them leaks."""

import warnings
from dataclasses import replace

import mne
import numpy as np
import pytest

from idfsmec.errors import InputError
from idfsmec.features import FeatureSettings, extract_recording, extract_table
from idfsmec.recordings import Recording

PLAIN = FeatureSettings(detect=False)


@pytest.fixture
def raw(raws):
    return raws["s01.edf"].copy()


def gone(features):
    """Which channel is missing in which epoch."""
    missing = features.X.isna()
    missing.columns = missing.columns.str.rpartition("__").get_level_values(0)
    return {
        (start, channel)
        for start, row in missing.iterrows()
        for channel in dict.fromkeys(row.index)
        if row[channel].all()
    }


def test_ordinary_eeg_is_not_missing(raw):
    found = extract_recording(raw)
    assert gone(found) == set()
    assert found.reasons == {}
    assert found.n_epochs == found.n_rows == 4


def test_bad_channels_are_missing_throughout(raw):
    raw.info["bads"] = ["Cz"]
    found = extract_recording(raw, PLAIN)
    assert gone(found) == {(start, "Cz") for start in (0, 10, 20, 30)}
    assert found.reasons == {"marked bad": {"Cz": 4}}


def test_an_annotation_for_a_channel_concerns_its_epochs_only(raw):
    raw.set_annotations(mne.Annotations([12.0], [10.0], ["BAD_loose"], ch_names=[["O1", "O2"]]))
    found = extract_recording(raw, PLAIN)
    assert gone(found) == {(start, name) for start in (10, 20) for name in ("O1", "O2")}
    assert found.reasons == {"annotated BAD": {"O1": 2, "O2": 2}}


def test_an_annotation_for_all_channels_leaves_its_epochs_out(raw):
    raw.set_annotations(mne.Annotations([12.0, 35.0], [1.0, 1.0], ["bad jump", "blink"]))
    found = extract_recording(raw, PLAIN)
    assert found.X.index.tolist() == [0, 20, 30]
    assert (found.n_epochs, found.n_rows) == (4, 3)


@pytest.mark.parametrize(("seconds", "n_rows"), [(0.008, 4), (0.1, 4), (0.11, 3)])
def test_a_little_filling_at_the_very_end_costs_no_epoch(raw, seconds, n_rows):
    # What MNE writes at the end of an EDF file whose last data record it had to fill.
    end = 40.0
    raw.crop(0, end, include_tmax=False)
    raw.set_annotations(mne.Annotations([end - seconds], [seconds], ["BAD_ACQ_SKIP"]))
    assert extract_recording(raw, PLAIN).n_rows == n_rows
    raw.set_annotations(mne.Annotations([end - seconds], [seconds], ["BAD_loose"]))
    assert extract_recording(raw, PLAIN).n_rows == 3  # somebody has said so
    raw.set_annotations(mne.Annotations([end - 10 - seconds], [seconds], ["BAD_ACQ_SKIP"]))
    assert extract_recording(raw, PLAIN).n_rows == 3


def test_two_samples_of_filling_cost_no_short_epoch_either(raw):
    raw.crop(0, 40.0, include_tmax=False)
    end = 40.0 - 2 / raw.info["sfreq"]
    raw.set_annotations(mne.Annotations([end], [40.0 - end], ["BAD_ACQ_SKIP"]))
    assert extract_recording(raw, replace(PLAIN, epoch=0.5, features=["variance"])).n_rows == 80


def test_an_edf_file_of_mne_keeps_its_last_epoch(raw, tmp_path):
    raw.crop(0, 40, include_tmax=False)
    short = raw.copy().crop(0, raw.times[-3])  # two samples less than whole seconds
    options = {"physical_range": "auto", "verbose": "error"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # MNE says that it fills the last record
        mne.export.export_raw(tmp_path / "filled.edf", short, **options)
    filled = mne.io.read_raw(tmp_path / "filled.edf", verbose="error")
    assert filled.n_times == raw.n_times
    last, expected = (extract_recording(one, PLAIN).X.iloc[-1] for one in (filled, raw))
    assert len(extract_recording(filled, PLAIN).X) == 4
    powers = [name for name in expected.index if "__ap_" in name]
    np.testing.assert_allclose(last[powers], expected[powers], rtol=0.02)


def test_detection_finds_a_dead_and_a_humming_electrode(raw):
    time = raw.times
    raw._data[3] = 0.0
    raw._data[5, time >= 20] = 300e-6 * np.sin(2 * np.pi * 50 * time[time >= 20])
    found = extract_recording(raw)
    dead, humming = raw.ch_names[3], raw.ch_names[5]
    expected = {(start, dead) for start in (0, 10, 20, 30)}
    assert gone(found) == expected | {(20, humming), (30, humming)}
    # Without its mains there is nothing left of the humming one.
    assert found.reasons["detected: flat"] == {dead: 4, humming: 2}


def test_what_a_loose_electrode_records_does_not_ring_into_its_good_epochs(raw):
    clean = extract_recording(raw).X
    raw._data[5, raw.times >= 20] += 0.5  # half a volt: the electrode came off
    raw._data[5, raw.times >= 20] *= np.random.default_rng(0).standard_normal(22 * 250)
    found = extract_recording(raw)
    name = raw.ch_names[5]
    assert gone(found) == {(20, name), (30, name)}
    for column in (f"{name}__variance", f"{name}__ap_alpha", f"{name}__de_delta"):
        # The bridge differs from the true signal only at the very end of the epoch at 10 s.
        assert found.X[column][10.0] == pytest.approx(clean[column][10.0], rel=0.25)
        assert found.X[column][0.0] == pytest.approx(clean[column][0.0], rel=0.05)


def test_other_channels_do_not_notice(raw):
    clean = extract_recording(raw).X
    raw._data[4, 250 * 12 : 250 * 14] = np.nan
    raw._data[7] = 0.0
    raw.info["bads"] = [raw.ch_names[9]]
    touched = {raw.ch_names[4], raw.ch_names[7], raw.ch_names[9]}
    found = extract_recording(raw).X
    others = [c for c in clean if c.rpartition("__")[0] not in touched]
    assert found[others].equals(clean[others])


def test_with_overlap_only_epochs_that_touch_the_gap_are_missing(raw):
    raw._data[2, 250 * 17] = np.nan
    found = extract_recording(raw, FeatureSettings(overlap=5))
    assert gone(found) == {(10, raw.ch_names[2]), (15, raw.ch_names[2])}


def test_a_rate_below_the_bands_is_refused(raw):
    slow = raw.copy().resample(60, verbose="error")
    with pytest.raises(InputError, match=r"sampled at 60 Hz.*45 Hz.*or this recording"):
        extract_recording(slow)
    settings = FeatureSettings(bands={"delta": (1, 4)}, detect=False)
    assert extract_recording(slow, settings).X.shape == (4, 19 * 9)


def test_microvolts_that_were_read_as_volts_are_recognised(raw):
    raw.apply_function(lambda signal: signal * 1e6, picks="all")
    assert "microvolts that were read as volts" in extract_recording(raw).hint
    recording = Recording("s1", "HC", raw.copy, "scaled")
    with pytest.raises(InputError, match=r"scaled: .*microvolts that were read as volts"):
        extract_table([recording])


def test_bad_channels_are_interpolated_as_mne_does(raw):
    settings = FeatureSettings(features=["variance", "ap"], detect=False, line_freq="off")
    raw.info["bads"] = ["C3"]
    marks = mne.Annotations([12.0], [1.0], ["BAD_loose"], ch_names=[["O1"]])
    raw.set_annotations(marks)
    made = extract_recording(raw, replace(settings, bad_channels="interpolate"))
    assert not made.cells
    assert not made.X.isna().any(axis=None)
    assert made.acquisition["interpolated"] == pytest.approx((4 + 1) / (4 * 19))
    assert made.acquisition["gaps"]["marked bad"] == pytest.approx(1 / 19)
    by_mne = raw.copy().set_annotations(None).interpolate_bads(verbose="error")
    expected = extract_recording(by_mne, settings).X
    # The template's head is no sphere; ours are directions on one.
    np.testing.assert_allclose(made.X["C3__variance"], expected["C3__variance"], rtol=0.15)
    sound = [name for name in expected if not name.startswith(("C3_", "O1_"))]
    assert made.X[sound].equals(extract_recording(raw, settings).X[sound])
    alike = np.isclose(made.X["O1__variance"], expected["O1__variance"], rtol=0.02)
    assert alike.tolist() == [True, False, True, True]


def test_fields_of_sources_are_those_of_mne(raw):
    settings = FeatureSettings(
        features=["variance"], detect=False, line_freq="off", band_pass=None
    )
    raw.info["bads"] = ["C3", "O1"]
    made = extract_recording(raw, replace(settings, bad_channels="interpolate-fields"))
    splines = extract_recording(raw, replace(settings, bad_channels="interpolate"))
    by_mne = raw.copy().interpolate_bads(method={"eeg": "MNE"}, verbose="error")
    expected = extract_recording(by_mne, settings).X
    for column in ("C3__variance", "O1__variance"):
        # The template's head is no sphere; ours are directions on one.
        np.testing.assert_allclose(made.X[column], expected[column], rtol=0.3)
        apart = np.abs(splines.X[column] - expected[column])
        assert (np.abs(made.X[column] - expected[column]) < apart).mean() > 0.5


def test_channels_without_a_position_and_epochs_with_few_good_ones_stay_missing(raw):
    raw.rename_channels({"C3": "K1"})
    raw.info["bads"] = ["K1", "C4"]
    all_but_three = [name for name in raw.ch_names if name not in ("Fp1", "Fp2", "Fz")]
    raw.set_annotations(mne.Annotations([2.0], [1.0], ["BAD"], ch_names=[all_but_three]))
    settings = FeatureSettings(channels="all", detect=False, bad_channels="interpolate")
    made = extract_recording(raw, settings)
    assert made.X.filter(like="K1__").isna().all(axis=None)
    assert made.X.filter(like="C4__").isna().any(axis=1).tolist() == [True, False, False, False]
