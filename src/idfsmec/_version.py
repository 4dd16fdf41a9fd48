"""The version that is installed."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("idfsmec")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+unknown"
