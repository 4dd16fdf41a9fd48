import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer
from sklearn.svm import LinearSVC

from idfsmec.selection._judging import _AnyJudge, judge_by, judge_fold

CLASSES = np.array(["a", "b", "c"])


def samples(n_classes, n=90, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_classes, n)
    return rng.normal(size=(n, 4)) + 0.7 * rng.normal(size=(n_classes, 4))[codes], codes


@pytest.mark.parametrize("scoring", ["balanced_accuracy", "accuracy"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("classifier", [None, LinearSVC(class_weight="balanced", C=0.1)])
def test_the_direct_way_gives_the_very_score_of_scikit_learn(scoring, n_classes, classifier):
    X, codes = samples(n_classes)
    labels = CLASSES[codes]
    judge = judge_by(classifier, scoring, CLASSES)
    assert not isinstance(judge, _AnyJudge)
    model = (classifier or LinearSVC()).fit(X[:60], labels[:60])
    expected = get_scorer(scoring)(model, X[60:], labels[60:])
    assert judge(X[:60], codes[:60], X[60:], codes[60:]) == expected


def test_a_class_that_the_test_part_lacks_does_not_count():
    X, codes = samples(3)
    test = np.flatnonzero(codes[60:] != 2) + 60
    judge = judge_by(None, "balanced_accuracy", CLASSES)
    model = LinearSVC().fit(X[:60], codes[:60])
    found = model.predict(X[test])
    recalls = [np.mean(found[codes[test] == k] == k) for k in (0, 1)]
    assert judge(X[:60], codes[:60], X[test], codes[test]) == pytest.approx(np.mean(recalls))


@pytest.mark.parametrize(
    ("classifier", "scoring"),
    [
        (LogisticRegression(), "balanced_accuracy"),
        (LinearSVC(class_weight={"a": 3.0, "b": 1.0}), "accuracy"),
        (LinearSVC(random_state=np.random.RandomState(0)), "accuracy"),
        (None, "roc_auc"),
    ],
)
def test_everything_else_is_left_to_scikit_learn(classifier, scoring):
    X, codes = samples(2)
    judge = judge_by(classifier, scoring, CLASSES)
    assert isinstance(judge, _AnyJudge)
    model = (classifier or LinearSVC()).fit(X[:60], CLASSES[codes[:60]])
    expected = get_scorer(scoring)(model, X[60:], CLASSES[codes[60:]])
    assert judge(X[:60], codes[:60], X[60:], codes[60:]) == pytest.approx(expected)


def test_a_set_of_features_is_judged_once():
    X, codes = samples(2)
    rankings = np.array([[[1, 2, 3, 4], [2, 1, 3, 4]], [[1, 2, 4, 3], [4, 3, 2, 1]]])
    asked = []

    def judge(train, *_):
        asked.append(train.shape[1])
        return float(len(asked))

    split = (np.arange(60), np.arange(60, 90))
    scores = judge_fold(X, codes, split, rankings, [2, 4], judge)
    # Two features: {0, 1} three times and {2, 3}; all four: one set.
    assert sorted(asked) == [2, 2, 4]
    assert scores.shape == (2, 2, 2)
    assert scores[0, 0, 0] == scores[0, 1, 0] == scores[1, 0, 0] != scores[1, 1, 0]
