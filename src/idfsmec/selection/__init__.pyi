from ._base import CompleteSelector, RankingSelector
from .agreement import Stability, selection_stability
from .baselines import (
    CDLSR,
    CMIM,
    FSOR,
    GRMOR,
    MRMR,
    MRMSR,
    PSNSGA,
    RFS,
    RRCT,
    GroupLasso,
    ReliefF,
)
from .cross_channel import CrossChannelReranker
from .effects import feature_effects
from .frames import channel_frame, ranking_frame
from .grid import GridSelector, rank_grid
from .idfsmec.estimator import IDFSMEC
from .idfsmec.path import IDFSPath, idfs_path
from .idfsmec.search import IDFSMECCV
from .stability import StabilitySelector

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
    "GroupLasso",
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
    "feature_effects",
    "ranking_frame",
    "channel_frame",
    "Stability",
    "selection_stability",
]
