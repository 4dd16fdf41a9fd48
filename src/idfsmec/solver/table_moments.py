"""Moments of all channels of a table, and of its training folds by subtraction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from idfsmec.solver.moments import Moments, accumulate
from idfsmec.solver.scaling import Scaling

Array = NDArray[np.float64]
Columns = NDArray[np.intp]

# A training fold's variance below this share of the whole table's has lost half its digits to
# cancellation; the channel's moments are then summed afresh.
_CANCELLED = 1e-8


@dataclass(frozen=True)
class Group:
    """Channels with equally many features.

    Attributes
    ----------
    channels : ndarray of shape (b,)
        Their places among the table's channels.
    columns : ndarray of shape (b, d)
        Their columns.
    moments : Moments
    """

    channels: NDArray[np.intp]
    columns: Columns
    moments: Moments


@dataclass(frozen=True)
class TableMoments:
    """What the solver needs to know of a table.

    Attributes
    ----------
    groups : tuple of Group
        One for each number of features per channel.
    class_total : ndarray of shape (c,)
        Weight of all samples per class; for a numeric target, its sum.
    """

    groups: tuple[Group, ...]
    class_total: Array

    @property
    def n_channels(self) -> int:
        """Number of channels."""
        return sum(group.channels.size for group in self.groups)

    @property
    def n_features(self) -> int:
        """Number of features of all channels."""
        return sum(group.columns.size for group in self.groups)

    def scaling(self) -> Scaling:
        """Units of the features over the samples that have their channel."""
        mean, std = np.zeros(self.n_features), np.zeros(self.n_features)
        for group in self.groups:
            mean[group.columns] = group.moments.mean
            std[group.columns] = group.moments.std
        return Scaling.of(mean, std)


def table_moments(
    X: Array,
    codes: NDArray,
    n_classes: int,
    columns: Sequence[Columns],
    weights: Array | None = None,
    about: TableMoments | None = None,
) -> TableMoments:
    """Sum up the moments of every channel of a table.

    Parameters
    ----------
    X : ndarray of shape (n, D)
        NaN where a channel is missing.
    codes : ndarray of shape (n,)
        Classes 0 ... c - 1; the target itself if ``n_classes`` is 1.
    n_classes : int
        1 for a numeric target.
    columns : sequence of integer arrays
        The columns of each channel.
    weights : ndarray of shape (n,), optional
    about : TableMoments, optional
        Of the whole table of which X is a part.
    """
    sizes = np.array([own.size for own in columns])
    groups = []
    for place, size in enumerate(np.unique(sizes)):
        channels = np.flatnonzero(sizes == size)
        own = np.stack([columns[int(v)] for v in channels])
        whole = None if about is None else about.groups[place].moments
        groups.append(Group(channels, own, accumulate(X, codes, n_classes, own, weights, whole)))
    return TableMoments(tuple(groups), _class_total(codes, n_classes, weights))


def _class_total(codes: NDArray, n_classes: int, weights: Array | None) -> Array:
    if n_classes == 1:
        return np.array([np.sum(codes if weights is None else weights * codes)])
    return np.bincount(codes, weights, minlength=n_classes).astype(np.float64)


def fold_moments(
    X: Array,
    codes: NDArray,
    n_classes: int,
    columns: Sequence[Columns],
    held_out: Sequence[NDArray[np.intp]],
    weights: Array | None = None,
    whole: TableMoments | None = None,
) -> list[TableMoments]:
    """Moments of the training part of every fold: all samples minus the held-out ones.

    Parameters
    ----------
    X, codes, n_classes, columns, weights
        As in :func:`table_moments`.
    held_out : sequence of integer arrays
        Samples left out by each fold.
    whole : TableMoments, optional
        Of all samples, where they are known already.

    Returns
    -------
    list of TableMoments
        As if summed over the training samples alone, up to rounding.
    """
    if whole is None:
        whole = table_moments(X, codes, n_classes, columns, weights)
    result = []
    for left_out in held_out:
        taken = None if weights is None else weights[left_out]
        part = table_moments(X[left_out], codes[left_out], n_classes, columns, taken, whole)
        kept = np.setdiff1d(np.arange(codes.size), left_out)
        groups = tuple(
            _train(group, out, X, codes, n_classes, kept, weights)
            for group, out in zip(whole.groups, part.groups, strict=True)
        )
        result.append(TableMoments(groups, whole.class_total - part.class_total))
    return result


def _train(
    whole: Group,
    held_out: Group,
    X: Array,
    codes: NDArray,
    n_classes: int,
    kept: NDArray[np.intp],
    weights: Array | None,
) -> Group:
    moments = whole.moments - held_out.moments
    before, after = whole.moments.std, moments.std
    lost = ((after <= np.sqrt(_CANCELLED) * before) & (before > 0)).any(axis=1)
    # Counts are exact only for whole-number weights; rounding must not leave a ghost of a class.
    ghosts = np.abs(moments.class_count) < 1e-9 * np.maximum(whole.moments.class_count, 1.0)
    lost |= (ghosts & (moments.class_count != 0)).any(axis=1)
    if lost.any():
        taken = None if weights is None else weights[kept]
        fresh = accumulate(X[kept], codes[kept], n_classes, whole.columns[lost], taken)
        moments = _replaced(moments, lost, fresh)
    return Group(whole.channels, whole.columns, moments)


def _replaced(moments: Moments, where: NDArray[np.bool_], fresh: Moments) -> Moments:
    parts = {}
    for name, part in vars(moments).items():
        if name != "total":
            part = part.copy()
            part[where] = getattr(fresh, name)
            parts[name] = part
    return replace(moments, **parts)
