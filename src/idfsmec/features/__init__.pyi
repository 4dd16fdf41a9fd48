from . import families
from .batch import Extraction, RecordingOutcome, check_output, extract_table, extract_to_file
from .derivative import check_derivative, write_derivative
from .extract import (
    FeatureExtractor,
    RecordingFeatures,
    compute_features,
    extract_features,
    extract_recording,
)
from .families import EpochSignal
from .registry import (
    DEFAULT_FEATURES,
    FEATURE_SETS,
    FEATURES,
    Feature,
    FeatureRegistry,
    register_feature,
)
from .settings import DEFAULT_BANDS, FeatureSettings

__all__ = [
    "extract_table",
    "extract_to_file",
    "write_derivative",
    "check_output",
    "check_derivative",
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
    "FeatureRegistry",
    "EpochSignal",
    "compute_features",
    "families",
]
