from .protocol import Protocol
from .results import Results
from .run import accuracy, by_condition, cost, imputation, resampling
from .statistics import ChanceBand, chance_band
from .training import TunedMethod, train_model

__all__ = [
    "ChanceBand",
    "Protocol",
    "Results",
    "TunedMethod",
    "accuracy",
    "by_condition",
    "chance_band",
    "cost",
    "imputation",
    "resampling",
    "train_model",
]
