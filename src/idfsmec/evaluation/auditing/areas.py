"""The area under the curve over people: its interval, and the difference of two on one crowd."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from idfsmec.metrics import score_decisions

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]

_ALPHA = 0.05


def areas(values: Floats, y: Codes, n_classes: int) -> Floats:
    """AUC of every column for each class against the rest, of shape (n_classes, n_columns)."""
    from scipy.stats import rankdata  # takes most of a second to import, which a report needs not

    member = (y == np.arange(n_classes)[:, None]).astype(float)
    return areas_by_rank(rankdata(values, axis=0), member[None])[0]


def areas_by_rank(ranks: Floats, member: Floats) -> Floats:
    """The same from ranks, for many labellings at once.

    Parameters
    ----------
    ranks : ndarray of shape (n_people, n_columns)
    member : ndarray of shape (n_labellings, n_classes, n_people)
        1 where a person is of the class.
    """
    own = member.sum(axis=-1, keepdims=True)
    above = member @ ranks - own * (own + 1) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        return above / (own * (member.shape[-1] - own))


def area_interval(area: float, n_in: int, n_out: int, n_looks: int = 1) -> tuple[float, float]:
    """95 % interval of an AUC, by Newcombe's fifth method [1]_.

    It inverts a score test with the variance of Hanley and McNeil, so that an AUC of 1 among few
    people has an interval of some length, where resampling gives none. Where the best of several
    areas is picked, ``n_looks`` says of how many: the interval then holds for whichever it is
    (Bonferroni).

    References
    ----------
    .. [1] Newcombe, "Confidence intervals for an effect size measure based on the Mann-Whitney
       statistic. Part 2", Statistics in Medicine 25, 559-573, 2006.

    Examples
    --------
    >>> low, high = area_interval(1.0, 4, 4)
    >>> round(low, 2), high
    (0.58, 1.0)
    """
    if not (np.isfinite(area) and n_in and n_out):
        return float("nan"), float("nan")
    extra = (n_in + n_out) / 2 - 1
    z = float(ndtri(1 - _ALPHA / 2 / n_looks))

    def beyond(theta: float) -> float:
        spread = 1 + extra * ((1 - theta) / (2 - theta) + theta / (1 + theta))
        variance = theta * (1 - theta) * spread / (n_in * n_out)
        return (area - theta) ** 2 - z**2 * variance

    return _root(beyond, area, 0.0), _root(beyond, area, 1.0)


def _root(beyond: Callable[[float], float], inside: float, outside: float) -> float:
    """Where ``beyond`` turns positive on the way from ``inside`` to ``outside``."""
    if inside == outside:
        return outside
    near, far = inside, outside
    for _ in range(60):
        middle = (near + far) / 2
        near, far = (near, middle) if beyond(middle) > 0 else (middle, far)
    return (near + far) / 2


def figure(decisions: Floats, y: Codes, n_looks: int = 1) -> dict[str, float]:
    """How well held-out decisions, one row per person, tell the classes apart.

    Parameters
    ----------
    decisions : ndarray of shape (n_people, n_classes)
    y : ndarray of shape (n_people,)
    n_looks : int, default=1
        Of how many figures it is the best, or may turn out to be.

    Returns
    -------
    dict
        ``auc`` (mean over one class against the rest) with ``low`` and ``high``, and
        ``balanced_accuracy``.
    """
    people = np.arange(y.size)
    found = score_decisions(decisions, y, people, ["roc_auc", "balanced_accuracy"])
    counts = np.bincount(y)
    few = int(counts.min())
    low, high = area_interval(found["roc_auc"], few, y.size - few, n_looks)
    return {
        "auc": found["roc_auc"],
        "low": low,
        "high": high,
        "balanced_accuracy": found["balanced_accuracy"],
    }


def difference(
    one: Floats, other: Floats, y: Codes, *, n_resamples: int = 1000, seed: int = 0
) -> dict[str, float]:
    """AUC of one set of decisions minus that of another, with an interval over people.

    The people are drawn anew, within their classes, the same for both.
    """
    rng, n_classes = np.random.default_rng(seed), one.shape[1]
    members = [np.flatnonzero(y == k) for k in range(n_classes)]
    value = figure(one, y)["auc"] - figure(other, y)["auc"]
    n_resamples = int(np.clip(2e7 / y.size**2, 100, n_resamples))
    weights, gaps = draw_people(members, y.size, n_resamples, rng), np.zeros(n_resamples)
    for k in range(n_classes):
        a, b = members[k], np.flatnonzero(y != k)
        inside, outside = weights[:, a], weights[:, b]
        apart = wins(one, k, a, b) - wins(other, k, a, b)
        total = inside.sum(axis=1) * outside.sum(axis=1)
        gaps += ((inside @ apart) * outside).sum(axis=1) / total
    low, high = np.quantile(gaps / len(members), [0.025, 0.975])
    return {"value": float(value), "low": float(low), "high": float(high)}


def draw_people(
    members: list[Codes], n_people: int, n_resamples: int, rng: np.random.Generator
) -> Floats:
    """How often each person is drawn, within classes, of shape (n_resamples, n_people)."""
    weights = np.zeros((n_resamples, n_people))
    for own in members:
        weights[:, own] = rng.multinomial(own.size, np.full(own.size, 1 / own.size), n_resamples)
    return weights


def wins(decisions: Floats, k: int, a: Codes, b: Codes) -> Floats:
    """1 where a person of the class is above one of the rest, 1/2 where they are level."""
    own = decisions[:, k]
    if decisions.shape[1] == 2:
        own = own - decisions[:, 1 - k]
    return (own[a, None] > own[b]) + 0.5 * (own[a, None] == own[b])
