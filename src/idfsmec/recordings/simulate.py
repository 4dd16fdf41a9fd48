"""Simulate resting EEG of two groups with a known difference, artefacts and detached electrodes.

A subject's spectrum is drawn band by band; eyes, muscle, noise, detached electrodes and the
amplifier are added. Voltages are in microvolt until the Raw is made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import mne
import numpy as np
import pandas as pd
from scipy import fft
from scipy.signal import butter, fftconvolve, sosfiltfilt

from idfsmec._parallel import one_blas_thread
from idfsmec._validation import RandomState, as_generator
from idfsmec.errors import InputError
from idfsmec.recordings.recording import Recording
from idfsmec.table.columns import join_column
from idfsmec.table.positions import angles_between, channel_positions, standard_montage

Array = np.ndarray
Rng = np.random.Generator

#: Number of channels -> montage, and the channels picked from it (None: all).
_CAPS: dict[int, tuple[str, str | None]] = {
    3: ("standard_1005", "Fp1 Fpz Fp2"),
    19: ("standard_1005", "Fp1 Fp2 F7 F3 Fz F4 F8 T7 C3 Cz C4 T8 P7 P3 Pz P4 P8 O1 O2"),
    64: ("biosemi64", None),
    128: ("GSN-HydroCel-128", None),
}
#: Where the groups differ (site, band, sign): more alpha on the left than on the right, more
#: midline theta, more posterior alpha.
_FOCI = (("F3", "alpha", 1), ("F4", "alpha", -1), ("Fz", "theta", 1), ("Oz", "alpha", 1))
#: Electrodes this near to a focus (degrees) carry its effect; 10-10 neighbours are 15-20 apart.
_FOCUS_RADIUS = 19.0
#: A sparse cap has none that near: the nearest one stands in, if it is not further than this.
_FOCUS_REACH = 50.0
#: Features of a channel that change when the power of a band does, by definition.
_FEATURES_OF_BAND = {
    "alpha": ("ap_alpha", "de_alpha"),
    "theta": ("ap_theta", "de_theta", "ap_beta_theta_ratio"),
}

BANDS = {
    "delta": (1.0, 4.0),
    "theta": (4.0, 8.0),
    "alpha": (8.0, 13.0),
    "beta": (13.0, 30.0),
    "gamma": (30.0, 45.0),
}
# Between-subject standard deviations of the logarithm of band power. They add up to 0.6, so
# subjects of one group differ by a factor of about 1.8: skull and skin alike for all bands and
# channels, each band alike for all channels, and each band differently over the scalp.
_SD_SUBJECT, _SD_BAND, _SD_CHANNEL = 0.30, 0.27, 0.44
BETWEEN_SUBJECT_SD = float(np.sqrt(_SD_SUBJECT**2 + _SD_BAND**2 + _SD_CHANNEL**2))
_BANDS_ALIKE = 0.5  # correlation of the deviations of bands next to each other

# Root mean squares in microvolt of an average subject.
_BACKGROUND_RMS = 8.0  # 1-45 Hz, at every electrode
_ALPHA_RMS = 11.0  # at the back of the head
_THETA_RMS = 2.5  # frontal midline
_BETA_RMS = 2.0  # central
_SENSOR_RMS = 0.6  # white
_LINE_FREQ = 50.0  # Hz
_KNEE = 0.7  # Hz: the 1/f background levels off below

#: What a detached electrode records: next to nothing; slow drift; line noise; unrelated noise.
DETACHMENT_KINDS = ("flat", "drift", "line", "noise")
_LABELS = ("control", "depressed")
_CONFOUND_SHARE = 0.9  # of the depressed with the other amplifier, of controls with the usual one
#: The usual amplifier; see ``confound`` of :func:`simulate_cohort` for what these are.
_USUAL = {"line": 1.0, "noise": 1.0, "gain": 1.0, "lowpass": 0.0, "channels": 0.0, "step": 0.0}


@dataclass(frozen=True)
class SimulatedCohort:
    """A simulated study: recordings made when they are loaded, and their true effects.

    Parameters
    ----------
    recordings : list of Recording
        One per subject. ``load()`` makes the signal from the subject's own seed: always the
        same, in any process and any order.
    effects : DataFrame
        Where the groups differ: columns ``channel``, ``band``, ``effect`` (difference of the
        groups' mean log band power, depressed minus control, in between-subject standard
        deviations).
    informative_features : list of str
        Columns ``<channel>__<feature>`` that differ between the groups by construction.
    informative_channels : list of str
        Channels of those.
    detachments : DataFrame
        Electrodes that lose contact: columns ``subject``, ``channel``, ``kind``, ``onset``
        (seconds; 0 means the whole recording). The electrode stays off to the end.
    amplifiers : DataFrame
        Who was recorded how: columns ``subject``, ``amplifier`` (``"usual"`` or ``"other"``).
    """

    recordings: list[Recording]
    effects: pd.DataFrame
    informative_features: list[str]
    informative_channels: list[str]
    detachments: pd.DataFrame
    amplifiers: pd.DataFrame

    def raws(self) -> Iterator[mne.io.BaseRaw]:
        """Make one Raw after the other, in the order of ``recordings``."""
        return (recording.load() for recording in self.recordings)


def simulate_cohort(
    n_subjects: int = 40,
    n_channels: int = 19,
    *,
    sfreq: float = 250.0,
    duration: float = 120.0,
    effect_size: float = 0.8,
    detached: float = 0.05,
    detachment_kinds: Sequence[str] = ("flat", "drift", "line"),
    artifacts: bool = True,
    confound: Mapping[str, float] | None = None,
    score: bool = False,
    random_state: RandomState = None,
) -> SimulatedCohort:
    """Simulate resting EEG of two groups, with a known difference and detached electrodes.

    The background falls as 1/f; each subject has an alpha peak of its own frequency and power;
    electrodes near each other record alike. The depressed group has more alpha power over the left
    and less over the right frontal cortex, more frontal midline theta, and more alpha at the back
    of the head, where the literature on depression reports differences [1]_ [2]_ [3]_ (others find
    none [4]_). The simulated effects are for tests, not a claim about depression.

    Parameters
    ----------
    n_subjects : int
        Every other one is depressed, beginning with a control.
    n_channels : {3, 19, 64, 128}
        3: Fp1, Fpz, Fp2. 19: the 10-20 system. 64: ``biosemi64``. 128: ``GSN-HydroCel-128``.
    sfreq, duration : float
        Sampling rate in Hz (more than 100, to hold line noise of 50 Hz) and length of each
        recording in seconds.
    effect_size : float
        Difference of the groups in each informative log band power, in between-subject standard
        deviations (Cohen's d). 0 makes groups that do not differ.
    detached : float
        Probability that an electrode of a recording loses contact, the same in both groups.
        Half of those are off from the start; at least one electrode always stays on.
    detachment_kinds : sequence of {"flat", "drift", "line", "noise"}
        What detached electrodes record.
    artifacts : bool
        Whether there are blinks, eye movements and muscle.
    confound : mapping of str to float, optional
        A second amplifier, which nine in ten of the depressed and one in ten of the controls were
        recorded with: ``line`` and ``noise`` (factors on line noise and sensor noise), ``gain``
        (factor on everything), ``lowpass`` (Hz), ``channels`` (how many of the last ones it
        lacks), ``step`` (microvolts that its converter resolves). This is a difference between
        recordings, not between brains, for an audit to detect.
    score : bool
        Whether the effects follow a score of depression, ``details["bdi"]``, with mean 15 and
        standard deviation 10 (none below 0), in place of two groups: ``effect_size`` is then the
        difference per standard deviation of the score, and who is above the mean is depressed.
    random_state : int, Generator, RandomState or None
        Subject ``i`` of a seed is the same whatever ``n_subjects`` is.

    Returns
    -------
    SimulatedCohort

    References
    ----------
    .. [1] Thibodeau, Jorgensen and Kim (2006), J. Abnorm. Psychol. 115:715-729: frontal alpha
           asymmetry in depression, a meta-analysis.
    .. [2] Arns et al. (2015), Eur. Neuropsychopharmacol. 25:1190-1200: raised frontal theta.
    .. [3] Newson and Thiagarajan (2019), Front. Hum. Neurosci. 12:521: review of band power in
           psychiatric disorders.
    .. [4] Kołodziej et al. (2021), eLife 10:e60595: no asymmetry in five studies.

    Examples
    --------
    >>> cohort = simulate_cohort(4, 19, duration=10, random_state=0)
    >>> cohort.informative_features[:2], cohort.informative_channels
    (['F3__ap_alpha', 'F3__de_alpha'], ['F3', 'F4', 'Fz', 'O1', 'O2'])
    >>> raw = cohort.recordings[0].load()
    >>> raw.get_data().shape
    (19, 2500)
    """
    scalp = _make_scalp(n_channels)
    n_sensors = len(scalp.ch_names)
    confound = confound or {}
    _check_arguments(n_subjects, sfreq, duration, detached, detachment_kinds)
    _check_confound(confound, sfreq, n_sensors)
    other = {**_USUAL, **confound}
    root = int(as_generator(random_state).integers(2**63))
    effects = _plant_effects(scalp, effect_size)
    shift = np.zeros((len(BANDS), n_sensors))
    for channel, band, effect in effects.to_numpy():
        shift[list(BANDS).index(band), scalp.ch_names.index(channel)] = effect
    recordings, detachments, amplifiers = [], [], []
    for index in range(n_subjects):
        name, depressed = f"sim{index + 1:03d}", bool(index % 2)
        contacts, mix = (np.random.default_rng((root, index, stream)) for stream in (1, 2))
        severity, details = float(depressed), {}
        if score:
            severity = float(np.random.default_rng((root, index, 3)).standard_normal())
            depressed, details = severity > 0, {"bdi": str(max(0, round(15 + 10 * severity)))}
        lost = _draw_detachments(contacts, n_sensors, duration, detached, detachment_kinds)
        typical = mix.uniform() < _CONFOUND_SHARE
        amplifier = other if typical == depressed else _USUAL
        load = partial(
            _simulate,
            n_channels,
            seed=(root, index),
            shift=severity * shift,
            sfreq=sfreq,
            n_times=round(duration * sfreq),
            artifacts=artifacts,
            detachments=lost,
            amplifier=amplifier,
        )
        source = f"simulated subject {name}"
        recordings.append(Recording(name, _LABELS[depressed], load, source, details=details))
        amplifiers.append((name, "usual" if amplifier == _USUAL else "other"))
        detachments += [(name, scalp.ch_names[channel], *rest) for channel, *rest in lost]
    return SimulatedCohort(
        recordings=recordings,
        effects=effects,
        informative_features=[
            join_column(channel, feature)
            for channel, band, _ in effects.to_numpy()
            for feature in _FEATURES_OF_BAND[band]
        ],
        informative_channels=list(dict.fromkeys(effects["channel"])),
        detachments=pd.DataFrame(detachments, columns=["subject", "channel", "kind", "onset"]),
        amplifiers=pd.DataFrame(amplifiers, columns=["subject", "amplifier"]),
    )


def _check_arguments(
    n_subjects: int, sfreq: float, duration: float, detached: float, kinds: Sequence[str]
) -> None:
    line = f"which cannot hold line noise of {_LINE_FREQ} Hz; give more than {2 * _LINE_FREQ} Hz"
    unknown = [kind for kind in kinds if kind not in DETACHMENT_KINDS]
    for possible, reason in (
        (n_subjects >= 1, f"n_subjects is {n_subjects}; give at least 1"),
        (sfreq > 2 * _LINE_FREQ, f"sfreq is {sfreq} Hz, {line}"),
        (duration >= 2, f"duration is {duration} s; give at least 2 s"),
        (0 <= detached <= 1, f"detached is {detached}; it is a probability, from 0 to 1"),
        (
            len(kinds) and not unknown,
            f"detachment_kinds has {unknown or 'nothing'}; choose from {list(DETACHMENT_KINDS)}",
        ),
    ):
        if not possible:
            raise InputError(reason)


def _check_confound(confound: Mapping[str, float], sfreq: float, n_channels: int) -> None:
    for name, value in confound.items():
        if name not in _USUAL:
            raise InputError(
                f"confound has {name!r}; choose from {', '.join(_USUAL)}", argument="confound"
            )
        if not value >= 0:
            raise InputError(f"confound[{name!r}] is {value}; give at least 0")
    if (lowpass := confound.get("lowpass", 0.0)) >= sfreq / 2:
        raise InputError(f"confound['lowpass'] is {lowpass} Hz; give less than {sfreq / 2}")
    if confound.get("channels", 0) >= n_channels:
        raise InputError(f"confound['channels'] leaves no channel of {n_channels}")


def _plant_effects(scalp: _Scalp, effect_size: float) -> pd.DataFrame:
    """List where the groups differ: channel, band and signed effect."""
    planted = [
        (scalp.ch_names[channel], band, sign * effect_size)
        for site, band, sign in _FOCI
        for channel in scalp.near(site)
        if effect_size
    ]
    effects = pd.DataFrame(planted, columns=["channel", "band", "effect"])
    return effects.drop_duplicates(["channel", "band"], ignore_index=True)


def _simulate(
    n_channels: int,
    *,
    seed: tuple[int, int],
    shift: Array,
    sfreq: float,
    n_times: int,
    artifacts: bool,
    detachments: Sequence[tuple[int, str, float]],
    amplifier: Mapping[str, float],
) -> mne.io.BaseRaw:
    """Make the Raw of a subject; ``shift`` is the group's effect, (n_bands, n_channels)."""
    scalp = _make_scalp(n_channels)
    # Each part has its own stream: leaving out artefacts leaves the brain as it is.
    children = np.random.SeedSequence(seed).spawn(5)
    subject, brain, dirt, hardware, contact = map(np.random.default_rng, children)
    # The number of BLAS threads changes the last bits; with one, all processes agree.
    with one_blas_thread():
        signal = _draw_brain(subject, brain, scalp, shift, sfreq, n_times)
        if artifacts:
            _add_artifacts(dirt, scalp, signal, sfreq)
        signal += amplifier["noise"] * _SENSOR_RMS * hardware.standard_normal(signal.shape)
        line_sizes = amplifier["line"] * hardware.lognormal(np.log(0.8), 0.5, len(signal))
        signal += np.outer(line_sizes, _line(hardware, n_times, sfreq))
        for channel, kind, onset in detachments:
            rest = signal[channel, round(onset * sfreq) :]
            rest[:] = _detached(contact, kind, rest, sfreq)
        if amplifier["lowpass"]:
            sections = butter(4, amplifier["lowpass"], fs=sfreq, output="sos")
            signal = sosfiltfilt(sections, signal, axis=1)
        signal *= amplifier["gain"]
        if step := amplifier["step"]:
            signal = np.round(signal / step) * step
    info = mne.create_info(list(scalp.ch_names), sfreq, "eeg")
    info["line_freq"] = _LINE_FREQ
    raw = mne.io.RawArray(signal * 1e-6, info, verbose="error").set_montage(scalp.montage)
    absent = int(amplifier["channels"])
    return raw.pick(list(scalp.ch_names[:-absent])) if absent else raw


@dataclass(frozen=True)
class _Scalp:
    """Electrodes and their positions, unit vectors of shape (n_channels, 3)."""

    ch_names: tuple[str, ...]
    positions: Array
    montage: mne.channels.DigMontage

    def angles_to(self, *sites: str) -> Array:
        """Return angles in degrees to 10-05 sites, shape (n_channels, n_sites)."""
        return angles_between(self.positions, channel_positions(sites))

    def near(self, site: str) -> Array:
        """Find the electrodes that carry an effect; none if the cap does not reach it."""
        angles = self.angles_to(site)[:, 0]
        nearest = min(angles.min(), _FOCUS_REACH)
        return np.flatnonzero(angles <= max(_FOCUS_RADIUS, nearest))

    def mixing(self, shared: float, reach: float) -> Array:
        """Return the root of a correlation that falls with distance from 1 to ``shared``."""
        # Positive definite, as the exponent is below 2.
        chords = np.linalg.norm(self.positions[:, None] - self.positions[None], axis=-1)
        correlation = shared + (1 - shared) * np.exp(-((chords / reach) ** 1.5))
        root = np.linalg.cholesky(correlation + 1e-9 * np.eye(len(correlation)))
        mixing: Array = root / np.linalg.norm(root, axis=1, keepdims=True)
        return mixing


def _make_scalp(n_channels: int) -> _Scalp:
    if n_channels not in _CAPS:
        raise InputError(f"n_channels is {n_channels!r}; give one of {', '.join(map(str, _CAPS))}")
    name, picks = _CAPS[n_channels]
    montage = standard_montage(name)
    names = tuple(montage.ch_names if picks is None else picks.split())
    return _Scalp(names, channel_positions(names, montage), montage)


def _draw_brain(
    subject: Rng, rng: Rng, scalp: _Scalp, shift: Array, sfreq: float, n_times: int
) -> Array:
    """Draw the signals of all electrodes, of shape (n_channels, n_times)."""
    n_padded = fft.next_fast_len(n_times + int(2 * sfreq), real=True)  # the two ends must differ
    frequencies = fft.rfftfreq(n_padded, 1 / sfreq)
    background, alpha = _draw_spectra(subject, scalp, shift, frequencies)
    # |X_k|^2 = S(f_k) * sfreq * n / 2 turns a one-sided density into Fourier coefficients.
    unit = np.sqrt(sfreq * n_padded / 2)

    mixed = _mixed_noise(rng, scalp.mixing(shared=0.2, reach=0.8), len(frequencies))
    signal: Array = fft.irfft(mixed * np.sqrt(background) * unit, n_padded)[:, :n_times]

    band = slice(*np.searchsorted(frequencies, (5.0, 15.0)))
    spectrum = np.zeros((len(scalp.ch_names), len(frequencies)), dtype=complex)
    spectrum[:, band] = _mixed_noise(
        rng, scalp.mixing(shared=0.3, reach=1.2), band.stop - band.start
    )
    spectrum[:, band] *= np.sqrt(alpha[:, band]) * unit
    waxing = _slow_envelope(rng, sfreq, n_times)
    signal += fft.irfft(spectrum, n_padded)[:, :n_times] * waxing
    return signal


def _draw_spectra(
    rng: Rng, scalp: _Scalp, shift: Array, frequencies: Array
) -> tuple[Array, Array]:
    """Draw one subject's one-sided densities of background and alpha, in uV^2/Hz.

    The power of each band is exactly the average subject's times ``exp(deviation)``, so that what
    groups differ by is known and not left to the draw.
    """
    order = np.arange(len(BANDS))
    over_bands = np.linalg.cholesky(_BANDS_ALIKE ** np.abs(order[:, None] - order))
    over_scalp = scalp.mixing(shared=0.0, reach=0.7)
    by_channel = rng.standard_normal((len(BANDS), len(scalp.ch_names)))
    deviations = (
        _SD_SUBJECT * rng.standard_normal()
        + _SD_BAND * over_bands @ rng.standard_normal((len(BANDS), 1))
        + _SD_CHANNEL * over_bands @ by_channel @ over_scalp.T
        + BETWEEN_SUBJECT_SD * shift
    )
    exponent = float(np.clip(rng.normal(1.4, 0.12), 1.0, 1.8))
    alpha_frequency = float(np.clip(rng.normal(10.1, 0.6), 9.2, 11.6))
    alpha_width = float(rng.uniform(0.4, 0.6))
    average = np.add(*_template(scalp, frequencies, 1.4, 10.1, 0.5))
    background, alpha = _template(scalp, frequencies, exponent, alpha_frequency, alpha_width)
    # Most of a subject's deviations is a smooth curve over frequency, so no band has an edge ...
    centres = [np.log(np.sqrt(low * high)) for low, high in BANDS.values()]
    position = np.log(np.maximum(frequencies, 0.1))
    log_gain = np.array([np.interp(position, centres, row) for row in deviations.T])
    # ... and what is then lacking in a band is small, and added in the middle of the band.
    power = (background + alpha) * np.exp(log_gain)
    for (low, high), deviation in zip(BANDS.values(), deviations, strict=True):
        inside = slice(*np.searchsorted(frequencies, (low, high)))
        target = np.log(average[:, inside].sum(axis=1)) + deviation
        # 1 in the middle of a band, 0 at its edges, so that a band's gain stays in the band.
        to_edge = np.minimum(frequencies[inside] - low, high - frequencies[inside])
        shape = np.sin(0.5 * np.pi * np.clip(to_edge / (0.4 * (high - low)), 0, 1)) ** 2
        log_gain[:, inside] += _solve_gain(power[:, inside], shape, target)[:, None] * shape
    gain = np.exp(log_gain)
    return background * gain, alpha * gain


def _template(
    scalp: _Scalp, frequencies: Array, exponent: float, alpha_frequency: float, width: float
) -> tuple[Array, Array]:
    """Return background (with theta and beta) and alpha before a subject's deviations."""
    falling = 1.0 / (_KNEE**exponent + frequencies**exponent)
    falling[0] = 0.0
    in_band = (frequencies >= 1) & (frequencies < 45)
    background = falling * _BACKGROUND_RMS**2 / (falling[in_band].sum() * frequencies[1])

    def bump(sizes: Array, centre: float, width: float) -> Array:
        shape = np.exp(-0.5 * ((frequencies - centre) / width) ** 2)
        return np.outer(sizes**2, shape / (shape.sum() * frequencies[1]))

    to_fz, to_cz, to_poz = scalp.angles_to("Fz", "Cz", "POz").T
    theta = _THETA_RMS * np.exp(-((to_fz / 35) ** 2))
    beta = _BETA_RMS * (0.4 + 0.6 * np.exp(-((to_cz / 60) ** 2)))
    alpha = _ALPHA_RMS * (0.3 + 0.7 * np.exp(-((to_poz / 60) ** 2)))
    bumps = bump(theta, 6.0, 0.8) + bump(beta, 19.0, 3.0)
    return background + bumps, bump(alpha, alpha_frequency, width)


def _solve_gain(power: Array, shape: Array, target: Array) -> Array:
    """Solve ``log sum(power * exp(u * shape)) = target`` for u in each row, by Newton's method."""
    u = np.zeros(len(power))
    for _ in range(12):
        weighted = power * np.exp(np.outer(u, shape))
        total = weighted.sum(axis=1)
        slope = (weighted * shape).sum(axis=1) / total
        u = np.clip(u - (np.log(total) - target) / slope, -3.0, 3.0)
    return u


def _mixed_noise(rng: Rng, mixing: Array, n_frequencies: int) -> Array:
    """Draw complex white noise of unit power, alike in electrodes that are near each other."""
    parts = rng.standard_normal((len(mixing), 2 * n_frequencies))
    noise: Array = (mixing @ parts).view(complex) / np.sqrt(2)
    return noise


def _slow_envelope(rng: Rng, sfreq: float, n_times: int) -> Array:
    """Draw waxing and waning over seconds, positive, with a mean square of 1."""
    n_padded = fft.next_fast_len(n_times + int(20 * sfreq), real=True)
    frequencies = fft.rfftfreq(n_padded, 1 / sfreq)
    keep = int(np.searchsorted(frequencies, 1.5))
    spectrum = np.zeros(len(frequencies), dtype=complex)
    noise = rng.standard_normal(2 * keep).view(complex)
    spectrum[:keep] = noise * np.exp(-0.5 * (frequencies[:keep] / 0.3) ** 2)
    wave = fft.irfft(spectrum, n_padded)[:n_times]
    envelope = np.exp(0.4 * wave / max(wave.std(), 1e-300))
    waxing: Array = envelope / np.sqrt((envelope**2).mean())
    return waxing


def _add_artifacts(rng: Rng, scalp: _Scalp, signal: Array, sfreq: float) -> None:
    """Add blinks, eye movements and bursts of muscle, in place."""
    n_times = signal.shape[1]

    def degrees_from(direction: Array) -> Array:
        degrees: Array = np.degrees(np.arccos(np.clip(scalp.positions @ direction, -1, 1)))
        return degrees

    # Share of an eye's potential that an electrode sees: about 0.9 at Fp1, 0.1 at Cz.
    from_eyes = degrees_from(np.array([0.0, 0.95, -0.31]))
    towards_eyes = np.exp(-np.clip(from_eyes - 28, 0, None) / 32)
    # Quick closing, slower opening: 0.12 s up, 0.24 s down.
    up = np.sin(0.5 * np.pi * np.linspace(0, 1, int(0.12 * sfreq), endpoint=False)) ** 2
    down = np.cos(0.5 * np.pi * np.linspace(0, 1, int(0.24 * sfreq))) ** 2
    per_minute = rng.lognormal(np.log(11), 0.4)
    blinks = _train(rng, n_times, sfreq, per_minute, np.concatenate([up, down]))
    signal += np.outer(towards_eyes * rng.normal(130, 25), np.abs(blinks))
    # Step that an AC-coupled amplifier lets decay: 0.04 s up, then 0.35 s time constant.
    up = np.linspace(0, 1, max(int(0.04 * sfreq), 2), endpoint=False)
    decay = np.exp(-np.arange(0, 2, 1 / sfreq) / 0.35)
    per_minute = rng.lognormal(np.log(8), 0.4)
    glances = _train(rng, n_times, sfreq, per_minute, np.concatenate([up, decay]))
    sideways = towards_eyes * scalp.positions[:, 0]
    signal += np.outer(sideways * rng.normal(60, 12), glances)
    # Muscle: bursts of 20 Hz and more, 0.3 to 2 s long, around electrodes at the rim of the cap.
    rim = np.flatnonzero(scalp.positions[:, 2] <= np.quantile(scalp.positions[:, 2], 0.4))
    for _ in range(rng.poisson(3.0 * n_times / sfreq / 60)):
        angles = degrees_from(scalp.positions[rng.choice(rim)])
        near = np.flatnonzero(angles < 45)
        length = min(int(rng.uniform(0.3, 2.0) * sfreq), n_times)
        start = rng.integers(0, n_times - length + 1)
        frequencies = fft.rfftfreq(length, 1 / sfreq)
        shape = np.clip((frequencies - 15) / 20, 0, 1) * np.exp(-frequencies / 120)
        noise = fft.irfft(fft.rfft(rng.standard_normal((len(near), length))) * shape, length)
        noise *= np.hanning(length) / max(noise.std(), 1e-300)
        sizes = rng.lognormal(np.log(18), 0.4) * np.exp(-((angles[near] / 22) ** 2))
        signal[near, start : start + length] += sizes[:, None] * noise


def _train(rng: Rng, n_times: int, sfreq: float, per_minute: float, shape: Array) -> Array:
    """Repeat a waveform at random times with random size and sign."""
    impulses = np.zeros(n_times)
    n_events = rng.poisson(per_minute * n_times / sfreq / 60)
    sizes = rng.choice([-1.0, 1.0], n_events) * rng.lognormal(0, 0.25, n_events)
    np.add.at(impulses, rng.integers(0, n_times, n_events), sizes)
    train: Array = fftconvolve(impulses, shape)[:n_times]
    return train


def _line(rng: Rng, n_times: int, sfreq: float) -> Array:
    """Return line noise of amplitude 1, with its third harmonic where it fits."""
    time = np.arange(n_times) / sfreq
    phases = rng.uniform(0, 2 * np.pi, 2)
    wave: Array = np.sin(2 * np.pi * _LINE_FREQ * time + phases[0])
    if sfreq / 2 > 3 * _LINE_FREQ:
        wave += 0.15 * np.sin(6 * np.pi * _LINE_FREQ * time + phases[1])
    return wave


def _draw_detachments(
    rng: Rng, n_channels: int, duration: float, rate: float, kinds: Sequence[str]
) -> tuple[tuple[int, str, float], ...]:
    """Draw (channel, kind, onset) of electrodes that lose contact, never all of them."""
    chosen = np.flatnonzero(rng.uniform(size=n_channels) < rate)
    if len(chosen) == n_channels:
        chosen = np.delete(chosen, rng.integers(n_channels))
    drawn = []
    for channel in chosen:
        onset = 0.0 if rng.uniform() < 0.5 else duration * rng.uniform(0.2, 0.8)
        drawn.append((int(channel), str(rng.choice(list(kinds))), float(onset)))
    return tuple(drawn)


def _detached(rng: Rng, kind: str, signal: Array, sfreq: float) -> Array:
    """Return what a detached electrode records instead of ``signal``."""
    n_times = len(signal)

    def log_uniform(low: float, high: float) -> float:
        return float(np.exp(rng.uniform(np.log(low), np.log(high))))

    if kind == "flat":
        return rng.uniform(0.02, 0.2) * rng.standard_normal(n_times)
    if kind == "drift":
        lost = 0.1 * signal + 3 * rng.standard_normal(n_times)
        return lost + log_uniform(300, 2000) * _power_law(rng, n_times, sfreq, 2.0, 0.02)
    if kind == "line":
        lost = log_uniform(80, 800) * _line(rng, n_times, sfreq)
        return lost + 3 * rng.standard_normal(n_times)
    return log_uniform(8, 60) * _power_law(rng, n_times, sfreq, 1.0, 0.5)


def _power_law(rng: Rng, n_times: int, sfreq: float, exponent: float, lowest: float) -> Array:
    """Draw noise with a ``1/f^exponent`` spectrum above ``lowest`` Hz and a deviation of 1."""
    n_padded = fft.next_fast_len(n_times + int(60 * sfreq), real=True)
    frequencies = np.maximum(fft.rfftfreq(n_padded, 1 / sfreq), lowest)
    noise = rng.standard_normal(2 * len(frequencies)).view(complex)
    noise[0] = 0
    spectrum = noise * frequencies ** (-exponent / 2)
    # Scaled by the expected, not the realised, deviation: a short piece may lie still.
    expected = np.sqrt(2 * (2 * frequencies[1:] ** -exponent).sum()) / n_padded
    signal: Array = fft.irfft(spectrum, n_padded)[:n_times] / expected
    return signal
