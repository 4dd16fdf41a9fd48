"""Which channels are missing: detected, read from what EEG people have, made on purpose."""

from idfsmec.missing._apply import mask_features, mask_table
from idfsmec.missing._detect import detect_missing, estimate_typical_amplitude
from idfsmec.missing._detection import Detection
from idfsmec.missing._gaps import PATTERNS, make_gap_mask, make_gaps
from idfsmec.missing._indicator import (
    combine_observed,
    observed_from_annotations,
    observed_from_bads,
    observed_from_channels,
    observed_from_noisy_channels,
    observed_from_reject_log,
)
from idfsmec.missing._rules import DetectionLimits

__all__ = [
    "make_gaps",
    "make_gap_mask",
    "PATTERNS",
    "detect_missing",
    "Detection",
    "DetectionLimits",
    "estimate_typical_amplitude",
    "observed_from_annotations",
    "observed_from_bads",
    "observed_from_channels",
    "observed_from_noisy_channels",
    "observed_from_reject_log",
    "combine_observed",
    "mask_features",
    "mask_table",
]
