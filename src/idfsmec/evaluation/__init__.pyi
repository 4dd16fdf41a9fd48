from .protocol import Protocol, make_folds
from .results import Results, site_scores
from .run import accuracy, cost, imputation, resampling
from .statistics import ChanceBand, RankComparison, chance_band, compare_pairs, compare_ranks
from .tables import by_condition
from .training import TunedMethod, train_model

__all__ = [
    "ChanceBand",
    "Protocol",
    "RankComparison",
    "Results",
    "TunedMethod",
    "accuracy",
    "by_condition",
    "chance_band",
    "compare_pairs",
    "compare_ranks",
    "cost",
    "imputation",
    "make_folds",
    "resampling",
    "site_scores",
    "train_model",
]
