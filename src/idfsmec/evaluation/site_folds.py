"""Folds by site: one hospital after the other is held out, and no other people of it are known."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from idfsmec.errors import InputError

Fold = tuple[NDArray[np.intp], NDArray[np.intp]]


def split_sites(labels: NDArray, groups: NDArray, sites: ArrayLike | None) -> list[Fold]:
    """Hold out each site once; refuse what cannot be judged so, with what to do instead.

    Parameters
    ----------
    labels, groups : ndarray of shape (n_samples,)
        Classes and subjects.
    sites : array-like of shape (n_samples,), optional
    """
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
    whole = [name for name in names if np.unique(labels[sites == name]).size > 1]
    torn = np.unique(np.stack([groups, np.unique(sites, return_inverse=True)[1]]), axis=1)
    if len(whole) < 2 or torn.shape[1] > np.unique(groups).size:
        return []
    folds = [_hold_out(sites, name) for name in whole]
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
