"""The ten selectors that IDFS-MEC is compared with; all need complete data.

Filters rank by statistics of the data: ReliefF; mRMR, CMIM, MRMSR (``information_filters``); RRCT.
A wrapper tries subsets with a classifier: PS-NSGA. Embedded methods rank by the weights of a
model: FSOR and GRMOR (``orthogonal``), RFS, CD-LSR.
"""

from idfsmec.selection.rivals.cdlsr import CDLSR
from idfsmec.selection.rivals.information_filters import CMIM, MRMR, MRMSR
from idfsmec.selection.rivals.orthogonal import FSOR, GRMOR
from idfsmec.selection.rivals.psnsga import PSNSGA
from idfsmec.selection.rivals.relieff import ReliefF
from idfsmec.selection.rivals.rfs import RFS
from idfsmec.selection.rivals.rrct import RRCT

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
]
