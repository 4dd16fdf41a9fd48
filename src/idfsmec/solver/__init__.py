"""Pure mathematics of IDFS-MEC on arrays; imports nothing else of the package.

The order of reading follows the paper: :mod:`moments` (the only place that sees samples),
:mod:`problem` (the objective of a channel), :mod:`theta_step` and :mod:`w_step` (its two
updates), :mod:`batch` (the loop), :mod:`channel_weights` (alpha, at the end).
"""

from idfsmec.solver.batch import Solution, solve
from idfsmec.solver.channel_weights import channel_weights, total_objective
from idfsmec.solver.moments import Moments, accumulate
from idfsmec.solver.problem import ChannelProblems, kkt_residuals, objective

__all__ = [
    "ChannelProblems",
    "Moments",
    "Solution",
    "accumulate",
    "channel_weights",
    "kkt_residuals",
    "objective",
    "solve",
    "total_objective",
]
