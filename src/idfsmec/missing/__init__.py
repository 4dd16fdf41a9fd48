"""Which channels are missing: detected, read from what EEG people have, made on purpose."""

from idfsmec.missing._detect import DetectionLimits, detect_missing, estimate_typical_amplitude
from idfsmec.missing._detection import Detection

__all__ = [
    "Detection",
    "DetectionLimits",
    "detect_missing",
    "estimate_typical_amplitude",
]
