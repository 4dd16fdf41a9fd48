from ._base import CompleteSelector, RankingSelector
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
from .effects import channel_frame, feature_effects, ranking_frame
from .grid import GridSelector, rank_grid
from .idfsmec import IDFSMEC
from .path import IDFSPath, idfs_path
from .search import IDFSMECCV
from .stability import Stability, StabilitySelector, selection_stability

__all__ = [
    "IDFSMEC",
    "IDFSMECCV",
    "IDFSPath",
    "idfs_path",
    "StabilitySelector",
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
