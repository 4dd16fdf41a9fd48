"""The one linear SVM behind tuning and evaluation: Newton's method, else liblinear.

The squared hinge loss is piecewise quadratic. On the piece where the same samples lie inside the
margin, one linear system gives the minimum; when that minimum lies on its own piece, it is the
minimum of the whole (S. S. Keerthi and D. DeCoste, "A modified finite Newton method for fast
solution of large scale linear SVMs", JMLR 6, 2005). It takes a handful of steps. What it saves is
not the mathematics, in which liblinear is as fast, but the two milliseconds that
``sklearn.svm.LinearSVC`` spends around it: a comparison fits hundreds of thousands of SVMs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.svm import LinearSVC

Floats = NDArray[np.float64]

#: With more features the linear systems cost more than liblinear's iterations.
MOST_FEATURES = 200
_MOST_STEPS = 60
_HALVINGS = 30


def svm_decisions(
    train: Floats,
    y: NDArray[np.intp],
    test: Floats,
    C: float,
    *,
    n_classes: int,
    class_weight: str | None,
) -> Floats:
    """Fit a linear SVM (squared hinge loss) and give its decision values.

    The primal problem is solved by Newton's method, which is deterministic and, for these
    shapes, faster than the dual (n = 1485 samples, 50 features, C = 1: 0.016 s against 1.1 s).
    Two classes and few features are solved here, anything else by liblinear.

    Returns
    -------
    ndarray of shape (n_test, n_classes)
        A class that training lacks gets a value below all others.
    """
    counts = np.bincount(y)
    if counts.size == 2 and counts.all() and train.shape[1] <= MOST_FEATURES:
        rarity = y.size / (2.0 * counts) if class_weight == "balanced" else np.ones(2)
        costs: Floats = np.asarray(C * rarity, dtype=np.float64)[y]
        signs: Floats = np.where(y == 1, 1.0, -1.0)
        w = fit_newton_svm(np.hstack([train, np.ones((y.size, 1))]), signs, costs)
        if w is not None:
            return by_class(test @ w[:-1] + w[-1], np.arange(2), n_classes)
    svm = LinearSVC(C=C, dual=False, class_weight=class_weight, tol=1e-4, max_iter=2000)
    # Data and parameters are known to be sound; checking them again takes longer than a fit.
    with config_context(assume_finite=True, skip_parameter_validation=True):
        svm.fit(train, y)
    values = test @ svm.coef_.T + svm.intercept_
    return by_class(values[:, 0] if values.shape[1] == 1 else values, svm.classes_, n_classes)


def fit_newton_svm(X: Floats, signs: Floats, costs: Floats) -> Floats | None:
    """Minimise ``|w|^2 / 2 + sum_i costs_i max(0, 1 - signs_i (x_i . w))^2``.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        With a column of ones for the intercept, which is part of ``|w|`` as in liblinear.
    signs : ndarray of shape (n_samples,)
        -1 or 1.
    costs : ndarray of shape (n_samples,)

    Returns
    -------
    ndarray of shape (n_features,), or None
        None if the steps did not end, which rounding may cause on the border of two pieces.

    Examples
    --------
    >>> X = np.array([[-2.0, 1.0], [-1.0, 1.0], [1.0, 1.0], [2.0, 1.0]])
    >>> fit_newton_svm(X, np.array([-1.0, -1, 1, 1]), np.full(4, 10.0)).round(3)
    array([0.976, 0.   ])
    """
    signed = X * signs[:, None]
    w = np.zeros(X.shape[1])
    inside, value = np.ones(signs.size, dtype=bool), float(costs.sum())
    for _ in range(_MOST_STEPS):
        rows = signed[inside]
        weighted = rows.T * (2.0 * costs[inside])
        system = weighted @ rows
        system.flat[:: system.shape[0] + 1] += 1.0
        step = np.linalg.solve(system, weighted.sum(axis=1)) - w
        found = _search(signed, costs, w, step, value)
        if found is None:
            return None
        w, slack, lower, whole = found
        now = slack > 0
        if whole and (now == inside).all():
            return w
        inside, value = now, lower
    return None


def _search(
    signed: Floats, costs: Floats, w: Floats, step: Floats, value: float
) -> tuple[Floats, Floats, float, bool] | None:
    """Shorten a step until it lowers the loss; say where it ends and if it was taken whole."""
    share = 1.0
    for _ in range(_HALVINGS):
        there = w + share * step
        slack = 1.0 - signed @ there
        lower = 0.5 * float(there @ there) + float(costs @ np.maximum(slack, 0.0) ** 2)
        if lower <= value * (1.0 + 1e-14):
            return there, slack, lower, share == 1.0
        share *= 0.5
    return None


def by_class(values: Floats, classes: NDArray[np.intp], n_classes: int) -> Floats:
    """Give one column per class, whether training had it or not."""
    columns = np.column_stack([-values, values]) / 2 if values.ndim == 1 else values
    if classes.size == n_classes:
        return columns
    # A class that training lacks is never predicted.
    decisions = np.full((values.shape[0], n_classes), columns.min(initial=0.0) - 1.0)
    decisions[:, classes] = columns
    return decisions
