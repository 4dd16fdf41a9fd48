"""Signals become numbers: one registry of features over shared spectra."""
