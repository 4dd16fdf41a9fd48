from .folds import make_folds
from .protocol import Protocol
from .results import Results, site_scores
from .run import accuracy, best_baseline, cost, imputation, resampling
from .statistics import (
    ChanceBand,
    MeanInterval,
    RankComparison,
    Stability,
    chance_band,
    chance_bands,
    compare_folds,
    compare_pairs,
    compare_ranks,
    corrected_interval,
    holm,
    selection_matrix,
    selection_stability,
)
from .tables import by_condition
from .training import TunedMethod, train_model

__all__ = [
    "ChanceBand",
    "MeanInterval",
    "Protocol",
    "RankComparison",
    "Results",
    "Stability",
    "TunedMethod",
    "accuracy",
    "best_baseline",
    "by_condition",
    "chance_band",
    "chance_bands",
    "compare_folds",
    "compare_pairs",
    "compare_ranks",
    "corrected_interval",
    "cost",
    "holm",
    "imputation",
    "make_folds",
    "resampling",
    "selection_matrix",
    "selection_stability",
    "site_scores",
    "train_model",
]
