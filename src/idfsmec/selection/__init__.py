"""scikit-learn selectors: IDFSMEC and the methods it is compared with."""

from idfsmec.selection._cdlsr import CDLSR
from idfsmec.selection._classifier import IDFSMECClassifier
from idfsmec.selection._cmim import CMIM
from idfsmec.selection._cross_channel import CrossChannelReranker
from idfsmec.selection._frames import channel_frame, ranking_frame
from idfsmec.selection._fsor import FSOR
from idfsmec.selection._grmor import GRMOR
from idfsmec.selection._idfsmec import IDFSMEC
from idfsmec.selection._idfsmeccv import IDFSMECCV
from idfsmec.selection._mrmr import MRMR
from idfsmec.selection._mrmsr import MRMSR
from idfsmec.selection._path import IDFSPath, idfs_path
from idfsmec.selection._psnsga import PSNSGA
from idfsmec.selection._registry import METHODS, Method, register_method
from idfsmec.selection._regressor import IDFSMECRegressor
from idfsmec.selection._relieff import ReliefF
from idfsmec.selection._rfs import RFS
from idfsmec.selection._rrct import RRCT
from idfsmec.selection._stability import StabilitySelector
from idfsmec.selection.agreement import Stability, selection_stability

__all__ = [
    "CDLSR",
    "CMIM",
    "CrossChannelReranker",
    "FSOR",
    "GRMOR",
    "IDFSMEC",
    "IDFSMECCV",
    "IDFSMECClassifier",
    "IDFSMECRegressor",
    "IDFSPath",
    "METHODS",
    "MRMR",
    "MRMSR",
    "Method",
    "PSNSGA",
    "RFS",
    "RRCT",
    "ReliefF",
    "channel_frame",
    "idfs_path",
    "StabilitySelector",
    "Stability",
    "selection_stability",
    "ranking_frame",
    "register_method",
]
