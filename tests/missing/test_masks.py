"""The indicator says of each epoch and channel what the objects it was read from say."""

import autoreject
import mne
import numpy as np
import pandas as pd
import pyprep
import pytest

from idfsmec.errors import InputError
from idfsmec.missing import (
    combine_observed,
    mask_table,
    observed_from_annotations,
    observed_from_bads,
    observed_from_reject_log,
)
from idfsmec.recordings import simulate_cohort
from idfsmec.table import FeatureTable

NAMES = ["Fp1", "Fp2", "F7"]


@pytest.fixture(scope="module")
def raw():
    """A recording whose T7 is off throughout and whose Pz comes off after 20 s."""
    cohort = simulate_cohort(1, 19, duration=40, detached=0, random_state=0)
    raw = cohort.recordings[0].load()
    data = raw.get_data()
    rng = np.random.default_rng(0)
    data[raw.ch_names.index("T7")] = rng.normal(scale=400e-6, size=raw.n_times)
    data[raw.ch_names.index("Pz"), 20 * 250 :] = rng.normal(scale=400e-6, size=20 * 250)
    return mne.io.RawArray(data, raw.info, verbose="error")


@pytest.fixture(scope="module")
def fitted(raw):
    epochs = mne.make_fixed_length_epochs(
        raw.copy().filter(1, 40, verbose="error"), 2, preload=True, verbose="error"
    )
    cleaner = autoreject.AutoReject(
        n_interpolate=[2], consensus=[0.6], cv=3, random_state=0, verbose=False
    )
    return epochs, cleaner.fit(epochs).get_reject_log(epochs)


class TestBads:
    @pytest.mark.parametrize("given", ["Fp1;F7", " Fp1 ; F7;", ["Fp1", "F7"], ("F7", "Fp1")])
    def test_a_manifests_text_and_lists_of_names_mark_those_channels(self, given):
        observed = observed_from_bads(given, NAMES, 2)
        assert observed.columns.tolist() == NAMES
        assert observed.to_numpy().tolist() == [[False, True, False]] * 2
        assert observed.dtypes.eq(bool).all()

    @pytest.mark.parametrize("given", [None, "", float("nan"), []])
    def test_nothing_written_means_nothing_bad(self, given):
        assert observed_from_bads(given, NAMES, 3).all(axis=None)

    def test_info_raw_and_epochs_speak_for_their_bads(self, raw):
        marked = raw.copy()
        marked.info["bads"] = ["T7", "O2"]
        epochs = mne.make_fixed_length_epochs(marked, 10, preload=True, verbose="error")
        for source in (marked.info, marked, epochs):
            observed = observed_from_bads(source, raw.ch_names, 4)
            assert observed.columns[~observed.iloc[3]].tolist() == ["T7", "O2"]

    def test_bads_of_other_kinds_of_channels_are_passed_over(self):
        info = mne.create_info(["Fp1", "EOG1"], 250.0, ["eeg", "eog"])
        info["bads"] = ["EOG1"]
        assert observed_from_bads(info, ["Fp1"], 1).all(axis=None)

    def test_a_misspelt_name_is_refused(self):
        with pytest.raises(InputError, match=r"'Fp11' is not a channel.*Fp1, Fp2, F7"):
            observed_from_bads("Fp11", NAMES, 1)


class TestAnnotations:
    starts = np.arange(4) * 10.0

    def observed(self, annotations, **options):
        frame = observed_from_annotations(annotations, NAMES, self.starts, 10.0, **options)
        return frame.to_numpy()

    def test_without_channel_names_all_channels_are_missing_where_it_is_bad(self):
        seen = self.observed(mne.Annotations([8.0], [4.0], ["BAD_movement"]))
        assert seen.tolist() == [[False] * 3, [False] * 3, [True] * 3, [True] * 3]

    def test_with_channel_names_only_those_are(self):
        marks = mne.Annotations([15.0, 33.0], [1.0, 1.0], ["BAD_a", "bad_b"], None, [["F7"], []])
        seen = self.observed(marks)
        assert seen.tolist() == [[True] * 3, [True, True, False], [True] * 3, [False] * 3]

    def test_other_descriptions_do_not_count(self):
        assert self.observed(mne.Annotations([0, 5], [40, 1], ["eyes closed", "not BAD"])).all()

    def test_touching_the_edge_of_an_epoch_is_not_overlapping_it(self):
        seen = self.observed(mne.Annotations([10.0], [10.0], ["BAD"]))
        assert seen.all(axis=1).tolist() == [True, False, True, True]

    def test_a_moment_counts_for_the_epoch_that_holds_it(self):
        seen = self.observed(mne.Annotations([10.0, 25.0], [0.0, 0.0], ["BAD", "BAD"]))
        assert seen.all(axis=1).tolist() == [True, False, False, True]

    @pytest.mark.parametrize("dated", [False, True])
    @pytest.mark.parametrize("cropped", [False, True])
    def test_times_of_a_raw_are_counted_from_its_first_sample(self, dated, cropped):
        info = mne.create_info(NAMES, 100.0, "eeg")
        raw = mne.io.RawArray(np.zeros((3, 6000)), info, first_samp=700, verbose="error")
        if dated:
            raw.set_meas_date(1_600_000_000)
        raw.set_annotations(mne.Annotations([32.0], [3.0], ["BAD_x"], ch_names=[["Fp2"]]))
        if cropped:
            raw.crop(20.0)
        # Oracle: what MNE itself leaves out of the data (its annotations there hit all channels).
        everywhere = raw.copy().set_annotations(
            mne.Annotations([12.0 if cropped else 32.0], [3.0], ["BAD_x"])
        )
        kept = everywhere.get_data(reject_by_annotation="NaN", verbose="error")
        by_mne = np.isfinite(kept[1, : 100 * 40]).reshape(4, -1).all(axis=1)
        seen = self.observed(raw)
        assert seen[:, 1].tolist() == by_mne.tolist()
        assert seen[:, [0, 2]].all()

    @pytest.mark.parametrize("rate", [100.0, 50.0])
    def test_epochs_know_their_own_times(self, rate):
        info = mne.create_info(NAMES, 100.0, "eeg")
        raw = mne.io.RawArray(np.random.default_rng(0).normal(size=(3, 4100)), info, verbose=False)
        # Onsets whose sums with the lengths of epochs round up or down.
        marks = mne.Annotations([10.1, 33.3], [10.0, 0.0], ["BAD_a", "BAD_b"], None, [["F7"], []])
        raw.set_annotations(marks).crop(0.1)
        epochs = mne.make_fixed_length_epochs(
            raw, 10.0, preload=True, reject_by_annotation=False, verbose=False
        ).resample(rate)
        seen = observed_from_annotations(epochs, NAMES).to_numpy()
        assert seen.tolist() == [[True] * 3, [True, True, False], [True] * 3, [False] * 3]
        np.testing.assert_array_equal(seen, self.observed(raw))

    def test_bare_annotations_do_not_know_where_epochs_lie(self):
        with pytest.raises(InputError, match="starts and duration must be given"):
            observed_from_annotations(mne.Annotations([8.0], [4.0], ["BAD"]), NAMES)


class TestAutoreject:
    def test_bad_and_interpolated_channels_are_missing(self, fitted):
        epochs, log = fitted
        observed = observed_from_reject_log(log)
        assert observed.shape == (len(epochs), 19)
        assert observed.columns.tolist() == epochs.ch_names
        assert not observed["T7"].any()
        assert observed["Pz"].iloc[:9].mean() > 0.7
        assert not observed["Pz"].iloc[11:].any()
        assert (observed.to_numpy() == (log.labels == 0)).all()

    def test_interpolated_channels_can_be_let_through(self, fitted):
        _, log = fitted
        assert (log.labels == 2).any()
        observed = observed_from_reject_log(log, interpolated=True)
        assert (observed.to_numpy() == (log.labels != 1)).all()

    def test_channels_are_put_in_the_order_asked_for(self):
        log = autoreject.RejectLog(np.array([False]), np.array([[0, 1.0]]), ["Fp1", "Fp2"])
        observed = observed_from_reject_log(log, ["Cz", "Fp2", "Fp1"])
        assert observed.to_dict("records") == [{"Cz": True, "Fp2": False, "Fp1": True}]
        assert observed.dtypes.eq(bool).all()


def test_prep_speaks_for_whole_recordings(raw):
    noisy = pyprep.NoisyChannels(raw.copy(), random_state=0)
    noisy.find_bad_by_deviation()
    noisy.find_bad_by_correlation()
    assert "T7" in noisy.get_bads()
    observed = observed_from_bads(noisy.get_bads(), raw.ch_names, 4)
    assert observed.columns[~observed.iloc[0]].tolist() == [
        name for name in raw.ch_names if name in noisy.get_bads()
    ]
    assert (observed == observed.iloc[0]).all(axis=None)


def test_combining_keeps_what_nobody_objects_to():
    one = pd.DataFrame({"Fp1": [True, False], "F7": [True, True]})
    two = pd.DataFrame({"F7": [False, True], "Fp1": [True, True], "Cz": [True, False]})
    joint = combine_observed(one, two)
    assert joint.to_dict("list") == {
        "Fp1": [True, False],
        "F7": [False, True],
        "Cz": [True, False],
    }
    assert joint.dtypes.eq(bool).all()


def test_masks_of_different_epochs_do_not_combine():
    with pytest.raises(InputError, match=r"\[1, 2\]"):
        combine_observed(pd.DataFrame({"Fp1": [True]}), pd.DataFrame({"Fp1": [True, True]}))
    with pytest.raises(InputError, match="nothing"):
        combine_observed()


@pytest.fixture
def table():
    columns = ["Fp1__mean", "Fp2__mean", "Fp1__variance", "Fp2__variance", "E__1__mean"]
    values = np.arange(15.0).reshape(3, 5)
    values[2, 0] = np.nan
    return FeatureTable(pd.DataFrame(values, columns=columns), ["a", "b", "a"], [1, 2, 3])


def test_all_features_of_a_channel_go_wherever_its_columns_stand(table):
    observed = np.array([[False, True, True], [True, True, False], [True, False, True]])
    missing = mask_table(table, pd.DataFrame(observed, columns=table.channels)).X.isna()
    assert missing.to_numpy().tolist() == [
        [True, False, True, False, False],
        [False, False, False, False, True],
        [True, True, False, True, False],  # Fp1__mean was missing before and stays so
    ]


def test_a_frame_is_read_by_its_column_names_and_may_leave_channels_out(table):
    observed = pd.DataFrame({"E__1": [True, False, True], "Fp2": [False, True, True]})
    seen = mask_table(table, observed).observed
    assert seen["Fp1"].tolist() == [True, True, False]
    assert seen["Fp2"].tolist() == [False, True, True]
    assert seen["E__1"].tolist() == [True, False, True]


def test_the_given_table_is_not_changed(table):
    before = table.X.copy()
    masked = mask_table(table, pd.DataFrame(False, range(3), table.channels))
    assert masked.X.isna().all(axis=None)
    assert table.X.equals(before)
    assert masked.y.equals(table.y)
    assert masked.subjects.equals(table.subjects)


@pytest.mark.parametrize(
    ("observed", "message"),
    [
        (pd.DataFrame({"Fp1": [True] * 2}), "2 rows, the table 3"),
        (pd.DataFrame({"Oz": [True] * 3}), "no channel 'Oz'"),
    ],
)
def test_an_indicator_that_does_not_fit_the_table_is_refused(table, observed, message):
    with pytest.raises(InputError, match=message):
        mask_table(table, observed)
