"""IDFSMEC: features and channels ranked from samples in which channels are missing.

:class:`ChannelSamples` holds checked samples with their channels and solves all channels for any
folds and redundancy weights; :class:`SolvedChannels` holds what was solved, weighs channels and
orders features. Samples are seen once, to be summed up (:mod:`idfsmec.solver.sums`); all that
follows needs sums alone, whether of rows in memory, of files read piece by piece or of sites.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight

from idfsmec._parallel import one_blas_thread
from idfsmec._validation import (
    CheckedEstimator,
    Constraints,
    SequenceOf,
    StrOptions,
    check_parameters,
    group_codes,
    group_names,
    integer,
    number,
    validate_params,
    warn_without_groups,
)
from idfsmec.errors import InputError
from idfsmec.missing.association import (
    association_warning,
    missingness_by_class,
    missingness_by_score,
)
from idfsmec.selection.base import (
    DEFAULT_COUNT,
    RankingSelector,
    check_samples,
    check_score,
    encode_labels,
    ranks,
    training_samples,
)
from idfsmec.selection.defaults import GAMMAS, LAMS
from idfsmec.selection.effects import effects_of_sums, feature_effects
from idfsmec.solver.problem import channel_weights, total_objective
from idfsmec.solver.solve import ChannelFits, Options, held_out_losses, solve_channels
from idfsmec.solver.sums import (
    Moments,
    Split,
    Sums,
    hash_samples,
    n_repeats,
    subject_folds,
    table_sums,
    value_folds,
)
from idfsmec.table import FeatureTable
from idfsmec.table.columns import channel_codes, channel_columns, observed_channels

# Sums of sites and pieces: imported where they are used, for they take a while.
if TYPE_CHECKING:
    from idfsmec.federated import Study, Summary

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
#: What a redundancy weight and an evenness of channel weights may be.
LAM, GAMMA = number(0, closed="left"), number(1)
GRID: Constraints = {"lams": [SequenceOf(LAM)], "gammas": [SequenceOf(GAMMA)]}
# Settings that share the solved channels, or do not change the ranking.
_SHARED = {"lam", "gamma", "n_features_to_select"}
# Held-out problems posed at a time: enough to share the work, few enough for the memory.
_PROBLEMS = 4096
_UNTESTED = "too few participants of a class have it to test it"


@dataclass(frozen=True, repr=False)
class ChannelSamples:
    """Checked samples with channels, to be solved for any folds and redundancy weights."""

    X: Array  # NaN where missing; without rows where only sums are known
    target: NDArray[Any]  # codes of the classes, or the standardised target
    classes: NDArray[Any]  # the labels; empty for a numeric target
    channel_names: NDArray[Any]  # in order of first appearance
    columns: list[Indices]  # of each channel
    groups: NDArray[Any] | None  # subject of each sample
    options: Options
    weights: Array | None = None  # of the samples
    centre: float = 0.0  # of a numeric target, before it was standardised
    spread: float = 1.0

    @property
    def n_classes(self) -> int:
        """Number of classes; 1 for a numeric target."""
        return max(self.classes.size, 1)

    @property
    def holds_out(self) -> bool:
        """Whether the loss on held-out subjects weighs the channels."""
        return self.options.channel_weighting and self.options.channel_loss == "held-out"

    @cached_property
    def channel_of(self) -> Indices:
        """Number of the channel of every feature."""
        return channel_codes(self.columns)

    @cached_property
    def _subjects(self) -> tuple[NDArray[np.uint64], Indices] | None:
        """The hash of every sample, and the number of its subject; None without groups."""
        if self.groups is None:
            return None
        member = np.unique(self.groups, return_inverse=True)[1]
        return hash_samples(self.X, self.columns), member

    def sums(self, rows: Indices | None = None) -> Sums:
        """Sum up samples, all by default."""
        rows = np.arange(self.target.size) if rows is None else rows
        weights, size = None, float(rows.size)
        if self.weights is not None:
            # Samples without weight do not exist.
            rows = rows[self.weights[rows] > 0]
            weights = self.weights[rows]
            size = float(weights.sum())
        target, repeats = self.target[rows], n_repeats(size * self.X.shape[1])
        if self._subjects is None:
            X = self.X if rows.size == self.target.size else self.X[rows]
            folds = value_folds(X, self.columns, n_repeats=repeats, sample_weight=weights)
            groups = None
        else:
            hashes, groups = self._subjects[0][rows], self._subjects[1][rows]
            folds = subject_folds(hashes, groups, repeats)[:, groups]
        numeric = self.classes.size == 0
        codes = np.zeros(rows.size, dtype=np.intp) if numeric else target
        return table_sums(
            self.X,
            self.columns,
            codes,
            folds,
            self.n_classes,
            groups=groups,
            sample_weight=weights,
            target=target if numeric else None,
            rows=rows,
        )

    def solve(
        self, lams: Sequence[float], held_out: Sequence[Indices] | None = None
    ) -> SolvedChannels:
        """Solve all channels of every fold at every redundancy weight."""
        samples = training_samples(self.target.size, held_out)
        return self.solve_sums(lams, (self.sums(rows) for rows in samples))

    def solve_sums(self, lams: Sequence[float], tables: Iterable[Sums]) -> SolvedChannels:
        """Solve all channels of tables that are known by their sums."""
        wanted = [float(lam) for lam in lams]
        at_once = max(1, _PROBLEMS // (8 * self.channel_names.size))
        moments: list[list[Moments]] = []
        judged: list[Array] = []
        remaining = iter(tables)
        with one_blas_thread():
            while block := list(islice(remaining, at_once)):
                if self.holds_out:
                    judged += held_out_losses(block, wanted, self.options)
                moments += [sums.moments() for sums in block]
            solved = solve_channels(moments, wanted, self.options)
        losses, fallbacks = solved.objectives.copy(), 0
        for fold, on_others in enumerate(judged):
            usable = np.isfinite(losses[fold])
            if (usable & np.isfinite(on_others)).any():
                losses[fold] = np.where(usable, on_others, np.inf)
            else:
                fallbacks += 1
        return SolvedChannels(self, solved, losses, fallbacks)


class Weighing(NamedTuple):
    """Channel weights, feature scores, the features from best to worst, and their ranks."""

    channel_weights: Array
    scores: Array
    order: Indices
    ranking: Indices


@dataclass(frozen=True, repr=False)
class SolvedChannels:
    """Solved channels of every fold (F) at every redundancy weight (L)."""

    samples: ChannelSamples
    channels: ChannelFits
    losses: Array  # that weigh the channels; infinite: no weight, (F, L, V)
    n_fallbacks: int  # folds with the loss of the training samples: too few subjects to hold out

    def weigh(self, gamma: float, *, fold: int = 0, lam: int = 0) -> Weighing:
        """Compute channel weights and order features; see ``ranking_`` of :class:`IDFSMEC`."""
        losses, gains = self.losses[fold, lam], self.channels.gains[fold, lam]
        usable, channel = np.isfinite(losses), self.samples.channel_of
        weighting, alpha = self.samples.options.channel_weighting, np.zeros(losses.size)
        alpha[usable] = channel_weights(losses[usable], gamma, weighting=weighting)
        by_subject = self.samples.groups is not None
        weights = self.channels.strengths if by_subject else self.channels.feature_weights
        scores = alpha[channel] * weights[fold, lam]
        left_out = (gains < 0) | ~usable[channel]
        after_support = np.where(left_out, -1.0, alpha[channel] * gains)
        # lexsort takes its last key first and is stable.
        order = np.lexsort((-after_support, -scores))
        return Weighing(alpha, scores, order, ranks(order))

    def usable(self, fold: int = 0) -> NDArray[np.bool_]:
        """Whether each channel has information, shape (n_channels,)."""
        return np.asarray(np.isfinite(self.channels.objectives[fold, 0]))

    @property
    def held_out_loss(self) -> Array | None:
        """Of the first fold's channels at the first redundancy weight, where it weighs them."""
        weighs = self.samples.holds_out and not self.n_fallbacks
        return self.losses[0, 0] if weighs else None

    def history(self, gamma: float) -> Array:
        """Weighted sum over the channels' objectives after each iteration, of the first fold."""
        courses = self.channels.history[:, self.usable()]
        if self.held_out_loss is None:
            weighting = self.samples.options.channel_weighting
            course = total_objective(courses, gamma, weighting=weighting)
        else:
            course = courses @ self.weigh(gamma).channel_weights[self.usable()] ** gamma
        # Every channel's own loss never rises; this only removes rounding of the sum.
        return np.minimum.accumulate(course)

    def warn(self, stacklevel: int = 4) -> None:
        """Warn of channels without information and of those that did not converge."""
        names, n_folds, options = (
            self.samples.channel_names,
            len(self.losses),
            self.samples.options,
        )
        counts: Counter[tuple[int, str]] = Counter()
        for fold, unusable in enumerate(self.channels.unusable):
            if len(unusable) == names.size:
                listed = [f"{names[v]} ({reason})" for v, reason in sorted(unusable.items())]
                more = [f"and {len(listed) - 20} more"] if len(listed) > 20 else []
                why = "; ".join([*listed[:20], *more])
                raise ValueError(f"No channel carries information: {why}.")
            untested = np.flatnonzero(self.usable(fold) & np.isinf(self.losses[fold, 0]))
            counts.update([*unusable.items(), *((int(v), _UNTESTED) for v in untested)])
        if counts:
            why = "; ".join(
                f"{names[v]} ({reason}{f', in {n} of {n_folds} folds' if n_folds > 1 else ''})"
                for (v, reason), n in sorted(counts.items())
            )
            text = f"Channels without information get weight 0 and rank last: {why}."
            warnings.warn(text, UserWarning, stacklevel=stacklevel)
        if self.n_fallbacks:
            warnings.warn(
                "Channels are weighted by the training loss, because there are too few "
                "participants to hold out some of each class. Channels that one class rarely has "
                "are overrated.",
                UserWarning,
                stacklevel=stacklevel,
            )
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


def _corrected(fits: SolvedChannels, study: Study) -> SolvedChannels:
    """Judge channels that no split judges by their loss on the training subjects, corrected."""
    if fits.held_out_loss is None:
        return fits
    whole = Split(*2 * (np.ones(study.sums.classes.size, dtype=bool),))
    with one_blas_thread():
        (judged,) = held_out_losses([study.sums], [1.0], fits.samples.options, [[whole]])
    losses = fits.losses.copy()
    for name in study.corrected:
        v = study.channels.index(name)
        weights = fits.channels.feature_weights[0, 0, study.channel_columns[v]]
        # A feature with weight has this and a coefficient for every class but one.
        n, k = float(study.have[v].sum()), float(np.sum(weights > 0) * len(study.labels))
        losses[0, 0, v] = judged[0, v] * (n + k) / max(n - k, 1.0)
    return replace(fits, losses=losses)


class ChannelEstimator(CheckedEstimator):
    """Base of the estimators that solve channels; they offer some of :data:`OPTIONS`."""

    _parameter_constraints: ClassVar[Constraints] = {
        "channels": ["array-like", None],
        "lam": [LAM],
        "gamma": [GAMMA],
        **OPTIONS,
    }

    channels: ArrayLike | None
    lam: float
    gamma: float
    numeric = False

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _options(self) -> dict[str, Any]:
        """Return how channels are posed, solved and weighted."""
        return {name: value for name, value in self.get_params(False).items() if name in OPTIONS}

    def check_input(
        self,
        X: ArrayLike,
        y: ArrayLike | None,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> ChannelSamples:
        """Check the input; learn classes and channels."""
        checked, labels = check_samples(self, X, y, ensure_min_samples=2)
        weights = None
        if sample_weight is not None:
            weights = _check_sample_weight(
                sample_weight, checked, dtype=np.float64, ensure_non_negative=True
            )
        subjects = group_codes(X, groups)
        if self.numeric:
            score = check_score(labels)
            centre, spread = float(score.mean()), float(score.std())
            target = (score - centre) / spread
            samples = self._with_channels(checked, target, np.empty(0), subjects, weights)
            return replace(samples, centre=centre, spread=spread)
        codes, self.classes_ = encode_labels(labels)
        return self._with_channels(checked, codes, self.classes_, subjects, weights)

    def _with_channels(
        self,
        X: Array,
        target: NDArray[Any],
        classes: NDArray[Any],
        groups: NDArray[Any] | None,
        weights: Array | None = None,
    ) -> ChannelSamples:
        """Put checked samples together with channels, which are learned, and options."""
        names = getattr(self, "feature_names_in_", None)
        self.channel_names_, columns = channel_columns(self.channels, X.shape[1], names)
        options = Options(**{"lam_scale": "samples", **self._options()})
        names_and_columns = self.channel_names_, columns
        return ChannelSamples(X, target, classes, *names_and_columns, groups, options, weights)

    def _hold(self, fits: SolvedChannels) -> Weighing:
        """Keep what was solved with all samples; return the order of features."""
        solved, weighing = fits.channels, fits.weigh(self.gamma)
        self.objective_ = solved.objectives[0, 0]
        self.held_out_loss_ = fits.held_out_loss
        self.feature_weights_ = solved.feature_weights[0, 0]
        self.kkt_residuals_ = solved.kkt_residuals[0, 0]
        self.channel_weights_ = weighing.channel_weights
        self.objective_history_ = fits.history(self.gamma)
        self.n_iter_ = int(solved.n_iter.max())
        return weighing


@dataclass(eq=False, repr=False, kw_only=True)
class ChannelSelector(ChannelEstimator, RankingSelector, Options):
    """The parameters that :class:`IDFSMEC` and its search share: the solver's options."""

    channels: ArrayLike | None = field(default=None, kw_only=False)
    numeric: bool = False
    lam_scale: str = "samples"


def is_stored(X: Any) -> bool:
    """Whether it is the name of a table, an Arrow dataset or a Dask dataframe, not samples."""
    arrow = sys.modules.get("pyarrow.dataset")  # who has a dataset has imported it
    on_disk = isinstance(X, str | PathLike) or hasattr(X, "to_delayed")
    return on_disk or (arrow is not None and isinstance(X, arrow.Dataset))


@dataclass(eq=False, repr=False, kw_only=True)
class IDFSMEC(ChannelSelector):
    """Feature selection with missing channels (IDFS-MEC).

    Every channel is fitted by orthogonal regression on the samples that have it. The regression
    weights the features of the channel (``feature_weights_``) and avoids redundant ones. Its loss
    on held-out subjects weights the channel (``channel_weights_``). A feature's score is the
    product of both weights. Missing values are neither used nor imputed. A channel is any block of
    features that is missing together: an electrode, an audio recording, a questionnaire.

    Parameters
    ----------
    channels : array-like of shape (n_features,), optional
        Label per feature. By default the part of the column name before the last ``"__"``; if
        the columns have no such names, all features form one channel.
    n_features_to_select : int or float, default=20
        How many features to keep: a number (all, if there are fewer) or a fraction.
    lam : float, default=1.0
        Weight of the redundancy between features of a channel, >= 0. Small values give few
        features per channel.
    gamma : float, default=2.0
        How evenly channels are weighted, > 1. Close to 1 the best channel gets most of the weight.
    numeric : bool, default=False
        Whether y is a score, such as a severity, or the numbers of ordered grades. The target of
        every channel's regression is then the standardised score in place of the one-hot classes.
    channel_loss : {"held-out", "in-sample"}, default="held-out"
        The loss that determines channel weights. ``"held-out"``: the squared error of predicted
        class indicators, clipped to [0, 1], on subjects left out by two repeats of four folds: the
        mean over the subjects of each class who have the channel, averaged by the classes' shares.
        It is the expected error given the mean and variance of the predictions, which follow from
        sums. ``"in-sample"`` is the paper's ``objective_``, which favours a channel that one class
        rarely has, even if it is noise.
    lam_scale : {"samples", "paper"}, default="samples"
        The loss is a sum over samples, the redundancy is not. ``"samples"`` multiplies ``lam`` by
        the number of samples over 1000 (by the sum of their weights, if these are given), so that
        it means the same for any number of samples; ``"paper"`` leaves it unchanged.
    standardize : bool, default=True
        Scale every feature to unit variance over its observed samples. The objective is not
        scale invariant, so switch this off only if your features have comparable units.
    missing_correction : {"ipw", None}, default="ipw"
        ``"ipw"`` divides a channel's loss by the share of samples that have it. ``None`` is the
        paper's plain sum, which favours channels that are often missing.
    channel_weighting : bool, default=True
        False gives all channels the same weight (an ablation).
    missing_indicator : bool, default=True
        False imputes missing values by the mean and treats them as observed (an ablation).
    tol : float, default=1e-6
        A channel is solved when its first-order conditions hold to this relative accuracy.
    max_iter : int, default=10000
        Maximum number of iterations; a warning names channels that did not converge.
    device : str, optional
        Solve on this PyTorch device, ``"cuda"`` for instance (extra ``gpu``). Worth it for grids
        of thousands of problems; a single fit is faster without.

    Attributes
    ----------
    channel_names_ : ndarray of shape (n_channels,)
        In order of first appearance.
    channel_weights_ : ndarray of shape (n_channels,)
        alpha; sums to 1. Zero for channels without information.
    feature_weights_ : ndarray of shape (n_features,)
        theta; sums to 1 within each channel with information.
    scores_ : ndarray of shape (n_features,)
        ``alpha * theta``. With groups, in channels of fewer than six features,
        ``alpha * |theta_j W_j|^(2/3)``: what the channel's regression uses of theta.
    ranking_ : ndarray of shape (n_features,)
        1 is best. By score; features with score 0 by what adding them alone to their channel's
        model would gain, weighted by alpha; then constant features and those of channels without
        information; ties in column order.
    support_ : ndarray of shape (n_features,)
    objective_ : ndarray of shape (n_channels,)
        Final loss U of every channel; infinite for channels without information.
    held_out_loss_ : ndarray of shape (n_channels,) or None
        Mean squared error of every channel on subjects left out; infinite where too few subjects
        of a class have the channel to test it. None where it does not determine channel weights:
        with ``channel_loss="in-sample"``, with ``channel_weighting=False``, or (with a warning) if
        subjects are too few.
    objective_history_ : ndarray of shape (n_iter + 1,)
        The weighted sum over channels after each iteration; never rises.
    kkt_residuals_ : ndarray of shape (n_channels,)
        How well the first-order conditions hold.
    n_iter_ : int
        Iterations of the slowest channel.
    missingness_ : DataFrame
        How many subjects have each channel, by class, with a test of whether that is associated
        with the label or score; see :func:`idfsmec.missing.missingness_association`. Where it is,
        ``fit`` warns.
    effects_ : DataFrame
        Direction and size of every feature by subject; see
        :func:`idfsmec.selection.feature_effects`. Computed when first asked for, from X as it is
        then; a selector that was pickled before has none, because samples are not pickled. From
        sums they have normal-theory CIs and no AUC.
    study_ : Study
        Only after fitting from sums: sites and subjects that count per channel, and the scheme of
        the held-out loss.
    classes_ : ndarray of shape (n_classes,)
        Not for a score.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only if X has string column names.

    References
    ----------
    .. [1] Gong, Dong, Xu, Wei, Liu, Zhuo, "Incomplete Depression Feature
       Selection with Missing EEG Channels", arXiv:2511.11651.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from idfsmec import IDFSMEC
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["healthy", "depressed"], 50)
    >>> names = [f"{ch}__{feature}" for ch in ("F3", "Cz", "O2") for feature in ("theta", "alpha")]
    >>> X = pd.DataFrame(rng.normal(size=(100, 6)), columns=names)
    >>> X["F3__alpha"] += y == "depressed"
    >>> X.loc[rng.random(100) < 0.3, ["F3__theta", "F3__alpha"]] = np.nan  # F3 fell off
    >>> selector = IDFSMEC(n_features_to_select=1).fit(X, y, groups=np.arange(100))
    >>> selector.get_feature_names_out()
    array(['F3__alpha'], dtype=object)
    """

    n_features_to_select: int | float = DEFAULT_COUNT
    lam: float = 1.0
    gamma: float = 2.0

    @validate_params
    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Rank features and channels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), path or data set
            NaN where a channel is missing. A channel some of whose features are NaN at a sample
            counts as missing there. The path of a table, or of a folder of Parquet files, a
            ``pyarrow.dataset.Dataset`` or a ``dask.dataframe.DataFrame`` stands for the table,
            with labels and subjects. It is read twice, a few rows at a time, so it may be larger
            than the memory; ``effects_`` then have no AUC.
        y : array-like of shape (n_samples,)
            Class labels, or a score with ``numeric=True``; None with a path or data set, which
            has the labels.
        groups : array-like of shape (n_samples,), optional
            Subject of every sample; by default an index of X named ``subject``, which ``table.X``
            has. Each subject counts once, however many samples there are. With neither, each
            sample counts once, as in the paper, and a warning says so once.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights of the samples, which multiply those by subject.

        Returns
        -------
        self : IDFSMEC
        """
        self.__dict__.pop("_pieces", None)
        if is_stored(X):
            if not (y is None and groups is None and sample_weight is None):
                raise InputError(
                    f"{type(self).__name__} got the name of a table together with y, groups or "
                    "sample_weight: labels and subjects are columns of the table, and its "
                    "samples have no weights."
                )
            self._refuse_sums_of_scores()
            from idfsmec.federated.streaming import stream_sums

            channels = None if self.channels is None else np.asarray(self.channels).tolist()
            self._fit_study(stream_sums(X, channels))
            return self
        samples = self.check_input(X, y, groups, sample_weight)
        if samples.groups is None:
            warn_without_groups(type(self).__name__, stacklevel=4)
        labels = samples.target if self.numeric else samples.classes[samples.target]
        observed = observed_channels(samples.X, samples.columns)
        associated = missingness_by_score if self.numeric else missingness_by_class
        missingness = associated(observed, labels, samples.groups, samples.channel_names)
        self._keep(samples.solve([self.lam]), missingness, stacklevel=4)
        self._samples = samples.X, labels, samples.groups
        self.__dict__.pop("effects_", None)
        return self

    def _keep(self, fits: SolvedChannels, missingness: pd.DataFrame, stacklevel: int) -> None:
        """Warn of channels, and keep the ranking."""
        fits.warn(stacklevel + 1)
        self.missingness_ = missingness
        if text := association_warning(missingness):
            warnings.warn(text, UserWarning, stacklevel=stacklevel)
        weighing = self._hold(fits)
        self._set_ranking(weighing.scores, weighing.order)

    @validate_params
    def fit_summaries(self, summaries: Sequence[Summary], *, harmonize: bool = False) -> Self:
        """Rank features and channels from the summaries of sites.

        Feature weights equal those of ``fit`` on all rows with subjects as ``groups``, to
        rounding, where no site suppressed anything. Channels are weighted by the held-out loss
        over the sites' folds, or by leaving out one site at a time where a site has one fold only;
        ``study_.scheme`` states which. A channel without a held-out loss is weighted by its
        training loss, corrected for the number of parameters, and listed in ``study_.corrected``.

        Parameters
        ----------
        summaries : sequence of Summary
            From :func:`idfsmec.summarise`. They may have different channels, and lack classes.
        harmonize : bool, default=False
            Bring sites, each of which is a summary, to one location and scale first.

        Returns
        -------
        self : IDFSMEC
            ``effects_`` have normal-theory intervals and no AUC, which needs subjects.

        Raises
        ------
        InputError
            ``lam_scale="paper"``, ``missing_correction=None`` and ``missing_indicator=False``
            need more than the sums, or the summaries do not belong together.

        Examples
        --------
        >>> import numpy as np, pandas as pd
        >>> from idfsmec import IDFSMEC, FeatureTable, summarise
        >>> rng = np.random.default_rng(0)
        >>> y = np.tile(["HC", "MDD"], 30)
        >>> def site(name):
        ...     X = pd.DataFrame(rng.normal(size=(60, 2)), columns=["F3__alpha", "Cz__alpha"])
        ...     X["Cz__alpha"] += y == "MDD"
        ...     return FeatureTable(X, y, [f"{name}{i}" for i in range(60)])
        >>> shared = [summarise(site(name)) for name in "abc"]
        >>> IDFSMEC(n_features_to_select=1).fit_summaries(shared).get_feature_names_out()
        array(['Cz__alpha'], dtype=object)
        """
        from idfsmec.federated.summary import study_of

        self._refuse_sums_of_scores()
        refused = {"lam_scale": "paper", "missing_correction": None, "missing_indicator": False}
        for name, value in refused.items():
            if getattr(self, name) == value:
                raise InputError(
                    f"{name}={value!r} needs the samples: leave it at its default with summaries.",
                    argument=name,
                )
        self._fit_study(study_of(list(summaries), harmonize=harmonize))
        return self

    @validate_params
    def partial_fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> Self:
        """Add samples to those of earlier calls, and rank from the sums over all of them.

        Samples are summed up and not kept. A subject's samples must all come in one call, because
        each subject counts once. The ranking is that of :meth:`fit` on all pieces.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN where a channel is missing.
        y : array-like of shape (n_samples,)
            Class labels; a piece may lack some. There is no ranking before two were seen.
        groups : array-like of shape (n_samples,), optional
            Subject of every sample; by default what an index of X named ``subject`` says. With
            neither, each sample is a subject.

        Returns
        -------
        self : IDFSMEC
        """
        from idfsmec.federated.streaming import SumsInPieces

        self._refuse_sums_of_scores()
        first = not hasattr(self, "_pieces")
        subjects = group_names(X, groups)
        checked, labels = check_samples(self, X, y, reset=first)
        labels = column_or_1d(labels)
        check_classification_targets(labels)
        names = getattr(self, "feature_names_in_", None)
        if first:
            known = [f"x{j}" for j in range(checked.shape[1])] if names is None else names
            channels, columns = channel_columns(self.channels, len(known), names)
            of_columns = channels[channel_codes(columns)].tolist()
            self._pieces = SumsInPieces(tuple(known), tuple(of_columns))
        study = self._pieces.add(checked, labels, subjects)
        if len(study.labels) > 1:
            self._fit_study(study, named=names is not None, by_subject=subjects is not None)
        return self

    def _refuse_sums_of_scores(self) -> None:
        """Refuse a score where sums of classes are added up."""
        if self.numeric:
            raise InputError(
                "a score cannot be ranked from files, pieces or summaries of sites: these hold "
                "sums by class. Read the table, and give its X and scores to fit",
                argument="numeric",
            )

    def _fit_study(self, study: Study, *, named: bool = True, by_subject: bool = True) -> None:
        """Rank from sums."""
        samples = ChannelSamples(
            X=np.empty((0, len(study.columns))),
            target=np.empty(0),
            classes=np.array(study.labels),
            channel_names=np.array(study.channels),
            columns=study.channel_columns,
            groups=np.empty(0) if by_subject else None,
            options=Options(**self._options()),
        )
        fits = samples.solve_sums([self.lam], [study.sums])
        if study.corrected:
            fits = _corrected(fits, study)
        self._keep(fits, study.missingness(), stacklevel=5)
        self.n_features_in_ = len(study.columns)
        if named:
            self.feature_names_in_ = np.array(study.columns, dtype=object)
        self.classes_, self.channel_names_, self.study_ = (
            samples.classes,
            samples.channel_names,
            study,
        )
        self.__dict__.pop("_samples", None)
        self.__dict__["effects_"] = effects_of_sums(
            list(study.effects), study.labels, [str(column) for column in study.columns]
        )

    @cached_property
    def effects_(self) -> pd.DataFrame:
        """Direction and size of every feature, by subject."""
        if "_samples" not in vars(self):
            raise AttributeError(
                "effects_ is computed from the samples of fit, which are not available: fit the "
                "selector first, or ask for effects_ before pickling it."
            )
        X, y, groups = self._samples
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(X.shape[1])])
        return feature_effects(X, y, groups, names=list(map(str, names)), numeric=self.numeric)

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in super().__getstate__().items() if key != "_samples"}

    def rank_grid(
        self,
        X: ArrayLike,
        y: ArrayLike,
        settings: Sequence[Mapping[str, Any]],
        *,
        held_out: Sequence[Indices] | None = None,
        groups: ArrayLike | None = None,
    ) -> Indices | None:
        """Rank features with every setting on every fold, all channels in one batch.

        See :func:`idfsmec.selection.rank_grid`. Settings of ``lam`` and ``gamma`` share one batch.

        Returns
        -------
        ranks : ndarray of shape (n_folds, n_settings, n_features)
            None with other settings, or where a fold lacks a class: these need fits of their own.
        """
        if any(set(setting) - _SHARED for setting in settings):
            return None
        name, default = type(self).__name__, self.get_params(deep=False)
        for setting in settings:
            check_parameters(name, self._parameter_constraints, {**default, **setting})
        samples = clone(self).check_input(X, y, groups)
        for train in training_samples(samples.target.size, held_out):
            # The regression has a column per class: without one of them it is another problem.
            if np.unique(samples.target[train]).size < max(samples.n_classes, 2):
                return None
        pairs = [(each.get("lam", self.lam), each.get("gamma", self.gamma)) for each in settings]
        lams = list(dict.fromkeys(lam for lam, _ in pairs))
        fits = samples.solve(lams, held_out)
        fits.warn(stacklevel=3)
        return np.array(
            [
                [fits.weigh(gamma, fold=fold, lam=lams.index(lam)).ranking for lam, gamma in pairs]
                for fold in range(len(fits.losses))
            ]
        )


def order_electrodes(
    X: ArrayLike,
    y: ArrayLike,
    channels: ArrayLike,
    groups: ArrayLike | None = None,
    *,
    numeric: bool = False,
) -> NDArray[Any]:
    """Return the channels of columns by their weight in :class:`IDFSMEC`, heaviest first."""
    selector = IDFSMEC(channels, numeric=numeric).fit(X, y, groups=groups)
    return np.asarray(
        selector.channel_names_[np.argsort(-selector.channel_weights_, kind="stable")]
    )


def choose_electrodes(table: FeatureTable, n_electrodes: int) -> list[str]:
    """Return the electrodes with the largest channel weights in :class:`IDFSMEC`.

    Redundant electrodes are not taken out: in a trial of nine rules that lost AUC on tables that
    no rule had been chosen on. To measure how well so few electrodes do, choose them inside
    training folds, as :func:`idfsmec.evaluation.electrodes` does.

    Parameters
    ----------
    table : FeatureTable
    n_electrodes : int
        At most as many as the table has.

    Returns
    -------
    list of str
        Heaviest first.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["HC", "MDD"], 40)
    >>> X = pd.DataFrame(rng.normal(size=(80, 3)), columns=["F3__a", "Cz__a", "O1__a"])
    >>> X["Cz__a"] += 2 * (y == "MDD")
    >>> choose_electrodes(FeatureTable(X, y, np.arange(80) // 4), 1)
    ['Cz']
    """
    if not 1 <= n_electrodes <= len(table.channels):
        raise InputError(
            f"{n_electrodes} electrodes cannot be chosen: the table has {len(table.channels)}",
            argument="electrodes",
        )
    known = table.column_channels, table.subjects
    order = order_electrodes(table.X, table.targets, *known, numeric=table.target.is_numeric)
    return [str(name) for name in order[:n_electrodes]]


@dataclass(frozen=True)
class IDFSPath:
    """Scores and weights for every pair of ``lam`` and ``gamma``.

    Attributes
    ----------
    lams : ndarray of shape (n_lams,)
    gammas : ndarray of shape (n_gammas,)
    scores : ndarray of shape (n_lams, n_gammas, n_features)
    rankings : ndarray of shape (n_lams, n_gammas, n_features)
        1 = best.
    channel_names : ndarray of shape (n_channels,)
    channel_weights : ndarray of shape (n_lams, n_gammas, n_channels)
    feature_weights : ndarray of shape (n_lams, n_features)
        Do not depend on gamma.
    objectives : ndarray of shape (n_lams, n_channels)
    kkt_residuals : ndarray of shape (n_lams, n_channels)
    """

    lams: Array
    gammas: Array
    scores: Array
    rankings: NDArray[np.intp]
    channel_names: NDArray[Any]
    channel_weights: Array
    feature_weights: Array
    objectives: Array
    kkt_residuals: Array


def idfs_path(
    X: ArrayLike,
    y: ArrayLike,
    *,
    channels: ArrayLike | None = None,
    lams: Sequence[float] = LAMS,
    gammas: Sequence[float] = GAMMAS,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    **options: Any,
) -> IDFSPath:
    """Fit :class:`IDFSMEC` for all pairs of ``lam`` and ``gamma``.

    Samples are seen once, all ``lams`` are solved in one batch, and every further ``gamma`` costs
    nothing: a channel's problem does not depend on its weight. Each entry equals what a separate
    fit would give.

    Parameters
    ----------
    X, y, groups, sample_weight
        As of :meth:`IDFSMEC.fit`.
    channels : array-like of shape (n_features,), optional
    lams, gammas : sequence of float
    **options
        ``channel_loss``, ``lam_scale``, ``standardize``, ``missing_correction``,
        ``channel_weighting``, ``missing_indicator``, ``tol``, ``max_iter``, ``device``,
        ``numeric`` of :class:`IDFSMEC`.

    Returns
    -------
    IDFSPath

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> path = idfs_path(X, y, channels=[0] * 6 + [1] * 7, lams=[0.1, 10.0], gammas=[1.5, 2, 9])
    >>> path.scores.shape
    (2, 3, 13)
    """
    values = {"lams": lams, "gammas": gammas, **options}
    check_parameters("idfs_path", {**GRID, **OPTIONS, "numeric": ["boolean"]}, values)
    samples = IDFSMEC(channels, **options).check_input(X, y, groups, sample_weight)
    fits = samples.solve(lams)
    fits.warn(stacklevel=3)
    grid = [[fits.weigh(gamma, lam=row) for gamma in gammas] for row in range(len(lams))]
    solved = fits.channels
    return IDFSPath(
        lams=np.array(lams, dtype=float),
        gammas=np.array(gammas, dtype=float),
        scores=np.array([[weighing.scores for weighing in row] for row in grid]),
        rankings=np.array([[weighing.ranking for weighing in row] for row in grid]),
        channel_names=samples.channel_names,
        channel_weights=np.array([[weighing.channel_weights for weighing in row] for row in grid]),
        feature_weights=solved.feature_weights[0],
        objectives=solved.objectives[0],
        kkt_residuals=solved.kkt_residuals[0],
    )
