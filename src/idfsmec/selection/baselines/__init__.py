"""Feature selectors that IDFS-MEC is compared with; all need complete data.

Filters rank by statistics of the data: ReliefF; mRMR, CMIM, MRMSR and RRCT (``information``).
A wrapper evaluates subsets with a classifier: PS-NSGA. Embedded methods rank by the weights of a
model: FSOR and GRMOR (``orthogonal``), RFS, CD-LSR, group lasso.
"""

from idfsmec.selection.baselines.cdlsr import CDLSR
from idfsmec.selection.baselines.group_lasso import GroupLasso
from idfsmec.selection.baselines.information import CMIM, MRMR, MRMSR, RRCT
from idfsmec.selection.baselines.orthogonal import FSOR, GRMOR
from idfsmec.selection.baselines.psnsga import PSNSGA
from idfsmec.selection.baselines.relieff import ReliefF
from idfsmec.selection.baselines.rfs import RFS

__all__ = [
    "ReliefF",
    "MRMR",
    "CMIM",
    "MRMSR",
    "RRCT",
    "PSNSGA",
    "RFS",
    "FSOR",
    "GRMOR",
    "CDLSR",
    "GroupLasso",
]
