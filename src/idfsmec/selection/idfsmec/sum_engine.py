"""The engine without samples: a summary in, solved channels and weights out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idfsmec._columns import channel_codes
from idfsmec._jobs import one_blas_thread
from idfsmec.errors import InputError
from idfsmec.selection.idfsmec.channel_loss import judge
from idfsmec.selection.idfsmec.engine import pose, solve_and_judge, solve_and_weigh
from idfsmec.selection.idfsmec.fits import Fits
from idfsmec.solver import Cells, HeldOut, Options
from idfsmec.summaries.summary import Summary


@dataclass(frozen=True)
class SumEngine:
    """The channels of a summary, ready to be solved: an ``Engine`` that never sees a sample.

    Attributes
    ----------
    summary : Summary
    options : Options
    channel_weighting : bool
    channel_loss : {"held-out", "in-sample"}
    """

    summary: Summary
    options: Options = field(default_factory=Options)
    channel_weighting: bool = True
    channel_loss: str = "held-out"

    @classmethod
    def of(
        cls,
        summary: Summary,
        *,
        channel_loss: str = "held-out",
        channel_weighting: bool = True,
        **options: Any,
    ) -> SumEngine:
        """Set up with the parameters of :class:`~idfsmec.IDFSMEC`."""
        counts = summary.class_total[0].sum(axis=0)
        there = [k for k, n in zip(summary.labels, counts, strict=True) if n]
        if len(there) < 2:
            raise InputError(
                "Selecting features needs at least 2 classes, but the summaries hold "
                + (f"only one class: {there[0]!r}." if there else "none.")
            )
        return cls(summary, pose(**options), channel_weighting, channel_loss)

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
        return self._solve([self.summary.cells()], [float(lam) for lam in lams])

    def solve_each(self, tables: Sequence[Cells], lam: float) -> Fits:
        """Solve all channels of parts of the people, each part by itself."""
        return self._solve(tables, [float(lam)])

    def _solve(self, tables: Sequence[Cells], lams: list[float]) -> Fits:
        with one_blas_thread():
            if self.channel_loss == "in-sample" or not self.channel_weighting:
                return solve_and_weigh(self, lams, [cells.whole() for cells in tables])
            return solve_and_judge(self, lams, tables)

    def solve_and_hold_out(self, lams: Sequence[float]) -> tuple[Fits, HeldOut]:
        """Solve, and tell what channels cost on people held out, whatever weighs them."""
        fits = self.solve(lams)
        if fits.losses.held_out:
            return fits, fits.losses.held_out[0]
        with one_blas_thread():
            (held_out,) = judge([self.summary.cells()], lams, self.options)
        return fits, held_out
