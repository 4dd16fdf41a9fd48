"""Forward search: one feature after another, each chosen by a criterion given those before."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Criteria closer than this are ties (rounding only): the first column wins.
_TIE = 1e-12
_TIE_DECIMALS = 12


def forward_search(
    relevance: Array,
    candidates: Mask,
    n_wanted: int,
    criterion_after: Callable[[int, Array, Mask], Array],
) -> tuple[NDArray[np.intp], Array]:
    """Choose features one by one, then order the rest by the last criterion.

    Parameters
    ----------
    relevance : ndarray of shape (n_features,)
        The criterion of the first choice.
    candidates : ndarray of shape (n_features,)
        Mask of the features that may be chosen; the others come last.
    n_wanted : int
        How many to choose, at most the number of candidates.
    criterion_after : callable
        Called with the feature just chosen, the criterion it was chosen by and the mask of the
        candidates left; gives the criterion of the next choice.

    Returns
    -------
    order : ndarray of shape (n_features,)
        Chosen features, other candidates by the last criterion, then the rest.
    criterion : ndarray of shape (n_features,)
        The criterion when the feature was chosen, or after the last step if it was not.

    Examples
    --------
    A criterion that prefers what lies far from the last choice:

    >>> relevance = np.array([0.1, 0.2, 0.9, 0.0, 0.8])
    >>> candidates = np.array([True, True, True, True, False])
    >>> forward_search(relevance, candidates, 2, lambda best, *_: abs(np.arange(5.0) - best))[0]
    array([2, 0, 3, 1, 4])
    """
    values = relevance.copy()
    criterion = values.copy()
    left = candidates.copy()
    chosen: list[int] = []
    for _ in range(n_wanted):
        best = _first_best(values, left)
        criterion[best] = values[best]
        chosen.append(best)
        left[best] = False
        if not left.any():
            break
        values = criterion_after(best, values, left)
    criterion[left] = values[left]
    rest = np.flatnonzero(left)
    rest = rest[np.argsort(-np.round(values[rest], _TIE_DECIMALS), kind="stable")]
    order = np.concatenate([chosen, rest, np.flatnonzero(~candidates)]).astype(np.intp)
    return order, criterion


def _first_best(values: Array, left: Mask) -> int:
    """Index of the highest value among those left; of equals, the first."""
    open_values = np.where(left, values, -np.inf)
    return int(np.argmax(open_values >= open_values.max() - _TIE))
