from .bids import read_bids
from .duplicates import check_duplicates, find_duplicates
from .joints import find_joints
from .manifest import read_manifest
from .prepare import channel_plan, montage_name, prepare_raw
from .recording import Recording
from .releases.modma import read_modma3, read_modma128
from .releases.pred import read_pred_d003
from .simulate.cohort import SimulatedCohort, simulate_cohort
from .sources import DATA_SETS, find_recordings

__all__ = [
    "DATA_SETS",
    "Recording",
    "SimulatedCohort",
    "channel_plan",
    "check_duplicates",
    "find_duplicates",
    "find_joints",
    "find_recordings",
    "montage_name",
    "prepare_raw",
    "read_bids",
    "read_manifest",
    "read_modma3",
    "read_modma128",
    "read_pred_d003",
    "simulate_cohort",
]
