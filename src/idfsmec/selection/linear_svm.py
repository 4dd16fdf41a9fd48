"""The one linear SVM behind tuning and evaluation: Newton's method, else liblinear.

The squared hinge loss is piecewise quadratic. On the piece where the same samples lie inside the
margin, one linear system gives the minimum; when that minimum lies on its own piece, it is the
minimum of the whole (S. S. Keerthi and D. DeCoste, "A modified finite Newton method for fast
solution of large scale linear SVMs", JMLR 6, 2005). It takes a handful of steps.

A comparison fits hundreds of thousands of SVMs, several costs on each set of features. Products of
features (of samples, if these are fewer) are formed once for all costs, and from one piece to the
next only samples that change sides are added or taken away.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv
from sklearn import config_context
from sklearn.svm import LinearSVC

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
Mask = NDArray[np.bool_]

#: With systems of more unknowns than this, liblinear's iterations cost less.
MOST_UNKNOWNS = 2000
_MOST_STEPS = 60
_HALVINGS = 30


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
    return prepare_svm(train, y, test, n_classes=n_classes, class_weight=class_weight)(C)


def prepare_svm(
    train: Floats,
    y: Codes,
    test: Floats,
    *,
    n_classes: int,
    class_weight: str | None,
) -> Callable[[float], Floats]:
    """Give a function of C with the decisions of :func:`svm_decisions`, bit by bit.

    What costs have in common is done once.

    Examples
    --------
    >>> train, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([0, 0, 1, 1])
    >>> decide = prepare_svm(train, y, np.array([[3.0]]), n_classes=2, class_weight=None)
    >>> decide(0.01).round(3)
    array([[-0.15,  0.15]])
    """
    counts = np.bincount(y)
    newton: NewtonSVM | None = None
    if counts.size == 2 and counts.all() and min(train.shape) <= MOST_UNKNOWNS:
        rarity = y.size / (2.0 * counts) if class_weight == "balanced" else np.ones(2)
        columns = np.vstack([train.T, np.ones(y.size)])
        newton = NewtonSVM(columns, np.where(y == 1, 1.0, -1.0), rarity[y])

    def decide(C: float) -> Floats:
        w = None if newton is None else newton.fit(C)
        if w is not None:
            return by_class(test @ w[:-1] + w[-1], np.arange(2), n_classes)
        svm = LinearSVC(C=C, dual=False, class_weight=class_weight, tol=1e-4, max_iter=2000)
        # Data and parameters are known to be sound; checking them again takes longer than a fit.
        with config_context(assume_finite=True, skip_parameter_validation=True):
            svm.fit(train, y)
        values = test @ svm.coef_.T + svm.intercept_
        return by_class(values[:, 0] if values.shape[1] == 1 else values, svm.classes_, n_classes)

    return decide


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
        return self.prepare(train, y, test)(C)

    def prepare(self, train: Floats, y: Codes, test: Floats) -> Callable[[float], Floats]:
        """Give what :func:`prepare_svm` gives."""
        how: dict[str, Any] = {"n_classes": self.n_classes, "class_weight": self.class_weight}
        return prepare_svm(train, y, test, **how)


class NewtonSVM:
    """Minimises ``|w|^2 / 2 + C sum_i weights_i max(0, 1 - signs_i (x_i . w))^2`` for any C.

    Parameters
    ----------
    columns : ndarray of shape (n_features, n_samples)
        X', with a row of ones for the intercept, which is part of ``|w|`` as in liblinear.
    signs : ndarray of shape (n_samples,)
        -1 or 1.
    weights : ndarray of shape (n_samples,)

    Examples
    --------
    >>> columns = np.array([[-2.0, -1.0, 1.0, 2.0], [1.0, 1.0, 1.0, 1.0]])
    >>> NewtonSVM(columns, np.array([-1.0, -1, 1, 1]), np.ones(4)).fit(10.0).round(3)
    array([0.976, 0.   ])
    """

    def __init__(self, columns: Floats, signs: Floats, weights: Floats) -> None:
        # With samples multiplied by the roots r of their weights, losses are (r_i - x_i . w)^2.
        self._roots = np.sqrt(weights)
        by_side = _ByFeatures if columns.shape[0] <= columns.shape[1] else _BySamples
        self._pieces: _Pieces = by_side(columns * (signs * self._roots), self._roots)

    def fit(self, C: float) -> Floats | None:
        """Give w, or None if the steps did not end.

        Rounding may cause that on the border of two pieces.
        """
        pieces = self._pieces
        inside = np.ones(self._roots.size, dtype=bool)
        at = _Point(np.zeros(pieces.n_unknowns), np.zeros(inside.size))
        value = C * float(self._roots @ self._roots)
        for _ in range(_MOST_STEPS):
            goal = pieces.minimum(inside, C)
            found = self._search(at, _Point(goal, pieces.margins(goal)), C, value)
            if found is None:
                return None
            at, now, value, whole = found
            if whole and (now == inside).all():
                return pieces.weights(at.unknowns)
            inside = now
        return None

    def _search(
        self, at: _Point, goal: _Point, C: float, value: float
    ) -> tuple[_Point, Mask, float, bool] | None:
        """Shorten a step until it lowers the loss.

        Say where it ends, who is inside the margin there, the loss, and if it was taken whole.
        """
        share, there = 1.0, goal
        for _ in range(_HALVINGS):
            short = np.maximum(self._roots - there.margins, 0.0)
            lower = 0.5 * self._pieces.square(there) + C * float(short @ short)
            if lower <= value * (1.0 + 1e-14):
                return there, short > 0, lower, share == 1.0
            share *= 0.5
            there = _Point(*(a + share * (b - a) for a, b in zip(at, goal, strict=True)))
        return None


class _Point(NamedTuple):
    """The unknowns of the system, and x_i . w of every sample."""

    unknowns: Floats
    margins: Floats


class _Pieces(ABC):
    """Minima of the pieces, in as many unknowns as there are features, or samples.

    Parameters
    ----------
    rows : ndarray of shape (n_features, n_samples)
        x_i, multiplied by signs and roots.
    roots : ndarray of shape (n_samples,)
    """

    n_unknowns: int

    def __init__(self, rows: Floats, roots: Floats) -> None:
        self._rows, self._roots = rows, roots

    @abstractmethod
    def minimum(self, inside: Mask, C: float) -> Floats:
        """Minimise ``|w|^2 / 2 + C sum_i (r_i - x_i . w)^2`` over samples inside."""

    @abstractmethod
    def margins(self, unknowns: Floats) -> Floats:
        """``x_i . w`` of every sample."""

    @abstractmethod
    def square(self, point: _Point) -> float:
        """``|w|^2``."""

    @abstractmethod
    def weights(self, unknowns: Floats) -> Floats:
        """``w``."""


class _ByFeatures(_Pieces):
    """The unknowns are w: ``(I / 2C + X'X) w = X'r`` over samples inside."""

    def __init__(self, rows: Floats, roots: Floats) -> None:
        super().__init__(rows, roots)
        self.n_unknowns = rows.shape[0]
        self._whole = rows @ rows.T, rows @ roots
        self._inside, self._sums = np.ones(roots.size, dtype=bool), self._whole

    def minimum(self, inside: Mask, C: float) -> Floats:
        """Solve for w."""
        gram, target = self._sum_up(inside)
        return _solve(gram.copy(), 0.5 / C, target)

    def _sum_up(self, inside: Mask) -> tuple[Floats, Floats]:
        """X'X and X'r of samples inside, from those of the samples that were inside before."""
        if inside.all():
            self._sums = self._whole
        else:
            entered, left = inside & ~self._inside, self._inside & ~inside
            if np.count_nonzero(entered) + np.count_nonzero(left) < np.count_nonzero(inside):
                gram, target = self._sums
                for samples, sign in ((entered, 1.0), (left, -1.0)):
                    rows = self._rows[:, samples]
                    gram = gram + sign * (rows @ rows.T)
                    target = target + sign * (rows @ self._roots[samples])
                self._sums = gram, target
            else:
                rows = self._rows[:, inside]
                self._sums = rows @ rows.T, rows @ self._roots[inside]
        self._inside = inside
        return self._sums

    def margins(self, unknowns: Floats) -> Floats:
        """``X w``."""
        return unknowns @ self._rows

    def square(self, point: _Point) -> float:
        """``|w|^2``."""
        return float(point.unknowns @ point.unknowns)

    def weights(self, unknowns: Floats) -> Floats:
        """Give what is there."""
        return unknowns


class _BySamples(_Pieces):
    """The unknowns are b, ``w = X'b``: ``(I / 2C + X X') b = r`` over samples inside, else 0."""

    def __init__(self, rows: Floats, roots: Floats) -> None:
        super().__init__(rows, roots)
        self.n_unknowns = rows.shape[1]
        self._kernel = rows.T @ rows

    def minimum(self, inside: Mask, C: float) -> Floats:
        """Solve for b."""
        unknowns = np.zeros(self.n_unknowns)
        unknowns[inside] = _solve(
            self._kernel[np.ix_(inside, inside)], 0.5 / C, self._roots[inside]
        )
        return unknowns

    def margins(self, unknowns: Floats) -> Floats:
        """``X X' b``."""
        return self._kernel @ unknowns

    def square(self, point: _Point) -> float:
        """``b' X X' b``."""
        return float(point.unknowns @ point.margins)

    def weights(self, unknowns: Floats) -> Floats:
        """``X'b``."""
        return self._rows @ unknowns


def _solve(matrix: Floats, ridge: float, target: Floats) -> Floats:
    """Solve ``(matrix + ridge I) x = target`` in place of the matrix, which is symmetric."""
    matrix.flat[:: matrix.shape[0] + 1] += ridge
    # Its transpose is itself, in the order that LAPACK works on without a copy.
    _, found, failed = dposv(matrix.T, target, lower=1, overwrite_a=1)
    if failed:
        return np.full(target.size, np.nan)
    return np.asarray(found)


def by_class(values: Floats, classes: NDArray[np.intp], n_classes: int) -> Floats:
    """Give one column per class, whether training had it or not."""
    columns = np.column_stack([-values, values]) / 2 if values.ndim == 1 else values
    if classes.size == n_classes:
        return columns
    # A class that training lacks is never predicted.
    decisions = np.full((values.shape[0], n_classes), columns.min(initial=0.0) - 1.0)
    decisions[:, classes] = columns
    return decisions
