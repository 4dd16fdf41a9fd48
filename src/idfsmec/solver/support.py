"""A channel's problem on the features that have weight, without loss.

A feature of weight zero enters U only through the length of its row of W. However many there are,
an orthonormal basis of their part of W (at most c directions) says all: with it in their place the
problem has the same values and gradients, and a Newton step is the same step at a fraction of
the cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from idfsmec.solver._array import arange, namespace, transpose, zeros
from idfsmec.solver.problem import ChannelProblems


@dataclass(frozen=True)
class Support:
    """Which features stay, and the basis that stands for the others.

    Attributes
    ----------
    kept : integer array of shape (b, size)
        All features with weight, filled up with others.
    others : integer array of shape (b, d - size)
    basis : array of shape (b, c, d - size)
        Orthonormal rows that span the others' part of W (stored transposed).
    """

    kept: Any
    others: Any
    basis: Any

    @classmethod
    def of(cls, theta: Any, W: Any, size: int) -> Support:
        """Keep ``size`` features of every problem, at least those with weight.

        At least as many must be left over as there are classes.
        """
        xp = namespace(theta)
        n_features = theta.shape[1]
        place = arange(n_features, theta)
        order = xp.argsort(xp.where(theta > 0, place, place + n_features), axis=1)
        kept, others = order[:, :size], order[:, size:]
        left, _ = xp.linalg.qr(transpose(_columns(W, others)))
        return cls(kept, others, transpose(left))

    def shorten(
        self, problems: ChannelProblems, theta: Any, W: Any
    ) -> tuple[ChannelProblems, Any, Any]:
        """The problems and a point of them, with the basis in place of the features left out."""
        size, n_classes = self.kept.shape[1], self.basis.shape[1]
        length = size + n_classes
        A = zeros((self.kept.shape[0], length, length), problems.A)
        R, P = zeros(A.shape, A), zeros((A.shape[0], n_classes, length), A)
        place = (_rows(self.kept, 2), self.kept[:, :, None], self.kept[:, None, :])
        A[:, :size, :size] = problems.A[place]
        R[:, :size, :size] = problems.R[place]
        P[:, :, :size] = _columns(problems.P, self.kept)
        short = ChannelProblems(A, P, problems.y2, R, problems.A_top, problems.R_top)
        short_theta, short_W = zeros((A.shape[0], length), A), zeros(P.shape, A)
        short_theta[:, :size] = theta[_rows(self.kept, 1), self.kept]
        short_W[:, :, :size] = _columns(W, self.kept)
        short_W[:, :, size:] = _columns(W, self.others) @ transpose(self.basis)
        return short, short_theta, short_W

    def restore(self, theta: Any, W: Any) -> tuple[Any, Any]:
        """A point of the shortened problems as one of the whole ones."""
        size = self.kept.shape[1]
        length = size + self.others.shape[1]
        whole_theta = zeros((theta.shape[0], length), theta)
        whole_theta[_rows(self.kept, 1), self.kept] = theta[:, :size]
        whole_W = zeros((*W.shape[:2], length), W)
        _set_columns(whole_W, self.kept, W[:, :, :size])
        _set_columns(whole_W, self.others, W[:, :, size:] @ self.basis)
        return whole_theta, whole_W


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
