"""What sites do to features: least squares within sites, and empirical Bayes over features.

Without covariates all of it follows from counts, means and squares of each site, so that it can be
had from sums as well as from samples.
"""

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

    @classmethod
    def of_moments(cls, count: Array, mean: Array, squares: Array, shares: Array) -> SiteModel:
        """The same without covariates, from what is known of each site.

        Parameters
        ----------
        count, mean, squares : ndarray of shape (n_sites, n_features)
            Values there are, their mean, and the sum of their squares about it.
        shares : ndarray of shape (n_sites,)
            Samples of each site, whatever features they have.
        """
        some = count > 0
        weights = np.where(some, np.asarray(shares)[:, None], 0.0)
        total, n = weights.sum(axis=0), count.sum(axis=0)
        centre = np.sum(weights * np.where(some, mean, 0.0), axis=0) / np.where(
            total > 0, total, 1
        )
        within, present = np.where(some, squares, 0.0), np.where(n > 0, n, 1)
        scale = np.sqrt(within.sum(axis=0) / present)
        size = np.sqrt(np.sum(within + count * np.where(some, mean, 0.0) ** 2, axis=0) / present)
        scale[scale <= _ROUNDING * size] = 0.0
        return cls(centre, scale, np.zeros((0, n.size)))

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
    solution = np.linalg.lstsq(design, X, rcond=None)[0]
    scale = np.sqrt(np.mean((X - design @ solution) ** 2, axis=0))
    scale[scale <= _ROUNDING * np.sqrt(np.mean(X**2, axis=0))] = 0.0
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
    n = np.sum(~np.isnan(residuals), axis=0).astype(np.float64)
    total = np.nansum(residuals, axis=0)
    shift = np.divide(total, n, out=np.zeros(n.size), where=n > 0)
    squares = np.nansum((residuals - shift) ** 2, axis=0)
    return effects_of_moments(n, shift, squares, empirical_bayes)


def effects_of_moments(
    n: Array, shift: Array, squares: Array, empirical_bayes: bool = True
) -> tuple[Array, Array]:
    """Give the same from counts, means and squares about the means of standardised residuals."""
    variance = np.divide(squares, n - 1, out=np.ones(n.size), where=n > 1)
    varies = (n > 1) & (variance > (_ROUNDING * (1 + np.abs(shift))) ** 2)
    variance[~varies] = 1.0
    if not empirical_bayes or varies.sum() < 2:
        return shift, variance
    return _shrunk(n, shift, squares, variance, varies)


def _shrunk(
    n: Array, own: Array, squares: Array, variance: Array, varies: NDArray[np.bool_]
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


def site_maps(count: Array, mean: Array, squares: Array, shares: Array) -> tuple[Array, Array]:
    """What brings each site to one location and scale: values become ``slope * x + offset``.

    Parameters
    ----------
    count, mean, squares, shares
        As in :meth:`SiteModel.of_moments`.

    Returns
    -------
    slope, offset : ndarray of shape (n_sites, n_features)

    Examples
    --------
    >>> count, mean = np.full((2, 3), 50.0), np.array([[0.0, 0.1, 0.2], [5.0, 5.1, 5.2]])
    >>> slope, offset = site_maps(count, mean, 50 * np.ones((2, 3)), np.ones(2))
    >>> (slope * mean + offset).round(1)
    array([[2.5, 2.6, 2.7],
           [2.5, 2.6, 2.7]])
    """
    model = SiteModel.of_moments(count, mean, squares, shares)
    varies, unit = model.scale > 0, np.where(model.scale > 0, model.scale, 1.0)
    slope, offset = np.ones_like(mean), np.zeros_like(mean)
    for site, n in enumerate(count):
        own = np.where(varies & (n > 0), (mean[site] - model.mean) / unit, 0.0)
        spread = np.where(varies & (n > 0), squares[site] / unit**2, 0.0)
        shift, variance = effects_of_moments(n, own, spread)
        rate = 1 / np.sqrt(variance)
        slope[site] = np.where(varies, rate, 1.0)
        offset[site] = np.where(varies, model.mean - rate * (model.mean + unit * shift), 0.0)
    return slope, offset
