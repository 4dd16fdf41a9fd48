"""What sites do to features: least squares within sites, and empirical Bayes over features."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Iterations end when nothing changes by more than this, or after so many.
_TOLERANCE, _MAX_ITER = 1e-10, 1000
# Residuals below this share of the largest value are rounding.
_ROUNDING = 1e-10


class SiteModel(NamedTuple):
    """Features of an average site: location, deviation within sites, effects of covariates."""

    mean: Array
    scale: Array  # 0 for features that do not vary within sites
    coef: Array  # covariates x features

    @classmethod
    def learn(cls, X: Array, member: NDArray[np.intp], covariates: Array) -> SiteModel:
        """Fit each feature on the samples that have it; features with the same gaps at once."""
        n_features, n_covariates = X.shape[1], covariates.shape[1]
        model = cls(
            np.zeros(n_features), np.zeros(n_features), np.zeros((n_covariates, n_features))
        )
        shares = np.bincount(member) / member.size
        present = ~np.isnan(X)
        patterns, kind = np.unique(present, axis=1, return_inverse=True)
        for number in range(patterns.shape[1]):
            rows, columns = np.flatnonzero(patterns[:, number]), np.flatnonzero(kind == number)
            if rows.size:
                fitted = _within_sites(
                    X[np.ix_(rows, columns)], member[rows], covariates[rows], shares
                )
                model.mean[columns], model.scale[columns], model.coef[:, columns] = fitted
        return model

    def standardise(self, X: Array, covariates: Array) -> Array:
        """Give what the model does not explain, in units of the scale; 0 where that is 0."""
        unit = np.where(self.scale > 0, self.scale, 1.0)
        residuals = (X - self.mean - covariates @ self.coef) / unit
        return np.where((self.scale > 0) | np.isnan(X), residuals, 0.0)


def _within_sites(
    X: Array, member: NDArray[np.intp], covariates: Array, shares: Array
) -> SiteModel:
    """Least squares of complete values on sites and covariates."""
    there = np.unique(member)
    design = np.column_stack([member[:, None] == there, covariates])
    solution = np.linalg.lstsq(design, X)[0]
    scale = np.sqrt(np.mean((X - design @ solution) ** 2, axis=0))
    scale[scale <= _ROUNDING * np.abs(X).max(axis=0)] = 0.0
    # Sites count by all their samples: gaps within a site do not move the common location.
    mean = np.average(solution[: there.size], axis=0, weights=shares[there])
    return SiteModel(mean, scale, solution[there.size :])


def site_effects(residuals: Array, empirical_bayes: bool) -> tuple[Array, Array]:
    """Give the shift and the variance of one site, by feature.

    Parameters
    ----------
    residuals : ndarray of shape (n_samples, n_features)
        Of the site, standardised; NaN where missing, 0 throughout for features that do not vary.
    empirical_bayes : bool
        Whether features lend each other strength: shifts are normal around their mean, variances
        inverse gamma, both with the moments found. It needs two features with two values each.
    """
    n = np.sum(~np.isnan(residuals), axis=0)
    total = np.nansum(residuals, axis=0)
    shift = np.divide(total, n, out=np.zeros(n.size), where=n > 0)
    squares = np.nansum((residuals - shift) ** 2, axis=0)
    variance = np.divide(squares, n - 1, out=np.ones(n.size), where=n > 1)
    varies = (n > 1) & (variance > (_ROUNDING * (1 + np.abs(shift))) ** 2)
    variance[~varies] = 1.0
    if not empirical_bayes or varies.sum() < 2:
        return shift, variance
    return _shrunk(n, shift, squares, variance, varies)


def _shrunk(
    n: NDArray[np.intp], own: Array, squares: Array, variance: Array, varies: NDArray[np.bool_]
) -> tuple[Array, Array]:
    """Posterior means of shift and variance, each given the other, until they agree."""
    centre, spread = own[varies].mean(), own[varies].var(ddof=1)
    mean, about = variance[varies].mean(), variance[varies].var(ddof=1)
    alike = about <= 1e-12 * mean**2  # then every feature has the same variance
    shape = np.inf if alike else mean**2 / about + 2
    shift, moved = own, variance
    for _ in range(_MAX_ITER):
        before = shift, moved
        shift = (spread * n * own + moved * centre) / (spread * n + moved)
        around = squares + n * (own - shift) ** 2
        moved = (
            np.full(n.size, mean)
            if alike
            else (around / 2 + mean * (shape - 1)) / (n / 2 + shape - 1)
        )
        change = max(np.abs(shift - before[0]).max(), np.abs(moved / before[1] - 1).max())
        if change <= _TOLERANCE:
            break
    return shift, moved
