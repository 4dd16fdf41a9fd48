"""The engine behind all of IDFS-MEC: a table with channels in, solved channels and weights out.

Selector, path, search, stability, classifier and regressor differ in what they ask of it and in
what they keep. Samples are seen once, to sum up their moments; a fold's moments are those of all
samples minus those held out, so all folds and all redundancy weights are one batch of problems.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_X_y
from sklearn.utils.validation import _check_sample_weight

from idfsmec._columns import channel_codes, channel_columns
from idfsmec._jobs import available_threads, one_blas_thread
from idfsmec._parameters import Constraints, StrOptions, integer, number
from idfsmec.selection._base import encode_labels, ranks, refuse_infinite
from idfsmec.solver import (
    ChannelFits,
    Options,
    TableMoments,
    channel_weights,
    fold_moments,
    solve_channels,
    table_moments,
    total_objective,
)

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

#: What the parameters may be that say how channels are posed and solved.
OPTIONS: Constraints = {
    "standardize": ["boolean"],
    "missing_correction": [StrOptions({"ipw"}), None],
    "channel_weighting": ["boolean"],
    "missing_indicator": ["boolean"],
    "tol": [number(0)],
    "max_iter": [integer(1)],
    "device": [str, None],
}
#: What a redundancy weight and an evenness of channel weights may be.
LAM, GAMMA = number(0, closed="left"), number(1)


@dataclass(frozen=True)
class Engine:
    """The channels of one table, ready to be solved for any folds and redundancy weights.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
        Checked; NaN where a channel is missing.
    target : ndarray of shape (n_samples,)
        Classes 0 ... c - 1; the standardised score if ``n_classes`` is 1.
    n_classes : int
    channel_names : ndarray of shape (n_channels,)
        In order of first appearance.
    columns : list of integer arrays
        The columns of each channel.
    weights : ndarray of shape (n_samples,), optional
        Of the samples.
    options : Options
        How channels are posed and solved.
    channel_weighting : bool
        False weighs all channels alike.
    classes : ndarray of shape (n_classes,)
        The labels; empty for a score.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> engine = Engine.for_classes(X, y, channels=["acids"] * 6 + ["colours"] * 7)
    >>> halves = [np.arange(0, 178, 2), np.arange(1, 178, 2)]
    >>> fits = engine.solve(lams=[0.1, 1.0, 10.0], held_out=halves)
    >>> fits.weigh(gamma=2.0, fold=1, lam=0).scores.shape
    (13,)
    """

    X: Array = field(repr=False)
    target: NDArray = field(repr=False)
    n_classes: int
    channel_names: NDArray
    columns: list[Indices] = field(repr=False)
    weights: Array | None = field(default=None, repr=False)
    options: Options = field(default_factory=Options)
    channel_weighting: bool = True
    classes: NDArray = field(default_factory=lambda: np.empty(0))

    @classmethod
    def for_classes(
        cls,
        X: Array,
        y: ArrayLike,
        channels: ArrayLike | None = None,
        feature_names: Sequence[str] | None = None,
        *,
        weights: Array | None = None,
        channel_weighting: bool = True,
        **options: Any,
    ) -> Engine:
        """Set up for class labels.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            Checked by the caller; NaN where a channel is missing.
        y : array-like of shape (n_samples,)
            Class labels.
        channels : array-like of shape (n_features,), optional
            Label per feature; by default from the feature names.
        feature_names, weights, channel_weighting, **options
            As above; the options are those of :func:`pose`.
        """
        codes, classes = encode_labels(y)
        names, columns = channel_columns(channels, X.shape[1], feature_names)
        posed = pose(**options)
        return cls(
            X, codes, classes.size, names, columns, weights, posed, channel_weighting, classes
        )

    @classmethod
    def for_target(
        cls,
        X: Array,
        target: Array,
        channels: ArrayLike | None = None,
        feature_names: Sequence[str] | None = None,
        **options: Any,
    ) -> Engine:
        """Set up for a standardised score; parameters as of :meth:`for_classes`."""
        names, columns = channel_columns(channels, X.shape[1], feature_names)
        return cls(X, target, 1, names, columns, options=pose(**options))

    @cached_property
    def channel_of(self) -> Indices:
        """Number of the channel of every feature."""
        return channel_codes(self.columns)

    def moments(self, held_out: Sequence[Indices] | None = None) -> list[TableMoments]:
        """Sum up the samples: of every fold those not held out, or once all of them."""
        source = (self.X, self.target, self.n_classes, self.columns)
        if held_out is None:
            return [table_moments(*source, self.weights)]
        return fold_moments(*source, held_out, self.weights)

    def solve(self, lams: Sequence[float], held_out: Sequence[Indices] | None = None) -> Fits:
        """Solve all channels of every fold at every redundancy weight, in one batch.

        Parameters
        ----------
        lams : sequence of float
            Redundancy weights.
        held_out : sequence of integer arrays, optional
            Samples left out by each fold; by default one fold, with all samples. Every fold must
            have all classes.
        """
        with one_blas_thread():
            moments = self.moments(held_out)
            solved = solve_channels(moments, [float(lam) for lam in lams], self.options)
        return Fits(self, moments, solved)


def table_engine(
    owner: str,
    X: ArrayLike,
    y: ArrayLike,
    channels: ArrayLike | None,
    sample_weight: ArrayLike | None = None,
    **options: Any,
) -> Engine:
    """Check a table of class labels and set up its engine, for what is not an estimator's fit.

    Parameters
    ----------
    owner : str
        Who asks, for the messages.
    X, y, channels, sample_weight
        As given by a user.
    **options
        ``channel_weighting`` and those of :func:`pose`.
    """
    names = getattr(X, "columns", None)
    checked, labels = check_X_y(
        X, y, dtype=np.float64, ensure_all_finite=False, ensure_min_samples=2, estimator=owner
    )
    refuse_infinite(owner, checked, np.arange(checked.shape[1]) if names is None else names)
    weights = check_weights(sample_weight, checked)
    return Engine.for_classes(checked, labels, channels, names, weights=weights, **options)


def check_weights(sample_weight: ArrayLike | None, X: Array) -> Array | None:
    """Give weights of samples as non-negative numbers; None stays None."""
    if sample_weight is None:
        return None
    return _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)


def pose(
    *,
    standardize: bool = True,
    missing_correction: str | None = "ipw",
    missing_indicator: bool = True,
    tol: float = 1e-6,
    max_iter: int = 10_000,
    device: str | None = None,
) -> Options:
    """Turn parameters of :class:`~idfsmec.IDFSMEC` into the solver's options."""
    return Options(
        standardize=bool(standardize),
        inverse_probability=missing_correction == "ipw",
        missing_indicator=bool(missing_indicator),
        tol=float(tol),
        max_iter=int(max_iter),
        device=device,
        n_threads=available_threads(),
    )


@dataclass(frozen=True)
class Weighing:
    """Channel weights, feature scores and the features from best to worst."""

    channel_weights: Array
    scores: Array
    order: Indices

    @property
    def ranking(self) -> Indices:
        """Rank of every feature, 1 = best."""
        return ranks(self.order)


@dataclass(frozen=True)
class Fits:
    """Solved channels of every fold at every redundancy weight.

    Attributes
    ----------
    engine : Engine
    moments : list of TableMoments
        One for each fold.
    channels : ChannelFits
        What was found, first by fold, then by redundancy weight.
    """

    engine: Engine
    moments: list[TableMoments] = field(repr=False)
    channels: ChannelFits = field(repr=False)

    def weigh(self, gamma: float, *, fold: int = 0, lam: int = 0) -> Weighing:
        """Weigh channels and order features.

        Features are ordered by score (channel weight times feature weight). Those with score zero
        follow by what adding them alone to their channel's model would take off the loss,
        weighted by the channel; those that were left out come last. Ties stay in column order.

        Parameters
        ----------
        gamma : float
            How evenly channels are weighted.
        fold, lam : int
            Places of the fold and of the redundancy weight.
        """
        objectives, gains = self.channels.objectives[fold, lam], self.channels.gains[fold, lam]
        usable = np.isfinite(objectives)
        alpha = np.zeros(objectives.size)
        alpha[usable] = channel_weights(
            objectives[usable], gamma, weighting=self.engine.channel_weighting
        )
        per_feature = alpha[self.engine.channel_of]
        scores = per_feature * self.channels.feature_weights[fold, lam]
        after_support = np.where(gains < 0, -1.0, per_feature * gains)
        # lexsort takes its last key first and is stable.
        return Weighing(alpha, scores, np.lexsort((-after_support, -scores)))

    def usable(self, fold: int = 0) -> NDArray[np.bool_]:
        """Which channels carry something, shape (n_channels,)."""
        return np.isfinite(self.channels.objectives[fold, 0])

    def history(self, gamma: float) -> Array:
        """Weighted sum over the channels' losses after each iteration, of the first fold."""
        course = total_objective(
            self.channels.history[:, self.usable()],
            gamma,
            weighting=self.engine.channel_weighting,
        )
        # Every channel's own loss never rises; this only removes rounding of the sum.
        return np.minimum.accumulate(course)

    def warn(self, stacklevel: int = 5) -> None:
        """Name channels that carry nothing and those that are not solved.

        Parameters
        ----------
        stacklevel : int
            As of ``warnings.warn``; the default points at who called an estimator's ``fit``.

        Raises
        ------
        ValueError
            No channel of some fold carries anything.
        """
        self._warn_of_unusable(stacklevel)
        self._warn_of_unsolved(stacklevel)

    def _warn_of_unusable(self, stacklevel: int) -> None:
        names, n_folds = self.engine.channel_names, len(self.moments)
        found: dict[tuple[int, str], int] = {}
        for unusable in self.channels.unusable:
            if len(unusable) == names.size:
                said = "; ".join(f"{names[v]} ({why})" for v, why in sorted(unusable.items()))
                raise ValueError(f"No channel carries information: {said}.")
            for one in unusable.items():
                found[one] = found.get(one, 0) + 1
        if found:
            said = "; ".join(
                f"{names[v]} ({why}{f', in {count} of {n_folds} folds' if n_folds > 1 else ''})"
                for (v, why), count in sorted(found.items())
            )
            warnings.warn(
                f"Channels that carry nothing get weight 0 and rank last: {said}.",
                UserWarning,
                stacklevel=stacklevel,
            )

    def _warn_of_unsolved(self, stacklevel: int) -> None:
        names, options = self.engine.channel_names, self.engine.options
        residuals = self.channels.kkt_residuals.max(axis=(0, 1))
        slow = np.flatnonzero(residuals > options.tol)
        if slow.size:
            leading = ", ".join(str(names[v]) for v in slow[:10])
            warnings.warn(
                f"{slow.size} of {names.size} channels did not reach tol={options.tol} in "
                f"{options.max_iter} iterations ({leading}{', ...' if slow.size > 10 else ''}; "
                f"worst residual {residuals.max():.1e}). Raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=stacklevel,
            )
