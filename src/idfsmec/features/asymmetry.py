"""Right minus left: features that belong to pairs of electrodes, each a block of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from idfsmec._columns import join_column
from idfsmec.features.epoch_signal import EpochSignal
from idfsmec.features.registry import register_feature

if TYPE_CHECKING:
    from idfsmec.features.settings import FeatureSettings

Array = NDArray[np.float64]

FRONTAL_PAIRS = (
    ("Fp2", "Fp1"),
    ("AF4", "AF3"),
    ("AF8", "AF7"),
    ("F2", "F1"),
    ("F4", "F3"),
    ("F6", "F5"),
    ("F8", "F7"),
    ("F10", "F9"),
)
"""Right and left."""


def _outputs(settings: FeatureSettings) -> list[str]:
    return ["alpha_asymmetry"] if "alpha" in settings.bands else []


@register_feature("alpha_asymmetry", outputs=_outputs, of_pairs=True)
def alpha_asymmetry(signal: EpochSignal) -> Array:
    """Natural logarithm of the power in alpha, of which right minus left is taken."""
    return np.log(signal.band_power("alpha"))


def pairs_of(names: Sequence[str], settings: FeatureSettings) -> dict[str, tuple[int, int]]:
    """Name the pairs of a recording, with the places of right and left; none if nobody asks.

    Examples
    --------
    >>> from idfsmec.features import FeatureSettings
    >>> pairs_of(["F3", "F4", "Cz"], FeatureSettings(features=["alpha_asymmetry"]))
    {'F4-F3': (1, 0)}
    """
    if not any(one.of_pairs and one.columns(settings) for one in settings.chosen):
        return {}
    place = {name: i for i, name in enumerate(names)}
    return {
        f"{right}-{left}": (place[right], place[left])
        for right, left in FRONTAL_PAIRS
        if right in place and left in place
    }


def columns_of(
    values: Array, names: Sequence[str], settings: FeatureSettings
) -> tuple[Array, list[str]]:
    """Lay channels side by side, and behind them pairs: right minus left, NaN if either is.

    Parameters
    ----------
    values : ndarray of shape (n_epochs, n_channels, n_outputs)
        From :func:`compute_features`.
    names : sequence of str
        The channels.
    settings : FeatureSettings

    Returns
    -------
    values : ndarray of shape (n_epochs, n_columns)
    columns : list of str
    """
    outputs = [(out, one.of_pairs) for one in settings.chosen for out in one.columns(settings)]
    paired = np.array([of_pairs for _, of_pairs in outputs], dtype=bool)
    pairs = pairs_of(names, settings)
    sides = np.array(list(pairs.values()), dtype=np.intp).reshape(-1, 2)
    differences = values[:, sides[:, 0]][..., paired] - values[:, sides[:, 1]][..., paired]
    own = [out for out, of_pairs in outputs if not of_pairs]
    both = [out for out, of_pairs in outputs if of_pairs]
    columns = [join_column(name, out) for name in names for out in own]
    columns += [join_column(name, out) for name in pairs for out in both]
    n_epochs = len(values)
    alone = values[..., ~paired]
    flat = [part.reshape(n_epochs, np.prod(part.shape[1:])) for part in (alone, differences)]
    return np.hstack(flat), columns


def pair_gaps(
    missing: NDArray[np.bool_], pairs: dict[str, tuple[int, int]]
) -> dict[str, list[int]]:
    """Epochs in which a pair lacks a side."""
    lost = {
        name: np.flatnonzero(missing[:, list(sides)].any(axis=1)) for name, sides in pairs.items()
    }
    return {name: epochs.tolist() for name, epochs in lost.items() if epochs.size}
