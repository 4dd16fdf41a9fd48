"""Signals become numbers: one registry of features over shared spectra."""

from idfsmec.features._compute import DEFAULT_FEATURES, compute_features
from idfsmec.features._extract import MICROVOLTS_PER_VOLT, extract_features, feature_columns
from idfsmec.features._grid import EpochGrid
from idfsmec.features._options import ExtractionOptions
from idfsmec.features._outcome import Extraction, Outcome
from idfsmec.features._prepare import (
    PreparedEpochs,
    SignalPath,
    prepare_epochs,
    prepare_recording,
)
from idfsmec.features._recording import RecordingFeatures, extract_recording
from idfsmec.features._registry import Feature, FeatureRegistry, register_feature, registry
from idfsmec.features._run import extract_table
from idfsmec.features._settings import DEFAULT_BANDS, FeatureSettings
from idfsmec.features._signal import EpochSignal
from idfsmec.features._to_file import check_output, extract_to_file
from idfsmec.features._transformer import FeatureExtractor

__all__ = [
    "extract_table",
    "extract_to_file",
    "check_output",
    "Extraction",
    "Outcome",
    "ExtractionOptions",
    "extract_recording",
    "RecordingFeatures",
    "extract_features",
    "FeatureExtractor",
    "FeatureSettings",
    "SignalPath",
    "DEFAULT_BANDS",
    "DEFAULT_FEATURES",
    "register_feature",
    "registry",
    "Feature",
    "FeatureRegistry",
    "EpochSignal",
    "compute_features",
    "prepare_recording",
    "prepare_epochs",
    "PreparedEpochs",
    "EpochGrid",
    "feature_columns",
    "MICROVOLTS_PER_VOLT",
]
