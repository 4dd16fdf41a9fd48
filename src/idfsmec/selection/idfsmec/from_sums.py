"""Ranking from sums: summaries of tables that nobody shares, and samples piece by piece."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from idfsmec._columns import channel_columns
from idfsmec._groups import groups_of
from idfsmec._parameters import checks_parameters
from idfsmec.errors import InputError
from idfsmec.missing.association import association_warning
from idfsmec.selection._base import RankingSelector, refuse_infinite
from idfsmec.selection.effects import effects_of_sums
from idfsmec.selection.idfsmec.channel_estimator import ChannelEstimator
from idfsmec.selection.idfsmec.sum_engine import SumEngine
from idfsmec.solver import Cells
from idfsmec.summaries.alike import harmonize_summaries
from idfsmec.summaries.collect import Collector
from idfsmec.summaries.summary import Summary, combine


def is_stored(X: Any) -> bool:
    """Whether it is the name of a table, or a dataset of Arrow, in place of samples."""
    arrow = sys.modules.get("pyarrow.dataset")  # who has a dataset has imported it
    return isinstance(X, str | PathLike) or (arrow is not None and isinstance(X, arrow.Dataset))


class FitsSums(ChannelEstimator, RankingSelector):
    """A selector that learns from sums alone."""

    @checks_parameters
    def fit_summaries(self, summaries: Sequence[Summary], *, harmonize: bool = False) -> Self:
        """Rank features and channels from summaries, as if their tables were one.

        The ranking is that of ``fit`` on all rows with the people as ``groups``: scores agree to
        rounding, if nothing was withheld and all tables have all folds.

        Parameters
        ----------
        summaries : sequence of Summary
            From :func:`idfsmec.summarise`. They may have different channels, and lack classes.
        harmonize : bool, default=False
            Bring hospitals, each of which is a summary, to one location and scale first: the
            ranking is that of all rows after :class:`idfsmec.prediction.SiteHarmonizer`.

        Returns
        -------
        self : IDFSMEC
            Its ``effects_`` have neither intervals nor AUC, which need people.

        Examples
        --------
        >>> import numpy as np, pandas as pd
        >>> from idfsmec import IDFSMEC, FeatureTable, summarise
        >>> rng = np.random.default_rng(0)
        >>> y = np.tile(["HC", "MDD"], 30)
        >>> def hospital(name):
        ...     X = pd.DataFrame(rng.normal(size=(60, 2)), columns=["F3__alpha", "Cz__alpha"])
        ...     X["Cz__alpha"] += y == "MDD"
        ...     return FeatureTable(X, y, [f"{name}{i}" for i in range(60)])
        >>> shared = [summarise(hospital(name)) for name in "abc"]
        >>> IDFSMEC(n_features_to_select=1).fit_summaries(shared).get_feature_names_out()
        array(['Cz__alpha'], dtype=object)
        """
        parts = list(summaries)
        self._fit_sums(combine(harmonize_summaries(parts) if harmonize else parts))
        return self

    @checks_parameters
    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Add samples to those of earlier calls, and rank from the sums over all of them.

        Samples are summed up and forgotten. Of people, hashes of their names and their sums are
        kept, since a person may come again: memory grows with people x features. The ranking is
        that of :meth:`fit` on all pieces.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN where a channel is missing.
        y : array-like of shape (n_samples,)
            Class labels; a piece may lack some. There is no ranking before two were seen.
        groups : array-like of shape (n_samples,), optional
            Who each sample comes from; by default what an index of X named ``subject`` says. With
            neither, every sample is a person of its own.

        Returns
        -------
        self : IDFSMEC
        """
        first = not hasattr(self, "_collector")
        people = groups_of(X, groups)
        checked, labels = validate_data(
            self, X, y, dtype=np.float64, ensure_all_finite=False, reset=first
        )
        labels = column_or_1d(labels)
        check_classification_targets(labels)
        names = getattr(self, "feature_names_in_", None)
        known = [f"x{j}" for j in range(checked.shape[1])] if names is None else list(names)
        refuse_infinite(type(self).__name__, checked, known)
        if first:
            self._collector = Collector(known, self._channel_labels(len(known), names))
        self._collector.add(checked, labels, people)
        if len(self._collector.labels) > 1:
            self._fit_sums(self._collector.summary(), named=names is not None)
        return self

    def _fit_stored(self, source: Any, *given: Any) -> None:
        """Rank a table on the disk, which says itself what is known of its rows."""
        if any(one is not None for one in given):
            raise InputError(
                f"{type(self).__name__} got the name of a table, and besides it y, groups or "
                "sample_weight: labels and people are columns of the table, and its samples have "
                "no weights."
            )
        from idfsmec.summaries.summarise import collected

        channels = None if self.channels is None else np.asarray(self.channels).tolist()
        self._fit_sums(collected(source, channels).summary(), depth=1)

    def rank_cells(self, summary: Summary, parts: Sequence[Cells]) -> NDArray[np.intp]:
        """Rank features on parts of the people of a summary, such as its halves.

        Returns
        -------
        ranks : ndarray of shape (n_parts, n_features)
        """
        fits = SumEngine.of(summary, **self._options()).solve_each(parts, self.lam)
        return np.array([fits.weigh(self.gamma, fold=at).ranking for at in range(len(parts))])

    def _channel_labels(self, n_features: int, names: Any) -> list[Any]:
        found, columns = channel_columns(self.channels, n_features, names)
        labels = np.empty(n_features, dtype=object)
        for name, own in zip(found.tolist(), columns, strict=True):
            labels[own] = name
        return labels.tolist()

    def _fit_sums(self, summary: Summary, *, named: bool = True, depth: int = 0) -> None:
        engine = SumEngine.of(summary, **self._options())
        fits = engine.solve([self.lam])
        fits.warn(stacklevel=6 + depth)
        self.n_features_in_ = len(summary.columns)
        if named:
            self.feature_names_in_ = np.array(summary.columns, dtype=object)
        self.classes_ = np.array(summary.labels)
        self.channel_names_ = engine.channel_names
        self.missingness_ = summary.missingness()
        if said := association_warning(self.missingness_):
            warnings.warn(said, UserWarning, stacklevel=5 + depth)
        self.__dict__["effects_"] = effects_of_sums(
            summary.feature_sums(), summary.labels, [str(column) for column in summary.columns]
        )
        self.__dict__.pop("_samples", None)
        weighing = self._hold(fits)
        self._set_ranking(weighing.scores, weighing.order)
