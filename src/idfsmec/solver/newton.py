"""The last digits: Newton's method on the first-order conditions of a channel.

Close to a solution the set of features with positive weight no longer changes, and what is left
are smooth equations: the gradient of the Lagrangian vanishes in (theta, W), theta sums to one and
W is orthonormal. One Newton step solves

    [ H  J' ] [ step        ]     [ gradient ]
    [ J  0  ] [ multipliers ] = - [ 0        ]

with H the Hessian of the Lagrangian and J the Jacobian of the constraints.

A step is taken on the features that have weight, without loss (:class:`Support`). A feature of
weight zero enters U only through the length of its row of W: however many there are, an
orthonormal basis of their part of W says all. And labels are one-hot and centred, so the sum of
the columns of W fits nothing; with enough features of weight zero it is best spent on those, where
it costs nothing, and only the differences of columns remain.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import helmert

from idfsmec.solver.problem import (
    ChannelProblems,
    dot,
    dot_over_classes,
    polar,
    project_to_simplex,
    redundancy_product,
    tangent_part,
    transpose,
)

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

# Beyond this many unknowns a Newton step costs more than the first-order steps it replaces.
LARGEST_SYSTEM = 160
_MAX_STEPS, _MAX_STEPS_IF_PATIENT = 8, 40
#: Steps end at this share of the tolerance.
ENOUGH = 1e-3
#: Newton's steps end in rounding noise: this much of U's scale counts as "no higher".
ROUNDING = 1e-13
#: Damping (Levenberg-Marquardt) shortens steps where the Hessian is singular or indefinite. A
#: trace of it is always there: rows of W that belong to features without weight are not
#: determined. Where much is needed, a saddle is near, and first-order steps leave it at less cost;
#: but if these have been tried in vain, the features differ so much in scale that patience pays.
LEAST_DAMPING = 1e-9
FIRST_DAMPING = 1e-3
MOST_DAMPING, MOST_IF_PATIENT = 0.02, 100.0
EASED_BY, _RAISED_BY = 0.1, 30.0

# The rows of P count as adding up to zero below this share of their size.
_CENTRED = 1e-9


def polish(
    problems: ChannelProblems,
    theta: Array,
    W: Array,
    value: Array,
    tol: float,
    *,
    patient: bool = False,
) -> tuple[Array, Array, Array]:
    """Take Newton steps on the support as long as they help and do not raise U."""
    theta, W, value = theta.copy(), W.copy(), value.copy()
    n_positive = np.sum(theta > 0, axis=1)
    plain = ~centred(problems)
    for below, size, differences in _sizes(*W.shape[1:]):
        rows = np.nonzero((n_positive > below) & (n_positive <= size) & (plain != differences))[0]
        if rows.shape[0] == 0:
            continue
        part = (problems.take(rows), theta[rows], W[rows])
        if size < W.shape[2]:
            support = Support(part[1], part[2], size, differences=differences)
            *point, value[rows] = _descend(*support.shorten(*part), value[rows], tol, patient)
            theta[rows], W[rows] = support.restore(*point)
        else:
            theta[rows], W[rows], value[rows] = _descend(*part, value[rows], tol, patient)
    return theta, W, value


def _sizes(n_classes: int, n_features: int) -> list[tuple[int, int, bool]]:
    """Sizes of support that are kept apart: few, so that problems stay together."""
    result: list[tuple[int, int, bool]] = []
    if n_classes > n_features:  # W has orthonormal rows then, which the equations do not know
        return result
    for differences in (True, False):
        n_rows = n_classes - differences
        below = 0
        for size in (n_features // 2, n_features - n_classes, n_features):
            shorter = n_rows > 0 and below < size <= n_features - n_classes
            if shorter and size + n_rows < n_features:
                length = newton_size(size + n_rows, n_rows)
            elif size == n_features:
                length = newton_size(n_features, n_classes)
            else:
                continue
            if length <= LARGEST_SYSTEM:
                result.append((below, size, differences))
            below = size
    return result


class _Point:
    """An iterate and all that follows from it."""

    def __init__(self, problems: ChannelProblems, theta: Array, W: Array) -> None:
        self.theta, self.W = theta, W
        weighted = theta[:, None, :] * W
        self.misfit = weighted @ problems.A - problems.P
        R_theta = redundancy_product(problems, theta)
        self.by_theta = 2.0 * (dot_over_classes(W, self.misfit) + R_theta)
        by_W = 2.0 * theta[:, None, :] * self.misfit
        inner = W @ transpose(by_W)
        # Of the constraint that W is orthonormal.
        self.multipliers = 0.5 * (inner + transpose(inner))
        # The derivative by W along the orthonormal matrices.
        self.tangent = tangent_part(W, by_W)
        redundancy = dot(theta, R_theta)
        self.value = problems.y2 + dot(weighted, self.misfit - problems.P) + redundancy
        # Of the first-order conditions on the support.
        gap = dot(theta, self.by_theta)
        gap -= np.min(np.where(theta > 0, self.by_theta, np.inf), axis=1)
        residual = np.maximum(gap, dot(self.tangent, self.tangent) ** 0.5)
        self.residual = residual / (problems.y2 + redundancy)

    def keep(self, index: NDArray[Any]) -> None:
        """Keep some problems."""
        for name, part in vars(self).items():
            setattr(self, name, part[index])


def _descend(
    problems: ChannelProblems, theta: Array, W: Array, value: Array, tol: float, patient: bool
) -> tuple[Array, Array, Array]:
    """Newton steps for problems of one size."""
    point = _Point(problems, theta, W)
    point.value = value * 1.0
    best, index = (theta.copy(), W.copy(), value.copy()), np.arange(value.shape[0])

    def store() -> None:
        for whole, part in zip(best, (point.theta, point.W, point.value), strict=True):
            whole[index] = part

    damping = np.full_like(value, LEAST_DAMPING)
    most = MOST_IF_PATIENT if patient else MOST_DAMPING
    for _ in range(_MAX_STEPS_IF_PATIENT if patient else _MAX_STEPS):
        new = _Point(problems, *newton_step(problems, point, damping))
        change = new.value - point.value
        rounding = ROUNDING * np.maximum(point.value, problems.y2)
        better = (change < -rounding) | ((change <= rounding) & (new.residual < point.residual))
        new.value = np.minimum(new.value, point.value)
        for name, part in vars(point).items():
            part[better] = getattr(new, name)[better]
        eased = np.maximum(EASED_BY * damping, LEAST_DAMPING)
        damping = np.where(better, eased, np.maximum(_RAISED_BY * damping, FIRST_DAMPING))
        trying = (point.residual > ENOUGH * tol) & (damping < most)
        if not trying.all():
            store()
            if not trying.any():
                return best
            point.keep(trying)
            problems, index, damping = problems.take(trying), index[trying], damping[trying]
    store()
    return best


def newton_size(n_features: int, n_classes: int) -> int:
    """Unknowns of one Newton step."""
    return n_features * (1 + n_classes) + 1 + n_classes * (n_classes + 1) // 2


def newton_step(problems: ChannelProblems, point: _Point, damping: Array) -> tuple[Array, Array]:
    """One Newton step for every problem, to a feasible point; features at zero stay there."""
    theta, W = point.theta, point.W
    n_problems, n_classes, d = W.shape
    n_unknowns = d * (1 + n_classes)
    system = _newton_matrix(problems, point, damping)
    right = np.zeros(system.shape[:2])
    right[:, :d] = -point.by_theta
    right[:, d:n_unknowns] = -np.reshape(point.tangent, (n_problems, -1))
    # The equations of features at zero become "step = 0".
    problem, feature = np.nonzero(theta <= 0)
    system[problem, feature, :] = 0.0
    system[problem, :, feature] = 0.0
    system[problem, feature, feature] = 1.0
    right[problem, feature] = 0.0
    step = _solve_each(system, right)
    moved = theta + step[:, :d]
    W = W + np.reshape(step[:, d:n_unknowns], W.shape)
    return project_to_simplex(np.where(theta > 0, moved, -1.0)), polar(W)


def _solve_each(system: Array, right: Array) -> Array:
    """Solve all systems; one without a solution stands still and does not hold up the others."""
    try:
        return np.asarray(np.linalg.solve(system, right[:, :, None])[:, :, 0], dtype=np.float64)
    except np.linalg.LinAlgError:
        step = np.zeros_like(right)
        for problem, matrix in enumerate(system):
            with suppress(np.linalg.LinAlgError):
                step[problem] = np.linalg.solve(matrix, right[problem])
        return step


def _newton_matrix(problems: ChannelProblems, point: _Point, damping: Array) -> Array:
    """The damped Hessian of the Lagrangian, bordered by the Jacobian of the constraints."""
    theta, W = point.theta, point.W
    n_problems, n_classes, d = W.shape
    size, eye = newton_size(d, n_classes), np.arange(d)
    system = np.zeros((n_problems, size, size))
    by_A = 2.0 * problems.A
    system[:, :d, :d] = by_A * (transpose(W) @ W) + 2.0 * problems.R
    weighted = by_A * theta[:, :, None]  # Theta A
    quadratic = weighted * theta[:, None, :]
    for k in range(n_classes):
        rows = slice(d * (1 + k), d * (2 + k))
        mixed = weighted * W[:, k, None, :]
        mixed[:, eye, eye] += 2.0 * point.misfit[:, k, :]
        system[:, rows, :d] = mixed
        system[:, :d, rows] = transpose(mixed)
        system[:, rows, rows] = quadratic
        for other in range(n_classes):
            columns = eye + d * (1 + other)
            system[:, eye + d * (1 + k), columns] -= point.multipliers[:, k, other, None]
    row = d * (1 + n_classes)
    system[:, np.arange(row), np.arange(row)] += damping[:, None]
    system[:, row, :d] = 1.0
    system[:, :d, row] = 1.0
    for k in range(n_classes):
        for other in range(k, n_classes):
            row += 1
            for target, source in ((k, other), (other, k)):
                where = slice(d * (1 + target), d * (2 + target))
                system[:, row, where] += W[:, source, :]
                system[:, where, row] += W[:, source, :]
    return system


def centred(problems: ChannelProblems) -> NDArray[np.bool_]:
    """Whether the rows of P add up to zero, as those of one-hot labels do; shape (b,)."""
    excess = np.max(np.abs(np.sum(problems.P, axis=1)), axis=1)
    return np.asarray(excess <= _CENTRED * np.max(np.abs(problems.P), axis=(1, 2)))


class Support:
    """Which features stay, and the basis that stands for the others.

    ``size`` features of every problem stay, at least those with weight. At least as many must be
    left over as there are classes.
    """

    def __init__(self, theta: Array, W: Array, size: int, *, differences: bool) -> None:
        n_features = theta.shape[1]
        number = np.arange(n_features)
        order = np.argsort(np.where(theta > 0, number, number + n_features), axis=1)
        self.kept, self.others = order[:, :size], order[:, size:]
        self.turn: Array | None = None
        if differences:
            # Takes W to the differences of its rows and, last, their sum, which is left to idle
            # features, those without weight; total is the sum's part there.
            self.turn, self.idle = helmert(W.shape[1], full=True)[::-1].copy(), theta <= 0
            W = self.turn @ W
            W, self.total = W[:, :-1], W[:, -1] * self.idle
        # Orthonormal rows that span the others' part of W (turned), (b, n_rows, d - size)
        self.basis = orthonormal_basis(_columns(W, self.others))

    def shorten(
        self, problems: ChannelProblems, theta: Array, W: Array
    ) -> tuple[ChannelProblems, Any, Any]:
        """The problems and a point of them, with the basis in place of the features left out."""
        P = problems.P
        if self.turn is not None:
            P, W = (self.turn @ P)[:, :-1], (self.turn @ W)[:, :-1]
        size, n_rows = self.kept.shape[1], self.basis.shape[1]
        short_theta = np.zeros((P.shape[0], size + n_rows))
        short_theta[:, :size] = np.take_along_axis(theta, self.kept, axis=1)
        short_P = np.zeros((P.shape[0], n_rows, size + n_rows))
        short_P[:, :, :size] = _columns(P, self.kept)
        short_W = np.zeros(short_P.shape)
        short_W[:, :, :size] = _columns(W, self.kept)
        short_W[:, :, size:] = _columns(W, self.others) @ transpose(self.basis)
        problem = np.arange(P.shape[0])[:, None, None]
        square = (problem, self.kept[:, :, None], self.kept[:, None, :])
        A, R = np.zeros((2, P.shape[0], size + n_rows, size + n_rows))
        A[:, :size, :size], R[:, :size, :size] = problems.A[square], problems.R[square]
        return replace(problems, A=A, P=short_P, R=R), short_theta, short_W

    def restore(self, theta: Array, W: Array) -> tuple[Array, Array]:
        """A point of the shortened problems as one of the whole ones."""
        size = self.kept.shape[1]
        length = size + self.others.shape[1]
        whole_theta = np.zeros((theta.shape[0], length))
        np.put_along_axis(whole_theta, self.kept, theta[:, :size], axis=1)
        rows = np.zeros((theta.shape[0], self.basis.shape[1], length))
        parts = W[:, :, :size], W[:, :, size:] @ self.basis
        for columns, part in zip((self.kept, self.others), parts, strict=True):
            np.put_along_axis(rows, columns[:, None, :], part, axis=2)
        if self.turn is None:
            return whole_theta, rows
        turned = np.zeros((theta.shape[0], self.basis.shape[1] + 1, length))
        turned[:, :-1], turned[:, -1] = rows, self._sum_beside(rows)
        return whole_theta, self.turn.T @ turned

    def _sum_beside(self, rows: Array) -> Array:
        """The sum on features without weight, of length one and orthogonal to other rows."""
        # It keeps its direction as far as it can, for momentum; others can take its place.
        order = np.concatenate([self.others, self.kept], axis=1)
        free = rows * self.idle[:, None, :]
        spanned = _columns(np.concatenate([free, self.total[:, None, :]], axis=1), order)
        last = orthonormal_basis(spanned)[:, -1]
        turned = dot(last, spanned[:, -1]) < 0
        result = np.zeros(self.total.shape)
        np.put_along_axis(result, order, np.where(turned[:, None], -last, last), axis=1)
        return result


def orthonormal_basis(M: Array) -> Array:
    """Orthonormal rows that span those of M and, if dependent, more."""
    return transpose(np.linalg.qr(transpose(M))[0])


def _columns(matrices: Array, columns: Indices) -> Array:
    """Columns of each matrix (b, c, d), other ones for every problem."""
    return np.take_along_axis(matrices, columns[:, None, :], axis=2)
