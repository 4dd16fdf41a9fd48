"""What is left of a figure among people whose recordings are alike."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from idfsmec.evaluation.auditing.areas import draw_people, wins

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]

#: Recordings are alike if their log odds differ by less than this many standard deviations,
#: the usual caliper of matching by propensity.
CALIPER = 0.2
#: With fewer people of a class that have somebody alike in another one, nothing can be told.
FEWEST = 5


def among_alike(
    eeg: Floats, recording: Floats, y: Codes, *, caliper: float = CALIPER, seed: int = 0
) -> dict[str, Any]:
    """AUC over pairs of people of different classes that were recorded alike.

    How a person was recorded is summed up by the log odds that the suspects among the recording's
    variables give (a propensity score). Pairs within the caliper are compared, and no others.

    Parameters
    ----------
    eeg, recording : ndarray of shape (n_people, n_classes)
        Held-out decisions from the EEG, and the log odds of the recording.
    y : ndarray of shape (n_people,)

    Returns
    -------
    dict
        ``auc`` with ``low`` and ``high`` (people drawn anew), ``recording_auc`` (of the recording
        among the same pairs: near one half where they are alike indeed), ``n_people`` (with a
        partner, by class), ``n_pairs``, and ``told``: whether there are enough.

    References
    ----------
    Austin (2011), "Optimal caliper widths for propensity-score matching", Pharmaceutical
    Statistics 10:150-161.
    """
    n_classes = eeg.shape[1]
    centred = recording - recording.mean(axis=1, keepdims=True)
    reach = caliper * float(np.sqrt(centred.var(axis=0).mean()))
    apart = np.sqrt(((centred[:, None] - centred[None]) ** 2).mean(axis=2))
    near = (apart <= reach) & (y[:, None] != y)
    counts = [int(near[y == k].any(axis=1).sum()) for k in range(n_classes)]
    found: dict[str, Any] = {
        "n_people": counts,
        "n_pairs": int(near.sum() // 2),
        "told": min(counts) >= FEWEST,
    }
    if not found["told"]:
        return found
    members = [np.flatnonzero(y == k) for k in range(n_classes)]
    n_resamples = int(np.clip(4e7 / y.size**2, 100, 1000))
    drawn = draw_people(members, y.size, n_resamples, np.random.default_rng(seed))
    weights = np.vstack([np.ones(y.size), drawn])
    found["auc"], found["low"], found["high"] = _area(eeg, near, members, weights)
    found["recording_auc"] = _area(recording, near, members, weights[:1])[0]
    return found


def _area(
    decisions: Floats, near: NDArray[np.bool_], members: list[Codes], weights: Floats
) -> tuple[float, float, float]:
    """Share of pairs in the right order, for everybody and over the people drawn."""
    shares = []
    for k, own in enumerate(members):
        rest = np.setdiff1d(np.arange(len(near)), own)
        pairs = near[np.ix_(own, rest)].astype(float)
        inside, outside = weights[:, own], weights[:, rest]
        won = ((inside @ (wins(decisions, k, own, rest) * pairs)) * outside).sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            shares.append(won / ((inside @ pairs) * outside).sum(axis=1))
    mean = np.mean(shares, axis=0)
    low, high = np.nanquantile(mean, [0.025, 0.975]) if mean.size > 1 else (np.nan, np.nan)
    return float(mean[0]), float(low), float(high)
