"""Rank EEG features and channels that tell depression from health when electrodes fall off."""

from importlib.metadata import PackageNotFoundError, version

from idfsmec.prediction import IDFSMECClassifier, IDFSMECRegressor
from idfsmec.selection import (
    IDFSMEC,
    IDFSMECCV,
    CrossChannelReranker,
    IDFSPath,
    StabilitySelector,
    idfs_path,
)
from idfsmec.table import FeatureTable

try:
    __version__ = version("idfsmec")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+unknown"

__all__ = [
    "IDFSMEC",
    "IDFSMECCV",
    "CrossChannelReranker",
    "FeatureTable",
    "IDFSMECClassifier",
    "IDFSMECRegressor",
    "IDFSPath",
    "StabilitySelector",
    "__version__",
    "idfs_path",
]
