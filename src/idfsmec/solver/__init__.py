"""Pure mathematics of IDFS-MEC on arrays; imports nothing else of the package.

The order of reading follows the paper: :mod:`scaling` (units of features), :mod:`moments` (the
only place that sees samples), :mod:`table_moments`, :mod:`problem` (the objective of a channel),
:mod:`steps` (the three updates, those of feature weights, projection and channel weights),
:mod:`batch` (the loop) and :mod:`newton` (its end), :mod:`channels` (all channels of a table),
:mod:`held_out` (what they cost on other samples), :mod:`sums` (all of it without samples).
"""

from idfsmec.solver.batch import Solution, solve
from idfsmec.solver.channels import ChannelFits, Options, solve_channels
from idfsmec.solver.held_out import held_out_losses
from idfsmec.solver.moments import Moments, accumulate
from idfsmec.solver.problem import ChannelProblems, kkt_residuals, objective
from idfsmec.solver.scaling import Scaling, is_constant, observed_moments
from idfsmec.solver.steps import channel_weights, total_objective
from idfsmec.solver.sums import (
    ChannelSums,
    add_sums,
    cell_sums,
    losses_of_sums,
    table_of_sums,
)
from idfsmec.solver.table_moments import TableMoments, fold_moments, table_moments

__all__ = [
    "ChannelFits",
    "ChannelProblems",
    "ChannelSums",
    "Moments",
    "Options",
    "Scaling",
    "Solution",
    "TableMoments",
    "accumulate",
    "add_sums",
    "cell_sums",
    "channel_weights",
    "fold_moments",
    "held_out_losses",
    "is_constant",
    "kkt_residuals",
    "losses_of_sums",
    "objective",
    "observed_moments",
    "solve",
    "solve_channels",
    "table_moments",
    "table_of_sums",
    "total_objective",
]
