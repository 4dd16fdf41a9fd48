"""The tuner against the same procedure written out."""

from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from sklearn.svm import LinearSVC

from idfsmec.metrics import CRITERIA
from idfsmec.prediction.svm import LinearSVM
from idfsmec.prediction.tuning import (
    MARGIN,
    PAIR_MARGIN,
    SetScorer,
    Trial,
    nearest_setting,
    tune,
)

COSTS = (0.01, 0.1, 1.0)


class Held(NamedTuple):
    y: np.ndarray
    subjects: np.ndarray
    numeric: bool = False


class Split(NamedTuple):
    """Both sides of a fold, as a classifier sees them."""

    train: np.ndarray
    y_train: np.ndarray
    test: np.ndarray
    y_test: np.ndarray
    subjects_test: np.ndarray

    @property
    def held_out(self):
        return Held(self.y_test, self.subjects_test)


def decide_sets(train, y, test, sets):
    return LinearSVM(class_weight="balanced").decide_sets(train, y, test, sets, 2)


def SVM(split, sets):  # noqa: N802
    return decide_sets(split.train, split.y_train, split.test, sets)


def for_each(classify):
    """Call a function of training samples, classes, test samples and a cost for every set."""

    def decide(split, sets):
        kept = [(np.sort(columns), C) for columns, C in sets]
        train, y, test = split.train, split.y_train, split.test
        return [classify(train[:, own], y, test[:, own], C) for own, C in kept]

    return decide


def single(train, y, test, cost):
    return decide_sets(train, y, test, [(np.arange(train.shape[1]), cost)])[0]


def make_splits(n_splits=3, seed=0):
    rng = np.random.default_rng(seed)
    splits = []
    for _ in range(n_splits):
        y = np.arange(90) % 2
        X = rng.normal(size=(90, 8)) + 0.6 * y[:, None] * rng.random(8)
        splits.append(
            Split(X[:60], y[:60], X[60:], y[60:], np.arange(30) // 4 * 2 + np.arange(30) % 2)
        )
    return splits


def make_rankings(n_splits=3, shape=(5,), seed=1):
    rng = np.random.default_rng(seed)
    return rng.permuted(np.broadcast_to(np.arange(1, 9), (n_splits, *shape, 8)), axis=-1)


def log_loss_by_subject(decisions, y, subjects):
    """Written out: mean decision, logistic of slope 2, classes weighted alike."""
    frame = pd.DataFrame({"d": decisions, "y": y}).groupby(subjects).mean()
    p = 1 / (1 + np.exp(-2 * frame["d"]))
    losses = -np.log(np.where(frame["y"] == 1, p, 1 - p))
    return np.mean([losses[frame["y"] == label].mean() for label in (0, 1)])


def brute_force(splits, ranking_of, n_settings, counts, costs, default):
    """Choose by single fits of scikit-learn's own SVM."""

    def score(setting, k, C):
        values = []
        for fold, split in enumerate(splits):
            kept = ranking_of(fold, setting, k) <= k
            svm = LinearSVC(C=C, dual=False, class_weight="balanced", tol=1e-10)
            svm.fit(split.train[:, kept], split.y_train)
            found = svm.decision_function(split.test[:, kept])
            values.append(-log_loss_by_subject(found, split.y_test, split.subjects_test))
        return np.array(values)

    def is_clear(gain, margin):
        return gain.mean() > margin * gain.std(ddof=1) / len(gain) ** 0.5

    pairs = [(k, C) for k in counts for C in costs]
    k, C = max(pairs, key=lambda pair: score(default, *pair).mean())
    # Of these counts the last is nearest to 20.
    usual = counts[-1], min(costs, key=lambda C: abs(np.log(C / 0.01)))
    if not is_clear(score(default, k, C) - score(default, *usual), PAIR_MARGIN):
        k, C = usual
    others = [one for one in range(n_settings) if one != default]
    leading = max(others, key=lambda one: score(one, k, C).mean())
    gain = score(leading, k, C) - score(default, k, C)
    setting = leading if is_clear(gain, MARGIN) else default
    best = {one: max(costs, key=lambda C: score(setting, one, C).mean()) for one in counts}
    best[k] = C
    return {one: (setting, C, score(setting, one, C).mean()) for one, C in best.items()}, k


@pytest.mark.parametrize("costs", [COSTS, (0.1,), (1e-3, 1e-2, 0.1, 1.0)])
@pytest.mark.parametrize("default", [0, 3])
def test_the_choice_is_that_of_single_fits(costs, default):
    splits, rankings, counts = make_splits(), make_rankings(), [1, 2, 4, 8]
    scorers = [SetScorer(split, SVM, CRITERIA) for split in splits]
    tuned = tune(scorers, rankings, counts, costs=costs, default=default)
    picks, best = brute_force(splits, lambda f, s, k: rankings[f, s], 5, counts, costs, default)
    assert tuned.n_features == best
    for k in counts:
        setting, cost, score = picks[k]
        assert (tuned.picks[k].setting, tuned.picks[k].cost) == (setting, cost)
        assert tuned.picks[k].mean == pytest.approx(score)
    tried = 4 * len(costs) + 4
    moved = tuned.best.setting != default
    assert len(tuned.trials) == tried + moved * (4 * len(costs) - 1)
    assert tuned.best in tuned.trials


def test_rankings_may_depend_on_the_number_of_features():
    splits, counts = make_splits(seed=3), [2, 5]
    rankings = make_rankings(shape=(4, 2), seed=4)
    scorers = [SetScorer(split, SVM, CRITERIA) for split in splits]
    tuned = tune(scorers, rankings, counts, costs=COSTS)
    picks, best = brute_force(
        splits, lambda f, s, k: rankings[f, s, counts.index(k)], 4, counts, COSTS, 0
    )
    assert tuned.n_features == best
    assert {k: (one.setting, one.cost) for k, one in tuned.picks.items()} == {
        k: pick[:2] for k, pick in picks.items()
    }


def chosen_by(strengths):
    """What is chosen of 10, 20 and 40 features if decisions are so strong on each split."""
    scorers = []
    for fold in range(5):
        y = np.arange(20) % 2

        def classify(train, _, test, cost, fold=fold, sign=2 * y - 1):
            value = strengths[train.shape[1]][fold] * sign
            return np.column_stack([-value, value])

        scorers.append(
            SetScorer(Split(*2 * (np.zeros((20, 40)), y), y * 20), for_each(classify), CRITERIA)
        )
    rankings = np.tile(np.arange(1, 41), (5, 1, 1))
    return tune(scorers, rankings, [10, 20, 40], costs=[0.01, 0.1]).best


def test_the_usual_number_of_features_stays_unless_another_is_clearly_better():
    usual = [0.5] * 5
    luck, gain = [1.5, 0.1, 1.2, 0.0, 0.2], [1.0, 0.6, 0.8, 0.7, 0.9]
    assert chosen_by({10: luck, 20: usual, 40: usual}).n_features == 20
    best = chosen_by({10: luck, 20: usual, 40: gain})
    assert (best.n_features, best.cost) == (40, 0.01)


def test_the_default_is_left_for_a_clear_gain_only():
    better = np.array([0.9, 0.5, 0.7, 0.8, 0.4])
    clear, unclear = (Trial(1, 5, 0.1, tuple(better)) for _ in range(2))
    assert clear.is_better(Trial(0, 5, 0.1, tuple(better - [0.1, 0.1, 0.2, 0.1, 0.1])), 2)
    assert not unclear.is_better(Trial(0, 5, 0.1, tuple(better - [0.4, -0.3, 0.3, -0.2, 0.0])), 2)
    assert not clear.is_better(clear)


def test_a_setting_that_finds_what_is_there_replaces_a_default_that_does_not():
    splits, rankings = [], np.empty((5, 3, 8), int)
    rng = np.random.default_rng(0)
    for fold in range(5):
        y = np.arange(120) % 2
        X = rng.normal(size=(120, 8))
        X[:, 7] += 2 * y
        splits.append(Split(X[:80], y[:80], X[80:], y[80:], np.arange(40)))
        rankings[fold] = [np.arange(1, 9), np.arange(8, 0, -1), np.arange(1, 9)]
    scorers = [SetScorer(split, SVM, CRITERIA) for split in splits]
    assert tune(scorers, rankings, [1, 2], default=2).best.setting == 1


@pytest.mark.parametrize(
    ("own", "nearest"),
    [
        ({"lam": 1.0, "kind": "b"}, 3),
        ({"lam": 0.09, "kind": "a"}, 0),
        ({"lam": 0, "kind": "c"}, 0),
    ],
)
def test_the_default_is_the_setting_nearest_to_a_selectors_own(own, nearest):
    settings = [{"lam": lam, "kind": kind} for lam in (0.1, 1.0) for kind in "ab"]
    assert nearest_setting(settings, own) == nearest


def test_a_classifier_that_is_asked_for_many_sets_gives_what_single_fits_give():
    splits, rankings, counts = make_splits(seed=7), make_rankings(seed=8), [1, 2, 5, 8]
    asked = [(rankings[0, s], k, C) for s in (0, 1) for k in counts for C in COSTS]
    for split in splits:
        nested = SetScorer(split, SVM, CRITERIA).score_all(asked)
        alone = SetScorer(split, for_each(single), CRITERIA)
        for one, scores in zip(asked, nested, strict=True):
            assert scores == pytest.approx(alone.score_all([one])[0], abs=1e-9, nan_ok=True)


def test_a_set_has_the_same_scores_in_any_order():
    ranking, turned = np.arange(1, 9), np.array([3, 2, 1, 4, 5, 6, 8, 7])
    scorer = SetScorer(make_splits(1)[0], SVM, CRITERIA)
    asked = [(one, k, C) for k in (3, 8) for C in COSTS for one in (ranking, turned)]
    scores = scorer.score_all(asked)
    assert scores[::2] == scores[1::2]


def test_a_set_of_features_is_fitted_once():
    asked = []

    def classify(train, y, test, cost):
        asked.append((train.shape[1], cost))
        return single(train, y, test, cost)

    rankings = np.array([[[1, 2, 3, 4, 5, 6, 7, 8], [2, 1, 3, 4, 5, 6, 8, 7]]])
    scorer = SetScorer(make_splits(1)[0], for_each(classify), CRITERIA)
    tune([scorer], rankings, [2, 8], costs=[0.1, 1.0])
    assert sorted(asked) == [(2, 0.1), (2, 1.0), (8, 0.1), (8, 1.0)]


def test_of_equals_the_usual_pair_wins_and_what_is_undefined_does_not_count():
    def classify(train, y, test, cost):
        return np.zeros((len(test), 2))

    split = make_splits(1)[0]
    one_class = Split(split.train, split.y_train, split.test, np.zeros(30, int), np.arange(30))
    scorers = [SetScorer(one, for_each(classify)) for one in (split, one_class)]
    tuned = tune(scorers, make_rankings(2), [1, 2], metric="roc_auc")
    assert (tuned.best.setting, tuned.best.cost, tuned.n_features) == (0, 0.01, 2)
    assert tuned.best.mean == 0.5  # of the one split on which an AUC is defined
    nothing = tune(scorers[1:], make_rankings(1), [1, 2], metric="roc_auc")
    assert nothing.best.mean == -np.inf
