"""Where recordings come from: manifests, BIDS trees, named data sets, simulation."""

from idfsmec.data.recording import Recording
from idfsmec.data.simulate import SimulatedCohort, simulate_cohort

__all__ = [
    "Recording",
    "SimulatedCohort",
    "simulate_cohort",
]
