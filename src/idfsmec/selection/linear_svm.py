"""The one linear SVM behind tuning and evaluation: Newton's method, else liblinear."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.svm import LinearSVC

from idfsmec.selection.newton_svm import NewtonSVM

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
#: Numbers of leading columns, each with a cost.
Pairs = Sequence[tuple[int, float]]

#: With systems of more unknowns than this, liblinear's iterations cost less.
MOST_UNKNOWNS = 2000


def svm_decisions(
    train: Floats,
    y: Codes,
    test: Floats,
    C: float,
    *,
    n_classes: int,
    class_weight: str | None,
) -> Floats:
    """Fit a linear SVM (squared hinge loss) and give its decision values.

    Two classes are solved here, unless there are many samples and many features; anything else by
    liblinear in the primal. Both are deterministic.

    Returns
    -------
    ndarray of shape (n_test, n_classes)
        A class that training lacks gets a value below all others.
    """
    pair = (train.shape[1], C)
    how: dict[str, Any] = {"n_classes": n_classes, "class_weight": class_weight}
    return nested_svm_decisions(train, y, test, [pair], **how)[0]


def nested_svm_decisions(
    train: Floats,
    y: Codes,
    test: Floats,
    pairs: Pairs,
    *,
    n_classes: int,
    class_weight: str | None,
) -> list[Floats]:
    """Fit an SVM on the leading columns for each of many numbers of columns and costs.

    Parameters
    ----------
    train, test : ndarray of shape (n_samples, n_features)
        The first column is the one that all have.
    y : ndarray of shape (n_train,)
    pairs : sequence of (n_features, C)
    n_classes : int
    class_weight : {"balanced", None}

    Returns
    -------
    list of ndarray of shape (n_test, n_classes)
        For each pair what :func:`svm_decisions` gives, to rounding: what pairs have in common is
        done once.

    Examples
    --------
    >>> train = np.array([[-2.0, 0.5], [-1.0, 0.0], [1.0, 0.5], [2.0, 1.0]])
    >>> how = {"n_classes": 2, "class_weight": None}
    >>> one, two = nested_svm_decisions(
    ...     train, np.array([0, 0, 1, 1]), np.array([[3.0, 1.0]]), [(1, 0.01), (2, 0.01)], **how
    ... )
    >>> one.round(3), two.round(3)
    (array([[-0.15,  0.15]]), array([[-0.155,  0.155]]))
    """
    costs: dict[int, list[float]] = {}
    for k, C in pairs:
        costs.setdefault(k, []).append(C)
    newton = _newton(train[:, : max(costs, default=0)], y, costs, class_weight)
    found: dict[tuple[int, float], Floats] = {}
    for k, wanted in costs.items():
        fits = newton.leading(k + 1).path(wanted) if newton and _is_small(y.size, k) else {}
        for C in wanted:
            w = fits.get(C)
            if w is not None:
                values = test[:, :k] @ w[1:] + w[0]
                found[k, C] = by_class(values, np.arange(2), n_classes)
            else:
                data = train[:, :k], y, test[:, :k]
                found[k, C] = _liblinear(*data, C, n_classes, class_weight)
    return [found[k, C] for k, C in pairs]


def _newton(
    train: Floats, y: Codes, costs: dict[int, list[float]], class_weight: str | None
) -> NewtonSVM | None:
    """Where two classes are there, and few unknowns for some number of columns."""
    counts = np.bincount(y)
    if counts.size != 2 or not counts.all() or not any(_is_small(y.size, k) for k in costs):
        return None
    rarity = y.size / (2.0 * counts) if class_weight == "balanced" else np.ones(2)
    columns = np.empty((train.shape[1] + 1, y.size))
    columns[0] = 1.0
    columns[1:] = train.T
    return NewtonSVM(columns, np.where(y == 1, 1.0, -1.0), rarity[y])


def _is_small(n_samples: int, n_features: int) -> bool:
    return min(n_samples, n_features) <= MOST_UNKNOWNS


def _liblinear(
    train: Floats, y: Codes, test: Floats, C: float, n_classes: int, class_weight: str | None
) -> Floats:
    svm = LinearSVC(C=C, dual=False, class_weight=class_weight, tol=1e-4, max_iter=2000)
    # Data and parameters are known to be sound; checking them again takes longer than a fit.
    with config_context(assume_finite=True, skip_parameter_validation=True):
        svm.fit(train, y)
    values = test @ svm.coef_.T + svm.intercept_
    return by_class(values[:, 0] if values.shape[1] == 1 else values, svm.classes_, n_classes)


@dataclass(frozen=True)
class LinearSVM:
    """The SVM as :class:`~idfsmec.selection.split_scorer.SplitScorer` takes a classifier.

    Parameters
    ----------
    n_classes : int
    class_weight : {"balanced", None}
    """

    n_classes: int
    class_weight: str | None = None

    def __call__(self, train: Floats, y: Codes, test: Floats, C: float) -> Floats:
        """Give what :func:`svm_decisions` gives."""
        return self.nested(train, y, test, [(train.shape[1], C)])[0]

    def nested(self, train: Floats, y: Codes, test: Floats, pairs: Pairs) -> list[Floats]:
        """Give what :func:`nested_svm_decisions` gives."""
        how: dict[str, Any] = {"n_classes": self.n_classes, "class_weight": self.class_weight}
        return nested_svm_decisions(train, y, test, pairs, **how)


def by_class(values: Floats, classes: NDArray[np.intp], n_classes: int) -> Floats:
    """Give one column per class, whether training had it or not."""
    columns = np.column_stack([-values, values]) / 2 if values.ndim == 1 else values
    if classes.size == n_classes:
        return columns
    # A class that training lacks is never predicted.
    decisions = np.full((values.shape[0], n_classes), columns.min(initial=0.0) - 1.0)
    decisions[:, classes] = columns
    return decisions
