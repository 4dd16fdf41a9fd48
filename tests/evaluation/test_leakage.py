"""Nothing of the test may reach the training: chance stays chance, and identity earns nothing."""

import functools

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from idfsmec.evaluation import Protocol, accuracy
from idfsmec.evaluation.tasks import plan_folds, run_task
from idfsmec.prediction.folds import make_folds
from idfsmec.prediction.methods import METHODS, Method, find_methods
from idfsmec.prediction.sanity import ForestImportance
from idfsmec.selection import PSNSGA
from idfsmec.table import FeatureTable

from .cohorts import make_arrays, make_cohort
from .test_fold_samples import perturbed

QUICK = [
    Method("PS-NSGA", PSNSGA(population_size=10, n_generations=3)),
    Method("random forest", ForestImportance(n_estimators=20, random_state=0), "sanity"),
]
NAMES = [
    *("IDFS-MEC", "ReliefF", "mRMR", "CMIM", "MRMSR", "RRCT", "RFS", "FSOR", "GRMOR", "CD-LSR"),
    *(name for name, one in METHODS.items() if one.family == "sanity"),
]
EVERYONE = [*(name for name in NAMES if name != "random forest"), *QUICK]


def shuffled(table, seed):
    """Give labels to people by chance: all samples of a subject get the same one."""
    rng = np.random.default_rng(seed)
    people = table.subjects.unique()
    labels = dict(zip(people, rng.permutation(np.arange(people.size) % 2), strict=True))
    return FeatureTable(table.X, table.subjects.map(labels), table.subjects)


@pytest.mark.slow
def test_with_labels_shuffled_by_subject_every_method_stays_at_chance(tmp_path):
    base = make_cohort(n_subjects=30, n_epochs=4, n_channels=4, subject_spread=2.0, effect=0.0)
    table = shuffled(base, seed=0)
    protocol = Protocol(rates=[0.2], n_splits=3, ks=[3, 6], svm_costs=[0.1], n_inner_splits=2)
    results = accuracy(table, tmp_path, methods=EVERYONE, protocol=protocol, n_jobs=1)
    assert len(results.failures) == 0
    means = results.chosen().groupby("method")["balanced_accuracy"].mean()
    assert set(means.index) == {*NAMES, "PS-NSGA"}
    # 30 participants guessed at random are right so often in one of a thousand studies.
    highest = binom.ppf(0.9995, 30, 0.5) / 30
    assert means.max() < highest, means[means >= highest]


@pytest.mark.slow
def test_who_somebody_is_helps_with_sample_folds_only(tmp_path):
    rng = np.random.default_rng(0)
    subjects = np.repeat(np.arange(24), 8)
    y = rng.permutation(np.arange(24) % 2)[subjects]
    X = rng.normal(size=(subjects.size, 12))
    # Each person's own signature, over several features, without any group difference.
    X[:, :8] += 3 * rng.normal(size=(24, 8))[subjects]
    names = [f"E{v}__f{j}" for v in range(4) for j in range(3)]
    table = FeatureTable(pd.DataFrame(X, columns=names), pd.Series(y), pd.Series(subjects))
    score = {}
    for folds in ("sample", "subject"):
        protocol = Protocol(rates=[0.0], n_splits=4, ks=[8], svm_costs=[1.0], folds=folds)
        results = accuracy(
            table,
            tmp_path / folds,
            methods=["IDFS-MEC", "ANOVA F", "gradient boosting"],
            protocol=protocol,
            n_jobs=1,
        )
        score[folds] = results.chosen().groupby("method")["balanced_accuracy"].mean()
    assert (score["subject"] < binom.ppf(0.975, 24, 0.5) / 24).all(), score["subject"]
    assert (score["sample"] > score["subject"] + 0.15).all(), score


@pytest.mark.parametrize("what", ["values", pytest.param("gaps", marks=pytest.mark.slow)])
def test_no_method_selects_otherwise_when_the_held_out_samples_change(what):
    whole, changed = selections(None), selections(what)
    assert len(whole) == len(EVERYONE)
    for name, found in changed.items():
        assert found == whole[name], name


@functools.cache
def selections(what):
    """What each method selects, and its settings, if the held-out samples change or do not."""
    table = make_cohort(n_subjects=16, n_epochs=3)
    protocol = Protocol(rates=[0.3], n_splits=2, ks=[2, 4], svm_costs=[0.1], n_inner_splits=2)
    if what is not None:
        _, test = make_folds(table.y, table.subjects, n_splits=2)[0]
        table = perturbed(table, test, what)
    arrays = make_arrays(table)
    found = {}
    for method in find_methods(EVERYONE):
        unit = next(iter(plan_folds(arrays, [method], protocol)))
        result = run_task(unit, {"t": arrays})
        settings = [(row["k"], row["params"], row["chosen"]) for row in result.rows]
        found[method.name] = result.rankings, settings
    return found
