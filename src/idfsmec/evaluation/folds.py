"""Folds by subject, sample or site: which samples train, and which are held out."""

from __future__ import annotations

import warnings
from typing import get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from idfsmec.errors import InputError
from idfsmec.evaluation.protocol import Folds

#: Positions of the samples that train, and of those held out.
Fold = tuple[NDArray[np.intp], NDArray[np.intp]]


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
        ``subject`` keeps all samples of a subject on one side: the test is about new subjects.
        ``sample`` spreads them, so a classifier may recognise the subject instead of the
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
        return _split_sites(labels, groups, sites)
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


def most_splits(y: ArrayLike, subjects: ArrayLike, folds: Folds = "subject") -> int:
    """Return how many folds are possible: the size of the smallest class, in subjects or samples.

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
    """Name a class of one subject, or of one sample."""
    for label in np.unique(labels):
        subjects = groups[labels == label]
        if folds == "sample" and len(subjects) == 1:
            return f"class {label} has one sample only, of subject {subjects[0]}"
        if folds == "subject" and np.unique(subjects).size == 1:
            return f"class {label} has one subject only, {subjects[0]}"
    return "there is no class"


def _split_subjects(
    labels: NDArray, groups: NDArray, n_splits: int, random_state: int
) -> list[Fold]:
    names, first, member = np.unique(groups, return_index=True, return_inverse=True)
    if (labels == labels[first][member]).all():
        # One label per subject: stratify the subjects themselves, so that every fold has its
        # share of subjects of each class, however long their recordings are.
        splitter = StratifiedKFold(n_splits, shuffle=True, random_state=random_state)
        held_out = [test for _, test in splitter.split(names, labels[first])]
        masks = [np.isin(member, test) for test in held_out]
        return [(np.flatnonzero(~mask), np.flatnonzero(mask)) for mask in masks]
    mixed = StratifiedGroupKFold(n_splits, shuffle=True, random_state=random_state)
    return [(np.sort(a), np.sort(b)) for a, b in mixed.split(labels, labels, groups)]


def _split_sites(labels: NDArray, groups: NDArray, sites: ArrayLike | None) -> list[Fold]:
    """Hold out each site once; refuse what cannot be judged so, with what to do instead."""
    if sites is None:
        raise InputError(
            "folds by site need sites, and the table has no column 'site'; name the hospital of "
            "each recording in the manifest's column 'site', or use folds by subject"
        )
    where = np.asarray(sites)
    names = np.unique(where)
    if names.size < 2:
        raise InputError(
            f"folds by site need at least 2 sites; there is {names[0]} alone: use folds by subject"
        )
    for name in names:
        _check_site(name, labels, groups, where)
    return [_hold_out(where, name) for name in names]


def split_remaining_sites(labels: NDArray, groups: NDArray, sites: NDArray) -> list[Fold]:
    """Inner folds: hold out each of the training sites that has two classes.

    Sites with one class alone stay on the training side. There are no such folds (an empty list)
    where fewer than two sites have two classes, where a class would be missing from the training
    side, or where a subject was at two sites.

    Examples
    --------
    >>> y, sites = np.array([0, 1, 0, 1, 0, 0]), np.array(["A", "A", "B", "B", "C", "C"])
    >>> [test.tolist() for _, test in split_remaining_sites(y, np.arange(6), sites)]
    [[0, 1], [2, 3]]
    >>> split_remaining_sites(y[2:], np.arange(4), sites[2:])
    []
    """
    names = np.unique(sites)
    testable = [name for name in names if np.unique(labels[sites == name]).size > 1]
    pairs = np.unique(np.stack([groups, np.unique(sites, return_inverse=True)[1]]), axis=1)
    if len(testable) < 2 or pairs.shape[1] > np.unique(groups).size:
        return []
    folds = [_hold_out(sites, name) for name in testable]
    n_classes = np.unique(labels).size
    complete = all(np.unique(labels[train]).size == n_classes for train, _ in folds)
    return folds if complete else []


def _check_site(name: object, labels: NDArray, groups: NDArray, where: NDArray) -> None:
    here = where == name
    if (own := np.unique(labels[here])).size == 1:
        raise InputError(
            f"site {name} has the class {own[0]} alone: nothing can be judged there; leave the "
            "site out, or use folds by subject"
        )
    if (alone := np.setdiff1d(labels, labels[~here])).size:
        raise InputError(
            f"the class {alone[0]} was recorded at site {name} alone: without the site nobody can "
            "learn it; leave the class out, or use folds by subject"
        )
    if (both := np.intersect1d(groups[here], groups[~here])).size:
        raise InputError(
            f"subject {both[0]} was at site {name} and at another: folds by site would have the "
            "subject on both sides; give each subject one site, or use folds by subject"
        )


def _hold_out(where: NDArray, name: object) -> Fold:
    return np.flatnonzero(where != name), np.flatnonzero(where == name)


def make_inner_folds(
    y: NDArray,
    subjects: NDArray,
    folds: Folds,
    n_splits: int,
    random_state: int,
    sites: NDArray | None = None,
) -> list[Fold]:
    """Split training samples again, in the same way; fewer folds where subjects are few.

    By site only where two of the sites in training can be held out, else by subject, with a
    warning.
    """
    if folds == "site" and sites is not None:
        if splits := split_remaining_sites(y, subjects, sites):
            return splits
        warnings.warn(
            "Inner folds are by subject: fewer than 2 of the sites in training can be held out "
            "there.",
            UserWarning,
            stacklevel=2,
        )
    kind: Folds = "subject" if folds == "site" else folds
    n_splits = min(n_splits, most_splits(y, subjects, kind))
    return make_folds(y, subjects, kind, n_splits, random_state)
