"""The engine without samples: a summary in, solved channels and weights out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from idfsmec._columns import channel_codes
from idfsmec._jobs import Processes, one_blas_thread
from idfsmec.errors import InputError
from idfsmec.selection.idfsmec.channel_loss import (
    TOL,
    UNTESTED,
    ChannelLosses,
)
from idfsmec.selection.idfsmec.engine import pose
from idfsmec.selection.idfsmec.fits import Fits
from idfsmec.selection.idfsmec.summary import Summary
from idfsmec.solver import ChannelFits, Options, losses_of_sums, solve_channels, table_of_sums

_ONE_FOLD = "the summaries have fewer than two folds of people"


@dataclass(frozen=True)
class SumEngine:
    """The channels of a summary, ready to be solved: an ``Engine`` that never sees a sample.

    Attributes
    ----------
    summary : Summary
    options : Options
    channel_weighting : bool
    channel_loss : {"held-out-sums", "in-sample"}
    """

    summary: Summary
    options: Options = field(default_factory=Options)
    channel_weighting: bool = True
    channel_loss: str = "held-out-sums"

    @classmethod
    def of(
        cls,
        summary: Summary,
        *,
        channel_loss: str = "held-out",
        channel_weighting: bool = True,
        **options: Any,
    ) -> SumEngine:
        """Set up with the parameters of :class:`~idfsmec.IDFSMEC`; "held-out" is by sums here."""
        there = [
            k for k, n in zip(summary.labels, summary.class_total.sum(axis=0), strict=True) if n
        ]
        if len(there) < 2:
            raise InputError(
                "Selecting features needs at least 2 classes, but the summaries hold "
                + (f"only one class: {there[0]!r}." if there else "none.")
            )
        loss = "in-sample" if channel_loss == "in-sample" else "held-out-sums"
        return cls(summary, pose(**options), channel_weighting, loss)

    @cached_property
    def channel_names(self) -> NDArray:
        """Of the channels, in order of first appearance."""
        return np.array(self.summary.channels)

    @cached_property
    def channel_of(self) -> NDArray[np.intp]:
        """Number of the channel of every feature."""
        return channel_codes(self.summary.places)

    def solve(self, lams: Sequence[float]) -> Fits:
        """Solve all channels at every redundancy weight."""
        wanted, pool = [float(lam) for lam in lams], Processes.available()
        source = (self.summary.sums, self.summary.class_total, self.summary.places)
        with one_blas_thread():
            moments = [table_of_sums(*source)]
            solved = solve_channels(moments, wanted, self.options, pool)
            losses = ChannelLosses(solved.objectives, [""])
            if self.channel_loss != "in-sample" and self.channel_weighting:
                losses = self._judge(wanted, solved)
        # Fits ask an engine for names and options alone.
        return Fits(cast(Any, self), moments, solved, losses)

    def _judge(self, lams: list[float], solved: ChannelFits) -> ChannelLosses:
        """Losses on each fold of people, solved from the others."""
        source = (self.summary.sums, self.summary.class_total, self.summary.places)
        folds = np.flatnonzero(self.summary.class_total.sum(axis=1) > 0).tolist()
        if len(folds) < 2:
            return ChannelLosses(solved.objectives, [_ONE_FOLD])
        training = [table_of_sums(*source, [g for g in folds if g != f]) for f in folds]
        options = replace(self.options, tol=max(self.options.tol, TOL), device=None)
        fits = solve_channels(training, lams, options, Processes.available())
        found = losses_of_sums(*source, folds, fits, missing_indicator=options.missing_indicator)
        values = solved.objectives.copy()
        usable = np.isfinite(values[0])
        if not (tested := usable & np.isfinite(found)).any():
            return ChannelLosses(values, [UNTESTED])
        values[0] = np.where(tested, found, np.inf)
        return ChannelLosses(values, [""])
