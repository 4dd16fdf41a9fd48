"""A channel's problem on the features that have weight, without loss.

Two things shorten it. A feature of weight zero enters U only through the length of its row of W:
however many there are, an orthonormal basis of their part of W says all. And labels are one-hot
and centred, so the sum of the columns of W fits nothing; with enough features of weight zero it is
best spent on those, where it costs nothing, and only the differences of columns remain. The
shortened problem has the same values and gradients, and a Newton step on it is the same step at a
fraction of the cost.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import helmert

from idfsmec.solver._array import arange, concat, dot, namespace, to_device, transpose, zeros
from idfsmec.solver.problem import ChannelProblems

# The rows of P count as adding up to zero below this share of their size.
_CENTRED = 1e-9
# Rows shorter than this have no direction: their squares leave the range of floating point.
_TINY = 1e-140


def centred(problems: ChannelProblems) -> Any:
    """Whether the rows of P add up to zero, as those of one-hot labels do; shape (b,)."""
    xp = namespace(problems.P)
    excess = xp.max(xp.abs(xp.sum(problems.P, axis=1)), axis=1)
    return excess <= _CENTRED * xp.max(xp.abs(problems.P), axis=(1, 2))


@dataclass(frozen=True)
class Support:
    """Which features stay, and the basis that stands for the others.

    Attributes
    ----------
    kept : integer array of shape (b, size)
        All features with weight, filled up with others.
    others : integer array of shape (b, d - size)
    basis : array of shape (b, n_rows, d - size)
        Orthonormal rows that span the others' part of W (stored transposed, turned).
    turn : array of shape (c, c), optional
        Takes W to the differences of its rows and, last, their sum, which is left to features
        without weight.
    idle : array of shape (b, d), optional
        Which these are.
    total : array of shape (b, d), optional
        The sum's part there.
    """

    kept: Any
    others: Any
    basis: Any
    turn: Any = None
    idle: Any = None
    total: Any = None

    @classmethod
    def of(cls, theta: Any, W: Any, size: int, *, differences: bool) -> Support:
        """Keep ``size`` features of every problem, at least those with weight.

        At least as many must be left over as there are classes.
        """
        xp = namespace(theta)
        n_features = theta.shape[1]
        place = arange(n_features, theta)
        order = xp.argsort(xp.where(theta > 0, place, place + n_features), axis=1)
        kept, others = order[:, :size], order[:, size:]
        if not differences:
            return cls(kept, others, orthonormal_basis(_columns(W, others)))
        turn, idle = _differences(W), theta <= 0
        W = turn @ W
        basis = orthonormal_basis(_columns(W[:, :-1], others))
        return cls(kept, others, basis, turn, idle, W[:, -1] * idle)

    @property
    def _n_rows(self) -> int:
        """Rows of W that are left."""
        return self.basis.shape[1]

    def shorten(
        self, problems: ChannelProblems, theta: Any, W: Any
    ) -> tuple[ChannelProblems, Any, Any]:
        """The problems and a point of them, with the basis in place of the features left out."""
        P = problems.P
        if self.turn is not None:
            P, W = (self.turn @ P)[:, :-1], (self.turn @ W)[:, :-1]
        size, n_rows = self.kept.shape[1], self._n_rows
        short_theta = zeros((P.shape[0], size + n_rows), P)
        short_theta[:, :size] = theta[_rows(self.kept, 1), self.kept]
        short_P = zeros((P.shape[0], n_rows, size + n_rows), P)
        short_P[:, :, :size] = _columns(P, self.kept)
        short_W = zeros(short_P.shape, P)
        short_W[:, :, :size] = _columns(W, self.kept)
        short_W[:, :, size:] = _columns(W, self.others) @ transpose(self.basis)
        A, R = (self._short_square(part) for part in (problems.A, problems.R))
        return replace(problems, A=A, P=short_P, R=R), short_theta, short_W

    def _short_square(self, matrices: Any) -> Any:
        size = self.kept.shape[1]
        length = size + self._n_rows
        short = zeros((matrices.shape[0], length, length), matrices)
        short[:, :size, :size] = matrices[
            _rows(self.kept, 2), self.kept[:, :, None], self.kept[:, None, :]
        ]
        return short

    def restore(self, theta: Any, W: Any) -> tuple[Any, Any]:
        """A point of the shortened problems as one of the whole ones."""
        size = self.kept.shape[1]
        length = size + self.others.shape[1]
        whole_theta = zeros((theta.shape[0], length), theta)
        whole_theta[_rows(self.kept, 1), self.kept] = theta[:, :size]
        rows = zeros((theta.shape[0], self._n_rows, length), W)
        _set_columns(rows, self.kept, W[:, :, :size])
        _set_columns(rows, self.others, W[:, :, size:] @ self.basis)
        if self.turn is None:
            return whole_theta, rows
        turned = zeros((theta.shape[0], self._n_rows + 1, length), W)
        turned[:, :-1], turned[:, -1] = rows, self._sum_beside(rows)
        return whole_theta, self.turn.T @ turned

    def _sum_beside(self, rows: Any) -> Any:
        """The sum on features without weight, of length one and orthogonal to other rows.

        It keeps its direction as far as it can: whoever goes on from here has momentum.
        """
        xp = namespace(rows)
        order = concat([self.others, self.kept])  # there are always others to take its place
        free = rows * self.idle[:, None, :]
        spanned = _columns(concat([free, self.total[:, None, :]]), order)
        found = orthonormal_basis(spanned)[:, -1]
        turned = dot(found, spanned[:, -1]) < 0
        result = zeros(self.total.shape, rows)
        result[_rows(order, 1), order] = xp.where(turned[:, None], -found, found)
        return result


def orthonormal_basis(M: Any) -> Any:
    """Orthonormal rows that span those of M and, where these are dependent, more.

    By Householder's reflections of all matrices at once: libraries for devices factorise small
    matrices one after another.

    Parameters
    ----------
    M : array of shape (b, c, m)
        With c at most m.

    Examples
    --------
    >>> basis = orthonormal_basis(np.array([[[3.0, 4.0, 0.0], [6.0, 8.0, 0.0]]]))
    >>> np.allclose(basis @ basis.swapaxes(1, 2), np.eye(2))
    True
    """
    xp = namespace(M)
    mirrors = []
    for k in range(M.shape[1]):
        mirror = M[:, k, :] * 1.0
        mirror[:, :k] = 0.0
        size = dot(mirror, mirror) ** 0.5
        mirror[:, k] += xp.where(mirror[:, k] < 0, -size, size)
        size = dot(mirror, mirror)[:, None] ** 0.5
        long_enough = size > _TINY
        mirror = mirror * long_enough / xp.where(long_enough, size, xp.ones_like(size))
        M = _reflect(M, mirror)
        mirrors.append(mirror)
    basis = zeros(M.shape, M)
    place = arange(M.shape[1], M)
    basis[:, place, place] = 1.0
    for mirror in reversed(mirrors):
        basis = _reflect(basis, mirror)
    return basis


def _reflect(M: Any, mirror: Any) -> Any:
    return M - 2.0 * (M @ mirror[:, :, None]) * mirror[:, None, :]


def _differences(W: Any) -> Any:
    """An orthogonal matrix whose last row is constant, beside W."""
    turn = helmert(W.shape[1], full=True)[::-1].copy()
    return turn if isinstance(W, np.ndarray) else to_device(turn, W.device)


def _rows(columns: Any, n_more: int) -> Any:
    return arange(columns.shape[0], columns)[(slice(None), *(None,) * n_more)]


def _place(columns: Any, n_classes: int) -> tuple[Any, Any, Any]:
    classes = arange(n_classes, columns)[None, :, None]
    return _rows(columns, 2), classes, columns[:, None, :]


def _columns(matrices: Any, columns: Any) -> Any:
    """Columns of each matrix (b, c, d), other ones for every problem."""
    return matrices[_place(columns, matrices.shape[1])]


def _set_columns(matrices: Any, columns: Any, values: Any) -> None:
    matrices[_place(columns, matrices.shape[1])] = values
