"""People as the units of an audit: a person within a label, and the fold that holds them out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idfsmec.evaluation.folds import Fold, make_folds, most_splits
from idfsmec.evaluation.protocol import Folds
from idfsmec.evaluation.tables import TableArrays

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]


@dataclass(frozen=True)
class People:
    """Who is in a table.

    A person seen under two labels (before and after treatment) counts once within each, and is
    held out as one.

    Parameters
    ----------
    member : ndarray of shape (n_samples,)
        The person of each sample.
    y : ndarray of shape (n_people,)
        Their classes.
    n_classes : int
    """

    member: Codes
    y: Codes
    n_classes: int

    @classmethod
    def of(cls, y: Codes, subjects: Codes, n_classes: int) -> People:
        """Find the people of a table."""
        cells, member = np.unique(subjects * n_classes + y, return_inverse=True)
        return cls(member.astype(np.intp), (cells % n_classes).astype(np.intp), n_classes)

    @property
    def counts(self) -> Codes:
        """People of each class."""
        return np.bincount(self.y, minlength=self.n_classes)

    def mean(self, values: Floats) -> Floats:
        """Mean over the samples of each person, of shape (n_people, ...)."""
        size = np.bincount(self.member, minlength=self.y.size)
        total = np.zeros((self.y.size, *values.shape[1:]))
        np.add.at(total, self.member, values)
        return total / size.reshape(-1, *[1] * (values.ndim - 1))

    def fold_of(self, folds: list[Fold]) -> Codes:
        """In which fold each person is held out."""
        found = np.zeros(self.y.size, dtype=np.intp)
        for place, (_, test) in enumerate(folds):
            found[self.member[test]] = place
        return found

    def deal(self, rng: np.random.Generator, within: Codes | None = None) -> Codes:
        """Deal the labels anew to the people; within sites, if those of the samples are given."""
        if within is None:
            return rng.permutation(self.y)
        of_person = np.zeros(self.y.size, dtype=np.intp)
        of_person[self.member] = within
        dealt = self.y.copy()
        for site in np.unique(of_person):
            own = np.flatnonzero(of_person == site)
            dealt[own] = rng.permutation(self.y[own])
        return dealt


def folds_of(table: TableArrays, n_splits: int, seed: int, folds: Folds = "subject") -> list[Fold]:
    """Folds by person: as many as asked for, or as the smallest class allows; none below two.

    By site, one for each.
    """
    if folds == "site":
        return make_folds(table.y, table.subjects, folds, sites=table.sites)
    most = min(n_splits, most_splits(table.y, table.subjects))
    if most < 2:
        return []
    return make_folds(table.y, table.subjects, "subject", most, seed)
