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
#: Places of columns, each with a cost.
Sets = Sequence[tuple[Codes, float]]

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
    whole = (np.arange(train.shape[1]), C)
    how: dict[str, Any] = {"n_classes": n_classes, "class_weight": class_weight}
    return many_svm_decisions(train, y, test, [whole], **how)[0]


def many_svm_decisions(
    train: Floats,
    y: Codes,
    test: Floats,
    sets: Sets,
    *,
    n_classes: int,
    class_weight: str | None,
) -> list[Floats]:
    """Fit an SVM on each of many sets of columns, with a cost each.

    Parameters
    ----------
    train, test : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_train,)
    sets : sequence of (columns, C)
        Work is shared by sets that lead another one: that are its first columns, in their order.
    n_classes : int
    class_weight : {"balanced", None}

    Returns
    -------
    list of ndarray of shape (n_test, n_classes)
        For each set what :func:`svm_decisions` gives, to rounding.

    Examples
    --------
    >>> train = np.array([[-2.0, 0.5], [-1.0, 0.0], [1.0, 0.5], [2.0, 1.0]])
    >>> sets = [(np.array([0]), 0.01), (np.array([0, 1]), 0.01)]
    >>> one, two = many_svm_decisions(
    ...     train,
    ...     np.array([0, 0, 1, 1]),
    ...     np.array([[3.0, 1.0]]),
    ...     sets,
    ...     n_classes=2,
    ...     class_weight=None,
    ... )
    >>> one.round(3), two.round(3)
    (array([[-0.15,  0.15]]), array([[-0.157,  0.157]]))
    """
    found: dict[int, Floats] = {}
    newton = _newton(train, y, sets, class_weight)
    # What features weighed in the last set with a cost is where the next set starts.
    last: dict[float, Floats] = {}
    for columns, by_size in _chains(sets):
        rows = np.append(0, 1 + columns)
        own = newton.of(rows) if newton else None
        seen = test[:, columns]
        for k, places in sorted(by_size.items()):
            costs = [sets[one][1] for one in places]
            fits: dict[float, Floats | None] = {}
            if own and _is_small(y.size, k):
                start = last.get(min(costs))
                part = own.leading(k + 1)
                fits = part.path(costs, None if start is None else start[rows[: k + 1]])
            for one, C in zip(places, costs, strict=True):
                w = fits.get(C)
                if w is None:
                    data = train[:, columns[:k]], y, seen[:, :k]
                    found[one] = _liblinear(*data, C, n_classes, class_weight)
                else:
                    values = seen[:, :k] @ w[1:] + w[0]
                    found[one] = by_class(values, np.arange(2), n_classes)
                    last[C] = np.zeros(train.shape[1] + 1)
                    last[C][rows[: k + 1]] = w
    return [found[one] for one in range(len(sets))]


def _chains(sets: Sets) -> list[tuple[Codes, dict[int, list[int]]]]:
    """Longest sets of columns, with the places of those that are its first columns, by size."""
    sizes = {columns.size for columns, _ in sets}
    chains: list[tuple[Codes, dict[int, list[int]]]] = []
    leads: dict[bytes, dict[int, list[int]]] = {}
    for place in sorted(range(len(sets)), key=lambda one: -sets[one][0].size):
        columns = sets[place][0]
        if columns.tobytes() not in leads:
            chains.append((columns, {}))
            for size in sizes:
                if size <= columns.size:
                    leads.setdefault(columns[:size].tobytes(), chains[-1][1])
        leads[columns.tobytes()].setdefault(columns.size, []).append(place)
    return chains


def _newton(train: Floats, y: Codes, sets: Sets, class_weight: str | None) -> NewtonSVM | None:
    """Where two classes are there, and few unknowns for some set."""
    counts, fewest = np.bincount(y), min(columns.size for columns, _ in sets)
    if counts.size != 2 or not counts.all() or not _is_small(y.size, fewest):
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
        return self.many(train, y, test, [(np.arange(train.shape[1]), C)])[0]

    def many(self, train: Floats, y: Codes, test: Floats, sets: Sets) -> list[Floats]:
        """Give what :func:`many_svm_decisions` gives."""
        how: dict[str, Any] = {"n_classes": self.n_classes, "class_weight": self.class_weight}
        return many_svm_decisions(train, y, test, sets, **how)


def by_class(values: Floats, classes: NDArray[np.intp], n_classes: int) -> Floats:
    """Give one column per class, whether training had it or not."""
    columns = np.column_stack([-values, values]) / 2 if values.ndim == 1 else values
    if classes.size == n_classes:
        return columns
    # A class that training lacks is never predicted.
    decisions = np.full((values.shape[0], n_classes), columns.min(initial=0.0) - 1.0)
    decisions[:, classes] = columns
    return decisions
