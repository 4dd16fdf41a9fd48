"""Selectors compared on incomplete tables: protocol, experiments, store, statistics."""

from idfsmec.evaluation._resampling import resample_table, resampling
from idfsmec.evaluation.chance import ChanceBand, chance_band, chance_bands
from idfsmec.evaluation.experiments import ablation, accuracy, cost, sensitivity
from idfsmec.evaluation.folds import make_folds
from idfsmec.evaluation.methods import Contestant, find_contestants
from idfsmec.evaluation.protocol import Protocol
from idfsmec.evaluation.results import Results
from idfsmec.evaluation.stability import Stability, selection_matrix, selection_stability
from idfsmec.evaluation.statistics import (
    MeanInterval,
    RankComparison,
    compare_pairs,
    compare_ranks,
    corrected_interval,
    holm,
)

__all__ = [
    "accuracy",
    "ablation",
    "sensitivity",
    "cost",
    "resampling",
    "resample_table",
    "Protocol",
    "Contestant",
    "find_contestants",
    "make_folds",
    "Results",
    "ChanceBand",
    "chance_band",
    "chance_bands",
    "Stability",
    "selection_matrix",
    "selection_stability",
    "MeanInterval",
    "RankComparison",
    "compare_pairs",
    "compare_ranks",
    "corrected_interval",
    "holm",
]
