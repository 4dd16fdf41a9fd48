from ._gap_patterns import PATTERNS
from ._rules import DetectionLimits
from .apply import mask_features, mask_table
from .association import (
    association_of_gaps,
    association_warning,
    describe_association,
    gaps_by_class,
    gaps_of_counts,
)
from .detect import (
    TYPICAL_AMPLITUDE,
    Detection,
    detect_missing,
    estimate_typical_amplitude,
    unusable,
)
from .gaps import make_gap_mask, make_gaps
from .mains import MAINS_FREQUENCIES, Mains, checked_mains, remove_mains
from .observed import (
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
    "remove_mains",
    "Mains",
    "MAINS_FREQUENCIES",
    "checked_mains",
    "observed_from_annotations",
    "observed_from_bads",
    "observed_from_channels",
    "observed_from_noisy_channels",
    "observed_from_reject_log",
    "combine_observed",
    "association_of_gaps",
    "association_warning",
    "describe_association",
    "gaps_by_class",
    "gaps_of_counts",
    "mask_features",
    "mask_table",
]
