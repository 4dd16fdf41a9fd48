"""Embeddings of channels, reduced channel by channel before features are ranked."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.decomposition import PCA
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from idfsmec._validation import Constraints, checks_parameters, integer
from idfsmec.prediction.imputer import IncompleteTransformer
from idfsmec.table.columns import channel_columns, join_column


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

    @checks_parameters
    def fit(self, X: Any, y: object = None) -> Self:
        """Learn the components of each channel.

        Parameters
        ----------
        X : FeatureTable or array-like of shape (n_samples, n_features)
            A channel of which a column is NaN is missing in that sample.
        y : ignored

        Returns
        -------
        self : ChannelPCA
        """
        values = self._check_samples(X, reset=True, fewest=2)
        names = getattr(self, "feature_names_in_", None)
        self.channel_names_, self._columns = channel_columns(self.channels, values.shape[1], names)
        self.components_: list[PCA | None] = []
        for own in self._columns:
            observed = values[~np.isnan(values[:, own]).any(axis=1)][:, own]
            n_components = min(self.n_components, *observed.shape)
            pca = PCA(n_components, svd_solver="full") if len(observed) else None
            self.components_.append(pca if pca is None else pca.fit(observed))
        return self

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the components of each channel, NaN where the channel is missing."""
        values = self._check_samples(X)
        parts = [np.empty((len(values), 0))]
        for own, pca in zip(self._columns, self.components_, strict=True):
            if pca is not None:
                observed = ~np.isnan(values[:, own]).any(axis=1)
                part = np.full((len(values), pca.n_components_), np.nan)
                if observed.any():
                    part[observed] = pca.transform(values[observed][:, own])
                parts.append(part)
        return np.hstack(parts)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray:
        """Name the components, such as ``F3__pc1``."""
        check_is_fitted(self, "components_")
        _check_feature_names_in(self, input_features)
        pairs = zip(self.channel_names_, self.components_, strict=True)
        counts = [(name, 0 if pca is None else pca.n_components_) for name, pca in pairs]
        columns = [join_column(name, f"pc{k + 1}") for name, n in counts for k in range(n)]
        return np.array(columns, dtype=object)
