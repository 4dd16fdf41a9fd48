"""Pure mathematics of IDFS-MEC on arrays; imports nothing else of the package.

The order of reading follows the paper: :mod:`scaling` (units of features), :mod:`moments` (the
only place that sees samples), :mod:`table_moments`, :mod:`problem` (the objective of a channel),
:mod:`steps` (the three updates, those of feature weights, projection and channel weights),
:mod:`batch` (the loop) and :mod:`newton` (its end), :mod:`channels` (all channels of a table),
:mod:`sums`, :mod:`seats`, :mod:`blocks` and :mod:`cells` (a table summed up by folds of people),
:mod:`held_out` (what channels cost on other people), :mod:`patterns` (products between channels).
"""

from idfsmec.solver.batch import Solution, solve
from idfsmec.solver.blocks import Block, blocks, people_sums
from idfsmec.solver.cells import Cells, table_cells
from idfsmec.solver.channels import Options, solve_channels
from idfsmec.solver.fits import ChannelFits
from idfsmec.solver.held_out import HeldOut, clipped_error, held_out_errors
from idfsmec.solver.moments import Moments, accumulate
from idfsmec.solver.patterns import PatternSums
from idfsmec.solver.problem import ChannelProblems, kkt_residuals, objective
from idfsmec.solver.scaling import Scaling, is_constant, observed_moments
from idfsmec.solver.seats import Seats
from idfsmec.solver.steps import channel_weights, total_objective
from idfsmec.solver.sums import ChannelSums, add_sums, merge_folds
from idfsmec.solver.table_moments import TableMoments, fold_moments, table_moments

__all__ = [
    "Block",
    "Cells",
    "ChannelFits",
    "ChannelProblems",
    "ChannelSums",
    "HeldOut",
    "Moments",
    "Options",
    "PatternSums",
    "Scaling",
    "Seats",
    "Solution",
    "TableMoments",
    "accumulate",
    "add_sums",
    "blocks",
    "channel_weights",
    "clipped_error",
    "fold_moments",
    "held_out_errors",
    "is_constant",
    "kkt_residuals",
    "merge_folds",
    "objective",
    "observed_moments",
    "people_sums",
    "solve",
    "solve_channels",
    "table_cells",
    "table_moments",
    "total_objective",
]
