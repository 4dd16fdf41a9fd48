from .clinical import class_scores, clinical_scores
from .plan import StudyPlan
from .protocol import Protocol
from .results import Results
from .run import accuracy, cost, imputation, resampling
from .study_size import (
    ElectrodeCurve,
    ParticipantCurve,
    electrode_curve,
    electrodes,
    participant_curve,
    participants,
)
from .training import train_model
from .transfer import transfer, transfer_matrix
from .validation import Validation, validate

__all__ = [
    "ElectrodeCurve",
    "ParticipantCurve",
    "Protocol",
    "Results",
    "StudyPlan",
    "Validation",
    "accuracy",
    "class_scores",
    "clinical_scores",
    "cost",
    "electrode_curve",
    "electrodes",
    "imputation",
    "participant_curve",
    "participants",
    "resampling",
    "train_model",
    "transfer",
    "transfer_matrix",
    "validate",
]
