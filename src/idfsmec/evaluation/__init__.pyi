from .clinical import clinical_scores
from .protocol import Protocol
from .results import Results
from .run import accuracy, cost, imputation, resampling
from .statistics import ChanceBand, chance_band
from .study_size import (
    ElectrodeCurve,
    ParticipantCurve,
    electrode_curve,
    electrodes,
    participant_curve,
    participants,
)
from .training import train_model
from .validation import Validation, validate

__all__ = [
    "ChanceBand",
    "ElectrodeCurve",
    "ParticipantCurve",
    "Protocol",
    "Results",
    "Validation",
    "accuracy",
    "chance_band",
    "clinical_scores",
    "cost",
    "electrode_curve",
    "electrodes",
    "imputation",
    "participant_curve",
    "participants",
    "resampling",
    "train_model",
    "validate",
]
