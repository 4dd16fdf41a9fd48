"""The linear SVM behind tuning and evaluation: Newton's method for two classes, else liblinear.

The squared hinge loss is piecewise quadratic. On the piece where the same samples lie inside the
margin, one linear system gives the minimum; when that minimum lies on its own piece, it is the
minimum of the whole (S. S. Keerthi and D. DeCoste, "A modified finite Newton method for fast
solution of large scale linear SVMs", JMLR 6, 2005). It takes a handful of steps. A comparison fits
hundreds of thousands of SVMs, on the leading features of a ranking, with several costs each: the
products of features are formed once for all of these, and a cost starts from the minimum of the
next smaller one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv
from sklearn import config_context
from sklearn.svm import LinearSVC

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
#: Columns, each set with a cost.
Sets = Sequence[tuple[Codes, float]]

# With systems of more unknowns than this, liblinear's iterations cost less.
_MOST_UNKNOWNS = 2000
_MOST_STEPS, _HALVINGS = 60, 30


@dataclass(frozen=True)
class LinearSVM:
    """A linear SVM (squared hinge loss) that is fitted and asked at once.

    Two classes are solved here, unless there are many samples and many features; anything else by
    liblinear in the primal. Both are deterministic.

    Parameters
    ----------
    n_classes : int
    class_weight : {"balanced", None}
    """

    n_classes: int
    class_weight: str | None = None

    def __call__(self, train: Floats, y: Codes, test: Floats, C: float) -> Floats:
        """Give decision values of test samples, shape (n_test, n_classes).

        A class that training lacks gets a value below all others.
        """
        return self.many(train, y, test, [(np.arange(train.shape[1]), C)])[0]

    def many(self, train: Floats, y: Codes, test: Floats, sets: Sets) -> list[Floats]:
        """Give the decision values of an SVM on each of many sets of columns, with a cost each."""
        results: list[Floats] = [np.empty(0)] * len(sets)
        counts = np.bincount(y)
        two = counts.size == 2 and bool(counts.all())
        balanced = self.class_weight == "balanced"
        roots = np.sqrt(y.size / (2.0 * counts) if balanced and two else np.ones(counts.size))[y]
        signs = np.where(y == 1, roots, -roots)
        for columns, by_size in _chains(sets):
            small = two and min(y.size, columns.size + 1) <= _MOST_UNKNOWNS
            rows = np.vstack([np.ones(y.size), train[:, columns].T]) * signs if small else None
            gram = np.empty(0) if rows is None else rows @ rows.T
            test_columns = test[:, columns]
            for k, places in by_size.items():
                costs = [sets[place][1] for place in places]
                path = {} if rows is None else _newton_path(rows[: k + 1], gram, roots, costs)
                for place, C in zip(places, costs, strict=True):
                    w = path.get(C)
                    if w is None:
                        data = train[:, columns[:k]], y, test_columns[:, :k]
                        results[place] = self._liblinear(*data, C)
                    else:
                        values = test_columns[:, :k] @ w[1:] + w[0]
                        results[place] = by_class(values, np.arange(2), self.n_classes)
        return results

    def _liblinear(self, train: Floats, y: Codes, test: Floats, C: float) -> Floats:
        svm = LinearSVC(C=C, dual=False, class_weight=self.class_weight, tol=1e-4, max_iter=2000)
        # Data and parameters are known to be sound; checking them again takes longer than a fit.
        with config_context(assume_finite=True, skip_parameter_validation=True):
            svm.fit(train, y)
        values = test @ svm.coef_.T + svm.intercept_
        values = values[:, 0] if values.shape[1] == 1 else values
        return by_class(values, svm.classes_, self.n_classes)


def _chains(sets: Sets) -> list[tuple[Codes, dict[int, list[int]]]]:
    """Longest sets of columns, with the places of those that are its first columns, by size."""
    chains: list[tuple[Codes, dict[int, list[int]]]] = []
    for place in sorted(range(len(sets)), key=lambda i: -sets[i][0].size):
        columns = sets[place][0]
        for longest, by_size in chains:
            if np.array_equal(longest[: columns.size], columns):
                by_size.setdefault(columns.size, []).append(place)
                break
        else:
            chains.append((columns, {columns.size: [place]}))
    return chains


def _newton_path(
    rows: Floats, gram: Floats, roots: Floats, costs: Sequence[float]
) -> dict[float, Floats | None]:
    """Minimise ``|w|^2 / 2 + C sum_i max(0, r_i - x_i . w)^2`` for every C."""
    k, n = rows.shape
    basis = None
    if k > n:  # w is a combination of samples: n unknowns do
        basis, rows = np.linalg.qr(rows)
        gram = rows @ rows.T
    else:
        gram = gram[:k, :k]
    samples = np.ascontiguousarray(rows.T)
    path: dict[float, Floats | None] = {}
    w = np.zeros(rows.shape[0])
    for C in sorted(set(costs)):
        found = _minimise(rows, samples, gram, roots, C, w)
        path[C] = found if found is None or basis is None else basis @ found
        w = w if found is None else found
    return path


def _minimise(
    rows: Floats, samples: Floats, gram: Floats, roots: Floats, C: float, start: Floats
) -> Floats | None:
    w, margins = start, start @ rows
    value, inside = _loss(w, margins, roots, C)
    target_all = rows @ roots
    for _ in range(_MOST_STEPS):
        outside = ~inside
        if 2 * np.count_nonzero(outside) <= roots.size:  # all without those outside
            out = samples[outside]
            products, target = gram - out.T @ out, target_all - roots[outside] @ out
        else:
            inner = samples[inside]
            products, target = inner.T @ inner, roots[inside] @ inner
        products.reshape(-1)[:: products.shape[0] + 1] += 0.5 / C
        # Called directly: scipy's checks of its arguments take longer than the solution.
        _, goal, failed = dposv(products.T, target, overwrite_a=True)
        if failed:
            return None
        goal_margins, share = goal @ rows, 1.0
        for _ in range(_HALVINGS):
            trial = w + share * (goal - w) if share < 1 else goal
            at = margins + share * (goal_margins - margins) if share < 1 else goal_margins
            lower, now = _loss(trial, at, roots, C)
            if lower <= value * (1.0 + 1e-14):
                break
            share *= 0.5
        else:
            return None
        w, margins, value = trial, at, lower
        if share == 1.0 and np.array_equal(now, inside):
            return w
        inside = now
    return None


def _loss(w: Floats, margins: Floats, roots: Floats, C: float) -> tuple[float, NDArray[np.bool_]]:
    """The loss, and which samples lie inside the margin."""
    short = np.maximum(roots - margins, 0.0)
    return 0.5 * float(w @ w) + C * float(short @ short), short > 0


def by_class(values: Floats, classes: Codes, n_classes: int) -> Floats:
    """Give one column of decision values per class, whether training had it or not."""
    columns = np.column_stack([-values, values]) / 2 if values.ndim == 1 else values
    if classes.size == n_classes:
        return columns
    # A class that training lacks is never predicted.
    decisions = np.full((values.shape[0], n_classes), columns.min(initial=0.0) - 1.0)
    decisions[:, classes] = columns
    return decisions
