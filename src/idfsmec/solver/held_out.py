"""What the regressions of channels cost on people that they have not seen.

The loss on the training samples is no fair judge of channels: a channel that one class hardly has
is easy to predict from, because nearly always the other class is right. On held-out samples, each
class counted by its share among all samples, such a channel is as bad as it is. A person's samples
are predicted by their mean, which is less noisy than they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idfsmec.solver.channels import ChannelFits
from idfsmec.solver.table_moments import Group, TableMoments

Array = NDArray[np.float64]


def held_out_losses(
    X: Array,
    codes: NDArray,
    held_out: Sequence[NDArray[np.intp]],
    training: Sequence[TableMoments],
    fits: ChannelFits,
    weights: Array | None = None,
    people: NDArray | None = None,
    *,
    missing_indicator: bool = True,
    clip: bool = True,
) -> Array:
    """Mean squared error of every channel's regression on the samples held out by folds.

    What is predicted for a person's samples (of one class) that have the channel is averaged.
    Errors of a class are averaged over its samples that have the channel, and the classes are
    averaged by their shares among all held-out samples, whether these have the channel or not.

    Parameters
    ----------
    X : ndarray of shape (n, D)
        NaN where a channel is missing.
    codes : ndarray of shape (n,)
        Classes 0 ... c - 1; the target itself if there is one class.
    held_out : sequence of integer arrays
        Samples left out by each fold. They may be left out by several.
    training : sequence of TableMoments
        Of the other samples of each fold.
    fits : ChannelFits
        Solved from these.
    weights : ndarray of shape (n,), optional
        Of the samples.
    people : ndarray of shape (n,), optional
        Who each sample comes from; by default everyone has one.
    missing_indicator : bool, default=True
        False counts a sample without the channel as one at its mean.
    clip : bool, default=True
        Clip predicted class indicators to [0, 1], which only ever brings them closer.

    Returns
    -------
    ndarray of shape (L, n_channels)
        For every redundancy weight. Infinite where a channel lacks a class in the training part
        of a fold, or in all that was held out.
    """
    n_lams, n_classes = fits.feature_weights.shape[1], fits.coefficients.shape[2]
    n_channels = training[0].n_channels
    total = np.zeros((n_lams, n_channels, n_classes))
    count, overall = np.zeros((n_channels, n_classes)), np.zeros(n_classes)
    learned = np.ones(n_channels, dtype=bool)
    weights = np.ones(codes.size) if weights is None else weights
    how = (missing_indicator, clip and n_classes > 1)
    for fold, rows in enumerate(held_out):
        tested = _Tested.sort(rows, codes, weights, people, n_classes)
        overall += tested.classes.T @ np.add.reduceat(tested.weights, tested.starts)
        centred = X[tested.rows]
        centred -= fits.centres[fold]
        for group in training[fold].groups:
            seen = group.moments.count[:, None] if n_classes == 1 else group.moments.class_count
            learned[group.channels] &= (seen > 0).all(axis=1)
            errors, there = _squared_errors(centred, tested, group, fits, fold, *how)
            count[group.channels] += there @ tested.classes
            total[:, group.channels] += errors.transpose(2, 0, 1) @ tested.classes
    known = learned & (count > 0).all(axis=1)
    means = total / np.where(count > 0, count, 1.0)
    return np.where(known, means @ (overall / overall.sum()), np.inf)


@dataclass(frozen=True)
class _Tested:
    """Held-out samples, those of a person with the same target next to each other.

    ``classes`` (p, c) and ``targets`` (p, c) are of people, ``rows`` and ``weights`` of samples;
    ``starts`` says where each person's begin.
    """

    rows: NDArray[np.intp]
    weights: Array
    starts: NDArray[np.intp]
    classes: Array
    targets: Array

    @classmethod
    def sort(
        cls,
        rows: NDArray[np.intp],
        codes: NDArray,
        weights: Array,
        people: NDArray | None,
        n_classes: int,
    ) -> _Tested:
        starts = np.arange(rows.size)
        if people is not None:
            rows = rows[np.lexsort((codes[rows], people[rows]))]
            who, what = people[rows], codes[rows]
            starts = np.flatnonzero(np.r_[True, (who[1:] != who[:-1]) | (what[1:] != what[:-1])])
        target = codes[rows[starts]]
        if n_classes == 1:
            return cls(rows, weights[rows], starts, np.ones((starts.size, 1)), target[:, None])
        labels = np.eye(n_classes)[target]
        return cls(rows, weights[rows], starts, labels, labels)


def _squared_errors(
    centred: Array,
    tested: _Tested,
    group: Group,
    fits: ChannelFits,
    fold: int,
    missing_indicator: bool,
    clip: bool,
) -> tuple[Array, Array]:
    """Weighted errors (b, p, L) of channels of one size, and the weight of who has them (b, p)."""
    n_samples, (b, d) = centred.shape[0], group.columns.shape
    own = group.columns.ravel()
    if not np.array_equal(own, np.arange(centred.shape[1])):
        centred = centred[:, own]
    values = centred.reshape(n_samples, b, d).transpose(1, 0, 2)
    observed: NDArray[np.bool_] = ~np.any(np.isnan(values), axis=2)
    values[~observed] = 0.0
    n_lams, n_classes = fits.coefficients.shape[1:3]
    coefficients = fits.coefficients[fold][:, :, own].reshape(n_lams * n_classes, b, d)
    said = (values @ coefficients.transpose(1, 2, 0)).reshape(b, n_samples, n_lams, n_classes)
    said += fits.class_shares[fold, group.channels][:, None, None, :]
    if clip:
        # Indicators are 0 or 1: one wild value must not outweigh all other people.
        np.clip(said, 0.0, 1.0, out=said)
    weights = observed * tested.weights if missing_indicator else np.tile(tested.weights, (b, 1))
    there = np.add.reduceat(weights, tested.starts, axis=1)
    said = np.add.reduceat(said * weights[:, :, None, None], tested.starts, axis=1)
    said /= np.where(there > 0, there, 1.0)[:, :, None, None]
    left = tested.targets[:, None, :] - said
    return np.einsum("bplc,bplc,bp->bpl", left, left, there), there
