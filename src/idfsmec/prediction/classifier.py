"""IDFSMECClassifier: classes of incomplete samples, from the channels that are there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.base import ClassifierMixin
from sklearn.model_selection import StratifiedGroupKFold
from sklearn.utils.class_weight import compute_sample_weight

from idfsmec._groups import warn_of_split_people
from idfsmec._jobs import one_blas_thread
from idfsmec._parameters import Constraints, StrOptions, checks_parameters
from idfsmec.prediction._linear import ALPHAS, CompletedLinear, Folds, View, person_codes

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

# Log odds per unit of the linear model, which is to say -1 or 1: without people to learn it from,
# and the bounds within which it is learned.
_SLOPE, _SLOPES = 2.0, (0.1, 20.0)


class IDFSMECClassifier(ClassifierMixin, CompletedLinear):
    """Classify samples in which channels are missing.

    Missing channels are completed from those that are there (:class:`ChannelImputer`), and one
    linear model decides on the completed sample. It is an average of ridge regressions on the
    classes which see the features, scaled by their scores of :class:`IDFSMEC`, and the factors
    that channels have in common, more or less of each, with more or less penalty: the better a
    candidate predicts people who were held out, the more it counts.

    Parameters
    ----------
    channels : array-like of shape (n_features,), optional
        Label per feature, as in :class:`IDFSMEC`.
    lam, gamma : float
        Of :class:`IDFSMEC`. If you expect the effect in few channels, try 0.01 and 1.1: less is
        taken for redundant then, and good channels are trusted more.
    n_factors : int or "auto", default=5
        Of :class:`ChannelImputer`.
    alphas : sequence of float, default=(0.01, 0.03, 0.1, 0.3, 1, 3, 10)
        Penalties of the candidates, where a sample's squared norm is 1 on average.
    cv : int, default=5
        Number of inner folds; fewer where a class has fewer people. Without any, candidates count
        alike.
    class_weight : dict, "balanced" or None, default="balanced"
        As in ``LogisticRegression``. ``"balanced"``: each class is as probable as any other.
    tol, max_iter, device
        Of :class:`IDFSMEC`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1 or n_classes, n_features)
        Of the features as given: ``(x - centre_) @ coef_.T + intercept_`` is the decision on a
        sample without a gap. For two classes, in favour of ``classes_[1]``.
    centre_ : ndarray of shape (n_features,)
        The mean of the classes' means, where a feature speaks for no class.
    intercept_ : ndarray of shape (1 or n_classes,)
        Logarithm of ``class_prior_`` (for two classes, of their ratio): what is said before any
        channel has voted.
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
    Probabilities are calibrated on people who were held out: the log odds grow with the linear
    model at the rate at which those were right. What is not known of a sample draws them towards
    ``class_prior_``, by the variance that the decision has because of the missing channels.

    Examples
    --------
    >>> import numpy as np
    >>> from idfsmec import IDFSMECClassifier
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["healthy", "depressed"], 50)
    >>> X = rng.normal(size=(100, 6)) + 2 * (y == "depressed")[:, None]
    >>> X[rng.random(100) < 0.4, :3] = np.nan
    >>> X[np.isfinite(X[:, 0]) & (rng.random(100) < 0.4), 3:] = np.nan
    >>> model = IDFSMECClassifier(["F3"] * 3 + ["F4"] * 3).fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2]) > 0.9
    True
    >>> model.channel_votes([[2.0, 2.0, 2.0, np.nan, np.nan, np.nan]]).shape
    (1, 2)
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    def __init__(
        self,
        channels: ArrayLike | None = None,
        *,
        lam: float = 1.0,
        gamma: float = 2.0,
        n_factors: int | str = 5,
        alphas: Sequence[float] = ALPHAS,
        cv: int = 5,
        class_weight: dict | str | None = "balanced",
        tol: float = 1e-6,
        max_iter: int = 10_000,
        device: str | None = None,
    ) -> None:
        self.channels = channels
        self.lam = lam
        self.gamma = gamma
        self.n_factors = n_factors
        self.alphas = alphas
        self.cv = cv
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.device = device

    @checks_parameters
    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> Self:
        """Learn to complete and to decide.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN where a channel is missing.
        y : array-like of shape (n_samples,)
            Class labels.
        groups : array-like of shape (n_samples,), optional
            Subject of every sample; inner folds keep subjects together. By default an index of X
            named "subject"; with neither, every sample is somebody else, and a warning says once
            that people may be split.

        Returns
        -------
        self : IDFSMECClassifier
        """
        engine = self._engine(X, y, groups)
        if engine.groups is None:
            warn_of_split_people(type(self).__name__, stacklevel=4)
        codes, n_classes = engine.target, engine.n_classes
        subjects = person_codes(engine)
        people = person_codes(engine, codes)
        class_of = np.zeros(people.max() + 1, dtype=np.intp)
        class_of[people] = codes
        weights = compute_sample_weight(self.class_weight, self.classes_[codes])
        of_people = compute_sample_weight(self.class_weight, self.classes_[class_of])
        prior = np.bincount(codes, weights, minlength=n_classes)
        self.class_prior_ = prior / prior.sum()
        wanted = np.where(codes[:, None] == np.arange(n_classes), 1.0, -1.0)
        if n_classes == 2:
            wanted = wanted[:, 1:]
        with one_blas_thread():
            fits = engine.solve([self.lam])
            fits.warn()
            weighing = self._hold(fits)
            self.scores_, self.ranking_ = weighing.scores, weighing.ranking
            folds = self._inner_folds(engine.X, codes, subjects)
            found = self._learn(fits, folds, people, wanted, weights, of_people)
            self.intercept_ = np.log(np.maximum(self.class_prior_, 1e-300))
            if n_classes == 2:
                self.intercept_ = np.diff(self.intercept_)
            self._coef *= self._calibrate(engine.X, found, people, class_of, of_people)
        self.centre_ = self._view.scaling.mean
        self.coef_ = self._coef.T / self._view.scaling.unit
        return self

    def _inner_folds(self, X: Array, codes: Indices, subjects: Indices) -> Folds:
        classes = range(self.classes_.size)
        n_folds = min(self.cv, *(np.unique(subjects[codes == k]).size for k in classes))
        if n_folds < 2:
            return []
        folds = StratifiedGroupKFold(n_folds).split(X, codes, subjects)
        # Subjects who have samples of several classes may take all of one class with them.
        return [one for one in folds if np.unique(codes[one[0]]).size == len(classes)]

    def _centre(self, X: Array, targets: NDArray, mean: Array) -> Array:
        parts = [X[targets == k] for k in range(self.classes_.size)]
        seen = np.array([np.sum(~np.isnan(part), axis=0) for part in parts])
        sums = np.array([np.nansum(part, axis=0) for part in parts])
        means = np.where(seen > 0, sums / np.maximum(seen, 1), mean)
        return np.asarray(means.mean(axis=0))

    def _calibrate(
        self,
        X: Array,
        found: list[tuple[View, Array, Indices]],
        people: Indices,
        class_of: Indices,
        of_people: Array,
    ) -> float:
        """Log odds per unit of the linear model: the most probable on held-out people.

        Every person counts once. As Platt does, one imagined person more of every class keeps
        probabilities away from 0 and 1.
        """
        if not found:
            return _SLOPE
        samples = np.concatenate([test for _, _, test in found])
        said = np.concatenate([view.complete(X[test]) @ coef for view, coef, test in found])
        unsure = np.concatenate([view.variance(X[test], coef) for view, coef, test in found])
        who = people[samples]
        n_classes, sizes = self.classes_.size, np.bincount(class_of)
        aim = np.eye(n_classes)[class_of]
        aim = ((aim + 1 / sizes[class_of, None]) / (1 + n_classes / sizes[class_of, None]))[who]
        weights = (of_people / np.maximum(np.bincount(who, minlength=of_people.size), 1))[who]

        def loss(log_slope: float) -> float:
            slope = np.exp(log_slope)
            told = self._odds(slope * said, slope**2 * unsure)
            return -float(weights @ np.sum(aim * log_softmax(told, axis=1), axis=1))

        best = minimize_scalar(loss, bounds=np.log(_SLOPES), method="bounded")
        return float(np.exp(best.x))

    def _odds(self, said: Array, variance: Array) -> Array:
        """Unnormalised log probabilities (n, n_classes) of votes, drawn to the prior."""
        told = self.intercept_ + said * _certainty(variance)
        return np.column_stack([np.zeros(len(told)), told]) if told.shape[1] == 1 else told

    def _decide(self, X: ArrayLike) -> Array:
        checked = self._check(X)
        self._view.without_any(checked, "the classes' shares in training")
        said = self._view.complete(checked) @ self._coef
        return self._odds(said, self._view.variance(checked, self._coef))

    def decision_function(self, X: ArrayLike) -> Array:
        """Logarithm of the odds, or of each class's probability up to a constant.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN where a channel is missing. A sample without any channel that carried something
            in training gets the classes' shares in training, with a warning.

        Returns
        -------
        ndarray of shape (n_samples,) for two classes, else (n_samples, n_classes)
        """
        odds = self._decide(X)
        return odds[:, 1] if self.classes_.size == 2 else odds

    def channel_votes(self, X: ArrayLike) -> Array:
        """What each channel adds to the decision; NaN where it is missing.

        A channel speaks for its own features and for those of missing channels as far as they
        were completed because of it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_channels) for two classes, else (..., n_classes)
            Together with ``intercept_`` the observed ones sum to :meth:`decision_function`.
        """
        checked = self._check(X)
        votes = self._view.votes(checked, self._coef)
        votes *= _certainty(self._view.variance(checked, self._coef))[:, None]
        return votes[:, :, 0] if self.classes_.size == 2 else votes

    def predict_proba(self, X: ArrayLike) -> Array:
        """Probability of each class, shape (n_samples, n_classes)."""
        return np.asarray(softmax(self._decide(X), axis=1))

    def predict(self, X: ArrayLike) -> NDArray:
        """Most probable class of each sample, shape (n_samples,)."""
        codes = self._decide(X).argmax(axis=1)
        return np.asarray(self.classes_[codes])


def _certainty(variance: Array) -> Array:
    """By what log odds shrink that have this variance, (n, 1), if a logistic is a probit."""
    c = variance.shape[1]
    # Decisions on c classes sum to a constant, so their differences vary by so much more.
    of_difference = variance.mean(axis=1, keepdims=True) * (2 * c / (c - 1) if c > 1 else 1.0)
    return np.asarray(1 / np.sqrt(1 + np.pi / 8 * of_difference))
