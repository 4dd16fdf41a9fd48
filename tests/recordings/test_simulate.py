"""The simulated cohort looks like resting EEG, and the truth it tells about itself is true."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import mne
import numpy as np
import pytest
from scipy.signal import welch

from idfsmec.errors import InputError
from idfsmec.recordings import simulate_cohort
from idfsmec.recordings.simulate import BETWEEN_SUBJECT_SD
from idfsmec.table.positions import angles_between, channel_positions

TEN_TWENTY = [
    *("Fp1", "Fp2", "F7", "F3", "Fz", "F4", "F8", "T7", "C3", "Cz"),
    *("C4", "T8", "P7", "P3", "Pz", "P4", "P8", "O1", "O2"),
]
BANDS = {"theta": (4, 8), "alpha": (8, 13), "beta": (13, 30)}


def spectrum(recording):
    raw = recording.load()
    frequencies, density = welch(raw.get_data() * 1e6, raw.info["sfreq"], nperseg=1000)
    return frequencies, density


def log_power(recordings):
    """Log band power of each band, of shape (n_subjects, n_channels)."""
    powers = {band: [] for band in BANDS}
    for recording in recordings:
        f, density = spectrum(recording)
        for band, (low, high) in BANDS.items():
            powers[band].append(np.log(density[:, (f >= low) & (f < high)].sum(axis=1)))
    return {band: np.array(rows) for band, rows in powers.items()}


def cohens_d(values, depressed):
    one, two = values[depressed], values[~depressed]
    pooled = np.sqrt((one.var(axis=0, ddof=1) + two.var(axis=0, ddof=1)) / 2)
    return (one.mean(axis=0) - two.mean(axis=0)) / pooled


@pytest.fixture(scope="module")
def clean():
    return simulate_cohort(
        8, 64, duration=40, detached=0, artifacts=False, effect_size=0, random_state=11
    )


@pytest.fixture(scope="module")
def spectra(clean):
    return [spectrum(recording) for recording in clean.recordings]


@pytest.mark.parametrize(
    ("n_channels", "names"),
    [
        (3, ["Fp1", "Fpz", "Fp2"]),
        (19, TEN_TWENTY),
        (64, mne.channels.make_standard_montage("biosemi64").ch_names),
        (128, [f"E{i}" for i in range(1, 129)]),
    ],
)
def test_recordings_have_the_electrodes_asked_for_with_their_places(n_channels, names):
    cohort = simulate_cohort(2, n_channels, duration=4, sfreq=200, random_state=0)
    raw = cohort.recordings[1].load()
    assert raw.ch_names == list(names)
    assert raw.get_channel_types(unique=True) == ["eeg"]
    assert raw.info["sfreq"] == 200
    assert raw.n_times == 800
    assert len(raw.get_montage().get_positions()["ch_pos"]) == len(names)
    assert set(cohort.informative_channels) <= set(names)


def test_labels_subjects_and_sources_are_those_of_a_study():
    cohort = simulate_cohort(5, 3, duration=2, random_state=0)
    assert [r.label for r in cohort.recordings] == ["control", "depressed"] * 2 + ["control"]
    assert len({r.subject for r in cohort.recordings}) == 5


@pytest.mark.slow
def test_loading_gives_the_same_signal_always_and_in_any_process():
    cohort = simulate_cohort(2, 64, duration=8, random_state=5)
    here = [raw.get_data() for raw in cohort.raws()]
    again = [raw.get_data() for raw in simulate_cohort(2, 64, duration=8, random_state=5).raws()]
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as other_process:
        loads = [other_process.submit(r.load) for r in reversed(cohort.recordings)]
        elsewhere = [load.result().get_data() for load in reversed(loads)]
    assert np.array_equal(here, again)
    assert np.array_equal(here, elsewhere)


def test_subjects_differ_and_seeds_differ():
    first, second = simulate_cohort(2, 3, duration=4, random_state=0).raws()
    assert np.abs(np.corrcoef(first.get_data()[0], second.get_data()[0])[0, 1]) < 0.5
    other = next(simulate_cohort(2, 3, duration=4, random_state=1).raws())
    assert not np.array_equal(first.get_data(), other.get_data())


def test_a_subject_does_not_depend_on_how_many_others_there_are():
    few = simulate_cohort(2, 3, duration=4, random_state=0).recordings[1].load()
    many = simulate_cohort(20, 3, duration=4, random_state=0).recordings[1].load()
    assert np.array_equal(few.get_data(), many.get_data())


def test_amplitudes_are_those_of_scalp_eeg_in_volts():
    cohort = simulate_cohort(6, 19, duration=60, detached=0, random_state=0)
    deviations = np.array([raw.get_data().std(axis=1) for raw in cohort.raws()])
    assert 8e-6 < np.median(deviations) < 30e-6
    assert deviations.min() > 3e-6
    assert deviations.max() < 80e-6


def test_the_background_falls_as_one_over_f(spectra):
    slopes = []
    for f, density in spectra:
        # Away from the rhythms and from mains.
        use = ((f >= 2) & (f <= 4)) | ((f >= 30) & (f <= 45))
        slopes.append(np.polyfit(np.log(f[use]), np.log(density[:, use].mean(axis=0)), 1)[0])
    assert -1.9 < np.mean(slopes) < -1.0


def test_everybody_has_an_alpha_peak_of_their_own_strongest_at_the_back(spectra):
    peaks, ratios = [], []
    names = mne.channels.make_standard_montage("biosemi64").ch_names
    for f, density in spectra:
        back = density[[names.index(c) for c in ("O1", "Oz", "O2")]].mean(axis=0)
        front = density[[names.index(c) for c in ("Fp1", "Fpz", "Fp2")]].mean(axis=0)
        alpha, beside = (f >= 8) & (f < 13), (f >= 5) & (f < 7)
        peaks.append(f[alpha][back[alpha].argmax()])
        ratios.append(back[alpha].sum() / front[alpha].sum())
        assert back[alpha].max() > 2 * back[beside].max()
    assert len(set(peaks)) > 3
    assert 9 < np.mean(peaks) < 11
    assert np.median(ratios) > 2


def test_electrodes_resemble_each_other_the_less_the_further_apart_they_are(clean):
    raw = clean.recordings[0].load()
    correlation = np.corrcoef(raw.get_data())
    angles = angles_between(channel_positions(raw.ch_names, "biosemi64"))
    upper = np.triu_indices(64, 1)
    means = [
        correlation[upper][(angles[upper] > low) & (angles[upper] <= high)].mean()
        for low, high in [(0, 20), (20, 40), (40, 70), (70, 110), (110, 180)]
    ]
    assert means[0] > 0.7
    assert (np.diff(means) < 0).all()
    assert means[-1] < 0.4


@pytest.mark.slow
def test_the_group_effect_is_where_it_is_said_to_be_and_as_large():
    cohort = simulate_cohort(
        100, 19, duration=12, detached=0, artifacts=False, effect_size=0.8, random_state=2
    )
    depressed = np.array([r.label == "depressed" for r in cohort.recordings])
    names = cohort.recordings[0].load().ch_names
    assert cohort.informative_channels == ["F3", "F4", "Fz", "O1", "O2"]
    error = np.sqrt(4 / 100 * (1 + 0.8**2 / 8))  # standard error of d
    for band, power in log_power(cohort.recordings).items():
        d = cohens_d(power, depressed)
        told = cohort.effects[cohort.effects["band"] == band]
        expected = told.set_index("channel")["effect"].reindex(names).fillna(0.0).to_numpy()
        assert np.abs(d - expected).max() < 3.6 * error
        if len(told):
            here = np.sign(expected[expected != 0]) * d[expected != 0]
            assert here.mean() == pytest.approx(0.8, abs=2.5 * error)


@pytest.mark.slow
def test_people_differ_more_than_groups_do():
    cohort = simulate_cohort(40, 19, duration=16, detached=0, artifacts=False, random_state=4)
    depressed = np.array([r.label == "depressed" for r in cohort.recordings])
    alpha = log_power(cohort.recordings)["alpha"]
    within = np.sqrt((alpha[depressed].var(axis=0) + alpha[~depressed].var(axis=0)) / 2)
    assert within.mean() == pytest.approx(BETWEEN_SUBJECT_SD, rel=0.25)
    effect = cohort.effects["effect"].abs().max() * BETWEEN_SUBJECT_SD
    assert within.mean() > effect


def test_informative_features_are_columns_of_the_default_feature_set():
    cohort = simulate_cohort(2, 19, duration=2, random_state=0)
    assert "F3__ap_alpha" in cohort.informative_features
    assert "Fz__de_theta" in cohort.informative_features
    assert "Cz__ap_alpha" not in cohort.informative_features
    assert len(set(cohort.informative_features)) == len(cohort.informative_features)
    assert {f.rsplit("__", 1)[0] for f in cohort.informative_features} == set(
        cohort.informative_channels
    )


def test_without_an_effect_nothing_is_informative():
    cohort = simulate_cohort(2, 19, duration=2, effect_size=0, random_state=0)
    assert cohort.informative_features == []
    assert cohort.informative_channels == []
    assert cohort.effects.empty


def test_blinks_are_large_in_front_and_small_at_the_back():
    arguments = {"n_subjects": 1, "n_channels": 19, "duration": 60, "detached": 0}
    dirty = simulate_cohort(**arguments, random_state=3).recordings[0].load()
    clean = simulate_cohort(**arguments, artifacts=False, random_state=3).recordings[0].load()
    added = (dirty.get_data() - clean.get_data()) * 1e6
    at = dirty.ch_names.index
    assert 80 < added[at("Fp1")].max() < 400
    assert np.corrcoef(added[at("Fp1")], added[at("Fp2")])[0, 1] > 0.8
    assert np.abs(added[at("O1")]).max() < 0.6 * added[at("Fp1")].max()


def test_muscle_is_fast_and_comes_in_bursts():
    arguments = {"n_subjects": 1, "n_channels": 19, "duration": 120, "detached": 0}
    dirty = simulate_cohort(**arguments, random_state=3).recordings[0].load()
    clean = simulate_cohort(**arguments, artifacts=False, random_state=3).recordings[0].load()
    added = mne.filter.filter_data(
        (dirty.get_data() - clean.get_data()) * 1e6, 250.0, 25, None, verbose="error"
    )
    per_second = added.reshape(19, 120, 250).std(axis=2)
    assert per_second.max() > 5
    assert np.median(per_second.max(axis=0)) < 2


class TestDetachments:
    def test_the_truth_is_told_with_channel_kind_and_onset(self):
        cohort = simulate_cohort(30, 19, duration=40, detached=0.2, random_state=0)
        truth = cohort.detachments
        assert list(truth.columns) == ["subject", "channel", "kind", "onset"]
        assert set(truth["kind"]) == {"flat", "drift", "line"}
        assert len(truth) == pytest.approx(30 * 19 * 0.2, rel=0.25)
        whole = (truth["onset"] == 0).mean()
        assert 0.3 < whole < 0.7
        assert truth["onset"].between(0, 0.8 * 40).all()
        assert not truth.duplicated(["subject", "channel"]).any()

    def test_the_rest_of_the_recording_is_as_if_nothing_had_come_off(self):
        common = {"duration": 20, "random_state": 6}
        cohort = simulate_cohort(4, 19, detached=0.3, **common)
        whole = simulate_cohort(4, 19, detached=0.0, **common)
        for broken, sound in zip(cohort.recordings, whole.recordings, strict=True):
            lost, kept = broken.load(), sound.load()
            differs = lost.get_data() != kept.get_data()
            expected = np.zeros_like(differs)
            own = cohort.detachments[cohort.detachments["subject"] == broken.subject]
            for channel, onset in zip(own["channel"], own["onset"], strict=True):
                expected[lost.ch_names.index(channel), round(onset * 250) :] = True
            assert (differs == expected).all()

    @pytest.mark.parametrize(
        ("kind", "looks_so"),
        [
            ("flat", lambda x: x.std() < 0.5),
            ("drift", lambda x: x.std() > 50),
            ("line", lambda x: x.std() > 40 and line_share(x) > 0.9),
            ("noise", lambda x: 3 < x.std() < 150),
        ],
    )
    def test_each_kind_looks_as_it_is_called(self, kind, looks_so):
        cohort = simulate_cohort(
            4, 19, duration=60, detached=0.2, detachment_kinds=[kind], random_state=1
        )
        for recording in cohort.recordings:
            raw = recording.load()
            own = cohort.detachments[cohort.detachments["subject"] == recording.subject]
            for channel, onset in zip(own["channel"], own["onset"], strict=True):
                lost = raw.get_data([channel])[0, round(onset * 250) :] * 1e6
                assert looks_so(lost)

    def test_one_electrode_always_stays_on(self):
        cohort = simulate_cohort(10, 3, duration=2, detached=1.0, random_state=0)
        assert (cohort.detachments["subject"].value_counts() == 2).all()

    def test_both_groups_lose_electrodes_alike(self):
        cohort = simulate_cohort(200, 19, duration=2, detached=0.1, random_state=0)
        label = {r.subject: r.label for r in cohort.recordings}
        counts = cohort.detachments["subject"].map(label).value_counts()
        assert counts["control"] / counts["depressed"] == pytest.approx(1, abs=0.3)


def line_share(signal):
    f, density = welch(signal, 250.0, nperseg=500)
    near = (np.abs(f - 50) < 2) | (np.abs(f - 150) < 2)
    return density[near].sum() / density.sum()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_channels": 20}, "3, 19, 64, 128"),
        ({"n_subjects": 0}, "n_subjects"),
        ({"sfreq": 100}, "cannot hold line noise"),
        ({"duration": 0.5}, "at least 2 s"),
        ({"detached": 1.2}, "probability"),
        ({"detachment_kinds": ["loose"]}, "loose"),
    ],
)
def test_what_cannot_be_simulated_is_refused_with_the_way_out(arguments, message):
    with pytest.raises(InputError, match=message):
        simulate_cohort(**{"n_subjects": 2, "duration": 2, **arguments})


def test_effects_can_follow_a_score():
    cohort = simulate_cohort(30, 19, duration=8, score=True, detached=0, random_state=0)
    scores = np.array([float(recording.details["bdi"]) for recording in cohort.recordings])
    depressed = np.array([recording.label == "depressed" for recording in cohort.recordings])
    assert scores[depressed].min() >= scores[~depressed].max() >= 10
    power = log_power(cohort.recordings)
    planted = cohort.effects.iloc[0]
    values = power[planted["band"]][:, TEN_TWENTY.index(planted["channel"])]
    assert np.corrcoef(values, scores)[0, 1] > 0.3  # 0.8 / sqrt(1 + 0.8 ** 2) = 0.62 by design
