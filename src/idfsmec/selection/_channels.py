"""Which features belong to which channel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

SEPARATOR = "__"


def channel_columns(
    channels: ArrayLike | None, n_features: int, feature_names: Sequence[str] | None
) -> tuple[NDArray, list[NDArray[np.intp]]]:
    """Group columns by channel, channels in order of first appearance.

    Parameters
    ----------
    channels : array-like of shape (n_features,) or None
        Label per feature. None: the part of the column name before the last ``"__"``; without
        such names, all features form one channel.
    n_features : int
    feature_names : sequence of str or None

    Returns
    -------
    names : ndarray of shape (n_channels,)
    columns : list of integer arrays

    Examples
    --------
    >>> names, columns = channel_columns(None, 3, ["Fp1__mean", "Fp2__mean", "Fp1__hoc"])
    >>> names.tolist(), [own.tolist() for own in columns]
    (['Fp1', 'Fp2'], [[0, 2], [1]])
    """
    if channels is None:
        labels = _labels_from_names(n_features, feature_names)
    else:
        labels = np.asarray(channels)
        if labels.shape != (n_features,):
            raise ValueError(
                f"channels must give one label for each of the {n_features} features, "
                f"but has shape {labels.shape}."
            )
    names, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    order = np.argsort(first)
    columns = [np.flatnonzero(codes == code) for code in order]
    return names[order], columns


def _labels_from_names(n_features: int, feature_names: Sequence[str] | None) -> NDArray:
    if feature_names is not None and all(SEPARATOR in str(name) for name in feature_names):
        return np.array([str(name).rpartition(SEPARATOR)[0] for name in feature_names])
    return np.full(n_features, "all features")
