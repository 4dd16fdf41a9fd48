"""The search without samples: the redundancy weight by what channels cost on people held out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Self

import numpy as np
from numpy.typing import NDArray

from idfsmec._parameters import checks_parameters
from idfsmec.errors import InputError
from idfsmec.selection._base import RankingSelector, count_features
from idfsmec.selection.defaults import USUAL_N_FEATURES
from idfsmec.selection.idfsmec.channel_estimator import ChannelEstimator
from idfsmec.selection.idfsmec.estimator import IDFSMEC
from idfsmec.selection.idfsmec.sum_engine import SumEngine
from idfsmec.selection.tuning import Trial, Tuned, nearest_setting
from idfsmec.summaries.summary import Summary, combine

#: By how many standard errors over the folds another redundancy weight has to be better than
#: the default.
LAM_MARGIN = 1.0

_OF_THE_SELECTOR = (
    "scores_",
    "ranking_",
    "support_",
    "channel_names_",
    "channel_weights_",
    "feature_weights_",
    "n_iter_",
    "missingness_",
)


class SumSearch(ChannelEstimator, RankingSelector):
    """A search that can do with sums, and what every search keeps."""

    lams: Sequence[float]
    gammas: Sequence[float]
    n_features_to_select: Sequence[int | float]

    @checks_parameters
    def fit_summaries(self, summaries: Sequence[Summary]) -> Self:
        """Choose ``lam`` from summaries, then rank from them as if their tables were one.

        Without rows nothing can be classified, but sums tell what every channel's regression
        costs on the people of each fold. The mean of these losses over channels, weighted as they
        weigh in the ranking, chooses among ``lams``: the default of :class:`IDFSMEC`, or what is
        nearest, stays unless the best is better by one standard error over the folds of all
        deals. Losses of channels judge neither ``gamma`` (the closer to 1, the more the best
        channel counts, and the smaller their mean) nor the number of features: of ``gammas`` and
        ``n_features_to_select`` those nearest to the defaults of :class:`IDFSMEC` are taken.
        Parameters of the classification (``costs``, ``cv``, ``filler``, ...) do nothing here.

        Parameters
        ----------
        summaries : sequence of Summary
            As of :meth:`IDFSMEC.fit_summaries`.

        Returns
        -------
        self : IDFSMECCV
            Its scores (``best_score_``, ``cv_results_``) are minus the weighted loss;
            ``best_cost_`` is NaN.

        Raises
        ------
        InputError
            There are too few people of a class for folds.

        Examples
        --------
        >>> import numpy as np, pandas as pd
        >>> from idfsmec import IDFSMECCV, FeatureTable, summarise
        >>> rng = np.random.default_rng(0)
        >>> y, names = np.arange(80) % 2, [f"{ch}__{k}" for ch in ("F3", "Cz") for k in "abc"]
        >>> X = rng.normal(size=(80, 6)) + np.outer(y, [1, 0, 0, 0, 0, 0])
        >>> X = pd.DataFrame(X, columns=names)
        >>> table = FeatureTable(X, np.where(y, "MDD", "HC"), [f"s{i}" for i in range(80)])
        >>> search = IDFSMECCV().fit_summaries([summarise(table)])
        >>> search.best_params_["gamma"], len(search.cv_results_["params"])
        (2.0, 7)
        """
        whole = combine(list(summaries))
        counts = feature_counts(self.n_features_to_select, len(whole.columns))
        usual = nearest_setting([{"k": k} for k in counts], {"k": USUAL_N_FEATURES})
        gamma = self.gammas[nearest_setting([{"gamma": g} for g in self.gammas], _default())]
        engine = SumEngine.of(whole, **self._options())
        tuned = tune_lam(engine, self.lams, gamma, counts[usual])
        self._store(tuned, [{"lam": lam, "gamma": gamma} for lam in self.lams])
        selector = IDFSMEC(**self._options()).set_params(**self.best_params_)
        self._take_over(selector.fit_summaries([whole]))
        for name in ("n_features_in_", "feature_names_in_", "classes_"):
            setattr(self, name, getattr(selector, name))
        return self

    def _take_over(self, selector: IDFSMEC) -> None:
        self.selector_ = selector
        for name in _OF_THE_SELECTOR:
            setattr(self, name, getattr(selector, name))

    def _store(self, tuned: Tuned, settings: list[dict[str, float]]) -> None:
        best = tuned.best
        params = [
            {
                **settings[trial.setting],
                "n_features_to_select": trial.n_features,
                **({} if np.isnan(trial.cost) else {"C": trial.cost}),
            }
            for trial in tuned.trials
        ]
        scores = np.array([trial.scores for trial in tuned.trials])
        mean = np.array([trial.mean for trial in tuned.trials])
        self.cv_results_ = {
            "params": params,
            **{f"param_{name}": np.array([one[name] for one in params]) for name in params[0]},
            **{f"split{fold}_test_score": row for fold, row in enumerate(scores.T)},
            "mean_test_score": mean,
            "std_test_score": scores.std(axis=1),
            "rank_test_score": np.array([(mean > one).sum() + 1 for one in mean], dtype=np.int32),
        }
        self.best_index_ = next(i for i, one in enumerate(tuned.trials) if one is best)
        self.best_params_ = {k: v for k, v in params[self.best_index_].items() if k != "C"}
        self.best_cost_, self.best_score_ = float(best.cost), best.mean


def tune_lam(engine: SumEngine, lams: Sequence[float], gamma: float, n_features: int) -> Tuned:
    """Choose a redundancy weight by the weighted loss of channels on people held out.

    Parameters
    ----------
    engine : SumEngine
    lams : sequence of float
        To choose from.
    gamma : float
        How evenly channels are weighted.
    n_features : int
        Taken as it is.
    """
    losses = _weighted_losses(engine, lams, gamma)
    if not np.isfinite(losses).any():
        raise InputError("Choosing lam needs folds of people of each class, but people are few.")
    trials = [
        Trial(at, n_features, np.nan, tuple((-own).tolist())) for at, own in enumerate(losses)
    ]
    best = trials[nearest_setting([{"lam": lam} for lam in lams], _default())]
    leading = max(trials, key=lambda one: one.mean)
    if leading.is_better(best, LAM_MARGIN):
        best = leading
    return Tuned({n_features: best}, n_features, tuple(trials))


def _weighted_losses(
    engine: SumEngine, lams: Sequence[float], gamma: float
) -> NDArray[np.float64]:
    """Mean loss of the channels on each fold, shape (n_lams, n_folds); NaN where none is judged.

    Channels count by their weights at the redundancy weight, those that a fold cannot judge not.
    """
    fits, held_out = engine.solve_and_hold_out(lams)
    losses = held_out.by_fold()
    alpha = np.stack([fits.weigh(gamma, lam=at).channel_weights for at in range(len(lams))])
    known = np.isfinite(losses)
    weights = np.where(known, alpha, 0.0)
    total = weights.sum(axis=2)
    mean = (weights * np.where(known, losses, 0.0)).sum(axis=2) / np.where(total > 0, total, 1.0)
    return np.where(total > 0, mean, np.nan).T


def _default() -> dict[str, float]:
    own = IDFSMEC()
    return {"lam": own.lam, "gamma": own.gamma}


def feature_counts(wanted: Iterable[int | float], n_features: int) -> list[int]:
    """Numbers of features to try, ascending, none beyond what there is.

    Examples
    --------
    >>> feature_counts([50, 10, 0.25], 40), feature_counts([50, 100], 40)
    ([10], [40])
    """
    fitting = (one for one in wanted if not isinstance(one, Integral) or one <= n_features)
    return sorted({count_features(one, n_features) for one in fitting}) or [n_features]
