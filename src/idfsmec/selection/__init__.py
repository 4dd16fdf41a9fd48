"""scikit-learn selectors: IDFSMEC and the methods it is compared with."""

from idfsmec.selection._idfsmec import IDFSMEC
from idfsmec.selection._idfsmeccv import IDFSMECCV
from idfsmec.selection._path import IDFSPath, idfs_path

__all__ = [
    "IDFSMEC",
    "IDFSMECCV",
    "IDFSPath",
    "idfs_path",
]
