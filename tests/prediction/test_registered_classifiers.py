"""Classifiers by name: what each of them does with samples, missing values and classes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import roc_auc_score

from idfsmec.prediction import CLASSIFIERS
from idfsmec.prediction.pipeline import decision_values, fit_with_groups
from idfsmec.prediction.svm import by_class


def make_samples(n=120, missing=0.3, n_classes=2, seed=0, effect=1.2):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    common = rng.normal(size=(n, 1))
    X = rng.normal(size=(n, 4, 3)) + common[:, :, None] + effect * y[:, None, None]
    gone = rng.random((n, 4)) < missing
    gone[gone.all(axis=1), 0] = False
    return np.where(gone[:, :, None], np.nan, X).reshape(n, 12), y


def decide(name, X, y, test, *, C=0.1, n_classes=2, class_weight="balanced"):
    """Decisions of a registered classifier on columns in the order given."""
    classifier = CLASSIFIERS[name]
    if not classifier.takes_missing:
        X, test = np.nan_to_num(X), np.nan_to_num(test)
    channels = np.arange(X.shape[1]) // 3
    model = classifier.build(
        C=C,
        class_weight=class_weight,
        random_state=0,
        channels=channels,
    )
    fit_with_groups(model, X, y, np.arange(len(y)) // 2)
    return by_class(decision_values(model, test), model.classes_, n_classes)


@pytest.mark.parametrize("name", list(CLASSIFIERS))
@pytest.mark.parametrize("n_classes", [2, 3])
def test_new_samples_with_missing_channels_are_told_apart(name, n_classes):
    X, y = make_samples(n_classes=n_classes, effect=2.0)
    found = decide(name, X[:80], y[:80], X[80:], n_classes=n_classes)
    assert found.shape == (40, n_classes)
    auc = [roc_auc_score(y[80:] == c, found[:, c]) for c in (0, n_classes - 1)]
    assert min(auc) > 0.8


@pytest.mark.parametrize("name", list(CLASSIFIERS))
def test_a_class_that_training_lacks_is_never_predicted(name):
    X, y = make_samples()
    found = decide(name, X, 2 * y, X, n_classes=3)
    assert found.shape == (120, 3)
    assert 1 not in found.argmax(axis=1)


def test_only_those_without_a_cost_take_none():
    free = {name for name, one in CLASSIFIERS.items() if "C" not in one.build().get_params()}
    assert free == {"idfsmec", "boosting"}


def test_ridge_is_that_of_scikit_learn():
    X, y = make_samples(missing=0.0)
    theirs = RidgeClassifier(alpha=10.0, class_weight="balanced").fit(X[:80], y[:80])
    found = decide("ridge", X[:80], y[:80], X[80:], C=0.1)
    assert_allclose(found[:, 1] - found[:, 0], theirs.decision_function(X[80:]))


def test_boosting_sees_what_no_line_separates():
    X = np.random.default_rng(0).normal(size=(600, 3))
    X[::5, 2] = np.nan
    y = ((X[:, 0] > 0) == (X[:, 1] > 0)).astype(int)
    auc = {
        name: roc_auc_score(y[400:], decide(name, X[:400], y[:400], X[400:])[:, 1])
        for name in ("boosting", "svm")
    }
    assert auc["boosting"] > 0.95
    assert auc["svm"] < 0.7


@pytest.mark.filterwarnings("ignore:Channels without information")
@pytest.mark.parametrize("name", list(CLASSIFIERS))
def test_a_channel_that_no_training_sample_has_changes_nothing(name):
    X, y = make_samples(missing=0.1)
    absent = X.copy()
    absent[:80, 3:6] = np.nan
    found = decide(name, absent[:80], y[:80], absent[80:])
    absent[80:, 3:6] = np.nan
    assert_allclose(decide(name, absent[:80], y[:80], absent[80:]), found, atol=1e-9)
