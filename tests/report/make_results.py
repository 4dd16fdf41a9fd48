"""Results folders for the tests of the report, made by the engine on small simulated tables."""

import numpy as np
import pandas as pd

from idfsmec import evaluation, paper
from idfsmec.evaluation import Protocol
from idfsmec.table import FeatureTable
from tests.evaluation.cohorts import OURS

FEATURES = ("ap_theta", "ap_alpha", "de_beta", "hjorth_mobility", "spectral_entropy", "skewness")
CHANNELS = ("Fp1", "Fp2", "F3", "F4", "C3", "C4", "O1", "O2")
EXPERIMENTS = ("accuracy", "ablation", "sensitivity", "cost", "resampling")


def simulate(
    channels=CHANNELS, n_features=4, n_subjects=24, n_epochs=3, labels=("HC", "MDD"), effect=0.6,
    seed=0,
):  # fmt: skip
    """Subjects with epochs; the first third of the channels tells the groups apart."""
    rng = np.random.default_rng(seed)
    group = np.arange(n_subjects) % len(labels)
    trait = rng.normal(size=(n_subjects, len(channels), n_features))
    informative = max(1, len(channels) // 3)
    trait[:, :informative, :2] += effect * (2 * group - len(labels) + 1)[:, None, None]
    X = np.repeat(trait, n_epochs, axis=0)
    X = X + rng.normal(size=X.shape)
    X[rng.random(X.shape[:2]) < np.linspace(0, 0.2, len(channels))] = np.nan
    columns = [f"{channel}__{name}" for channel in channels for name in FEATURES[:n_features]]
    return FeatureTable(
        pd.DataFrame(X.reshape(len(X), -1), columns=columns),
        np.array(labels)[np.repeat(group, n_epochs)],
        np.repeat([f"sub-{s + 1:02d}" for s in range(n_subjects)], n_epochs),
    )


def write_results(
    folder,
    tables=None,
    experiments=EXPERIMENTS,
    methods=("ReliefF", "mRMR", "random", "all features"),
    **options,
):
    """Run experiments small enough for a test into a folder."""
    tables = tables or {"cohort": simulate()}
    options = {"rates": (0.0, 0.3), "n_splits": 3, "n_inner_splits": 2, "ks": (3, 6, 12),
               "svm_costs": (0.1,)} | options  # fmt: skip
    protocol = Protocol(**options)
    here = {"n_jobs": 1}
    if "accuracy" in experiments:
        evaluation.accuracy(tables, folder, methods=[OURS, *methods], protocol=protocol, **here)
    gapped = protocol.with_changes(rates=(0.3,))
    if "ablation" in experiments:
        two = gapped.with_changes(n_splits=2)
        paper.ablation(tables, folder, protocol=two, **here)
    if "sensitivity" in experiments:
        paper.sensitivity(
            tables, folder, lams=(0.1, 1.0, 10.0), gammas=(1.5, 2.0, 5.0), protocol=gapped, **here
        )
    if "cost" in experiments:
        evaluation.cost(
            tables, folder, methods=["IDFS-MEC", "ReliefF", "mRMR"],
            channel_counts=[min(3, len(table.channels)) for table in tables.values()][:1] or None,
            protocol=gapped,
        )  # fmt: skip
    if "resampling" in experiments:
        evaluation.resampling(tables, folder, n_resamples=20)
    return folder
