from .datasets.ds005356 import read_ds005356
from .datasets.modma import read_modma3, read_modma128
from .datasets.mumtaz import read_mumtaz
from .datasets.pred import read_pred_d003
from .datasets.tdbrain import read_tdbrain
from .recording import Recording, channel_plan, check_duplicates, find_duplicates, prepare_raw
from .simulate import SimulatedCohort, simulate_cohort
from .sources import DATA_SETS, find_recordings, read_bids, read_manifest

__all__ = [
    "DATA_SETS",
    "Recording",
    "SimulatedCohort",
    "channel_plan",
    "check_duplicates",
    "find_duplicates",
    "find_recordings",
    "prepare_raw",
    "read_bids",
    "read_ds005356",
    "read_manifest",
    "read_modma3",
    "read_modma128",
    "read_mumtaz",
    "read_pred_d003",
    "read_tdbrain",
    "simulate_cohort",
]
