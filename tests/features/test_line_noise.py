"""Adding line noise to a recording changes neither its features nor which channels it has."""

import numpy as np
import pytest

from idfsmec.features import FeatureSettings, extract_features, extract_recording
from idfsmec.recordings import simulate_cohort


@pytest.fixture(scope="module")
def raw():
    cohort = simulate_cohort(1, 19, duration=60, detached=0, random_state=4)
    return cohort.recordings[0].load()


def humming(raw, frequency, swell=0.0):
    """Add line noise of fifty times each channel's own standard deviation."""
    more = raw.copy()
    wave = (1 + swell * np.sin(2 * np.pi * raw.times / 60)) * np.sin(
        2 * np.pi * frequency * raw.times + 0.3
    )
    more._data += 50 * np.sqrt(2) * raw.get_data().std(axis=1, keepdims=True) * wave
    return more


def by_feature(frame):
    return {
        name: frame[[c for c in frame if c.endswith(f"__{name}")]].to_numpy()
        for name in FeatureSettings().columns
    }


@pytest.mark.parametrize(("frequency", "swell"), [(50, 0), (60.03, 0), (49.97, 0.1)])
def test_fifty_times_the_eeg_changes_no_column_by_one_percent(raw, frequency, swell):
    plain, hummed = extract_recording(raw), extract_recording(humming(raw, frequency, swell))
    assert not hummed.X.isna().any(axis=None)
    assert hummed.reasons == {}
    before, after = by_feature(plain.X), by_feature(hummed.X)
    for name, values in before.items():
        # The mean behind a high-pass is nothing: its measure is the signal.
        size = np.sqrt(before["variance"] if name == "mean" else values**2)
        change = np.abs(after[name] - values)
        assert np.sqrt((change**2).mean() / (size**2).mean()) < 0.01, name
        assert np.median(change / size) < 0.01, name


def test_without_removal_the_columns_measure_the_line_noise(raw):
    plain = extract_features(raw, FeatureSettings(line_freq="off", detect=False))
    hummed = extract_features(humming(raw, 50), FeatureSettings(line_freq="off", detect=False))
    assert (hummed["Cz__variance"] > 50 * plain["Cz__variance"]).all()


def test_a_recording_without_line_noise_is_the_same_to_the_bit_with_and_without(raw):
    clean = raw.copy()
    clean.notch_filter([50, 100], notch_widths=4, verbose="error")
    found = extract_features(clean)
    assert found.equals(extract_features(clean, FeatureSettings(line_freq="off")))


def test_tables_made_before_its_removal_are_continued_without_it():
    old = FeatureSettings().as_dict()
    del old["line_freq"]
    assert FeatureSettings.from_dict(old, FeatureSettings().columns).line_freq == "off"
    old["mains"] = 60.0  # its name in tables of earlier versions
    assert FeatureSettings.from_dict(old, FeatureSettings().columns).line_freq == 60.0
