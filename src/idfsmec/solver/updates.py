"""The paper's three updates: feature weights theta, projection W, channel weights alpha.

theta: a projected gradient step on the simplex.

W: one iteration of the generalised power method (GPI). For fixed feature weights, ``min Tr(W'CW) -
2 Tr(W'D)`` over orthonormal W with ``C = Theta A Theta`` and ``D = Theta P``. For any ``eta`` at
least the largest eigenvalue of C, the polar factor of ``(eta I - C) W + D`` costs no more than W
(F. Nie, R. Zhang, X. Li, "A generalized power iteration method for solving quadratic problem on
the Stiefel manifold", 2017).

alpha: closed form, computed once when the channels are solved. ``min sum_v alpha_v^gamma U_v``
over the simplex has ``alpha_v`` proportional to ``U_v^(1 / (1 - gamma))``. A channel's problem
does not depend on its weight, so all values of gamma share one solve.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from idfsmec.solver.problem import ChannelProblems, diagonal, dot, transpose

Array = NDArray[np.float64]

_TINY = 1e-300
#: Costs below this share of a feature's count as zero when the start is chosen.
RIDGE = 1e-6
#: Curvatures are raised by this share, so that (eta I - C) never loses a direction of W.
MARGIN = 1e-4
# A perfect fit has U = 0; this floor, relative to the largest U, keeps its logarithm finite.
_FLOOR = 1e-15


def project_to_simplex(points: Array) -> Array:
    """Nearest points with non-negative entries that sum to 1."""
    # Rows as columns: sums over many short rows are faster there.
    descending = np.ascontiguousarray(np.sort(points, axis=-1)[:, ::-1].T)
    excess = np.cumsum(descending, axis=0) - 1.0
    # As many of the largest are kept as make the threshold largest.
    threshold = np.max(excess / (np.arange(points.shape[-1]) + 1)[:, None], axis=0)
    return np.maximum(points - threshold[:, None], 0.0)


def theta_step(theta: Array, gradient: Array, curvature: Array) -> Array:
    """Minimise the quadratic upper bound of U at ``theta`` over the simplex."""
    return project_to_simplex(theta - gradient / (2.0 * curvature[:, None]))


def theta_curvature(problems: ChannelProblems) -> Array:
    """Upper bound of the largest eigenvalue of ``Q`` for any W, shape (b,).

    For positive semidefinite A the largest eigenvalue of ``A o W W'`` is at most that of A times
    the largest ``|W_j|^2`` (Schur), and at most its trace, ``sum_j A_jj |W_j|^2``. No row of W is
    longer than 1, and their squares sum to c (d, if there are fewer features than classes).
    """
    by_trace = min(problems.shape[1:]) * np.max(problems.diagonal, axis=1)
    return problems.R_top + np.minimum(problems.A_top, by_trace)


def polar(M: Array) -> Array:
    """Nearest matrices with orthonormal rows (columns, if there are more rows than columns)."""
    if M.shape[1] == 1:
        return M / _norm(M[:, 0, :])[:, :, None]
    if M.shape[1] == 2 <= M.shape[2]:
        return _polar_of_two_rows(M)
    left, _, right = np.linalg.svd(M, full_matrices=False)
    return left @ right


def _polar_of_two_rows(M: Array) -> Array:
    """Rotate an orthonormal basis of the two rows to where the rows are.

    With ``M = L Q`` (L lower triangular, Q orthonormal rows), the polar factor of M is that of L,
    a rotation, times Q.
    """
    first, second = M[:, 0, :], M[:, 1, :]
    l11 = _norm(first)
    q1 = first / l11
    l21 = dot(second, q1)[:, None]
    rest = second - l21 * q1
    # Once more: rows that are nearly parallel leave a remainder that is not yet orthogonal.
    rest = rest - dot(rest, q1)[:, None] * q1
    l22 = _norm(rest)
    q2 = rest / l22
    cosine = l11 + l22
    length = np.sqrt(cosine * cosine + l21 * l21)
    cosine, sine = cosine / length, l21 / length
    result = np.empty_like(M)
    result[:, 0, :] = cosine * q1 - sine * q2
    result[:, 1, :] = sine * q1 + cosine * q2
    return result


def _norm(rows: Array) -> Array:
    """Euclidean norms, never zero, shape (b, 1)."""
    return dot(rows, rows)[:, None] ** 0.5 + _TINY


def w_step(W: Array, theta: Array, residual: Array, curvature: Array) -> Array:
    """One GPI iteration."""
    return polar(curvature[:, None, None] * W - theta[:, None, :] * residual)


def w_curvature(A_top: Array, A_diagonal: Array, theta: Array) -> Array:
    """Upper bound of the largest eigenvalue of ``Theta A Theta``, shape (b,)."""
    top = np.ascontiguousarray(theta.T).max(axis=0)  # faster in columns
    by_top = A_top * top * top
    by_trace = dot(A_diagonal * theta, theta)
    return (1.0 + MARGIN) * np.minimum(by_top, by_trace)


def start_projection(A: Array, P: Array) -> Array:
    """The deterministic start: the polar factor of P, completed by cheap directions.

    The rows of P sum to zero (labels are one-hot and centred), so P has at most c - 1 directions
    and its polar factor is not unique. What is left is filled with directions orthogonal to those
    along which A is small, and which depend smoothly on A and P: with fewer samples than features
    A has many directions of cost zero, and rounding must not choose among them.
    """
    left, singular, right = np.linalg.svd(P, full_matrices=False)
    informative = singular > 1e-10 * singular[:, :1] + _TINY
    rank = np.sum(informative * 1, axis=1)
    for r in np.unique(rank).tolist():
        if r < right.shape[1]:
            chosen = rank == r
            right[chosen, r:, :] = _cheap_complement(
                A[chosen], right[chosen, :r, :], right[chosen, :1, :], right.shape[1] - r
            )
    return left @ right


def _cheap_complement(A: Array, directions: Array, leading: Array, n_wanted: int) -> Array:
    """Orthonormal rows of low cost in the complement of ``directions``.

    Two steps of inverse iteration from signed powers of the leading direction, which turn with
    the signs and the order of features as the problem itself does.
    """
    powers = np.concatenate(
        [leading * np.abs(leading) ** (k + 1) for k in range(n_wanted)], axis=1
    )
    identity, inside = np.eye(A.shape[-1]), transpose(directions) @ directions
    outside = identity - inside
    size = np.max(diagonal(A), axis=1)[:, None, None]
    # (I - V V') A (I - V V') with few directions V, without a product of two large matrices.
    across = transpose(directions) @ (directions @ A)
    twice = transpose(directions) @ ((directions @ A @ transpose(directions)) @ directions)
    costs = A - across - transpose(across) + twice + size * (inside + RIDGE * identity)
    once = np.linalg.solve(costs, transpose(powers @ outside))
    found = transpose(np.linalg.solve(costs, once)) @ outside
    found = found / (np.max(np.abs(found), axis=(1, 2)) + _TINY)[:, None, None]
    _, spread, rows = np.linalg.svd(found, full_matrices=False)
    usable = spread[:, -1] > 1e-8 * spread[:, 0]
    if not bool(usable.all()):  # no leading direction to speak of
        inside = transpose(directions[~usable]) @ directions[~usable]
        rows[~usable] = _cheapest_complement(A[~usable], inside, n_wanted)
    return rows


def _cheapest_complement(A: Array, inside: Array, n_wanted: int) -> Array:
    """Eigenvectors of A with the least eigenvalues in the complement of a subspace."""
    outside = np.eye(A.shape[-1]) - inside
    # Lift the subspace above everything else, so that it is never chosen.
    ceiling = 2.0 * np.sum(np.abs(A), axis=(1, 2)) + 1.0
    _, vectors = np.linalg.eigh(outside @ A @ outside + ceiling[:, None, None] * inside)
    return transpose(vectors[:, :, :n_wanted])


def channel_weights(objectives: Array, gamma: float, *, weighting: bool = True) -> Array:
    """Return weights of channels (..., V): the lower the objective, the larger the weight.

    The closer ``gamma`` is to 1, the more the best channel takes.
    """
    if not weighting:
        return np.full_like(objectives, 1.0 / objectives.shape[-1])
    top = np.maximum(objectives.max(axis=-1, keepdims=True), np.finfo(float).tiny)
    logs = np.log(np.maximum(objectives, _FLOOR * top)) / (1.0 - gamma)
    weights = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def total_objective(objectives: Array, gamma: float, *, weighting: bool = True) -> Array:
    """``sum_v alpha_v^gamma U_v`` at the best alpha, for each row of objectives."""
    weights = channel_weights(objectives, gamma, weighting=weighting)
    return np.sum(weights**gamma * objectives, axis=-1)
