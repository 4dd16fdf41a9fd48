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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idfsmec.solver._array import (
    diagonal,
    dot,
    dot_over_classes,
    is_large,
    largest_eigenvalues,
    namespace,
    product,
    transpose,
)


@dataclass(frozen=True)
class ChannelProblems:
    """A batch of channel problems with ``d`` features and ``c`` classes each.

    Attributes
    ----------
    A : array of shape (b, d, d)
        Or fewer: one for so many problems in a row.
    P : array of shape (b, c, d)
    y2 : array of shape (b,)
    R : array of shape (b, d, d)
        Squared correlations, already multiplied by ``lam``.
    A_top, R_top : array of shape (b,)
        Largest eigenvalues of A and R.
    """

    A: Any
    P: Any
    y2: Any
    R: Any
    A_top: Any
    R_top: Any

    @classmethod
    def from_moments(cls, A: Any, P: Any, y2: Any, lam: Any = 1.0) -> ChannelProblems:
        """Build the problems; every diagonal entry of ``A`` must be positive.

        With a ``lam`` of 0 large problems have no R in memory.
        """
        xp = namespace(A)
        if is_large(A) and not np.any(lam):
            nothing = np.broadcast_to(np.zeros(1), A.shape)
            return cls(A, P, y2, nothing, largest_eigenvalues(A), np.zeros_like(y2))
        norms = xp.sqrt(diagonal(A))
        R = A / norms[:, :, None]  # large for many features: one more array, changed in place
        R /= norms[:, None, :]
        R *= R
        return cls(A, P, y2, R, largest_eigenvalues(A), largest_eigenvalues(R)).weighted(
            xp.zeros_like(y2) + lam
        )

    def weighted(self, lam: Any) -> ChannelProblems:
        """The same problems with the redundancy weight multiplied by ``lam``, shape (b,)."""
        if self.free_of_redundancy:
            return self
        return replace(self, R=self.R * lam[:, None, None], R_top=self.R_top * lam)

    @property
    def free_of_redundancy(self) -> bool:
        """Whether these are large problems whose R is 0, so that nobody need multiply by it."""
        return is_large(self.A) and not self.R_top.any()

    @property
    def shape(self) -> tuple[int, int, int]:
        """``(b, c, d)``."""
        return self.P.shape

    def normalised(self) -> ChannelProblems:
        """The same problems in units of ``y2``, so that tolerances mean the same everywhere."""
        if isinstance(self.A, np.ndarray) and (self.y2 == 1).all():
            return self
        unit = self.y2[:, None, None]
        return ChannelProblems(
            A=self.A / unit[:: self.each],
            P=self.P / unit,
            y2=self.y2 / self.y2,
            R=self.R if self.free_of_redundancy else self.R / unit,
            A_top=self.A_top / self.y2,
            R_top=self.R_top / self.y2,
        )

    @property
    def diagonal(self) -> Any:
        """Diagonal of A, of every problem, shape (b, d)."""
        own = diagonal(self.A)
        return own if self.each == 1 else np.repeat(own, self.each, axis=0)

    @property
    def each(self) -> int:
        """How many problems in a row have one A."""
        return self.shape[0] // self.A.shape[0]

    def repeated(self, times: int) -> ChannelProblems:
        """Every problem so many times in a row; A is there once for all of them."""
        others = {name: part for name, part in vars(self).items() if name != "A"}
        many = {name: np.repeat(part, times, axis=0) for name, part in others.items()}
        return ChannelProblems(A=self.A, **many)

    def take(self, index: Any) -> ChannelProblems:
        """The problems at ``index``; large moments are not copied where all are meant, or one."""
        if is_large(self.A) and isinstance(index, np.ndarray):
            everyone = np.arange(self.y2.size)
            places = everyone[index]
            if np.array_equal(places, everyone):
                return self
            large = {"A": _shared(self.A, places), "R": _shared(self.R, places)}
            some = {name: part[places] for name, part in vars(self).items() if name not in large}
            return ChannelProblems(**large, **some)
        some = {name: part[index] for name, part in vars(self).items() if name != "A"}
        if self.each > 1:
            index = np.arange(self.shape[0])[index] // self.each
        return ChannelProblems(A=self.A[index], **some)


def _shared(matrices: Any, places: NDArray[np.intp]) -> Any:
    """Matrices at some places, without a copy if it is one for all of them."""
    if places.size and (matrices.strides[0] == 0 or (places == places[0]).all()):
        return np.broadcast_to(matrices[places[0]], (places.size, *matrices.shape[1:]))
    return matrices[places]


def redundancy_product(problems: ChannelProblems, theta: Any) -> Any:
    """``R theta``, shape (b, d)."""
    if problems.free_of_redundancy:
        return np.zeros_like(theta)
    return product(theta[:, None, :], problems.R, theta)[:, 0, :]  # R is symmetric


def fit_product(problems: ChannelProblems, theta: Any, W: Any) -> Any:
    """``(A Theta W)'``, shape (b, c, d): the one product with ``A`` an evaluation needs."""
    return product(theta[:, None, :] * W, problems.A, theta)


def objective(problems: ChannelProblems, theta: Any, W: Any, R_theta: Any = None) -> Any:
    """``U(W, theta)`` of every problem, shape (b,)."""
    if R_theta is None:
        R_theta = redundancy_product(problems, theta)
    weighted = theta[:, None, :] * W
    fit = dot(weighted, product(weighted, problems.A, theta) - 2.0 * problems.P)
    return problems.y2 + fit + dot(theta, R_theta)


def gradients(problems: ChannelProblems, theta: Any, W: Any) -> tuple[Any, Any]:
    """Partial derivatives of U by ``theta`` (b, d) and by ``W`` (b, c, d)."""
    residual = fit_product(problems, theta, W) - problems.P
    by_theta = 2.0 * (dot_over_classes(W, residual) + redundancy_product(problems, theta))
    by_W = 2.0 * theta[:, None, :] * residual
    return by_theta, by_W


def kkt_residuals(problems: ChannelProblems, theta: Any, W: Any) -> tuple[Any, Any]:
    """How far (theta, W) is from satisfying the first-order conditions, relative to U's scale.

    Returns
    -------
    theta_gap : array of shape (b,)
        ``theta' g - min_j g_j`` with g the gradient: an upper bound on what changing theta alone
        could still gain, 0 exactly at the optimum on the simplex.
    W_gradient : array of shape (b,)
        Norm of the gradient projected on the tangent space of ``{W : W'W = I}``.
    """
    xp = namespace(theta)
    by_theta, by_W = gradients(problems, theta, W)
    scale = problems.y2 + dot(theta, redundancy_product(problems, theta))
    theta_gap = dot(theta, by_theta) - xp.min(by_theta, axis=1)
    tangent = tangent_part(W, by_W)
    return theta_gap / scale, xp.sqrt(dot(tangent, tangent)) / scale


def tangent_part(W: Any, direction: Any) -> Any:
    """Project ``direction`` on the tangent space at ``W`` (stored transposed).

    For more classes than features the rows of ``W'`` rather than its columns are orthonormal, so
    the shorter side is the one whose symmetric part is removed.
    """
    if W.shape[1] <= W.shape[2]:
        inner = direction @ transpose(W)
        return direction - 0.5 * (inner + transpose(inner)) @ W
    inner = transpose(W) @ direction
    return direction - 0.5 * W @ (inner + transpose(inner))
