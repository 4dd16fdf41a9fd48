"""Detection finds channels without EEG, says why, and lets blinks and muscle pass."""

import mne
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from idfsmec.errors import InputError
from idfsmec.missing import DetectionLimits, detect_missing, estimate_typical_amplitude
from idfsmec.recordings import simulate_cohort
from idfsmec.table.positions import angles_between, channel_positions

SFREQ = 250.0
N_EPOCHS = 4


def cut(raw, n_times=2500):
    data = raw.get_data()
    n_epochs = data.shape[1] // n_times
    return data[:, : n_epochs * n_times].reshape(len(data), n_epochs, n_times).swapaxes(0, 1)


@pytest.fixture(scope="module")
def sound():
    """40 s of 19 channels, all well attached, with blinks and muscle."""
    cohort = simulate_cohort(1, 19, duration=40, detached=0, random_state=1)
    return cohort.recordings[0].load()


@pytest.fixture
def epochs(sound):
    return cut(sound).copy()


def hits(detection):
    """Reason -> cells it hit, without the reasons that hit none."""
    return {
        reason: np.argwhere(cells).tolist()
        for reason, cells in detection.reasons.items()
        if cells.any()
    }


def noise(scale, size=2500, seed=0):
    return np.random.default_rng(seed).normal(scale=scale, size=size)


TIME = np.arange(2500) / SFREQ


LOST = [
    ("flat", np.zeros(2500)),
    ("flat", np.full(2500, 0.1234)),
    ("flat", noise(0.1e-6)),
    ("flat", np.where(TIME < 6, noise(10e-6), 0.0)),
    ("nan", np.where(TIME == 4, np.nan, 10e-6)),
    ("nan", np.where(TIME == 4, np.inf, noise(10e-6))),
    ("clipped", np.clip(60e-6 * np.sin(2 * np.pi * 3 * TIME), -50e-6, 50e-6)),
    ("amplitude", noise(150e-6)),
    ("amplitude", noise(1.0)),
    ("amplitude", 2e-4 * np.sin(2 * np.pi * 1.3 * TIME) + noise(8e-6)),
    ("decorrelated", 3e-4 * np.sin(2 * np.pi * 0.05 * TIME) + noise(8e-6)),
    ("pop", np.where(TIME < 4, 0.0, 8e-4) * np.exp(-np.maximum(TIME - 4, 0)) + noise(8e-6)),
    ("line", 90e-6 * np.sin(2 * np.pi * 50 * TIME) + noise(2e-6)),
    ("line", 90e-6 * np.sin(2 * np.pi * 60 * TIME) + noise(2e-6)),
    ("line", 200e-6 * np.sign(np.sin(2 * np.pi * 50 * TIME + 0.1)) + noise(2e-6)),
    ("decorrelated", noise(10e-6)),
]


@pytest.mark.parametrize(
    ("reason", "signal", "channel"),
    [
        (*LOST[i], ["Fp1", "Cz", "O2"][(i + shift) % 3])
        for i in range(len(LOST))
        for shift in (0, 1)
    ],
)
def test_each_way_of_being_lost_is_found_where_it_is_and_named(
    sound, epochs, reason, signal, channel
):
    index = sound.ch_names.index(channel)
    epochs[2, index] = signal
    detection = detect_missing(epochs, SFREQ, ch_names=sound.ch_names)
    assert [2, index] in hits(detection)[reason]
    assert detection.missing.sum() == 1
    assert not detection.observed.loc[2, channel]


def test_a_sound_recording_passes_with_its_blinks_and_muscle(sound, epochs):
    assert np.ptp(epochs[:, 0], axis=1).max() > 150e-6  # there are blinks indeed
    assert not detect_missing(epochs, SFREQ, ch_names=sound.ch_names).missing.any()


@pytest.mark.parametrize("n_channels", [3, 19, 64, pytest.param(128, marks=pytest.mark.slow)])
def test_ordinary_cohorts_pass(n_channels):
    n_subjects = 6 if n_channels < 64 else 3
    cohort = simulate_cohort(
        n_subjects, n_channels, duration=30, detached=0, random_state=n_channels
    )
    for raw in cohort.raws():
        detection = detect_missing(cut(raw), SFREQ, ch_names=raw.ch_names)
        assert detection.missing.mean() < 0.002


def test_a_tense_jaw_is_not_a_lost_electrode(sound, epochs):
    muscle = np.random.default_rng(0).normal(scale=30e-6, size=(N_EPOCHS, 2500))
    muscle = mne.filter.filter_data(muscle, SFREQ, 25, 100, verbose="error")
    for name in ("T7", "F7"):
        epochs[:, sound.ch_names.index(name)] += muscle
        muscle = muscle[::-1]
    assert not detect_missing(epochs, SFREQ, ch_names=sound.ch_names).missing.any()


def test_blinking_all_the_time_is_not_a_reason(sound, epochs):
    shape = np.hanning(90)
    train = np.zeros(2500)
    for start in range(50, 2400, 200):
        train[start : start + 90] += shape
    for name, size in (("Fp1", 250e-6), ("Fp2", 240e-6), ("F7", 90e-6), ("F8", 90e-6)):
        epochs[:, sound.ch_names.index(name)] += size * train
    assert not detect_missing(epochs, SFREQ, ch_names=sound.ch_names).missing.any()


# Every pair of a size, a channel, a shape and an onset is there (an orthogonal array).
POPS = [
    ([350e-6, 800e-6, 4.5e-3][i], channel, ["step", "spike", "decay"][(i + k) % 3], onset)
    for k, channel in enumerate(["Fp1", "F3", "T7", "Pz", "O2"])
    for i, onset in enumerate(np.roll([0.1, 4.0, 4.99], k % 3))
]


@pytest.mark.parametrize(("size", "channel", "shape", "onset"), POPS)
def test_a_pop_is_found_and_takes_no_other_channel_with_it(
    sound, epochs, size, channel, shape, onset
):
    index = sound.ch_names.index(channel)
    if channel == "Fp1" and size < 600e-6:
        size = 600e-6  # less may be a blink there
    after = (onset <= TIME) * {
        "step": np.ones(2500),
        "spike": (onset + 0.06 > TIME) * 1.0,
        "decay": np.exp(-np.maximum(TIME - onset, 0) / 0.3),
    }[shape]
    epochs[1, index] += 1.2 * size * after
    found = detect_missing(epochs, SFREQ, ch_names=sound.ch_names)
    assert np.argwhere(found.missing).tolist() == [[1, index]]
    assert found.reasons["pop"][1, index]


def test_the_limits_of_pops_can_be_set(sound, epochs):
    epochs[1, 8] += 1e-3 * (TIME > 4) * np.exp(-np.maximum(TIME - 4, 0))
    off = DetectionLimits(pop=np.inf)
    found = detect_missing(epochs, SFREQ, ch_names=sound.ch_names, limits=off)
    assert not found.reasons["pop"].any()


def test_a_sweaty_electrode_that_drifts_is_still_attached(sound, epochs):
    epochs[:, sound.ch_names.index("F4")] += 3e-4 * np.sin(2 * np.pi * 0.05 * TIME)
    assert not detect_missing(epochs, SFREQ, ch_names=sound.ch_names).missing.any()


@pytest.fixture
def frontal():
    """Eight epochs of Fp1, Fpz and Fp2 with an ordinary delta rhythm of 20 microvolts."""
    rng, n_epochs = np.random.default_rng(0), 8
    delta = mne.filter.filter_data(
        rng.normal(size=(1, n_epochs * 2500 + 1000)), SFREQ, 1, 4, verbose="error"
    )[:, 500:-500]
    signal = 20e-6 * delta / delta.std() + rng.normal(scale=3e-6, size=(3, n_epochs * 2500))
    return signal.reshape(3, n_epochs, 2500).swapaxes(0, 1)


def test_slow_potentials_that_the_high_pass_removes_are_not_a_reason(frontal):
    wave = np.sin(2 * np.pi * 0.06 * np.arange(20000) / SFREQ) * 2e-3
    epochs = frontal + wave.reshape(8, 1, 2500)
    names = ["Fp1", "Fpz", "Fp2"]
    limits = DetectionLimits(pop=np.inf)
    assert not detect_missing(epochs, SFREQ, ch_names=names, limits=limits).missing.any()
    seen = detect_missing(epochs, SFREQ, ch_names=names, limits=limits, high_pass=0)
    assert seen.reasons["amplitude"].all()


def test_an_epoch_with_twenty_times_the_usual_delta_power_is_missing(frontal):
    frontal[3] *= np.sqrt(20)
    missing = detect_missing(frontal, SFREQ, ch_names=["Fp1", "Fpz", "Fp2"]).missing
    assert missing[3].all()
    assert missing.sum() == 3


def test_line_noise_that_all_channels_share_is_not_a_reason(sound, epochs):
    epochs += 20e-6 * np.sin(2 * np.pi * 50 * TIME)
    assert not detect_missing(epochs, SFREQ, ch_names=sound.ch_names).missing.any()


def test_offsets_of_the_electrodes_do_not_matter(sound, epochs):
    epochs[0, 3] = 0
    plain = detect_missing(epochs, SFREQ, ch_names=sound.ch_names)
    offset = epochs + np.linspace(-0.3, 0.3, 19)[:, None]
    assert (detect_missing(offset, SFREQ, ch_names=sound.ch_names).missing == plain.missing).all()


@settings(max_examples=8)
@given(power=st.integers(-40, 40))
def test_only_the_ratio_to_the_typical_amplitude_matters(sound, power):
    factor = 2.0**power  # exact in floating point
    epochs = cut(sound).copy()
    epochs[1, 4], epochs[2, 5], epochs[3, 6] = 0, noise(1e-3), noise(1e-5)
    plain = detect_missing(epochs, SFREQ, ch_names=sound.ch_names)
    scaled = detect_missing(
        epochs * factor, SFREQ, ch_names=sound.ch_names, typical_amplitude=1e-5 * factor
    )
    assert hits(scaled) == hits(plain)


VOLTS_PER_COUNT = 4.5 / 24 / (2**23 - 1)
MODMA_BAD = {
    1: ("all", "scaled"),
    4: ("all", "jumping"),
    7: ("all", "mains"),
    10: ("all", "drifting"),
    13: ("all", "railed"),
    16: ("Fp1", "scaled"),
    19: ("Fp1", "drifting"),
}


class TestModma3:
    """Three channels of 24-bit counts with an offset of 1.3 to 1.7 million.

    Of seven bad recordings, five are bad in all channels and two in Fp1 only, with a power of
    more than 1e8 times the ordinary.
    """

    @pytest.fixture(scope="class")
    @classmethod
    def counts(cls):
        """Recordings as the files have them: whole numbers, shape (n_times, 3)."""
        cohort = simulate_cohort(24, 3, duration=72, detached=0, random_state=3)
        rng = np.random.default_rng(0)
        recordings = []
        for index, raw in enumerate(cohort.raws()):
            values = raw.get_data().T / VOLTS_PER_COUNT
            channels, kind = MODMA_BAD.get(index, ((), ""))
            for channel in (0, 1, 2) if channels == "all" else (0,) if channels else ():
                values[:, channel] = cls.ruin(values[:, channel], kind, rng)
            values += rng.uniform(1.3e6, 1.7e6, 3)
            recordings.append(np.round(values).astype(np.int64))
        return recordings

    @staticmethod
    def ruin(signal, kind, rng):
        size = 3e4 * signal.std()
        time = np.arange(len(signal)) / SFREQ
        if kind == "scaled":
            return signal * 3e4
        if kind == "jumping":
            return size * np.sign(np.sin(2 * np.pi * 0.7 * time)) + signal
        if kind == "mains":
            return 2 * size * np.sin(2 * np.pi * 50 * time)
        if kind == "drifting":
            return size * np.cumsum(rng.normal(size=len(signal))) / 50
        return np.clip(3 * size * rng.normal(size=len(signal)), -size, size)

    def judged(self, recordings, **options):
        for recording in recordings:
            n_epochs = len(recording) // 2500
            epochs = recording[: n_epochs * 2500].reshape(n_epochs, 2500, 3).swapaxes(1, 2)
            yield detect_missing(epochs, SFREQ, ch_names=["Fp1", "Fpz", "Fp2"], **options)

    def expected(self, index):
        channels, _ = MODMA_BAD.get(index, ((), ""))
        return {"all": ["Fp1", "Fpz", "Fp2"], "Fp1": ["Fp1"]}.get(channels, [])

    def test_the_made_recordings_are_as_bad_as_the_real_ones(self, counts):
        powers = np.array([recording.var(axis=0) for recording in counts])
        ordinary = np.median(powers)
        for index, power in enumerate(powers):
            bad = self.expected(index)
            assert (power > 1e8 * ordinary).sum() == len(bad)

    def test_all_bad_ones_are_found_in_volts_and_no_other(self, counts):
        volts = [recording * VOLTS_PER_COUNT for recording in counts]
        for index, detection in enumerate(self.judged(volts)):
            assert detection.bads == self.expected(index)
            assert detection.missing.any(axis=0).sum() == len(self.expected(index))

    def test_all_bad_ones_are_found_in_counts_by_what_is_typical_of_the_study(self, counts):
        typical = estimate_typical_amplitude([recording.T for recording in counts], SFREQ)
        for index, detection in enumerate(self.judged(counts, typical_amplitude=typical)):
            assert detection.bads == self.expected(index)
            assert detection.missing.any(axis=0).sum() == len(self.expected(index))

    def test_counts_taken_for_volts_give_a_hint(self, counts):
        detection = next(self.judged(counts))
        assert detection.missing.all()
        assert "set typical_amplitude" in str(detection)


@pytest.mark.parametrize("n_channels", [3, 19, 64])
@pytest.mark.parametrize("scale", [0.0, 0.05e-6, 1e-3])
def test_a_recording_bad_in_all_channels_is_found_out(n_channels, scale):
    names = (
        simulate_cohort(1, n_channels, duration=2, random_state=0).recordings[0].load().ch_names
    )
    epochs = np.random.default_rng(0).normal(scale=scale, size=(3, n_channels, 2500))
    assert detect_missing(epochs, SFREQ, ch_names=names).missing.all()


def test_of_three_channels_two_lost_do_not_take_the_third_with_them():
    cohort = simulate_cohort(1, 3, duration=40, detached=0, random_state=1)
    epochs = cut(next(cohort.raws())).copy()
    epochs[:, 0], epochs[:, 2] = noise(2e-3), noise(3e-3, seed=1)
    detection = detect_missing(epochs, SFREQ, ch_names=["Fp1", "Fpz", "Fp2"])
    assert detection.missing.all(axis=0).tolist() == [True, False, True]
    assert not detection.missing[:, 1].any()


def test_of_three_channels_the_one_unlike_the_others_is_found():
    cohort = simulate_cohort(1, 3, duration=40, detached=0, random_state=1)
    epochs = cut(next(cohort.raws())).copy()
    epochs[:, 2] = np.random.default_rng(0).normal(scale=12e-6, size=(4, 2500))
    detection = detect_missing(epochs, SFREQ, ch_names=["Fp1", "Fpz", "Fp2"])
    assert detection.missing.tolist() == [[False, False, True]] * 4


def test_without_names_or_places_channels_are_compared_with_those_most_like_them(epochs):
    epochs[:, 7] = np.random.default_rng(0).normal(scale=12e-6, size=(4, 2500))
    detection = detect_missing(epochs, SFREQ)
    assert detection.bads == ["7"]
    assert detection.missing.sum() == 4


def test_a_channel_without_a_place_passes_among_others_that_have_one(sound, epochs):
    names = ["CB1" if name == "O2" else name for name in sound.ch_names]
    assert not detect_missing(epochs, SFREQ, ch_names=names).missing.any()
    epochs[:, names.index("CB1")] = np.random.default_rng(0).normal(scale=1e-5, size=(4, 2500))
    assert detect_missing(epochs, SFREQ, ch_names=names).bads == ["CB1"]


@pytest.mark.parametrize(
    ("reference", "n_channels"),
    [("average", 19), ("average", 64), (["Cz"], 64), (["Fp1", "O2"], 19)],
)
def test_any_reference_will_do(reference, n_channels):
    for raw in simulate_cohort(4, n_channels, duration=20, detached=0, random_state=1).raws():
        raw.set_eeg_reference(reference, verbose="error")
        raw.drop_channels(reference if len(reference) == 1 else [])
        detection = detect_missing(cut(raw), SFREQ, ch_names=raw.ch_names)
        assert not detection.missing.any()


def test_the_neighbours_are_summed_up_by_the_multiple_correlation(sound, epochs):
    from sklearn.linear_model import LinearRegression

    angles = angles_between(channel_positions(sound.ch_names))
    np.fill_diagonal(angles, np.inf)
    nearest = np.argsort(angles, axis=1, kind="stable")[:, :5]

    def unlike(channel, limit):
        limits = DetectionLimits(correlation=limit, neighbours=5)
        found = detect_missing(epochs, SFREQ, ch_names=sound.ch_names, limits=limits)
        return found.reasons["decorrelated"][1, channel]

    # Oracle: regress the whitened 2-20 Hz spectrum on the neighbours' (no intercept).
    taper = np.hanning(2502)[1:-1]
    f = np.fft.rfftfreq(2500, 1 / SFREQ)
    band = (f >= 2) & (f < 20)
    coefficients = np.fft.rfft((epochs[1] - epochs[1].mean(-1, keepdims=True)) * taper)[:, band]
    coefficients = coefficients * np.sqrt(f[band])
    rows = np.concatenate([coefficients.real, coefficients.imag], axis=1)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    for channel in range(0, 19, 3):
        design, target = rows[nearest[channel]].T, rows[channel]
        fitted = LinearRegression(fit_intercept=False).fit(design, target).predict(design)
        likeness = np.linalg.norm(fitted)
        assert unlike(channel, likeness + 0.01)
        assert not unlike(channel, likeness - 0.03)  # the rule's ridge takes a little


def test_one_channel_alone_is_judged_by_absolute_limits(epochs):
    alone = epochs[:, :1].copy()
    alone[1] = 0
    alone[2] = noise(1e-3)
    assert detect_missing(alone, SFREQ).missing.ravel().tolist() == [False, True, True, False]


def test_epochs_objects_bring_their_own_names_places_and_rate(sound, epochs):
    epochs[1, 3] = 0
    made = mne.EpochsArray(epochs, sound.info, verbose="error")
    made.info["bads"] = ["F3"]
    extra = mne.EpochsArray(
        np.zeros((N_EPOCHS, 1, 2500)), mne.create_info(["VEOG"], SFREQ, "eog"), verbose="error"
    )
    made = made.add_channels([extra], force_update_info=True)
    detection = detect_missing(made)
    assert detection.ch_names == tuple(sound.ch_names)
    assert hits(detection) == {"flat": [[1, 3]]}


def test_the_order_of_many_epochs_does_not_matter(sound, epochs):
    epochs[1, 3], epochs[3, 5] = 0, noise(1e-5)
    many = np.concatenate([epochs] * 6)  # more than are looked at in one block
    forwards = detect_missing(many, SFREQ, ch_names=sound.ch_names)
    backwards = detect_missing(many[::-1], SFREQ, ch_names=sound.ch_names)
    assert forwards.missing[:, [3, 5]].sum() == 12
    for reason, cells in forwards.reasons.items():
        assert (backwards.reasons[reason] == cells[::-1]).all()


def test_no_epochs_are_no_error(sound):
    detection = detect_missing(np.zeros((0, 19, 2500)), SFREQ, ch_names=sound.ch_names)
    assert detection.observed.shape == (0, 19)
    assert detection.bads == []
    assert "0 of 0" in str(detection)


@pytest.mark.parametrize("n_times", [100, 250, 1000, 2501])
def test_epochs_of_any_length_are_taken(sound, n_times):
    epochs = cut(sound, n_times).copy()
    epochs[0, 2] = 0
    detection = detect_missing(epochs, SFREQ, ch_names=sound.ch_names)
    assert detection.missing[0, 2]
    assert detection.missing.mean() < 0.02 + 1 / detection.missing.size


@pytest.mark.parametrize(
    ("off", "signal"),
    [
        ({"flat": 0, "clipped_share": np.inf, "line": np.inf}, np.zeros(2500)),
        ({}, noise(10e-6)),
        ({"amplitude": np.inf, "pop": np.inf}, noise(200e-6)),
        ({"drift": np.inf}, 3e-4 * np.sin(2 * np.pi * 0.05 * TIME) + noise(8e-6)),
        ({"line": np.inf}, 60e-6 * np.sin(2 * np.pi * 50 * TIME) + noise(2e-6)),
    ],
)
def test_every_rule_can_be_switched_off(sound, epochs, off, signal):
    epochs[0, 9] = signal
    assert detect_missing(epochs, SFREQ, ch_names=sound.ch_names).missing[0, 9]
    limits = DetectionLimits(**{"correlation": 0, "drift": np.inf, **off})
    assert not detect_missing(epochs, SFREQ, ch_names=sound.ch_names, limits=limits).missing[0, 9]


def test_the_summary_names_channels_epochs_and_reasons(sound, epochs):
    epochs[[0, 2, 3], 4] = 0.0
    epochs[0, 0] = np.nan
    detection = detect_missing(epochs, SFREQ, ch_names=sound.ch_names)
    assert str(detection) == (
        "4 of 76 channel epochs missing (5.3%; 4 epochs x 19 channels)\n"
        "  Fp1: epochs 0 (NaN or infinite samples in 1)\n"
        "  Fz: epochs 0, 2-3 (no signal in 3)"
    )
    assert detection.bads == ["Fz"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epochs": np.zeros((19, 2500)), "sfreq": SFREQ}, r"\(n_epochs, n_channels, n_times\)"),
        ({"epochs": np.zeros((1, 2, 500))}, "sampling rate"),
        (
            {"epochs": np.zeros((1, 2, 500)), "sfreq": SFREQ, "ch_names": ["Cz"]},
            "1 ch_names for 2",
        ),
        (
            {"epochs": np.zeros((1, 2, 500)), "sfreq": SFREQ, "typical_amplitude": 0},
            "typical_amplitude",
        ),
    ],
)
def test_what_cannot_be_judged_is_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        detect_missing(**arguments)


def test_negative_limits_and_studies_without_signal_are_refused():
    with pytest.raises(InputError, match="clipped_share"):
        DetectionLimits(clipped_share=-1)
    with pytest.raises(InputError, match="no recording has any signal"):
        estimate_typical_amplitude([np.zeros((3, 1000))], SFREQ)


@pytest.mark.slow
def test_simulated_detachments_are_found():
    found, there, wrong, sound_cells = 0, 0, 0, 0
    for n_channels in (3, 19, 64):
        cohort = simulate_cohort(6, n_channels, duration=40, detached=0.15, random_state=0)
        for recording in cohort.recordings:
            raw = recording.load()
            missing = detect_missing(cut(raw), SFREQ, ch_names=raw.ch_names).missing
            covered = np.zeros(missing.shape)
            own = cohort.detachments[cohort.detachments["subject"] == recording.subject]
            for channel, onset in zip(own["channel"], own["onset"], strict=True):
                seconds = np.clip(10.0 * np.arange(1, 5) - onset, 0, 10)
                covered[:, raw.ch_names.index(channel)] = seconds / 10
            found += missing[covered >= 0.5].sum()
            there += (covered >= 0.5).sum()
            wrong += missing[covered == 0].sum()
            sound_cells += (covered == 0).sum()
    assert there > 100
    assert found / there > 0.97
    assert wrong / sound_cells < 0.002
