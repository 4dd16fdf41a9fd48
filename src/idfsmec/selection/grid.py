"""Rankings of one selector with many settings on many folds, in one go where it can."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, check_consistent_length, has_fit_parameter

#: Parameters to set on a selector.
Setting = Mapping[str, Any]


@runtime_checkable
class GridSelector(Protocol):
    """A selector that ranks features for many settings and folds at once."""

    def rank_grid(
        self,
        X: ArrayLike,
        y: ArrayLike,
        settings: Sequence[Setting],
        *,
        held_out: Sequence[NDArray[np.intp]] | None = None,
        groups: ArrayLike | None = None,
    ) -> NDArray[np.intp]:
        """Give what :func:`rank_grid` gives; leave the selector itself as it is.

        Any settings that ``set_params`` takes must be possible.
        """


def rank_grid(
    selector: BaseEstimator,
    X: ArrayLike,
    y: ArrayLike,
    settings: Sequence[Setting],
    *,
    held_out: Sequence[NDArray[np.intp]] | None = None,
    groups: ArrayLike | None = None,
) -> NDArray[np.intp]:
    """Rank features with every setting of a selector, on every fold.

    A clone is fitted for each, unless the selector is a :class:`GridSelector`.

    Parameters
    ----------
    selector : estimator
        With ``ranking_`` after ``fit``. It is not changed.
    X : array-like of shape (n_samples, n_features)
        Passed on as it is: missing values must be imputed before if the selector takes none.
    y : array-like of shape (n_samples,)
    settings : sequence of mappings
        Parameters of the selector; an empty mapping leaves it as it is.
    held_out : sequence of int arrays, optional
        For each fold the samples that are left out of the fit. By default one fold, with all
        samples.
    groups : array-like of shape (n_samples,), optional
        Subjects, for selectors whose ``fit`` takes ``groups``.

    Returns
    -------
    ranks : ndarray of shape (n_folds, n_settings, n_features)
        1 is the best feature.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from idfsmec.selection import RFS
    >>> X, y = load_iris(return_X_y=True)
    >>> settings = [{"gamma": 0.1}, {"gamma": 10.0}]
    >>> halves = [np.arange(0, 150, 2), np.arange(1, 150, 2)]
    >>> rank_grid(RFS(), X, y, settings, held_out=halves).shape
    (2, 2, 4)
    """
    if isinstance(selector, GridSelector):
        return selector.rank_grid(X, y, settings, held_out=held_out, groups=groups)
    return rank_each(selector, X, y, settings, held_out=held_out, groups=groups)


def rank_each(
    selector: BaseEstimator,
    X: ArrayLike,
    y: ArrayLike,
    settings: Sequence[Setting],
    *,
    held_out: Sequence[NDArray[np.intp]] | None = None,
    groups: ArrayLike | None = None,
) -> NDArray[np.intp]:
    """Rank as :func:`rank_grid` says, by one fit per fold and setting."""
    check_consistent_length(X, y, groups)
    takes_groups = groups is not None and has_fit_parameter(selector, "groups")
    rankings = []
    for kept in training_samples(_num_samples(X), held_out):
        data = {"X": X, "y": y, **({"groups": groups} if takes_groups else {})}
        if held_out is not None:  # a table may be large: no copy of all of it
            data = {name: _safe_indexing(part, kept) for name, part in data.items()}
        fits = [clone(selector).set_params(**setting).fit(**data) for setting in settings]
        rankings.append([fitted.ranking_ for fitted in fits])
    return np.array(rankings, dtype=np.intp)


def training_samples(
    n_samples: int, held_out: Sequence[NDArray[np.intp]] | None
) -> list[NDArray[np.intp]]:
    """Samples that each fold is fitted on: all but those held out."""
    everyone = np.arange(n_samples)
    if held_out is None:
        return [everyone]
    return [np.delete(everyone, left_out) for left_out in held_out]
