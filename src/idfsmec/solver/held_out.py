"""What the regressions of channels cost on samples that they have not seen.

The loss on the training samples is no fair judge of channels: a channel that one class hardly has
is easy to predict from, because nearly always the other class is right. On held-out samples, each
class counted by its share among all samples, such a channel is as bad as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

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
    *,
    missing_indicator: bool = True,
    clip: bool = True,
) -> Array:
    """Mean squared error of every channel's regression on the samples held out by folds.

    Errors of a class are averaged over its samples that have the channel, and the classes are
    averaged by their shares among all held-out samples, whether these have the channel or not.

    Parameters
    ----------
    X : ndarray of shape (n, D)
        NaN where a channel is missing.
    codes : ndarray of shape (n,)
        Classes 0 ... c - 1; the target itself if there is one class.
    held_out : sequence of integer arrays
        Samples left out by each fold.
    training : sequence of TableMoments
        Of the other samples of each fold.
    fits : ChannelFits
        Solved from these.
    weights : ndarray of shape (n,), optional
        Of the samples.
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
    for fold, rows in enumerate(held_out):
        labels = _weighted_classes(
            codes[rows], n_classes, None if weights is None else weights[rows]
        )
        overall += labels.sum(axis=0)
        centred = X[rows]
        centred -= fits.centres[fold]
        target = codes[rows, None] if n_classes == 1 else np.eye(n_classes)[codes[rows]]
        for group in training[fold].groups:
            seen = group.moments.count[:, None] if n_classes == 1 else group.moments.class_count
            learned[group.channels] &= (seen > 0).all(axis=1)
            errors, observed = _squared_errors(centred, target, group, fits, fold, clip)
            if not missing_indicator:
                observed[:] = True
            errors[~observed] = 0.0
            count[group.channels] += observed @ labels
            total[:, group.channels] += errors.transpose(2, 0, 1) @ labels
    tested = learned & (count > 0).all(axis=1)
    means = total / np.where(count > 0, count, 1.0)
    return np.where(tested, means @ (overall / overall.sum()), np.inf)


def _weighted_classes(codes: NDArray, n_classes: int, weights: Array | None) -> Array:
    """Weight of each sample in the column of its class, shape (n, c)."""
    weights = np.ones(codes.size) if weights is None else weights
    if n_classes == 1:
        return weights[:, None]
    labels = np.zeros((codes.size, n_classes))
    labels[np.arange(codes.size), codes] = weights
    return labels


def _squared_errors(
    centred: Array, target: Array, group: Group, fits: ChannelFits, fold: int, clip: bool
) -> tuple[Array, NDArray[np.bool_]]:
    """Errors (b, n, L) of channels of one size, and who has them (b, n)."""
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
    if clip and n_classes > 1:
        # Indicators are 0 or 1: one wild value must not outweigh all other people.
        np.clip(said, 0.0, 1.0, out=said)
    left = target[:, None, :] - said
    return np.einsum("bnlc,bnlc->bnl", left, left), observed
