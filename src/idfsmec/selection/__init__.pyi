from .base import rank_grid
from .baselines.embedded import CDLSR, FSOR, GRMOR, RFS, GroupLasso
from .baselines.filters import CMIM, MRMR, MRMSR, RRCT, ReliefF
from .baselines.psnsga import PSNSGA
from .effects import channel_frame, feature_effects, ranking_frame
from .idfsmec import IDFSMEC, IDFSPath, choose_electrodes, idfs_path
from .stability import Stability, StabilitySelector, selection_stability

__all__ = [
    "IDFSMEC",
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
    "rank_grid",
    "feature_effects",
    "ranking_frame",
    "channel_frame",
    "choose_electrodes",
    "Stability",
    "selection_stability",
]
