"""Rank EEG features and channels that tell depression from health when electrodes fall off."""

from importlib.metadata import PackageNotFoundError, version

from idfsmec.selection import IDFSMEC, IDFSMECCV, IDFSPath, idfs_path

try:
    __version__ = version("idfsmec")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+unknown"

__all__ = [
    "IDFSMEC",
    "IDFSMECCV",
    "IDFSPath",
    "__version__",
    "idfs_path",
]
