"""All channels of a table at once: from moments to feature weights and channel objectives.

Channels, folds and redundancy weights with the same number of usable features form one batch.
Features that do not vary and channels that carry nothing are left out of the mathematics and come
back with weight zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from idfsmec.solver._array import is_large, to_device, to_numpy
from idfsmec.solver.batch import default_start, solve
from idfsmec.solver.fits import ChannelFits
from idfsmec.solver.gpu import has_kernels, solve_on_gpu, suits
from idfsmec.solver.moments import Moments
from idfsmec.solver.problem import ChannelProblems, fit_product
from idfsmec.solver.table_moments import Columns, Group, TableMoments

Array = NDArray[np.float64]

# Entries of A in problems solved side by side: enough to hide the interpreter, few enough for the
# cache; on a device as many as its memory takes.
_BLOCK, _BLOCK_ON_DEVICE = 2048 * 18**2, 65_536 * 18**2
# At least so many problems together, also where workers are left without any.
_LEAST_BLOCK = 32
# Blocks for each worker, so that none waits long for the last one.
_BLOCKS_PER_WORKER = 2
# What a problem costs beside its entries of A, in these; and how much work starts workers: less is
# done in the seconds that this takes.
_BESIDE, _WORTH_WORKERS = 400, 6_000_000


class Pool(Protocol):
    """Workers that blocks of problems can be handed to."""

    @property
    def n_workers(self) -> int:
        """How many."""

    def map(self, function: Callable[[Any], Any], items: Sequence[Any]) -> Iterable[Any]:
        """Results in the order of the items."""


@dataclass(frozen=True)
class Options:
    """How the problem is posed and solved; see :class:`idfsmec.IDFSMEC` for the meaning.

    Redundancy weights are multiplied by the weight of all samples over ``lam_samples``, so that
    they mean the same whatever the number of samples; None takes them as they are. With
    ``same_path`` a device is used only where its kernels take the steps that NumPy takes.
    """

    standardize: bool = True
    inverse_probability: bool = True
    missing_indicator: bool = True
    lam_samples: float | None = None
    tol: float = 1e-6
    max_iter: int = 10_000
    device: str | None = None
    same_path: bool = False


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

    def take(self, which: slice) -> _Posed:
        return _Posed(*(part[which] for part in vars(self).values()))


@dataclass(frozen=True)
class _Found:
    """What was found for a block at every redundancy weight; problems by channel first."""

    theta: Array
    coefficients: Array
    gains: Array
    objective: Array
    kkt_residual: Array
    n_iter: NDArray[np.int64]
    history: Array  # of the problems of the first table at the first redundancy weight


_FOUND_BY_PROBLEM = ("theta", "coefficients", "gains", "objective", "kkt_residual", "n_iter")


def solve_channels(
    tables: Sequence[TableMoments],
    lams: Sequence[float],
    options: Options | None = None,
    pool: Pool | None = None,
) -> ChannelFits:
    """Solve every channel of every table at every redundancy weight.

    Parameters
    ----------
    tables : sequence of TableMoments
        Of tables with the same columns, such as training folds.
    lams : sequence of float
    options : Options, optional
    pool : Pool, optional
        Workers that share large batches. No problem sees another, so results are the same to the
        last bit with any number of them.
    """
    options = options or Options()
    fits = ChannelFits.empty(len(tables), len(lams), tables[0])
    posed: dict[int, list[_Posed]] = {}
    for number, table in enumerate(tables):
        for group in table.groups:
            for part in _pose(number, group, table.class_total, options, fits):
                posed.setdefault(part.columns.shape[1], []).append(part)
    for parts in posed.values():
        together = parts[0] if len(parts) == 1 else _joined(parts)
        _solve_size(together, np.asarray(lams, dtype=float), options, pool, fits)
    return fits


def _joined(parts: Sequence[_Posed]) -> _Posed:
    return _Posed(
        *(np.concatenate([getattr(part, name) for part in parts]) for name in vars(parts[0]))
    )


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
        rows, whole = places[:, None, None], kept.shape[1] == A.shape[1]
        yield _Posed(
            table=np.full(places.size, number),
            channel=group.channels[places],
            columns=group.columns[places[:, None], kept],
            A=A[places] if whole else A[rows, kept[:, :, None], kept[:, None, :]],
            P=P[places] if whole else P[rows, np.arange(P.shape[1])[:, None], kept[:, None, :]],
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
    A = A + A.swapaxes(1, 2)  # large for many features: one more array, changed in place
    A *= 0.5
    A /= unit[:, :, None] * unit[:, None, :]
    A *= weight[:, None, None]
    return A, P / unit[:, None, :] * weight[:, None, None], y2 * weight


def _solve_size(
    posed: _Posed, lams: Array, options: Options, pool: Pool | None, fits: ChannelFits
) -> None:
    """Solve problems of one size, a block at a time, and store what was found."""
    if options.same_path and not has_kernels(options.device, *posed.P.shape[1:]):
        options = replace(options, device=None)
    n_problems, entries = len(posed) * lams.size, posed.A[0].size
    size = (_BLOCK if options.device is None else _BLOCK_ON_DEVICE) // entries
    over: Callable[[Any, Sequence[_Posed]], Iterable[_Found]] = map
    work = n_problems * (_BESIDE + entries)
    if pool is not None and options.device is None and work >= _WORTH_WORKERS:
        size = min(size, n_problems // (_BLOCKS_PER_WORKER * pool.n_workers))
        over = pool.map
    step = max(1, max(size, _LEAST_BLOCK) // lams.size)
    blocks = [posed.take(slice(first, first + step)) for first in range(0, len(posed), step)]
    done = over(partial(_solve_block, lams=lams, options=options), blocks)
    for block, found in zip(blocks, done, strict=True):
        _store(fits, block, found, lams.size)


def _solve_block(posed: _Posed, lams: Array, options: Options) -> _Found:
    which, lam = (part.ravel() for part in np.indices((len(posed), lams.size)))
    # Neither the largest eigenvalues nor the start depend on the redundancy weight.
    A, P, y2 = (to_device(part, options.device) for part in (posed.A, posed.P, posed.y2))
    unweighted = ChannelProblems.from_moments(A, P, y2, lam=1.0 if lams.any() else 0.0)
    start = default_start(unweighted)
    if options.device is None:
        unweighted = unweighted.normalised()  # once for all redundancy weights
    solve_some = partial(_solve_weighted, posed, unweighted, start, lams, options)
    if not is_large(unweighted.A):
        return solve_some(lam, which)
    # A few at a time that have their moments in common: these are not copied then.
    at_once = max(1, _BLOCK // posed.A[0].size)
    parts = [
        np.flatnonzero(which == one)[first : first + at_once]
        for one in range(len(posed))
        for first in range(0, lams.size, at_once)
    ]
    each = [solve_some(lam[part], which[part]) for part in parts]
    back = np.argsort(np.concatenate(parts))
    joined = {
        name: np.concatenate([getattr(one, name) for one in each])[back]
        for name in _FOUND_BY_PROBLEM
    }
    courses = [one.history for one in each if one.history.size]
    return _Found(**joined, history=_side_by_side(courses))


def _solve_weighted(
    posed: _Posed,
    unweighted: ChannelProblems,
    start: tuple[Any, Any],
    lams: Array,
    options: Options,
    lam: NDArray[np.intp],
    which: NDArray[np.intp],
) -> _Found:
    """Solve some problems of a block, each at a redundancy weight."""
    weights = to_device(lams[lam] * posed.lam_factor[which], options.device)
    place = to_device(which, options.device)
    if options.device is None and not is_large(unweighted.A):  # all problems at all weights
        problems = unweighted.repeated(lams.size).weighted(weights)
    else:
        problems = unweighted.take(place).weighted(weights)
    first = np.flatnonzero((posed.table[which] == 0) & (lam == 0))
    how: dict[str, Any] = {
        "tol": options.tol,
        "max_iter": options.max_iter,
        "start": tuple(part[place] for part in start),
    }
    solution = (
        solve_on_gpu(problems, wanted=first, **how) if suits(problems) else solve(problems, **how)
    )
    unit = posed.y2[which] / to_numpy(problems.y2)
    residual = problems.P - fit_product(problems, solution.theta, solution.W)
    gains = (residual**2).sum(1) / problems.diagonal
    coefficients = to_numpy(solution.theta[:, None, :] * solution.W)
    return _Found(
        theta=to_numpy(solution.theta),
        coefficients=coefficients / posed.unit[which][:, None, :],
        gains=unit[:, None] * to_numpy(gains),
        objective=unit * to_numpy(solution.objective),
        kkt_residual=to_numpy(solution.kkt_residual),
        n_iter=to_numpy(solution.n_iter),
        history=unit[first] * solution.course(first),
    )


def _side_by_side(courses: list[Array]) -> Array:
    """Courses of problems as columns; those that are done keep their value."""
    if not courses:
        return np.empty((0, 0))
    length = max(len(one) for one in courses)
    return np.hstack(
        [np.pad(one, ((0, length - len(one)), (0, 0)), mode="edge") for one in courses]
    )


def _store(fits: ChannelFits, posed: _Posed, found: _Found, n_lams: int) -> None:
    which, lam = (part.ravel() for part in np.indices((len(posed), n_lams)))
    table, channel = posed.table[which], posed.channel[which]
    where = (table[:, None], lam[:, None], posed.columns[which])
    fits.feature_weights[where] = found.theta
    fits.gains[where] = found.gains
    # Indices on both sides of the slice: problems first, then features, then classes.
    fits.coefficients[where[0], where[1], :, where[2]] = found.coefficients.swapaxes(1, 2)
    fits.objectives[table, lam, channel] = found.objective
    fits.kkt_residuals[table, lam, channel] = found.kkt_residual
    fits.n_iter[table, lam, channel] = found.n_iter
    first = channel[(table == 0) & (lam == 0)]
    if first.size == 0:
        return
    length = max(len(found.history), len(fits.history))
    # Channels that are done keep their value.
    fits.history = np.pad(fits.history, ((0, length - len(fits.history)), (0, 0)), mode="edge")
    fits.history[:, first] = found.history[-1]
    fits.history[: len(found.history), first] = found.history
