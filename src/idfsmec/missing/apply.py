"""Blank features where their channel is not observed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from idfsmec.errors import InputError
from idfsmec.table import FeatureTable


def mask_features(features: np.ndarray, observed: np.ndarray | pd.DataFrame) -> np.ndarray:
    """Set features to NaN where their channel is not observed.

    Parameters
    ----------
    features : ndarray of shape (n_samples, n_channels, n_features) or (n_samples, n_channels)
        Numbers per sample and channel.
    observed : array-like of shape (n_samples, n_channels), bool
        False where the channel is missing.

    Returns
    -------
    ndarray
        A new array of float64.

    Examples
    --------
    >>> mask_features(np.ones((1, 2, 2)), [[True, False]])
    array([[[ 1.,  1.],
            [nan, nan]]])
    """
    seen = np.asarray(observed, dtype=bool)
    values = np.array(features, dtype=float)
    if values.ndim not in (2, 3) or values.shape[:2] != seen.shape:
        raise InputError(
            f"features of shape {values.shape} do not go with observed of shape {seen.shape}: "
            "the first two axes are samples and channels"
        )
    values[~seen] = np.nan
    return values


def mask_table(table: FeatureTable, observed: np.ndarray | pd.DataFrame) -> FeatureTable:
    """Set a table's features to NaN where their channel is not observed.

    What is missing in the table stays missing.

    Parameters
    ----------
    table : FeatureTable
        The features.
    observed : DataFrame or ndarray of shape (n_samples, n_channels), bool
        A DataFrame's columns are channels; channels of the table that it does not have are left
        alone. An array's columns are ``table.channels``.

    Returns
    -------
    FeatureTable
        A new table.

    Examples
    --------
    >>> X = pd.DataFrame({"Fp1__mean": [1.0, 2.0], "Fp2__mean": [3.0, 4.0]})
    >>> table = FeatureTable(X, ["HC", "MDD"], ["a", "b"])
    >>> mask_table(table, pd.DataFrame({"Fp2": [True, False]})).X
             Fp1__mean  Fp2__mean
    subject
    a              1.0        3.0
    b              2.0        NaN
    """
    channels = table.channels
    if not isinstance(observed, pd.DataFrame):
        array = np.asarray(observed, dtype=bool)
        if array.ndim != 2 or array.shape[1] != len(channels):
            raise InputError(
                f"observed has the shape {array.shape}; the table has {len(table)} samples and "
                f"{len(channels)} channels"
            )
        observed = pd.DataFrame(array, columns=pd.Index(channels))
    if len(observed) != len(table):
        raise InputError(f"observed has {len(observed)} rows, the table {len(table)} samples")
    unknown = [name for name in observed.columns if name not in set(channels)]
    if unknown:
        raise InputError(f"the table has no channel {unknown[0]!r}")
    seen = observed.reindex(columns=channels, fill_value=True).to_numpy(bool)
    place = {channel: index for index, channel in enumerate(channels)}
    column_place = [place[channel] for channel in table.column_channels]
    values = table.X.to_numpy(dtype=float, copy=True)
    values[~seen[:, column_place]] = np.nan
    return replace(table, X=pd.DataFrame(values, columns=table.X.columns))
