"""Selectors compared on incomplete tables: protocol, experiments, store, statistics."""

from idfsmec.evaluation.chance import ChanceBand, chance_band, chance_bands
from idfsmec.evaluation.published import published, published_value
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
    "ChanceBand",
    "chance_band",
    "chance_bands",
    "published",
    "published_value",
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
