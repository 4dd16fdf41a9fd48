"""Signals become numbers: one pipeline, one registry of features over shared spectra."""

# Importing the two families registers the package's own features.
from idfsmec.features import spectral, time_domain
from idfsmec.features.compute import compute_features
from idfsmec.features.epoch_signal import EpochSignal
from idfsmec.features.extract import FeatureExtractor, extract_features
from idfsmec.features.outcomes import Extraction, RecordingOutcome
from idfsmec.features.pipeline import RecordingFeatures, extract_recording
from idfsmec.features.registry import (
    DEFAULT_FEATURES,
    FEATURES,
    Feature,
    FeatureRegistry,
    register_feature,
)
from idfsmec.features.run import check_output, extract_table, extract_to_file
from idfsmec.features.settings import DEFAULT_BANDS, FeatureSettings

__all__ = [
    "extract_table",
    "extract_to_file",
    "check_output",
    "Extraction",
    "RecordingOutcome",
    "extract_features",
    "extract_recording",
    "RecordingFeatures",
    "FeatureExtractor",
    "FeatureSettings",
    "DEFAULT_BANDS",
    "DEFAULT_FEATURES",
    "FEATURES",
    "register_feature",
    "Feature",
    "FeatureRegistry",
    "EpochSignal",
    "compute_features",
    "spectral",
    "time_domain",
]
