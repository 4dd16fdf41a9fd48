"""The loop: many small channel problems solved side by side until each meets its conditions.

Each iteration takes one step in theta and one in W from points extrapolated along the last
progress (inertial proximal alternating minimisation; T. Pock and S. Sabach, 2016). Both steps
minimise quadratic models of U whose curvature begins at a bound, which makes them upper bounds,
and is eased as long as U falls. Where a step would make U rise, the iterate is kept, the momentum
starts anew and the curvature goes back towards the bound, so U never rises. Problems leave the
batch when their first-order conditions hold. No problem ever sees another: results do not depend
on what shares the batch, but for rounding where it shares A.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from idfsmec.solver._array import (
    arange,
    at_least,
    dot_over_classes,
    namespace,
    put,
    to_numpy,
)
from idfsmec.solver.newton import polish
from idfsmec.solver.problem import (
    ChannelProblems,
    fit_product,
    kkt_residuals,
    objective,
    redundancy_product,
)
from idfsmec.solver.steps import (
    start_projection,
    theta_curvature,
    theta_step,
    w_curvature,
    w_step,
)

#: Iterations between two looks at the first-order conditions.
CHECK_EVERY = 20
#: Most problems are solved after this many iterations.
LONG = 400
#: Share of the bound that the curvature is eased to, by this factor an iteration, and how it goes
#: back. W's steps are longer to begin with: theirs is eased less.
EASED_TO, EASED_BY, _BACK_BY = 0.3, 0.97, 2.0
EASED_TO_FOR_W = 0.6
# A device takes as long for a few problems as for thousands; the host is then faster.
_TOO_FEW_FOR_A_DEVICE = 512


@dataclass(frozen=True)
class Solution:
    """What the loop found, for every problem of the batch.

    Attributes
    ----------
    theta : array of shape (b, d)
        Feature weights, on the simplex.
    W : array of shape (b, c, d)
        Projections (transposed).
    objective : array of shape (b,)
        U, never rising from start to end.
    kkt_residual : array of shape (b,)
        The larger of the two residuals of :func:`~idfsmec.solver.problem.kkt_residuals`.
    n_iter : array of shape (b,)
    history : list of (index, value)
        For each iteration the problems still in the batch and their U.
    """

    theta: Any
    W: Any
    objective: Any
    kkt_residual: Any
    n_iter: Any
    history: list[tuple[Any, Any]]

    def course(self, wanted: Any) -> Any:
        """U of some problems after each iteration, where they ended to the end.

        Parameters
        ----------
        wanted : ndarray of shape (m,)
            Their places in the batch.

        Returns
        -------
        ndarray of shape (n, m)
            With as many rows as these problems took iterations, and one for the start.
        """
        place = np.full(self.objective.shape[0], -1)
        place[wanted] = np.arange(wanted.size)
        result = np.empty((len(self.history), wanted.size))
        row = 0
        for _, entries in groupby(self.history, key=lambda entry: id(entry[0])):
            same = list(entries)  # iterations in which the same problems were in the batch
            kept = place[to_numpy(same[0][0])]
            if not (kept >= 0).any():
                return result[:row]
            values = np.stack([to_numpy(value)[kept >= 0] for _, value in same])
            result[row : row + len(same), kept[kept >= 0]] = values
            row += len(same)
            result[row:, kept[kept >= 0]] = values[-1]
        return result


@dataclass(frozen=True)
class Pace:
    """What iterations have come to beside their point, for whoever goes on with them.

    Attributes
    ----------
    n_iter : int
        How many there were: a multiple of :data:`CHECK_EVERY`.
    theta_before, W_before : arrays
        The point before.
    support : array of shape (b, d)
        Features with positive weight when last looked at.
    momentum, ease : arrays of shape (b,)
    """

    n_iter: int
    theta_before: Any
    W_before: Any
    support: Any
    momentum: Any
    ease: Any


@dataclass
class _State:
    """The iterates of the problems still in the batch."""

    index: Any  # place of each problem in the whole batch
    problems: ChannelProblems  # in units of y2
    unit: Any  # that y2
    A_diagonal: Any
    theta_curvature: Any
    theta: Any
    W: Any
    R_theta: Any
    theta_before: Any
    W_before: Any
    R_theta_before: Any
    value: Any
    support: Any  # features with positive weight when last looked at
    momentum: Any  # the sequence t_k of accelerated gradient methods; 1 = no momentum
    ease: Any  # share of the curvature's bound in use

    def take(self, keep: Any) -> _State:
        parts = {name: part[keep] for name, part in vars(self).items() if name != "problems"}
        return _State(problems=self.problems.take(keep), **parts)

    def on_host(self) -> _State:
        parts = {name: to_numpy(part) for name, part in vars(self).items() if name != "problems"}
        problems = ChannelProblems(*(to_numpy(part) for part in vars(self.problems).values()))
        return _State(problems=problems, **parts)


def solve(
    problems: ChannelProblems,
    *,
    tol: float = 1e-6,
    max_iter: int = 10_000,
    start: tuple[Any, Any] | None = None,
    pace: Pace | None = None,
) -> Solution:
    """Minimise U over theta and W for every problem of the batch.

    Parameters
    ----------
    problems : ChannelProblems
        In any unit; every ``y2`` positive.
    tol : float, default=1e-6
        A problem is solved when both KKT residuals are at most this.
    max_iter : int, default=10_000
    start : (theta, W), optional
        Where to begin, W orthonormal; by default :func:`default_start`.
    pace : Pace, optional
        Go on from there instead of beginning anew.

    Examples
    --------
    >>> import numpy as np
    >>> A = np.array([[[4.0, 0.0], [0.0, 4.0]]])
    >>> P = np.array([[[1.5, 0.1], [-1.5, -0.1]]])
    >>> one = ChannelProblems.from_moments(A, P, np.array([2.0]), lam=0.01)
    >>> solve(one).theta
    array([[0.764, 0.236]])
    """
    xp = namespace(problems.A)
    unit = problems.y2
    problems = problems.normalised()
    state = _begin(problems, unit, *(default_start(problems) if start is None else start))
    theta, W, value = state.theta * 1.0, state.W * 1.0, state.value * 1.0
    residual, n_iter = xp.zeros_like(value), xp.zeros_like(value, dtype=xp.int64)
    history = [(state.index, value * unit)]
    if pace is not None:
        _take_up(state, pace)
    for iteration in range(1 if pace is None else pace.n_iter + 1, max_iter + 1):
        _iterate(state)
        if iteration % CHECK_EVERY and iteration < max_iter:
            history.append((state.index, state.value * state.unit))
            continue
        now = _finish(state, tol, patient=iteration >= LONG)
        history.append((state.index, state.value * state.unit))
        for whole, part in (
            (theta, state.theta),
            (W, state.W),
            (value, state.value),
            (residual, now),
        ):
            put(whole, state.index, part)
        put(n_iter, state.index, iteration)
        unsolved = now > tol
        if not bool(unsolved.any()):
            break
        if not bool(unsolved.all()):
            state = state.take(unsolved)
            if state.index.shape[0] <= _TOO_FEW_FOR_A_DEVICE:
                state = state.on_host()
    return Solution(theta, W, value * unit, residual, n_iter, history)


def _finish(state: _State, tol: float, *, patient: bool) -> Any:
    """Try to end by Newton's method where the support has settled; return KKT residuals."""
    xp = namespace(state.theta)
    residual = xp.maximum(*kkt_residuals(state.problems, state.theta, state.W))
    support = state.theta > 0
    settled = xp.all(support == state.support, axis=1) & (residual > 1e-3 * tol)
    state.support = support
    if not bool(xp.any(settled)):
        return residual
    some = state.problems.take(settled)
    theta, W, value = polish(
        some, state.theta[settled], state.W[settled], state.value[settled], tol, patient=patient
    )
    state.theta[settled], state.W[settled], state.value[settled] = theta, W, value
    residual[settled] = xp.maximum(*kkt_residuals(some, theta, W))
    state.R_theta = redundancy_product(state.problems, state.theta)
    return residual


def default_start(problems: ChannelProblems) -> tuple[Any, Any]:
    """Even feature weights and :func:`~idfsmec.solver.steps.start_projection`."""
    xp = namespace(problems.A)
    theta = xp.full_like(problems.P[:, 0, :], 1.0 / problems.shape[2])
    W = start_projection(problems.A, problems.P[:: problems.each])
    return theta, W if problems.each == 1 else np.repeat(W, problems.each, axis=0)


def _begin(problems: ChannelProblems, unit: Any, theta: Any, W: Any) -> _State:
    xp = namespace(problems.A)
    R_theta = redundancy_product(problems, theta)
    return _State(
        index=arange(problems.shape[0], problems.A),
        problems=problems,
        unit=unit,
        A_diagonal=problems.diagonal,
        theta_curvature=theta_curvature(problems),
        theta=theta,
        W=W,
        R_theta=R_theta,
        theta_before=theta,
        W_before=W,
        R_theta_before=R_theta,
        value=objective(problems, theta, W, R_theta),
        support=theta < 0,
        momentum=xp.ones_like(problems.y2),
        ease=xp.ones_like(problems.y2),
    )


def _take_up(state: _State, pace: Pace) -> None:
    state.theta_before, state.W_before = pace.theta_before, pace.W_before
    state.R_theta_before = redundancy_product(state.problems, pace.theta_before)
    state.support, state.momentum, state.ease = pace.support, pace.momentum, pace.ease


def _iterate(state: _State) -> None:
    """One step in theta, one in W, kept where U does not rise."""
    xp = namespace(state.theta)
    problems = state.problems
    momentum = 0.5 + xp.sqrt(0.25 + state.momentum * state.momentum)
    push = ((state.momentum - 1.0) / momentum)[:, None]

    theta_ahead = state.theta + push * (state.theta - state.theta_before)
    R_theta_ahead = state.R_theta + push * (state.R_theta - state.R_theta_before)
    residual = fit_product(problems, theta_ahead, state.W) - problems.P
    by_theta = 2.0 * (dot_over_classes(state.W, residual) + R_theta_ahead)
    theta = theta_step(theta_ahead, by_theta, state.ease * state.theta_curvature)

    W_ahead = state.W + push[:, :, None] * (state.W - state.W_before)
    residual = fit_product(problems, theta, W_ahead) - problems.P
    curvature = w_curvature(problems.A_top, state.A_diagonal, theta)
    W = w_step(W_ahead, theta, residual, at_least(state.ease, EASED_TO_FOR_W) * curvature)

    R_theta = redundancy_product(problems, theta)
    value = objective(problems, theta, W, R_theta)
    better = value <= state.value
    eased = at_least(EASED_BY * state.ease, EASED_TO)
    state.theta_before, state.W_before, state.R_theta_before = state.theta, state.W, state.R_theta
    if xp is np and better.all():  # the usual case; asking a device would cost more than it saves
        state.theta, state.W, state.R_theta = theta, W, R_theta
        state.value, state.momentum, state.ease = value, momentum, eased
        return
    state.theta = xp.where(better[:, None], theta, state.theta)
    state.W = xp.where(better[:, None, None], W, state.W)
    state.R_theta = xp.where(better[:, None], R_theta, state.R_theta)
    state.value = xp.where(better, value, state.value)
    state.momentum = xp.where(better, momentum, xp.ones_like(momentum))
    state.ease = xp.where(better, eased, xp.clip(_BACK_BY * state.ease, 0.0, 1.0))
