from .electrode_count import ElectrodeCurve, electrode_curve, electrodes
from .protocol import Protocol
from .results import Results
from .run import accuracy, by_condition, cost, imputation, resampling
from .statistics import ChanceBand, chance_band
from .training import TunedMethod, train_model

__all__ = [
    "ChanceBand",
    "ElectrodeCurve",
    "Protocol",
    "Results",
    "TunedMethod",
    "accuracy",
    "by_condition",
    "chance_band",
    "cost",
    "electrode_curve",
    "electrodes",
    "imputation",
    "resampling",
    "train_model",
]
