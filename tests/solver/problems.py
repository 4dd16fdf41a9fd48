"""Channel problems made from samples, for the solver's tests."""

import numpy as np

from idfsmec.solver.problem import ChannelProblems
from idfsmec.solver.sums import table_sums


def make_problems(b=6, d=7, c=2, lam=1.0, n=80, seed=0, rank=3):
    """Problems from standardised correlated features; also the samples they came from."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % c
    Y = np.eye(c)[y].T
    X = rng.normal(size=(b, rank, n)) + 0.7 * rng.normal(size=(b, rank, c))[:, :, y]
    X = rng.normal(size=(b, d, rank)) @ X + 0.7 * rng.normal(size=(b, d, n))
    X -= X.mean(axis=2, keepdims=True)
    X /= X.std(axis=2, keepdims=True)
    Yc = Y - Y.mean(axis=1, keepdims=True)
    A = X @ X.swapaxes(1, 2)
    P = Yc @ X.swapaxes(1, 2)
    return ChannelProblems.from_moments(A, P, np.full(b, np.sum(Yc**2)), lam), X, Y


def random_point(b, d, c, seed=0):
    """A feasible theta and W for every problem."""
    rng = np.random.default_rng(seed)
    theta = rng.dirichlet(np.ones(d), size=b)
    left, _, right = np.linalg.svd(rng.normal(size=(b, c, d)), full_matrices=False)
    return theta, left @ right


def moments_of(X, y, n_classes, columns, weights=None, groups=None):
    """Moments of all samples of a table."""
    folds = np.zeros((1, len(y)), dtype=int)
    how = {"n_folds": 1, "sample_weight": weights, "groups": groups}
    return table_sums(X, columns, y, folds, n_classes, **how).moments()
