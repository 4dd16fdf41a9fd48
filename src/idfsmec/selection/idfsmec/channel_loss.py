"""The loss that weighs channels: what their regressions cost on people they have not seen.

The folds are made without chance: a person's depend on the person alone, not on who else is there.
So tables that share no rows deal their people alike, and their sums are those of all people.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from idfsmec._jobs import Processes
from idfsmec.solver import Cells, ChannelFits, HeldOut, Options, held_out_errors, solve_channels
from idfsmec.summaries.dealing import N_DEALS, N_FOLDS

Array = NDArray[np.float64]

# Tables of more numbers (samples x features) are judged by one deal.
_LARGE = 1_000_000
# A loss needs less accuracy than the weights of features: at this one losses are off by 2 % at
# most. Every fold starts afresh. Beginning at the solution of all samples would be faster still,
# but the problem has many minima, and the one found with the help of the people held out makes
# their loss too small, by up to a quarter.
_TOL = 1e-2
# Problems posed at a time: enough to share the work, few enough for the memory.
_PROBLEMS = 4096
_UNTESTED = "people are too few to hold some of each class out"


@dataclass(frozen=True)
class ChannelLosses:
    """Losses that channels are weighed by, for every fold and redundancy weight.

    Attributes
    ----------
    values : ndarray of shape (n_folds, n_lams, n_channels)
        Infinite for channels that get no weight.
    fallbacks : list of str
        For every fold why the loss is that of the training samples; empty where it is not.
    held_out : list of HeldOut
        For every fold the errors on people held out; empty if nobody was.
    """

    values: Array
    fallbacks: list[str]
    held_out: list[HeldOut] = field(default_factory=list)

    @classmethod
    def in_sample(cls, solved: ChannelFits) -> ChannelLosses:
        """The loss on the training samples."""
        return cls(solved.objectives, [""] * len(solved.objectives))

    @classmethod
    def on_others(cls, judged: list[HeldOut], solved: ChannelFits) -> ChannelLosses:
        """What :func:`judge` found, and the loss on training samples where nobody judges."""
        values, fallbacks = solved.objectives.copy(), [""] * len(judged)
        for at, found in enumerate(judged):
            usable, losses = np.isfinite(values[at]), found.losses()
            if (usable & np.isfinite(losses)).any():
                values[at] = np.where(usable, losses, np.inf)
            else:
                fallbacks[at] = _UNTESTED
        return cls(values, fallbacks, judged)


def n_deals(size: float) -> int:
    """How often the people of a table with so many numbers are dealt."""
    return N_DEALS if size <= _LARGE else 1


def tables_at_a_time(n_channels: int) -> int:
    """How many tables to judge in one batch."""
    return max(1, _PROBLEMS // (N_DEALS * N_FOLDS * n_channels))


def judge(tables: Sequence[Cells], lams: Sequence[float], options: Options) -> list[HeldOut]:
    """Errors of each table's channels on people held out, solved in one batch.

    Parameters
    ----------
    tables : sequence of Cells
    lams : sequence of float
    options : Options
    """
    # Where a loose tolerance is met depends on the path.
    options = replace(options, tol=max(options.tol, _TOL), same_path=True)
    dealt = [cells.first_deals(n_deals(cells.size)) for cells in tables]
    training = [cells.training(*fold) for cells in dealt for fold in cells.folds()]
    if not training:
        return [_nobody(cells, len(lams)) for cells in tables]
    fits = solve_channels(training, list(lams), options, Processes.available())
    found, first = [], 0
    for cells in dealt:
        last = first + len(cells.folds())
        own = fits.tables(slice(first, last))
        found.append(held_out_errors(cells, own, missing_indicator=options.missing_indicator))
        first = last
    return found


def _nobody(cells: Cells, n_lams: int) -> HeldOut:
    """Without folds nobody is held out."""
    n_classes = cells.total.shape[2]
    shape = (0, cells.n_channels, n_lams, n_classes)
    return HeldOut(np.zeros(shape), np.zeros((*shape[:2], n_classes)), np.ones(n_classes))
