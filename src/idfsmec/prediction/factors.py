"""The factor model of all channels together, x = L z + noise, learned from incomplete samples."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.sparse.linalg import ArpackError, eigsh

from idfsmec.prediction._expectation import (
    Patterns,
    apply,
    factor_moments,
    inverses,
    pairs,
    unfolded,
)

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]

# From this size on, iterations find a few eigenvectors sooner than a decomposition.
_ITERATE_FROM = 500


class Products(NamedTuple):
    """Products (d, d) of standardised values, over samples that have the same d columns."""

    columns: Indices
    n: float
    values: Array


@dataclass(frozen=True)
class FactorModel:
    """Standardised features as factors times loadings plus a noise of their own.

    Attributes
    ----------
    loadings : ndarray of shape (n_features, n_factors)
        How each feature goes with each factor; factors are independent, of variance 1.
    noise : ndarray of shape (n_features,)
        Variance of what is each feature's own.
    channel : ndarray of shape (n_features,)
        Number of the channel of every feature.
    """

    loadings: Array
    noise: Array
    channel: Indices

    @classmethod
    def learn(
        cls,
        values: Array,
        observed: Mask,
        channel: Indices,
        n_factors: int,
        *,
        ridge: float = 1.0,
        min_noise: float = 0.02,
        n_rounds: int = 25,
    ) -> FactorModel:
        """Learn by expectation-maximisation; each round makes what was observed more probable.

        Values and who has which channel are those of :func:`standardised`; the rest is described
        in :class:`ChannelCompleter`.
        """
        n, n_features = values.shape
        squares = np.einsum("nd,nd->d", values, values)
        n_factors = min(n_factors, n // 2, int(np.count_nonzero(squares)) // 2)
        counts = observed.sum(axis=0)[channel]
        model = cls(_start(values, observed, n_factors), np.full(n_features, 0.5), channel)
        if n_factors == 0:
            noise = np.divide(squares, counts, out=np.ones(n_features), where=counts > 0)
            return cls(model.loadings, np.maximum(noise, min_noise), channel)
        seen = Patterns(observed)
        for _ in range(n_rounds):
            spread = model._spread(seen.rows)
            grams, toward = factor_moments(values, seen, model._weights, spread)
            moments = (grams[channel], toward, squares, counts)
            model = model._improved(moments, ridge=ridge, min_noise=min_noise)
        return model

    @classmethod
    def learn_products(
        cls,
        products: Sequence[Products],
        channel: Indices,
        n_factors: int,
        *,
        ridge: float = 1.0,
        min_noise: float = 0.02,
        n_rounds: int = 25,
    ) -> FactorModel:
        """Learn from products of samples that have the same channels: as :meth:`learn` from them.

        A round asks of samples no more than how many have the same channels, and the products of
        their values.
        """
        n_features = channel.size
        whole = np.zeros((n_features, n_features))
        counts, n = np.zeros(n_features), 0.0
        for one in products:
            whole[np.ix_(one.columns, one.columns)] += one.values
            counts[one.columns] += one.n
            n += one.n
        squares = np.diagonal(whole).copy()
        n_factors = min(n_factors, int(n) // 2, int(np.count_nonzero(squares)) // 2)
        known = counts > 0
        per_channel = np.zeros(int(channel.max()) + 1)
        per_channel[channel] = counts
        share = per_channel.sum() / max(n * np.unique(channel[known]).size, 1.0)
        model = cls(_leading(whole, n_factors, n, share), np.full(n_features, 0.5), channel)
        if n_factors == 0:
            noise = np.divide(squares, counts, out=np.ones(n_features), where=known)
            return cls(model.loadings, np.maximum(noise, min_noise), channel)
        patterns = np.zeros((len(products), per_channel.size))
        for row, one in zip(patterns, products, strict=True):
            row[channel[one.columns]] = 1.0
        for _ in range(n_rounds):
            toward = np.zeros((n_features, n_factors))
            second = np.zeros((len(products), n_factors, n_factors))
            spreads = np.moveaxis(model._spread(patterns), 2, 0)
            for at, (one, spread) in enumerate(zip(products, spreads, strict=True)):
                own = one.columns
                expect = model._weights[own] @ spread
                found = one.values @ expect
                toward[own] += found
                second[at] = one.n * spread + expect.T @ found
            grams = (patterns.T @ second.reshape(len(second), -1)).reshape(-1, *second.shape[1:])
            moments = (grams[channel], toward, squares, counts)
            model = model._improved(moments, ridge=ridge, min_noise=min_noise)
        return model

    def _improved(
        self, moments: tuple[Array, Array, Array, NDArray], *, ridge: float, min_noise: float
    ) -> FactorModel:
        """Loadings and noise that fit best what is expected of the factors.

        Moments are products of factors for every feature, over those who have it; products of
        features and factors; squares of the features; and their counts.
        """
        grams, toward, squares, counts = moments
        tiny = 1e-9  # without a ridge, a channel that nobody has would leave nothing to solve
        penalty = ridge * self.noise + tiny
        solved = np.linalg.solve(
            grams + penalty[:, None, None] * np.eye(toward.shape[1]), toward[:, :, None]
        )
        loadings = np.asarray(solved[:, :, 0], dtype=np.float64)
        # Products of factors times loadings are what the system says: no second use of them.
        left = squares - np.einsum("dq,dq->d", toward + penalty[:, None] * loadings, loadings)
        noise = np.divide(left, counts, out=np.ones(squares.size), where=counts > 0)
        return FactorModel(loadings, np.maximum(noise, min_noise), self.channel)

    def posterior(self, values: Array, observed: Mask) -> tuple[Array, Array]:
        """Mean (n, q) and covariance (n, q, q) of every sample's factors, given its channels."""
        means, spread = self._posterior(values, observed)
        return means, np.ascontiguousarray(np.moveaxis(spread, 2, 0))

    def means(self, values: Array, observed: Mask) -> Array:
        """Expected factors (n, q) of every sample, given its channels."""
        return self._posterior(values, observed)[0]

    def _posterior(self, values: Array, observed: Mask) -> tuple[Array, Array]:
        seen = Patterns(observed)
        spread = seen.by_sample(self._spread(seen.rows))
        return apply(spread, (values @ self._weights).T).T, spread

    def complete(self, values: Array, observed: Mask) -> Array:
        """Give ``values`` with what is expected in place of what is missing."""
        expected = self.means(values, observed) @ self.loadings.T
        return np.where(observed[:, self.channel], values, expected)

    def variances(self, spread: Array) -> Array:
        """Variance of every feature where it is missing, from the factors' covariance: (n, D)."""
        common = spread.reshape(len(spread), -1) @ _products(self.loadings).T
        return np.asarray(common + self.noise)

    def per_channel(self, per_feature: Array) -> Array:
        """Sum the rows of features over each channel's features."""
        order = np.argsort(self.channel, kind="stable")
        first = np.searchsorted(self.channel[order], np.arange(self.channel.max() + 1))
        return np.asarray(np.add.reduceat(per_feature[order], first, axis=0))

    @property
    def _weights(self) -> Array:
        """How much each feature says about each factor: (n_features, q)."""
        return self.loadings / self.noise[:, None]

    def _spread(self, patterns: Array) -> Array:
        """Covariance of the factors for every pattern of channels: (q, q, n_patterns)."""
        n_factors = self.loadings.shape[1]
        rows, columns = pairs(n_factors)
        products = self.loadings[:, rows] * self._weights[:, columns]
        known = self.per_channel(products).T @ patterns.T
        known[rows == columns] += 1.0
        return inverses(unfolded(known, n_factors))


def _start(values: Array, observed: Mask, n_factors: int) -> Array:
    """Leading directions of the samples with zeros in the gaps, by the smaller side."""
    n, n_features = values.shape
    if n_factors == 0:
        return np.zeros((n_features, 0))
    share = float(observed[:, observed.any(axis=0)].mean())
    if n >= n_features:
        return _leading(values.T @ values, n_factors, n, share)
    _, vectors = _largest(values @ values.T, n_factors)
    return _scaled(values.T @ vectors, n, share)


def _leading(products: Array, n_factors: int, n: float, share: float) -> Array:
    """Leading directions of samples, from their products."""
    if n_factors == 0:
        return np.zeros((len(products), 0))
    sizes, vectors = _largest(products, n_factors)
    return _scaled(vectors * np.sqrt(np.maximum(sizes, 0.0)), n, share)


def _largest(gram: Array, n_factors: int) -> tuple[Array, Array]:
    """Largest eigenvalues, ascending, with their vectors."""
    n = len(gram)
    if n >= _ITERATE_FROM and n_factors <= n // 20:
        # Any start does that no vector is orthogonal to; the same one each time.
        start = np.cos(np.arange(n, dtype=np.float64))
        with contextlib.suppress(ArpackError):
            sizes, vectors = eigsh(
                gram, n_factors, which="LA", v0=start, ncv=4 * n_factors, tol=1e-11
            )
            return sizes, vectors
    sizes, vectors = scipy.linalg.eigh(gram, subset_by_index=[n - n_factors, n - 1])
    return sizes, vectors


def _scaled(loadings: Array, n: float, share: float) -> Array:
    """Directions from the largest on, whose largest loading is positive.

    Zeros in the gaps make them short, by the share of gaps in channels that are known.
    """
    loadings = loadings[:, ::-1]
    largest = np.abs(loadings).argmax(axis=0)
    signs = np.where(loadings[largest, np.arange(loadings.shape[1])] < 0, -1.0, 1.0)
    return np.asarray(loadings * signs / np.sqrt(n * max(share, 0.05)))


def _products(rows: Array) -> Array:
    return (rows[:, :, None] * rows[:, None, :]).reshape(len(rows), -1)
