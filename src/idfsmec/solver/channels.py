"""All channels of a table at once: from samples to feature weights and channel objectives.

Channels with the same number of usable features form one batch. Features that do not vary and
channels that carry nothing are left out of the mathematics and come back with weight zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from idfsmec.solver.batch import Solution, solve
from idfsmec.solver.moments import Moments, accumulate
from idfsmec.solver.problem import ChannelProblems, fit_product

Array = NDArray[np.float64]
Columns = NDArray[np.intp]


@dataclass(frozen=True)
class Options:
    """How the problem is posed and solved; see :class:`idfsmec.IDFSMEC` for the meaning."""

    lam: float = 1.0
    standardize: bool = True
    inverse_probability: bool = True
    missing_indicator: bool = True
    tol: float = 1e-6
    max_iter: int = 10_000


@dataclass
class ChannelFits:
    """The solved channels of a table.

    Attributes
    ----------
    feature_weights : ndarray of shape (D,)
        theta; zero for constant features and unusable channels.
    gains : ndarray of shape (D,)
        What adding the feature alone to its channel's fitted model would take off the loss; -1 for
        features that were left out.
    objectives : ndarray of shape (n_channels,)
        U; infinite for unusable channels.
    kkt_residuals : ndarray of shape (n_channels,)
    n_iter : ndarray of shape (n_channels,)
    history : ndarray of shape (max(n_iter) + 1, n_channels)
        U of every channel after each iteration.
    unusable : dict of int to str
        Why a channel carries nothing.
    """

    feature_weights: Array
    gains: Array
    objectives: Array
    kkt_residuals: Array
    n_iter: NDArray[np.int64]
    unusable: dict[int, str] = field(default_factory=dict)
    _history: list[tuple[NDArray[np.intp], Array]] = field(default_factory=list)

    @property
    def history(self) -> Array:
        """U of every channel after each iteration; channels that are done keep their value."""
        longest = max(part.shape[0] for _, part in self._history)
        result = np.full((longest, self.objectives.size), np.inf)
        for channels, part in self._history:
            result[: part.shape[0], channels] = part
            result[part.shape[0] :, channels] = part[-1]
        return result


def fit_channels(
    X: Array,
    codes: NDArray[np.intp],
    n_classes: int,
    columns: Sequence[Columns],
    weights: Array | None = None,
    options: Options | None = None,
) -> ChannelFits:
    """Solve every channel of a table.

    Parameters
    ----------
    X : ndarray of shape (n, D)
        NaN where a channel is missing.
    codes : ndarray of shape (n,)
        Classes 0 ... c - 1.
    n_classes : int
    columns : sequence of integer arrays
        The columns of each channel.
    weights : ndarray of shape (n,), optional
    options : Options
    """
    options = options or Options()
    fits = ChannelFits(
        feature_weights=np.zeros(X.shape[1]),
        gains=np.full(X.shape[1], -1.0),
        objectives=np.full(len(columns), np.inf),
        kkt_residuals=np.zeros(len(columns)),
        n_iter=np.zeros(len(columns), dtype=np.int64),
    )
    class_total = np.bincount(codes, weights, minlength=n_classes).astype(np.float64)
    for channels, own in _by_size(columns):
        moments = accumulate(X, codes, n_classes, own, weights)
        varying = ~moments.constant()
        for place, reason in _unusable(moments, varying).items():
            fits.unusable[int(channels[place])] = reason
            varying[place] = False
        if not options.missing_indicator:
            moments = moments.filled(class_total)
        A, P, y2 = _pose(moments, varying, options)
        for places in _groups(varying.sum(axis=1)):
            kept = np.nonzero(varying[places])[1].reshape(places.size, -1)
            if kept.size:
                rows = places[:, None, None]
                problems = ChannelProblems.from_moments(
                    A[rows, kept[:, :, None], kept[:, None, :]],
                    P[rows, np.arange(n_classes)[:, None], kept[:, None, :]],
                    y2[places],
                    options.lam,
                )
                solution = solve(problems, tol=options.tol, max_iter=options.max_iter)
                _store(fits, channels[places], own[places[:, None], kept], problems, solution)
    return fits


def _by_size(columns: Sequence[Columns]) -> list[tuple[NDArray[np.intp], Columns]]:
    """Channels with equally many features together: (channel numbers, their columns)."""
    sizes = np.array([own.size for own in columns])
    return [(places, np.stack([columns[v] for v in places])) for places in _groups(sizes)]


def _groups(sizes: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    return [np.flatnonzero(sizes == size) for size in np.unique(sizes)]


def _unusable(moments: Moments, varying: NDArray[np.bool_]) -> dict[int, str]:
    """Channels that carry nothing, and why."""
    reasons: dict[int, str] = {}
    for place, seen in enumerate((moments.class_count > 0).sum(axis=1)):
        if seen == 0:
            reasons[place] = "never observed"
        elif seen == 1:
            reasons[place] = "observed for one class only"
        elif not varying[place].any():
            reasons[place] = "all features constant"
    return reasons


def _pose(
    moments: Moments, varying: NDArray[np.bool_], options: Options
) -> tuple[Array, Array, Array]:
    """Centred moments in the units the objective is posed in."""
    A, P, y2 = moments.centred()
    unit = moments.std / moments.scale if options.standardize else 1.0 / moments.scale
    unit = np.where(varying, unit, 1.0)
    seen = np.where(moments.count > 0, moments.count, moments.total)
    weight = moments.total / seen if options.inverse_probability else np.ones_like(seen)
    A = 0.5 * (A + A.swapaxes(1, 2)) / (unit[:, :, None] * unit[:, None, :])
    P = P / unit[:, None, :]
    return A * weight[:, None, None], P * weight[:, None, None], y2 * weight


def _store(
    fits: ChannelFits,
    channels: NDArray[np.intp],
    columns: Columns,
    problems: ChannelProblems,
    solution: Solution,
) -> None:
    fits.feature_weights[columns] = solution.theta
    residual = problems.P - fit_product(problems, solution.theta, solution.W)
    fits.gains[columns] = np.sum(residual**2, axis=1) / np.diagonal(problems.A, axis1=1, axis2=2)
    fits.objectives[channels] = solution.objective
    fits.kkt_residuals[channels] = solution.kkt_residual
    fits.n_iter[channels] = solution.n_iter
    history = np.empty((len(solution.history), channels.size))
    current = np.empty(channels.size)
    for row, (index, value) in zip(history, solution.history, strict=True):
        current[index] = value
        row[:] = current
    fits._history.append((channels, history))
