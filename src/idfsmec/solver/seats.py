"""Seats: which fold of every deal each sample is in, and whose it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class Seats:
    """Samples in an order that has those of a cell, and in it those of a person, side by side.

    A cell is a class in a fold of the first deal, in a fold of the second, and so on: sums over
    cells give those of the folds of every deal. A person with samples of two classes is two.

    Attributes
    ----------
    order : ndarray of shape (n,)
        Samples, sorted.
    starts : ndarray of shape (J,)
        Where the samples of each cell begin.
    folds : ndarray of shape (R, J)
        The fold of each cell, by deal.
    classes : ndarray of shape (J,)
    shape : tuple of int
        Numbers of deals, folds and classes.
    person_starts : ndarray of shape (p,), optional
        Where the samples of each person begin; None if each is of somebody else.
    person_cells : ndarray of shape (J,), optional
        Where the people of each cell begin.
    """

    order: Indices
    starts: Indices
    folds: NDArray[np.intp]
    classes: Indices
    shape: tuple[int, int, int]
    person_starts: Indices | None = None
    person_cells: Indices | None = None

    @classmethod
    def of(
        cls,
        fold: NDArray[np.intp],
        codes: NDArray[np.intp],
        shape: tuple[int, int],
        people: NDArray | None = None,
        target: Array | None = None,
    ) -> Seats:
        """Seat samples.

        Parameters
        ----------
        fold : ndarray of shape (R, n)
            Of every sample, by deal.
        codes : ndarray of shape (n,)
            Classes.
        shape : tuple of int
            Numbers of folds and classes.
        people : ndarray of shape (n,), optional
            Whose the samples are; by default each is of somebody else.
        target : ndarray of shape (n,), optional
            A score: samples of a person that differ in it are of two.

        Examples
        --------
        >>> fold, codes = np.array([[1, 0, 0, 1]]), np.array([0, 0, 0, 1])
        >>> seats = Seats.of(fold, codes, (2, 2), people=np.array([7, 5, 5, 7]))
        >>> seats.order.tolist(), seats.starts.tolist(), seats.person_starts.tolist()
        ([1, 2, 0, 3], [0, 2, 3], [0, 2, 3])
        """
        cell = np.ravel_multi_index((*fold, codes), (*[shape[0]] * len(fold), shape[1]))
        keys = [key for key in (target, people) if key is not None]
        order = (
            np.lexsort((*keys, cell)) if people is not None else np.argsort(cell, kind="stable")
        )
        starts = _begins(cell[order])
        first = order[starts]
        seats = (order, starts, fold[:, first], codes[first], (len(fold), *shape))
        if people is None:
            return cls(*seats)
        person_starts = _begins(cell[order], *(key[order] for key in keys))
        return cls(*seats, person_starts, np.searchsorted(person_starts, starts))

    def spread(self, parts: Array) -> Array:
        """Sums over cells (b, J, ...) as sums over folds of every deal (b, R, F, c, ...)."""
        found = np.zeros((len(parts), *self.shape, *parts.shape[2:]))
        for deal, folds in enumerate(self.folds):
            for place, (fold, own) in enumerate(zip(folds, self.classes, strict=True)):
                found[:, deal, fold, own] += parts[:, place]
        return found

    def totals(self, weights: Array | None = None) -> Array:
        """Samples, or their weight, whatever channels they have, shape (R, F, c)."""
        values = np.ones(self.order.size) if weights is None else weights[self.order]
        return self.spread(np.add.reduceat(values, self.starts)[None])[0]

    def seen(self, some: NDArray[np.bool_], weights: Array | None = None) -> Array:
        """Of each class the samples, or their weight, that ``some`` says, in their new order."""
        sizes = np.diff(self.starts, append=self.order.size)
        own = some * (1.0 if weights is None else weights[self.order])
        return np.bincount(np.repeat(self.classes, sizes), own, minlength=self.shape[2]).astype(
            float
        )

    def crowds(self) -> Array:
        """People, whatever channels they have, shape (R, F, c)."""
        starts, size = self.starts, self.order.size
        if self.person_starts is not None and self.person_cells is not None:
            starts, size = self.person_cells, self.person_starts.size
        return self.spread(np.diff(starts, append=size)[None].astype(float))[0]


def _begins(*keys: NDArray[Any]) -> Indices:
    """Where rows differ from those before."""
    new = np.zeros(keys[0].size, dtype=bool)
    new[:1] = True
    for key in keys:
        new[1:] |= key[1:] != key[:-1]
    return np.flatnonzero(new)
