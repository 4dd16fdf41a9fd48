"""Rank EEG features and channels that tell depression from health when electrodes fall off."""

from importlib.metadata import PackageNotFoundError, version

from idfsmec.selection import IDFSMEC

try:
    __version__ = version("idfsmec")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+unknown"

__all__ = ["IDFSMEC", "__version__"]
