from .batch import Extraction, RecordingOutcome, extract_table, extract_to_file
from .extract import FeatureExtractor, RecordingFeatures, extract_features, extract_recording
from .families import (
    DEFAULT_FEATURES,
    FEATURE_SETS,
    FEATURES,
    EpochSignal,
    Feature,
    register_feature,
)
from .settings import DEFAULT_BANDS, FeatureSettings

__all__ = [
    "extract_table",
    "extract_to_file",
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
    "FEATURE_SETS",
    "register_feature",
    "Feature",
    "EpochSignal",
]
