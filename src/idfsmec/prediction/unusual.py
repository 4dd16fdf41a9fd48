"""Tell whether a subject is like the training data of a model.

Two deviations count: how far a subject's factors are from the centre of those in training, and
how far its values are from what its factors say. Each is in units of what is usual for training
subjects under an imputer that was learned without them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.model_selection import GroupKFold

from idfsmec.prediction.imputer import ChannelImputer
from idfsmec.solver.scaling import FAR
from idfsmec.table.columns import split_column

Array = NDArray[np.float64]

#: Subjects beyond the distance 1, within which so many are expected, are called unusual.
USUAL_SHARE = 0.99
#: Subjects beyond this distance get no probability.
FAR_OUTSIDE = 3.0
_N_FOLDS, _TAIL = 5, 0.7
# Factors of the signal by their decimal exponent, if the training data are in the second unit.
_UNITS = {
    -6: "volts instead of microvolts",
    -3: "millivolts instead of microvolts",
    3: "microvolts instead of millivolts",
    6: "microvolts instead of volts",
}
# A channel is in another unit if a quarter of its features say so, and four values at least do.
_LEAST_AGREEING, _LEAST_VALUES = 1 / 4, 4


def learn_reference(imputer: ChannelImputer, X: pd.DataFrame, subjects: Any) -> dict[str, Any]:
    """Describe where training subjects lie, for :func:`measure_distance`."""
    subjects = np.asarray(subjects)
    n_folds = min(_N_FOLDS, np.unique(subjects).size)
    rows = np.arange(len(X))
    folds = GroupKFold(n_folds).split(X, groups=subjects) if n_folds > 1 else [(rows, rows)]
    deviations = []
    for train, test in folds:
        fitted = ChannelImputer().fit(X.iloc[train])
        located = _locate(fitted.factors(X.iloc[train]))
        for subject in np.unique(subjects[test]):
            own = X.iloc[test[subjects[test] == subject]]
            deviations.append(_deviations(fitted, own, located))
    units = np.maximum(np.median(deviations, axis=0), 1e-12)
    distances = np.sort((np.array(deviations) / units).max(axis=1))
    # Few subjects say little about the last per cent: the upper third says how tails fall off
    # (Weissman, Journal of the American Statistical Association 73, 812-815, 1978).
    start = np.quantile(distances, _TAIL)
    fall = np.log(np.maximum(distances / start, 1)).mean() / (1 - _TAIL)
    limit = float(start * ((1 - _TAIL) / (1 - USUAL_SHARE)) ** fall)
    return {
        **_locate(imputer.factors(X)),
        "units": (limit * units).tolist(),
        "distances": (distances / limit).tolist(),
    }


def measure_distance(
    imputer: ChannelImputer, X: pd.DataFrame, reference: Mapping[str, Any]
) -> float:
    """Return how unusual the samples of one subject are; 1 is the end of what is usual."""
    return float(np.max(_deviations(imputer, X, reference) / np.asarray(reference["units"])))


def _locate(factors: Array) -> dict[str, Any]:
    """Centre and precision of the training samples' factors."""
    covariance = np.atleast_2d(np.cov(factors, rowvar=False))
    floor = 1e-6 * max(float(np.trace(covariance)), 1e-12)
    precision = np.linalg.pinv(covariance + floor * np.eye(len(covariance)), hermitian=True)
    return {"centre": factors.mean(axis=0).tolist(), "precision": precision.tolist()}


def _deviations(
    imputer: ChannelImputer, X: pd.DataFrame, reference: Mapping[str, Any]
) -> tuple[float, float]:
    """Distance of a subject's factors from the centre, and of its values from its factors."""
    factors = imputer.factors(X)
    away = factors - np.asarray(reference["centre"])
    squares = np.einsum("nq,qr,nr->n", away, np.asarray(reference["precision"]), away)
    expected = factors @ imputer.model_.loadings.T
    # Beyond 6 standard deviations, where predictions see no difference, logarithms count.
    unit = np.where(imputer.scale_ > 0, imputer.scale_, np.inf)
    with np.errstate(over="ignore"):
        values = (X.to_numpy(dtype=np.float64) - imputer.mean_) / unit
    size = np.minimum(np.abs(values), 1e300)
    beyond = np.log1p(np.maximum(size - FAR, 0.0))
    residuals = np.sign(values) * (np.minimum(size, FAR) + beyond) - expected
    variances = np.nanmean(residuals**2 / imputer.model_.noise)
    return float(np.sqrt(np.maximum(np.median(squares), 0.0))), float(np.sqrt(variances))


def find_other_unit(imputer: ChannelImputer, X: pd.DataFrame) -> tuple[str, list[str]]:
    """Name the unit that some channels of a subject seem to be in, and these channels.

    Signals in volts in place of microvolts are a million times too small: so are their amplitudes,
    powers are by the square of that, and logarithms are shifted.
    """
    typical = np.sqrt(imputer.mean_**2 + imputer.scale_**2)
    with np.errstate(divide="ignore", over="ignore"):
        sizes = np.log10(X.abs().median().to_numpy() / np.where(typical > 0, typical, np.nan))
        shifts = (X.median().to_numpy() - imputer.mean_) / np.log(10)
    channels, features = zip(*(split_column(str(column)) for column in X.columns), strict=True)
    exponents = pd.Series(np.where(np.abs(sizes) > 9, sizes / 2, sizes))  # squares, by their size
    for row, feature in enumerate(features):
        if "ratio" in feature:
            continue
        if feature.startswith(("log_variance", "log_ap")):
            exponents[row] = shifts[row] / 2
        elif feature.startswith("de_"):
            exponents[row] = shifts[row]
        elif feature == "variance" or feature.startswith("ap_"):
            exponents[row] = sizes[row] / 2
    for exponent, unit in _UNITS.items():
        agrees = ((exponents - exponent).abs() < 1).groupby(np.array(channels), sort=False)
        named = agrees.mean()[agrees.mean() >= _LEAST_AGREEING].index
        if agrees.sum()[named].sum() >= _LEAST_VALUES:
            return unit, [str(name) for name in named]
    return "", []
