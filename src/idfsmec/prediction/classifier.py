"""IDFSMECClassifier: classes of incomplete samples, from the channels that are there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedGroupKFold
from sklearn.utils.class_weight import compute_sample_weight

from idfsmec._jobs import one_blas_thread
from idfsmec._parameters import Constraints, StrOptions, checks_parameters
from idfsmec.prediction._votes import STRENGTHS, ChannelVotes
from idfsmec.selection.idfsmec.engine import Engine, Fits

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

#: Strengths tried by default; a complete sample has norm 1 on average.
COSTS = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)


class IDFSMECClassifier(ClassifierMixin, ChannelVotes):
    """Classify samples in which channels are missing, without filling them.

    The channels a sample has add up their votes; missing ones say nothing. A vote is linear in
    the channel's features and in what is left of them once that which the sample's channels have
    in common is taken out: a few factors, learned within classes, with the gaps integrated out,
    so that every pattern of gaps has its own exact answer. All votes are learned together by
    logistic regression on the samples as they are, gaps included, and :class:`IDFSMEC` decides
    how freely each feature may be used: the penalty on a feature's coefficient falls with its
    score.

    Parameters
    ----------
    channels : array-like of shape (n_features,), optional
        Label per feature, as in :class:`IDFSMEC`.
    lam, gamma : float
        Of :class:`IDFSMEC`.
    power : float, default=0.25
        How much the scores decide: features are scaled by ``score ** power``. 0 trusts all
        features alike, large values only the leading ones.
    n_factors : int, default=3
        Number of factors that channels have in common within classes; never more than a quarter
        of the features or the samples. 0: channels vote by their features alone.
    C : float or sequence of float, default=(0.01, 0.1, 1, 10, 100, 1000)
        Inverse strength of the penalty, in units where a complete sample has norm 1 on average.
        Of several, inner folds choose the one with the smallest log loss.
    cv : int, default=5
        Number of inner folds; fewer where a class has fewer subjects.
    class_weight : dict, "balanced" or None
        As in ``LogisticRegression``.
    standardize, missing_correction, tol, max_iter, device
        Of :class:`IDFSMEC`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1 or n_classes, n_features)
        Of the features as given, for samples without a gap: the decision is
        ``(x - centre_) @ coef_.T + intercept_``. For two classes, in favour of ``classes_[1]``.
    centre_ : ndarray of shape (n_features,)
        The mean of the classes' means, where a feature speaks for no class.
    intercept_ : ndarray of shape (1 or n_classes,)
        What is said before any channel has voted.
    class_prior_ : ndarray of shape (n_classes,)
        Share of each class in training (after ``class_weight``): the answer for a sample without
        any channel.
    C_ : float
        The strength in use.
    scores_, ranking_, channel_names_, channel_weights_, feature_weights_, objective_
        As of :class:`IDFSMEC` on the same samples.
    objective_history_, kkt_residuals_, n_iter_
        As of :class:`IDFSMEC`.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only if X has string column names.

    Notes
    -----
    ``predict_proba`` is the logistic function of ``decision_function`` (softmax for more than two
    classes). The fewer channels a sample has, the fewer votes add up, and the closer the
    probabilities stay to what the intercept says.

    Examples
    --------
    >>> import numpy as np
    >>> from idfsmec.prediction import IDFSMECClassifier
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
        "C": STRENGTHS,
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    def __init__(
        self,
        channels: ArrayLike | None = None,
        *,
        lam: float = 0.01,
        gamma: float = 1.1,
        power: float = 0.25,
        n_factors: int = 3,
        C: float | Sequence[float] = COSTS,
        cv: int = 5,
        class_weight: dict | str | None = None,
        standardize: bool = True,
        missing_correction: str | None = "ipw",
        tol: float = 1e-6,
        max_iter: int = 10_000,
        device: str | None = None,
    ) -> None:
        self.channels = channels
        self.lam = lam
        self.gamma = gamma
        self.power = power
        self.n_factors = n_factors
        self.C = C
        self.cv = cv
        self.class_weight = class_weight
        self.standardize = standardize
        self.missing_correction = missing_correction
        self.tol = tol
        self.max_iter = max_iter
        self.device = device

    @checks_parameters
    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> Self:
        """Learn the votes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN where a channel is missing.
        y : array-like of shape (n_samples,)
            Class labels.
        groups : array-like of shape (n_samples,), optional
            Subject of every sample; inner folds keep subjects together.

        Returns
        -------
        self : IDFSMECClassifier
        """
        engine = self._engine(X, y, groups)
        with one_blas_thread():
            fits = engine.solve([self.lam])
            fits.warn()
            weighing = self._hold(fits)
            self.scores_, self.ranking_ = weighing.scores, weighing.ranking
            self.C_ = self._choose(self.C, engine, groups)
            self._learn(fits)
        return self

    def _inner_folds(self, engine: Engine, subjects: NDArray) -> list[tuple[Indices, Indices]]:
        per_class = [np.unique(subjects[engine.target == k]).size for k in range(engine.n_classes)]
        n_folds = min(self.cv, *per_class)
        if n_folds < 2:
            return []
        return list(StratifiedGroupKFold(n_folds).split(engine.X, engine.target, subjects))

    def _design(self, targets: NDArray) -> tuple[Array, Array]:
        n_classes = self.classes_.size
        return np.eye(n_classes)[targets], np.full(n_classes, 1.0 / n_classes)

    def _losses(
        self, seen: Array, train: Indices, test: Indices, engine: Engine, strengths: list[float]
    ) -> Array:
        """Log loss on the held-out samples."""
        codes, labels = engine.target, np.arange(engine.n_classes)
        weights = self._sample_weight(codes)
        models = _logistic_path(seen[train], codes[train], weights[train], strengths)
        return np.array(
            [
                log_loss(
                    codes[test],
                    _probabilities(seen[test] @ coef.T + intercept),
                    sample_weight=weights[test],
                    labels=labels,
                    normalize=False,
                )
                for coef, intercept in models
            ]
        )

    def _sample_weight(self, codes: Indices) -> Array:
        return compute_sample_weight(self.class_weight, self.classes_[codes])

    def _learn(self, fits: Fits) -> None:
        codes, X = fits.engine.target, fits.engine.X
        self._view = self._learn_view(fits, 0, np.arange(codes.size))
        weights = self._sample_weight(codes)
        seen = self._view.of(X)
        ((self._coef, self.intercept_),) = _logistic_path(seen, codes, weights, [self.C_])
        self.coef_ = self._view.for_complete_samples(self._coef)
        self.centre_ = self._view.centre
        share = np.bincount(codes, weights, minlength=self.classes_.size)
        self.class_prior_ = share / share.sum()

    def decision_function(self, X: ArrayLike) -> Array:
        """Sum of the votes of the channels that each sample has.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN where a channel is missing. A sample without any channel that carried something
            in training gets the logarithm of the classes' shares in training, with a warning.

        Returns
        -------
        ndarray of shape (n_samples,) for two classes, else (n_samples, n_classes)
        """
        checked = self._check(X)
        said = self._view.of(checked) @ self._coef.T + self.intercept_
        empty = self._view.without_any(checked, "the classes' shares in training")
        if empty.any():
            prior = np.log(np.maximum(self.class_prior_, 1e-300))
            said[empty] = prior[1] - prior[0] if self.classes_.size == 2 else prior
        return said[:, 0] if self.classes_.size == 2 else said

    def channel_votes(self, X: ArrayLike) -> Array:
        """What each channel adds to the decision; NaN where it is missing.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_channels) for two classes, else (..., n_classes)
            Together with ``intercept_`` the observed ones sum to :meth:`decision_function`.
        """
        votes = self._view.votes(self._check(X), self._coef)
        return votes[:, :, 0] if self.classes_.size == 2 else votes

    def predict_proba(self, X: ArrayLike) -> Array:
        """Probability of each class, shape (n_samples, n_classes)."""
        said = self.decision_function(X)
        return _probabilities(said[:, None] if said.ndim == 1 else said)

    def predict(self, X: ArrayLike) -> NDArray:
        """Most probable class of each sample, shape (n_samples,)."""
        said = self.decision_function(X)
        codes = (said > 0).astype(np.intp) if said.ndim == 1 else said.argmax(axis=1)
        return self.classes_[codes]


def _probabilities(said: Array) -> Array:
    if said.shape[1] == 1:
        return np.column_stack([expit(-said[:, 0]), expit(said[:, 0])])
    return softmax(said, axis=1)


def _logistic_path(
    X: Array, codes: Indices, weights: Array, strengths: Sequence[float]
) -> list[tuple[Array, Array]]:
    """Coefficients (1 or c, D) and intercepts of penalised logistic regression.

    The penalty does not see rotations, so with more features than samples the fit runs in the
    space that the samples span.
    """
    turn = None
    if X.shape[1] > X.shape[0]:
        left, stretch, turn = np.linalg.svd(X, full_matrices=False)
        X = left * stretch
    found: list[tuple[Array, Array]] = []
    model: Any = LogisticRegression(max_iter=1000, tol=1e-5, warm_start=True)
    for strength in strengths:
        model.set_params(C=strength).fit(X, codes, sample_weight=weights)
        coef = model.coef_ if turn is None else model.coef_ @ turn
        found.append((coef.copy(), model.intercept_.copy()))
    return found
