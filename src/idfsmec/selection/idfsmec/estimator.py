"""IDFSMEC: features and channels ranked from samples in which channels are missing."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from idfsmec._columns import observed_channels
from idfsmec._parameters import check_parameters, checks_parameters
from idfsmec.missing.association import association_warning, missingness_by_class
from idfsmec.selection.effects import feature_effects
from idfsmec.selection.grid import Setting, rank_each, training_samples
from idfsmec.selection.idfsmec.engine import table_engine
from idfsmec.selection.idfsmec.from_sums import FitsSums, is_stored

# Settings that share the solved channels, or do not change the ranking.
_SHARED = {"lam", "gamma", "n_features_to_select"}


class IDFSMEC(FitsSums):
    """Feature selection with missing channels (IDFS-MEC).

    Every channel is fitted by orthogonal regression on the samples that have it; the regression
    weighs its features (``feature_weights_``), avoids features that repeat each other, and its
    loss on people it has not seen weighs the channel (``channel_weights_``). A feature's score is
    the product of both weights. Values at samples where a channel is missing are never used and
    never invented. A channel is any block of features that goes missing together: an electrode, an
    audio recording, a questionnaire.

    Parameters
    ----------
    channels : array-like of shape (n_features,), optional
        Label per feature. By default the part of the column name before the last ``"__"``; if
        the columns have no such names, all features form one channel.
    n_features_to_select : int or float, default=20
        How many features to keep: a number (all, if there are fewer) or a fraction.
    lam : float, default=1.0
        Redundancy weight, >= 0: what it costs to use features of a channel that repeat each
        other. Small values give few features per channel.
    gamma : float, default=2.0
        How evenly channels are weighted, > 1. Close to 1 the best channel takes all.
    channel_loss : {"held-out", "in-sample"}, default="held-out"
        The loss that weighs channels. ``"held-out"``: the squared error of predicted class
        indicators on people left out by four folds, dealt twice, of whom each counts once, as
        the mean over the people of each class who have the channel, averaged by the classes'
        shares among all samples. Predictions count as clipped to [0, 1], as far as their mean and
        variance tell: all of it follows from sums, so that :meth:`fit_summaries` finds the same.
        ``"in-sample"`` is the paper's ``objective_``, by which a channel that one class hardly has
        looks good even if it is noise.
    lam_scale : {"samples", "paper"}, default="samples"
        The loss is a sum over samples, the redundancy is not. ``"samples"`` multiplies ``lam`` by
        the number of samples over 1000 (by the sum of their weights, if these are given), so that
        it means the same for any number of samples; ``"paper"`` takes it as it is.
    standardize : bool, default=True
        Scale every feature to unit variance over its observed samples. The objective is not
        scale invariant, so switch this off only if your features have comparable units.
    missing_correction : {"ipw", None}, default="ipw"
        ``"ipw"`` divides a channel's loss by the share of samples that have it. ``None`` is the
        paper's plain sum, which favours channels that are often missing.
    channel_weighting : bool, default=True
        False weighs all channels alike (an ablation).
    missing_indicator : bool, default=True
        False fills missing values with the mean and treats them as observed (an ablation).
    tol : float, default=1e-6
        A channel is solved when its first-order conditions hold to this relative accuracy.
    max_iter : int, default=10000
        Iterations after which a channel is given up, with a warning.
    device : str, optional
        Solve on this PyTorch device, ``"cuda"`` for instance (extra ``gpu``). Worth it for grids
        of thousands of problems; a single fit is faster without.

    Attributes
    ----------
    channel_names_ : ndarray of shape (n_channels,)
        In order of first appearance.
    channel_weights_ : ndarray of shape (n_channels,)
        alpha; sums to 1. Zero for channels that carry nothing.
    feature_weights_ : ndarray of shape (n_features,)
        theta; sums to 1 within each channel that carries something.
    scores_ : ndarray of shape (n_features,)
        ``alpha * theta``.
    ranking_ : ndarray of shape (n_features,)
        1 is best. By score; features with score 0 by what adding them alone to their channel's
        model would gain, weighted by alpha; then constant features and those of channels that
        carry nothing; ties in column order.
    support_ : ndarray of shape (n_features,)
    objective_ : ndarray of shape (n_channels,)
        Final loss U of every channel; infinite for channels that carry nothing.
    held_out_loss_ : ndarray of shape (n_channels,) or None
        Mean squared error of every channel on people left out; infinite where too few people of a
        class have the channel to test it. None where it does not weigh the channels: with
        ``channel_loss="in-sample"``, with ``channel_weighting=False``, or (with a warning) if
        people are too few.
    objective_history_ : ndarray of shape (n_iter + 1,)
        The weighted sum over channels after each iteration; never rises.
    kkt_residuals_ : ndarray of shape (n_channels,)
        How well the first-order conditions hold.
    n_iter_ : int
        Iterations of the slowest channel.
    missingness_ : DataFrame
        Who has each channel, by class and by person, with an exact test of whether that goes with
        the label; see :func:`idfsmec.missing.missingness_by_class`. Where it does, ``fit`` warns.
    effects_ : DataFrame
        Direction and size of every feature by person; see
        :func:`idfsmec.selection.feature_effects`. Computed when first asked for, from X as it is
        then; a selector that was pickled before has none, since it does not carry its samples.
        From sums, without intervals and AUC.
    classes_ : ndarray of shape (n_classes,)
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
    >>> selector = IDFSMEC(n_features_to_select=1).fit(X, y)
    >>> selector.get_feature_names_out()
    array(['F3__alpha'], dtype=object)
    """

    def __init__(
        self,
        channels: ArrayLike | None = None,
        *,
        n_features_to_select: int | float = 20,
        lam: float = 1.0,
        gamma: float = 2.0,
        channel_loss: str = "held-out",
        lam_scale: str = "samples",
        standardize: bool = True,
        missing_correction: str | None = "ipw",
        channel_weighting: bool = True,
        missing_indicator: bool = True,
        tol: float = 1e-6,
        max_iter: int = 10_000,
        device: str | None = None,
    ) -> None:
        self.channels = channels
        self.n_features_to_select = n_features_to_select
        self.lam = lam
        self.gamma = gamma
        self.channel_loss = channel_loss
        self.lam_scale = lam_scale
        self.standardize = standardize
        self.missing_correction = missing_correction
        self.channel_weighting = channel_weighting
        self.missing_indicator = missing_indicator
        self.tol = tol
        self.max_iter = max_iter
        self.device = device

    @checks_parameters
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
        X : array-like of shape (n_samples, n_features), path or pyarrow.dataset.Dataset
            NaN where a channel is missing. A channel some of whose features are NaN at a sample
            counts as missing there. The path of a table, or of a folder of Parquet files, stands
            for the table, which has labels and people itself. It is read a few rows at a time and
            summed up, so it may be larger than the memory; ``effects_`` then have neither
            intervals nor AUC.
        y : array-like of shape (n_samples,)
            Class labels.
        groups : array-like of shape (n_samples,), optional
            Who each sample comes from, such as subjects; by default what an index of X named
            ``subject`` says. With neither, every sample is a person of its own.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights; the indicator of who has a channel generalises to them.

        Returns
        -------
        self : IDFSMEC
        """
        self.__dict__.pop("_collector", None)
        if is_stored(X):
            self._fit_stored(X, y, groups, sample_weight)
            return self
        engine = self._engine(X, y, groups, sample_weight)
        fits = engine.solve([self.lam])
        fits.warn()
        self.missingness_ = missingness_by_class(
            observed_channels(engine.X, engine.columns),
            engine.classes[engine.target],
            engine.groups,
            engine.channel_names,
        )
        if said := association_warning(self.missingness_):
            warnings.warn(said, UserWarning, stacklevel=3)
        self._samples = engine.X, engine.classes[engine.target], engine.groups
        self.__dict__.pop("effects_", None)
        weighing = self._hold(fits)
        self._set_ranking(weighing.scores, weighing.order)
        return self

    @cached_property
    def effects_(self) -> pd.DataFrame:
        """Direction and size of every feature, by person."""
        if "_samples" not in vars(self):
            raise AttributeError(
                "effects_ is computed from the samples of fit, which are not there: fit the "
                "selector first, or ask for effects_ before pickling it."
            )
        X, y, groups = self._samples
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(X.shape[1])])
        return feature_effects(X, y, groups, names=list(map(str, names)))

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in super().__getstate__().items() if key != "_samples"}

    def rank_grid(
        self,
        X: ArrayLike,
        y: ArrayLike,
        settings: Sequence[Setting],
        *,
        held_out: Sequence[NDArray[np.intp]] | None = None,
        groups: ArrayLike | None = None,
    ) -> NDArray[np.intp]:
        """Rank features with every setting on every fold, all channels in one batch.

        See :func:`idfsmec.selection.grid.rank_grid`. Settings of ``lam`` and ``gamma`` share one
        batch; others, and folds that lack a class, are fitted one by one.

        Returns
        -------
        ranks : ndarray of shape (n_folds, n_settings, n_features)
        """
        if any(set(setting) - _SHARED for setting in settings):
            return rank_each(self, X, y, settings, held_out=held_out, groups=groups)
        name, own = type(self).__name__, self.get_params(deep=False)
        for setting in settings:
            check_parameters(name, self._parameter_constraints, {**own, **setting})
        engine = table_engine(name, X, y, self.channels, groups=groups, **self._options())
        for kept in training_samples(engine.target.size, held_out):
            # The regression has a column per class: without one of them it is another problem.
            if np.unique(engine.target[kept]).size < engine.n_classes:
                return rank_each(self, X, y, settings, held_out=held_out, groups=groups)
        pairs = [(one.get("lam", self.lam), one.get("gamma", self.gamma)) for one in settings]
        lams = list(dict.fromkeys(lam for lam, _ in pairs))
        fits = engine.solve(lams, held_out)
        fits.warn(stacklevel=4)
        return np.array(
            [
                [fits.weigh(gamma, fold=fold, lam=lams.index(lam)).ranking for lam, gamma in pairs]
                for fold in range(len(fits.moments))
            ]
        )
