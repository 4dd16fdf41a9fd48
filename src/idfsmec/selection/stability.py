"""Stability of a selection: which features a selector finds again on other subjects.

With ``q`` of ``p`` features selected on every half of the subjects, a threshold ``t`` on the
frequency keeps on average at most ``C(t) q^2 / p`` features that are selected no more often than a
random choice would, with a chance of ``q / p``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import special
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Tags, check_random_state, get_tags

from idfsmec._parallel import count_jobs, run_tasks
from idfsmec._validation import (
    Constraints,
    HasMethods,
    StrOptions,
    fraction,
    group_codes,
    integer,
    number,
    split_by_score,
    validate_params,
    warn_without_groups,
)
from idfsmec.progress import Listener, Steps
from idfsmec.selection.base import (
    RankingSelector,
    check_samples,
    check_score,
    encode_labels,
    rank_grid,
    ranks,
    training_samples,
)
from idfsmec.selection.idfsmec import IDFSMEC
from idfsmec.solver.scaling import Scaling
from idfsmec.table.columns import channel_codes, channel_columns, observed_channels

Indices = NDArray[np.intp]

# Numbers that the moments of a batch of halves may take (256 MiB), and most halves of a batch: the
# solver shares their channels among cores, and progress is reported after each.
_ELEMENTS, _TOGETHER = 2**25, 100


@dataclass(eq=False, repr=False, kw_only=True)
class StabilitySelector(RankingSelector):
    """Keep the features that a selector picks repeatedly on random halves of the subjects.

    Subjects (not samples) are split in two halves at random, many times, with equally many of each
    class in both halves; the selector runs on every half. The share of halves on which a feature
    is picked, its selection frequency, measures how stable the selection is, and a threshold on it
    bounds the number of features picked by chance [1]_ [2]_.

    Parameters
    ----------
    estimator : selector, optional
        Any selector with ``n_features_to_select`` and ``ranking_``, such as those of
        :mod:`idfsmec.selection`; by default :class:`IDFSMEC`. One that refuses NaN gets each half
        imputed by the half's means. One for a score (``IDFSMEC(numeric=True)``) gets halves
        with their share of low and high scores.
    n_features_to_select : int, float or None, default=None
        How many features are picked on every half (``q``): a number, a fraction, or the square
        root of 0.8 times the number of features (None), for which a threshold of 0.9 bounds the
        false selections by 1 without any assumption.
    n_resamples : int, default=100
        Number of halves, even.
    threshold : float, optional
        Frequency from which a feature is kept, above 0.5. By default the smallest that keeps the
        expected number of false selections at ``max_false`` or below.
    max_false : float, default=1.0
        See ``threshold``; not used where that is given.
    assumption : {"unimodal", "none"}, default="unimodal"
        Of the bound; ``"unimodal"`` is mild and gives a lower threshold, ``"none"`` needs nothing.
    channels : array-like of shape (n_features,), optional
        As in :class:`IDFSMEC`; by default those of the estimator, then those of the column names.
    random_state : int, RandomState or None
        Decides the halves.
    n_jobs : int, optional
        Processes over halves; -1 is one per core. By default one: :class:`IDFSMEC` then shares
        the solving of many halves among cores, but sums each half up by itself. With a GPU
        (``IDFSMEC(device="cuda")``) several keep it busy.
    progress : callable, optional
        Called with a :class:`~idfsmec.progress.Progress` when the work begins and whenever some
        halves are done; ``print`` will do.

    Attributes
    ----------
    frequencies_ : ndarray of shape (n_features,)
        Share of halves on which the feature was picked; also ``scores_``.
    channel_names_ : ndarray of shape (n_channels,)
    channel_frequencies_ : ndarray of shape (n_channels,)
        Share of halves on which at least one feature of the channel was picked; NaN for dead
        channels.
    dead_channels_ : ndarray of bool, shape (n_channels,)
        Channels that were not once observed for more than one class (with a score, in fewer than
        two samples). Their features are never picked and do not count among those there are.
    selections_ : ndarray of bool, shape (n_resamples, n_features)
    stability_ : Stability
        Nogueira's measure between the two halves of a pair, which share no subject: the mean over
        pairs. Its 95 % CI is of that mean over random halves of these subjects: with other
        subjects stability varies more.
    threshold_ : float
    expected_false_ : float
        Bound on the expected number of false selections at ``threshold_``.
    ranking_ : ndarray of shape (n_features,)
        By frequency, then by the mean rank over all halves.
    support_ : ndarray of shape (n_features,)
        Frequency at least ``threshold_``; may be empty.

    References
    ----------
    .. [1] Meinshausen, Buehlmann, "Stability selection", JRSS B 72(4), 2010.
    .. [2] Shah, Samworth, "Variable selection with error control: another look at stability
       selection", JRSS B 75(1), 2013.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> subjects = np.repeat(np.arange(40), 3)
    >>> y = subjects % 2
    >>> X = rng.normal(size=(120, 10))
    >>> X[:, 3] += 2 * y
    >>> X[rng.random(120) < 0.3, :5] = np.nan
    >>> stable = StabilitySelector(
    ...     n_features_to_select=1, channels=["Fz"] * 5 + ["Pz"] * 5, random_state=0
    ... )
    >>> stable.fit(X, y, groups=subjects).get_support(indices=True)
    array([3])
    >>> stable.channel_names_.tolist(), float(stable.channel_frequencies_[0])
    (['Fz', 'Pz'], 1.0)
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "estimator": [HasMethods(["fit", "set_params"]), None],
        "n_features_to_select": [integer(1), fraction(), None],
        "n_resamples": [integer(2)],
        "threshold": [number(0.5, 1, closed="right"), None],
        "max_false": [number(0)],
        "assumption": [StrOptions({"unimodal", "none"})],
    }

    estimator: BaseEstimator | None = field(default=None, kw_only=False)
    n_features_to_select: int | float | None = None
    n_resamples: int = 100
    threshold: float | None = None
    max_false: float = 1.0
    assumption: str = "unimodal"
    channels: ArrayLike | None = None
    random_state: int | np.random.RandomState | None = None
    n_jobs: int | None = None
    progress: Listener | None = None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    @validate_params
    def fit(
        self, X: ArrayLike, y: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> Self:
        """Run the selector on random halves of the subjects.

        Parameters
        ----------
        X, y, groups
            As of :meth:`IDFSMEC.fit`, but no path.

        Returns
        -------
        self : StabilitySelector
        """
        if self.n_resamples % 2:
            raise ValueError(f"n_resamples must be even, for pairs, got {self.n_resamples!r}.")
        checked, labels = check_samples(self, X, y)
        selector = clone(IDFSMEC() if self.estimator is None else self.estimator)
        numeric = bool(getattr(selector, "numeric", False))
        target: NDArray[Any]
        if numeric:
            target = check_score(labels)
        else:
            target, self.classes_ = encode_labels(labels)
        known = group_codes(X, groups)
        if known is None:
            warn_without_groups(type(self).__name__, stacklevel=4)
        subjects = np.arange(target.size) if known is None else known
        n_features = checked.shape[1]
        channels = self.channels
        if channels is None:
            channels = getattr(selector, "channels", None)
        names = getattr(self, "feature_names_in_", None)
        self.channel_names_, self._columns = channel_columns(channels, n_features, names)
        if hasattr(selector, "channels"):
            selector.set_params(channels=channel_codes(self._columns))
        default = self.n_features_to_select is None
        wanted = int(np.sqrt(0.8 * n_features)) if default else self._n_to_select(n_features)
        selector.set_params(n_features_to_select=max(1, wanted))
        rng = check_random_state(self.random_state)
        halves = complementary_halves(
            subjects, target, self.n_resamples // 2, rng, numeric=numeric
        )
        rankings = self._rankings(selector, checked, target, halves, known)
        observed = observed_channels(checked, self._columns)
        if numeric:
            self.dead_channels_ = observed.sum(axis=0) < 2
        else:
            of_class = [observed[target == k].any(axis=0) for k in range(self.classes_.size)]
            self.dead_channels_ = np.sum(of_class, axis=0) < 2
        self._count(rankings, selector.n_features_to_select)
        return self

    def _rankings(
        self,
        selector: BaseEstimator,
        X: NDArray[np.float64],
        codes: NDArray[Any],
        halves: list[Indices],
        groups: NDArray[Any] | None,
    ) -> NDArray[np.intp]:
        """Ranks of all features on every half, shape (n_resamples, n_features)."""
        impute = not get_tags(selector).input_tags.allow_nan and bool(np.isnan(X).any())
        # Each half is left out by the other of its pair.
        left_out = [halves[number ^ 1] for number in range(len(halves))]
        n_jobs = count_jobs(self.n_jobs)
        # Each half needs a matrix of features per channel.
        fitting = _ELEMENTS // (X.shape[1] * max(columns.size for columns in self._columns))
        size = max(1, min(fitting, _TOGETHER, -(-len(halves) // n_jobs)))
        batches = [left_out[first : first + size] for first in range(0, len(halves), size)]
        steps = Steps("halves", len(halves), self.progress)
        rankings = [np.empty(0, dtype=np.intp)] * len(batches)
        rank = partial(_half_ranks, selector, X, codes, groups, impute)
        for part, batch_ranks in run_tasks(rank, batches, n_jobs=n_jobs):
            rankings[part] = batch_ranks
            steps.done(len(batch_ranks))
        return np.concatenate(rankings)

    def _count(self, rankings: NDArray[np.intp], q: int) -> None:
        dead = self.dead_channels_[channel_codes(self._columns)]
        n_features, n_pairs = int((~dead).sum()), len(rankings) // 2
        q = min(q, n_features)
        self.selections_ = (rankings <= q) & ~dead
        self.frequencies_ = self.selections_.mean(axis=0)
        by_channel = [self.selections_[:, columns].any(axis=1).mean() for columns in self._columns]
        self.channel_frequencies_ = np.where(self.dead_channels_, np.nan, by_channel)
        self.stability_: Stability = _stability_of_pairs(self.selections_[:, ~dead])
        bound = (q, n_features, n_pairs, self.assumption)
        threshold = self.threshold
        if threshold is None:
            threshold = smallest_threshold(self.max_false, *bound)
        if threshold is None:
            lowest = false_selections(1.0, *bound)
            raise ValueError(
                f"Picking {q} of {n_features} features on every half, no threshold keeps the "
                f"expected number of false selections at {self.max_false:g}; the lowest bound is "
                f"{lowest:.2g}. Lower n_features_to_select or raise max_false."
            )
        self.threshold_ = float(threshold)
        self.expected_false_ = false_selections(self.threshold_, *bound)
        order = np.lexsort((rankings.mean(axis=0), -self.frequencies_))
        self.scores_, self.ranking_ = self.frequencies_, ranks(order)
        # A frequency is a ratio of whole numbers; rounding must not put it below its equal.
        self.support_ = self.frequencies_ >= self.threshold_ - 1e-9


def complementary_halves(
    subjects: NDArray[Any],
    codes: NDArray[Any],
    n_pairs: int,
    random_state: np.random.RandomState,
    *,
    numeric: bool = False,
) -> list[Indices]:
    """Samples of ``2 * n_pairs`` random halves of the subjects, each followed by its rest.

    Halves have their share of each class, or of low and high scores.
    """
    _, first, member = np.unique(subjects, return_index=True, return_inverse=True)
    if numeric:
        if first.size < 4:
            raise ValueError(
                f"Halves need at least 4 participants with a score, but there are {first.size}."
            )
        scores = pd.Series(codes).groupby(member).mean().to_numpy()
        parts = [split_by_score(scores, 2, random_state)[member] for _ in range(n_pairs)]
        return [np.flatnonzero(part == half) for part in parts for half in (0, 1)]
    label = codes[first]
    for code in np.unique(codes):
        if np.sum(label == code) < 2:
            raise ValueError(
                "Halves of the participants need at least 2 participants of each class, but "
                f"class number {code} has {np.sum(label == code)}."
            )
    halves = []
    for _ in range(n_pairs):
        inside = np.zeros(first.size, dtype=bool)
        for code in np.unique(label):  # an odd subject goes to either half with equal chance
            members = random_state.permutation(np.flatnonzero(label == code))
            extra = random_state.randint(2) if members.size % 2 else 0
            inside[members[: members.size // 2 + extra]] = True
        halves += [np.flatnonzero(inside[member]), np.flatnonzero(~inside[member])]
    return halves


def _half_ranks(
    selector: BaseEstimator,
    X: NDArray[np.float64],
    codes: NDArray[Any],
    groups: NDArray[Any] | None,
    impute: bool,
    left_out: list[Indices],
) -> NDArray[np.intp]:
    """Ranks on several halves, each given by the samples it leaves out."""
    if not impute:
        return rank_grid(selector, X, codes, [{}], held_out=left_out, groups=groups)[:, 0]
    rankings = []
    for train in training_samples(codes.size, left_out):
        imputed = Scaling.learn(X[train]).imputed(X[train])
        subjects = None if groups is None else groups[train]
        rankings.append(rank_grid(selector, imputed, codes[train], [{}], groups=subjects)[0, 0])
    return np.array(rankings)


def _stability_of_pairs(selections: NDArray[np.bool_]) -> Stability:
    """Return the mean of Nogueira's measure over pairs of halves without shared subjects."""
    pairs = selections.reshape(-1, 2, selections.shape[1])
    values = np.array([selection_stability(pair).value for pair in pairs])
    if len(values) == 1:
        return selection_stability(selections)
    mean, error = float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))
    half = float(special.ndtri(0.975)) * error
    return Stability(mean, mean - half, min(mean + half, 1.0), len(selections))


@dataclass(frozen=True, slots=True)
class Stability:
    """Stability with its 95 % CI over selections from the same subjects, not over studies.

    1 is the same selection every time, 0 what random selections of the same sizes would give;
    NaN where it is undefined (fewer than two selections; nothing or everything selected).
    """

    value: float
    low: float
    high: float
    n: int

    @property
    def verdict(self) -> str:
        """In words, by the thresholds the authors took over from Fleiss: 0.4 and 0.75."""
        if np.isnan(self.value):
            return "undefined"
        if self.value > 0.75:
            return "excellent"
        return "fair to good" if self.value >= 0.4 else "poor"


def selection_stability(selected: ArrayLike) -> Stability:
    """Nogueira's stability of several selections from the same features.

    The measure is corrected for chance, allows selections of different sizes, and reaches 1
    exactly when all selections agree. For selections of one size it is the mean of Kuncheva's
    index over all pairs. The 95 % interval is asymptotic in the number of selections; for
    selections from parts of the same subjects it says nothing about other subjects.

    Parameters
    ----------
    selected : array-like of bool, shape (n_selections, n_features)
        One row per fold and repetition.

    Returns
    -------
    Stability

    References
    ----------
    .. [1] Nogueira, Sechidis, Brown, "On the stability of feature selection algorithms",
       JMLR 18(174), 2018: Definition 4, Theorem 7 and Corollary 8.

    Examples
    --------
    >>> stability = selection_stability([[1, 1, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0]])
    >>> round(stability.value, 3), stability.verdict
    (0.333, 'poor')
    """
    matrix = np.asarray(selected)
    if matrix.ndim != 2 or matrix.shape[1] == 0:
        raise ValueError("selected must have one row per selection and one column per feature.")
    if not np.isin(matrix, (0, 1)).all():
        raise ValueError("selected must hold only True and False.")
    chosen = matrix.astype(float)
    n, d = chosen.shape
    share = chosen.mean(axis=1).mean() if n else 0.0
    if n < 2 or share == 0 or share == 1:
        return Stability(np.nan, np.nan, np.nan, n)
    frequency = chosen.mean(axis=0)
    by_chance = share * (1 - share)
    value = 1 - n / (n - 1) * float((frequency * (1 - frequency)).mean()) / by_chance
    sizes = chosen.sum(axis=1) / d
    influence = (
        chosen @ frequency / d
        - sizes * share
        + value / 2 * (2 * sizes * share - sizes - share + 1)
    ) / by_chance
    error = 2 / n * float(np.sqrt(((influence - influence.mean()) ** 2).sum()))
    half = float(special.ndtri(0.975)) * error
    return Stability(float(value), float(value - half), float(min(value + half, 1.0)), n)


def false_selections(
    threshold: float, q: float, n_features: int, n_pairs: int, assumption: str = "unimodal"
) -> float:
    """Bound on the expected number of features selected by chance."""
    if threshold <= 0.5:
        return np.inf
    by_chance = q**2 / n_features
    general = by_chance / (2 * threshold - 1)
    share = q / n_features
    lowest = min(0.5 + share**2, 0.5 + 0.5 / n_pairs + 0.75 * share**2)
    if assumption == "none" or share > 1 / np.sqrt(3) or threshold <= min(lowest, 0.75):
        return float(general)
    if threshold <= 0.75:
        room = 2 * threshold - 1 - 0.5 / n_pairs
        factor = 0.5 / room if room > 0 else np.inf
    else:
        factor = 4 * (1 - threshold + 0.5 / n_pairs) / (1 + 1 / n_pairs)
    return float(min(general, by_chance * factor))


def smallest_threshold(
    max_false: float, q: float, n_features: int, n_pairs: int, assumption: str = "unimodal"
) -> float | None:
    """Smallest attainable frequency whose bound is at most ``max_false``, or None."""
    halves = 2 * n_pairs
    for count in range(n_pairs + 1, halves + 1):
        bound = false_selections(count / halves, q, n_features, n_pairs, assumption)
        if bound <= max_false * (1 + 1e-12):
            return count / halves
    return None
