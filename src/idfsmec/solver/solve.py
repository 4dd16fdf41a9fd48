"""Solve all channels of a table: from sums to feature weights, objectives and held-out losses.

:func:`solve` minimises many small channel problems side by side until each meets its conditions.
Each iteration takes one step in theta and one in W from points extrapolated along the last
progress (inertial proximal alternating minimisation; T. Pock and S. Sabach, 2016). Both steps
minimise quadratic models of U whose curvature begins at a bound, which makes them upper bounds,
and is eased as long as U falls. Where a step would make U rise, the iterate is kept, the momentum
starts anew and the curvature goes back towards the bound, so U never rises. Problems leave the
batch when their first-order conditions hold; Newton's method ends them where the set of features
with weight has settled. No problem sees another: results do not depend on what shares the batch.

:func:`solve_channels` poses the problems of all channels, folds and redundancy weights and solves
those with equally many usable features in one batch. :func:`held_out_losses` gives what the
regressions of channels cost on subjects that they have not seen. The loss on the training samples
is no fair judge of channels: a channel that one class hardly has is easy to predict from, because
nearly always the other class is right.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from idfsmec.solver.newton import polish
from idfsmec.solver.problem import (
    ChannelProblems,
    diagonal,
    dot_over_classes,
    fit_product,
    kkt_residuals,
    objective,
    redundancy_product,
    start_projection,
    theta_curvature,
    theta_step,
    w_curvature,
    w_step,
)
from idfsmec.solver.sums import Block, Moments, Split, Sums

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

#: Iterations between two looks at the first-order conditions.
CHECK_EVERY = 20
#: Most problems are solved after this many iterations.
LONG = 400
#: Share of the bound that the curvature is eased to, by this factor an iteration, and how it goes
#: back. W's steps are longer to begin with: theirs is eased less.
EASED_TO, EASED_BY, _BACK_BY = 0.3, 0.97, 2.0
EASED_TO_FOR_W = 0.6
#: Number of samples at which both scales of the redundancy weight agree.
LAM_SAMPLES = 1000.0
# With fewer usable features theta may be larger than its channel's regression needs.
_FEW_FEATURES = 6
# Entries of A in problems solved side by side: enough to hide the interpreter, few enough for the
# cache; on a device as many as its memory takes.
_BLOCK, _BLOCK_ON_DEVICE = 2048 * 18**2, 65_536 * 18**2


@dataclass(frozen=True)
class Solution:
    """Solutions of :func:`solve`, for every problem of the batch."""

    theta: Array  # feature weights, on the simplex, (b, d)
    W: Array  # projections, transposed, (b, c, d)
    objective: Array  # U, never rising from start to end, (b,)
    kkt_residual: Array  # the larger of the two residuals of kkt_residuals, (b,)
    n_iter: NDArray[np.int64]
    # U of the wanted problems, at the start and after each iteration until they ended, (n, m)
    history: Array


class State:
    """The iterates of the problems still in the batch; these are normalised."""

    def __init__(self, problems: ChannelProblems, theta: Array, W: Array) -> None:
        self.index = np.arange(theta.shape[0])  # place of each problem in the whole batch
        self.problems, self.A_diagonal = problems, diagonal(problems.A)
        self.theta_curvature = theta_curvature(problems)
        self.theta = self.theta_before = theta
        self.W = self.W_before = W
        self.R_theta = self.R_theta_before = redundancy_product(problems, theta)
        self.value = objective(problems, theta, W, self.R_theta)
        self.support = theta < 0  # features with positive weight when last looked at
        # The sequence t_k of accelerated gradient methods; 1 = no momentum.
        self.momentum = np.ones_like(problems.y2)
        self.ease = np.ones_like(problems.y2)  # share of the curvature's bound in use

    def take(self, keep: Any) -> State:
        """Give the state of some problems."""
        state = copy(self)
        for name, part in vars(self).items():
            setattr(state, name, part.take(keep) if name == "problems" else part[keep])
        return state


def default_start(problems: ChannelProblems) -> tuple[Array, Array]:
    """Return even feature weights and :func:`~idfsmec.solver.problem.start_projection`."""
    theta = np.full_like(problems.P[:, 0, :], 1.0 / problems.P.shape[2])
    return theta, start_projection(problems.A, problems.P)


def solve(
    problems: ChannelProblems,
    *,
    tol: float = 1e-6,
    max_iter: int = 10_000,
    start: tuple[Array, Array] | None = None,
    wanted: Indices | None = None,
) -> Solution:
    """Minimise U until KKT residuals are at most ``tol``; the history of ``wanted`` is kept."""
    unit, problems = problems.y2, problems.normalised()
    state = State(problems, *(default_start(problems) if start is None else start))
    return iterate(state, unit, tol, max_iter, wanted=wanted)


def iterate(
    state: State,
    unit: Array,
    tol: float,
    max_iter: int,
    *,
    done: int = 0,
    wanted: Indices | None = None,
) -> Solution:
    """Iterate from a state, after ``done`` steps; ``unit`` (b,) is y2 before normalisation."""
    wanted = np.empty(0, dtype=np.intp) if wanted is None else wanted
    theta, W, value = state.theta.copy(), state.W.copy(), state.value.copy()
    residual, n_iter = np.zeros_like(value), np.zeros(value.shape, dtype=np.int64)
    history = [value[wanted]]
    for iteration in range(done + 1, max_iter + 1):
        _step(state)
        checking = iteration % CHECK_EVERY == 0 or iteration == max_iter
        now = _finish(state, tol, patient=iteration >= LONG) if checking else None
        value[state.index] = state.value
        history.append(value[wanted])
        if now is None:
            continue
        rests = np.all(state.theta == theta[state.index], axis=1)
        rests &= np.all(W[state.index] == state.W, axis=(1, 2))
        theta[state.index], W[state.index], residual[state.index] = state.theta, state.W, now
        n_iter[state.index] = iteration
        # What no step has moved since the last look, no later one will: all steps are the same.
        unsolved = (now > tol) & ~(rests & (iteration > LONG))
        if not unsolved.any():
            break
        if not unsolved.all():
            state = state.take(unsolved)
    length = 1 + max(0, int(n_iter[wanted].max(initial=done)) - done)
    course = np.array(history[:length]) * unit[wanted]
    return Solution(theta, W, value * unit, residual, n_iter, course)


def _finish(state: State, tol: float, *, patient: bool) -> Array:
    """Try to end by Newton's method where the support has settled; return KKT residuals."""
    residual = np.maximum(*kkt_residuals(state.problems, state.theta, state.W))
    support = state.theta > 0
    settled = np.all(support == state.support, axis=1) & (residual > 1e-3 * tol)
    state.support = support
    if not settled.any():
        return residual
    problems = state.problems.take(settled)
    theta, W, value = polish(
        problems,
        state.theta[settled],
        state.W[settled],
        state.value[settled],
        tol,
        patient=patient,
    )
    state.theta[settled], state.W[settled], state.value[settled] = theta, W, value
    residual[settled] = np.maximum(*kkt_residuals(problems, theta, W))
    state.R_theta = redundancy_product(state.problems, state.theta)
    return residual


def _step(state: State) -> None:
    """One step in theta, one in W, kept where U does not rise."""
    problems = state.problems
    momentum = 0.5 + np.sqrt(0.25 + state.momentum * state.momentum)
    push = ((state.momentum - 1.0) / momentum)[:, None]

    theta_ahead = state.theta + push * (state.theta - state.theta_before)
    R_theta_ahead = state.R_theta + push * (state.R_theta - state.R_theta_before)
    residual = fit_product(problems, theta_ahead, state.W) - problems.P
    by_theta = 2.0 * (dot_over_classes(state.W, residual) + R_theta_ahead)
    theta = theta_step(theta_ahead, by_theta, state.ease * state.theta_curvature)

    W_ahead = state.W + push[:, :, None] * (state.W - state.W_before)
    residual = fit_product(problems, theta, W_ahead) - problems.P
    curvature = w_curvature(problems.A_top, state.A_diagonal, theta)
    W = w_step(W_ahead, theta, residual, np.maximum(state.ease, EASED_TO_FOR_W) * curvature)

    R_theta = redundancy_product(problems, theta)
    value = objective(problems, theta, W, R_theta)
    better = value <= state.value
    eased = np.maximum(EASED_BY * state.ease, EASED_TO)
    state.theta_before, state.W_before, state.R_theta_before = state.theta, state.W, state.R_theta
    if better.all():
        state.theta, state.W, state.R_theta = theta, W, R_theta
        state.value, state.momentum, state.ease = value, momentum, eased
        return
    state.theta = np.where(better[:, None], theta, state.theta)
    state.W = np.where(better[:, None, None], W, state.W)
    state.R_theta = np.where(better[:, None], R_theta, state.R_theta)
    state.value = np.where(better, value, state.value)
    state.momentum = np.where(better, momentum, 1.0)
    state.ease = np.where(better, eased, np.clip(_BACK_BY * state.ease, 0.0, 1.0))


@dataclass(eq=False, kw_only=True)
class Options:
    """How channels are posed, solved and weighed; see :class:`idfsmec.IDFSMEC` for the meaning."""

    channel_loss: str = "held-out"
    lam_scale: str = "paper"
    standardize: bool = True
    missing_correction: str | None = "ipw"
    channel_weighting: bool = True
    missing_indicator: bool = True
    tol: float = 1e-6
    max_iter: int = 10_000
    device: str | None = None


class ChannelFits:
    """The solved channels of F tables (folds) with V channels at L redundancy weights.

    Channel v predicts the class indicators of a sample as
    ``class_shares + coefficients @ (x - centres)`` over its own features, as they were given.
    """

    def __init__(self, F: int, L: int, moments: Sequence[Moments]) -> None:
        V = sum(block.channels.size for block in moments)
        D = sum(block.columns.size for block in moments)
        c = moments[0].class_count.shape[1]
        # theta; zero for constant features and unusable channels
        self.feature_weights = np.zeros((F, L, D))
        # theta, or what the regression uses of it in channels of few features
        self.strengths = np.zeros((F, L, D))
        # What adding the feature alone to its channel's fitted model would take off the loss; -1
        # for features that were left out
        self.gains = np.full((F, L, D), -1.0)
        self.objectives = np.full((F, L, V), np.inf)  # U; infinite for unusable channels
        self.kkt_residuals = np.zeros((F, L, V))
        self.n_iter = np.zeros((F, L, V), dtype=np.int64)
        self.coefficients = np.zeros((F, L, c, D))  # (Theta W)'
        self.centres = np.zeros((F, D))  # observed means of the features
        # Observed shares of the classes, mean of a numeric target
        self.class_shares = np.zeros((F, V, c))
        # For each table the channels that carry nothing, and why
        self.unusable: list[dict[int, str]] = [{} for _ in range(F)]
        # Objectives of the first table at the first weight after each iteration, (n_iter + 1, V)
        self.history = np.full((1, V), np.inf)


class _Posed(NamedTuple):
    """Problems of one size, with the table and channel each result belongs to."""

    table: Indices
    channel: Indices
    columns: Indices
    A: Array
    P: Array
    y2: Array
    unit: Array  # of the features, in which the problem is posed
    lam_factor: Array  # what a redundancy weight is multiplied by


def solve_channels(
    tables: Sequence[Sequence[Moments]], lams: Sequence[float], options: Options | None = None
) -> ChannelFits:
    """Solve every channel of tables with the same columns, known by their :meth:`Sums.moments`."""
    options = options or Options()
    fits = ChannelFits(len(tables), len(lams), tables[0])
    posed: dict[int, list[_Posed]] = {}
    for table, blocks in enumerate(tables):
        for moments in blocks:
            for part in _pose(table, moments, options, fits):
                posed.setdefault(part.columns.shape[1], []).append(part)
    for parts in posed.values():
        together = _Posed(*map(np.concatenate, zip(*parts, strict=True)))
        _solve_size(together, np.asarray(lams, dtype=float), options, fits)
    return fits


def _pose(table: int, moments: Moments, options: Options, fits: ChannelFits) -> Iterator[_Posed]:
    """Problems of one block of channels, by number of usable features."""
    varying = ~moments.constant()
    for row, reason in _unusable(moments, varying).items():
        fits.unusable[table][int(moments.channels[row])] = reason
        varying[row] = False
    if not options.missing_indicator:
        moments = moments.imputed()
    fits.centres[table, moments.columns] = moments.mean
    fits.class_shares[table, moments.channels] = moments.class_share
    unit = np.where(varying, moments.std, 1.0) if options.standardize else np.ones(varying.shape)
    # Centred moments in the units the objective is posed in.
    A, P, y2 = moments.centred()
    seen = np.where(moments.count > 0, moments.count, moments.total)
    weight = moments.total / seen if options.missing_correction else np.ones_like(seen)
    rate = np.divide(unit, moments.scale, out=np.ones_like(unit), where=varying)
    A = 0.5 * (A + A.swapaxes(1, 2)) / (rate[:, :, None] * rate[:, None, :])
    A, P, y2 = A * weight[:, None, None], P / rate[:, None, :] * weight[:, None, None], y2 * weight
    sizes = varying.sum(axis=1)
    lam_factor = moments.total / LAM_SAMPLES if options.lam_scale == "samples" else 1.0
    for size in np.unique(sizes[sizes > 0]):
        rows = np.flatnonzero(sizes == size)
        varied = np.nonzero(varying[rows])[1].reshape(rows.size, -1)
        across, whole = rows[:, None, None], varied.shape[1] == A.shape[1]
        yield _Posed(
            table=np.full(rows.size, table),
            channel=moments.channels[rows],
            columns=moments.columns[rows[:, None], varied],
            A=A[rows] if whole else A[across, varied[:, :, None], varied[:, None, :]],
            P=P[rows] if whole else P[across, np.arange(P.shape[1])[:, None], varied[:, None, :]],
            y2=y2[rows],
            unit=unit[rows[:, None], varied],
            lam_factor=np.full(rows.size, lam_factor),
        )


def _unusable(moments: Moments, varying: NDArray[np.bool_]) -> dict[int, str]:
    """Return the channels without information, with the reason."""
    if moments.class_count.shape[1] == 1:
        several = moments.centred()[2] > 1e-12 * moments.sum_yy
        lacking = "observed for one value of the target only"
    else:
        several = (moments.class_count > 0).sum(axis=1) > 1
        lacking = "observed for one class only"
    conditions = [moments.count <= 0, ~several, ~varying.any(axis=1)]
    reasons = np.select(conditions, ["never observed", lacking, "all features constant"], "")
    return {row: str(reason) for row, reason in enumerate(reasons) if reason}


def _solve_size(posed: _Posed, lams: Array, options: Options, fits: ChannelFits) -> None:
    """Solve problems of one size, a block at a time, and store the results."""
    on_device = False
    if options.device is not None:
        from idfsmec.solver import gpu

        on_device = gpu.covers(options.device, *posed.P.shape[1:])
        if not on_device:
            warnings.warn(
                f"device={options.device!r} solves problems of two classes with "
                f"{gpu.FEWEST_FEATURES} to {gpu.MOST_FEATURES} features per channel on a CUDA "
                "GPU; others are solved by NumPy.",
                UserWarning,
                stacklevel=2,
            )
    size = _BLOCK_ON_DEVICE if on_device else _BLOCK
    step = max(1, size // (posed.A[0].size * lams.size))
    for first in range(0, posed.y2.size, step):
        block = _Posed._make(part[first : first + step] for part in posed)
        which, lam = (part.ravel() for part in np.indices((block.y2.size, lams.size)))
        weights = lams[lam] * block.lam_factor[which]
        wanted = np.flatnonzero((block.table[which] == 0) & (lam == 0))
        if on_device:
            moments = (block.A, block.P, block.y2)
            solution, gains = gpu.solve_on_gpu(*moments, which, weights, options, wanted)
        else:
            # Neither the largest eigenvalues nor the start depend on the redundancy weight.
            unweighted = ChannelProblems.from_moments(block.A, block.P, block.y2)
            theta, W = default_start(unweighted)
            problems = unweighted.normalised().take(which).weighted(weights)
            end: Any = {"tol": options.tol, "max_iter": options.max_iter, "wanted": wanted}
            solution = solve(problems, start=(theta[which], W[which]), **end)
            gains = feature_gains(problems, solution.theta, solution.W)
        _store(fits, block, which, lam, solution, gains, wanted)


def feature_gains(problems: ChannelProblems, theta: Array, W: Array) -> Array:
    """Return what adding each feature alone to the fitted model would take off the loss."""
    residual = problems.P - fit_product(problems, theta, W)
    return np.asarray((residual**2).sum(axis=1) / diagonal(problems.A))


def _store(
    fits: ChannelFits,
    posed: _Posed,
    which: Indices,
    lam: Indices,
    solution: Solution,
    gains: Array,
    wanted: Indices,
) -> None:
    """Store solutions in units of y2; the course of the first table is kept."""
    table, channel, unit = posed.table[which], posed.channel[which], posed.y2[which]
    coefficients = solution.theta[:, None, :] * solution.W / posed.unit[which][:, None, :]
    where = (table[:, None], lam[:, None], posed.columns[which])
    fits.feature_weights[where] = solution.theta
    # Coefficients beta_j = theta_j W_j need weights of at least |beta_j|^(2/3), which sum up to 1
    # where the constraint on theta is active: there both are the same. A few features often need
    # less, and what is left of theta falls on features that contribute nothing.
    used = solution.theta
    if used.shape[1] < _FEW_FEATURES:
        used = (used * np.linalg.norm(solution.W, axis=1)) ** (2 / 3)
    fits.strengths[where] = used
    fits.gains[where] = unit[:, None] * gains
    # Indices on both sides of the slice: problems first, then features, then classes.
    fits.coefficients[where[0], where[1], :, where[2]] = coefficients.swapaxes(1, 2)
    fits.objectives[table, lam, channel] = unit * solution.objective
    fits.kkt_residuals[table, lam, channel] = solution.kkt_residual
    fits.n_iter[table, lam, channel] = solution.n_iter
    if wanted.size:
        course = unit[wanted] * solution.history
        length = max(len(course), len(fits.history))
        # Channels that are done keep their value.
        fits.history = np.pad(fits.history, ((0, length - len(fits.history)), (0, 0)), mode="edge")
        fits.history[:, channel[wanted]] = course[-1]
        fits.history[: len(course), channel[wanted]] = course


# A loss needs less accuracy than the weights of features: at this tolerance losses are off by 2 %
# at most. Every fold starts afresh: the solution of all samples would be a faster start, but the
# problem has many minima, and the one found with the help of the subjects held out makes their
# loss too small, by up to a quarter.
_HELD_OUT_TOL = 1e-2
_SQRT_2PI = np.sqrt(2.0 * np.pi)
# Squares of deviations outside are no numbers; beyond so many deviations nothing is left.
_LEAST, _MOST, _FAR_AWAY = 1e-140, 1e140, 100.0


def held_out_losses(
    tables: Sequence[Sums],
    lams: Sequence[float],
    options: Options,
    splits: Sequence[Sequence[Split]] | None = None,
) -> list[Array]:
    """Solve the training part of every split and give the mean loss on the part held out, (L, V).

    A split judges a channel if its training part has it for all classes; the loss is infinite
    where a class is never judged. Tables have the same columns; their folds are the usual splits.
    """
    options = replace(options, tol=max(options.tol, _HELD_OUT_TOL))
    chosen = [sums.splits() for sums in tables] if splits is None else splits
    pairs = [
        (sums, split)
        for sums, splits_of in zip(tables, chosen, strict=True)
        for split in splits_of
    ]
    training = [sums.moments(split.train) for sums, split in pairs]
    fits: Any = solve_channels(training, lams, options) if training else None
    results, numbers = [], count()
    for sums, splits_of in zip(tables, chosen, strict=True):
        c, V = sums.n_classes, sum(block.channels.size for block in sums.blocks)
        errors, counts = np.zeros((V, len(lams), c)), np.zeros((V, c))
        for split in splits_of:
            _judge(sums, split, fits, next(numbers), options, errors, counts)
        seen = np.bincount(sums.classes, sums.seen, c)
        shares = seen / max(seen.sum(), 1e-300)
        means = errors / np.where(counts > 0, counts, 1.0)[:, None, :]
        judged = np.all(counts > 0, axis=1)[:, None]
        results.append(np.where(judged, (means * shares).sum(axis=-1), np.inf).T)
    return results


def _judge(
    sums: Sums,
    split: Split,
    fits: ChannelFits,
    at: int,
    options: Options,
    errors: Array,
    counts: Array,
) -> None:
    """Add the errors (V, L, c) and counts (V, c) of one split."""
    by_class = (sums.classes == np.arange(sums.n_classes)[:, None]).astype(float)
    train, test = by_class * split.train, by_class * split.test
    total = test @ sums.total
    for block in sums.blocks:
        learned = np.all(block.count @ train.T > 0, axis=1)[:, None]
        seen = block.count @ test.T * learned
        channels = block.channels
        errors[channels] += seen[:, None, :] * _block_errors(block, test, fits, at, sums.numeric)
        counts[channels] += seen
        if not options.missing_indicator:
            missing = (total - block.count @ test.T) * learned
            share = fits.class_shares[at, channels]
            constant = ((np.eye(share.shape[1]) - share[:, None, :]) ** 2).sum(axis=2)
            errors[channels] += (missing * constant)[:, None, :]
            counts[channels] += missing


def _block_errors(block: Block, test: Array, fits: ChannelFits, at: int, numeric: bool) -> Array:
    """Mean error of the held-out samples of each class, shape (b, L, c)."""
    counts = block.count @ test.T
    n = np.where(counts > 0, counts, 1.0)
    mean = (test @ block.sum_x) / n[..., None]
    spread = np.einsum("kj,bjde->bkde", test, block.sum_xx, optimize=True) / n[..., None, None]
    spread = spread - mean[..., :, None] * mean[..., None, :]
    d = block.columns.shape[1]
    away = block.shift[:, :d] - fits.centres[at][block.columns]
    share = fits.class_shares[at, block.channels]
    results = []
    for coefficients in fits.coefficients[at]:
        plain = coefficients[:, block.columns].transpose(1, 0, 2)  # (b, c, d)
        base = share + (away[:, None, :] * plain).sum(axis=2)
        inner = plain * block.scale[:, None, :d]
        if numeric:
            # What is left of the target, which is the last feature.
            inner, base = np.pad(-inner, ((0, 0), (0, 0), (0, 1)), constant_values=1.0), -base
        predicted = base[:, None, :] + mean @ inner.transpose(0, 2, 1)  # (b, true class, class)
        variance = ((inner[:, None] @ spread) * inner[:, None]).sum(axis=3)
        if numeric:
            squares = predicted**2 + np.maximum(variance, 0.0)
        else:
            squares = clipped_error(predicted, variance, np.eye(share.shape[1]))
        results.append(squares.sum(axis=2))
    return np.stack(results, axis=1)


def clipped_error(mean: Array, variance: Array, truth: Array) -> Array:
    """Give the expected squared error of a normal prediction clipped to [0, 1]."""
    mean = np.clip(mean, -_MOST, _MOST)
    deviation = np.clip(np.sqrt(np.maximum(variance, 0.0)), _LEAST, _MOST)
    low, high = (np.clip((edge - mean) / deviation, -_FAR_AWAY, _FAR_AWAY) for edge in (0.0, 1.0))
    below, under = ndtr(low), ndtr(high)
    at_low, at_high = (np.exp(-0.5 * edge**2) / _SQRT_2PI for edge in (low, high))
    off = mean - truth
    inside = (off**2 + deviation**2) * (under - below)
    inside += 2.0 * off * deviation * (at_low - at_high)
    inside += deviation**2 * (low * at_low - high * at_high)
    # Terms of a wide distribution nearly cancel; what is left lies between 0 and its share.
    inside = np.clip(inside, 0.0, np.maximum(under - below, 0.0))
    return np.asarray(inside + truth**2 * below + (1.0 - truth) ** 2 * (1.0 - under))
