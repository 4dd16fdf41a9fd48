"""Penalised models of incomplete samples that trust each feature by its score."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from idfsmec.prediction._evidence import Evidence
from idfsmec.prediction._factors import CommonFactors
from idfsmec.prediction._observed import Units
from idfsmec.selection.idfsmec._weighing import weigh
from idfsmec.selection.idfsmec.estimator import IDFSMEC, PreparedTable
from idfsmec.solver import ChannelFits, TableMoments, fold_moments, solve_channels

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

# Share of the mean score that every feature of a usable channel is trusted with: a feature that
# repeats another has score 0, yet it stands in when the other's channel is missing.
_FLOOR = 0.02


class PenalisedVotes(BaseEstimator):
    """What the classifier and the regressor share: votes of channels, learned under a penalty.

    A subclass says how the inner folds are made (:meth:`_inner_folds`), what of the target shifts
    the features (:meth:`_design`), and what a strength of the penalty costs on held-out samples
    (:meth:`_losses`).
    """

    def __init__(
        self,
        channels: ArrayLike | None,
        lam: float,
        gamma: float,
        power: float,
        n_factors: int,
        cv: int,
        standardize: bool,
        missing_correction: str | None,
        tol: float,
        max_iter: int,
        device: str | None,
    ) -> None:
        self.channels = channels
        self.lam = lam
        self.gamma = gamma
        self.power = power
        self.n_factors = n_factors
        self.cv = cv
        self.standardize = standardize
        self.missing_correction = missing_correction
        self.tol = tol
        self.max_iter = max_iter
        self.device = device

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _idfsmec(self) -> IDFSMEC:
        """The selector with the parameters that both have."""
        shared = set(IDFSMEC().get_params()) & set(self.get_params())
        return IDFSMEC(**{name: getattr(self, name) for name in shared})

    def _inner_folds(
        self, table: PreparedTable, subjects: NDArray
    ) -> list[tuple[Indices, Indices]]:
        raise NotImplementedError

    def _design(self, targets: NDArray) -> tuple[Array, Array]:
        raise NotImplementedError

    def _losses(
        self,
        seen: Array,
        train: Indices,
        test: Indices,
        table: PreparedTable,
        strengths: list[float],
    ) -> Array:
        raise NotImplementedError

    def _choose(
        self, strengths: list[float], table: PreparedTable, groups: ArrayLike | None
    ) -> float:
        """The strength with the smallest loss on subjects that were held out.

        Of several without folds to choose by, the middle one.
        """
        subjects = np.arange(table.codes.size) if groups is None else np.asarray(groups)
        check_consistent_length(table.X, subjects)
        folds = self._inner_folds(table, subjects) if len(strengths) > 1 else []
        if not folds:
            return strengths[len(strengths) // 2]
        held_out = [test for _, test in folds]
        moments = fold_moments(table.X, table.codes, table.n_classes, table.columns, held_out)
        fits = solve_channels(moments, [float(self.lam)], table.options)
        loss = np.zeros(len(strengths))
        for fold, (train, test) in enumerate(folds):
            evidence = self._evidence(table, moments[fold], fits, fold, train)
            loss += self._losses(evidence.of(table.X), train, test, table, strengths)
        return strengths[int(np.argmin(loss))]

    def _evidence(
        self,
        table: PreparedTable,
        moments: TableMoments,
        fits: ChannelFits,
        fold: int,
        train: Indices,
    ) -> Evidence:
        """How to see samples, learned from a training part."""
        units = Units.of(moments, table.columns)
        usable = np.isfinite(fits.objectives[fold, 0])
        X = table.X[train]
        design, neutral = self._design(table.codes[train])
        common = CommonFactors.learn(
            units.standardised(X),
            units.observed(X) & usable,
            table.columns,
            design,
            neutral,
            int(self.n_factors),
        )
        scale = feature_scales(fits, fold, table.columns, gamma=self.gamma, power=self.power)
        return Evidence.learn(X, units, usable, common, scale)

    def _check(self, X: ArrayLike) -> Array:
        check_is_fitted(self, "coef_")
        return validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=False)


def check_penalised(name: str, strengths: Any, power: Any, n_factors: Any, cv: Any) -> list[float]:
    """Check what the penalised estimators share; give the strengths to try.

    Examples
    --------
    >>> check_penalised("C", 2, power=0.5, n_factors=3, cv=5)
    [2.0]
    """
    several = [strengths] if isinstance(strengths, Real) else list(strengths)
    if not several or not all(isinstance(one, Real) and float(one) > 0 for one in several):
        raise ValueError(f"{name} must be a number > 0 or several of them, got {strengths!r}.")
    if not isinstance(power, Real) or not 0 <= float(power) < np.inf:
        raise ValueError(f"power must be a finite number >= 0, got {power!r}.")
    if not isinstance(n_factors, Integral) or n_factors < 0:
        raise ValueError(f"n_factors must be an integer >= 0, got {n_factors!r}.")
    if not isinstance(cv, Integral) or cv < 2:
        raise ValueError(f"cv must be an integer >= 2, got {cv!r}.")
    return [float(one) for one in several]


def feature_scales(
    fits: ChannelFits,
    fold: int,
    columns: Sequence[NDArray[np.intp]],
    *,
    gamma: float,
    power: float,
) -> Array:
    """How freely a penalised model may use each feature, from the features' scores.

    Parameters
    ----------
    fits : ChannelFits
        At one price of redundancy.
    fold : int
    columns : sequence of integer arrays
        The columns of each channel.
    gamma : float
        Of the channel weights.
    power : float
        0 trusts all features alike, large values only the leading ones.

    Returns
    -------
    ndarray of shape (n_features,)
        Of norm 1; 0 for constant features and in channels that carry nothing.
    """
    scores = weigh(
        fits.objectives[fold, 0],
        fits.feature_weights[fold, 0],
        fits.gains[fold, 0],
        columns,
        gamma=gamma,
        channel_weighting=True,
    ).scores
    scale = (scores / max(scores.mean(), 1e-300) + _FLOOR) ** power
    scale[fits.gains[fold, 0] < 0] = 0.0
    return scale / max(np.linalg.norm(scale), 1e-300)
