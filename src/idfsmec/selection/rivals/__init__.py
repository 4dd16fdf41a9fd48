"""The ten selectors that IDFS-MEC is compared with; all need complete data."""

from idfsmec.selection.rivals.cdlsr import CDLSR
from idfsmec.selection.rivals.cmim import CMIM
from idfsmec.selection.rivals.fsor import FSOR
from idfsmec.selection.rivals.grmor import GRMOR
from idfsmec.selection.rivals.mrmr import MRMR
from idfsmec.selection.rivals.mrmsr import MRMSR
from idfsmec.selection.rivals.psnsga import PSNSGA
from idfsmec.selection.rivals.relieff import ReliefF
from idfsmec.selection.rivals.rfs import RFS
from idfsmec.selection.rivals.rrct import RRCT

__all__ = [
    "CDLSR",
    "CMIM",
    "FSOR",
    "GRMOR",
    "MRMR",
    "MRMSR",
    "PSNSGA",
    "ReliefF",
    "RFS",
    "RRCT",
]
