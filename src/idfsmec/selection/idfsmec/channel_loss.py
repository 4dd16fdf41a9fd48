"""The loss that weighs channels: what their regressions cost on people they have not seen.

The folds are made without chance: they depend on who is there, not on the order of samples nor on
workers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from idfsmec._groups import name_folds, row_names
from idfsmec._jobs import Processes
from idfsmec.solver import (
    ChannelFits,
    Scaling,
    TableMoments,
    fold_moments,
    held_out_losses,
    solve_channels,
)

if TYPE_CHECKING:
    from idfsmec.selection.idfsmec.engine import Engine

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

#: Folds of people that judge the channels, where each class has so many people.
N_FOLDS = 5
#: Folds of people by their names, where the loss must follow from sums.
N_NAME_FOLDS = 4
#: Ways to deal people to folds, all of which judge: who happens to be in a fold with whom counts
#: less. Tables of more than so many numbers (samples x features) are judged by one.
N_DEALS, _SMALL = 2, 1_000_000
# A loss needs less accuracy than the weights of features: at this one losses are off by 2 % at
# most. Every fold starts afresh. Beginning at the solution of all samples would be faster still,
# but the problem has many minima, and the one found with the help of the people held out makes
# their loss too small, by up to a quarter.
TOL = 1e-2
# Problems posed at a time: enough to share the work, few enough for the memory.
_PROBLEMS = 4096
# Samples x features handled at a time: small enough for the processor's cache.
_BLOCK_ELEMENTS = 100_000
# Bends the sum over a sample's features, so that it is not 0 where these cancel out.
_BEND = 0.37
_TOO_FEW = "a class has fewer than 2 people"
UNTESTED = "no channel has each class in all folds"


@dataclass(frozen=True)
class ChannelLosses:
    """Losses that channels are weighed by, for every fold and redundancy weight.

    Attributes
    ----------
    values : ndarray of shape (n_folds, n_lams, n_channels)
        Infinite for channels that get no weight.
    fallbacks : list of str
        For every fold why the loss is that of the training samples; empty where it is not.
    """

    values: Array
    fallbacks: list[str]


def held_out_channel_losses(
    engine: Engine,
    lams: Sequence[float],
    samples: Sequence[Indices],
    moments: Sequence[TableMoments],
    solved: ChannelFits,
) -> ChannelLosses:
    """Judge the channels of every fold by folds of the people in its training samples.

    Parameters
    ----------
    engine : Engine
    lams : sequence of float
    samples : sequence of integer arrays
        Those that each fold is solved from.
    moments, solved
        Of these.
    """
    values, fallbacks = solved.objectives.copy(), [_TOO_FEW] * len(samples)
    parts = []
    for own, table in zip(samples, moments, strict=True):
        if engine.channel_loss == "held-out-sums":
            parts.append(_by_name(engine, own))
            continue
        counted = own[engine.counted[own]]
        if engine.groups is None:
            people = alike_samples(engine.X[counted], table.scaling(), engine.columns)
        else:
            people = engine.groups[counted]
        n_deals = N_DEALS if own.size * engine.X.shape[1] <= _SMALL else 1
        dealt = people_folds(people, engine.target[counted], engine.n_classes, n_deals)
        parts.append([counted[fold] for fold in dealt])
    per_block = max(1, _PROBLEMS // (N_DEALS * N_FOLDS * engine.channel_names.size))
    judged = [place for place, inner in enumerate(parts) if inner]
    for first in range(0, len(judged), per_block):
        block = judged[first : first + per_block]
        found = _judge(engine, lams, [(samples[at], moments[at], parts[at]) for at in block])
        for at, losses in zip(block, found, strict=True):
            usable = np.isfinite(values[at])
            tested = usable & np.isfinite(losses)
            if tested.any():
                values[at] = np.where(usable, losses, np.inf)
            fallbacks[at] = "" if tested.any() else UNTESTED
    return ChannelLosses(values, fallbacks)


def _judge(
    engine: Engine,
    lams: Sequence[float],
    work: Sequence[tuple[Indices, TableMoments, list[Indices]]],
) -> list[Array]:
    """Held-out losses (L, n_channels) of several training sets, solved in one batch."""
    # Where a loose tolerance is met depends on the path.
    options = replace(engine.options, tol=max(engine.options.tol, TOL), same_path=True)
    training: list[TableMoments] = []
    for own, whole, inner in work:
        X, target, weights, places = engine.X, engine.target, engine.weights, inner
        if own.size < target.size:
            X, target, weights = X[own], target[own], None if weights is None else weights[own]
            places = [np.searchsorted(own, part) for part in inner]
        training += fold_moments(
            X, target, engine.n_classes, engine.columns, places, weights, whole
        )
    fits = solve_channels(training, [float(lam) for lam in lams], options, Processes.available())
    # What follows from sums is of single samples, as predicted.
    by_person = engine.channel_loss == "held-out"
    losses, first = [], 0
    for _, _, inner in work:
        part = slice(first, first + len(inner))
        losses.append(
            held_out_losses(
                engine.X,
                engine.target,
                inner,
                training[part],
                fits.tables(part),
                engine.weights,
                engine.groups if by_person else None,
                missing_indicator=options.missing_indicator,
                clip=by_person,
            )
        )
        first = part.stop
    return losses


def _by_name(engine: Engine, samples: Indices) -> list[Indices]:
    """Deal the people of samples to folds by their names, as several tables would apart."""
    if engine.weights is not None:
        samples = samples[engine.weights[samples] > 0]
    names = row_names(engine.X[samples]) if engine.groups is None else engine.groups[samples]
    fold = name_folds(names, N_NAME_FOLDS)
    dealt = [samples[fold == one] for one in range(N_NAME_FOLDS)]
    there = [part for part in dealt if part.size]
    return there if len(there) > 1 else []


def people_folds(
    people: NDArray, target: NDArray, n_classes: int, n_deals: int = 1
) -> list[Indices]:
    """Deal people to folds, those of each class (or those with close scores) evenly.

    Parameters
    ----------
    people : ndarray of shape (n_samples,)
        Who each sample comes from.
    target : ndarray of shape (n_samples,)
        Classes 0 ... c - 1; the score if ``n_classes`` is 1.
    n_classes : int
    n_deals : int
        How often people are dealt, each time to be with others in a fold.

    Returns
    -------
    list of integer arrays
        The samples of each fold: for each deal as many folds as the class with the fewest people
        has people, at most :data:`N_FOLDS`. Empty if a class has fewer than two people.

    Examples
    --------
    >>> people, target = np.array([7, 7, 8, 8, 9, 5]), np.array([0, 0, 0, 0, 1, 1])
    >>> [fold.tolist() for fold in people_folds(people, target, 2)]
    [[0, 1, 5], [2, 3, 4]]
    """
    names, member = np.unique(people, return_inverse=True)
    if names.size < 2:
        return []
    if n_classes == 1:
        # The smallest of a person's scores is the same in any order of samples.
        lowest = np.full(names.size, np.inf)
        np.minimum.at(lowest, member, target)
        strata, fewest = [np.argsort(lowest, kind="stable")], names.size
    else:
        has = np.zeros((names.size, n_classes), dtype=bool)
        has[member, target] = True
        kind = np.unique(has, axis=0, return_inverse=True)[1].ravel()
        strata = [np.flatnonzero(kind == one) for one in range(kind.max() + 1)]
        fewest = int(has.sum(axis=0).min())
    n_folds = min(N_FOLDS, fewest)
    if n_folds < 2:
        return []
    folds = []
    for deal in range(n_deals):
        fold_of = np.empty(names.size, dtype=np.intp)
        for own in strata:
            turn, seat = np.divmod(np.arange(own.size), n_folds)
            fold_of[own] = (seat + deal * turn) % n_folds
        folds += [np.flatnonzero(fold_of[member] == fold) for fold in range(n_folds)]
    return folds


def alike_samples(X: Array, scaling: Scaling, columns: Sequence[Indices]) -> Array:
    """Give samples with the same values the same number.

    Without subjects every sample is a person of its own, but a sample that is there twice is one
    of weight two: both must be on the same side of every fold. The number depends neither on the
    order of samples, features and channels, nor on their units, nor on what a channel holds where
    it counts as missing.

    Examples
    --------
    >>> X = np.array([[0.0, np.nan], [1.0, 2.0], [0.0, np.nan], [3.0, 1.0]])
    >>> numbers = alike_samples(X, Scaling.learn(X), [np.array([0]), np.array([1])])
    >>> bool(numbers[0] == numbers[2]), np.unique(numbers).size
    (True, 3)
    """
    order = np.concatenate(columns)
    starts = np.cumsum([0, *(own.size for own in columns[:-1])])
    sorted_already = np.array_equal(order, np.arange(order.size))
    numbers = np.empty(X.shape[0])
    per_block = max(1, _BLOCK_ELEMENTS // X.shape[1])
    for first in range(0, X.shape[0], per_block):
        block = slice(first, first + per_block)
        values = scaling.apply(X[block])
        if not sorted_already:
            values = values[:, order]
        values += _BEND * values**2
        # A channel with any NaN adds up to NaN.
        numbers[block] = np.nansum(np.add.reduceat(values, starts, axis=1), axis=1)
    # Sums of the same numbers in another order differ in their last digits.
    return numbers.round(9)
