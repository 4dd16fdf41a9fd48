import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, ShuffleSplit, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from idfsmec import IDFSMEC, IDFSMECCV
from idfsmec.selection._judging import fill_by_train
from tests.conftest import make_channels

GRID = {"lams": [1e-2, 1.0], "gammas": [1.1, 2.0]}


@parametrize_with_checks([IDFSMECCV(lams=[0.1, 1.0], gammas=[2.0], cv=2, n_features=[1, 0.5])])
def test_keeps_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_choice_equals_that_of_grid_search_over_single_fits(n_classes):
    X, y, channels = make_channels(n_samples=120, n_classes=n_classes, seed=4, missing=0.15)
    # Unequal classes: a sample that lacks all selected features is then no coin toss.
    X, y = X[(y > 0) | (np.arange(120) % 3 > 0)], y[(y > 0) | (np.arange(120) % 3 > 0)]
    folds = StratifiedKFold(3)
    ours = IDFSMECCV(channels, **GRID, n_features=[2, 5, 10], cv=folds).fit(X, y)
    pipeline = make_pipeline(
        IDFSMEC(channels), StandardScaler(), SimpleImputer(keep_empty_features=True), LinearSVC()
    )
    grid = {
        "idfsmec__lam": GRID["lams"],
        "idfsmec__gamma": GRID["gammas"],
        "idfsmec__n_features_to_select": [2, 5, 10],
    }
    theirs = GridSearchCV(pipeline, grid, cv=folds, scoring="balanced_accuracy").fit(X, y)
    assert_allclose(
        ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], atol=1e-12
    )
    assert ours.best_params_ == {
        name.removeprefix("idfsmec__"): value for name, value in theirs.best_params_.items()
    }
    assert_array_equal(ours.support_, theirs.best_estimator_[0].support_)


def test_groups_stay_on_one_side_of_every_fold(incomplete):
    X, _, channels = incomplete
    subjects = np.repeat(np.arange(30), 4)
    labels = np.repeat(np.arange(30) % 2, 4)
    sides = []

    class Watching(GroupKFold):
        def split(self, X, y=None, groups=None):
            for train, test in super().split(X, y, groups):
                sides.append((set(groups[train]), set(groups[test])))
                yield train, test

    IDFSMECCV(channels, **GRID, cv=Watching(3)).fit(X, labels, groups=subjects)
    assert len(sides) == 3
    assert all(not inside & outside for inside, outside in sides)


def test_an_integer_cv_respects_groups(incomplete):
    """A feature that names the person must not help when people are kept apart."""
    rng = np.random.default_rng(0)
    subjects = np.repeat(np.arange(24), 5)
    y = (np.arange(24) % 2)[subjects]
    X = np.column_stack([rng.normal(size=24)[subjects], rng.normal(size=(120, 3))])
    search = IDFSMECCV(n_features=[1], lams=[1.0], gammas=[2.0])
    apart = search.fit(X, y, groups=subjects).best_score_
    assert apart < 0.7


def test_folds_that_use_a_part_of_the_samples_only(incomplete):
    X, y, channels = incomplete
    folds = ShuffleSplit(3, train_size=0.5, test_size=0.3, random_state=0)
    search = IDFSMECCV(channels, **GRID, cv=folds).fit(X, y)
    assert len([name for name in search.cv_results_ if name.startswith("split")]) == 3


def test_any_classifier_and_scorer_can_judge(incomplete):
    X, y, channels = incomplete
    search = IDFSMECCV(
        channels, **GRID, classifier=LogisticRegression(), scoring="roc_auc", n_jobs=2
    ).fit(X, y)
    assert 0 <= search.best_score_ <= 1


def test_results_are_those_of_the_best_selector(incomplete):
    X, y, channels = incomplete
    search = IDFSMECCV(channels, **GRID).fit(X, y)
    alone = IDFSMEC(channels, **search.best_params_).fit(X, y)
    assert_array_equal(search.ranking_, alone.ranking_)
    assert_array_equal(search.transform(X), alone.transform(X))
    assert search.support_.sum() == search.best_params_["n_features_to_select"]


def test_empty_grids_are_named(incomplete):
    X, y, _ = incomplete
    with pytest.raises(ValueError, match="gammas is empty"):
        IDFSMECCV(gammas=[]).fit(X, y)


def test_filling_equals_scaling_and_imputing_by_scikit_learn(incomplete):
    X, _, _ = incomplete
    X[:, 3] = 5.0
    inside, outside = fill_by_train(X[:80], X[80:])
    steps = make_pipeline(StandardScaler(), SimpleImputer()).fit(X[:80])
    assert_allclose(inside, steps.transform(X[:80]), atol=1e-12)
    assert_allclose(outside, steps.transform(X[80:]), atol=1e-12)
