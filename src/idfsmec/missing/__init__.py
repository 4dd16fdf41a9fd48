"""Which channels are missing: detected, read from what EEG people have, made on purpose."""

from idfsmec.missing._rules import DetectionLimits
from idfsmec.missing.apply import mask_features, mask_table
from idfsmec.missing.detect import (
    TYPICAL_AMPLITUDE,
    Detection,
    detect_missing,
    estimate_typical_amplitude,
    unusable,
)
from idfsmec.missing.gaps import PATTERNS, make_gap_mask, make_gaps
from idfsmec.missing.observed import (
    combine_observed,
    observed_from_annotations,
    observed_from_bads,
    observed_from_channels,
    observed_from_noisy_channels,
    observed_from_reject_log,
)

__all__ = [
    "make_gaps",
    "make_gap_mask",
    "PATTERNS",
    "detect_missing",
    "Detection",
    "DetectionLimits",
    "TYPICAL_AMPLITUDE",
    "estimate_typical_amplitude",
    "unusable",
    "observed_from_annotations",
    "observed_from_bads",
    "observed_from_channels",
    "observed_from_noisy_channels",
    "observed_from_reject_log",
    "combine_observed",
    "mask_features",
    "mask_table",
]
