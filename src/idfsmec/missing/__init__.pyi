from .association import missingness_association
from .detection import Detection, DetectionLimits, detect_missing, estimate_typical_amplitude
from .masks import (
    combine_observed,
    mask_table,
    observed_from_annotations,
    observed_from_bads,
    observed_from_reject_log,
)
from .patterns import PATTERNS, simulate_missing, simulate_missing_mask

__all__ = [
    "PATTERNS",
    "Detection",
    "DetectionLimits",
    "combine_observed",
    "detect_missing",
    "estimate_typical_amplitude",
    "mask_table",
    "missingness_association",
    "observed_from_annotations",
    "observed_from_bads",
    "observed_from_reject_log",
    "simulate_missing",
    "simulate_missing_mask",
]
