"""Make gaps on purpose: take channels out of samples at a given rate, in a given pattern."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from idfsmec._random import RandomState, as_generator
from idfsmec.errors import InputError
from idfsmec.missing import _gap_patterns as patterns
from idfsmec.missing._gap_patterns import PATTERNS, Pattern
from idfsmec.missing.apply import mask_table
from idfsmec.montage import channel_positions, montage_exists
from idfsmec.table import FeatureTable


def make_gaps(
    table: FeatureTable,
    rate: float,
    pattern: Pattern = "random",
    random_state: RandomState = None,
) -> FeatureTable:
    """Take channels out of samples, so that a known share of what was observed is missing.

    Parameters
    ----------
    table : FeatureTable
        What is missing in it stays missing.
    rate : float
        Share of the observed cells (a cell is one channel in one sample) that go, at least 0
        and below 1.
    pattern : {"random", "recording", "burst", "region", "uneven"}
        ``random``: each channel at each sample with the same chance; a sample keeps at least
        one channel where the rate allows it. ``recording``: a channel is gone for all samples
        of a subject. ``burst``: a channel is gone from some sample of a subject on. ``region``:
        neighbouring electrodes are gone together. ``uneven``: as random, with rates that differ
        from channel to channel.
    random_state : int, Generator, RandomState or None
        The same number makes the same gaps.

    Returns
    -------
    FeatureTable
        A new table; ``info["gaps"]`` lists what was done.

    Raises
    ------
    InputError
        The rate or the pattern is not possible, or ``region`` is asked for and the places of
        the electrodes are known neither by ``info["montage"]`` nor by 10-05 names.

    Notes
    -----
    The share of gone cells differs from ``rate`` by half a cell at most; with ``recording``, by
    0.01 at most.

    Examples
    --------
    >>> import pandas as pd
    >>> columns = ["F3__mean", "F4__mean", "O1__mean", "O2__mean"]
    >>> X = pd.DataFrame(np.ones((50, 4)), columns=columns)
    >>> table = FeatureTable(X, ["HC", "MDD"] * 25, ["a", "b"] * 25)
    >>> make_gaps(table, 0.3, random_state=0)
    FeatureTable(50 samples of 2 subjects; 4 channels x 1 features; labels HC: 25, MDD: 25;
    30.0% missing)
    """
    positions = None
    if pattern == "region":
        positions = _positions(table)
    before = table.observed
    after = make_gap_mask(
        before.to_numpy(),
        rate,
        pattern,
        random_state,
        recordings=table.subjects.to_numpy(),
        positions=positions,
    )
    if (after == before.to_numpy()).all():
        return replace(table)
    done: dict[str, Any] = {"rate": float(rate), "pattern": str(pattern)}
    if isinstance(random_state, int | np.integer):
        done["random_state"] = int(random_state)
    info = {**table.info, "gaps": [*table.info.get("gaps", []), done]}
    gappy = mask_table(table, pd.DataFrame(after, columns=before.columns))
    return replace(gappy, info=info)


def make_gap_mask(
    observed: np.ndarray,
    rate: float,
    pattern: Pattern = "random",
    random_state: RandomState = None,
    *,
    recordings: np.ndarray | None = None,
    positions: np.ndarray | None = None,
) -> np.ndarray:
    """Choose gaps on arrays: what :func:`make_gaps` does, without a table.

    Parameters
    ----------
    observed : ndarray of shape (n_samples, n_channels), bool
        What is observed before.
    rate, pattern, random_state
        As in :func:`make_gaps`.
    recordings : ndarray of shape (n_samples,), optional
        Which recording a sample is from, for ``recording`` and ``burst``; samples of a
        recording are in the order of time. Left out, all are from one.
    positions : ndarray of shape (n_channels, 3), optional
        Unit vectors of the electrodes, needed for ``region``; NaN where unknown.

    Returns
    -------
    ndarray of shape (n_samples, n_channels), bool
        What is observed after; never more than before.

    Examples
    --------
    >>> after = make_gap_mask(np.ones((6, 2), dtype=bool), 0.25, "burst", random_state=1)
    >>> int((~after).sum())
    3
    """
    observed = np.asarray(observed, dtype=bool)
    if observed.ndim != 2:
        raise InputError(f"observed has {observed.ndim} axes; give (n_samples, n_channels)")
    if not 0 <= rate < 1:
        raise InputError(f"the rate of gaps is {rate}; give a share from 0 to below 1, like 0.2")
    if pattern not in PATTERNS:
        raise InputError(f"there is no pattern {pattern!r}; choose from {', '.join(PATTERNS)}")
    n_gone = round(rate * int(observed.sum()))
    if n_gone == 0:
        return observed.copy()
    rng = as_generator(random_state)
    if pattern == "random":
        return observed & ~patterns.random_gaps(observed, n_gone, rng)
    if pattern == "uneven":
        return observed & ~patterns.uneven_gaps(observed, n_gone, rng)
    if pattern == "region":
        places = _known_places(positions, observed.shape[1])
        return observed & ~patterns.region_gaps(observed, n_gone, rng, places)
    recordings = np.zeros(len(observed)) if recordings is None else np.asarray(recordings)
    if recordings.shape != observed.shape[:1]:
        raise InputError(f"{len(recordings)} recordings for {len(observed)} samples")
    choose = patterns.recording_gaps if pattern == "recording" else patterns.burst_gaps
    return observed & ~choose(observed, n_gone, rng, recordings)


def _positions(table: FeatureTable) -> np.ndarray:
    """Find the electrodes by the table's montage, and those it lacks by 10-05 names."""
    montage = table.info.get("montage")
    positions = channel_positions(table.channels)
    if isinstance(montage, str) and montage_exists(montage):
        own = channel_positions(table.channels, montage)
        positions = np.where(np.isnan(own), positions, own)
    unknown = np.isnan(positions).any(axis=1)
    if unknown.mean() > 0.5 and len(unknown) > 1:
        lost = [name for name, gone in zip(table.channels, unknown, strict=True) if gone]
        raise InputError(
            f"pattern 'region' needs to know where the electrodes are, and {', '.join(lost[:5])}"
            f"{' ...' if len(lost) > 5 else ''} are neither in the 10-05 system nor in the "
            f"table's montage ({montage!r}): set "
            "info['montage'] of the table to one of mne.channels.get_builtin_montages(), such as "
            "'GSN-HydroCel-128', or choose another pattern"
        )
    return positions


def _known_places(positions: np.ndarray | None, n_channels: int) -> np.ndarray:
    if n_channels == 1:  # a lone electrode is its own region
        return np.array([[0.0, 0.0, 1.0]])
    if positions is None:
        raise InputError("pattern 'region' needs the positions of the electrodes")
    places = np.asarray(positions, dtype=float)
    if places.shape != (n_channels, 3):
        raise InputError(f"positions have the shape {places.shape}; give ({n_channels}, 3)")
    if not np.isfinite(places).all(axis=1).any():
        raise InputError("pattern 'region' needs the position of at least one electrode")
    return places
