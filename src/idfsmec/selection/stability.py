"""StabilitySelector: which features a selector finds again on other subjects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Tags, check_random_state, get_tags
from sklearn.utils.validation import validate_data

from idfsmec._columns import channel_codes, channel_columns, observed_channels
from idfsmec._groups import groups_of
from idfsmec._parameters import (
    N_JOBS,
    Constraints,
    HasMethods,
    StrOptions,
    checks_parameters,
    fraction,
    integer,
    number,
)
from idfsmec._workers import attend
from idfsmec.errors import InputError
from idfsmec.progress import Listener, Steps
from idfsmec.selection._base import RankingSelector, encode_labels, ranks, refuse_infinite
from idfsmec.selection.agreement import (
    ASSUMPTIONS,
    Stability,
    false_selections,
    selection_stability,
    smallest_threshold,
)
from idfsmec.selection.halves import complementary_halves, fold_halves, half_ranks
from idfsmec.selection.idfsmec.estimator import IDFSMEC
from idfsmec.summaries.summary import Summary, combine

Indices = NDArray[np.intp]

# Numbers that the moments of a batch of halves may take: 256 MiB.
_ELEMENTS = 2**25
# So many parts say how far the work is: none of fewer halves than this, or, in a single process,
# of fewer channels to solve, which the solver then shares among cores.
_PARTS, _FEW_HALVES, _SHARED = 20, 100, 2**14


class StabilitySelector(RankingSelector):
    """Keep the features that a selector picks again and again on random halves of the subjects.

    Subjects (not samples) are split in two halves at random, many times, with equally many of
    each class in both halves; the selector runs on every half. The share of halves on which a
    feature is picked, its selection frequency, tells how stable the selection is, and a threshold
    on it bounds the number of features picked by chance [1]_ [2]_.

    Parameters
    ----------
    estimator : selector, optional
        Any selector with ``n_features_to_select`` and ``ranking_``, such as those of
        :mod:`idfsmec.selection`; by default :class:`IDFSMEC`. One that takes no NaN gets
        each half filled with that half's means.
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
        Channels that were not once observed for more than one class. Their features are never
        picked and do not count among those there are.
    selections_ : ndarray of bool, shape (n_resamples, n_features)
    stability_ : Stability
        Nogueira's measure of the selections with its interval. Halves overlap, so read the
        interval as a description of these resamples, not of new studies.
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
        # Lower frequencies bound nothing.
        "threshold": [number(0.5, 1, closed="right"), None],
        "max_false": [number(0)],
        "assumption": [StrOptions(set(ASSUMPTIONS))],
        "channels": ["array-like", None],
        "random_state": ["random_state"],
        "n_jobs": N_JOBS,
        "progress": [callable, None],
    }

    def __init__(
        self,
        estimator: BaseEstimator | None = None,
        *,
        n_features_to_select: int | float | None = None,
        n_resamples: int = 100,
        threshold: float | None = None,
        max_false: float = 1.0,
        assumption: str = "unimodal",
        channels: ArrayLike | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        progress: Listener | None = None,
    ) -> None:
        self.estimator = estimator
        self.n_features_to_select = n_features_to_select
        self.n_resamples = n_resamples
        self.threshold = threshold
        self.max_false = max_false
        self.assumption = assumption
        self.channels = channels
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    @checks_parameters
    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> Self:
        """Run the selector on random halves of the subjects.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN where a channel is missing.
        y : array-like of shape (n_samples,)
            Class labels.
        groups : array-like of shape (n_samples,), optional
            Subject of every sample; by default what an index of X named ``subject`` says. With
            neither, every sample is a subject of its own.

        Returns
        -------
        self : StabilitySelector
        """
        if self.n_resamples % 2:
            raise ValueError(f"n_resamples must be even, for pairs, got {self.n_resamples!r}.")
        checked, labels = validate_data(self, X, y, dtype=np.float64, ensure_all_finite=False)
        names = getattr(self, "feature_names_in_", np.arange(checked.shape[1]))
        refuse_infinite(type(self).__name__, checked, names)
        codes, self.classes_ = encode_labels(labels)
        given = groups_of(X, groups)
        subjects = np.arange(codes.size) if given is None else given
        selector = self._selector(checked.shape[1])
        halves = complementary_halves(
            subjects, codes, self.n_resamples // 2, check_random_state(self.random_state)
        )
        rankings = self._rankings(selector, checked, codes, halves, given)
        self._find_dead(checked, codes)
        self._count(rankings, selector.n_features_to_select)
        return self

    @checks_parameters
    def fit_summaries(self, summaries: Sequence[Summary]) -> Self:
        """Run :class:`IDFSMEC` on halves of the people of summaries: on two of their four folds.

        Sums tell no random halves, but those that folds make: three pairs for each of the two
        ways in which people were dealt, so that there are twelve halves whatever ``n_resamples``
        says. That bounds false selections by less than a hundred would. Halves in which a class
        is missing are left out, with their other half.

        Parameters
        ----------
        summaries : sequence of Summary
            As of :meth:`IDFSMEC.fit_summaries`.

        Returns
        -------
        self : StabilitySelector

        Raises
        ------
        InputError
            No folds have people of every class, or the estimator is another one.

        Examples
        --------
        >>> import numpy as np, pandas as pd
        >>> from idfsmec import FeatureTable, summarise
        >>> rng = np.random.default_rng(0)
        >>> y, names = np.arange(120) % 2, [f"{ch}__{k}" for ch in ("F3", "Cz") for k in "abcde"]
        >>> X = pd.DataFrame(rng.normal(size=(120, 10)), columns=names)
        >>> X["F3__d"] += 2 * y
        >>> table = FeatureTable(X, np.where(y, "MDD", "HC"), [f"s{i}" for i in range(120)])
        >>> stable = StabilitySelector(n_features_to_select=1).fit_summaries([summarise(table)])
        >>> stable.get_feature_names_out(), len(stable.selections_)
        (array(['F3__d'], dtype=object), 12)
        """
        whole = combine(list(summaries))
        self.n_features_in_ = len(whole.columns)
        self.feature_names_in_ = np.array(whole.columns, dtype=object)
        self.classes_ = np.array(whole.labels)
        selector = self._selector(self.n_features_in_)
        if not isinstance(selector, IDFSMEC) or self.channels is not None:
            raise InputError("Only IDFSMEC, with the channels of the summaries, needs no rows.")
        self.channel_names_, self._columns = np.array(whole.channels), whole.places
        halves = fold_halves(whole.cells())
        if not halves:
            raise InputError(
                "Halves of the people need every class in two folds and in the others."
            )
        rankings = selector.rank_cells(whole, halves)
        seen = np.stack([one.count[0].sum(axis=0) > 0 for one in whole.sums])
        self.dead_channels_ = seen.sum(axis=1) < 2
        self._count(rankings, selector.n_features_to_select)
        return self

    def _selector(self, n_features: int) -> BaseEstimator:
        """The selector to run, and the channels of the table."""
        selector = clone(IDFSMEC() if self.estimator is None else self.estimator)
        own = getattr(selector, "channels", None) if self.channels is None else self.channels
        names = getattr(self, "feature_names_in_", None)
        self.channel_names_, self._columns = channel_columns(own, n_features, names)
        if hasattr(selector, "channels"):
            selector.set_params(channels=channel_codes(self._columns))
        if self.n_features_to_select is None:
            wanted = max(1, int(np.sqrt(0.8 * n_features)))
        else:
            wanted = self._n_to_select(n_features)
        return selector.set_params(n_features_to_select=wanted)

    def _rankings(
        self,
        selector: BaseEstimator,
        X: NDArray,
        codes: Indices,
        halves: list[Indices],
        groups: NDArray | None,
    ) -> NDArray[np.intp]:
        """Ranks of all features on every half, shape (n_resamples, n_features)."""
        fill = not get_tags(selector).input_tags.allow_nan and bool(np.isnan(X).any())
        # Each half is left out by the other of its pair.
        left_out = [halves[place ^ 1] for place in range(len(halves))]
        size = self._batch_size(len(halves), X.shape[1])
        batches = [slice(first, first + size) for first in range(0, len(halves), size)]
        rank, steps = attend(half_ranks), Steps("halves", len(halves), self.progress)
        found = np.empty((len(halves), X.shape[1]), dtype=np.intp)
        ranked = Parallel(n_jobs=self.n_jobs, return_as="generator")(
            delayed(rank)(selector, X, codes, groups, left_out[batch], fill) for batch in batches
        )
        for batch, ranks_there in zip(batches, ranked, strict=True):
            found[batch] = ranks_there
            steps.done(len(ranks_there))
        return found

    def _batch_size(self, n_halves: int, n_features: int) -> int:
        """Halves that are ranked in one go; each needs a matrix of features per channel."""
        largest = max(own.size for own in self._columns)
        fitting = _ELEMENTS // (n_features * largest)
        n_jobs = effective_n_jobs(self.n_jobs)
        fewest = _FEW_HALVES if n_jobs > 1 else _SHARED // len(self._columns)
        return max(1, min(fitting, max(n_halves // _PARTS, fewest), -(-n_halves // n_jobs)))

    def _find_dead(self, X: NDArray, codes: Indices) -> None:
        """Say which channels were not once observed for more than one class."""
        observed = observed_channels(X, self._columns)
        classes = sum(observed[codes == k].any(axis=0).astype(int) for k in np.unique(codes))
        self.dead_channels_ = np.asarray(classes) < 2

    def _count(self, rankings: NDArray[np.intp], q: int) -> None:
        dead = self.dead_channels_[channel_codes(self._columns)]
        n_features, n_pairs = int((~dead).sum()), len(rankings) // 2
        q = min(q, n_features)
        self.selections_ = (rankings <= q) & ~dead
        self.frequencies_ = self.selections_.mean(axis=0)
        by_channel = [self.selections_[:, own].any(axis=1).mean() for own in self._columns]
        self.channel_frequencies_ = np.where(self.dead_channels_, np.nan, by_channel)
        self.stability_: Stability = selection_stability(self.selections_[:, ~dead])
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
