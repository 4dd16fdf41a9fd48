"""The simulated head: its electrodes, how alike their signals are, where groups differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import mne
import numpy as np

from idfsmec.errors import InputError
from idfsmec.montage import angles_between, channel_positions, standard_montage

_FRONTAL_3 = ("Fp1", "Fpz", "Fp2")
_TEN_TWENTY = (
    *("Fp1", "Fp2", "F7", "F3", "Fz", "F4", "F8", "T7", "C3", "Cz"),
    *("C4", "T8", "P7", "P3", "Pz", "P4", "P8", "O1", "O2"),
)
#: Number of channels -> montage, and the channels picked from it (None: all).
_CAPS: dict[int, tuple[str, Sequence[str] | None]] = {
    3: ("standard_1005", _FRONTAL_3),
    19: ("standard_1005", _TEN_TWENTY),
    64: ("biosemi64", None),
    128: ("GSN-HydroCel-128", None),
}


@dataclass(frozen=True)
class Focus:
    """Where on the scalp the groups differ, in which band, and which way."""

    site: str
    band: str
    sign: int


#: More alpha on the left than on the right, more midline theta, more posterior alpha.
FOCI = (
    Focus("F3", "alpha", +1),
    Focus("F4", "alpha", -1),
    Focus("Fz", "theta", +1),
    Focus("Oz", "alpha", +1),
)
#: Electrodes this near to a focus (degrees) carry its effect; 10-10 neighbours are 15-20 apart.
FOCUS_RADIUS = 19.0
#: A sparse cap has none that near: the nearest one stands in, if it is not further than this.
FOCUS_REACH = 50.0


@dataclass(frozen=True)
class Scalp:
    """Electrodes and their places.

    ``positions`` are unit vectors of shape (n_channels, 3); ``montage`` is what a Raw is given.
    """

    ch_names: tuple[str, ...]
    positions: np.ndarray
    montage: mne.channels.DigMontage

    def angles_to(self, *sites: str) -> np.ndarray:
        """Angles in degrees from each electrode to 10-05 sites, shape (n_channels, n_sites)."""
        return angles_between(self.positions, channel_positions(sites))

    def near(self, focus: Focus) -> np.ndarray:
        """Find the electrodes that carry an effect; none if the cap does not reach it."""
        angles = self.angles_to(focus.site)[:, 0]
        inside = np.flatnonzero(angles <= FOCUS_RADIUS)
        if len(inside):
            return inside
        nearest = int(np.argmin(angles))
        return np.array([nearest]) if angles[nearest] <= FOCUS_REACH else np.array([], dtype=int)

    def mixing(self, shared: float, reach: float) -> np.ndarray:
        """Square root of a correlation matrix that falls with distance from 1 to ``shared``.

        The correlation is ``shared + (1 - shared) exp(-(d / reach)^1.5)`` with ``d`` the distance
        through the unit sphere: positive definite, as the exponent is below 2.
        """
        chords = np.linalg.norm(self.positions[:, None] - self.positions[None], axis=-1)
        correlation = shared + (1 - shared) * np.exp(-((chords / reach) ** 1.5))
        root = np.linalg.cholesky(correlation + 1e-9 * np.eye(len(correlation)))
        return root / np.linalg.norm(root, axis=1, keepdims=True)


def make_scalp(channels: int | str | mne.channels.DigMontage) -> Scalp:
    """Choose the electrodes: 3, 19, 64 or 128 of them, or those of a montage."""
    picks: Sequence[str] | None = None
    if isinstance(channels, mne.channels.DigMontage):
        montage = channels
    elif isinstance(channels, str):
        montage = standard_montage(channels)
    elif channels in _CAPS:
        name, picks = _CAPS[channels]
        montage = standard_montage(name)
    else:
        raise InputError(
            f"n_channels is {channels!r}; give one of {', '.join(map(str, _CAPS))}, the name of "
            "an MNE montage, or a montage"
        )
    names = tuple(picks if picks is not None else montage.ch_names)
    positions = channel_positions(names, montage)
    lost = [name for name, place in zip(names, positions, strict=True) if np.isnan(place).any()]
    if lost or not names:
        raise InputError(f"the montage has no position for {', '.join(lost) or 'any channel'}")
    return Scalp(names, positions, montage)
