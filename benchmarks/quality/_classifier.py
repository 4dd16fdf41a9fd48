"""IDFSMECClassifier on the folds of a comparison, scored as its methods are."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from idfsmec.evaluation import Protocol
from idfsmec.evaluation.tasks import load_fold
from idfsmec.metrics import score_decisions
from idfsmec.prediction import IDFSMECClassifier
from idfsmec.prediction.samples import Samples
from idfsmec.table import FeatureTable

NAME = "IDFSMECClassifier"
METRICS = ("balanced_accuracy", "subject_roc_auc")


def score_classifier(
    tables: Mapping[str, FeatureTable], protocol: Protocol, n_jobs: int
) -> pd.DataFrame:
    """Scores at its defaults: a row for each table of two classes, rate, seed and fold."""
    arrays = [Samples.of(name, table) for name, table in tables.items()]
    rows = Parallel(n_jobs, verbose=1)(  # minutes: says how far it is
        delayed(_score)(table, protocol, rate, seed, fold)
        for table in arrays
        for rate in protocol.rates
        for seed in protocol.seeds
        for fold in range(protocol.n_splits)
    )
    return pd.DataFrame(rows)


def _score(
    table: Samples, protocol: Protocol, rate: float, seed: int, fold: int
) -> dict[str, object]:
    fold_samples = load_fold(table, protocol, protocol.patterns[0], rate, seed, fold)
    training, held_out = fold_samples.training, fold_samples.held_out
    model, prepared = IDFSMECClassifier(channels=table.channel_of), training.prepare()
    model.fit(prepared.X, training.samples.y, groups=training.samples.groups)
    of_second = model.decision_function(prepared.steps.apply(held_out))
    decisions = np.column_stack([-of_second, of_second])
    return {
        "method": NAME, "table": table.name, "rate": rate, "seed": seed, "fold": fold,
        **score_decisions(decisions, held_out.y, held_out.subjects, METRICS),
    }  # fmt: skip
