"""IDFSMECClassifier and IDFSMECRegressor: one linear model of imputed samples.

The model is linear in a complete sample, and missing channels are replaced by their expectation.
So an incomplete sample gets the decision expected of it, and every channel its part in that.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
import scipy.linalg
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold
from sklearn.utils.class_weight import compute_sample_weight

from idfsmec._parallel import one_blas_thread
from idfsmec._validation import (
    Constraints,
    SequenceOf,
    StrOptions,
    integer,
    number,
    validate_params,
    warn_without_groups,
)
from idfsmec.prediction.folds import Fold
from idfsmec.prediction.imputer import Array, ChannelImputer, FactorModel, Indices
from idfsmec.selection.base import RankingSelector, check_new_samples
from idfsmec.selection.idfsmec import ChannelEstimator, ChannelSamples, SolvedChannels
from idfsmec.solver.sums import number_by_value
from idfsmec.table.columns import observed_channels

# Shares of the variance that the factors are given beside the features.
_SHARES = (0.0, 0.25, 0.5, 0.75, 0.95)
# How much a feature is trusted: (score / mean score + floor) ** power. A feature that repeats
# another has score 0, yet it stands in when the other's channel is missing.
_FLOOR, _POWER = 0.02, 0.25
# A candidate that is worse by this share of the target's variance counts 1/e of the best one.
_TEMPERATURE = 0.05
# Log odds per unit of the linear model, whose targets are -1 and 1: without held-out subjects, and
# the bounds within which it is learned.
_SLOPE, _SLOPES = 2.0, (0.1, 20.0)


def _votes(factors: FactorModel, X: Array, coef: Array) -> tuple[Array, Array]:
    """Part of each channel in the decisions, (n, n_channels, c); NaN where it is missing.

    A channel contributes through its own features and through those imputed from it, so that a
    decision is the sum of its votes. Also return its variance because of what is missing (n, c).
    """
    values, observed = factors.standardise(X)
    _, covariances = factors.posterior(values, observed)
    # How the decision on missing channels depends on the factors.
    products = (coef[:, :, None] * factors.loadings[:, None, :]).reshape(len(coef), -1)
    toward = (~observed @ factors.per_channel(products)).reshape(len(X), coef.shape[1], -1)
    parts = np.hstack([coef, factors.loadings / factors.noise[:, None]])
    per_channel = np.stack(
        [values[:, columns] @ parts[columns] for columns in factors.columns], axis=1
    )
    votes, evidence = np.split(per_channel, [coef.shape[1]], axis=2)
    votes = votes + np.einsum("ncq,nqr,nvr->nvc", toward, covariances, evidence, optimize=True)
    votes[~observed_channels(X, factors.columns)] = np.nan
    noise = ~observed @ factors.per_channel(coef**2 * factors.noise[:, None])
    common = np.einsum("ncq,nqr,ncr->nc", toward, covariances, toward, optimize=True)
    return np.asarray(votes), noise + common


def _thin_svd(A: Array) -> tuple[Array, Array, Array]:
    """Singular value decomposition without zero values, by the smaller side."""
    wide = A.shape[0] < A.shape[1]
    sizes, vectors = scipy.linalg.eigh(A @ A.T if wide else A.T @ A)
    positive = sizes > 1e-12 * max(sizes[-1], 1e-300)
    stretch, vectors = np.sqrt(sizes[positive]), vectors[:, positive]
    if wide:
        return vectors, stretch, (vectors / stretch).T @ A
    return A @ (vectors / stretch), stretch, vectors.T


@dataclass(eq=False, repr=False)
class ImputedLinear(ChannelEstimator):
    """Learn one penalised linear model of imputed samples; base of classifier and regressor."""

    _parameter_constraints: ClassVar[Constraints] = {
        "n_factors": [integer(0)],
        "alphas": [SequenceOf(number(0))],
        "cv": [integer(2)],
    }

    channels: ArrayLike | None = None
    _: KW_ONLY
    lam: float = 1.0
    gamma: float = 2.0
    n_factors: int = 5
    # Penalties in units where a sample's squared norm is 1 on average.
    alphas: Sequence[float] = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
    cv: int = 5
    tol: float = 1e-6
    max_iter: int = 10_000
    device: str | None = None

    @validate_params
    def fit(
        self, X: ArrayLike, y: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> Self:
        """Learn to impute and to predict.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN where a channel is missing.
        y : array-like of shape (n_samples,)
            Class labels, or for a regressor the score.
        groups : array-like of shape (n_samples,), optional
            Subject of every sample; inner folds keep subjects together. By default an index of X
            named "subject"; with neither, every sample is a subject of its own, and a warning
            says so once.

        Returns
        -------
        self : object
        """
        samples = self.check_input(X, y, groups)
        if samples.groups is None:
            warn_without_groups(type(self).__name__, stacklevel=4)
        names = np.arange(len(samples.X)) if samples.groups is None else samples.groups
        with one_blas_thread():
            member = np.unique(names, return_inverse=True)[1]
            self._fit_checked(samples, number_by_value(samples.X, samples.columns, member))
        return self

    @abstractmethod
    def _fit_checked(self, samples: ChannelSamples, subjects: Indices) -> None:
        """Learn from checked samples and the number of each one's subject."""

    def _learn(
        self,
        samples: ChannelSamples,
        folds: list[Fold],
        subjects: Indices,
        targets: Array,
        weights: Array,
        subject_weights: Array,
    ) -> list[tuple[FactorModel, Array, Indices]]:
        """Learn the average of all candidates, weighted by their loss on held-out subjects.

        ``weights`` are of the samples in the model, ``subject_weights`` of the subjects in the
        loss. Returns, for each fold, the same average learned without its held-out samples.
        """
        fits = samples.solve([self.lam])
        fits.warn(stacklevel=6)
        weighing = self._hold(fits)
        self.scores_, self.ranking_ = weighing.scores, weighing.ranking
        # The samples of one subject together weigh as one.
        weights = weights * (subject_weights.size / weights.sum())
        n, n_candidates = len(subjects), len(_SHARES) * len(self.alphas) + 1
        errors = np.zeros((n, n_candidates, targets.shape[1]))
        learned = []
        without = samples.solve([self.lam], [test for _, test in folds]) if folds else fits
        for fold, (train, test) in enumerate(folds):
            factors, coefs = self._learn_candidates(without, fold, train, targets, weights)
            mean = np.average(targets[train], axis=0, weights=weights[train])
            errors[test] = (mean - targets[test])[:, None]
            errors[test, 1:] += np.tensordot(factors.impute(samples.X[test]), coefs, axes=(1, 1))
            learned.append((factors, coefs, test))
        by_subject = pd.DataFrame(errors.reshape(n, -1)).groupby(subjects).mean().to_numpy()
        squares = np.square(by_subject).reshape(-1, n_candidates, targets.shape[1]).sum(axis=2)
        loss = subject_weights @ squares
        # The first is the loss of the mean alone.
        loss = loss[1:] / max(loss[0], 1e-300)
        share = np.exp(-(loss - loss.min()) / _TEMPERATURE)
        share /= share.sum()
        self._factors, coefs = self._learn_candidates(fits, 0, np.arange(n), targets, weights)
        self._coef = np.tensordot(share, coefs, axes=1)
        self.centre_ = self._factors.scaling.mean
        return [(model, np.tensordot(share, part, axes=1), test) for model, part, test in learned]

    def _learn_candidates(
        self, fits: SolvedChannels, fold: int, train: Indices, targets: Array, weights: Array
    ) -> tuple[FactorModel, Array]:
        """Learn to impute and coefficients (n_candidates, D, c) from the training part of a fold.

        There is a candidate for every share of the factors and every penalty. The factors' means
        are linear in an imputed sample, so a model of them and of the features is one of the
        features, with another penalty. One decomposition serves all.
        """
        samples, usable = fits.samples, fits.usable(fold)
        X, targets, weights = samples.X[train], targets[train], weights[train]
        known = np.where(usable[samples.channel_of], X, np.nan)
        factors = ChannelImputer(samples.channel_of, n_factors=self.n_factors).fit(known).model_
        scaling = factors.scaling
        if samples.n_classes > 1:  # the mean of the classes' means speaks for none of them
            means = pd.DataFrame(known).groupby(samples.target[train]).mean().to_numpy()
            centre = np.where(np.isnan(means), scaling.mean, means).mean(axis=0)
            scaling = replace(scaling, mean=centre)
        factors = replace(factors, scaling=scaling, usable=usable)
        scores = fits.weigh(self.gamma, fold=fold).scores
        trust = (scores / max(scores.mean(), 1e-300) + _FLOOR) ** _POWER
        trust[scaling.constant | ~usable[samples.channel_of]] = 0.0
        Z, root = factors.impute(X), np.sqrt(weights)[:, None]
        Z = (Z - np.average(Z, axis=0, weights=weights)) * root
        targets = (targets - np.average(targets, axis=0, weights=weights)) * root
        q, precise = factors.loadings.shape[1], factors.loadings / factors.noise[:, None]
        to_factors = precise @ np.linalg.inv(np.eye(q) + factors.loadings.T @ precise)
        left, stretch, right = _thin_svd(Z * trust)
        means, toward = left.T @ (Z @ to_factors), left.T @ targets
        of_features, of_factors = np.sum(stretch**2), np.sum(means**2)
        coefs = []
        for share in _SHARES:
            b = share * weights.sum() / of_factors if of_factors > 0 else 0.0
            a = (1 - share * (b > 0)) * weights.sum() / of_features if of_features > 0 else 0.0
            for alpha in self.alphas:
                shrink = 1 / (a * stretch**2 + alpha)[:, None]
                inner = np.eye(q) + b * means.T @ (shrink * means)
                turn = np.linalg.solve(inner, b * means.T @ (shrink * toward))
                weighed = shrink * (toward - means @ turn)
                by_feature = a * trust[:, None] * (right.T @ (stretch[:, None] * weighed))
                coefs.append(by_feature + b * to_factors @ (means.T @ weighed))
        return factors, np.array(coefs)

    def _check(self, X: ArrayLike, answer: str = "") -> Array:
        """Check samples; warn of those that have no usable channel, and say what they get."""
        checked = check_new_samples(self, X, "coef_")
        observed = observed_channels(checked, self._factors.columns) & self._factors.usable
        empty = ~observed.any(axis=1)
        if answer and empty.any():
            warnings.warn(
                f"{int(empty.sum())} of {empty.size} samples have no channel with information in "
                f"training; they get {answer}.",
                UserWarning,
                stacklevel=3,
            )
        return checked


@dataclass(kw_only=True, eq=False, repr=False)
class IDFSMECClassifier(ClassifierMixin, ImputedLinear):
    """Classify samples in which channels are missing.

    Missing channels are imputed from the observed ones (:class:`ChannelImputer`), and one linear
    model classifies the imputed sample. It is an average of ridge regressions on the classes, with
    several penalties and several shares of two kinds of input: the features, scaled by their
    scores of :class:`IDFSMEC`, and the factors of the imputer. The better a candidate predicts
    held-out subjects, the larger is its weight.

    Parameters
    ----------
    channels : array-like of shape (n_features,), optional
        Label per feature, as in :class:`IDFSMEC`.
    lam, gamma : float
        Of :class:`IDFSMEC`. If you expect the effect in few channels, try 0.01 and 1.1.
    n_factors : int, default=5
        Of :class:`ChannelImputer`.
    alphas : sequence of float, default=(0.01, 0.03, 0.1, 0.3, 1, 3, 10)
        Penalties of the candidates, where a sample's squared norm is 1 on average.
    cv : int, default=5
        Number of inner folds; fewer where a class has fewer subjects. Without any, candidates have
        equal weights.
    class_weight : dict, "balanced" or None, default="balanced"
        As in ``LogisticRegression``. ``"balanced"``: each class is as probable as any other.
    tol, max_iter, device
        Of :class:`IDFSMEC`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1 or n_classes, n_features)
        Of the features as given: ``(x - centre_) @ coef_.T + intercept_`` is the decision on a
        complete sample. For two classes, in favour of ``classes_[1]``.
    centre_ : ndarray of shape (n_features,)
        The mean of the classes' means, where a feature favours no class.
    intercept_ : ndarray of shape (1 or n_classes,)
        Logarithm of ``class_prior_`` (for two classes, of their ratio): the decision without any
        channel.
    class_prior_ : ndarray of shape (n_classes,)
        Share of each class in training after ``class_weight``: the answer for a sample without
        any channel.
    scores_, ranking_, channel_names_, channel_weights_, feature_weights_, objective_
        As of :class:`IDFSMEC` on the same samples.
    held_out_loss_, objective_history_, kkt_residuals_, n_iter_
        As of :class:`IDFSMEC`.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only if X has string column names.

    Notes
    -----
    Probabilities are calibrated on held-out subjects: one slope turns the linear model
    into log odds and maximises the likelihood of those subjects. The variance of the decision due
    to missing channels shrinks the log odds towards ``class_prior_``.

    Examples
    --------
    >>> import numpy as np
    >>> from idfsmec import IDFSMECClassifier
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["healthy", "depressed"], 50)
    >>> X = rng.normal(size=(100, 6)) + 2 * (y == "depressed")[:, None]
    >>> X[rng.random(100) < 0.4, :3] = np.nan
    >>> X[np.isfinite(X[:, 0]) & (rng.random(100) < 0.4), 3:] = np.nan
    >>> subjects = np.arange(100)
    >>> model = IDFSMECClassifier(["F3"] * 3 + ["F4"] * 3)
    >>> model = model.fit(X[::2], y[::2], groups=subjects[::2])
    >>> model.score(X[1::2], y[1::2]) > 0.9
    True
    >>> model.channel_votes([[2.0, 2.0, 2.0, np.nan, np.nan, np.nan]]).shape
    (1, 2)
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    class_weight: dict[Any, float] | str | None = "balanced"

    def _fit_checked(self, samples: ChannelSamples, subjects: Indices) -> None:
        codes, n_classes = samples.target, samples.n_classes
        folds: list[Fold] = []
        sizes = (np.unique(subjects[codes == k]).size for k in range(n_classes))
        if (n_folds := min(self.cv, *sizes)) > 1:
            splits = StratifiedGroupKFold(n_folds).split(samples.X, codes, subjects)
            # Subjects who have samples of several classes may take all of one class with them.
            folds = [fold for fold in splits if np.unique(codes[fold[0]]).size == n_classes]
        # A subject with samples of two classes counts as two subjects.
        pairs, subjects = np.unique(subjects * n_classes + codes, return_inverse=True)
        class_of = pairs % n_classes
        weights = compute_sample_weight(self.class_weight, self.classes_[codes])
        subject_weights = compute_sample_weight(self.class_weight, self.classes_[class_of])
        prior = np.bincount(codes, weights, minlength=n_classes)
        self.class_prior_ = prior / prior.sum()
        self.intercept_ = np.log(np.maximum(self.class_prior_, 1e-300))
        targets = np.where(codes[:, None] == np.arange(n_classes), 1.0, -1.0)
        if n_classes == 2:
            targets, self.intercept_ = targets[:, 1:], np.diff(self.intercept_)
        learned = self._learn(samples, folds, subjects, targets, weights, subject_weights)
        self._coef *= self._calibrate(samples.X, learned, subjects, class_of, subject_weights)
        self.coef_ = self._coef.T / self._factors.scaling.unit

    def _calibrate(
        self,
        X: Array,
        learned: list[tuple[FactorModel, Array, Indices]],
        subjects: Indices,
        class_of: Indices,
        subject_weights: Array,
    ) -> float:
        """Log odds per unit of the linear model: the most probable on held-out subjects.

        Every subject counts once. As Platt does, one imagined subject more of every class keeps
        probabilities away from 0 and 1.
        """
        if not learned:
            return _SLOPE
        samples = np.concatenate([test for _, _, test in learned])
        parts = [_votes(factors, X[test], coef) for factors, coef, test in learned]
        votes, variances = (np.concatenate(part) for part in zip(*parts, strict=True))
        decisions = np.nansum(votes, axis=1)
        member = subjects[samples]
        n_classes, sizes = self.classes_.size, np.bincount(class_of)[class_of, None]
        aim = ((np.eye(n_classes)[class_of] + 1 / sizes) / (1 + n_classes / sizes))[member]
        counts = np.bincount(member, minlength=subject_weights.size)
        weights = (subject_weights / np.maximum(counts, 1))[member]

        def loss(log_slope: float) -> float:
            slope = np.exp(log_slope)
            odds = self._odds(slope * decisions, slope**2 * variances)
            return -float(weights @ np.sum(aim * log_softmax(odds, axis=1), axis=1))

        best = minimize_scalar(loss, bounds=np.log(_SLOPES), method="bounded")
        return float(np.exp(best.x))

    def _odds(self, decisions: Array, variances: Array) -> Array:
        """Unnormalised log probabilities (n, n_classes), drawn to the prior by the variance."""
        odds = self.intercept_ + decisions * _certainty(variances)
        return np.column_stack([np.zeros(len(odds)), odds]) if odds.shape[1] == 1 else odds

    def _decide(self, X: ArrayLike) -> Array:
        checked = self._check(X, "the classes' shares in training")
        votes, variances = _votes(self._factors, checked, self._coef)
        return self._odds(np.nansum(votes, axis=1), variances)

    def decision_function(self, X: ArrayLike) -> Array:
        """Logarithm of the odds, or of each class's probability up to a constant.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN where a channel is missing. A sample without any informative channel gets the
            classes' shares in training, with a warning.

        Returns
        -------
        ndarray of shape (n_samples,) for two classes, else (n_samples, n_classes)
        """
        odds = self._decide(X)
        return odds[:, 1] if self.classes_.size == 2 else odds

    def channel_votes(self, X: ArrayLike) -> Array:
        """Return the contribution of each channel to the decision; NaN where it is missing.

        A channel contributes through its own features, and through missing features that are
        imputed from it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_channels) for two classes, else (..., n_classes)
            Together with ``intercept_`` the observed ones sum to :meth:`decision_function`.
        """
        votes, variances = _votes(self._factors, self._check(X), self._coef)
        votes *= _certainty(variances)[:, None]
        return votes[:, :, 0] if self.classes_.size == 2 else votes

    def predict_proba(self, X: ArrayLike) -> Array:
        """Probability of each class, shape (n_samples, n_classes)."""
        return np.asarray(softmax(self._decide(X), axis=1))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Most probable class of each sample, shape (n_samples,)."""
        codes = self._decide(X).argmax(axis=1)
        return np.asarray(self.classes_[codes])


def _certainty(variance: Array) -> Array:
    """By what log odds shrink that have this variance, (n, 1), if a logistic is a probit."""
    c = variance.shape[1]
    # Decisions on c classes sum to a constant, so their differences vary by so much more.
    of_difference = variance.mean(axis=1, keepdims=True) * (2 * c / (c - 1) if c > 1 else 1.0)
    return np.asarray(1 / np.sqrt(1 + np.pi / 8 * of_difference))


@dataclass(kw_only=True, eq=False, repr=False)
class IDFSMECRegressor(RegressorMixin, ImputedLinear, RankingSelector):
    """:class:`IDFSMEC` for a continuous score, such as BDI or PHQ-9, and its prediction.

    The target of every channel's regression is the standardised score in place of the one-hot
    labels; all else is as in :class:`IDFSMEC`. Prediction is as in :class:`IDFSMECClassifier`:
    one linear model of imputed samples, the average of candidates by their squared error on
    held-out subjects.

    Parameters
    ----------
    n_features_to_select : int or float, default=20
        How many features ``transform`` keeps. The prediction uses all, by their scores.
    channels, lam, gamma, n_factors, alphas, cv, tol, max_iter, device
        As of :class:`IDFSMECClassifier`.

    Attributes
    ----------
    scores_, ranking_, support_, channel_names_, channel_weights_, feature_weights_, ...
        As of :class:`IDFSMEC`.
    coef_ : ndarray of shape (n_features,)
        Of the features as given: ``(x - centre_) @ coef_ + intercept_`` is the prediction for a
        complete sample.
    centre_ : ndarray of shape (n_features,)
        Mean of each feature.
    intercept_ : float
        Mean score in training: the answer for a sample without any channel.

    Examples
    --------
    >>> import numpy as np
    >>> from idfsmec import IDFSMECRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 6))
    >>> bdi = 15 + 8 * X[:, 4] + rng.normal(size=100)
    >>> X[rng.random(100) < 0.3, :3] = np.nan
    >>> model = IDFSMECRegressor(["F3"] * 3 + ["F4"] * 3, n_features_to_select=1)
    >>> model = model.fit(X, bdi, groups=np.arange(100))
    >>> model.get_support(indices=True), model.score(X, bdi) > 0.9
    (array([4]), True)
    """

    n_features_to_select: int | float = 20

    numeric = True

    def _fit_checked(self, samples: ChannelSamples, subjects: Indices) -> None:
        n_subjects = int(subjects.max()) + 1
        n_folds, ones = min(self.cv, n_subjects), np.ones(n_subjects)
        folds = list(GroupKFold(n_folds).split(samples.X, groups=subjects)) if n_folds > 1 else []
        self._learn(
            samples, folds, subjects, samples.target[:, None], np.ones(len(subjects)), ones
        )
        self._set_ranking(self.scores_, np.argsort(self.ranking_))
        self._coef *= samples.spread
        self.intercept_ = samples.centre
        self.coef_ = self._coef[:, 0] / self._factors.scaling.unit

    def predict(self, X: ArrayLike) -> Array:
        """Score of each sample from the channels it has.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN where a channel is missing. A sample without any channel gets the mean score, with
            a warning.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        checked = self._check(X, "the mean score of training")
        return np.asarray(self._factors.impute(checked) @ self._coef[:, 0] + self.intercept_)

    def channel_votes(self, X: ArrayLike) -> Array:
        """Return the contribution of each channel, (n_samples, n_channels); NaN where missing.

        See :meth:`IDFSMECClassifier.channel_votes`; together with ``intercept_`` the observed ones
        sum to :meth:`predict`.
        """
        return _votes(self._factors, self._check(X), self._coef)[0][:, :, 0]
