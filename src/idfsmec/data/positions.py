"""Where electrodes sit: names become directions on a sphere, by a montage or by 10-05 names."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import mne
import numpy as np

from idfsmec.errors import InputError

#: MNE 1.13 renamed its ``standard_*`` montages; either name is understood with either version.
_RENAMED = {"standard_1005": "colin27_1005", "standard_1020": "colin27_1020"}
_TEMPLATE = "standard_1005"


def standard_montage(name: str) -> mne.channels.DigMontage:
    """Make one of MNE's built-in montages, by its old or its new name.

    Parameters
    ----------
    name : str
        For example ``"standard_1005"`` or ``"GSN-HydroCel-128"``.

    Returns
    -------
    DigMontage

    Raises
    ------
    InputError
        There is no such montage.

    Examples
    --------
    >>> len(standard_montage("biosemi64").ch_names)
    64
    """
    current = current_montage_name(name)
    if current is not None:
        return mne.channels.make_standard_montage(current)
    raise InputError(
        f"there is no montage named {name!r}; use one of mne.channels.get_builtin_montages(), "
        "such as 'standard_1005', 'biosemi64' or 'GSN-HydroCel-128'"
    )


def channel_positions(
    names: Sequence[str], montage: str | mne.channels.DigMontage | None = None
) -> np.ndarray:
    """Give the direction of each electrode as seen from the middle of the head.

    Parameters
    ----------
    names : sequence of str
        Channel names; capital letters do not matter.
    montage : str, DigMontage or None
        Where the positions come from; None takes the 10-05 system.

    Returns
    -------
    ndarray of shape (n_channels, 3)
        Unit vectors (right, front, up); a row of NaN for a channel the montage does not have.

    Examples
    --------
    >>> right, front, up = channel_positions(["Fp2"])[0]
    >>> bool(right > 0), bool(front > 0.8)
    (True, True)
    """
    if montage is None or isinstance(montage, str):
        directions = _directions_by_name(montage or _TEMPLATE)
    else:
        directions = _directions(montage)
    nowhere = np.full(3, np.nan)
    return np.array([directions.get(str(name).upper(), nowhere) for name in names]).reshape(-1, 3)


def angles_between(positions: np.ndarray, others: np.ndarray | None = None) -> np.ndarray:
    """Give the angles between electrodes in degrees.

    Parameters
    ----------
    positions : ndarray of shape (n, 3)
        Unit vectors, as from :func:`channel_positions`.
    others : ndarray of shape (m, 3), optional
        The same electrodes when left out.

    Returns
    -------
    ndarray of shape (n, m)

    Examples
    --------
    >>> angles = angles_between(channel_positions(["Fp1", "Fp2", "O2"]))
    >>> bool(angles[0, 1] < angles[0, 2])
    True
    """
    cosines = positions @ (positions if others is None else others).T
    return np.degrees(np.arccos(np.clip(cosines, -1.0, 1.0)))


def montage_exists(name: str) -> bool:
    """Say whether MNE has a built-in montage of this old or new name.

    Examples
    --------
    >>> montage_exists("standard_1020"), montage_exists("my cap")
    (True, False)
    """
    return current_montage_name(name) is not None


def current_montage_name(name: str) -> str | None:
    """Translate to the name that the installed MNE has; None if it has none."""
    known = mne.channels.get_builtin_montages()
    back = {new: old for old, new in _RENAMED.items()}
    # The new name first: MNE 1.13 takes both, but warns about the old one.
    candidates = (_RENAMED.get(name, name), back.get(name, name))
    return next((candidate for candidate in candidates if candidate in known), None)


@lru_cache(maxsize=8)
def _directions_by_name(name: str) -> dict[str, np.ndarray]:
    return _directions(standard_montage(name))


def _directions(montage: mne.channels.DigMontage) -> dict[str, np.ndarray]:
    """Map upper-case names to unit vectors from the centre of the sphere that fits best."""
    places = montage.get_positions()["ch_pos"]
    points = np.array(list(places.values()), dtype=float)
    from_centre = points - _sphere_centre(points)
    lengths = np.linalg.norm(from_centre, axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        units = from_centre / lengths
    return {name.upper(): unit for name, unit in zip(places, units, strict=True)}


def _sphere_centre(points: np.ndarray) -> np.ndarray:
    """Fit ``|x - c|^2 = r^2`` by linear least squares; too few electrodes: the origin."""
    finite = points[np.isfinite(points).all(axis=1)]
    if len(finite) < 16:  # a handful of frontal electrodes does not tell where the centre is
        return np.zeros(3)
    design = np.column_stack([2 * finite, np.ones(len(finite))])
    solution, *_ = np.linalg.lstsq(design, (finite**2).sum(axis=1), rcond=None)
    return solution[:3]
