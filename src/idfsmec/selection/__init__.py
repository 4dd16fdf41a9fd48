"""scikit-learn selectors: IDFSMEC and the methods it is compared with."""

from idfsmec.selection._base import CompleteSelector, RankingSelector
from idfsmec.selection._registry import METHODS, Method, register_method
from idfsmec.selection.agreement import Stability, selection_stability
from idfsmec.selection.cross_channel import CrossChannelReranker
from idfsmec.selection.frames import channel_frame, ranking_frame
from idfsmec.selection.grid import GridSelector, rank_grid
from idfsmec.selection.idfsmec.estimator import IDFSMEC
from idfsmec.selection.idfsmec.path import IDFSPath, idfs_path
from idfsmec.selection.idfsmec.search import IDFSMECCV
from idfsmec.selection.rivals import (
    CDLSR,
    CMIM,
    FSOR,
    GRMOR,
    MRMR,
    MRMSR,
    PSNSGA,
    RFS,
    RRCT,
    ReliefF,
)
from idfsmec.selection.stability import StabilitySelector

__all__ = [
    "IDFSMEC",
    "IDFSMECCV",
    "IDFSPath",
    "idfs_path",
    "StabilitySelector",
    "CrossChannelReranker",
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
    "RankingSelector",
    "CompleteSelector",
    "GridSelector",
    "rank_grid",
    "ranking_frame",
    "channel_frame",
    "Stability",
    "selection_stability",
    "METHODS",
    "Method",
    "register_method",
]
