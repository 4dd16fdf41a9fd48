"""The simplest fillers: the training mean, and the mean of the nearest neighbours."""

from __future__ import annotations

from sklearn.impute import KNNImputer, SimpleImputer


def training_mean() -> SimpleImputer:
    """Zero, which is the training mean of a standardised feature."""
    return SimpleImputer(strategy="constant", fill_value=0.0, keep_empty_features=True)


def neighbours() -> KNNImputer:
    """The mean of the ten training samples that are nearest in what both have."""
    return KNNImputer(n_neighbors=10, keep_empty_features=True)
