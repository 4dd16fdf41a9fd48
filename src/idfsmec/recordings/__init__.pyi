from .bids import read_bids
from .datasets.modma import read_modma3, read_modma128
from .datasets.pred import read_pred_d003
from .manifest import read_manifest
from .reading import channel_plan, find_boundaries, montage_name, prepare_raw
from .recording import Recording, check_duplicates, find_duplicates
from .simulate import SimulatedCohort, simulate_cohort
from .sources import DATA_SETS, find_recordings

__all__ = [
    "DATA_SETS",
    "Recording",
    "SimulatedCohort",
    "channel_plan",
    "check_duplicates",
    "find_boundaries",
    "find_duplicates",
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
