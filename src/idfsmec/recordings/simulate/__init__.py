"""Resting-EEG cohorts with a known group effect, artefacts and detached electrodes."""

from idfsmec.recordings.simulate.cohort import SimulatedCohort, simulate_cohort

__all__ = ["SimulatedCohort", "simulate_cohort"]
