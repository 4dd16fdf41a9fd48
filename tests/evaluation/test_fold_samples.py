from typing import NamedTuple

import numpy as np
import pytest
from sklearn.impute import KNNImputer

from idfsmec.evaluation import Protocol
from idfsmec.evaluation import protocol as protocol_module
from idfsmec.evaluation.tasks import load_fold
from idfsmec.missing import simulate_missing
from idfsmec.prediction.folds import make_folds
from idfsmec.prediction.methods import IMPUTERS, METHODS, Imputer
from idfsmec.table import FeatureTable
from idfsmec.table.feature_table import table_digest

from .cohorts import make_arrays, make_cohort

MEAN = IMPUTERS["mean"]


def load(table, protocol=None, rate=0.3, pattern="random", seed=0, fold=0):
    arrays = make_arrays(table)
    return load_fold(arrays, protocol or Protocol(n_splits=4), pattern, rate, seed, fold)


def inner_folds(fold):
    """Inner folds as every method with the default protocol has them."""
    return METHODS["ANOVA F"].pipeline()._inner_folds(fold.training)


def prepare(fold, imputer=None):
    """What the selector sees, training samples and samples held out for the classifier."""
    made = imputer and imputer.build()
    prepared = fold.training.prepare(imputer=made)
    selecting = fold.training.for_selection.prepare(imputer=made).X
    return Sides(selecting, prepared.X, prepared.steps.apply(fold.held_out))


class Sides(NamedTuple):
    selecting: np.ndarray
    train: np.ndarray
    test: np.ndarray


def perturbed(table, rows, what, seed=1):
    """The same table with something else in some rows."""
    rng = np.random.default_rng(seed)
    X, y = table.X.copy(), table.y.copy()
    if what == "values":
        X.iloc[rows] = rng.normal(5, 10, size=(len(rows), X.shape[1]))
    elif what == "gaps":
        gone = rng.random((len(rows), len(table.channels))) < 0.5
        block = X.iloc[rows].to_numpy(copy=True)
        block[np.repeat(gone, X.shape[1] // gone.shape[1], axis=1)] = np.nan
        X.iloc[rows] = block
    else:
        y.iloc[rows] = y.iloc[rng.permutation(rows)].to_numpy()
    return FeatureTable(X, y, table.subjects)


@pytest.mark.parametrize("pattern", ["random", "recording", "burst", "uneven"])
def test_both_sides_of_a_fold_miss_the_asked_share(pattern):
    data = prepare(load(make_cohort(n_subjects=40, n_channels=8), pattern=pattern))
    assert np.isnan(data.selecting).mean() == pytest.approx(0.3, abs=0.02)
    assert np.isnan(data.test).mean() == pytest.approx(0.3, abs=0.02)


def test_observed_training_values_have_mean_0_and_variance_1_and_gaps_are_filled_with_0():
    fold = load(make_cohort())
    data = prepare(fold)
    assert np.nanmean(data.selecting, axis=0) == pytest.approx(np.zeros(12), abs=1e-12)
    assert np.nanstd(data.selecting, axis=0) == pytest.approx(np.ones(12))
    filled = prepare(fold, MEAN)
    assert (filled.selecting[np.isnan(data.selecting)] == 0).all()
    assert (filled.test[np.isnan(data.test)] == 0).all()
    assert filled.train is filled.selecting  # the work is done once


@pytest.mark.parametrize("what", ["values", "gaps", "labels"])
@pytest.mark.parametrize("pattern", ["random", "recording", "uneven"])
def test_nothing_held_out_reaches_what_selectors_see(what, pattern, monkeypatch):
    table = make_cohort()
    splits = make_folds(table.y, table.subjects, n_splits=4)
    # Stratified folds know all labels: hold them, so that only what is held out differs.
    monkeypatch.setattr(
        protocol_module,
        "make_folds",
        lambda y, *rest, **more: splits if len(y) == len(table) else make_folds(y, *rest, **more),
    )
    before = load(table, pattern=pattern)
    after = load(perturbed(table, splits[0][1], what), pattern=pattern)
    if what == "labels":
        assert (before.held_out.y != after.held_out.y).any()
    else:
        assert not np.array_equal(prepare(before).test, prepare(after).test, equal_nan=True)
    parts = [[fold, *inner_folds(fold)] for fold in (before, after)]
    for one, other in zip(*parts, strict=True):
        for imputer in (None, MEAN, Imputer("nearest", KNNImputer())):
            sides = prepare(one, imputer), prepare(other, imputer)
            assert np.array_equal(sides[0].selecting, sides[1].selecting, equal_nan=True)
            assert np.array_equal(sides[0].train, sides[1].train, equal_nan=True)
        assert np.array_equal(one.training.samples.y, other.training.samples.y)
    for one, other in zip(parts[0][1:], parts[1][1:], strict=True):
        assert np.array_equal(prepare(one).test, prepare(other).test, equal_nan=True)
        assert np.array_equal(one.held_out.y, other.held_out.y)


def test_gaps_for_the_selection_leave_the_classifier_complete_data():
    table = make_cohort()
    data = prepare(load(table, Protocol(n_splits=4, missing_in="selection"), rate=0.5))
    assert np.isnan(data.selecting).mean() == pytest.approx(0.5, abs=0.02)
    assert not np.isnan(data.train).any()
    assert not np.isnan(data.test).any()
    train, test = make_folds(table.y, table.subjects, n_splits=4)[0]
    X = table.X.to_numpy()
    scaled = (X - X[train].mean(axis=0)) / X[train].std(axis=0)
    assert data.train == pytest.approx(scaled[train])
    assert data.test == pytest.approx(scaled[test])


def test_nobody_can_change_the_samples_that_methods_share():
    data = load(make_cohort())
    for prepared in (prepare(data), prepare(data, MEAN)):
        assert not any(side.flags.writeable for side in prepared[:2])


def test_inner_folds_split_the_training_samples_and_keep_their_gaps():
    data = load(make_cohort())
    inner = inner_folds(data)
    assert len(inner) == Protocol().n_inner_splits
    assert sum(part.held_out.y.size for part in inner) == data.training.samples.y.size
    n_missing = sum(np.isnan(prepare(part).test).sum() for part in inner)
    assert n_missing == np.isnan(prepare(data).selecting).sum()


def test_a_column_that_never_changes_in_training_carries_nothing_into_the_test():
    table = make_cohort()
    train, _ = make_folds(table.y, table.subjects, n_splits=4)[0]
    X = table.X.copy()
    X.iloc[train, 0] = 7.1
    X.iloc[train, 1] = np.nan
    data = load(FeatureTable(X, table.y, table.subjects), rate=0.0)
    filled = prepare(data, MEAN)
    assert (filled.train[:, :2] == 0).all()
    assert (filled.test[:, :2] == 0).all()


def test_gaps_of_a_rate_are_the_same_for_all_methods_and_differ_between_folds_and_seeds():
    table = make_cohort()
    again = load(FeatureTable(table.X, table.y, table.subjects))
    first = prepare(load(table)).selecting
    assert np.array_equal(first, prepare(again).selecting, equal_nan=True)
    others = [load(table, seed=1), load(table, fold=1)]
    missing = [np.isnan(one.training.samples.X[:60]) for one in (load(table), *others)]
    assert len({one.tobytes() for one in missing}) == 3


def test_the_digest_knows_values_labels_subjects_and_columns():
    table = make_cohort()
    X = table.X.copy()
    X.iloc[3, 2] += 1e-9
    others = [
        FeatureTable(X, table.y, table.subjects),
        FeatureTable(table.X, table.y[::-1].reset_index(drop=True), table.subjects),
        FeatureTable(table.X, table.y, table.subjects.str.upper()),
        FeatureTable(table.X.rename(columns={"E1__f1": "E1__g1"}), table.y, table.subjects),
        simulate_missing(table, 0.1, random_state=0),
    ]
    digests = {table_digest(one) for one in [table, *others]}
    assert len(digests) == 6
    assert table_digest(make_cohort()) == table_digest(table)
