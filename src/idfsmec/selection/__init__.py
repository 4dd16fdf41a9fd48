"""scikit-learn selectors: IDFSMEC and the methods it is compared with."""

from idfsmec.selection._cmim import CMIM
from idfsmec.selection._mrmr import MRMR
from idfsmec.selection._mrmsr import MRMSR
from idfsmec.selection._relieff import ReliefF
from idfsmec.selection._rrct import RRCT

__all__ = [
    "CMIM",
    "MRMR",
    "MRMSR",
    "RRCT",
    "ReliefF",
]
