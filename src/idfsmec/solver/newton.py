"""The last digits: Newton's method on the first-order conditions of a channel.

Close to a solution the set of features with positive weight no longer changes, and what is left
are smooth equations: the gradient of the Lagrangian vanishes in (theta, W), theta sums to one and
W is orthonormal. One Newton step solves

    [ H  J' ] [ step        ]     [ gradient ]
    [ J  0  ] [ multipliers ] = - [ 0        ]

with H the Hessian of the Lagrangian and J the Jacobian of the constraints.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from idfsmec.solver._array import arange, dot, dot_over_classes, namespace, transpose, zeros
from idfsmec.solver.problem import ChannelProblems, redundancy_product, tangent_part
from idfsmec.solver.steps import polar, project_to_simplex
from idfsmec.solver.support import Support, centred

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


def polish(
    problems: ChannelProblems, theta: Any, W: Any, value: Any, tol: float, *, patient: bool = False
) -> tuple[Any, Any, Any]:
    """Take Newton steps on the support as long as they help and do not raise U.

    Parameters
    ----------
    problems : ChannelProblems
        Normalised to ``y2 = 1``.
    theta, W, value : arrays
        Iterates and their U.
    tol : float
        Steps go on until the first-order conditions hold on the support to a thousandth of this,
        or no step helps.
    patient : bool, default=False
        Go on where only short steps help.

    Returns
    -------
    theta, W, value : arrays
        Unchanged where no step helped.
    """
    xp = namespace(theta)
    theta, W, value = theta * 1.0, W * 1.0, value * 1.0
    n_positive = xp.sum((theta > 0) * 1, axis=1)
    plain = ~centred(problems)
    for below, size, differences in _sizes(*W.shape[1:]):
        some = xp.nonzero((n_positive > below) & (n_positive <= size) & (plain != differences))[0]
        if some.shape[0] == 0:
            continue
        part = (problems.take(some), theta[some], W[some])
        if size < W.shape[2]:
            support = Support.of(part[1], part[2], size, differences=differences)
            *point, value[some] = _descend(*support.shorten(*part), value[some], tol, patient)
            theta[some], W[some] = support.restore(*point)
        else:
            theta[some], W[some], value[some] = _descend(*part, value[some], tol, patient)
    return theta, W, value


def _sizes(n_classes: int, n_features: int) -> list[tuple[int, int, bool]]:
    """Sizes of support that are kept apart: few, so that problems stay together.

    Returns
    -------
    list of (below, size, differences)
        Problems with more than ``below`` and at most ``size`` features that have weight, and
        whether only differences of classes matter, see :class:`~idfsmec.solver.support.Support`.
    """
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


@dataclass
class _Point:
    """An iterate and all that follows from it."""

    theta: Any
    W: Any
    misfit: Any  # A Theta W - P
    by_theta: Any
    tangent: Any  # the derivative by W along the orthonormal matrices
    multipliers: Any  # of the constraint that W is orthonormal
    value: Any
    residual: Any  # of the first-order conditions on the support

    @classmethod
    def at(cls, problems: ChannelProblems, theta: Any, W: Any) -> _Point:
        xp = namespace(theta)
        weighted = theta[:, None, :] * W
        misfit = weighted @ problems.A - problems.P
        R_theta = redundancy_product(problems, theta)
        by_theta = 2.0 * (dot_over_classes(W, misfit) + R_theta)
        by_W = 2.0 * theta[:, None, :] * misfit
        inner = W @ transpose(by_W)
        multipliers = 0.5 * (inner + transpose(inner))
        tangent = tangent_part(W, by_W)
        redundancy = dot(theta, R_theta)
        steepest = xp.min(xp.where(theta > 0, by_theta, xp.inf), axis=1)
        residual = xp.maximum(dot(theta, by_theta) - steepest, dot(tangent, tangent) ** 0.5)
        value = problems.y2 + dot(weighted, misfit - problems.P) + redundancy
        scale = problems.y2 + redundancy
        return cls(theta, W, misfit, by_theta, tangent, multipliers, value, residual / scale)

    def take(self, index: Any) -> _Point:
        return _Point(*(part[index] for part in vars(self).values()))

    def replace(self, where: Any, other: _Point) -> None:
        for name, part in vars(self).items():
            part[where] = getattr(other, name)[where]


def _descend(
    problems: ChannelProblems, theta: Any, W: Any, value: Any, tol: float, patient: bool
) -> tuple[Any, Any, Any]:
    """Newton steps for problems of one size."""
    xp = namespace(theta)
    point = _Point.at(problems, theta, W)
    point.value = value * 1.0
    found = (theta * 1.0, W * 1.0, value * 1.0)
    index = arange(value.shape[0], value)
    damping = xp.full_like(value, LEAST_DAMPING)
    most = MOST_IF_PATIENT if patient else MOST_DAMPING
    for _ in range(_MAX_STEPS_IF_PATIENT if patient else _MAX_STEPS):
        new = _Point.at(problems, *newton_step(problems, point, damping))
        change = new.value - point.value
        rounding = ROUNDING * xp.maximum(point.value, problems.y2)
        better = (change < -rounding) | ((change <= rounding) & (new.residual < point.residual))
        new.value = xp.minimum(new.value, point.value)
        point.replace(better, new)
        damping = xp.where(
            better,
            xp.clip(EASED_BY * damping, LEAST_DAMPING, None),
            xp.clip(_RAISED_BY * damping, FIRST_DAMPING, None),
        )
        trying = (point.residual > ENOUGH * tol) & (damping < most)
        if not bool(trying.all()):
            _store(found, index, point)
            if not bool(trying.any()):
                return found
            point, problems = point.take(trying), problems.take(trying)
            index, damping = index[trying], damping[trying]
    _store(found, index, point)
    return found


def _store(found: tuple[Any, Any, Any], index: Any, point: _Point) -> None:
    for whole, part in zip(found, (point.theta, point.W, point.value), strict=True):
        whole[index] = part


def newton_size(n_features: int, n_classes: int) -> int:
    """Unknowns of one Newton step."""
    return n_features * (1 + n_classes) + 1 + n_classes * (n_classes + 1) // 2


def newton_step(problems: ChannelProblems, point: _Point, damping: Any) -> tuple[Any, Any]:
    """One Newton step for every problem; features at zero stay there.

    The result is feasible, but whether it is better is for the caller to check.
    """
    theta, W = point.theta, point.W
    xp = namespace(theta)
    n_problems, n_classes, n_features = W.shape
    n_unknowns = n_features * (1 + n_classes)
    size = newton_size(n_features, n_classes)
    system = zeros((n_problems, size, size), theta)
    _fill_hessian(system, problems, point)
    diagonal = arange(n_unknowns, theta)
    system[:, diagonal, diagonal] += damping[:, None]
    _fill_constraints(system, W)
    right = zeros((n_problems, size), theta)
    right[:, :n_features] = -point.by_theta
    right[:, n_features:n_unknowns] = -xp.reshape(point.tangent, (n_problems, -1))
    _freeze(system, right, theta <= 0)

    step = _solve_each(system, right)
    moved = theta + step[:, :n_features]
    W = W + xp.reshape(step[:, n_features:n_unknowns], W.shape)
    return project_to_simplex(xp.where(theta > 0, moved, xp.zeros_like(theta) - 1.0)), polar(W)


def _solve_each(system: Any, right: Any) -> Any:
    """Solve all systems; one without a solution stands still and does not hold up the others."""
    solve = namespace(system).linalg.solve
    try:
        return solve(system, right[:, :, None])[:, :, 0]
    except np.linalg.LinAlgError:
        step = np.zeros_like(right)
        for place, own in enumerate(system):
            with suppress(np.linalg.LinAlgError):
                step[place] = np.linalg.solve(own, right[place])
        return step


def _fill_hessian(system: Any, problems: ChannelProblems, point: _Point) -> None:
    theta, W = point.theta, point.W
    n_classes, d = W.shape[1:]
    eye = arange(d, theta)
    by_A = 2.0 * problems.A
    system[:, :d, :d] = by_A * (transpose(W) @ W) + 2.0 * problems.R
    weighted = by_A * theta[:, :, None]  # Theta A
    own = weighted * theta[:, None, :]
    for k in range(n_classes):
        rows = slice(d * (1 + k), d * (2 + k))
        mixed = weighted * W[:, k, None, :]
        mixed[:, eye, eye] += 2.0 * point.misfit[:, k, :]
        system[:, rows, :d] = mixed
        system[:, :d, rows] = transpose(mixed)
        system[:, rows, rows] = own
        for other in range(n_classes):
            columns = eye + d * (1 + other)
            system[:, eye + d * (1 + k), columns] -= point.multipliers[:, k, other, None]


def _fill_constraints(system: Any, W: Any) -> None:
    n_classes, d = W.shape[1:]
    row = d * (1 + n_classes)
    system[:, row, :d] = 1.0
    system[:, :d, row] = 1.0
    for k in range(n_classes):
        for other in range(k, n_classes):
            row += 1
            for target, source in ((k, other), (other, k)):
                where = slice(d * (1 + target), d * (2 + target))
                system[:, row, where] += W[:, source, :]
                system[:, where, row] += W[:, source, :]


def _freeze(system: Any, right: Any, frozen: Any) -> None:
    """Replace the equations of frozen feature weights by ``step = 0``."""
    xp = namespace(right)
    d = frozen.shape[1]
    problem, feature = xp.nonzero(frozen)
    system[problem, feature, :] = 0.0
    system[problem, :, feature] = 0.0
    system[problem, feature, feature] = 1.0
    right[:, :d] = xp.where(frozen, xp.zeros_like(right[:, :d]), right[:, :d])
