"""scikit-learn selectors: IDFSMEC and the methods it is compared with."""

from idfsmec.selection._cdlsr import CDLSR
from idfsmec.selection._cmim import CMIM
from idfsmec.selection._idfsmec import IDFSMEC
from idfsmec.selection._mrmr import MRMR
from idfsmec.selection._mrmsr import MRMSR
from idfsmec.selection._path import IDFSPath, idfs_path
from idfsmec.selection._relieff import ReliefF
from idfsmec.selection._rfs import RFS
from idfsmec.selection._rrct import RRCT

__all__ = [
    "CDLSR",
    "CMIM",
    "IDFSMEC",
    "IDFSPath",
    "MRMR",
    "MRMSR",
    "RFS",
    "RRCT",
    "ReliefF",
    "idfs_path",
]
