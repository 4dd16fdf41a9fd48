"""One penalised linear model of completed samples: what classifier and regressor share.

The model is linear in a complete sample, and what is missing is replaced by what is expected, so a
sample with gaps gets the decision that is expected of it, and every channel its part in that.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from idfsmec._columns import observed_channels
from idfsmec._parameters import Constraints, SequenceOf, StrOptions, integer, number
from idfsmec.prediction.imputer import ChannelImputer, FactorModel, standardise_channels
from idfsmec.selection.idfsmec.channel_estimator import ChannelEstimator
from idfsmec.selection.idfsmec.engine import Engine
from idfsmec.selection.idfsmec.fits import Fits
from idfsmec.solver import Scaling

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]
Folds = list[tuple[Indices, Indices]]

#: Penalties tried by default, in units where a sample's squared norm is 1 on average.
ALPHAS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
# Shares of the variance that the factors are given beside the features.
_SHARES = (0.0, 0.25, 0.5, 0.75, 0.95)
# How much a feature is trusted: (score / mean score + floor) ** power. A feature that repeats
# another has score 0, yet it stands in when the other's channel is missing.
_FLOOR, _POWER = 0.02, 0.25
# A candidate that is worse by this share of the target's variance counts 1/e of the best one.
_TEMPERATURE = 0.05


@dataclass(frozen=True)
class View:
    """Samples as the linear model sees them, learned from a training part.

    Attributes
    ----------
    columns : sequence of integer arrays
        The columns of each channel.
    usable : ndarray of bool, shape (n_channels,)
        Channels that carried something; the others count as missing.
    scaling : Scaling
        Where each feature is neutral, and its unit.
    factors : FactorModel
    trust : ndarray of shape (n_features,)
        How freely each feature may be used; 0 for those that carry nothing.
    """

    columns: Sequence[Indices]
    usable: Mask
    scaling: Scaling
    factors: FactorModel
    trust: Array

    def seen(self, X: Array) -> tuple[Array, Mask]:
        """Distance from the neutral point, 0 where a channel is missing; who has which channel."""
        return standardise_channels(X, self.columns, self.scaling, self.usable)

    def complete(self, X: Array) -> Array:
        """What is expected of every feature, as distance from the neutral point."""
        return self.factors.impute(*self.seen(X))

    def candidates(
        self, X: Array, wanted: Array, weights: Array, alphas: Sequence[float]
    ) -> Array:
        """Coefficients (n_candidates, D, c) for every share of the factors and every penalty.

        The factors' means are linear in a completed sample, so a model of them and of the features
        is one of the features, with another penalty. One decomposition serves all.
        """
        Z, root = self.complete(X), np.sqrt(weights)[:, None]
        Z = (Z - np.average(Z, axis=0, weights=weights)) * root
        wanted = (wanted - np.average(wanted, axis=0, weights=weights)) * root
        model, q = self.factors, self.factors.loadings.shape[1]
        precise = model.loadings / model.noise[:, None]
        to_factors = precise @ np.linalg.inv(np.eye(q) + model.loadings.T @ precise)
        left, stretch, right = _thin_svd(Z * self.trust)
        means, toward = left.T @ (Z @ to_factors), left.T @ wanted
        own, common = np.sum(stretch**2), np.sum(means**2)
        found = []
        for share in _SHARES:
            b = share * weights.sum() / common if common > 0 else 0.0
            a = (1 - share * (b > 0)) * weights.sum() / own if own > 0 else 0.0
            for alpha in alphas:
                shrink = 1 / (a * stretch**2 + alpha)[:, None]
                inner = np.eye(q) + b * means.T @ (shrink * means)
                turn = np.linalg.solve(inner, b * means.T @ (shrink * toward))
                weighed = shrink * (toward - means @ turn)
                by_feature = a * self.trust[:, None] * (right.T @ (stretch[:, None] * weighed))
                found.append(by_feature + b * to_factors @ (means.T @ weighed))
        return np.array(found)

    def votes(self, X: Array, coef: Array) -> Array:
        """What each channel adds: (n_samples, n_channels, c); NaN where it is missing.

        A channel speaks for itself and for what is expected of missing channels because of it.
        """
        values, observed = self.seen(X)
        _, spread = self.factors.posterior(values, observed)
        _, toward = self._of_missing(observed, coef)
        precise = self.factors.loadings / self.factors.noise[:, None]
        parts = np.hstack([coef, precise])
        told = np.stack([values[:, own] @ parts[own] for own in self.columns], axis=1)
        own, evidence = np.split(told, [coef.shape[1]], axis=2)
        votes = own + np.einsum("ncq,nqr,nvr->nvc", toward, spread, evidence, optimize=True)
        votes[~observed_channels(X, self.columns)] = np.nan
        return np.asarray(votes)

    def variance(self, X: Array, coef: Array) -> Array:
        """How uncertain the decision is for what is missing: (n_samples, c)."""
        values, observed = self.seen(X)
        _, spread = self.factors.posterior(values, observed)
        noise, toward = self._of_missing(observed, coef)
        return noise + np.einsum("ncq,nqr,ncr->nc", toward, spread, toward, optimize=True)

    def _of_missing(self, observed: Mask, coef: Array) -> tuple[Array, Array]:
        """Of the decision on missing channels: noise (n, c), and its loadings (n, c, q)."""
        model, (_, c) = self.factors, coef.shape
        missing = (~observed).astype(np.float64)
        noise = missing @ model.per_channel(coef**2 * model.noise[:, None])
        products = (coef[:, :, None] * model.loadings[:, None, :]).reshape(len(coef), -1)
        toward = missing @ model.per_channel(products)
        return noise, toward.reshape(len(missing), c, model.loadings.shape[1])

    def without_any(self, X: Array, answer: str) -> None:
        """Warn of samples that have no usable channel, and say what they get."""
        empty = ~np.any(observed_channels(X, self.columns)[:, self.usable], axis=1)
        if empty.any():
            warnings.warn(
                f"{int(empty.sum())} of {empty.size} samples have no channel that carried "
                f"something in training; they get {answer}.",
                UserWarning,
                stacklevel=3,
            )


def _thin_svd(A: Array) -> tuple[Array, Array, Array]:
    """Singular value decomposition without zero values, by the smaller side."""
    wide = A.shape[0] < A.shape[1]
    sizes, vectors = scipy.linalg.eigh(A @ A.T if wide else A.T @ A)
    kept = sizes > 1e-12 * max(sizes[-1], 1e-300)
    stretch, vectors = np.sqrt(sizes[kept]), vectors[:, kept]
    if wide:
        return vectors, stretch, (vectors / stretch).T @ A
    return A @ (vectors / stretch), stretch, vectors.T


class CompletedLinear(ChannelEstimator):
    """What the classifier and the regressor share.

    A subclass says where a feature is neutral (:meth:`_centre`).
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "n_factors": [integer(0), StrOptions({"auto"})],
        "alphas": [SequenceOf(number(0))],
        "cv": [integer(2)],
    }

    n_factors: int | str
    alphas: Sequence[float]
    cv: int

    def _centre(self, X: Array, targets: NDArray, mean: Array) -> Array:
        raise NotImplementedError

    def _learn(
        self,
        fits: Fits,
        folds: Folds,
        people: Indices,
        wanted: Array,
        weights: Array,
        person_weights: Array,
    ) -> list[tuple[View, Array, Indices]]:
        """Learn the average of all candidates, weighed by their loss on held-out people.

        Parameters
        ----------
        fits : Fits
            Of all samples.
        folds : list of (train, test)
            People are not split.
        people : ndarray of shape (n_samples,)
            Whom each sample is of: 0, 1, ...
        wanted : ndarray of shape (n_samples, c)
            What the model is to say.
        weights, person_weights : ndarray
            Of the samples in the model and of the people in the loss.

        Returns
        -------
        list of (view, coef, test)
            The same average learned without each fold's held-out samples.
        """
        engine, n = fits.engine, len(people)
        # The samples of one person together weigh as one.
        weights = weights * (person_weights.size / weights.sum())
        off = np.zeros((n, len(_SHARES) * len(self.alphas) + 1, wanted.shape[1]))
        found = []
        without = engine.solve([self.lam], [test for _, test in folds]) if folds else fits
        for fold, (train, test) in enumerate(folds):
            view = self._see(without, fold, train)
            coefs = view.candidates(engine.X[train], wanted[train], weights[train], self.alphas)
            said = np.tensordot(view.complete(engine.X[test]), coefs, axes=(1, 1))
            off[test] = (np.average(wanted[train], axis=0, weights=weights[train]) - wanted[test])[
                :, None
            ]
            off[test, 1:] += said
            found.append((view, coefs, test))
        loss = np.square(_person_means(off, people)).sum(axis=2).T @ person_weights
        # The first is the loss of saying the mean.
        loss = loss[1:] / max(loss[0], 1e-300)
        share = np.exp(-(loss - loss.min()) / _TEMPERATURE)
        share /= share.sum()
        self._view = self._see(fits, 0, np.arange(n))
        coefs = self._view.candidates(engine.X, wanted, weights, self.alphas)
        self._coef = np.tensordot(share, coefs, axes=1)
        return [(view, np.tensordot(share, one, axes=1), test) for view, one, test in found]

    def _see(self, fits: Fits, fold: int, train: Indices) -> View:
        """How to see samples, learned from a training part."""
        engine, usable = fits.engine, fits.usable(fold)
        X = engine.X[train]
        X = np.where(usable[engine.channel_of], X, np.nan)
        completer = ChannelImputer(engine.channel_of, n_factors=self.n_factors).fit(X)
        centre = self._centre(X, engine.target[train], completer.mean_)
        unit = np.where(completer.scale_ > 0, completer.scale_, np.inf)
        scores = fits.weigh(self.gamma, fold=fold).scores
        trust = (scores / max(scores.mean(), 1e-300) + _FLOOR) ** _POWER
        trust[np.isinf(unit) | ~usable[engine.channel_of]] = 0.0
        scaling = Scaling(centre, unit)
        return View(engine.columns, usable, scaling, completer.model_, trust)

    def _check(self, X: ArrayLike) -> Array:
        check_is_fitted(self, "coef_")
        return np.asarray(
            validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=False)
        )


def person_codes(engine: Engine, *labels: NDArray) -> Indices:
    """Number whom each sample is of; samples with different labels are of different people."""
    n = len(engine.X)
    codes = np.unique(
        np.arange(n) if engine.groups is None else engine.groups, return_inverse=True
    )[1]
    for label in labels:
        codes = np.unique(np.stack([codes, label]), axis=1, return_inverse=True)[1].reshape(-1)
    return codes.astype(np.intp)


def _person_means(values: Array, people: Indices) -> Array:
    counts = np.bincount(people)
    sums = np.zeros((counts.size, *values.shape[1:]))
    np.add.at(sums, people, values)
    return sums / counts[:, None, None]
