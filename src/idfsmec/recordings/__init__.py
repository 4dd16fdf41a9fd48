"""Where recordings come from: manifests, BIDS trees, named data sets, simulation."""

from idfsmec.recordings.bids import read_bids
from idfsmec.recordings.duplicates import check_duplicates, find_duplicates
from idfsmec.recordings.manifest import read_manifest
from idfsmec.recordings.prepare import channel_plan, montage_name, prepare_raw
from idfsmec.recordings.recording import Recording
from idfsmec.recordings.releases.modma import read_modma3, read_modma128
from idfsmec.recordings.releases.pred import read_pred_d003
from idfsmec.recordings.simulate.cohort import SimulatedCohort, simulate_cohort
from idfsmec.recordings.sources import DATA_SETS, find_recordings

__all__ = [
    "Recording",
    "find_recordings",
    "DATA_SETS",
    "read_manifest",
    "read_bids",
    "read_modma3",
    "read_modma128",
    "read_pred_d003",
    "prepare_raw",
    "channel_plan",
    "montage_name",
    "find_duplicates",
    "check_duplicates",
    "SimulatedCohort",
    "simulate_cohort",
]
