"""IDFS-MEC for a score against a general convex solver (CVXPY)."""

import cvxpy as cp
import numpy as np
import pytest
from sklearn.datasets import load_diabetes

from idfsmec.selection import IDFSMEC
from tests.solver.reference import simplex_qp

pytestmark = pytest.mark.long


def best_direction(C, D):
    """``min w'Cw - 2 w'D`` over unit vectors: its semidefinite relaxation is tight."""
    d = len(D)
    M = cp.Variable((d + 1, d + 1), symmetric=True)
    cost = (cp.trace(C @ M[:d, :d]) - 2 * D @ M[:d, d]) / np.abs(D).max()
    constraints = [M >> 0, M[d, d] == 1, cp.trace(M[:d, :d]) == 1]
    cp.Problem(cp.Minimize(cost), constraints).solve(
        solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9
    )
    return M.value[:d, d]


def alternate(A, P, y2, R, lam, n_rounds=300):
    """Feature weights of one channel and its loss, by turns the best of each given the other."""
    theta = np.full(len(P), 1 / len(P))
    for _ in range(n_rounds):
        w = best_direction(theta[:, None] * A * theta, theta * P)
        before = theta
        theta = np.maximum(simplex_qp(lam * R + A * np.outer(w, w), 2 * P * w), 0)
        theta /= theta.sum()
        if np.abs(theta - before).max() < 1e-8:
            break
    w = best_direction(theta[:, None] * A * theta, theta * P)
    loss = y2 + theta @ (A * np.outer(w, w) + lam * R) @ theta - 2 * theta @ (P * w)
    return theta, float(loss)


@pytest.mark.parametrize("lam", [0.1, 1.0])
def test_reaches_the_weights_and_the_loss_that_convex_parts_reach_by_turns(lam):
    X, y = load_diabetes(return_X_y=True)
    ours = IDFSMEC([0] * 5 + [1] * 5, lam=lam, numeric=True, tol=1e-9)
    ours.fit(X, y, groups=np.arange(len(y)))
    Z, t = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()
    for channel in (0, 1):
        part = Z[:, 5 * channel : 5 * channel + 5]
        R = np.corrcoef(part.T) ** 2
        theta, loss = alternate(part.T @ part, part.T @ t, t @ t, R, lam * len(y) / 1000)
        assert ours.objective_[channel] == pytest.approx(loss, rel=1e-6)
        np.testing.assert_allclose(
            ours.feature_weights_[5 * channel : 5 * channel + 5], theta, atol=1e-4
        )
