from .association import (
    association_warning,
    describe_association,
    missingness_association,
    missingness_by_class,
    missingness_from_counts,
)
from .detection import (
    TYPICAL_AMPLITUDE,
    Detection,
    DetectionLimits,
    detect_missing,
    estimate_typical_amplitude,
    unusable,
)
from .line_noise import LINE_FREQUENCIES, LineNoise, check_line_freq, remove_line_noise
from .masks import (
    combine_observed,
    mask_features,
    mask_table,
    observed_from_annotations,
    observed_from_bads,
    observed_from_channels,
    observed_from_noisy_channels,
    observed_from_reject_log,
)
from .patterns import PATTERNS, simulate_missing, simulate_missing_mask

__all__ = [
    "LINE_FREQUENCIES",
    "PATTERNS",
    "TYPICAL_AMPLITUDE",
    "Detection",
    "DetectionLimits",
    "LineNoise",
    "association_warning",
    "check_line_freq",
    "combine_observed",
    "describe_association",
    "detect_missing",
    "estimate_typical_amplitude",
    "mask_features",
    "mask_table",
    "missingness_association",
    "missingness_by_class",
    "missingness_from_counts",
    "observed_from_annotations",
    "observed_from_bads",
    "observed_from_channels",
    "observed_from_noisy_channels",
    "observed_from_reject_log",
    "remove_line_noise",
    "simulate_missing",
    "simulate_missing_mask",
    "unusable",
]
