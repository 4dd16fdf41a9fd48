"""The tuner against the same procedure written out."""

from functools import partial

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score
from sklearn.svm import LinearSVC

from idfsmec.selection.linear_svm import svm_decisions
from idfsmec.selection.tuning import Split, SplitScorer, middle_cost, tune

COSTS = (0.01, 0.1, 1.0)
SVM = partial(svm_decisions, n_classes=2, class_weight="balanced")


def make_splits(n_splits=3, seed=0):
    rng = np.random.default_rng(seed)
    splits = []
    for _ in range(n_splits):
        y = np.arange(90) % 2
        X = rng.normal(size=(90, 8)) + 0.6 * y[:, None] * rng.random(8)
        splits.append(Split(X[:60], y[:60], X[60:], y[60:], np.arange(30)))
    return splits


def make_rankings(n_splits=3, shape=(5,), seed=1):
    rng = np.random.default_rng(seed)
    return rng.permuted(np.broadcast_to(np.arange(1, 9), (n_splits, *shape, 8)), axis=-1)


def brute_force(splits, ranking_of, n_settings, counts, costs):
    """Choose by single fits of scikit-learn's own SVM."""

    def score(setting, k, C):
        values = []
        for fold, split in enumerate(splits):
            kept = ranking_of(fold, setting, k) <= k
            svm = LinearSVC(C=C, dual=False, class_weight="balanced", tol=1e-10)
            predicted = svm.fit(split.train[:, kept], split.y_train).predict(split.test[:, kept])
            values.append(balanced_accuracy_score(split.y_test, predicted))
        return np.mean(values)

    picks = {}
    for k in counts:
        best = max(range(n_settings), key=lambda s: score(s, k, middle_cost(costs)))
        cost = max(costs, key=lambda C: score(best, k, C))
        picks[k] = best, cost, score(best, k, cost)
    return picks, max(counts, key=lambda k: picks[k][2])


@pytest.mark.parametrize("costs", [COSTS, (0.1,), (1e-3, 1e-2, 0.1, 1.0)])
def test_the_choice_is_that_of_single_fits(costs):
    splits, rankings, counts = make_splits(), make_rankings(), [1, 2, 4, 8]
    scorers = [SplitScorer(split, SVM) for split in splits]
    tuned = tune(scorers, rankings, counts, costs=costs)
    picks, best = brute_force(splits, lambda f, s, k: rankings[f, s], 5, counts, costs)
    assert tuned.n_features == best
    for k in counts:
        setting, cost, score = picks[k]
        assert (tuned.picks[k].setting, tuned.picks[k].cost) == (setting, cost)
        assert tuned.picks[k].mean == pytest.approx(score)
    assert len(tuned.trials) == 5 * 4 + 4 * (len(costs) - 1)
    assert tuned.best in tuned.trials


def test_rankings_may_depend_on_the_number_of_features():
    splits, counts = make_splits(seed=3), [2, 5]
    rankings = make_rankings(shape=(4, 2), seed=4)
    tuned = tune([SplitScorer(split, SVM) for split in splits], rankings, counts)
    picks, best = brute_force(
        splits, lambda f, s, k: rankings[f, s, counts.index(k)], 4, counts, COSTS
    )
    assert tuned.n_features == best
    assert {k: (one.setting, one.cost) for k, one in tuned.picks.items()} == {
        k: pick[:2] for k, pick in picks.items()
    }


def test_workers_change_nothing():
    scorers = [SplitScorer(split, SVM) for split in make_splits()]
    alone = tune(scorers, make_rankings(), [1, 3])
    assert tune(scorers, make_rankings(), [1, 3], n_jobs=2) == alone


def test_a_set_of_features_is_fitted_once():
    asked = []

    def classify(train, y, test, cost):
        asked.append((train.shape[1], cost))
        return SVM(train, y, test, cost)

    rankings = np.array([[[1, 2, 3, 4, 5, 6, 7, 8], [2, 1, 3, 4, 5, 6, 8, 7]]])
    tune([SplitScorer(make_splits(1)[0], classify)], rankings, [2, 8], costs=[0.1, 1.0])
    assert sorted(asked) == [(2, 0.1), (2, 1.0), (8, 0.1), (8, 1.0)]


def test_of_equals_the_first_wins_and_what_is_undefined_does_not_count():
    def classify(train, y, test, cost):
        return np.zeros((len(test), 2))

    split = make_splits(1)[0]
    one_class = Split(split.train, split.y_train, split.test, np.zeros(30, int), np.arange(30))
    scorers = [SplitScorer(one, classify) for one in (split, one_class)]
    tuned = tune(scorers, make_rankings(2), [1, 2], metric="roc_auc")
    assert (tuned.best.setting, tuned.best.cost, tuned.n_features) == (0, 0.01, 1)
    assert tuned.best.mean == 0.5  # of the one split on which an AUC is defined
    nothing = tune(scorers[1:], make_rankings(1), [1, 2], metric="roc_auc")
    assert nothing.best.mean == -np.inf
