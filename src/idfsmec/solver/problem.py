"""The optimisation problem of one channel, and the paper's updates, for a batch at once.

With ``theta`` the feature weights and ``W`` the orthonormal projection, the bias already
minimised over, channel v costs

    U(W, theta) = y2 + theta' (A o W W') theta - 2 sum_j theta_j (P_j . W_j) + lam theta' R theta

where ``A = Xc Xc'``, ``P = Yc Xc'`` and ``y2 = ||Yc||^2`` are moments about the observed mean,
``R_ij = A_ij^2 / (A_ii A_jj)`` is the squared correlation of features i and j, and ``o`` is the
element-wise product. Nothing here depends on the number of samples.

Arrays put the batch first and features last: ``W`` is stored transposed, shape (b, c, d).

The paper's updates. theta: a projected gradient step on the simplex.

W: one iteration of the generalised power method (GPI). For fixed feature weights, ``min Tr(W'CW) -
2 Tr(W'D)`` over orthonormal W with ``C = Theta A Theta`` and ``D = Theta P``. For any ``eta`` at
least the largest eigenvalue of C, the polar factor of ``(eta I - C) W + D`` costs no more than W
(F. Nie, R. Zhang, X. Li, "A generalized power iteration method for solving quadratic problem on
the Stiefel manifold", 2017).

alpha, the weights of channels: closed form, computed once when the channels are solved. ``min
sum_v alpha_v^gamma U_v`` over the simplex has ``alpha_v`` proportional to ``U_v^(1 / (1 -
gamma))``. A channel's problem does not depend on its weight, so all values of gamma share one
solve.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import eigsh

Array = NDArray[np.float64]

# Beyond this many features all eigenvalues take much longer than the largest one, and few
# features have a weight.
_LARGE = 200
_TINY = 1e-300
#: Costs below this share of a feature's count as zero when the start is chosen.
RIDGE = 1e-6
#: Curvatures are raised by this share, so that (eta I - C) never loses a direction of W.
MARGIN = 1e-4
# A perfect fit has U = 0; this floor, relative to the largest U, keeps its logarithm finite.
_FLOOR = 1e-15
# NumPy 2 has it as a function of its own, which is faster.
_dot_of_rows: Callable[[Array, Array], Array] = getattr(
    np, "vecdot", partial(np.einsum, "bd,bd->b")
)


@dataclass(frozen=True)
class ChannelProblems:
    """A batch of b channel problems with d features and c classes each."""

    A: Array  # (b, d, d)
    P: Array  # (b, c, d)
    y2: Array  # (b,)
    R: Array  # squared correlations, already multiplied by lam, (b, d, d)
    A_top: Array  # largest eigenvalues of A, (b,)
    R_top: Array  # and of R

    @classmethod
    def from_moments(cls, A: Array, P: Array, y2: Array, lam: Any = 1.0) -> ChannelProblems:
        """Build the problems; every diagonal entry of ``A`` must be positive."""
        norms = np.sqrt(diagonal(A))
        R = A / norms[:, :, None]
        R /= norms[:, None, :]
        R *= R
        tops = largest_eigenvalues(A), largest_eigenvalues(R)
        return cls(A, P, y2, R, *tops).weighted(np.zeros_like(y2) + lam)

    def weighted(self, lam: Array) -> ChannelProblems:
        """Multiply the redundancy weight of each problem by ``lam``, shape (b,)."""
        return replace(self, R=self.R * lam[:, None, None], R_top=self.R_top * lam)

    def normalised(self) -> ChannelProblems:
        """Give the same problems in units of ``y2``, so that tolerances mean the same."""
        if (self.y2 == 1).all():
            return self
        unit = self.y2[:, None, None]
        moments = (self.A / unit, self.P / unit, self.y2 / self.y2, self.R / unit)
        return ChannelProblems(*moments, self.A_top / self.y2, self.R_top / self.y2)

    def take(self, index: Any) -> ChannelProblems:
        """Give the problems at ``index``."""
        return ChannelProblems(*(part[index] for part in vars(self).values()))


def dot(left: Array, right: Array) -> Array:
    """Return inner products, one for each problem of the batch, shape (b,)."""
    if left.ndim == 3:
        left, right = (part.reshape(part.shape[0], -1) for part in (left, right))
    return _dot_of_rows(left, right)


def dot_over_classes(left: Array, right: Array) -> Array:
    """``sum_k left[:, k, :] * right[:, k, :]``, shape (b, d)."""
    return np.asarray(np.einsum("bcd,bcd->bd", left, right))


def transpose(array: Array) -> Array:
    """Swap the last two axes."""
    return array.swapaxes(-1, -2)


def diagonal(matrices: Array) -> Array:
    """Diagonals of a batch of square matrices."""
    index = np.arange(matrices.shape[-1])
    return matrices[..., index, index]


def largest_eigenvalues(matrices: Array) -> Array:
    """Largest eigenvalue of each symmetric matrix, (b,); of large ones by Lanczos, rounded up."""
    if matrices.shape[-1] <= _LARGE:
        return np.asarray(np.linalg.eigvalsh(matrices)[:, -1], dtype=np.float64)
    start = np.random.default_rng(0).normal(size=matrices.shape[-1])
    tops = [
        eigsh(matrix, k=1, which="LA", v0=start, tol=1e-4, return_eigenvectors=False)[0]
        for matrix in matrices
    ]
    return (1.0 + 1e-3) * np.array(tops)


def product(rows: Array, matrices: Array, weights: Array) -> Array:
    """Return ``rows @ matrices``, (b, c, d), where rows are 0 wherever weights (b, d) are."""
    if matrices.shape[-1] <= _LARGE:
        return rows @ matrices
    # Few features have a weight: the moments of the others are not read.
    result = np.empty(rows.shape)
    for b, weight in enumerate(weights):
        (support,) = weight.nonzero()
        few = 3 * support.size < weight.size
        result[b] = rows[b][:, support] @ matrices[b][support] if few else rows[b] @ matrices[b]
    return result


def redundancy_product(problems: ChannelProblems, theta: Array) -> Array:
    """``R theta``, shape (b, d)."""
    if not problems.R_top.any():
        return np.zeros_like(theta)
    return product(theta[:, None, :], problems.R, theta)[:, 0, :]  # R is symmetric


def fit_product(problems: ChannelProblems, theta: Array, W: Array) -> Array:
    """``(A Theta W)'``, shape (b, c, d): the one product with ``A`` an evaluation needs."""
    return product(theta[:, None, :] * W, problems.A, theta)


def objective(
    problems: ChannelProblems, theta: Array, W: Array, R_theta: Array | None = None
) -> Array:
    """``U(W, theta)`` of every problem, shape (b,)."""
    if R_theta is None:
        R_theta = redundancy_product(problems, theta)
    weighted = theta[:, None, :] * W
    fit = dot(weighted, product(weighted, problems.A, theta) - 2.0 * problems.P)
    return problems.y2 + fit + dot(theta, R_theta)


def gradients(problems: ChannelProblems, theta: Array, W: Array) -> tuple[Array, Array]:
    """Partial derivatives of U by ``theta`` (b, d) and by ``W`` (b, c, d)."""
    residual = fit_product(problems, theta, W) - problems.P
    by_theta = 2.0 * (dot_over_classes(W, residual) + redundancy_product(problems, theta))
    by_W = 2.0 * theta[:, None, :] * residual
    return by_theta, by_W


def kkt_residuals(problems: ChannelProblems, theta: Array, W: Array) -> tuple[Array, Array]:
    """Return how far theta and W are from the first-order conditions, relative to U's scale."""
    by_theta, by_W = gradients(problems, theta, W)
    scale = problems.y2 + dot(theta, redundancy_product(problems, theta))
    # A bound on what changing theta alone could still gain.
    theta_gap = dot(theta, by_theta) - np.min(by_theta, axis=1)
    tangent = tangent_part(W, by_W)
    return theta_gap / scale, np.sqrt(dot(tangent, tangent)) / scale


def tangent_part(W: Array, direction: Array) -> Array:
    """Project ``direction`` on the tangent space of the orthonormal matrices at ``W``."""
    # The shorter side is orthonormal: its symmetric part is removed.
    if W.shape[1] <= W.shape[2]:
        inner = direction @ transpose(W)
        return direction - 0.5 * (inner + transpose(inner)) @ W
    inner = transpose(W) @ direction
    return direction - 0.5 * W @ (inner + transpose(inner))


def project_to_simplex(points: Array) -> Array:
    """Nearest points with non-negative entries that sum to 1."""
    # Rows as columns: sums over many short rows are faster there.
    descending = np.ascontiguousarray(np.sort(points, axis=-1)[:, ::-1].T)
    excess = np.cumsum(descending, axis=0) - 1.0
    # As many of the largest are kept as make the threshold largest.
    threshold = np.max(excess / (np.arange(points.shape[-1]) + 1)[:, None], axis=0)
    return np.asarray(np.maximum(points - threshold[:, None], 0.0))


def theta_step(theta: Array, gradient: Array, curvature: Array) -> Array:
    """Minimise the quadratic upper bound of U at ``theta`` over the simplex."""
    return project_to_simplex(theta - gradient / (2.0 * curvature[:, None]))


def theta_curvature(problems: ChannelProblems) -> Array:
    """Upper bound of the largest eigenvalue of ``Q`` for any W, shape (b,).

    For positive semidefinite A the largest eigenvalue of ``A o W W'`` is at most that of A times
    the largest ``|W_j|^2`` (Schur), and at most its trace, ``sum_j A_jj |W_j|^2``. No row of W is
    longer than 1, and their squares sum to c (d, if there are fewer features than classes).
    """
    by_trace = min(problems.P.shape[1:]) * np.max(diagonal(problems.A), axis=1)
    return np.asarray(problems.R_top + np.minimum(problems.A_top, by_trace))


def polar(M: Array) -> Array:
    """Nearest matrices with orthonormal rows (columns, if there are more rows than columns)."""
    if M.shape[1] == 1:
        return M / _norm(M[:, 0, :])[:, :, None]
    if M.shape[1] == 2 <= M.shape[2]:
        return _polar_of_two_rows(M)
    left, _, right = np.linalg.svd(M, full_matrices=False)
    return np.asarray(left @ right)


def _polar_of_two_rows(M: Array) -> Array:
    """With ``M = L Q``, L lower triangular: the polar factor of L, a rotation, times Q."""
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
    return (1.0 + MARGIN) * np.asarray(np.minimum(by_top, by_trace))


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
    return np.asarray(left @ right)


def _cheap_complement(A: Array, directions: Array, leading: Array, n_wanted: int) -> Array:
    """Orthonormal rows of low cost in the complement of ``directions``, by inverse iteration."""
    # Signed powers turn with the signs and the order of features as the problem itself does.
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
    cheapest = transpose(np.linalg.solve(costs, once)) @ outside
    cheapest = cheapest / (np.max(np.abs(cheapest), axis=(1, 2)) + _TINY)[:, None, None]
    _, spread, rows = np.linalg.svd(cheapest, full_matrices=False)
    usable = spread[:, -1] > 1e-8 * spread[:, 0]
    if not bool(usable.all()):  # no leading direction to speak of
        # The cheapest eigenvectors; what is inside is lifted above all, so as not to be chosen.
        A, inside, outside = A[~usable], inside[~usable], outside[~usable]
        ceiling = 2.0 * np.sum(np.abs(A), axis=(1, 2)) + 1.0
        _, vectors = np.linalg.eigh(outside @ A @ outside + ceiling[:, None, None] * inside)
        rows[~usable] = transpose(vectors[:, :, :n_wanted])
    return rows


def channel_weights(objectives: Array, gamma: float, *, weighting: bool = True) -> Array:
    """Return weights of channels (..., V): the lower the objective, the larger the weight."""
    if not weighting:
        return np.full_like(objectives, 1.0 / objectives.shape[-1])
    top = np.maximum(objectives.max(axis=-1, keepdims=True), np.finfo(float).tiny)
    logs = np.log(np.maximum(objectives, _FLOOR * top)) / (1.0 - gamma)
    weights = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def total_objective(objectives: Array, gamma: float, *, weighting: bool = True) -> Array:
    """``sum_v alpha_v^gamma U_v`` at the best alpha, for each row of objectives."""
    weights = channel_weights(objectives, gamma, weighting=weighting)
    return np.asarray(np.sum(weights**gamma * objectives, axis=-1))
