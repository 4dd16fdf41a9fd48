"""Forward search: one feature after another, each chosen by a criterion given those before."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]

# Criteria closer than this are ties (rounding only): the first column wins.
_TIE = 1e-12
_TIE_DECIMALS = 12
# Columns per matrix product: enough for BLAS to work well, few enough to waste little when a
# feature computed ahead is never chosen.
_COLUMNS_AHEAD = 80
# Numbers that cost less than another call: few features are all computed at once.
_CELLS_AHEAD = 2**17


class TermsAhead:
    """Terms of all features with the one chosen, computed for likely next choices too.

    One matrix product for several features takes less time than one for each.

    Parameters
    ----------
    pairwise : callable
        From some features to the terms of all features with them, shape (n_features, n_some).
    table : (int, int)
        How many numbers the product has: rows in all, and columns for each feature asked for.
    n_wanted : int
        How many features will be asked for.
    """

    def __init__(
        self, pairwise: Callable[[Indices], Array], table: tuple[int, int], n_wanted: int
    ) -> None:
        self._pairwise = pairwise
        n_rows, n_columns = table
        self._n_ahead = max(1, _COLUMNS_AHEAD // n_columns, _CELLS_AHEAD // (n_rows * n_columns))
        self._n_wanted = n_wanted
        self._known: dict[int, Array] = {}

    def of(self, feature: int, values: Array, left: Mask) -> Array:
        """Terms of all features with `feature`; each is asked for once.

        Those with the highest values of the ones left are likely next choices.
        """
        if feature not in self._known:
            unknown = left.copy()
            unknown[list(self._known)] = False
            likely = np.flatnonzero(unknown)
            n_more = min(self._n_ahead, self._n_wanted) - 1
            if likely.size > n_more:
                nearest = np.argpartition(-values[likely], n_more)[:n_more]
                likely = likely[np.sort(nearest)]
            batch = np.concatenate([[feature], likely]).astype(np.intp)
            self._known.update(zip(batch.tolist(), self._pairwise(batch).T, strict=True))
        self._n_wanted -= 1
        return self._known.pop(feature)


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
