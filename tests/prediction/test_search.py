"""IDFSMECCV against the same procedure by single fits."""

import functools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.impute import SimpleImputer
from sklearn.model_selection import (
    GroupKFold,
    ShuffleSplit,
    StratifiedKFold,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from idfsmec import IDFSMEC, IDFSMECCV
from idfsmec.evaluation import Protocol
from idfsmec.prediction.methods import find_methods
from idfsmec.prediction.svm import LinearSVM
from idfsmec.prediction.tuning import MARGIN, PAIR_MARGIN
from tests.conftest import make_channels

GRID = {"lams": [1e-2, 1.0], "gammas": [1.1, 2.0]}
DEFAULT = (1.0, 2.0)
MEAN = SimpleImputer(keep_empty_features=True)
COUNTS, COSTS = [2, 8], [0.01, 0.1, 1.0]


@parametrize_with_checks(
    [IDFSMECCV(lams=[1.0], gammas=[2.0], cv=2, n_features_to_select=[1, 0.5])]
)
def test_keeps_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


def test_it_says_how_far_it_is():
    X, y, channels = make_channels()
    heard = []
    search = IDFSMECCV(channels, cv=3, n_features_to_select=COUNTS, progress=heard.append, **GRID)
    search.fit(X, y)
    done = [event.done for event in heard]
    assert done[0] == 0
    assert done == sorted(done)
    assert len(done) >= 9  # rankings, twice three folds, the last fit
    assert {(event.task, event.total) for event in heard} == {("tuning", 11)}
    assert done[-1] == 11


def single_fits(X, y, channels, folds):
    """Scores of a pipeline of single fits for a setting, as scikit-learn computes them."""

    @functools.cache
    def score(lam, gamma, k, C):
        # Two classes are solved exactly, more by liblinear to its usual tolerance.
        tol = 1e-8 if len(set(y)) == 2 else 1e-4
        last = LinearSVC(C=C, dual=False, class_weight="balanced", tol=tol)
        pipeline = make_pipeline(
            IDFSMEC(channels, lam=lam, gamma=gamma, n_features_to_select=k),
            StandardScaler(),
            SimpleImputer(keep_empty_features=True),
            last,
        )
        return cross_val_score(pipeline, X, y, cv=folds, scoring="balanced_accuracy")

    return score


def choose(score, costs):
    """The documented procedure: what is usual stays unless another is clearly better."""

    def is_clear(gain, margin):
        return gain.mean() > margin * gain.std(ddof=1) / len(gain) ** 0.5

    settings = [(lam, gamma) for lam in GRID["lams"] for gamma in GRID["gammas"]]
    pairs = [(k, C) for k in COUNTS for C in costs]
    k, C = max(pairs, key=lambda pair: score(*DEFAULT, *pair).mean())
    usual = max(COUNTS), costs[0]  # nearest to 20 and 0.01
    if not is_clear(score(*DEFAULT, k, C) - score(*DEFAULT, *usual), PAIR_MARGIN):
        k, C = usual
    others = [one for one in settings if one != DEFAULT]
    best = max(others, key=lambda one: score(*one, k, C).mean())
    if not is_clear(score(*best, k, C) - score(*DEFAULT, k, C), MARGIN):
        best = DEFAULT
    return *best, C, score(*best, k, C).mean(), k


def unequal(n_classes):
    X, y, channels = make_channels(n_samples=120, n_classes=n_classes, seed=4, missing=0.15)
    # Unequal classes: a sample that lacks all selected features is then no coin toss.
    kept = np.random.default_rng(0).random(120) < np.array([0.6, 0.8, 1.0])[y]
    return X[kept], np.array(["HC", "MDD", "PD"])[y[kept]], channels


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_choice_is_that_of_single_fits(n_classes):
    X, y, channels = unequal(n_classes)
    folds = StratifiedKFold(2)
    ours = IDFSMECCV(
        channels,
        **GRID,
        n_features_to_select=COUNTS,
        costs=COSTS,
        cv=folds,
        scoring="balanced_accuracy",
        imputer=MEAN,
    ).fit(X, y)
    score = single_fits(X, y, channels, folds)
    lam, gamma, C, mean, k = choose(score, COSTS)
    assert ours.best_params_ == {"lam": lam, "gamma": gamma, "n_features_to_select": k}
    assert (ours.best_cost_, ours.best_score_) == (C, pytest.approx(mean))
    results = ours.cv_results_
    moved = (lam, gamma) != DEFAULT
    assert len(results["params"]) == 2 * 3 + 3 + moved * (2 * 3 - 1)
    for place, one in enumerate(results["params"]):
        splits = score(one["lam"], one["gamma"], one["n_features_to_select"], one["C"])
        assert_allclose([results[f"split{f}_test_score"][place] for f in range(2)], splits)
    assert results["mean_test_score"][ours.best_index_] == ours.best_score_


def test_search_and_benchmark_try_the_same_by_default():
    search, protocol = IDFSMECCV(), Protocol()
    assert search.costs == protocol.svm_costs
    assert search.n_features_to_select == protocol.ks
    assert search.cv == protocol.n_inner_splits
    assert search.scoring is None  # the default of the target: subject_neg_log_loss
    assert protocol.tuned_by == "subject_neg_log_loss"
    (method,) = find_methods(["IDFS-MEC"])
    pairs = {(one["lam"], one["gamma"]) for one in method.settings}
    assert pairs == {(lam, gamma) for lam in search.lams for gamma in search.gammas}


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
    """A feature that names the subject must not help when subjects are kept apart."""
    subjects = np.repeat(np.arange(24), 5)
    y = (np.arange(24) % 2)[subjects]
    search = IDFSMECCV(n_features_to_select=[1], lams=[1.0], gammas=[2.0], costs=[1.0], cv=5)
    search.set_params(scoring="balanced_accuracy")
    apart = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = np.column_stack([rng.normal(size=24)[subjects], rng.normal(size=(120, 3))])
        apart.append(search.fit(X, y, groups=subjects).best_score_)
    assert np.mean(apart) < 0.65


def test_scores_by_subject_take_the_groups(incomplete):
    X, _, channels = incomplete
    subjects = np.array([f"s{i}" for i in np.repeat(np.arange(30), 4)])
    labels = np.repeat(np.arange(30) % 2, 4)
    search = IDFSMECCV(channels, **GRID, scoring="subject_accuracy", cv=3)
    splits = search.fit(X, labels, groups=subjects).cv_results_["split0_test_score"]
    assert_allclose(splits * 10, np.round(splits * 10))  # ten subjects a fold


def test_there_are_fewer_folds_where_a_class_has_few_subjects():
    X, _, channels = make_channels(n_samples=36, seed=4, missing=0.1)
    subjects = np.repeat(np.arange(18), 2)
    few = np.isin(subjects, (3, 7, 11)).astype(int)
    search = IDFSMECCV(channels, **GRID, n_features_to_select=[2]).fit(X, few, groups=subjects)
    assert "split2_test_score" in search.cv_results_
    assert "split3_test_score" not in search.cv_results_


def test_folds_that_use_a_part_of_the_samples_only():
    X, y, channels = unequal(2)
    folds = ShuffleSplit(3, train_size=0.5, test_size=0.3, random_state=0)
    grid = {"lams": [0.1], "gammas": [2.0], "n_features_to_select": [5], "costs": [0.1]}
    search = IDFSMECCV(channels, **grid, cv=folds, scoring="balanced_accuracy", imputer=MEAN)
    search.fit(X, y)
    alone = single_fits(X, y, channels, folds)(0.1, 2.0, 5, 0.1)
    found = [search.cv_results_[f"split{f}_test_score"][0] for f in range(3)]
    assert_allclose(found, alone)


def test_results_are_those_of_the_best_selector(incomplete):
    X, y, channels = incomplete
    search = IDFSMECCV(channels, **GRID).fit(X, y)
    alone = IDFSMEC(channels, **search.best_params_).fit(X, y)
    assert_array_equal(search.ranking_, alone.ranking_)
    assert_array_equal(search.transform(X), alone.transform(X))
    assert search.support_.sum() == search.best_params_["n_features_to_select"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"gammas": []}, "'gammas'"),
        ({"lams": [1.0, -1.0]}, "'lams'"),
        ({"n_features_to_select": [0]}, "'n_features_to_select'"),
        ({"costs": [0.0]}, "'costs'"),
        ({"scoring": "f2"}, "'scoring'"),
        ({"standardize": "no"}, "'standardize'"),
    ],
)
def test_bad_parameters_are_named(incomplete, wrong, said):
    X, y, _ = incomplete
    with pytest.raises(ValueError, match=said):
        IDFSMECCV(**wrong).fit(X, y)


def test_the_classifier_sees_no_value_further_than_six_deviations(incomplete, monkeypatch):
    X, y, channels = incomplete
    X[3, :5], X[4, :5] = 1e6, -1e9
    largest = []

    decide_sets = LinearSVM.decide_sets

    def watching(svm, train, y, test, *rest):
        largest.extend([np.abs(train).max(), np.abs(test).max()])
        return decide_sets(svm, train, y, test, *rest)

    monkeypatch.setattr(LinearSVM, "decide_sets", watching)
    IDFSMECCV(channels, **GRID, cv=3).fit(X, y)
    assert max(largest) == 6.0
