"""One call for Raw, Epochs and arrays, and the scikit-learn transformer."""

import mne
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC

from idfsmec.errors import InputError
from idfsmec.features import Feature, FeatureExtractor, FeatureSettings, extract_features
from idfsmec.table.columns import split_column

NAMES = ["Fp1", "Fz", "Cz", "O2"]
PLAIN = FeatureSettings(detect=False)


@pytest.fixture
def raw():
    """Forty seconds of four EEG channels and an EOG, in volts, at 500 Hz."""
    data = np.random.default_rng(5).standard_normal((5, 500 * 40)) * 10e-6
    types = ["eeg"] * 4 + ["eog"]
    info = mne.create_info([*NAMES, "HEOG"], 500.0, types)
    return mne.io.RawArray(data, info, verbose="error")


@pytest.fixture
def array():
    return np.random.default_rng(6).standard_normal((6, 3, 1000))


def channels(frame):
    return list(dict.fromkeys(name.rpartition("__")[0] for name in frame.columns))


def test_raw_gives_a_row_per_epoch_and_columns_for_its_eeg_channels(raw):
    frame = extract_features(raw, PLAIN)
    assert frame.shape == (4, 4 * 18)
    assert channels(frame) == NAMES
    assert frame.index.tolist() == [0, 10, 20, 30]


def test_raw_is_measured_in_microvolts(raw):
    untouched = FeatureSettings(resample=None, band_pass=None, detect=False)
    variance = extract_features(raw, untouched)["Cz__variance"].mean()
    assert variance == pytest.approx(100, rel=0.05)


def test_a_bad_channel_of_raw_is_missing_and_no_other(raw):
    clean = extract_features(raw, PLAIN)
    raw.info["bads"] = ["Fz", "HEOG"]
    frame = extract_features(raw, PLAIN)
    assert frame.filter(like="Fz__").isna().all(axis=None)
    others = [column for column in frame if not column.startswith("Fz__")]
    assert frame[others].equals(clean[others])


def test_a_nan_in_one_channel_of_raw_does_not_poison_the_rest(raw):
    clean = extract_features(raw, PLAIN)
    raw._data[2, 500 * 15] = np.nan
    frame = extract_features(raw, PLAIN)
    gone = frame.isna()
    assert gone.loc[10.0].filter(like="Cz__").all()
    assert gone.to_numpy().sum() == 18
    others = [column for column in frame if not column.startswith("Cz__")]
    assert frame[others].equals(clean[others])


def test_epochs_of_mne_are_taken_as_they_are_cut(raw):
    epochs = mne.make_fixed_length_epochs(raw, duration=5.0, preload=True, verbose="error")
    frame = extract_features(epochs, PLAIN)
    assert frame.shape == (8, 4 * 18)
    array = epochs.get_data(picks="eeg") * 1e6
    as_array = extract_features(array, PLAIN, sfreq=500.0, ch_names=NAMES)
    np.testing.assert_allclose(frame, as_array)


def test_epochs_that_were_filtered_are_not_filtered_again(raw):
    filtered = raw.copy().filter(1.0, 40.0, verbose="error").resample(250.0, verbose="error")
    epochs = mne.make_fixed_length_epochs(filtered, duration=5.0, preload=True, verbose="error")
    frame = extract_features(epochs, PLAIN)
    variance = epochs.get_data(picks="Cz")[:, 0].var(axis=-1) * 1e12
    np.testing.assert_allclose(frame["Cz__variance"], variance)
    as_given = FeatureSettings(detect=False, band_pass=None)
    assert frame.equals(extract_features(epochs, as_given))


def test_an_epoch_that_is_cut_already_keeps_its_row(raw, array):
    array[2] = np.nan
    frame = extract_features(array, sfreq=250)
    assert len(frame) == 6
    assert frame.isna().all(axis=1).tolist() == [False, False, True, False, False, False]


def test_a_recording_without_eeg_is_refused(raw):
    with pytest.raises(InputError, match="no EEG channel"):
        extract_features(raw.copy().pick(["HEOG"]))


def test_a_sampling_rate_below_the_bands_is_refused(array):
    with pytest.raises(InputError, match=r"at 64 Hz ends at 32 Hz.*45 Hz"):
        extract_features(array, sfreq=64)
    slow = FeatureSettings(bands={"delta": (1, 4), "theta": (4, 8)})
    assert extract_features(array, slow, sfreq=64).shape == (6, 3 * 11)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "sampling rate of an array must be given"),
        ({"sfreq": 250, "ch_names": ["a", "b"]}, "2 channel names for 3 channels"),
        ({"sfreq": 250, "ch_names": ["a", "b", "a"]}, "must differ"),
        ({"sfreq": 250, "ch_names": ["a", "", "b"]}, "'' cannot name a channel"),
        ({"sfreq": 250, "ch_names": ["a", "b", 3]}, "3 cannot name a channel"),
        ({"sfreq": 0}, "must be positive"),
        ({"sfreq": 250, "unit": 0}, "unit=0: give the volts"),
    ],
)
def test_an_array_without_what_is_needed_is_refused(array, arguments, message):
    with pytest.raises(InputError, match=message):
        extract_features(array, **arguments)


NAME = st.text("aB_2 -", min_size=1, max_size=8)


@given(st.lists(NAME, min_size=1, max_size=4, unique=True), NAME)
def test_a_column_gives_back_its_channel_and_feature_whatever_their_names(channels, output):
    epochs = np.random.default_rng(0).standard_normal((1, len(channels), 100))
    own = Feature(output, lambda signal: signal.mean)
    settings = FeatureSettings(features=[own], bands={}, resample=None)
    if output.strip("_ ") != output or "__" in output or not all(map(str.strip, channels)):
        with pytest.raises(InputError, match="cannot name a"):
            extract_features(epochs, settings, sfreq=100, ch_names=channels)
        return
    frame = extract_features(epochs, settings, sfreq=100, ch_names=channels)
    assert [split_column(column) for column in frame] == [(name, output) for name in channels]


def test_an_array_of_the_wrong_shape_is_refused(array):
    with pytest.raises(InputError, match=r"shape \(3, 1000\)"):
        extract_features(array[0], sfreq=250)


def test_integers_and_single_precision_are_accepted(array):
    counts = np.round(array * 1e6)
    wanted = extract_features(counts, sfreq=250)
    np.testing.assert_allclose(extract_features(counts.astype(np.int32), sfreq=250), wanted)
    single = extract_features(array.astype(np.float32), sfreq=250)
    np.testing.assert_allclose(single, extract_features(array, sfreq=250), atol=1e-3, rtol=1e-3)


def test_the_transformer_gives_what_the_function_gives(array):
    extractor = FeatureExtractor(sfreq=250, ch_names=["a", "b", "c"]).fit(array)
    frame = extract_features(array, sfreq=250, ch_names=["a", "b", "c"])
    np.testing.assert_array_equal(extractor.transform(array), frame)
    assert list(extractor.get_feature_names_out()) == list(frame.columns)
    assert extractor.n_channels_in_ == 3
    as_frame = clone(extractor).set_output(transform="pandas").fit_transform(array)
    assert list(as_frame.columns) == list(frame.columns)


def test_the_transformer_can_leave_filtered_epochs_alone(array):
    untouched = FeatureSettings(band_pass=None, resample=None, features=["mean"])
    plain = FeatureExtractor(sfreq=250, settings=untouched)
    np.testing.assert_allclose(plain.fit_transform(array), array.mean(axis=-1))


@pytest.mark.parametrize(
    "wrong", [{"sfreq": -1}, {"ch_names": "Fp1"}, {"unit": "uV"}, {"settings": {"epoch": 4}}]
)
def test_the_transformer_refuses_parameters_without_meaning(array, wrong):
    with pytest.raises(ValueError, match=f"The '{next(iter(wrong))}' parameter of Feature"):
        FeatureExtractor(**{"sfreq": 250} | wrong).fit(array)


def test_the_transformer_refuses_other_channels_than_it_was_fitted_on(array):
    extractor = FeatureExtractor(sfreq=250).fit(array)
    with pytest.raises(ValueError, match="other channels"):
        extractor.transform(array[:, :2])


def test_a_pipeline_goes_from_epochs_with_holes_to_a_prediction():
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1], 20)
    epochs = rng.standard_normal((40, 3, 1000))
    time = np.arange(1000) / 250
    epochs[y == 1] += np.sin(2 * np.pi * 10 * time + rng.uniform(0, 6, (20, 1, 1)))
    epochs[rng.random((40, 3)) < 0.2] = np.nan
    model = Pipeline(
        [
            ("features", FeatureExtractor(sfreq=250)),
            ("fill", SimpleImputer()),
            ("classify", SVC(kernel="linear")),
        ]
    )
    assert cross_val_score(model, epochs, y, cv=4).mean() > 0.9
    model.set_params(features__settings=FeatureSettings(hoc_orders=5)).fit(epochs, y)
    assert model[:-1].get_feature_names_out().shape == (3 * 22,)


def test_overlap_and_length_of_epochs_can_be_chosen(raw):
    frame = extract_features(raw, FeatureSettings(epoch=4, overlap=2, detect=False))
    assert len(frame) == 19
