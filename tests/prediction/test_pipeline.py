"""Parts of a fitted method: marks of missing channels, and what it makes of wild values."""

from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.testing import assert_allclose, assert_array_equal

from idfsmec import FeatureTable
from idfsmec.prediction import METHODS
from idfsmec.prediction.samples import MissingMarks, Samples, TrainingSamples


def test_columns_that_go_missing_together_share_a_mark():
    X = np.arange(12.0).reshape(3, 4)
    X[0, :2] = np.nan
    marks = MissingMarks.learn(X)
    assert_array_equal(marks.columns, [0])
    assert_allclose(marks.shares, [1 / 3])
    assert_allclose(marks.add(X)[:, 4], [2 / 3, -1 / 3, -1 / 3])
    assert_array_equal(marks.add(X)[0, :2], [0, 0])
    assert MissingMarks.learn(X[1:]).add(X).shape == (3, 4)


def test_a_kept_method_takes_wild_values_as_its_comparison_does():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = pd.DataFrame(rng.normal(size=(60, 2)) + 2 * y[:, None], columns=["F3__a", "F4__a"])
    model = METHODS["ANOVA F"].pipeline().fit(X.to_numpy(), y, np.arange(60))
    away = np.array([[8.0, 0.0], [1e6, 0.0]])
    far, farther = model.predict_proba(X.to_numpy().mean(axis=0) + away * X.to_numpy().std(axis=0))
    assert_allclose(far, farther)


def test_prepared_folds_are_kept_for_the_next_method_while_they_fit_into_memory():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = pd.DataFrame(rng.normal(size=(60, 2)), columns=["F3__a", "F4__a"])
    samples = Samples.of("table", FeatureTable(X, y, np.arange(60)))
    training = TrainingSamples(samples)
    halves = [(np.arange(30), np.arange(30, 60)), (np.arange(30, 60), np.arange(30))]
    parts = [training, *(fold.training for fold in training.inner_folds("halves", lambda: halves))]
    prepared, again = ([part.prepare() for part in parts] for _ in range(2))
    assert all(kept is before for kept, before in zip(again, prepared, strict=True))


def test_samples_of_a_fold_refer_to_the_table_until_their_values_are_asked_for():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(6, 4)), columns=["F3__a", "F3__b", "F4__a", "F4__b"])
    samples = Samples.of("table", FeatureTable(X, [0, 1] * 3, np.arange(6)))
    assert samples.X is samples.source
    observed = np.array([[True, False], [True, True], [False, True]])
    some = replace(samples.take(np.array([5, 0, 3])), hidden=~observed)
    assert some.source is samples.source
    expected = X.to_numpy()[[5, 0, 3]]
    expected[0, 2:] = expected[2, :2] = np.nan
    assert_allclose(some.X, expected)
    assert (some.observed == observed).all()
    assert_allclose(some.take(np.array([2, 1])).X, expected[[2, 1]])
    some.X[:] = 0.0
    assert_allclose(samples.X, X.to_numpy())
    TrainingSamples(some).prepare()
    TrainingSamples(samples).prepare()
    assert_allclose(samples.X, X.to_numpy())  # scaling changed copies only
