"""Solved channels: their weights, the order of features, and what to warn of."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from idfsmec.selection._base import ranks
from idfsmec.selection.idfsmec.channel_loss import ChannelLosses
from idfsmec.solver import ChannelFits, TableMoments, channel_weights, total_objective

if TYPE_CHECKING:
    from idfsmec.selection.idfsmec.engine import Engine

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

_UNTESTED = "too few people of a class have it to test it"


@dataclass(frozen=True)
class Weighing:
    """Channel weights, feature scores and the features from best to worst."""

    channel_weights: Array
    scores: Array
    order: Indices

    @property
    def ranking(self) -> Indices:
        """Rank of every feature, 1 = best."""
        return ranks(self.order)


@dataclass(frozen=True)
class Fits:
    """Solved channels of every fold at every redundancy weight.

    Attributes
    ----------
    engine : Engine
        Or a ``SumEngine``, which has no samples.
    moments : list of TableMoments
        One for each fold.
    channels : ChannelFits
        What was found, first by fold, then by redundancy weight.
    losses : ChannelLosses
        What weighs the channels.
    """

    engine: Engine
    moments: list[TableMoments] = field(repr=False)
    channels: ChannelFits = field(repr=False)
    losses: ChannelLosses = field(repr=False)

    def weigh(self, gamma: float, *, fold: int = 0, lam: int = 0) -> Weighing:
        """Weigh channels and order features.

        Features are ordered by score (channel weight times feature weight). Those with score zero
        follow by what adding them alone to their channel's model would take off the loss,
        weighted by the channel; those that were left out come last. Ties stay in column order.

        Parameters
        ----------
        gamma : float
            How evenly channels are weighted.
        fold, lam : int
            Places of the fold and of the redundancy weight.
        """
        losses, gains = self.losses.values[fold, lam], self.channels.gains[fold, lam]
        usable, channel = np.isfinite(losses), self.engine.channel_of
        alpha = np.zeros(losses.size)
        alpha[usable] = channel_weights(
            losses[usable], gamma, weighting=self.engine.channel_weighting
        )
        scores = alpha[channel] * self.channels.feature_weights[fold, lam]
        left_out = (gains < 0) | ~usable[channel]
        after_support = np.where(left_out, -1.0, alpha[channel] * gains)
        # lexsort takes its last key first and is stable.
        return Weighing(alpha, scores, np.lexsort((-after_support, -scores)))

    def usable(self, fold: int = 0) -> NDArray[np.bool_]:
        """Which channels carry something, shape (n_channels,)."""
        return np.isfinite(self.channels.objectives[fold, 0])

    @property
    def held_out_loss(self) -> Array | None:
        """Of the first fold's channels at the first redundancy weight, where it weighs them."""
        judged = self.engine.channel_loss != "in-sample" and self.engine.channel_weighting
        return self.losses.values[0, 0] if judged and not self.losses.fallbacks[0] else None

    def history(self, gamma: float) -> Array:
        """Weighted sum over the channels' objectives after each iteration, of the first fold."""
        own, weighting = self.channels.history[:, self.usable()], self.engine.channel_weighting
        if self.held_out_loss is None:
            course = total_objective(own, gamma, weighting=weighting)
        else:
            course = own @ self.weigh(gamma).channel_weights[self.usable()] ** gamma
        # Every channel's own loss never rises; this only removes rounding of the sum.
        return np.minimum.accumulate(course)

    def warn(self, stacklevel: int = 5) -> None:
        """Name channels that carry nothing and those that are not solved.

        Parameters
        ----------
        stacklevel : int
            As of ``warnings.warn``; the default points at who called an estimator's ``fit``.

        Raises
        ------
        ValueError
            No channel of some fold carries anything.
        """
        self._warn_of_unusable(stacklevel)
        self._warn_of_fallback(stacklevel)
        self._warn_of_unsolved(stacklevel)

    def _warn_of_unusable(self, stacklevel: int) -> None:
        names, n_folds = self.engine.channel_names, len(self.moments)
        found: dict[tuple[int, str], int] = {}
        for fold, unusable in enumerate(self.channels.unusable):
            if len(unusable) == names.size:
                said = "; ".join(f"{names[v]} ({why})" for v, why in sorted(unusable.items()))
                raise ValueError(f"No channel carries information: {said}.")
            untested = np.flatnonzero(self.usable(fold) & np.isinf(self.losses.values[fold, 0]))
            for one in (*unusable.items(), *((int(v), _UNTESTED) for v in untested)):
                found[one] = found.get(one, 0) + 1
        if found:
            said = "; ".join(
                f"{names[v]} ({why}{f', in {count} of {n_folds} folds' if n_folds > 1 else ''})"
                for (v, why), count in sorted(found.items())
            )
            warnings.warn(
                f"Channels that carry nothing get weight 0 and rank last: {said}.",
                UserWarning,
                stacklevel=stacklevel,
            )

    def _warn_of_fallback(self, stacklevel: int) -> None:
        reasons = sorted({reason for reason in self.losses.fallbacks if reason})
        if reasons:
            warnings.warn(
                f"Channels are weighed by the loss on the training samples, because "
                f"{' or '.join(reasons)}: channels that one class rarely has are overrated.",
                UserWarning,
                stacklevel=stacklevel,
            )

    def _warn_of_unsolved(self, stacklevel: int) -> None:
        names, options = self.engine.channel_names, self.engine.options
        residuals = self.channels.kkt_residuals.max(axis=(0, 1))
        slow = np.flatnonzero(residuals > options.tol)
        if slow.size:
            leading = ", ".join(str(names[v]) for v in slow[:10])
            warnings.warn(
                f"{slow.size} of {names.size} channels did not reach tol={options.tol} in "
                f"{options.max_iter} iterations ({leading}{', ...' if slow.size > 10 else ''}; "
                f"worst residual {residuals.max():.1e}). Raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=stacklevel,
            )
