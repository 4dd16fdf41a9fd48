"""A simulated resting-EEG cohort with a known group effect and electrodes that come off."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import mne
import numpy as np
import pandas as pd

from idfsmec._columns import join_column
from idfsmec._jobs import one_blas_thread
from idfsmec._random import RandomState, as_generator
from idfsmec.errors import InputError
from idfsmec.recordings.recording import Recording
from idfsmec.recordings.simulate.amplifier import USUAL, Amplifier, other_amplifier
from idfsmec.recordings.simulate.artifacts import (
    Detachment,
    add_amplifier,
    add_artifacts,
    check_kinds,
    detach,
    draw_detachments,
)
from idfsmec.recordings.simulate.brain import BANDS, draw_brain, draw_traits
from idfsmec.recordings.simulate.scalp import FOCI, Scalp, make_scalp

__all__ = ["SimulatedCohort", "simulate_cohort"]

#: Features of a channel that change when the power of a band does, by definition.
_FEATURES_OF_BAND = {
    "alpha": ("ap_alpha", "de_alpha"),
    "theta": ("ap_theta", "de_theta", "ap_beta_theta_ratio"),
}


@dataclass(frozen=True)
class SimulatedCohort:
    """A simulated study: recordings made when they are loaded, and the truth about them.

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
    amplifiers: pd.DataFrame = field(default_factory=pd.DataFrame)

    def __len__(self) -> int:
        return len(self.recordings)

    def raws(self) -> Iterator[mne.io.BaseRaw]:
        """Make one Raw after the other, in the order of ``recordings``."""
        return (recording.load() for recording in self.recordings)


@dataclass(frozen=True)
class _Simulation:
    """All that decides one subject's Raw; calling it makes the Raw."""

    channels: int | str | mne.channels.DigMontage
    seed: tuple[int, ...]
    effect: tuple[tuple[int, int, float], ...]  # band, channel, between-subject SDs
    sfreq: float
    duration: float
    line_freq: float
    artifacts: bool
    detachments: tuple[Detachment, ...]
    amplifier: Amplifier = USUAL

    def __call__(self) -> mne.io.BaseRaw:
        # The number of BLAS threads changes the last bits; with one, all processes agree.
        with one_blas_thread():
            return self._simulate()

    def _simulate(self) -> mne.io.BaseRaw:
        scalp = make_scalp(self.channels)
        shift = np.zeros((len(BANDS), len(scalp.ch_names)))
        for band, channel, size in self.effect:
            shift[band, channel] += size
        # Each part has its own stream: leaving out artefacts leaves the brain as it is.
        person, brain, dirt, amplifier, contact = _streams(self.seed)
        n_times = round(self.duration * self.sfreq)
        traits = draw_traits(person, scalp, shift)
        signal = draw_brain(brain, scalp, traits, self.sfreq, n_times)
        if self.artifacts:
            add_artifacts(dirt, scalp, signal, self.sfreq)
        used = self.amplifier
        add_amplifier(
            amplifier, signal, self.sfreq, self.line_freq, noise=used.noise, hum=used.mains
        )
        detach(contact, signal, self.sfreq, self.line_freq, self.detachments)
        return self._raw(scalp, used.record(signal, self.sfreq))

    def _raw(self, scalp: Scalp, signal: np.ndarray) -> mne.io.BaseRaw:
        info = mne.create_info(list(scalp.ch_names), self.sfreq, "eeg")
        info["line_freq"] = self.line_freq
        raw = mne.io.RawArray(signal * 1e-6, info, verbose="error").set_montage(scalp.montage)
        lost = int(self.amplifier.channels)
        return raw.pick(list(scalp.ch_names[:-lost])) if lost else raw


def simulate_cohort(
    n_subjects: int = 40,
    n_channels: int | str | mne.channels.DigMontage = 19,
    *,
    sfreq: float = 250.0,
    duration: float = 120.0,
    effect_size: float = 0.8,
    detached: float = 0.05,
    detachment_kinds: Sequence[str] = ("flat", "drift", "line"),
    artifacts: bool = True,
    line_freq: float = 50.0,
    labels: tuple[str, str] = ("control", "depressed"),
    confound: Mapping[str, float] | None = None,
    confound_share: float = 0.9,
    random_state: RandomState = None,
) -> SimulatedCohort:
    """Simulate resting EEG of two groups, with a known difference and detached electrodes.

    The background falls as 1/f; each person has an alpha peak of their own frequency and power;
    electrodes near each other record alike. The depressed group has more alpha power over the
    left and less over the right frontal cortex, more frontal midline theta, and more alpha at
    the back of the head, where the literature on depression reports differences [1]_ [2]_ [3]_
    (others find none [4]_: what is simulated is a truth to be found, not a claim).

    Parameters
    ----------
    n_subjects : int
        Every other one is depressed, beginning with a control.
    n_channels : {3, 19, 64, 128}, str or DigMontage
        3: Fp1, Fpz, Fp2. 19: the 10-20 system. 64: ``biosemi64``. 128: ``GSN-HydroCel-128``.
        Or all channels of a montage, given by name or as an object.
    sfreq, duration : float
        Sampling rate in Hz and length of each recording in seconds.
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
    line_freq : float
        Mains frequency in Hz; ``sfreq`` must be more than twice this.
    labels : (str, str)
        Names of the two groups.
    confound : mapping of str to float, optional
        A second amplifier, which most of the depressed were recorded with: ``mains`` and
        ``noise`` (factors), ``gain`` (factor), ``lowpass`` (Hz), ``channels`` (how many of the
        last ones it lacks), ``step`` (microvolts that its converter resolves). A difference of
        recordings that is none of brains, for :func:`idfsmec.evaluation.audit` to find.
    confound_share : float
        Share of the depressed recorded with it, and of controls that were not.
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
    scalp = make_scalp(n_channels)
    kinds = check_kinds(detachment_kinds)
    _check_numbers(n_subjects, sfreq, duration, detached, line_freq, confound_share)
    other = other_amplifier(confound or {}, sfreq, len(scalp.ch_names))
    root = int(as_generator(random_state).integers(2**63))
    effects = _effects(scalp, effect_size)
    shift = tuple(
        (list(BANDS).index(band), scalp.ch_names.index(channel), float(effect))
        for channel, band, effect in effects.to_numpy()
    )
    recordings, truth, amplifiers = [], [], []
    for subject in range(n_subjects):
        seed = (root, subject)
        lost = draw_detachments(
            np.random.default_rng((*seed, 1)), len(scalp.ch_names), duration, detached, kinds
        )
        name, depressed = f"sim{subject + 1:03d}", bool(subject % 2)
        typical = np.random.default_rng((*seed, 2)).uniform() < confound_share
        used = other if typical == depressed else USUAL
        load = _Simulation(
            n_channels,
            seed,
            shift if depressed else (),
            sfreq,
            duration,
            line_freq,
            artifacts,
            lost,
            used,
        )
        recordings.append(Recording(name, labels[depressed], load, f"simulated subject {name}"))
        amplifiers.append((name, "usual" if used == USUAL else "other"))
        truth += [(name, scalp.ch_names[one.channel], one.kind, one.onset) for one in lost]
    features = [
        join_column(channel, feature)
        for channel, band, _ in effects.to_numpy()
        for feature in _FEATURES_OF_BAND[band]
    ]
    return SimulatedCohort(
        recordings=recordings,
        effects=effects,
        informative_features=features,
        informative_channels=list(dict.fromkeys(effects["channel"])),
        detachments=pd.DataFrame(truth, columns=["subject", "channel", "kind", "onset"]),
        amplifiers=pd.DataFrame(amplifiers, columns=["subject", "amplifier"]),
    )


def _effects(scalp: Scalp, effect_size: float) -> pd.DataFrame:
    rows = [
        (scalp.ch_names[channel], focus.band, focus.sign * effect_size)
        for focus in FOCI
        for channel in scalp.near(focus)
    ]
    return pd.DataFrame(
        rows if effect_size else [], columns=["channel", "band", "effect"]
    ).drop_duplicates(["channel", "band"], ignore_index=True)


def _streams(seed: tuple[int, ...]) -> list[np.random.Generator]:
    return [np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(5)]


def _check_numbers(
    n_subjects: int,
    sfreq: float,
    duration: float,
    detached: float,
    line_freq: float,
    confound_share: float,
) -> None:
    if n_subjects < 1:
        raise InputError(f"n_subjects is {n_subjects}; give at least 1")
    if not sfreq > 2 * line_freq:
        raise InputError(
            f"sfreq is {sfreq} Hz, which cannot hold mains of {line_freq} Hz; give more than "
            f"{2 * line_freq} Hz"
        )
    if not duration >= 2:
        raise InputError(f"duration is {duration} s; give at least 2 s")
    if not 0 <= detached <= 1:
        raise InputError(f"detached is {detached}; it is a probability, from 0 to 1")
    if not 0 <= confound_share <= 1:
        raise InputError(f"confound_share is {confound_share}; it is a share, from 0 to 1")
