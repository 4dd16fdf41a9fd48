"""Numbers at the edge, for the path, the search, the classifier and the regressor."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from idfsmec import IDFSMECCV, IDFSMECClassifier, IDFSMECRegressor, idfs_path
from tests.conftest import make_channels

pytestmark = pytest.mark.slow

FEW = {"lams": [0.01, 1.0], "gammas": [1.1, 2.0]}


def ill_conditioned():
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    left, _ = np.linalg.qr(rng.normal(size=(80, 12)))
    right, _ = np.linalg.qr(rng.normal(size=(12, 12)))
    X = left * np.logspace(0, -14, 12) @ right.T
    X[:, 0] += 0.1 * y
    return X, y, None


def scaled(scale):
    X, y, channels = make_channels(n_channels=3)
    return X * scale, y, channels


def duplicated():
    X, y, channels = make_channels(n_channels=2, n_features=4, missing=0.0)
    return np.hstack([X, X, -X]), y, np.tile(channels, 3)


def noise(n_samples, n_features, channels, n_classes=2):
    """Noise in which one feature tells."""
    rng = np.random.default_rng(0)
    y = np.arange(n_samples) % n_classes
    X = rng.normal(size=(n_samples, n_features))
    X[:, 0] += 3 * y
    return X, y, channels


def hundred_classes():
    rng = np.random.default_rng(0)
    y = np.arange(300) % 100
    X = rng.normal(size=(300, 8)) + 3 * rng.normal(size=(100, 8))[y]
    X[rng.random(300) < 0.2, :4] = np.nan
    return X, y, np.repeat(["a", "b"], 4)


SMALL = {
    "condition of 1e14": ill_conditioned,
    "features twice and thrice": duplicated,
    "scale of 1e-30": lambda: scaled(1e-30),
    "scale of 1e30": lambda: scaled(1e30),
    "all scales side by side": lambda: scaled(np.tile([1e-30, 1e-10, 1.0, 1e10, 1e30], 3)),
    "float32": lambda: scaled(1.0),
}
WIDE = {
    "one channel of 150 features": lambda: noise(24, 150, None),
    "300 channels of one feature": lambda: noise(24, 300, np.arange(300)),
}

# An estimator fits wide tables many times; the path, which fits them once, is always tried.
WIDE_SLOWLY = [pytest.param(name, marks=pytest.mark.slow) for name in WIDE]

SAID = (
    "Channels without information",
    "Channels are weighted by the training loss",
    "Missing channels are associated with the label",
    "IDFSMEC(CV|Classifier|Regressor) got no groups",
)


def quietly(call, *arguments, **options):
    """Call; it may give up after ``max_iter`` with a warning, or say what is in SAID."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", category=ConvergenceWarning)
        for said in SAID:
            warnings.filterwarnings("ignore", message=said)
        return call(*arguments, **options)


def table(name):
    X, y, channels = (SMALL | WIDE | {"100 classes": hundred_classes})[name]()
    return (X.astype(np.float32) if name == "float32" else X), y, channels


def assert_total_order(rankings, n_features):
    assert (np.sort(rankings, axis=-1) == np.arange(1, n_features + 1)).all()


@pytest.mark.parametrize("name", [*SMALL, *WIDE, "100 classes"])
def test_the_path_is_finite(name):
    X, y, channels = table(name)
    wide = {"max_iter": 3} if name in WIDE else {}
    path = quietly(idfs_path, X, y, channels=channels, **FEW, **wide)
    for part in (path.scores, path.feature_weights, path.channel_weights):
        assert np.isfinite(part).all()
    assert_total_order(path.rankings, X.shape[1])


@pytest.mark.parametrize("name", [*SMALL, *WIDE_SLOWLY, "100 classes"])
def test_the_search_is_finite(name):
    X, y, channels = table(name)
    options = FEW | {"n_features_to_select": [2, 5], "cv": 3}
    if name in WIDE:
        options |= {"lams": [1.0], "max_iter": 3}
    found = quietly(IDFSMECCV(channels, **options).fit, X, y)
    assert np.isfinite(found.scores_).all()
    assert_total_order(found.ranking_, X.shape[1])
    assert np.isfinite(found.cv_results_["mean_test_score"]).all()
    assert found.best_score_ > -1.25 * np.log(len(set(y)))  # guessing costs the log of n_classes


@pytest.mark.parametrize("name", [*SMALL, *WIDE_SLOWLY, "100 classes"])
def test_the_classifier_gives_probabilities(name):
    X, y, channels = table(name)
    wide = {"max_iter": 3} if name in WIDE else {}
    model = quietly(IDFSMECClassifier(channels, alphas=[1.0], **wide).fit, X, y)
    said = quietly(model.predict_proba, X)
    assert np.isfinite(said).all()
    np.testing.assert_allclose(said.sum(axis=1), 1)
    assert (model.predict(X) == y).mean() > 1 / len(set(y))


@pytest.mark.parametrize("name", [*SMALL, *WIDE_SLOWLY])
def test_the_regressor_gives_numbers(name):
    X, y, channels = table(name)
    target = y + 0.1 * np.random.default_rng(1).normal(size=len(y))
    wide = {"max_iter": 3} if name in WIDE else {}
    model = quietly(IDFSMECRegressor(channels, alphas=[1.0], **wide).fit, X, target)
    assert np.isfinite(model.scores_).all()
    assert np.isfinite(quietly(model.predict, X)).all()


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_a_target_of_any_scale_is_predicted_in_its_scale(scale):
    X, y, channels = make_channels(n_channels=3, missing=0.0)
    target = X[:, 0] + 0.1 * y
    plain = quietly(IDFSMECRegressor(channels, alphas=[1.0]).fit, X, target)
    model = quietly(IDFSMECRegressor(channels, alphas=[1.0]).fit, X, target * scale)
    np.testing.assert_allclose(model.predict(X) / scale, plain.predict(X), rtol=1e-4, atol=1e-6)
    assert np.corrcoef(model.predict(X) / scale, target)[0, 1] > 0.8


@pytest.mark.parametrize("n_features", [1, 40])
def test_three_samples_are_fitted_or_refused_in_words(n_features):
    X = np.random.default_rng(0).normal(size=(3, n_features))
    path = quietly(idfs_path, X, [0, 1, 1], **FEW)
    assert np.isfinite(path.scores).all()
    model = quietly(IDFSMECClassifier(alphas=[1.0]).fit, X, [0, 1, 1])
    assert np.isfinite(model.predict_proba(X)).all()
    model = quietly(IDFSMECRegressor(alphas=[1.0]).fit, X, [0.0, 1.0, 2.0])
    assert np.isfinite(model.predict(X)).all()
    with pytest.raises(ValueError, match=r"cv|fold|split|member"):
        IDFSMECCV(**FEW, n_features_to_select=[1], cv=3).fit(X, [0, 1, 1])
