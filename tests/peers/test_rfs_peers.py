"""RFS against a general convex solver (CVXPY)."""

import cvxpy as cp
import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine, make_classification

from idfsmec.selection import RFS

pytestmark = pytest.mark.long


def optimum(X, Y, gamma):
    W = cp.Variable((X.shape[1], Y.shape[1]))
    loss = cp.sum(cp.norm(X @ W - Y, 2, axis=1)) + gamma * cp.sum(cp.norm(W, 2, axis=1))
    return cp.Problem(cp.Minimize(loss)).solve(solver=cp.CLARABEL)


@pytest.mark.parametrize(
    "data",
    [
        load_iris(return_X_y=True),
        tuple(part[::3] for part in load_wine(return_X_y=True)),
        make_classification(40, 60, n_informative=8, n_classes=3, random_state=0),
    ],
    ids=["iris", "wine", "more features than samples"],
)
@pytest.mark.parametrize("gamma", [0.5, 5.0])
def test_reaches_the_same_objective(data, gamma):
    X, y = data
    ours = RFS(gamma=gamma, standardize=True, tol=1e-9, max_iter=5000).fit(X, y)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    Y = np.eye(y.max() + 1)[y]
    best = optimum(Z, Y - Y.mean(axis=0), gamma)
    assert ours.objective_history_[-1] == pytest.approx(best, rel=1e-5)
