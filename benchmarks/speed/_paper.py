"""The paper's algorithm taken literally: n x n indicator matrices, one channel after the other.

The yardstick for speed. It follows the updates as they are printed (GPI for W, the augmented
Lagrangian for theta with its fixed schedule), with the one correction without which the objective
is wrong: samples are centred over the observed ones.
"""

from __future__ import annotations

import numpy as np


def fit_literally(
    X: np.ndarray,
    y: np.ndarray,
    channels: np.ndarray,
    lam: float = 1.0,
    gamma: float = 2.0,
    n_rounds: int = 10,
) -> np.ndarray:
    """Scores of all features."""
    n = len(y)
    Y = np.eye(y.max() + 1)[y].T
    scores, losses = np.zeros(X.shape[1]), []
    names = np.unique(channels)
    for name in names:
        own = channels == name
        x = X[:, own].T
        observed = ~np.isnan(x).any(axis=0)
        mean, std = x[:, observed].mean(axis=1), x[:, observed].std(axis=1)
        x = np.where(observed, (x - mean[:, None]) / std[:, None], 0.0)
        S = np.diag(observed.astype(float))
        H = S - np.outer(observed, observed) / observed.sum()
        R = np.corrcoef(x[:, observed]) ** 2
        theta, W = np.full(len(x), 1 / len(x)), _polar(x @ H @ Y.T)
        for _ in range(n_rounds):
            C = np.diag(theta) @ x @ H @ S @ x.T @ np.diag(theta)
            D = np.diag(theta) @ x @ H @ S @ Y.T
            W = _gpi(C, D, W)
            Q = lam * R + (x @ H @ S @ x.T) * (W @ W.T)
            theta = _augmented_lagrangian(Q, 2 * np.diag(x @ H @ S @ Y.T @ W.T))
        residual = (W.T @ np.diag(theta) @ x - Y) @ H @ S
        losses.append(np.sum(residual**2) * n / observed.sum() + lam * theta @ R @ theta)
        scores[own] = theta
    alpha = np.array(losses) ** (1 / (1 - gamma))
    return scores * (alpha / alpha.sum())[np.searchsorted(names, channels)]


def _polar(M: np.ndarray) -> np.ndarray:
    left, _, right = np.linalg.svd(M, full_matrices=False)
    return left @ right


def _gpi(C: np.ndarray, D: np.ndarray, W: np.ndarray, n_iter: int = 20) -> np.ndarray:
    eta = np.linalg.eigvalsh(C)[-1] * 1.001
    for _ in range(n_iter):
        W = _polar(eta * W - C @ W + D)
    return W


def _augmented_lagrangian(Q: np.ndarray, g: np.ndarray, n_iter: int = 100) -> np.ndarray:
    """``min theta'Q theta - g'theta`` on the simplex with rho = 1.01 and mu = 0.1."""
    d = len(g)
    mu, rho = 0.1, 1.01
    v, price, multiplier = np.full(d, 1 / d), 0.0, np.zeros(d)
    for _ in range(n_iter):
        left = 2 * Q + mu * (np.eye(d) + np.ones((d, d)))
        right = g + mu * (v + 1.0) - multiplier - price
        theta = np.linalg.solve(left, right)
        v = np.maximum(theta + multiplier / mu, 0)
        multiplier += mu * (theta - v)
        price += mu * (theta.sum() - 1)
        mu *= rho
    return v
