"""How gaps lie: given what is observed and how many cells must go, choose which ones go.

Each pattern is a function ``(observed, n_gone, rng, ...) -> gone`` on arrays of bool of shape
(n_samples, n_channels). A cell is one channel in one sample; only observed cells can go.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from idfsmec.montage import angles_between

Pattern = Literal["random", "recording", "burst", "region", "uneven"]
PATTERNS: tuple[str, ...] = get_args(Pattern)

#: Whole recordings may miss the asked rate by this much before one of them is taken in part.
RATE_TOLERANCE = 0.01


def random_gaps(observed: np.ndarray, n_gone: int, rng: np.random.Generator) -> np.ndarray:
    """Choose cells with equal chances, then leave a channel to every sample where possible."""
    gone = np.zeros_like(observed)
    cells = np.flatnonzero(observed)
    gone.flat[rng.choice(cells, n_gone, replace=False)] = True
    return _leave_one(observed, gone, rng)


def uneven_gaps(observed: np.ndarray, n_gone: int, rng: np.random.Generator) -> np.ndarray:
    """Choose cells at random, with rates that differ from channel to channel.

    The log-odds of the channels' rates are normal quantiles, dealt out at random and shifted
    together until the rates add up.
    """
    gone = np.zeros_like(observed)
    for channel, n_cells in enumerate(_uneven_counts(observed.sum(axis=0), n_gone, rng)):
        rows = np.flatnonzero(observed[:, channel])
        gone[rng.choice(rows, n_cells, replace=False), channel] = True
    return _leave_one(observed, gone, rng)


def recording_gaps(
    observed: np.ndarray, n_gone: int, rng: np.random.Generator, recordings: np.ndarray
) -> np.ndarray:
    """Take channels out of whole recordings, one channel and recording after the other.

    Where no choice of whole ones comes within 1 % of the rate, one is taken in part: from a
    sample on to the end. A channel of each recording is spared as long as others are left.
    """
    gone = np.zeros_like(observed)
    lacking = n_gone
    # Half a cell is already lost to rounding.
    tolerance = max(RATE_TOLERANCE * int(observed.sum()) - 0.5, 0.0)
    for units in _units(observed, recordings, rng):  # first those that may go, then the spared
        unused = []
        for rows, channel in units:
            if len(rows) <= lacking:
                gone[rows, channel] = True
                lacking -= len(rows)
            else:
                unused.append((rows, channel))
        if lacking and unused:
            rows, channel = min(unused, key=lambda unit: len(unit[0]))
            if len(rows) - lacking <= min(lacking, tolerance):
                gone[rows, channel] = True  # a little too much is nearer than too little
            elif lacking > tolerance:
                gone[rows[-lacking:], channel] = True
            return gone
    return gone


def burst_gaps(
    observed: np.ndarray, n_gone: int, rng: np.random.Generator, recordings: np.ndarray
) -> np.ndarray:
    """Let channels come off in the middle of recordings and stay off to the end.

    The onset is uniform over the recording. If all channels of all recordings have come off and
    more must go, onsets move to the beginning, one after the other.
    """
    gone = np.zeros_like(observed)
    lacking = n_gone
    for units in _units(observed, recordings, rng):
        lengths = np.array([len(rows) for rows, _ in units])
        tails = lengths - rng.integers(np.minimum(1, lengths - 1), lengths)
        for wanted in (tails, lengths):
            for index, (rows, channel) in enumerate(units):
                before = int(gone[rows, channel].sum())
                n_cells = min(int(wanted[index]), before + lacking)
                if n_cells > before:
                    gone[rows[-n_cells:], channel] = True
                    lacking -= n_cells - before
    return gone


def region_gaps(
    observed: np.ndarray, n_gone: int, rng: np.random.Generator, positions: np.ndarray
) -> np.ndarray:
    """Let the electrodes around a random place go together, another place in each sample.

    A region has about the root of the number of channels. When every sample has one and more
    must go, the regions grow.
    """
    n_samples, n_channels = observed.shape
    places = np.isfinite(positions).all(axis=1)
    distances = np.where(np.outer(places, places), angles_between(np.nan_to_num(positions)), 1e3)
    np.fill_diagonal(distances, 0.0)
    centres = rng.choice(np.flatnonzero(places), n_samples)
    # Cells already missing come last; equally far ones in random order.
    keys = distances[centres] + 1e-6 * rng.uniform(size=observed.shape)
    nearest_first = np.argsort(np.where(observed, keys, np.inf), axis=1)

    available = observed.sum(axis=1)
    size = max(2, round(np.sqrt(n_channels)))
    taken = np.zeros(n_samples, dtype=int)
    lacking = n_gone
    while lacking:
        room = np.clip(available - 1 - taken, 0, size)
        if not room.any():  # every sample is down to its last channel
            room = np.minimum(available - taken, 1)
        order = rng.permutation(n_samples)
        so_far = np.cumsum(room[order]) - room[order]
        step = np.clip(lacking - so_far, 0, room[order])
        taken[order] += step
        lacking -= int(step.sum())
    ranks = np.argsort(nearest_first, axis=1)
    return ranks < taken[:, None]


def _units(
    observed: np.ndarray, recordings: np.ndarray, rng: np.random.Generator
) -> list[list[tuple[np.ndarray, int]]]:
    """Give (rows, channel) of each channel and recording: those that may go, and the spared.

    Spared is the channel with most observed samples of each recording; both lists are shuffled.
    """
    from pandas import factorize

    loose: list[tuple[np.ndarray, int]] = []
    spared: list[tuple[np.ndarray, int]] = []
    codes, _ = factorize(recordings)
    for code in range(codes.max() + 1):
        rows = np.flatnonzero(codes == code)
        seen = observed[rows]
        counts = seen.sum(axis=0)
        keeper = int(np.argmax(counts + rng.uniform(0, 0.5, len(counts))))
        for channel in np.flatnonzero(counts):
            unit = (rows[seen[:, channel]], int(channel))
            (spared if channel == keeper else loose).append(unit)
    return [[group[i] for i in rng.permutation(len(group))] for group in (loose, spared)]


def _uneven_counts(per_channel: np.ndarray, n_gone: int, rng: np.random.Generator) -> np.ndarray:
    """Split ``n_gone`` over channels with ``per_channel`` observed cells each."""
    from scipy.optimize import brentq
    from scipy.special import expit
    from scipy.stats import norm

    n_channels = len(per_channel)
    spread = rng.permutation(norm.ppf((np.arange(n_channels) + 0.5) / n_channels))

    def excess(shift: float) -> float:
        return float(per_channel @ expit(spread + shift)) - n_gone

    if excess(-40.0) >= 0 or excess(40.0) <= 0:  # nothing or everything goes
        return per_channel if n_gone else np.zeros(n_channels, dtype=int)
    ideal = per_channel * expit(spread + brentq(excess, -40.0, 40.0))
    counts = np.floor(ideal).astype(int)
    # The rest goes to the channels whose fraction was cut the most.
    rest = np.argsort(counts - ideal, kind="stable")[: n_gone - counts.sum()]
    counts[rest] += 1
    return counts


def _leave_one(observed: np.ndarray, gone: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Give emptied samples a channel back and take one from a sample that has more, if any."""
    kept = observed & ~gone
    emptied = np.flatnonzero(observed.any(axis=1) & ~kept.any(axis=1))
    spare = kept.copy()
    full = np.flatnonzero(kept.any(axis=1))
    spare[full, _one_per_row(kept[full], rng)] = False
    spare_cells = np.flatnonzero(spare)
    n_swaps = min(len(emptied), len(spare_cells))
    rows = rng.choice(emptied, n_swaps, replace=False)
    gone = gone.copy()
    gone[rows, _one_per_row(observed[rows], rng)] = False
    gone.flat[rng.choice(spare_cells, n_swaps, replace=False)] = True
    return gone


def _one_per_row(allowed: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Choose a True column of each row at random."""
    return np.argmax(np.where(allowed, rng.uniform(0.1, 1.0, allowed.shape), 0.0), axis=1)
