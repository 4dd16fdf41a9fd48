"""The rules by which a channel counts as missing in an epoch, and their thresholds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields

import numpy as np

from idfsmec.errors import InputError
from idfsmec.missing._stats import EpochStats
from idfsmec.montage import angles_between

_RIDGE = 0.01
# Direction of the eyes (right, front, up), and degrees within which blinks are large.
_EYES, _EYES_REACH = np.array([[0.0, 0.95, -0.31]]), 50.0


@dataclass(frozen=True)
class DetectionLimits:
    """Thresholds of :func:`detect_missing`.

    "Amplitude" is the median over one-second windows of the standard deviation; "typical" is
    the argument ``typical_amplitude``; "the others" is the middle one of the channels that no
    absolute rule has hit (the smaller of two). ``float("inf")`` switches a rule off; so does 0
    for ``flat``, ``flat_relative`` and ``correlation``.

    Parameters
    ----------
    flat : float
        A window whose standard deviation is below this many typical amplitudes is flat.
    flat_share : float
        An epoch with at least this share of flat windows is flat.
    flat_relative : float
        An epoch is flat too if its amplitude is below this share of the others'.
    clipped_share : float
        At least this share of samples at exactly the largest or smallest value.
    amplitude : float
        Amplitude above this many typical ones.
    amplitude_relative, amplitude_least : float
        Amplitude above this many times the others', and above this many typical ones.
    wander : float
        Range (10th to 90th percentile) of the windows' means above this many typical amplitudes.
    wander_relative, wander_least : float
        That range above this many times the others', and above this many typical amplitudes.
    wander_correlation : float
        What only the last rule hits passes if its multiple correlation with its neighbours is
        this much: it drifts, but it is attached.
    pop : float
        A jump, the range of the signal within a second, above this many typical amplitudes.
    pop_relative, pop_relative_eyes, pop_least : float
        A jump above this many times the median over the channel's own seconds, and above this
        many typical amplitudes. The second is for electrodes near the eyes, or of unknown place:
        a blink is a large jump there.
    pop_alone, pop_alone_least : float
        A jump above this many times that of any of the ``neighbours`` in the same second, and
        above this many typical amplitudes: eyes and muscle move several electrodes. Applied where
        there are more than ``neighbours_least`` of them.
    line, line_share : float
        Standard deviation of the mains part above this many typical amplitudes, or above this
        many times the channel's own 2-40 Hz part.
    line_relative, line_share_relative : float
        The mains part is above ``line_relative`` times the others' as well as above
        ``line_share_relative`` times the channel's own 2-40 Hz part.
    line_least : float
        Mains below this many typical amplitudes never counts.
    line_tilt : float
        Mains that was taken out counts only where what is left is no EEG: unlike its neighbours
        or, where there are too few of them, with a power per hertz at 2-13 Hz of less than this
        many times that at 20-40 Hz.
    correlation : float
        Multiple correlation (2-20 Hz) with the neighbours below this. By chance alone it is
        about 0.2 in epochs of 10 s, and grows as epochs get shorter.
    neighbours, neighbours_least : int
        How many of the nearest channels are compared, and how many of those must be good for
        the comparison to be made.

    Examples
    --------
    >>> DetectionLimits(correlation=0).correlation  # never "unlike its neighbours"
    0
    """

    flat: float = 0.05
    flat_share: float = 0.25
    flat_relative: float = 0.05
    clipped_share: float = 0.05
    amplitude: float = 30.0
    amplitude_relative: float = 8.0
    amplitude_least: float = 5.0
    wander: float = 50.0
    wander_relative: float = 4.0
    wander_least: float = 15.0
    wander_correlation: float = 0.5
    pop: float = 60.0
    pop_relative: float = 6.0
    pop_relative_eyes: float = 15.0
    pop_least: float = 30.0
    pop_alone: float = 3.0
    pop_alone_least: float = 15.0
    line: float = 10.0
    line_share: float = 10.0
    line_relative: float = 5.0
    line_share_relative: float = 3.0
    line_least: float = 0.5
    line_tilt: float = 2.0
    correlation: float = 0.35
    neighbours: int = 6
    neighbours_least: int = 2

    def __post_init__(self) -> None:
        for field in fields(self):
            if not getattr(self, field.name) >= 0:
                raise InputError(f"the limit {field.name} is {getattr(self, field.name)}: below 0")

    @classmethod
    def of(cls, given: DetectionLimits | Mapping[str, float]) -> DetectionLimits:
        """Limits from those that differ from the default, by name.

        Examples
        --------
        >>> DetectionLimits.of({"pop": 80}).changed()
        {'pop': 80.0}
        """
        if isinstance(given, DetectionLimits):
            return given
        known = asdict(cls())
        unknown = sorted(set(given) - set(known))
        if unknown:
            raise InputError(
                f"There is no limit {', '.join(unknown)}; there are: {', '.join(known)}."
            )
        return cls(**{name: type(known[name])(value) for name, value in given.items()})

    def changed(self) -> dict[str, float]:
        """Those that differ from the default, by name."""
        default = asdict(DetectionLimits())
        return {name: value for name, value in asdict(self).items() if value != default[name]}


def apply_rules(
    stats: EpochStats,
    removed: np.ndarray,
    positions: np.ndarray,
    typical: float,
    limits: DetectionLimits,
) -> dict[str, np.ndarray]:
    """Say for each reason where it holds: absolute rules first, comparisons among what is left.

    ``removed`` is the mains that was taken out, as standard deviations per epoch and channel.
    """
    nearest = _nearest(positions, stats.correlation, limits.neighbours)
    reasons = _absolute(stats, typical, limits)
    _add_relative(reasons, stats, nearest, typical, limits)
    popped = _pops(stats, positions, nearest, typical, limits)
    reasons["pop"] = popped & ~(reasons["nan"] | reasons["flat"])
    left = ~np.any(list(reasons.values()), axis=0)
    likeness, compared = _likeness(stats, left, nearest, limits)
    unlike = compared & (likeness < limits.correlation)
    hummed = _hums(stats, np.hypot(removed, stats.line), left, typical, limits)
    no_eeg = unlike | (~compared & (stats.tilt < limits.line_tilt))
    reasons["line"] |= left & hummed & no_eeg
    reasons["decorrelated"] = left & unlike & ~hummed
    return reasons


def _hums(
    stats: EpochStats,
    line: np.ndarray,
    left: np.ndarray,
    typical: float,
    limits: DetectionLimits,
) -> np.ndarray:
    """Tell where this much mains is, or was, more than a well attached electrode has."""
    much = (line > limits.line * typical) | (line > limits.line_share * stats.eeg)
    if left.any(axis=0).sum() >= 2:
        much |= (line > limits.line_relative * _middle_channel(line, left)) & (
            line > limits.line_share_relative * stats.eeg
        )
    return much & (line > limits.line_least * typical)


def _absolute(stats: EpochStats, typical: float, limits: DetectionLimits) -> dict[str, np.ndarray]:
    """Rules that need nothing but the channel itself."""
    flat = (stats.window_sd < limits.flat * typical).mean(axis=2) >= limits.flat_share
    flat &= ~stats.broken & (limits.flat > 0)
    sound = ~stats.broken & ~flat
    return {
        "nan": stats.broken,
        "flat": flat,
        "clipped": sound & (stats.at_extremes >= limits.clipped_share),
        "amplitude": sound
        & (
            (stats.amplitude > limits.amplitude * typical)
            | (stats.wander > limits.wander * typical)
        ),
        "pop": np.zeros_like(sound),
        "line": sound & _hums(stats, stats.line, np.zeros_like(sound), typical, limits),
    }


def _pops(
    stats: EpochStats,
    positions: np.ndarray,
    nearest: np.ndarray,
    typical: float,
    limits: DetectionLimits,
) -> np.ndarray:
    """Tell where the signal jumps further than EEG, this channel, or any neighbour does."""
    jump = stats.jumps.max(axis=2)
    own = np.median(stats.jumps, axis=(0, 2)) if len(jump) else 0.0
    away = angles_between(positions, _EYES)[:, 0] > _EYES_REACH  # False where there is no place
    times = np.where(away, limits.pop_relative, limits.pop_relative_eyes)
    unusual = (jump > times * own) & (jump > limits.pop_least * typical)
    found = unusual | (jump > limits.pop * typical)
    if nearest.shape[1] > max(limits.neighbours_least, 1):
        around = stats.jumps[:, nearest].max(axis=2)
        alone = (stats.jumps > limits.pop_alone * around) & (
            stats.jumps > limits.pop_alone_least * typical
        )
        found |= alone.any(axis=2)
    return found


def _add_relative(
    reasons: dict[str, np.ndarray],
    stats: EpochStats,
    nearest: np.ndarray,
    typical: float,
    limits: DetectionLimits,
) -> None:
    """Compare what is left with the middle one of the channels that are left."""
    left = ~np.any(list(reasons.values()), axis=0)
    n_left = left.any(axis=0).sum()
    if n_left < 2:
        return
    amplitude, wander = stats.amplitude, stats.wander
    middle = _middle_channel(amplitude, left)
    if n_left >= 3:  # of two that differ, either may be the quiet one
        reasons["flat"] |= left & (amplitude < limits.flat_relative * middle)
    too_large = (amplitude > limits.amplitude_relative * middle) & (
        amplitude > limits.amplitude_least * typical
    )
    too_slow = (wander > limits.wander_relative * _middle_channel(wander, left)) & (
        wander > limits.wander_least * typical
    )
    # A sweaty electrode drifts too, but it still records what its neighbours record.
    likeness, compared = _likeness(stats, left & ~too_large & ~too_slow, nearest, limits)
    too_slow &= ~(compared & (likeness >= limits.wander_correlation))
    reasons["amplitude"] |= left & (too_large | too_slow)
    reasons["line"] |= left & _hums(stats, stats.line, left, typical, limits)


def _middle_channel(values: np.ndarray, left: np.ndarray) -> float:
    """Give the lower median over channels of each channel's median over its cells left."""
    some = left.any(axis=0)
    levels = np.nanmedian(np.where(left, values, np.nan)[:, some], axis=0)
    return float(np.quantile(levels, 0.5, method="lower"))


def _likeness(
    stats: EpochStats, good: np.ndarray, nearest: np.ndarray, limits: DetectionLimits
) -> tuple[np.ndarray, np.ndarray]:
    """Give the multiple correlation with the good neighbours, and where those are enough.

    It is the correlation of a channel with the best linear combination of its neighbours. Unlike
    the correlation with one of them, it stays high whatever the reference is.
    """
    usable = good[:, nearest]  # (n_epochs, n_channels, k)
    both = usable[..., :, None] & usable[..., None, :]
    among = stats.correlation[:, nearest[:, :, None], nearest[:, None, :]]
    among = np.where(both, among, 0.0)
    # A bad neighbour becomes one without any correlation; the ridge is for bridged electrodes.
    diagonal = np.arange(nearest.shape[1])
    among[..., diagonal, diagonal] = 1.0 + _RIDGE
    rows = np.arange(len(nearest))[:, None]
    own = np.where(usable, stats.correlation[:, rows, nearest], 0.0)[..., None]
    explained = (own * np.linalg.solve(among, own)).sum(axis=(-2, -1))
    enough = usable.sum(axis=2) >= max(limits.neighbours_least, 1)
    return np.sqrt(np.clip(explained, 0.0, 1.0)), enough


def _nearest(positions: np.ndarray, correlation: np.ndarray, n_neighbours: int) -> np.ndarray:
    """Give the indices of each channel's nearest others, shape (n_channels, k).

    A channel whose place is unknown has as neighbours those most like it over the recording.
    """
    n_channels = len(positions)
    if not len(correlation):
        return np.zeros((n_channels, 0), dtype=int)
    known = np.isfinite(positions).all(axis=1)
    distances = angles_between(np.where(known[:, None], positions, 0.0))
    distances[:, ~known] = 360.0
    distances[~known] = -np.abs(correlation.mean(axis=0))[~known]
    np.fill_diagonal(distances, np.inf)
    return np.argsort(distances, axis=1, kind="stable")[:, : min(n_neighbours, n_channels - 1)]
