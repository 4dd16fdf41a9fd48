"""Selectors that need complete data: check it, rank, done."""

from __future__ import annotations

from abc import abstractmethod
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from idfsmec.selection._base import RankingSelector


class CompleteSelector(RankingSelector):
    """A selector that refuses NaN; a subclass ranks checked data (:meth:`_rank`)."""

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Rank the features.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Complete data; NaN is refused.
        y : array-like of shape (n_samples,)
            Class labels.

        Returns
        -------
        self : object
        """
        self._rank(*self._check_input(X, y))
        return self

    def _check_input(self, X: ArrayLike, y: ArrayLike) -> tuple[NDArray[np.float64], NDArray]:
        """Give X as numbers and y as codes 0 ... n_classes - 1."""
        checked, codes, _ = self._validate_complete(X, y)
        return checked, codes

    @abstractmethod
    def _rank(self, X: NDArray[np.float64], y: NDArray) -> None:
        """Compute scores and hand them to :meth:`_set_ranking` or :meth:`_set_order`."""
