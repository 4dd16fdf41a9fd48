from .by_site import site_scores
from .chance import ChanceBand, chance_band, chance_bands
from .experiments import accuracy, cost, filling
from .folds import make_folds
from .intervals import MeanInterval, compare_folds, corrected_interval
from .method import Method
from .methods import METHODS, find_methods, register_method
from .models import train_model
from .parts import (
    CLASSIFIERS,
    FILLERS,
    Classifier,
    Filler,
    register_classifier,
    register_filler,
)
from .protocol import Protocol
from .results import Results
from .run import resampling
from .stability import Stability, selection_matrix, selection_stability
from .statistics import RankComparison, compare_pairs, compare_ranks, holm
from .tables import by_condition
from .tuned_method import TunedMethod

__all__ = [
    "CLASSIFIERS",
    "FILLERS",
    "METHODS",
    "ChanceBand",
    "Classifier",
    "Filler",
    "MeanInterval",
    "Method",
    "Protocol",
    "RankComparison",
    "Results",
    "Stability",
    "TunedMethod",
    "accuracy",
    "by_condition",
    "chance_band",
    "chance_bands",
    "compare_folds",
    "compare_pairs",
    "compare_ranks",
    "corrected_interval",
    "cost",
    "filling",
    "find_methods",
    "holm",
    "make_folds",
    "register_classifier",
    "register_filler",
    "register_method",
    "resampling",
    "selection_matrix",
    "selection_stability",
    "site_scores",
    "train_model",
]
