"""Where recordings come from: manifests, BIDS trees, named data sets, simulation."""

from idfsmec.data.bids import read_bids
from idfsmec.data.channels import ChannelPlan, plan_channels, standard_name
from idfsmec.data.duplicates import check_duplicates, find_duplicates
from idfsmec.data.manifest import read_manifest
from idfsmec.data.modma import read_modma3, read_modma128
from idfsmec.data.pred import read_pred_d003
from idfsmec.data.prepare import channel_plan, montage_name, prepare_raw
from idfsmec.data.recording import Recording
from idfsmec.data.simulate import SimulatedCohort, simulate_cohort

__all__ = [
    "Recording",
    "read_manifest",
    "read_bids",
    "read_modma3",
    "read_modma128",
    "read_pred_d003",
    "prepare_raw",
    "channel_plan",
    "montage_name",
    "ChannelPlan",
    "plan_channels",
    "standard_name",
    "find_duplicates",
    "check_duplicates",
    "SimulatedCohort",
    "simulate_cohort",
]
