"""Folds: samples split by participant, by sample or by site, stratified by class or score."""

from __future__ import annotations

import warnings
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from idfsmec._validation import split_by_score
from idfsmec.errors import InputError

#: A fold holds out at least so many participants with a score, so that these can be ranked.
FEWEST_SCORES = 4
#: What is held out together.
FoldUnit = Literal["subject", "sample", "site"]
#: Positions of the samples that train, and of those held out.
Fold = tuple[NDArray[np.intp], NDArray[np.intp]]


def make_folds(
    y: ArrayLike,
    subjects: ArrayLike,
    folds: FoldUnit = "subject",
    n_splits: int = 10,
    random_state: int = 0,
    sites: ArrayLike | None = None,
    *,
    numeric: bool = False,
) -> list[Fold]:
    """Split samples into training and held-out ones, in proportion to the classes or by site.

    With a score (``numeric``) all folds have low and high ones alike.

    ``folds`` says what stays together: the samples of a subject, single samples (so that subjects
    are in training and test), or a site. Sites are held out in the order of their names. Every
    sample is held out once; positions are in rising order.
    """
    labels, groups = np.asarray(y), np.asarray(subjects)
    if folds not in get_args(FoldUnit):
        raise InputError(f"folds is {folds!r}; choose 'subject', 'sample' or 'site'")
    if folds == "site":
        return _split_sites(labels, groups, sites, numeric)
    unit = "sample" if folds == "sample" else "participant"
    units = np.arange(labels.size) if folds == "sample" else groups
    most = most_splits(labels, units, numeric=numeric)
    if units.size == 0:
        raise InputError("there are no samples to split")
    if numeric:
        n_units = np.unique(units).size
        if not 2 <= n_splits <= most:
            possible = f"give 2 to {most}" if most > 1 else "add more"
            raise InputError(
                f"{n_splits} folds by {unit} are not possible: there are {n_units} {unit}s with a "
                f"score, and a fold holds out at least {FEWEST_SCORES}; {possible}"
            )
        member = np.unique(units, return_inverse=True)[1]
        scores = pd.Series(labels).groupby(member).mean()
        part = split_by_score(scores, n_splits, np.random.RandomState(random_state))[member]
        return [_hold_out(part, number) for number in range(n_splits)]
    if most == 1:
        label = next(k for k in np.unique(labels) if np.unique(units[labels == k]).size == 1)
        name = groups[labels == label][0]
        lone = f"one {unit} only, {'of participant ' if folds == 'sample' else ''}{name}"
        raise InputError(
            f"class {label} has {lone}: folds by {unit} need at least 2 in each class; add more, "
            "or leave that class out"
        )
    if not 2 <= n_splits <= most:
        raise InputError(
            f"{n_splits} folds by {unit} are not possible: the smallest class has {most} "
            f"{unit}s; give 2 to {most}"
        )
    shuffled: dict[str, Any] = {"shuffle": True, "random_state": random_state}
    names, first, member = np.unique(units, return_index=True, return_inverse=True)
    if (labels == labels[first][member]).all():
        # One label per subject: stratify the subjects themselves, so that every fold has its
        # share of subjects of each class, however long their recordings are.
        splits = StratifiedKFold(n_splits, **shuffled).split(names, labels[first])
        masks = [np.isin(member, test) for _, test in splits]
        return [(np.flatnonzero(~mask), np.flatnonzero(mask)) for mask in masks]
    mixed = StratifiedGroupKFold(n_splits, **shuffled).split(labels, labels, groups)
    return [(np.sort(train), np.sort(test)) for train, test in mixed]


def most_splits(y: ArrayLike, units: ArrayLike, *, numeric: bool = False) -> int:
    """Return how many folds are possible: the number of units in the smallest class.

    With a score every fold holds out at least four units.
    """
    if numeric:
        return int(np.unique(np.asarray(units)).size) // FEWEST_SCORES
    y, units = np.asarray(y), np.asarray(units)
    return min((np.unique(units[y == label]).size for label in np.unique(y)), default=0)


def _split_sites(
    labels: NDArray[Any], groups: NDArray[Any], sites: ArrayLike | None, numeric: bool
) -> list[Fold]:
    """Hold out each site once; refuse sites that cannot be scored, with a remedy."""
    if sites is None:
        raise InputError(
            "folds by site need sites, and the table has no column 'site'; name the hospital of "
            "each recording in the manifest's column 'site', or use folds by participant"
        )
    where = np.asarray(sites)
    names = np.unique(where)
    if names.size < 2:
        raise InputError(
            f"folds by site need at least 2 sites; there is {names[0]} alone: use folds by "
            "participant"
        )
    for name in names:
        here = where == name
        n_here = np.unique(groups[here]).size
        if numeric and n_here < FEWEST_SCORES:
            raise InputError(
                f"site {name} has {n_here} participants with a score, and at least "
                f"{FEWEST_SCORES} are needed to rank them; leave the site out, or use folds by "
                "participant"
            )
        if not numeric and (present := np.unique(labels[here])).size == 1:
            raise InputError(
                f"site {name} has the class {present[0]} alone, so no score can be computed "
                "there; leave the site out, or use folds by participant"
            )
        if not numeric and (alone := np.setdiff1d(labels, labels[~here])).size:
            raise InputError(
                f"the class {alone[0]} was recorded at site {name} alone: without the site it "
                "cannot be learned; leave the class out, or use folds by participant"
            )
        if (both := np.intersect1d(groups[here], groups[~here])).size:
            raise InputError(
                f"participant {both[0]} was at site {name} and at another: folds by site would "
                "have the participant in training and test; give each participant one site, or "
                "use folds by participant"
            )
    return [_hold_out(where, name) for name in names]


def _hold_out(where: NDArray[Any], name: object) -> Fold:
    return np.flatnonzero(where != name), np.flatnonzero(where == name)


def make_inner_folds(
    y: NDArray[Any],
    subjects: NDArray[Any],
    folds: FoldUnit,
    n_splits: int,
    random_state: int,
    sites: NDArray[Any] | None = None,
    *,
    numeric: bool = False,
) -> list[Fold]:
    """Split training samples again, in the same way; fewer folds where subjects are few.

    By site each of the training sites that has two classes is held out. By subject, with a
    warning, where fewer than two sites have two classes, where a class would be missing from the
    training side, or where a subject was at two sites.
    """
    if folds == "site" and sites is not None:
        values, least = (subjects, FEWEST_SCORES) if numeric else (y, 2)
        both = [n for n in np.unique(sites) if np.unique(values[sites == n]).size >= least]
        splits = [_hold_out(sites, name) for name in both]
        complete = numeric or all(
            np.unique(y[train]).size == np.unique(y).size for train, _ in splits
        )
        torn = any(np.intersect1d(subjects[train], subjects[test]).size for train, test in splits)
        if len(splits) > 1 and complete and not torn:
            return splits
        warnings.warn(
            "Inner folds are by participant: fewer than 2 of the sites in training can be held "
            "out there.",
            UserWarning,
            stacklevel=2,
        )
    unit: FoldUnit = "subject" if folds == "site" else folds
    units = np.arange(y.size) if unit == "sample" else subjects
    n_splits = min(n_splits, most_splits(y, units, numeric=numeric))
    return make_folds(y, subjects, unit, n_splits, random_state, numeric=numeric)
