"""Samples in units of the training part, with nothing in place of what is missing."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idfsmec.solver import TableMoments

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Units:
    """Centre and standard deviation of every feature over the samples that have its channel.

    Attributes
    ----------
    columns : sequence of integer arrays
        The columns of each channel.
    centre, unit : ndarray of shape (n_features,)
        ``unit`` is infinite for constant features, so that these become 0.
    """

    columns: Sequence[NDArray[np.intp]]
    centre: Array
    unit: Array

    @classmethod
    def of(cls, moments: TableMoments, columns: Sequence[NDArray[np.intp]]) -> Units:
        """Units of the samples that were summed up."""
        centre, unit = np.zeros(moments.n_features), np.ones(moments.n_features)
        for group in moments.groups:
            centre[group.columns] = group.moments.mean
            unit[group.columns] = np.where(group.moments.constant(), np.inf, group.moments.std)
        return cls(columns, centre, unit)

    def observed(self, X: Array) -> NDArray[np.bool_]:
        """Which channels each sample has: none of their features is NaN.

        Returns
        -------
        ndarray of bool, shape (n_samples, n_channels)
        """
        there = ~np.isnan(X)
        return np.stack([there[:, own].all(axis=1) for own in self.columns], axis=1)

    def standardised(self, X: Array) -> Array:
        """Distance from the centre in units; 0 for the features of missing channels."""
        # Halves before subtracting: no difference of finite numbers overflows.
        values = (0.5 * X - 0.5 * self.centre) / (0.5 * self.unit)
        observed = self.observed(X)
        for channel, own in enumerate(self.columns):
            values[np.ix_(~observed[:, channel], own)] = 0.0
        return values

    def without_any(self, X: Array, usable: NDArray[np.bool_], answer: str) -> NDArray[np.bool_]:
        """Which samples have none of the usable channels, with a warning that says their answer.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
        usable : ndarray of bool, shape (n_channels,)
        answer : str
            What such samples get.
        """
        empty: NDArray[np.bool_] = ~np.any(self.observed(X)[:, usable], axis=1)
        if empty.any():
            warnings.warn(
                f"{int(empty.sum())} of {empty.size} samples have no channel that carried "
                f"something in training; they get {answer}.",
                UserWarning,
                stacklevel=4,
            )
        return empty
