"""Leaks: people under two names, rows that come twice, folds and selections done wrongly."""

import numpy as np
import pandas as pd
import pytest

from idfsmec import FeatureTable
from idfsmec.audit import audit
from idfsmec.audit.audit_tasks import repeated_rows, two_names
from idfsmec.prediction.samples import Samples
from tests.audit.cohorts import audited


def arrays(table):
    return Samples.of("t", table)


def test_one_subject_under_two_names_is_found_and_no_other():
    table = audited(20, 20)
    subjects = table.subjects.copy()
    subjects[np.flatnonzero(subjects == "s07")[::2]] = "zz"
    found = two_names(arrays(FeatureTable(table.X, table.y, subjects)))
    assert [pair[:2] for pair in found["pairs"]] == [["s07", "zz"]]
    assert two_names(arrays(table))["pairs"] == []


def test_subjects_of_one_sample_each_cannot_be_compared():
    assert two_names(arrays(audited(20, 1)))["estimable"] is False


def test_rows_that_come_twice_are_counted_within_and_across_people():
    table = audited(6, 3)
    X = table.X.to_numpy().copy()
    X[1], X[5] = X[0], X[0]
    X[7] = np.nan
    X[8] = np.nan  # nothing was recorded: no repetition
    found = repeated_rows(arrays(FeatureTable(frame(X), table.y, table.subjects)))
    assert (found["n_repeated"], found["n_across"]) == (2, 1)
    assert found["pairs"] == [["s00", "s01"]]


def frame(X):
    return pd.DataFrame(X, columns=audited(2, 1).X.columns)


@pytest.mark.slow
def test_noise_is_recognised_by_sample_wise_folds_and_early_selection_only():
    rng = np.random.default_rng(0)
    columns = [f"c{i}__f{j}" for i in range(10) for j in range(20)]
    traits = np.repeat(rng.normal(size=(24, 200)), 4, axis=0)
    X = pd.DataFrame(traits + 0.2 * rng.normal(size=traits.shape), columns=columns)
    who = np.repeat([f"p{i:02d}" for i in range(24)], 4)
    table = FeatureTable(X, pd.Series(np.repeat(np.arange(24) % 2, 4)), pd.Series(who))
    leaks = audit(table, n_splits=4).leaks
    assert leaks["subject"]["roc_auc"] < 0.75
    assert leaks["by_sample"]["roc_auc"] > 0.85
    assert leaks["before"]["roc_auc"] > leaks["subject"]["roc_auc"] + 0.1
    mean = np.mean(leaks["shuffled"]["auc"])
    assert leaks["shuffled"]["low"] - 0.1 < mean < leaks["shuffled"]["high"] + 0.1
