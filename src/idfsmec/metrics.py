"""Scores of predictions: per sample, and per subject by most or by the mean of its samples."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

Scores = dict[str, float]
#: All scores that are reported, by name.
METRICS = (
    "accuracy",
    "balanced_accuracy",
    "f1",
    "roc_auc",
    "subject_accuracy",
    "subject_balanced_accuracy",
    "subject_roc_auc",
)
#: What tuning may maximise: those, and the log loss by subject with its sign turned.
CRITERIA = (*METRICS, "subject_neg_log_loss")
#: Decisions of a linear SVM times this are log odds, roughly: at its margin it is sure by 88 %.
SVM_SLOPE = 2.0


def score_decisions(
    decisions: NDArray[np.float64],
    y: NDArray[np.intp],
    subjects: NDArray[np.intp],
    wanted: Sequence[str] = METRICS,
    slope: float = SVM_SLOPE,
) -> Scores:
    """Score decision values in all the ways that are reported, or in some of them.

    Parameters
    ----------
    decisions : ndarray of shape (n_samples, n_classes)
        The class with the highest value is predicted; of equals, the first.
    y : ndarray of shape (n_samples,)
        True classes, 0 ... n_classes - 1.
    subjects : ndarray of shape (n_samples,)
        Codes of the subjects.
    wanted : sequence of str
        Which scores, of ``CRITERIA``; inner folds need only the one that decides.
    slope : float
        What makes log odds of decisions, for the log loss: 2 for a linear SVM, 1 for what gives
        log odds itself.

    Returns
    -------
    dict
        ``accuracy``, ``balanced_accuracy`` (mean recall over the classes that occur), ``f1``
        (mean over the classes), ``roc_auc`` (mean over one class against the rest),
        ``subject_accuracy`` and ``subject_balanced_accuracy`` (by the majority of a subject's
        samples), ``subject_roc_auc`` and ``subject_neg_log_loss`` (by the mean of its decisions;
        classes count alike). Higher is better, NaN where a score is undefined.

    Examples
    --------
    >>> two = np.array([[1.0, 0.0], [0.2, 0.8], [0.3, 0.7], [0.6, 0.4]])
    >>> scores = score_decisions(two, np.array([0, 1, 0, 0]), np.array([7, 8, 9, 9]))
    >>> scores["accuracy"], scores["subject_accuracy"]
    (0.75, 0.666)
    """
    return score_each(decisions[None], y, subjects, wanted, slope)[0]


def score_each(
    decisions: NDArray[np.float64],
    y: NDArray[np.intp],
    subjects: NDArray[np.intp],
    wanted: Sequence[str] = METRICS,
    slope: float = SVM_SLOPE,
) -> list[Scores]:
    """Score many decisions about the same samples, each as :func:`score_decisions` does.

    Parameters
    ----------
    decisions : ndarray of shape (n_sets, n_samples, n_classes)
    y, subjects, wanted, slope
        As there.

    Examples
    --------
    >>> decisions = np.array([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [1.0, 0.0]]])
    >>> score_each(decisions, np.array([0, 1]), np.array([7, 8]), ["accuracy"])
    [{'accuracy': 1.0}, {'accuracy': 0.5}]
    """
    n_classes = decisions.shape[2]

    @functools.cache
    def of_samples() -> list[NDArray[np.float64]]:
        return [_confusion(y, one.argmax(axis=1), n_classes) for one in decisions]

    @functools.cache
    def of_subjects() -> list[NDArray[np.float64]]:
        return [_confusion(*majority(one, y, subjects), n_classes) for one in decisions]

    @functools.cache
    def means() -> tuple[NDArray[np.float64], NDArray[np.intp]]:
        return mean_decisions(decisions, y, subjects)

    how: dict[str, Callable[[], Iterable[float]]] = {
        "accuracy": lambda: map(_accuracy, of_samples()),
        "balanced_accuracy": lambda: map(_mean_recall, of_samples()),
        "f1": lambda: map(_mean_f1, of_samples()),
        "roc_auc": lambda: (_mean_auc(one, y) for one in decisions),
        "subject_accuracy": lambda: map(_accuracy, of_subjects()),
        "subject_balanced_accuracy": lambda: map(_mean_recall, of_subjects()),
        "subject_roc_auc": lambda: (_mean_auc(one, means()[1]) for one in means()[0]),
        "subject_neg_log_loss": lambda: (-_log_losses(*means(), slope)).tolist(),
    }
    columns = [how[name]() for name in wanted]
    return [dict(zip(wanted, row, strict=True)) for row in zip(*columns, strict=True)]


def majority(
    decisions: NDArray[np.float64], y: NDArray[np.intp], subjects: NDArray[np.intp]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Decide per subject: most samples win; of equally many, the larger sum of decisions.

    Returns
    -------
    true, predicted : ndarrays of shape (n_subjects,)
        In the order of the subjects' codes. A subject with samples of several classes counts
        once, as the class most of its samples have.
    """
    _, member = np.unique(subjects, return_inverse=True)
    n_subjects, n_classes = member.max(initial=-1) + 1, decisions.shape[1]
    true = np.zeros((n_subjects, n_classes))
    votes = np.zeros((n_subjects, n_classes))
    strength = np.zeros((n_subjects, n_classes))
    np.add.at(true, (member, y), 1)
    np.add.at(votes, (member, decisions.argmax(axis=1)), 1)
    np.add.at(strength, member, decisions)
    leading = votes == votes.max(axis=1, keepdims=True)
    return true.argmax(axis=1), np.where(leading, strength, -np.inf).argmax(axis=1)


def mean_decisions(
    decisions: NDArray[np.float64], y: NDArray[np.intp], subjects: NDArray[np.intp]
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Average the decisions of each subject.

    Parameters
    ----------
    decisions : ndarray of shape ([n_sets, ]n_samples, n_classes)
    y, subjects : ndarray of shape (n_samples,)

    Returns
    -------
    means : ndarray of shape ([n_sets, ]n_subjects, n_classes)
        In the order of the subjects' codes.
    true : ndarray of shape (n_subjects,)
        The class that most of a subject's samples have.
    """
    member = np.unique(subjects, return_inverse=True)[1]
    counts = np.bincount(member)
    *sets, _, n_classes = decisions.shape
    # One sum for each set, subject and class.
    starts = np.arange(math.prod(sets))[:, None, None] * counts.size
    place = (starts + member[:, None]) * n_classes + np.arange(n_classes)
    sums = np.bincount(place.ravel(), decisions.ravel()).reshape(*sets, counts.size, n_classes)
    true = np.bincount(member * n_classes + y, minlength=counts.size * n_classes)
    return sums / counts[:, None], true.reshape(-1, n_classes).argmax(axis=1)


def _log_losses(
    decisions: NDArray[np.float64], y: NDArray[np.intp], slope: float
) -> NDArray[np.float64]:
    """Mean over the classes that occur of the mean log loss, with softmax as probabilities."""
    odds = slope * decisions
    odds -= odds.max(axis=-1, keepdims=True)
    losses = np.log(np.exp(odds).sum(axis=-1)) - odds[..., np.arange(y.size), y]
    counts = np.bincount(y)
    return np.asarray(losses @ (1.0 / (np.count_nonzero(counts) * counts[y])))


def _confusion(true: NDArray, predicted: NDArray, n_classes: int) -> NDArray[np.float64]:
    counts = np.bincount(true * n_classes + predicted, minlength=n_classes**2)
    return counts.reshape(n_classes, n_classes).astype(float)


def _accuracy(confusion: NDArray[np.float64]) -> float:
    return float(np.trace(confusion) / confusion.sum())


def _mean_recall(confusion: NDArray[np.float64]) -> float:
    there = confusion.sum(axis=1) > 0
    return float((np.diag(confusion)[there] / confusion.sum(axis=1)[there]).mean())


def _mean_f1(confusion: NDArray[np.float64]) -> float:
    both = confusion.sum(axis=0) + confusion.sum(axis=1)
    there = both > 0
    return float((2 * np.diag(confusion)[there] / both[there]).mean())


def _mean_auc(decisions: NDArray[np.float64], y: NDArray[np.intp]) -> float:
    n_classes = decisions.shape[1]
    if n_classes == 2:
        return _auc(decisions[:, 1] - decisions[:, 0], y == 1)
    return float(np.mean([_auc(decisions[:, c], y == c) for c in range(n_classes)]))


def _auc(values: NDArray[np.float64], positive: NDArray[np.bool_]) -> float:
    n_positive, n = int(positive.sum()), positive.size
    if n_positive in (0, n):
        return float("nan")
    if np.isnan(values).any():
        return float("nan")
    others, own = np.sort(values[~positive]), values[positive]
    below = (
        np.searchsorted(others, own, "left").sum() + np.searchsorted(others, own, "right").sum()
    )
    return float(below / 2 / (n_positive * (n - n_positive)))
