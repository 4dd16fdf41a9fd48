"""The optimisation problem of one channel, for a batch of channels at once.

With ``theta`` the feature weights and ``W`` the orthonormal projection, the bias already
minimised over, channel v costs

    U(W, theta) = y2 + theta' (A o W W') theta - 2 sum_j theta_j (P_j . W_j) + lam theta' R theta

where ``A = Xc Xc'``, ``P = Yc Xc'`` and ``y2 = ||Yc||^2`` are moments about the observed mean,
``R_ij = A_ij^2 / (A_ii A_jj)`` is the squared correlation of features i and j, and ``o`` is the
element-wise product. Nothing here depends on the number of samples.

Arrays put the batch first and features last: ``W`` is stored transposed, shape (b, c, d).
"""

from __future__ import annotations

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
# NumPy 2 has it as a function of its own, which is faster.
_dot_of_rows = getattr(np, "vecdot", partial(np.einsum, "bd,bd->b"))


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

    @property
    def shape(self) -> tuple[int, int, int]:
        """``(b, c, d)``."""
        return self.P.shape

    def normalised(self) -> ChannelProblems:
        """Give the same problems in units of ``y2``, so that tolerances mean the same."""
        if (self.y2 == 1).all():
            return self
        unit = self.y2[:, None, None]
        moments = (self.A / unit, self.P / unit, self.y2 / self.y2, self.R / unit)
        return ChannelProblems(*moments, self.A_top / self.y2, self.R_top / self.y2)

    @property
    def diagonal(self) -> Array:
        """Diagonal of A, shape (b, d)."""
        return diagonal(self.A)

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
    return np.einsum("bcd,bcd->bd", left, right)


def transpose(array: Array) -> Array:
    """Swap the last two axes."""
    return array.swapaxes(-1, -2)


def diagonal(matrices: Array) -> Array:
    """Diagonals of a batch of square matrices."""
    index = np.arange(matrices.shape[-1])
    return matrices[..., index, index]


def largest_eigenvalues(matrices: Array) -> Array:
    """Largest eigenvalue of each symmetric matrix, shape (b,).

    For large matrices by Lanczos' method, rounded up by its tolerance.
    """
    if matrices.shape[-1] <= _LARGE:
        return np.asarray(np.linalg.eigvalsh(matrices)[:, -1], dtype=np.float64)
    start = np.random.default_rng(0).normal(size=matrices.shape[-1])
    tops = [
        eigsh(matrix, k=1, which="LA", v0=start, tol=1e-4, return_eigenvectors=False)[0]
        for matrix in matrices
    ]
    return (1.0 + 1e-3) * np.array(tops)


def product(rows: Array, matrices: Array, weights: Array) -> Array:
    """Return ``rows @ matrices`` of shape (b, c, d), where rows are 0 wherever weights (b, d) are.

    Few features of a large problem have a weight: the moments of the others are not read.
    """
    if matrices.shape[-1] <= _LARGE:
        return rows @ matrices
    result = np.empty(rows.shape)
    for b, weight in enumerate(weights):
        (some,) = weight.nonzero()
        few = 3 * some.size < weight.size
        result[b] = rows[b][:, some] @ matrices[b][some] if few else rows[b] @ matrices[b]
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
    """Return how far (theta, W) is from the first-order conditions, relative to U's scale.

    The first is ``theta' g - min_j g_j`` with g the gradient: an upper bound on what changing
    theta alone could still gain. The second is the norm of the gradient projected on the tangent
    space of ``{W : W'W = I}``.
    """
    by_theta, by_W = gradients(problems, theta, W)
    scale = problems.y2 + dot(theta, redundancy_product(problems, theta))
    theta_gap = dot(theta, by_theta) - np.min(by_theta, axis=1)
    tangent = tangent_part(W, by_W)
    return theta_gap / scale, np.sqrt(dot(tangent, tangent)) / scale


def tangent_part(W: Array, direction: Array) -> Array:
    """Project ``direction`` on the tangent space at ``W`` (stored transposed).

    For more classes than features the rows of ``W'`` rather than its columns are orthonormal, so
    the shorter side is the one whose symmetric part is removed.
    """
    if W.shape[1] <= W.shape[2]:
        inner = direction @ transpose(W)
        return direction - 0.5 * (inner + transpose(inner)) @ W
    inner = transpose(W) @ direction
    return direction - 0.5 * W @ (inner + transpose(inner))
