"""Simulate missing channels: remove channels from samples at a given rate, in a given pattern."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from idfsmec._validation import RandomState, as_generator
from idfsmec.errors import InputError
from idfsmec.missing.masks import mask_table
from idfsmec.table import FeatureTable
from idfsmec.table.positions import angles_between, channel_positions

Mask = NDArray[np.bool_]
_Stretch = tuple[np.ndarray, int]
Pattern = Literal["random", "recording", "burst", "region", "uneven"]
PATTERNS: tuple[str, ...] = get_args(Pattern)

# Whole recordings may miss the rate by this much before one of them is taken in part.
_RATE_TOLERANCE = 0.01


def simulate_missing(
    table: FeatureTable, rate: float, pattern: Pattern = "random", random_state: RandomState = None
) -> FeatureTable:
    """Remove channels from samples, so that a known share of what was observed is missing.

    Parameters
    ----------
    table : FeatureTable
        What is missing in it stays missing.
    rate : float
        Share of the observed cells (a cell is one channel in one sample) to remove, at least 0
        and below 1.
    pattern : {"random", "recording", "burst", "region", "uneven"}
        ``random``: each channel at each sample with the same chance; a sample keeps at least
        one channel where the rate allows it. ``recording``: a channel is missing in all samples
        of a subject. ``burst``: a channel is missing from some sample of a subject on.
        ``region``: neighbouring electrodes are missing together. ``uneven``: as random, with
        rates that differ from channel to channel.
    random_state : int, Generator, RandomState or None
        The same number removes the same cells.

    Returns
    -------
    FeatureTable
        A new table; ``info["gaps"]`` lists what was done.

    Raises
    ------
    InputError
        The rate or the pattern is not possible, or ``region`` is asked for and the positions of
        the electrodes are known neither by ``info["montage"]`` nor by 10-05 names.

    Notes
    -----
    The share of removed cells differs from ``rate`` by half a cell at most; with ``recording``,
    by 0.01 at most.

    Examples
    --------
    >>> import pandas as pd
    >>> columns = ["F3__mean", "F4__mean", "O1__mean", "O2__mean"]
    >>> X = pd.DataFrame(np.ones((50, 4)), columns=columns)
    >>> table = FeatureTable(X, ["HC", "MDD"] * 25, ["a", "b"] * 25)
    >>> simulate_missing(table, 0.3, random_state=0)
    FeatureTable(50 samples of 2 subjects; 4 channels x 1 features; labels HC: 25, MDD: 25;
    30.0% missing)
    """
    before = table.observed
    after = simulate_missing_mask(
        before.to_numpy(),
        rate,
        pattern,
        random_state,
        recordings=table.subjects.to_numpy(),
        positions=_table_positions(table) if pattern == "region" else None,
    )
    if (after == before.to_numpy()).all():
        return replace(table)
    done: dict[str, Any] = {"rate": float(rate), "pattern": str(pattern)}
    if isinstance(random_state, int | np.integer):
        done["random_state"] = int(random_state)
    info = {**table.info, "gaps": [*table.info.get("gaps", []), done]}
    return replace(mask_table(table, pd.DataFrame(after, columns=before.columns)), info=info)


def simulate_missing_mask(
    observed: Mask,
    rate: float,
    pattern: Pattern = "random",
    random_state: RandomState = None,
    *,
    recordings: np.ndarray | None = None,
    positions: np.ndarray | None = None,
) -> Mask:
    """Choose missing cells of arrays: what :func:`simulate_missing` does, without a table.

    Parameters
    ----------
    observed : ndarray of shape (n_samples, n_channels), bool
        What is observed before.
    rate, pattern, random_state
        As in :func:`simulate_missing`.
    recordings : ndarray of shape (n_samples,), optional
        Which recording a sample is from, for ``recording`` and ``burst``; samples of a
        recording are in the order of time. Left out, all are from one.
    positions : ndarray of shape (n_channels, 3), optional
        Unit vectors of the electrodes, needed for ``region``; NaN where unknown.

    Returns
    -------
    ndarray of shape (n_samples, n_channels), bool
        What is observed after; never more than before.
    """
    observed = np.asarray(observed, dtype=bool)
    if observed.ndim != 2:
        raise InputError(f"observed has {observed.ndim} axes; give (n_samples, n_channels)")
    if not 0 <= rate < 1:
        raise InputError(f"the missing rate is {rate}; give a share from 0 to below 1, like 0.2")
    if pattern not in PATTERNS:
        raise InputError(f"there is no pattern {pattern!r}; choose from {', '.join(PATTERNS)}")
    n_removed = round(rate * int(observed.sum()))
    if n_removed == 0:
        return observed.copy()
    rng = as_generator(random_state)
    if pattern == "region":
        return observed & ~_region(observed, n_removed, rng, positions)
    if pattern in ("random", "uneven"):
        removed = np.zeros_like(observed)
        if pattern == "uneven":
            removed = _uneven(observed, n_removed, rng)
        else:
            removed.flat[rng.choice(np.flatnonzero(observed), n_removed, replace=False)] = True
        return observed & ~_leave_one(observed, removed, rng)
    recordings = np.zeros(len(observed)) if recordings is None else np.asarray(recordings)
    if recordings.shape != observed.shape[:1]:
        raise InputError(f"{len(recordings)} recordings for {len(observed)} samples")
    remove = _recording if pattern == "recording" else _burst
    return observed & ~remove(observed, n_removed, _stretches(observed, recordings, rng), rng)


def _table_positions(table: FeatureTable) -> np.ndarray:
    """Find the electrodes by the table's montage, and those it lacks by 10-05 names."""
    montage = table.info.get("montage")
    positions = channel_positions(table.channels)
    with suppress(InputError):  # no montage, or one that MNE does not know
        in_montage = channel_positions(table.channels, str(montage))
        positions = np.where(np.isnan(in_montage), positions, in_montage)
    unknown = np.isnan(positions).any(axis=1)
    if unknown.mean() > 0.5 and len(positions) > 1:
        names = np.array(table.channels)[unknown].tolist()
        raise InputError(
            f"pattern 'region' needs to know where the electrodes are, and {', '.join(names[:5])}"
            f"{' ...' if len(names) > 5 else ''} are neither in the 10-05 system nor in the "
            f"table's montage ({montage!r}): set info['montage'] of the table to one of "
            "mne.channels.get_builtin_montages(), such as 'GSN-HydroCel-128', or choose another "
            "pattern"
        )
    return positions


def _uneven(observed: Mask, n_removed: int, rng: np.random.Generator) -> Mask:
    """Choose cells at random; log-odds of the channels' rates are shifted normal quantiles."""
    from scipy.optimize import brentq
    from scipy.special import expit
    from scipy.stats import norm

    n_cells, n_channels = observed.sum(axis=0), observed.shape[1]
    spread = rng.permutation(norm.ppf((np.arange(n_channels) + 0.5) / n_channels))

    def excess(shift: float) -> float:
        return float(n_cells @ expit(spread + shift)) - n_removed

    if excess(40.0) <= 0:  # everything goes
        counts = n_cells
    else:
        ideal = n_cells * expit(spread + brentq(excess, -40.0, 40.0))
        counts = np.floor(ideal).astype(int)
        # The rest goes to the channels whose fraction was cut the most.
        counts[np.argsort(counts - ideal, kind="stable")[: n_removed - counts.sum()]] += 1
    removed = np.zeros_like(observed)
    for channel, count in enumerate(counts):
        rows = np.flatnonzero(observed[:, channel])
        removed[rng.choice(rows, count, replace=False), channel] = True
    return removed


def _recording(
    observed: Mask, n_removed: int, groups: list[list[_Stretch]], rng: np.random.Generator
) -> Mask:
    """Remove channels from whole recordings; from one in part where the rate is missed by 1 %."""
    removed = np.zeros_like(observed)
    lacking = n_removed
    # Half a cell is already lost to rounding.
    tolerance = max(_RATE_TOLERANCE * int(observed.sum()) - 0.5, 0.0)
    for stretches in groups:
        unused = []
        for rows, channel in stretches:
            if len(rows) <= lacking:
                removed[rows, channel] = True
                lacking -= len(rows)
            else:
                unused.append((rows, channel))
        if lacking and unused:
            rows, channel = min(unused, key=lambda stretch: len(stretch[0]))
            if len(rows) - lacking <= min(lacking, tolerance):
                removed[rows, channel] = True  # a little too much is nearer than too little
            elif lacking > tolerance:
                removed[rows[-lacking:], channel] = True
            return removed
    return removed


def _burst(
    observed: Mask, n_removed: int, groups: list[list[_Stretch]], rng: np.random.Generator
) -> Mask:
    """Let channels come off at a uniform onset and stay off; earlier if more must go."""
    removed = np.zeros_like(observed)
    lacking = n_removed
    for stretches in groups:
        lengths = np.array([len(rows) for rows, _ in stretches])
        tails = lengths - rng.integers(np.minimum(1, lengths - 1), lengths)
        for wanted in (tails, lengths):
            for n_wanted, (rows, channel) in zip(wanted, stretches, strict=True):
                before = int(removed[rows, channel].sum())
                n_cells = min(int(n_wanted), before + lacking)
                if n_cells > before:
                    removed[rows[-n_cells:], channel] = True
                    lacking -= n_cells - before
    return removed


def _stretches(
    observed: Mask, recordings: np.ndarray, rng: np.random.Generator
) -> list[list[_Stretch]]:
    """List (rows, channel) in random order: those that may go, and one of each recording last."""
    loose: list[_Stretch] = []
    spared: list[_Stretch] = []
    codes, names = pd.factorize(recordings)
    for code in range(len(names)):
        rows = np.flatnonzero(codes == code)
        counts = observed[rows].sum(axis=0)
        keeper = int(np.argmax(counts + rng.uniform(0, 0.5, len(counts))))
        for channel in np.flatnonzero(counts):
            stretch = (rows[observed[rows, channel]], int(channel))
            (spared if channel == keeper else loose).append(stretch)
    return [[group[i] for i in rng.permutation(len(group))] for group in (loose, spared)]


def _region(
    observed: Mask, n_removed: int, rng: np.random.Generator, positions: np.ndarray | None
) -> Mask:
    """Remove the electrodes around a random one of each sample; regions grow if more must go."""
    n_samples, n_channels = observed.shape
    if n_channels == 1:  # a lone electrode is its own region
        positions = np.array([[0.0, 0.0, 1.0]])
    if positions is None:
        raise InputError("pattern 'region' needs the positions of the electrodes")
    positions = np.asarray(positions, dtype=float)
    if positions.shape != (n_channels, 3):
        raise InputError(f"positions have the shape {positions.shape}; give ({n_channels}, 3)")
    known = np.isfinite(positions).all(axis=1)
    if not known.any():
        raise InputError("pattern 'region' needs the position of at least one electrode")
    distances = np.where(np.outer(known, known), angles_between(np.nan_to_num(positions)), 1e3)
    np.fill_diagonal(distances, 0.0)
    centres = rng.choice(np.flatnonzero(known), n_samples)
    # Cells already missing come last; equally far ones in random order.
    keys = distances[centres] + 1e-6 * rng.uniform(size=observed.shape)
    nearest_first = np.argsort(np.where(observed, keys, np.inf), axis=1)

    available = observed.sum(axis=1)
    size = max(2, round(np.sqrt(n_channels)))
    taken = np.zeros(n_samples, dtype=int)
    lacking = n_removed
    while lacking:
        room = np.clip(available - 1 - taken, 0, size)
        if not room.any():  # every sample is down to its last channel
            room = np.minimum(available - taken, 1)
        order = rng.permutation(n_samples)
        so_far = np.cumsum(room[order]) - room[order]
        step = np.clip(lacking - so_far, 0, room[order])
        taken[order] += step
        lacking -= int(step.sum())
    return np.argsort(nearest_first, axis=1) < taken[:, None]


def _leave_one(observed: Mask, removed: Mask, rng: np.random.Generator) -> Mask:
    """Give emptied samples a channel back and remove one from a sample that has more, if any."""

    def one_per_row(allowed: Mask) -> np.ndarray:
        priority = np.where(allowed, rng.uniform(0.1, 1.0, allowed.shape), 0.0)
        columns: np.ndarray = priority.argmax(axis=1)
        return columns

    left = observed & ~removed
    emptied = np.flatnonzero(observed.any(axis=1) & ~left.any(axis=1))
    spare = left.copy()
    full = np.flatnonzero(left.any(axis=1))
    spare[full, one_per_row(left[full])] = False
    spare_cells = np.flatnonzero(spare)
    n_swaps = min(len(emptied), len(spare_cells))
    rows = rng.choice(emptied, n_swaps, replace=False)
    removed = removed.copy()
    removed[rows, one_per_row(observed[rows])] = False
    removed.flat[rng.choice(spare_cells, n_swaps, replace=False)] = True
    return removed
