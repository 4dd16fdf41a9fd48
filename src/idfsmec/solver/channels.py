"""All channels of a table at once: from moments to feature weights and channel objectives.

Channels, folds and redundancy weights with the same number of usable features form one batch.
Features that do not vary and channels that carry nothing are left out of the mathematics and come
back with weight zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from idfsmec.solver._array import diagonal, to_device, to_numpy
from idfsmec.solver.batch import Solution, default_start, solve
from idfsmec.solver.moments import Moments
from idfsmec.solver.problem import ChannelProblems, fit_product
from idfsmec.solver.table_moments import Columns, Group, TableMoments

Array = NDArray[np.float64]

# Problems solved side by side: enough to hide the interpreter, few enough for the cache; on a
# device as many as its memory takes.
_CHUNK, _CHUNK_ON_DEVICE = 512, 65_536


@dataclass(frozen=True)
class Options:
    """How the problem is posed and solved; see :class:`idfsmec.IDFSMEC` for the meaning.

    Redundancy weights are multiplied by the weight of all samples over ``lam_samples``, so that
    they mean the same whatever the number of samples; None takes them as they are. ``n_threads``
    work on chunks of the batch, which do not see each other: results do not depend on it.
    """

    standardize: bool = True
    inverse_probability: bool = True
    missing_indicator: bool = True
    lam_samples: float | None = None
    tol: float = 1e-6
    max_iter: int = 10_000
    device: str | None = None
    n_threads: int = 1


@dataclass
class ChannelFits:
    """The solved channels of ``F`` tables (folds) at ``L`` redundancy weights.

    Attributes
    ----------
    feature_weights : ndarray of shape (F, L, D)
        theta; zero for constant features and unusable channels.
    gains : ndarray of shape (F, L, D)
        What adding the feature alone to its channel's fitted model would take off the loss; -1
        for features that were left out.
    objectives : ndarray of shape (F, L, n_channels)
        U; infinite for unusable channels.
    kkt_residuals : ndarray of shape (F, L, n_channels)
    n_iter : ndarray of shape (F, L, n_channels)
    coefficients : ndarray of shape (F, L, c, D)
        ``(Theta W)'`` for features as they were given: channel v predicts the class indicators of
        a sample as ``class_shares + coefficients @ (x - centres)`` over its own features.
    centres : ndarray of shape (F, D)
        Mean of every feature over its observed samples.
    class_shares : ndarray of shape (F, n_channels, c)
        Share of each class among the samples that have the channel; for a numeric target, its
        mean there.
    unusable : list of dict of int to str
        For every table, why a channel carries nothing.
    history : ndarray of shape (max(n_iter) + 1, n_channels)
        U of every channel of the first table at the first redundancy weight, after each iteration;
        channels that are done keep their value.
    """

    feature_weights: Array
    gains: Array
    objectives: Array
    kkt_residuals: Array
    n_iter: NDArray[np.int64]
    coefficients: Array
    centres: Array
    class_shares: Array
    unusable: list[dict[int, str]]
    history: Array = field(default_factory=lambda: np.empty((0, 0)))

    @classmethod
    def empty(cls, n_tables: int, n_lams: int, like: TableMoments) -> ChannelFits:
        """Nothing solved yet."""
        n_channels, n_features, n_classes = like.n_channels, like.n_features, like.class_total.size
        return cls(
            feature_weights=np.zeros((n_tables, n_lams, n_features)),
            gains=np.full((n_tables, n_lams, n_features), -1.0),
            objectives=np.full((n_tables, n_lams, n_channels), np.inf),
            kkt_residuals=np.zeros((n_tables, n_lams, n_channels)),
            n_iter=np.zeros((n_tables, n_lams, n_channels), dtype=np.int64),
            coefficients=np.zeros((n_tables, n_lams, n_classes, n_features)),
            centres=np.zeros((n_tables, n_features)),
            class_shares=np.zeros((n_tables, n_channels, n_classes)),
            unusable=[{} for _ in range(n_tables)],
            history=np.full((1, n_channels), np.inf),
        )

    def tables(self, which: slice) -> ChannelFits:
        """What was found for some of the tables; without the course, which is of the first."""
        parts = {name: part[which] for name, part in vars(self).items() if name != "history"}
        return ChannelFits(**parts)


@dataclass(frozen=True)
class _Posed:
    """Problems of one size, with the place each result belongs to."""

    table: NDArray[np.intp]
    channel: NDArray[np.intp]
    columns: Columns
    A: Array
    P: Array
    y2: Array
    unit: Array  # of the features, in which the problem is posed
    lam_factor: Array  # what a redundancy weight is multiplied by

    def __len__(self) -> int:
        return self.y2.size


def solve_channels(
    tables: Sequence[TableMoments], lams: Sequence[float], options: Options | None = None
) -> ChannelFits:
    """Solve every channel of every table at every redundancy weight.

    Parameters
    ----------
    tables : sequence of TableMoments
        Of tables with the same columns, such as training folds.
    lams : sequence of float
    options : Options, optional
    """
    options = options or Options()
    fits = ChannelFits.empty(len(tables), len(lams), tables[0])
    posed: dict[int, list[_Posed]] = {}
    for number, table in enumerate(tables):
        for group in table.groups:
            for part in _pose(number, group, table.class_total, options, fits):
                posed.setdefault(part.columns.shape[1], []).append(part)
    for parts in posed.values():
        together = _Posed(
            *(np.concatenate([getattr(part, name) for part in parts]) for name in vars(parts[0]))
        )
        _solve_size(together, np.asarray(lams, dtype=float), options, fits)
    return fits


def _pose(
    number: int,
    group: Group,
    class_total: Array,
    options: Options,
    fits: ChannelFits,
) -> Iterator[_Posed]:
    """Problems of one group of channels, by number of usable features."""
    moments = group.moments
    varying = ~moments.constant()
    for place, reason in _unusable(moments, varying).items():
        fits.unusable[number][int(group.channels[place])] = reason
        varying[place] = False
    if not options.missing_indicator:
        moments = moments.filled(class_total)
    fits.centres[number, group.columns] = moments.mean
    fits.class_shares[number, group.channels] = moments.class_share
    unit = np.where(varying, moments.std, 1.0) if options.standardize else np.ones(varying.shape)
    A, P, y2 = _scaled(moments, np.where(varying, unit / moments.scale, 1.0), options)
    sizes = varying.sum(axis=1)
    for size in np.unique(sizes[sizes > 0]):
        places = np.flatnonzero(sizes == size)
        kept = np.nonzero(varying[places])[1].reshape(places.size, -1)
        rows = places[:, None, None]
        yield _Posed(
            table=np.full(places.size, number),
            channel=group.channels[places],
            columns=group.columns[places[:, None], kept],
            A=A[rows, kept[:, :, None], kept[:, None, :]],
            P=P[rows, np.arange(P.shape[1])[:, None], kept[:, None, :]],
            y2=y2[places],
            unit=unit[places[:, None], kept],
            lam_factor=np.full(
                places.size,
                1.0 if options.lam_samples is None else moments.total / options.lam_samples,
            ),
        )


def _unusable(moments: Moments, varying: NDArray[np.bool_]) -> dict[int, str]:
    """Channels that carry nothing, and why."""
    reasons: dict[int, str] = {}
    if moments.class_count.shape[1] == 1:
        return _unusable_for_target(moments, varying)
    for place, seen in enumerate((moments.class_count > 0).sum(axis=1)):
        if seen == 0:
            reasons[place] = "never observed"
        elif seen == 1:
            reasons[place] = "observed for one class only"
        elif not varying[place].any():
            reasons[place] = "all features constant"
    return reasons


def _unusable_for_target(moments: Moments, varying: NDArray[np.bool_]) -> dict[int, str]:
    reasons: dict[int, str] = {}
    spread = moments.centred()[2]
    for place, count in enumerate(moments.count):
        if count <= 0:
            reasons[place] = "never observed"
        elif not spread[place] > 1e-12 * moments.sum_yy[place]:
            reasons[place] = "observed for one value of the target only"
        elif not varying[place].any():
            reasons[place] = "all features constant"
    return reasons


def _scaled(moments: Moments, unit: Array, options: Options) -> tuple[Array, Array, Array]:
    """Centred moments in the units the objective is posed in."""
    A, P, y2 = moments.centred()
    seen = np.where(moments.count > 0, moments.count, moments.total)
    weight = moments.total / seen if options.inverse_probability else np.ones_like(seen)
    A = 0.5 * (A + A.swapaxes(1, 2)) / (unit[:, :, None] * unit[:, None, :])
    P = P / unit[:, None, :]
    return A * weight[:, None, None], P * weight[:, None, None], y2 * weight


def _solve_size(posed: _Posed, lams: Array, options: Options, fits: ChannelFits) -> None:
    """Solve problems of one size, a chunk at a time, and store what was found."""
    lam_place, place = (part.ravel() for part in np.indices((lams.size, len(posed))))
    weights = to_device(lams, options.device)
    factor = to_device(posed.lam_factor, options.device)
    # Neither the largest eigenvalues nor the start depend on the redundancy weight.
    unweighted = ChannelProblems.from_moments(
        *(to_device(part, options.device) for part in (posed.A, posed.P, posed.y2))
    )
    theta, W = default_start(unweighted)
    size = _CHUNK if options.device is None else _CHUNK_ON_DEVICE

    def solve_chunk(first: int) -> tuple[Solution, Array]:
        which, lam = place[first : first + size], lam_place[first : first + size]
        problems = unweighted.take(which).weighted(weights[lam] * factor[which])
        solution = solve(
            problems, tol=options.tol, max_iter=options.max_iter, start=(theta[which], W[which])
        )
        residual = problems.P - fit_product(problems, solution.theta, solution.W)
        return solution, to_numpy((residual**2).sum(1) / diagonal(problems.A))

    firsts = range(0, place.size, size)
    n_threads = min(len(firsts), options.n_threads)
    with ThreadPoolExecutor(n_threads) if n_threads > 1 else nullcontext() as pool:
        done = pool.map(solve_chunk, firsts) if pool else map(solve_chunk, firsts)
        for first, (solution, gains) in zip(firsts, done, strict=True):
            which, lam = place[first : first + size], lam_place[first : first + size]
            table, channel = posed.table[which], posed.channel[which]
            where = (table[:, None], lam[:, None], posed.columns[which])
            fits.feature_weights[where] = to_numpy(solution.theta)
            fits.gains[where] = gains
            coefficients = to_numpy(solution.theta[:, None, :] * solution.W)
            coefficients /= posed.unit[which][:, None, :]
            # Indices on both sides of the slice: problems first, then features, then classes.
            fits.coefficients[where[0], where[1], :, where[2]] = coefficients.swapaxes(1, 2)
            fits.objectives[table, lam, channel] = to_numpy(solution.objective)
            fits.kkt_residuals[table, lam, channel] = to_numpy(solution.kkt_residual)
            fits.n_iter[table, lam, channel] = to_numpy(solution.n_iter)
            _store_history(fits, solution, np.where((table == 0) & (lam == 0), channel, -1))


def _store_history(fits: ChannelFits, solution: Solution, channel: NDArray[np.intp]) -> None:
    """Keep the course of the first table's channels at the first redundancy weight."""
    if (channel < 0).all():
        return
    grown = np.repeat(fits.history[-1:], max(len(solution.history), len(fits.history)), axis=0)
    grown[: len(fits.history)] = fits.history
    row = 0
    for _, course in groupby(solution.history, key=lambda entry: id(entry[0])):
        entries = list(course)  # iterations in which the same problems were in the batch
        kept = channel[to_numpy(entries[0][0])]
        values = np.stack([to_numpy(value) for _, value in entries])[:, kept >= 0]
        grown[row : row + len(entries), kept[kept >= 0]] = values
        row += len(entries)
        grown[row:, kept[kept >= 0]] = values[-1]
    fits.history = grown
