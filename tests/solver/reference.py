"""The method in its plainest form: slow, literal, independent of the package's solver."""

import cvxpy as cp
import numpy as np


def literal_objective(X, Y, observed, W, theta, lam, weight=1.0):
    """The paper's objective of one channel with n x n matrices, bias found by least squares.

    X (d, n) with anything at missing samples, Y (c, n), observed (n,), W (d, c), theta (d,).
    """
    n = X.shape[1]
    S = np.diag(observed.astype(float))
    X = np.where(observed, X, 0.0)
    target = (Y - W.T @ np.diag(theta) @ X) @ S
    ones = (np.ones((1, n)) @ S).T
    bias = np.linalg.lstsq(ones, target.T, rcond=None)[0].T
    residual = (W.T @ np.diag(theta) @ X + bias @ np.ones((1, n)) - Y) @ S
    R = np.corrcoef(X[:, observed]) ** 2
    return weight * np.linalg.norm(residual) ** 2 + lam * theta @ R @ theta


def simplex_qp(Q, g):
    """``min theta'Q theta - g'theta`` on the simplex, by an interior-point solver."""
    theta = cp.Variable(len(g), nonneg=True)
    cost = cp.quad_form(theta, cp.psd_wrap((Q + Q.T) / 2)) - g @ theta
    cp.Problem(cp.Minimize(cost), [cp.sum(theta) == 1]).solve(
        solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12
    )
    return theta.value


def polar(M):
    left, _, right = np.linalg.svd(M, full_matrices=False)
    return left @ right


def gpi(C, D, W, n_iter):
    """Generalised power iteration for ``min Tr(W'CW) - 2 Tr(W'D)``."""
    eta = np.linalg.eigvalsh(C)[-1] * 1.0001 + 1e-12
    for _ in range(n_iter):
        W = polar(eta * W - C @ W + D)
    return W


def alternate(A, P, y2, R, lam, theta, W, n_rounds=60, n_gpi=100):
    """The paper's alternation with both sub-problems solved well. P and W are (d, c)."""
    for _ in range(n_rounds):
        W = gpi(theta[:, None] * A * theta, theta[:, None] * P, W, n_gpi)
        theta = np.maximum(simplex_qp(lam * R + A * (W @ W.T), 2 * np.sum(P * W, axis=1)), 0)
        theta /= theta.sum()
    return theta, W
