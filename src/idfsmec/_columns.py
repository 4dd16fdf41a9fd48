"""Names of columns, ``<channel>__<feature>``: the one place that joins, splits and groups them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from idfsmec.errors import InputError

SEPARATOR = "__"


def join_column(channel: object, feature: object) -> str:
    """Name the column of a channel's feature.

    Examples
    --------
    >>> join_column("Fp1", "ap_alpha")
    'Fp1__ap_alpha'
    """
    return f"{channel}{SEPARATOR}{feature}"


def join_columns(channels: Iterable[object], features: Iterable[object]) -> list[str]:
    """Name the columns of channels and features side by side.

    Examples
    --------
    >>> join_columns(["Fp1", "Cz"], ["mean", "nsi"])
    ['Fp1__mean', 'Cz__nsi']
    """
    return [join_column(*pair) for pair in zip(channels, features, strict=True)]


def split_column(column: str) -> tuple[str, str]:
    """Split a column name at its last ``__`` into channel and feature.

    Examples
    --------
    >>> split_column("Fp1__ap_alpha")
    ('Fp1', 'ap_alpha')
    >>> split_column("left__Fp1__mean")
    ('left__Fp1', 'mean')
    """
    channel, separator, feature = column.rpartition(SEPARATOR)
    if not (separator and channel and feature):
        raise InputError(
            f"Column {column!r} is not of the form '<channel>{SEPARATOR}<feature>' "
            f"(such as 'Fp1{SEPARATOR}ap_alpha'): rename it, or drop it if it is no feature."
        )
    return channel, feature


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


def channel_codes(columns: Sequence[NDArray[np.intp]]) -> NDArray[np.intp]:
    """Number of the channel of every feature, from the columns of every channel.

    Examples
    --------
    >>> channel_codes([np.array([0, 2]), np.array([1])])
    array([0, 1, 0])
    """
    codes = np.empty(sum(own.size for own in columns), dtype=np.intp)
    for place, own in enumerate(columns):
        codes[own] = place
    return codes


def observed_channels(
    X: NDArray[np.float64], columns: Sequence[NDArray[np.intp]]
) -> NDArray[np.bool_]:
    """Which channels each sample has: none of their features is NaN.

    Returns
    -------
    ndarray of bool, shape (n_samples, n_channels)

    Examples
    --------
    >>> X = np.array([[1.0, 2.0, np.nan], [np.nan, 2.0, 3.0]])
    >>> observed_channels(X, [np.array([0, 1]), np.array([2])])
    array([[ True, False],
           [False,  True]])
    """
    there = ~np.isnan(X)
    return np.stack([there[:, own].all(axis=1) for own in columns], axis=1)
