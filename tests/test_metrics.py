import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax
from sklearn import metrics

from idfsmec.metrics import CRITERIA, METRICS, majority, score_decisions, score_each


@given(n_classes=st.integers(2, 4), n=st.integers(12, 60), seed=st.integers(0, 10**6))
@settings(max_examples=50)
def test_scores_agree_with_scikit_learn(n_classes, n, seed):
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(n_classes), rng.integers(n_classes, size=n - n_classes)])
    decisions = rng.normal(size=(n, n_classes)).round(1)  # rounding makes ties
    if n_classes == 2:
        decisions[:, 0] = -decisions[:, 1]
    predicted = decisions.argmax(axis=1)
    scores = score_decisions(decisions, y, np.arange(n))
    assert scores["accuracy"] == pytest.approx(metrics.accuracy_score(y, predicted))
    assert scores["balanced_accuracy"] == pytest.approx(
        metrics.balanced_accuracy_score(y, predicted)
    )
    assert scores["f1"] == pytest.approx(metrics.f1_score(y, predicted, average="macro"))
    auc = [metrics.roc_auc_score(y == c, decisions[:, c]) for c in range(n_classes)]
    assert scores["roc_auc"] == pytest.approx(np.mean(auc))
    # Everyone is a subject of one sample here.
    assert scores["subject_accuracy"] == pytest.approx(scores["accuracy"])


def test_a_subject_is_decided_by_most_of_its_samples():
    decisions = np.array([[2.0, 0.0], [0.0, 0.1], [0.0, 0.1], [0.0, 1.0], [3.0, 0.0]])
    true, predicted = majority(decisions, np.array([1, 1, 1, 0, 0]), np.array([5, 5, 5, 9, 9]))
    assert true.tolist() == [1, 0]
    assert predicted.tolist() == [1, 0]  # the second by the stronger decision: one to one


def test_auc_is_nan_where_a_class_is_absent():
    scores = score_decisions(np.eye(2)[[0, 0, 1]], np.array([0, 0, 0]), np.arange(3))
    assert np.isnan(scores["roc_auc"])
    assert scores["balanced_accuracy"] == pytest.approx(2 / 3)


@given(n_classes=st.integers(2, 4), seed=st.integers(0, 10**6), slope=st.sampled_from([1.0, 2.0]))
@settings(max_examples=30)
def test_scores_by_the_mean_decision_of_a_person_agree_with_scikit_learn(n_classes, seed, slope):
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(n_classes), rng.integers(n_classes, size=20)])
    decisions = rng.normal(size=(3, y.size, n_classes))
    if n_classes == 2:
        decisions[..., 0] = -decisions[..., 1]
    found = score_decisions(
        decisions.reshape(-1, n_classes),
        np.tile(y, 3),
        np.tile(np.arange(y.size), 3),
        CRITERIA,
        slope,
    )
    mean = decisions.mean(axis=0)
    weights = 1 / np.bincount(y)[y]
    loss = metrics.log_loss(y, softmax(slope * mean, axis=1), sample_weight=weights)
    assert found["subject_neg_log_loss"] == pytest.approx(-loss)
    auc = [metrics.roc_auc_score(y == c, mean[:, c]) for c in range(n_classes)]
    assert found["subject_roc_auc"] == pytest.approx(np.mean(auc))


def test_the_log_loss_counts_only_classes_that_are_there():
    scores = score_decisions(
        np.zeros((3, 2)), np.zeros(3, dtype=np.intp), np.arange(3), ["subject_neg_log_loss"]
    )
    assert scores["subject_neg_log_loss"] == pytest.approx(-np.log(2))


@pytest.mark.parametrize("wanted", METRICS)
def test_a_single_score_is_the_same_as_among_all(wanted):
    rng = np.random.default_rng(2)
    decisions, y, subjects = rng.normal(size=(40, 3)), rng.integers(0, 3, 40), np.arange(40) // 4
    everything = score_decisions(decisions, y, subjects)
    assert list(everything) == list(METRICS)
    assert score_decisions(decisions, y, subjects, [wanted]) == {wanted: everything[wanted]}


@given(n_classes=st.integers(2, 4), seed=st.integers(0, 10**6))
@settings(max_examples=20)
def test_many_decisions_are_scored_like_each_of_them(n_classes, seed):
    rng = np.random.default_rng(seed)
    y, subjects = rng.integers(0, n_classes, 30), rng.integers(5, 14, 30)
    decisions = rng.normal(size=(6, 30, n_classes))
    together = score_each(decisions, y, subjects, CRITERIA, slope=1.5)
    for one, scores in zip(decisions, together, strict=True):
        alone = score_decisions(one, y, subjects, CRITERIA, slope=1.5)
        assert scores == pytest.approx(alone, nan_ok=True, rel=1e-12)
