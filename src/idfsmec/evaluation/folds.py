"""Folds by subject, sample or site: which samples train, and which are held out."""

from __future__ import annotations

from typing import get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from idfsmec.errors import InputError
from idfsmec.evaluation.protocol import Folds, Protocol
from idfsmec.evaluation.site_folds import Fold, split_sites
from idfsmec.evaluation.tables import TableArrays


def make_folds(
    y: ArrayLike,
    subjects: ArrayLike,
    folds: Folds = "subject",
    n_splits: int = 10,
    random_state: int = 0,
    sites: ArrayLike | None = None,
) -> list[Fold]:
    """Split samples into training and held-out ones, in proportion to the classes or by site.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Class labels.
    subjects : array-like of shape (n_samples,)
        Who each sample comes from.
    folds : {"subject", "sample", "site"}
        ``subject`` keeps all samples of a subject on one side: the test is about new people.
        ``sample`` spreads them, so a classifier may recognise the person instead of the
        condition. ``site`` holds out one site after the other: the test is about new hospitals.
    n_splits : int
        Number of folds; every sample is held out once. Sites have one fold each.
    random_state : int
        Seed of the shuffling; by site nothing is shuffled.
    sites : array-like of shape (n_samples,), optional
        Where each sample was recorded; needed by ``site``.

    Returns
    -------
    list of (train, test)
        Positions of the samples, in rising order.

    Raises
    ------
    InputError
        Some class has too few subjects (or samples) for so many folds. By site: there are no
        sites or one, a site has one class alone, or a subject was at two.

    Examples
    --------
    >>> y, subjects = [0, 0, 1, 1, 0, 1], ["a", "a", "b", "b", "c", "d"]
    >>> for train, test in make_folds(y, subjects, n_splits=2):
    ...     print(sorted({subjects[i] for i in test}))
    ['b', 'c']
    ['a', 'd']
    """
    labels, groups = np.asarray(y), np.asarray(subjects)
    if folds not in get_args(Folds):
        raise InputError(f"folds is {folds!r}; choose 'subject', 'sample' or 'site'")
    if folds == "site":
        return split_sites(labels, groups, sites)
    most = most_splits(labels, groups, folds)
    if not 2 <= n_splits <= most:
        raise InputError(
            f"{n_splits} folds by {folds} are not possible: the smallest class has {most} "
            f"{folds}{'' if most == 1 else 's'}, so n_splits can be 2 to {most}"
            if most >= 2
            else f"{_lone(labels, groups, folds)}: folds by {folds} need at least 2 in each "
            "class; add more, or leave that class out"
        )
    if folds == "sample":
        splitter = StratifiedKFold(n_splits, shuffle=True, random_state=random_state)
        return [(np.sort(a), np.sort(b)) for a, b in splitter.split(labels, labels)]
    return _split_subjects(labels, groups, n_splits, random_state)


def count_folds(table: TableArrays, protocol: Protocol) -> int:
    """Say how many outer folds a table has: as the protocol says, or one for each site."""
    if protocol.folds == "site" and table.sites is not None:
        return int(np.unique(table.sites).size)
    return protocol.n_splits


def most_splits(y: ArrayLike, subjects: ArrayLike, folds: Folds = "subject") -> int:
    """Say how many folds are possible: the size of the smallest class, in subjects or samples.

    Examples
    --------
    >>> most_splits([0, 0, 1, 1, 1], ["a", "a", "b", "c", "c"])
    1
    """
    labels, groups = np.asarray(y), np.asarray(subjects)
    if folds == "sample":
        return int(np.unique(labels, return_counts=True)[1].min())
    return min(np.unique(groups[labels == label]).size for label in np.unique(labels))


def _lone(labels: NDArray, groups: NDArray, folds: Folds) -> str:
    """Name a class of one person, or of one sample."""
    for label in np.unique(labels):
        own = groups[labels == label]
        if folds == "sample" and len(own) == 1:
            return f"class {label} has one sample only, of subject {own[0]}"
        if folds == "subject" and np.unique(own).size == 1:
            return f"class {label} has one subject only, {own[0]}"
    return "there is no class"


def _split_subjects(
    labels: NDArray, groups: NDArray, n_splits: int, random_state: int
) -> list[Fold]:
    names, first, member = np.unique(groups, return_index=True, return_inverse=True)
    if (labels == labels[first][member]).all():
        # One label per subject: stratify the subjects themselves, so that every fold has its
        # share of people of each class, however long their recordings are.
        splitter = StratifiedKFold(n_splits, shuffle=True, random_state=random_state)
        held_out = [test for _, test in splitter.split(names, labels[first])]
        masks = [np.isin(member, test) for test in held_out]
        return [(np.flatnonzero(~mask), np.flatnonzero(mask)) for mask in masks]
    mixed = StratifiedGroupKFold(n_splits, shuffle=True, random_state=random_state)
    return [(np.sort(a), np.sort(b)) for a, b in mixed.split(labels, labels, groups)]
