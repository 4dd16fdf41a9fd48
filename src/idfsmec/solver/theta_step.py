"""The step in the feature weights: a projected gradient step on the simplex."""

from __future__ import annotations

from typing import Any

from idfsmec.solver._array import arange, cumulative_sum, diagonal, namespace
from idfsmec.solver.problem import ChannelProblems


def project_to_simplex(points: Any) -> Any:
    """Nearest points with non-negative entries that sum to 1.

    Parameters
    ----------
    points : array of shape (b, d)

    Examples
    --------
    >>> import numpy as np
    >>> project_to_simplex(np.array([[0.0, 0.5, 1.0]]))
    array([[0.  , 0.25, 0.75]])
    """
    xp = namespace(points)
    descending = -xp.sort(-points, axis=-1)
    excess = cumulative_sum(descending) - 1.0
    position = arange(points.shape[-1], points) + 1
    kept = (descending * position > excess).sum(-1)
    threshold = excess[arange(points.shape[0], points), kept - 1] / kept
    return xp.maximum(points - threshold[:, None], xp.zeros_like(points))


def theta_step(theta: Any, gradient: Any, curvature: Any) -> Any:
    """Minimise the quadratic upper bound of U at ``theta`` over the simplex.

    Parameters
    ----------
    theta : array of shape (b, d)
        Where the bound touches U; need not lie on the simplex.
    gradient : array of shape (b, d)
    curvature : array of shape (b,)
        At least the largest eigenvalue of ``Q = lam R + A o W W'``; then U never rises.
    """
    return project_to_simplex(theta - gradient / (2.0 * curvature[:, None]))


def theta_curvature(problems: ChannelProblems) -> Any:
    """Upper bound of the largest eigenvalue of ``Q`` for any W, shape (b,).

    For positive semidefinite A the largest eigenvalue of ``A o W W'`` is at most that of A times
    the largest ``|W_j|^2`` (Schur), and at most its trace, ``sum_j A_jj |W_j|^2``. No row of W is
    longer than 1, and their squares sum to c (d, if there are fewer features than classes).
    """
    xp = namespace(problems.A)
    by_trace = min(problems.shape[1:]) * xp.max(diagonal(problems.A), axis=1)
    return problems.R_top + xp.minimum(problems.A_top, by_trace)
