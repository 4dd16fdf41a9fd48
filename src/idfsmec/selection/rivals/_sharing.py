"""Selectors that rank with many settings of a fold at once, since these share work."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, check_consistent_length

from idfsmec._parameters import check_parameters
from idfsmec.selection._base import CompleteSelector, check_complete
from idfsmec.selection.grid import Setting, training_samples


class SharingSelector(CompleteSelector):
    """A selector of complete data whose settings share work."""

    def rank_grid(
        self,
        X: ArrayLike,
        y: ArrayLike,
        settings: Sequence[Setting],
        *,
        held_out: Sequence[NDArray[np.intp]] | None = None,
        groups: ArrayLike | None = None,
    ) -> NDArray[np.intp]:
        """Rank with many settings on every fold, sharing what these have in common.

        Parameters and result are those of :func:`idfsmec.selection.rank_grid`.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> from idfsmec.selection import GRMOR
        >>> X, y = load_wine(return_X_y=True)
        >>> GRMOR().rank_grid(X, y, [{"lam": 0.01}, {"lam": 100.0}]).shape
        (1, 2, 13)
        """
        check_consistent_length(X, y, groups)
        selectors = [clone(self).set_params(**one) for one in settings]
        for one in selectors:
            check_parameters(type(self).__name__, self._parameter_constraints, one.get_params())
        found = []
        for kept in training_samples(_num_samples(X), held_out):
            whole = held_out is None  # other methods may know something about these samples
            data = (part if whole else _safe_indexing(part, kept) for part in (X, y))
            found.append(self._rank_alike(selectors, *check_complete(clone(self), *data)))
        return np.array(found)

    @abstractmethod
    def _rank_alike(
        self, selectors: Sequence[Self], X: NDArray[np.float64], y: NDArray[np.intp]
    ) -> list[NDArray[np.intp]]:
        """Ranks of the features by each of the selectors, which differ in their settings."""
