"""idfs_path: the whole grid of redundancy weights and channel weightings in one go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from idfsmec._validation import SequenceOf, check_parameters, samples_of
from idfsmec.selection.defaults import GAMMAS, LAMS
from idfsmec.selection.idfsmec import GAMMA, IDFSMEC, LAM, OPTIONS

Array = NDArray[np.float64]

_GRID = {"lams": [SequenceOf(LAM)], "gammas": [SequenceOf(GAMMA)]}


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
    X: Any,
    y: ArrayLike | None = None,
    *,
    channels: ArrayLike | None = None,
    lams: Sequence[float] = LAMS,
    gammas: Sequence[float] = GAMMAS,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    **options: Any,
) -> IDFSPath:
    """Fit :class:`IDFSMEC` for all pairs of ``lam`` and ``gamma``.

    Samples are seen once, all ``lams`` are solved in one batch, and every further ``gamma`` costs
    nothing: a channel's problem does not depend on its weight. Each entry equals what a separate
    fit would give.

    Parameters
    ----------
    X, y, groups, sample_weight
        As of :meth:`IDFSMEC.fit`.
    channels : array-like of shape (n_features,), optional
    lams, gammas : sequence of float
    **options
        ``channel_loss``, ``lam_scale``, ``standardize``, ``missing_correction``,
        ``channel_weighting``, ``missing_indicator``, ``tol``, ``max_iter``, ``device`` of
        :class:`IDFSMEC`.

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
    check_parameters(
        "idfs_path", {**_GRID, **OPTIONS}, {"lams": lams, "gammas": gammas, **options}
    )
    table = IDFSMEC(channels, **options).check_table(*samples_of(X, y), groups, sample_weight)
    fits = table.solve(lams)
    fits.warn(stacklevel=3)
    grid = [[fits.weigh(gamma, lam=row) for gamma in gammas] for row in range(len(lams))]
    solved = fits.channels
    return IDFSPath(
        lams=np.array(lams, dtype=float),
        gammas=np.array(gammas, dtype=float),
        scores=np.array([[weighing.scores for weighing in row] for row in grid]),
        rankings=np.array([[weighing.ranking for weighing in row] for row in grid]),
        channel_names=table.channel_names,
        channel_weights=np.array([[weighing.channel_weights for weighing in row] for row in grid]),
        feature_weights=solved.feature_weights[0],
        objectives=solved.objectives[0],
        kkt_residuals=solved.kkt_residuals[0],
    )
