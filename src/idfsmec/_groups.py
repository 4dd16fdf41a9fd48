"""Who each sample comes from: given as groups, or carried by the table as its index."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_consistent_length

from idfsmec._table_checks import SUBJECT

_said: set[str] = set()


def groups_of(X: Any, groups: ArrayLike | None) -> NDArray | None:
    """Give the groups of samples: those given, or else what an index named "subject" says.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Before it is turned into an array. scikit-learn's splitters keep the index of a DataFrame,
        so groups reach estimators inside ``cross_val_score`` and ``GridSearchCV`` too.
    groups : array-like of shape (n_samples,) or None

    Returns
    -------
    ndarray of shape (n_samples,) or None
        None if there is neither.

    Examples
    --------
    >>> import pandas as pd
    >>> index = pd.Index(["ann", "ann", "bob"], name="subject")
    >>> groups_of(pd.DataFrame({"Cz__alpha": [1.0, 2.0, 3.0]}, index=index), None).tolist()
    ['ann', 'ann', 'bob']
    >>> groups_of(np.zeros((3, 1)), None) is None
    True
    """
    if groups is not None:
        check_consistent_length(X, groups)
        return np.asarray(groups)
    index = getattr(X, "index", None)
    if SUBJECT not in (getattr(index, "names", None) or ()):
        return None
    return np.asarray(X.index.get_level_values(SUBJECT))


def warn_of_split_people(owner: str, stacklevel: int = 3) -> None:
    """Say, once for every kind of estimator, that people may be on both sides of inner folds.

    Parameters
    ----------
    owner : str
        Name of the estimator.
    stacklevel : int
        As of ``warnings.warn``; the default points at who called the caller.
    """
    if owner in _said:
        return
    _said.add(owner)
    warnings.warn(
        f"{owner} got no groups: if several samples come from one person, inner folds tear the "
        "person apart and what they choose is optimistic. Give groups, or an index named "
        f'"{SUBJECT}"; groups=range(n_samples) says that every sample is a person.',
        UserWarning,
        stacklevel=stacklevel,
    )


def name_folds(names: ArrayLike, n_folds: int, n_deals: int = 1) -> NDArray[np.intp]:
    """Deal people to folds by their names alone, so that tables that share no rows agree.

    The fold is eight bytes of the SHA-256 of the name, as text, modulo ``n_folds``: the first
    eight for the first deal, the next for the second. For half as many folds it is the same fold
    modulo that number.

    Parameters
    ----------
    names : array-like of shape (n_samples,)
    n_folds : int
    n_deals : int
        Ways to deal people, each time to be with others in a fold; 4 at most.

    Returns
    -------
    ndarray of shape (n_deals, n_samples)

    Examples
    --------
    >>> name_folds(["ann", "bob", "ann", "eve"], 4).tolist()
    [[2, 2, 2, 3]]
    """
    people, member = np.unique(np.asarray(names).astype(str), return_inverse=True)
    digests = [sha256(name.encode()).digest() for name in people.tolist()]
    return digest_folds(digests, n_folds, n_deals)[:, member]


def digest_folds(digests: Sequence[bytes], n_folds: int, n_deals: int = 1) -> NDArray[np.intp]:
    """Deal people to folds by the SHA-256 of their names; see :func:`name_folds`."""
    numbers = np.frombuffer(b"".join(digests), dtype=">u8").reshape(-1, 4)
    return (numbers[:, :n_deals].T % np.uint64(n_folds)).astype(np.intp)
