"""idfs_path: the whole grid of redundancy prices and channel weightings in one go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from idfsmec._jobs import one_blas_thread
from idfsmec.selection._base import ranks
from idfsmec.selection.idfsmec._weighing import weigh
from idfsmec.selection.idfsmec.estimator import (
    IDFSMEC,
    PreparedTable,
    warn_of_unsolved,
    warn_of_unusable,
)
from idfsmec.solver import ChannelFits, fold_moments, solve_channels

Array = NDArray[np.float64]

#: The paper's grid of redundancy prices.
LAMS = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)
#: Channel weightings; the paper's grid is 2 ... 9, but values near 1 often do better.
GAMMAS = (1.1, 1.5, 2.0, 3.0, 5.0, 9.0)


@dataclass(frozen=True)
class IDFSPath:
    """Scores and weights for every pair of ``lam`` and ``gamma``.

    Attributes
    ----------
    lams : ndarray of shape (n_lams,)
    gammas : ndarray of shape (n_gammas,)
    scores : ndarray of shape (n_lams, n_gammas, n_features)
    rankings : ndarray of shape (n_lams, n_gammas, n_features)
        1 = best.
    channel_names : ndarray of shape (n_channels,)
    channel_weights : ndarray of shape (n_lams, n_gammas, n_channels)
    feature_weights : ndarray of shape (n_lams, n_features)
        Do not depend on gamma.
    objectives : ndarray of shape (n_lams, n_channels)
    kkt_residuals : ndarray of shape (n_lams, n_channels)
    """

    lams: Array
    gammas: Array
    scores: Array
    rankings: NDArray[np.intp]
    channel_names: NDArray
    channel_weights: Array
    feature_weights: Array
    objectives: Array
    kkt_residuals: Array


def idfs_path(
    X: ArrayLike,
    y: ArrayLike,
    *,
    channels: ArrayLike | None = None,
    lams: Sequence[float] = LAMS,
    gammas: Sequence[float] = GAMMAS,
    sample_weight: ArrayLike | None = None,
    **options: Any,
) -> IDFSPath:
    """Fit :class:`IDFSMEC` for all pairs of ``lam`` and ``gamma``.

    Samples are seen once, all ``lams`` are solved in one batch, and every further ``gamma`` costs
    nothing: a channel's problem does not depend on its weight. Each entry equals what a separate
    fit would give.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        NaN where a channel is missing.
    y : array-like of shape (n_samples,)
    channels : array-like of shape (n_features,), optional
    lams, gammas : sequence of float
    sample_weight : array-like of shape (n_samples,), optional
    **options
        ``standardize``, ``missing_correction``, ``channel_weighting``, ``missing_indicator``,
        ``tol``, ``max_iter``, ``device`` of :class:`IDFSMEC`.

    Returns
    -------
    IDFSPath

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> path = idfs_path(X, y, channels=[0] * 6 + [1] * 7, lams=[0.1, 10.0], gammas=[1.5, 2, 9])
    >>> path.scores.shape
    (2, 3, 13)
    """
    selector, table = _prepare(X, y, channels, lams, gammas, sample_weight, options)
    with one_blas_thread():
        fits = solve_channels([table.moments()], [float(lam) for lam in lams], table.options)
    _warn(selector, fits, 0)
    return weigh_path(fits, 0, table.columns, lams, gammas, selector)


def idfs_fold_paths(
    X: ArrayLike,
    y: ArrayLike,
    held_out: Sequence[NDArray[np.intp]],
    *,
    channels: ArrayLike | None = None,
    lams: Sequence[float] = LAMS,
    gammas: Sequence[float] = GAMMAS,
    **options: Any,
) -> list[IDFSPath]:
    """:func:`idfs_path` of the training part of every fold, all in one batch.

    A training part's moments are those of all samples minus those of the held-out ones. Every
    training part should have all classes; with ``standardize=False`` features are in the units
    of X in every fold.

    Parameters
    ----------
    X, y, channels, lams, gammas, **options
        As in :func:`idfs_path`.
    held_out : sequence of integer arrays
        Samples that each fold leaves out.

    Returns
    -------
    list of IDFSPath
        One for each fold.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> folds = [np.arange(0, 178, 2), np.arange(1, 178, 2)]
    >>> paths = idfs_fold_paths(X, y, folds, channels=[0] * 6 + [1] * 7, lams=[1.0], gammas=[2])
    >>> [path.scores.shape for path in paths]
    [(1, 1, 13), (1, 1, 13)]
    """
    selector, table = _prepare(X, y, channels, lams, gammas, None, options)
    with one_blas_thread():
        moments = fold_moments(table.X, table.codes, table.n_classes, table.columns, held_out)
        fits = solve_channels(moments, [float(lam) for lam in lams], table.options)
    for fold in range(len(held_out)):
        _warn(selector, fits, fold)
    return [
        weigh_path(fits, fold, table.columns, lams, gammas, selector)
        for fold in range(len(held_out))
    ]


def _prepare(
    X: ArrayLike,
    y: ArrayLike,
    channels: ArrayLike | None,
    lams: Sequence[float],
    gammas: Sequence[float],
    sample_weight: ArrayLike | None,
    options: dict[str, Any],
) -> tuple[IDFSMEC, PreparedTable]:
    """Check the grid and the input."""
    selector = IDFSMEC(channels, **options)
    for lam in lams:
        selector.set_params(lam=lam)._options()
    for gamma in gammas:
        selector.set_params(gamma=gamma)._options()
    return selector, selector._prepare(X, y, sample_weight)


def _warn(selector: IDFSMEC, fits: ChannelFits, fold: int) -> None:
    warn_of_unusable(selector.channel_names_, fits.unusable[fold])
    warn_of_unsolved(
        selector.channel_names_,
        fits.kkt_residuals[fold].max(axis=0),
        selector.tol,
        selector.max_iter,
    )


def weigh_path(
    fits: ChannelFits,
    fold: int,
    columns: list[NDArray[np.intp]],
    lams: Sequence[float],
    gammas: Sequence[float],
    selector: IDFSMEC,
) -> IDFSPath:
    """All gammas from the solved channels of one fold."""
    weighings = [
        [
            weigh(
                fits.objectives[fold, place],
                fits.feature_weights[fold, place],
                fits.gains[fold, place],
                columns,
                gamma=gamma,
                channel_weighting=bool(selector.channel_weighting),
            )
            for gamma in gammas
        ]
        for place in range(len(lams))
    ]
    return IDFSPath(
        lams=np.array(lams, dtype=float),
        gammas=np.array(gammas, dtype=float),
        scores=np.array([[one.scores for one in row] for row in weighings]),
        rankings=np.array([[ranks(one.order) for one in row] for row in weighings]),
        channel_names=selector.channel_names_,
        channel_weights=np.array([[one.channel_weights for one in row] for row in weighings]),
        feature_weights=fits.feature_weights[fold],
        objectives=fits.objectives[fold],
        kkt_residuals=fits.kkt_residuals[fold],
    )
