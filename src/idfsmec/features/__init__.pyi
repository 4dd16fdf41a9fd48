from . import asymmetry, connectivity, mne_functions, optional, spectral, time_domain
from .compute import compute_features
from .derivative import check_derivative, write_derivative
from .epoch_signal import EpochSignal
from .extract import FeatureExtractor, extract_features
from .outcomes import Extraction, RecordingOutcome
from .pipeline import RecordingFeatures, extract_recording
from .registry import (
    DEFAULT_FEATURES,
    FEATURE_SETS,
    FEATURES,
    Feature,
    FeatureRegistry,
    register_feature,
)
from .run import check_output, extract_table, extract_to_file
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
    "asymmetry",
    "connectivity",
    "mne_functions",
    "optional",
    "spectral",
    "time_domain",
]
