"""Transformers of incomplete samples: imputation by factors, principal components of channels.

:class:`ChannelImputer` learns a factor model ``x = L z + noise`` of all channels together from
incomplete samples. The classifier and the regressor stand on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.linalg import LinearOperator, svds
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from idfsmec._parallel import one_blas_thread
from idfsmec._validation import CheckedEstimator, Constraints, integer, number, validate_params
from idfsmec.selection.base import check_new_samples
from idfsmec.solver.scaling import FAR, Scaling
from idfsmec.table.columns import (
    SEPARATOR,
    channel_codes,
    channel_columns,
    join_column,
    observed_channels,
)
from idfsmec.table.feature_table import refuse_table

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]


class IncompleteTransformer(OneToOneFeatureMixin, TransformerMixin, CheckedEstimator):
    """A transformer that takes NaN, and gives as many columns unless it names others."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _check_samples(self, X: ArrayLike, reset: bool = False, min_samples: int = 1) -> Array:
        if not reset:
            return check_new_samples(self, X)
        refuse_table(X)
        checks = {"ensure_all_finite": "allow-nan", "ensure_min_samples": min_samples}
        return np.asarray(validate_data(self, X, dtype=np.float64, **checks))


@dataclass(eq=False, repr=False)
class ChannelImputer(IncompleteTransformer):
    """Impute missing channels of samples from the channels that were recorded.

    This is factor analysis of all channels together, learned from incomplete samples: a few
    factors are shared by all channels, and every feature has its own noise. A missing value
    becomes its expectation given all observed channels of the sample.

    Parameters
    ----------
    channels : array-like of shape (n_features,), optional
        Label per feature: features of a channel are missing together. By default the part of the
        column name before the last ``"__"``; if the columns have no such names, every feature is a
        channel of its own.
    n_factors : int, default=5
        Number of factors; never more than half of the samples or of the features that vary. 0
        imputes the mean.
    ridge : float, default=1.0
        Penalty on the squared loadings: the larger, the closer to the mean are imputed values.
    min_noise : float, default=0.02
        The least share of a feature's variance that the factors leave unexplained.
    max_iter : int, default=25
        Rounds of expectation-maximisation, which is deterministic.

    Attributes
    ----------
    mean_, scale_ : ndarray of shape (n_features,)
        Mean and standard deviation over observed values; 0 where there are none, and the latter
        for constant features.
    model_ : FactorModel
        ``loadings`` and ``noise`` variance of the standardised features.
    n_factors_ : int
        Factors in use.
    channel_names_ : ndarray of shape (n_channels,)
        In order of first appearance.
    n_iter_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only if X has string column names.

    Notes
    -----
    A channel some of whose features are NaN at a sample counts as missing there: its
    other features are not used, but stay unchanged in the output. Values more than 6 standard
    deviations from the mean count as 6 away, and stay too.

    A sample without any channel gets the mean, and so does a feature that is related to no other.
    A constant feature gets its constant. A feature never seen in training gets 0.

    Examples
    --------
    >>> import numpy as np
    >>> from idfsmec import ChannelImputer
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 1)) + 0.1 * rng.normal(size=(200, 4))
    >>> X[rng.random(200) < 0.3, :2] = np.nan  # the first channel fell off
    >>> imputer = ChannelImputer(["F3", "F3", "F4", "F4"]).fit(X)
    >>> new = [[np.nan, np.nan, 2.0, 2.0]]
    >>> imputer.transform(new).round()
    array([[2., 2., 2., 2.]])
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "channels": ["array-like", None],
        "n_factors": [integer(0)],
        "ridge": [number(0, closed="left")],
        "min_noise": [number(0, 1)],
        "max_iter": [integer(1)],
    }

    channels: ArrayLike | None = None
    _: KW_ONLY
    n_factors: int = 5
    ridge: float = 1.0
    min_noise: float = 0.02
    max_iter: int = 25

    @validate_params
    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Learn the factors.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN where a channel is missing.
        y : None
            Not used.

        Returns
        -------
        self : ChannelImputer
        """
        checked = self._check_samples(X, reset=True)
        names, channels = getattr(self, "feature_names_in_", None), self.channels
        if channels is None and (names is None or not all(SEPARATOR in name for name in names)):
            channels = np.arange(checked.shape[1])
        self.channel_names_, columns = channel_columns(channels, checked.shape[1], names)
        with one_blas_thread():
            self.model_ = self._learn(checked, columns)
        scaling = self.model_.scaling
        self.mean_ = scaling.mean
        self.scale_ = np.where(scaling.constant, 0.0, scaling.unit)
        self.n_factors_ = self.model_.loadings.shape[1]
        self.n_iter_ = int(self.max_iter)
        return self

    def _learn(self, X: Array, columns: Sequence[Indices]) -> FactorModel:
        """Learn by expectation-maximisation."""
        n, n_features = X.shape
        unknown = np.empty((n_features, 0)), np.full(n_features, 0.5)
        model = FactorModel(columns, Scaling.learn(X), *unknown)
        values, observed = model.standardise(X)
        channel = channel_codes(columns)
        squares = np.einsum("nd,nd->d", values, values)
        counts = observed.sum(axis=0)[channel]
        n_factors = min(self.n_factors, n // 2, int(np.count_nonzero(squares)) // 2)
        model = replace(model, loadings=_leading_directions(values, observed, n_factors))
        weights = observed.T.astype(np.float64)
        for _ in range(self.max_iter):
            means, covariances = model.posterior(values, observed)
            # Expected products of factors, summed over the samples that have each channel ...
            moments = covariances + means[:, :, None] * means[:, None, :]
            grams = weights @ moments.reshape(n, -1)
            grams = grams.reshape(len(weights), n_factors, n_factors)[channel]
            # ... and of features and factors: each feature is a ridge regression on the factors.
            toward = values.T @ means
            penalty = (
                self.ridge * model.noise + 1e-9
            )  # a channel that no sample has must stay solvable
            system = grams + penalty[:, None, None] * np.eye(n_factors)
            loadings = np.asarray(np.linalg.solve(system, toward[:, :, None])[:, :, 0], np.float64)
            left = squares - np.einsum("dq,dq->d", toward + penalty[:, None] * loadings, loadings)
            noise = np.divide(left, counts, out=np.ones(n_features), where=counts > 0)
            model = replace(model, loadings=loadings, noise=np.maximum(noise, self.min_noise))
        return model

    def transform(self, X: ArrayLike) -> Array:
        """Replace NaN by its expectation; observed values stay unchanged.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        checked = self._check_samples(X)
        values, observed = self.model_.standardise(checked)
        loadings = self.model_.loadings * self.scale_[:, None]
        factors = self.model_.posterior(values, observed)[0]
        # A table may be large: no more copies.
        imputed = np.matmul(factors, loadings.T, out=values)
        imputed += self.mean_
        np.copyto(imputed, checked, where=np.isfinite(checked))
        return imputed

    def factors(self, X: ArrayLike) -> Array:
        """Posterior means of every sample's factors: ``(n_samples, n_factors_)``."""
        values, observed = self.model_.standardise(self._check_samples(X))
        return self.model_.posterior(values, observed)[0]


@dataclass(eq=False, repr=False)
class ChannelPCA(IncompleteTransformer):
    """Reduce the columns of each channel to their first principal components.

    For embeddings of a pretrained model, which have hundreds of columns per channel. Components
    are learned from the samples that have the channel. Put it in a pipeline, so that they are
    learned from the training part of each fold.

    Parameters
    ----------
    channels : array-like of shape (n_features,), optional
        Label per column, as in :class:`~idfsmec.IDFSMEC`.
    n_components : int, default=16
        Components per channel; fewer where a channel has fewer columns or samples.

    Attributes
    ----------
    components_ : list of PCA
        The fitted PCA of each channel; None for a channel that no sample has.
    channel_names_ : ndarray of shape (n_channels,)
        In order of first appearance.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only if X has string column names.

    Examples
    --------
    >>> import pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> names = [f"{channel}__e{i}" for channel in ("F3", "O2") for i in range(50)]
    >>> X = pd.DataFrame(rng.normal(size=(80, 100)), columns=names)
    >>> X.loc[:9, names[:50]] = np.nan  # F3 fell off
    >>> reduced = ChannelPCA(n_components=2).set_output(transform="pandas").fit_transform(X)
    >>> reduced.isna().sum().to_dict()
    {'F3__pc1': 10, 'F3__pc2': 10, 'O2__pc1': 0, 'O2__pc2': 0}
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "channels": ["array-like", None],
        "n_components": [integer(1)],
    }

    channels: ArrayLike | None = None
    _: KW_ONLY
    n_components: int = 16

    @validate_params
    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Learn the components of each channel.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            A channel of which a column is NaN is missing in that sample.
        y : ignored

        Returns
        -------
        self : ChannelPCA
        """
        from sklearn.decomposition import PCA  # slow to import, and only used here

        values = self._check_samples(X, reset=True, min_samples=2)
        names = getattr(self, "feature_names_in_", None)
        self.channel_names_, self._columns = channel_columns(self.channels, values.shape[1], names)
        self.components_: list[PCA | None] = []
        for columns in self._columns:
            observed = values[~np.isnan(values[:, columns]).any(axis=1)][:, columns]
            n_components = min(self.n_components, *observed.shape)
            pca = PCA(n_components, svd_solver="full").fit(observed) if len(observed) else None
            self.components_.append(pca)
        return self

    def transform(self, X: ArrayLike) -> Array:
        """Return the components of each channel, NaN where the channel is missing."""
        values = self._check_samples(X)
        parts = [np.empty((len(values), 0))]
        for columns, pca in zip(self._columns, self.components_, strict=True):
            if pca is not None:
                observed = ~np.isnan(values[:, columns]).any(axis=1)
                part = np.full((len(values), pca.n_components_), np.nan)
                if observed.any():
                    part[observed] = pca.transform(values[observed][:, columns])
                parts.append(part)
        return np.hstack(parts)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:
        """Name the components, such as ``F3__pc1``."""
        check_is_fitted(self, "components_")
        _check_feature_names_in(self, input_features)
        pairs = zip(self.channel_names_, self.components_, strict=True)
        counts = [(name, 0 if pca is None else pca.n_components_) for name, pca in pairs]
        columns = [join_column(name, f"pc{k + 1}") for name, n in counts for k in range(n)]
        return np.array(columns, dtype=object)


@dataclass(frozen=True)
class FactorModel:
    """Standardised features as loadings times factors plus a noise of their own."""

    columns: Sequence[Indices]  # of each channel
    scaling: Scaling
    loadings: Array  # (n_features, n_factors), of independent factors of variance 1
    noise: Array  # (n_features,), variance that the factors do not explain
    usable: Mask | bool = True  # channels that carry information; the others count as missing

    def standardise(self, X: Array) -> tuple[Array, Mask]:
        """Standardise samples to within 6, 0 where a channel is missing; say who has which."""
        observed = observed_channels(X, self.columns) & self.usable
        values = self.scaling.apply(X)
        values[(~observed)[:, channel_codes(self.columns)]] = 0.0
        return np.clip(values, -FAR, FAR, out=values), observed

    def posterior(self, values: Array, observed: Mask) -> tuple[Array, Array]:
        """Mean (n, q) and covariance (n, q, q) of every sample's factors, given its channels."""
        n_factors = self.loadings.shape[1]
        weights = self.loadings / self.noise[:, None]
        products = (self.loadings[:, :, None] * weights[:, None, :]).reshape(len(weights), -1)
        # Samples with the same channels share a covariance.
        packed = np.packbits(observed, axis=1)
        _, first, pattern = np.unique(
            packed.view(f"V{packed.shape[1]}").ravel(), return_index=True, return_inverse=True
        )
        precision = observed[first].astype(np.float64) @ self.per_channel(products)
        precision = precision.reshape(len(first), n_factors, n_factors) + np.eye(n_factors)
        covariances = np.asarray(np.linalg.inv(precision), np.float64)[pattern]
        return np.einsum("nqr,nr->nq", covariances, values @ weights), covariances

    def impute(self, X: Array) -> Array:
        """Standardise samples; replace the features of missing channels by their expectation."""
        values, observed = self.standardise(X)
        expected = self.posterior(values, observed)[0] @ self.loadings.T
        return np.where(observed[:, channel_codes(self.columns)], values, expected)

    def per_channel(self, per_feature: Array) -> Array:
        """Sum the rows of features over each channel's features."""
        return np.stack([per_feature[columns].sum(axis=0) for columns in self.columns])


def _leading_directions(values: Array, observed: Mask, n_factors: int) -> Array:
    """Start from the principal directions of the samples with 0 where channels are missing.

    The largest comes first, and the largest loading of each is positive. The zeros make
    directions short, by the share of channels that is missing.
    """
    if n_factors == 0:
        return np.zeros((values.shape[1], 0))
    start = np.cos(np.arange(min(values.shape), dtype=np.float64))  # the same each time
    # As an operator: of an array svds would make a copy.
    dot, back = values.dot, values.T.dot
    products = LinearOperator(
        values.shape, matvec=dot, rmatvec=back, matmat=dot, rmatmat=back, dtype=values.dtype
    )
    _, sizes, directions = svds(products, n_factors, v0=start)
    loadings = (directions.T * sizes)[:, np.argsort(-sizes)]
    largest = np.abs(loadings).argmax(axis=0)
    signs = np.where(loadings[largest, np.arange(n_factors)] < 0, -1.0, 1.0)
    share = float(observed[:, observed.any(axis=0)].mean())
    return np.asarray(loadings * signs / np.sqrt(len(values) * max(share, 0.05)))
