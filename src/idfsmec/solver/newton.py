"""The last digits: Newton's method on the first-order conditions of a channel.

Close to a solution the set of features with positive weight no longer changes, and what is left
are smooth equations: the gradient of the Lagrangian vanishes in (theta, W), theta sums to one and
W is orthonormal. One Newton step solves

    [ H  J' ] [ step        ]     [ gradient ]
    [ J  0  ] [ multipliers ] = - [ 0        ]

with H the Hessian of the Lagrangian and J the Jacobian of the constraints.
"""

from __future__ import annotations

from typing import Any

from idfsmec.solver._array import arange, dot_over_classes, namespace, transpose, zeros
from idfsmec.solver.problem import (
    ChannelProblems,
    fit_product,
    kkt_residuals,
    objective,
    redundancy_product,
)
from idfsmec.solver.theta_step import project_to_simplex
from idfsmec.solver.w_step import polar

# Beyond this many unknowns a Newton step costs more than the first-order steps it replaces.
LARGEST_SYSTEM = 160
_MAX_STEPS = 12
# Newton's steps end in rounding noise: this much of U's scale counts as "no higher".
_ROUNDING = 1e-13
# Damping (Levenberg-Marquardt) shortens steps where the Hessian is singular or indefinite. A trace
# of it is always there: rows of W that belong to features without weight are not determined.
_LEAST_DAMPING = 1e-9
_FIRST_DAMPING = 1e-3
_MOST_DAMPING = 1.0


def polish(
    problems: ChannelProblems, theta: Any, W: Any, value: Any, residual: Any, tol: float
) -> tuple[Any, Any, Any, Any]:
    """Take Newton steps as long as they lower the KKT residual and do not raise U.

    Parameters
    ----------
    problems : ChannelProblems
        Normalised to ``y2 = 1``.
    theta, W, value, residual : arrays
        Iterates, their U and their KKT residual.
    tol : float
        Steps go on until the residual is below a thousandth of this, or no step helps.

    Returns
    -------
    theta, W, value, residual : arrays
        Unchanged where no step helped.
    """
    xp = namespace(theta)
    theta, W, value, residual = theta * 1.0, W * 1.0, value * 1.0, residual * 1.0
    damping = xp.full_like(value, _LEAST_DAMPING)
    trying = arange(value.shape[0], value)
    for _ in range(_MAX_STEPS):
        some = problems.take(trying)
        new_theta, new_W = newton_step(some, theta[trying], W[trying], damping[trying])
        new_value = objective(some, new_theta, new_W)
        new_residual = xp.maximum(*kkt_residuals(some, new_theta, new_W))
        rounding = _ROUNDING * xp.maximum(value[trying], problems.y2[trying])
        lower = new_value < value[trying] - rounding
        level = (new_value <= value[trying] + rounding) & (new_residual < residual[trying])
        better = lower | level
        kept = trying[better]
        theta[kept], W[kept] = new_theta[better], new_W[better]
        value[kept] = xp.minimum(value[kept], new_value[better])
        residual[kept] = new_residual[better]
        eased = xp.maximum(0.03 * damping[trying], xp.full_like(rounding, _LEAST_DAMPING))
        raised = xp.maximum(30.0 * damping[trying], xp.full_like(rounding, _FIRST_DAMPING))
        damping[trying] = xp.where(better, eased, raised)
        trying = trying[(residual[trying] > 1e-3 * tol) & (damping[trying] < _MOST_DAMPING)]
        if trying.shape[0] == 0:
            break
    return theta, W, value, residual


def newton_size(n_features: int, n_classes: int) -> int:
    """Unknowns of one Newton step."""
    return n_features * (1 + n_classes) + 1 + n_classes * (n_classes + 1) // 2


def newton_step(problems: ChannelProblems, theta: Any, W: Any, damping: Any) -> tuple[Any, Any]:
    """One Newton step from (theta, W) for every problem; features at zero stay there.

    The result is feasible, but whether it is better is for the caller to check.
    """
    xp = namespace(theta)
    n_problems, n_classes, n_features = W.shape
    n_unknowns = n_features * (1 + n_classes)
    residual = fit_product(problems, theta, W) - problems.P
    by_theta = 2.0 * (dot_over_classes(W, residual) + redundancy_product(problems, theta))
    by_W = 2.0 * theta[:, None, :] * residual
    inner = W @ transpose(by_W)
    multipliers = 0.5 * (inner + transpose(inner))

    size = newton_size(n_features, n_classes)
    system = zeros((n_problems, size, size), theta)
    _fill_hessian(system, problems, theta, W, residual, multipliers)
    diagonal = arange(n_unknowns, theta)
    system[:, diagonal, diagonal] += damping[:, None]
    _fill_constraints(system, W)
    right = zeros((n_problems, size), theta)
    right[:, :n_features] = -by_theta
    right[:, n_features:n_unknowns] = -xp.reshape(by_W - multipliers @ W, (n_problems, -1))
    _freeze(system, right, theta <= 0)

    step = xp.linalg.solve(system, right[:, :, None])[:, :, 0]
    moved = theta + step[:, :n_features]
    W = W + xp.reshape(step[:, n_features:n_unknowns], W.shape)
    return project_to_simplex(xp.where(theta > 0, moved, xp.zeros_like(theta) - 1.0)), polar(W)


def _fill_hessian(
    system: Any, problems: ChannelProblems, theta: Any, W: Any, residual: Any, multipliers: Any
) -> None:
    n_classes, d = W.shape[1:]
    eye = arange(d, theta)
    by_A = 2.0 * problems.A
    system[:, :d, :d] = by_A * (transpose(W) @ W) + 2.0 * problems.R
    weighted = by_A * theta[:, :, None]  # Theta A
    own = weighted * theta[:, None, :]
    for k in range(n_classes):
        rows = slice(d * (1 + k), d * (2 + k))
        mixed = weighted * W[:, k, None, :]
        mixed[:, eye, eye] += 2.0 * residual[:, k, :]
        system[:, rows, :d] = mixed
        system[:, :d, rows] = transpose(mixed)
        system[:, rows, rows] = own
        for other in range(n_classes):
            columns = eye + d * (1 + other)
            system[:, eye + d * (1 + k), columns] -= multipliers[:, k, other, None]


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
