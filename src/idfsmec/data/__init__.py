"""Where recordings come from: manifests, BIDS trees, named data sets, simulation."""

from idfsmec.data.channels import ChannelPlan, plan_channels, standard_name
from idfsmec.data.duplicates import check_duplicates, find_duplicates
from idfsmec.data.manifest import read_manifest
from idfsmec.data.prepare import channel_plan, montage_name, prepare_raw
from idfsmec.data.recording import Recording

__all__ = [
    "Recording",
    "read_manifest",
    "prepare_raw",
    "channel_plan",
    "montage_name",
    "ChannelPlan",
    "plan_channels",
    "standard_name",
    "find_duplicates",
    "check_duplicates",
]
