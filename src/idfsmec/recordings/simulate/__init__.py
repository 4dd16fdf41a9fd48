"""Resting-EEG cohorts with a known group effect, artefacts and detached electrodes."""
