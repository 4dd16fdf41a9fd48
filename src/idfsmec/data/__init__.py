"""Where recordings come from: manifests, BIDS trees, named data sets, simulation."""

from idfsmec.data.recording import Recording

__all__ = [
    "Recording",
]
