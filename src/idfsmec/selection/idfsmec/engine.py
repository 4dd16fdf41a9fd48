"""The engine behind all of IDFS-MEC: a table with channels in, solved channels and weights out.

Selector, path, search, stability, classifier and regressor differ in what they ask of it and in
what they keep. Samples are seen once, to be summed up by folds of people; all that follows needs
sums alone, and all folds and all redundancy weights are one batch of problems.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_X_y
from sklearn.utils.validation import _check_sample_weight

from idfsmec._columns import channel_codes, channel_columns
from idfsmec._groups import groups_of, name_folds
from idfsmec._jobs import Processes, one_blas_thread
from idfsmec._parameters import Constraints, StrOptions, integer, number
from idfsmec.selection._base import encode_labels, refuse_infinite
from idfsmec.selection.grid import training_samples
from idfsmec.selection.idfsmec.channel_loss import ChannelLosses, judge, n_deals, tables_at_a_time
from idfsmec.selection.idfsmec.fits import Fits
from idfsmec.solver import (
    Cells,
    HeldOut,
    Options,
    Seats,
    TableMoments,
    fold_moments,
    solve_channels,
    table_cells,
    table_moments,
)
from idfsmec.summaries.dealing import N_DEALS, N_FOLDS, value_folds

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

#: What the parameters may be that say how channels are posed and solved.
OPTIONS: Constraints = {
    "channel_loss": [StrOptions({"held-out", "in-sample"})],
    "lam_scale": [StrOptions({"samples", "paper"})],
    "standardize": ["boolean"],
    "missing_correction": [StrOptions({"ipw"}), None],
    "channel_weighting": ["boolean"],
    "missing_indicator": ["boolean"],
    "tol": [number(0)],
    "max_iter": [integer(1)],
    "device": [str, None],
}
#: Number of samples at which both scales of the redundancy weight agree.
LAM_SAMPLES = 1000.0
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
    channel_loss : {"held-out", "in-sample"}
        The loss that weighs channels.
    groups : ndarray of shape (n_samples,), optional
        Who each sample comes from.

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
    channel_loss: str = "held-out"
    groups: NDArray | None = field(default=None, repr=False)

    @classmethod
    def for_classes(
        cls,
        X: Array,
        y: ArrayLike,
        channels: ArrayLike | None = None,
        feature_names: Sequence[str] | None = None,
        *,
        weights: Array | None = None,
        groups: NDArray | None = None,
        channel_weighting: bool = True,
        channel_loss: str = "held-out",
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
        feature_names, weights, groups, channel_weighting, channel_loss, **options
            As above; the options are those of :func:`pose`.
        """
        codes, classes = encode_labels(y)
        names, columns = channel_columns(channels, X.shape[1], feature_names)
        posed = pose(**options)
        how = (weights, posed, channel_weighting, classes, channel_loss, groups)
        return cls(X, codes, classes.size, names, columns, *how)

    @classmethod
    def for_target(
        cls,
        X: Array,
        target: Array,
        channels: ArrayLike | None = None,
        feature_names: Sequence[str] | None = None,
        *,
        groups: NDArray | None = None,
        channel_loss: str = "held-out",
        **options: Any,
    ) -> Engine:
        """Set up for a standardised score; parameters as of :meth:`for_classes`."""
        names, columns = channel_columns(channels, X.shape[1], feature_names)
        posed = pose(**options)
        return cls(
            X, target, 1, names, columns, None, posed, channel_loss=channel_loss, groups=groups
        )

    @cached_property
    def channel_of(self) -> Indices:
        """Number of the channel of every feature."""
        return channel_codes(self.columns)

    @cached_property
    def _people(self) -> tuple[Indices, Indices] | None:
        """The folds of every sample by deal, and the number of whose it is; None without names."""
        if self.groups is None:
            return None
        names, member = np.unique(self.groups.astype(str), return_inverse=True)
        return name_folds(names, N_FOLDS, N_DEALS)[:, member], member

    def cells(self, samples: Indices | None = None) -> Cells:
        """Sum up samples, all by default, by folds of people."""
        own = np.arange(self.target.size) if samples is None else samples
        weights, total = None, float(own.size)
        if self.weights is not None:
            # Samples without weight do not exist.
            own = own[self.weights[own] > 0]
            weights = self.weights[own]
            total = float(weights.sum())
        target, deals = self.target[own], n_deals(total * self.X.shape[1])
        if self._people is None:
            X = self.X if own.size == self.target.size else self.X[own]
            fold = value_folds(X, self.columns, N_FOLDS, deals, weights=weights)
            people = None
        else:
            fold, people = self._people[0][:deals, own], self._people[1][own]
        score = target if self.n_classes == 1 else None
        codes = target if score is None else np.zeros(own.size, dtype=np.intp)
        seats = Seats.of(fold, codes, (N_FOLDS, self.n_classes), people, score)
        return table_cells(self.X, seats, self.columns, weights, score, rows=own)

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
        wanted = [float(lam) for lam in lams]
        with one_blas_thread():
            if self.channel_loss == "in-sample" or not self.channel_weighting:
                return solve_and_weigh(self, wanted, self.moments(held_out))
            samples = training_samples(self.target.size, held_out)
            return solve_and_judge(self, wanted, (self.cells(own) for own in samples))


def solve_and_weigh(engine: Any, lams: list[float], moments: list[TableMoments]) -> Fits:
    """Solve tables whose channels are weighed by their loss on the training samples."""
    solved = solve_channels(moments, lams, engine.options, Processes.available())
    return Fits(engine, moments, solved, ChannelLosses.in_sample(solved))


def solve_and_judge(engine: Any, lams: list[float], tables: Iterable[Cells]) -> Fits:
    """Solve tables whose channels are weighed by their loss on people held out.

    Parameters
    ----------
    engine : Engine or SumEngine
    lams : list of float
    tables : iterable of Cells
        Seen once, some at a time.
    """
    moments: list[TableMoments] = []
    judged: list[HeldOut] = []
    remaining = iter(tables)
    while block := list(islice(remaining, tables_at_a_time(engine.channel_names.size))):
        moments += [cells.whole() for cells in block]
        judged += judge(block, lams, engine.options)
    solved = solve_channels(moments, lams, engine.options, Processes.available())
    return Fits(engine, moments, solved, ChannelLosses.on_others(judged, solved))


def table_engine(
    owner: str,
    X: ArrayLike,
    y: ArrayLike,
    channels: ArrayLike | None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    **options: Any,
) -> Engine:
    """Check a table of class labels and set up its engine, for what is not an estimator's fit.

    Parameters
    ----------
    owner : str
        Who asks, for the messages.
    X, y, channels, sample_weight, groups
        As given by a user.
    **options
        ``channel_weighting``, ``channel_loss`` and those of :func:`pose`.
    """
    names = getattr(X, "columns", None)
    checked, labels = check_X_y(
        X, y, dtype=np.float64, ensure_all_finite=False, ensure_min_samples=2, estimator=owner
    )
    refuse_infinite(owner, checked, np.arange(checked.shape[1]) if names is None else names)
    weights = check_weights(sample_weight, checked)
    people = groups_of(X, groups)
    return Engine.for_classes(
        checked, labels, channels, names, weights=weights, groups=people, **options
    )


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
    lam_scale: str = "samples",
    tol: float = 1e-6,
    max_iter: int = 10_000,
    device: str | None = None,
) -> Options:
    """Turn parameters of :class:`~idfsmec.IDFSMEC` into the solver's options."""
    return Options(
        standardize=bool(standardize),
        inverse_probability=missing_correction == "ipw",
        missing_indicator=bool(missing_indicator),
        lam_samples=LAM_SAMPLES if lam_scale == "samples" else None,
        tol=float(tol),
        max_iter=int(max_iter),
        device=device,
    )
