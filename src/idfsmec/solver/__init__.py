"""Mathematics of IDFS-MEC on NumPy arrays; imports nothing else of the package.

In the order of reading: :mod:`scaling` (units of features), :mod:`sums` (the only place that sees
samples), :mod:`problem` (the objective of a channel), :mod:`updates` (the paper's three updates),
:mod:`newton` (the last digits), :mod:`solve` (all channels of a table, and their held-out loss),
:mod:`gpu` (the same loop for many problems on a GPU).
"""

from idfsmec.solver.problem import ChannelProblems, kkt_residuals, objective
from idfsmec.solver.scaling import Scaling, is_constant
from idfsmec.solver.solve import (
    ChannelFits,
    HeldOut,
    Options,
    held_out_errors,
    solve,
    solve_channels,
)
from idfsmec.solver.sums import (
    Moments,
    Split,
    Sums,
    n_repeats,
    name_folds,
    table_sums,
    value_folds,
)
from idfsmec.solver.updates import channel_weights, total_objective

__all__ = [
    "ChannelFits",
    "ChannelProblems",
    "HeldOut",
    "Moments",
    "Options",
    "Scaling",
    "Split",
    "Sums",
    "channel_weights",
    "held_out_errors",
    "is_constant",
    "kkt_residuals",
    "n_repeats",
    "name_folds",
    "objective",
    "solve",
    "solve_channels",
    "table_sums",
    "total_objective",
    "value_folds",
]
