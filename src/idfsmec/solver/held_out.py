"""What the regressions of channels cost on people that they have not seen.

The loss on the training samples is no fair judge of channels: a channel that one class hardly has
is easy to predict from, because nearly always the other class is right. On held-out people, each
class counted by its share among all samples, such a channel is as bad as it is. What is predicted
for a person is the mean over their samples, which is less noisy than these.

A prediction is linear in a person's means. So the mean and the variance of what is predicted for
the people of a class follow from sums over them, and with these two the error that predicted
class indicators have after clipping to [0, 1], as it is expected if predictions are normal. The
clipping keeps one wild value from outweighing everybody else.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from idfsmec.solver.cells import CellGroup, Cells
from idfsmec.solver.fits import ChannelFits

Array = NDArray[np.float64]

_SQRT_2PI = np.sqrt(2.0 * np.pi)
# Squares of deviations outside are no numbers; beyond so many deviations nobody is left.
_LEAST, _MOST, _NOBODY = 1e-140, 1e140, 100.0


@dataclass(frozen=True)
class HeldOut:
    """Squared errors of every channel's regression on the people held out, by fold (K).

    Attributes
    ----------
    errors : ndarray of shape (K, n_channels, L, c)
        Summed over the people of each class, for every redundancy weight.
    people : ndarray of shape (K, n_channels, c)
        How many these are.
    shares : ndarray of shape (c,)
        Of the classes among all samples, whether these have the channel or another.
    """

    errors: Array
    people: Array
    shares: Array

    def losses(self) -> Array:
        """Mean over all folds, shape (L, n_channels); infinite where a class has nobody."""
        return self._mean(self.errors.sum(axis=0), self.people.sum(axis=0))

    def by_fold(self) -> Array:
        """Mean over each fold, shape (K, L, n_channels); infinite where a class has nobody."""
        return self._mean(self.errors, self.people)

    def _mean(self, errors: Array, people: Array) -> Array:
        known = np.asarray(np.all(people > 0, axis=-1))
        means = errors / np.where(people > 0, people, 1.0)[..., None, :]
        losses = (means * self.shares).sum(axis=-1)
        return np.swapaxes(np.where(known[..., None], losses, np.inf), -1, -2)


def held_out_errors(cells: Cells, fits: ChannelFits, *, missing_indicator: bool = True) -> HeldOut:
    """Squared errors of every channel's regression on the people held out by folds.

    A person is predicted by the mean of their samples that have the channel and counts once.
    Errors are averaged over the people of a class who have the channel, over all folds of all
    deals or over one, and the classes are averaged by their shares among all samples. A fold
    judges a channel if others of all classes, who have it, were in the training part. The error
    of a score is the plain one.

    Parameters
    ----------
    cells : Cells
    fits : ChannelFits
        Solved from ``cells.training(deal, fold)`` for each of ``cells.folds()``.
    missing_indicator : bool, default=True
        False counts a person without the channel as one at its mean.

    Returns
    -------
    HeldOut
    """
    folds, n_classes = cells.folds(), cells.total.shape[2]
    n_lams = fits.feature_weights.shape[1]
    total = np.zeros((len(folds), cells.n_channels, n_lams, n_classes))
    count = np.zeros((len(folds), cells.n_channels, n_classes))
    for at, (deal, fold) in enumerate(folds):
        for group in cells.groups:
            own, sums = group.channels, group.sums
            others = sums.count[:, deal].sum(axis=1) - sums.count[:, deal, fold]
            learned = np.asarray(np.all(others > 0, axis=1))[:, None]
            people = sums.people[:, deal, fold] * learned
            errors = _errors(group, deal, fold, fits, at, cells.score)
            total[at, own] = people[:, None, :] * errors
            if not missing_indicator:
                gaps = (cells.people[deal, fold] - sums.people[:, deal, fold]) * learned
                share = fits.class_shares[at, own]
                constant = ((np.eye(n_classes) - share[:, None, :]) ** 2).sum(axis=2)
                total[at, own] += (gaps * constant)[:, None, :]
                people = people + gaps
            count[at, own] = people
    return HeldOut(total, count, cells.seen / max(cells.seen.sum(), 1e-300))


def _errors(
    group: CellGroup, deal: int, fold: int, fits: ChannelFits, at: int, score: bool
) -> Array:
    """Mean error of the people of each class in a fold, shape (b, L, c)."""
    sums = group.sums
    people = sums.people[:, deal, fold]
    n = np.where(people > 0, people, 1.0)
    mean = sums.sum_m[:, deal, fold] / n[..., None]
    spread = sums.sum_mm[:, deal, fold] / n[..., None, None]
    spread = spread - mean[..., :, None] * mean[..., None, :]
    d = group.columns.shape[1]
    away = sums.shift[:, :d] - fits.centres[at][group.columns]
    share = fits.class_shares[at, group.channels]
    found = []
    # One redundancy weight after the other: together they would have other last digits than alone.
    for coefficients in fits.coefficients[at]:
        plain = coefficients[:, group.columns].transpose(1, 0, 2)  # (b, c, d)
        base = share + (away[:, None, :] * plain).sum(axis=2)
        inner = plain * sums.scale[:, None, :d]
        if score:
            # What is left of the score, which is the last feature.
            inner, base = np.pad(-inner, ((0, 0), (0, 0), (0, 1)), constant_values=1.0), -base
        said = base[:, None, :] + mean @ inner.transpose(0, 2, 1)  # (b, own class, class)
        variance = ((inner[:, None] @ spread) * inner[:, None]).sum(axis=3)
        if score:
            errors = said**2 + np.maximum(variance, 0.0)
        else:
            errors = clipped_error(said, variance, np.eye(share.shape[1]))
        found.append(errors.sum(axis=2))
    return np.stack(found, axis=1)


def clipped_error(mean: Array, variance: Array, truth: Array) -> Array:
    """Expected squared error of a normal prediction clipped to [0, 1].

    Parameters
    ----------
    mean, variance : ndarray
        Of the prediction.
    truth : ndarray
        0 or 1.

    Examples
    --------
    >>> clipped_error(np.array([0.25, 0.5, 9.0]), np.array([0.0, 1e20, 0.0]), np.array([0, 1, 0]))
    array([0.0625, 0.5   , 1.    ])
    """
    mean = np.clip(mean, -_MOST, _MOST)
    deviation = np.clip(np.sqrt(np.maximum(variance, 0.0)), _LEAST, _MOST)
    low, high = (np.clip((edge - mean) / deviation, -_NOBODY, _NOBODY) for edge in (0.0, 1.0))
    below, under = ndtr(low), ndtr(high)
    at_low, at_high = (np.exp(-0.5 * one**2) / _SQRT_2PI for one in (low, high))
    off = mean - truth
    inside = (off**2 + deviation**2) * (under - below)
    inside += 2.0 * off * deviation * (at_low - at_high)
    inside += deviation**2 * (low * at_low - high * at_high)
    # Terms of a wide distribution nearly cancel; what is left lies between 0 and its share.
    inside = np.clip(inside, 0.0, np.maximum(under - below, 0.0))
    return inside + truth**2 * below + (1.0 - truth) ** 2 * (1.0 - under)
