"""scikit-learn selectors: IDFSMEC and the methods it is compared with."""

from idfsmec.selection._frames import channel_frame, ranking_frame
from idfsmec.selection._idfsmec import IDFSMEC
from idfsmec.selection._idfsmeccv import IDFSMECCV
from idfsmec.selection._path import IDFSPath, idfs_path

__all__ = [
    "IDFSMEC",
    "IDFSMECCV",
    "IDFSPath",
    "channel_frame",
    "idfs_path",
    "ranking_frame",
]
