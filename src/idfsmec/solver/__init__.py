"""Mathematics of IDFS-MEC on NumPy arrays; imports nothing else of the package.

In the order of reading: :mod:`scaling` (units of features and sites), :mod:`sums` (the only place
that sees samples), :mod:`problem` (the objective of a channel), :mod:`updates` (the paper's three
updates), :mod:`newton` (the last digits), :mod:`solve` (all channels of a table, and their
held-out loss), :mod:`gpu` (the same loop for many problems on a GPU).
"""

from idfsmec.solver.problem import ChannelProblems as ChannelProblems
from idfsmec.solver.scaling import Scaling as Scaling
from idfsmec.solver.scaling import is_constant as is_constant
from idfsmec.solver.solve import ChannelFits as ChannelFits
from idfsmec.solver.solve import HeldOut as HeldOut
from idfsmec.solver.solve import Options as Options
from idfsmec.solver.solve import held_out_errors as held_out_errors
from idfsmec.solver.solve import solve_channels as solve_channels
from idfsmec.solver.sums import Moments as Moments
from idfsmec.solver.sums import Split as Split
from idfsmec.solver.sums import Sums as Sums
from idfsmec.solver.sums import n_repeats as n_repeats
from idfsmec.solver.sums import name_folds as name_folds
from idfsmec.solver.sums import table_sums as table_sums
from idfsmec.solver.sums import value_folds as value_folds
from idfsmec.solver.updates import channel_weights as channel_weights
from idfsmec.solver.updates import total_objective as total_objective
