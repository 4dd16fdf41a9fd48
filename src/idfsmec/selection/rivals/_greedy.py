"""Forward search shared by the information filters: relevance first, then a pairwise criterion."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from idfsmec._parameters import Constraints, StrOptions, integer
from idfsmec.selection._base import CompleteSelector, count_features
from idfsmec.selection.rivals._discretize import Strategy, discretize
from idfsmec.selection.rivals._mutual_information import PairInformation

# Criteria closer than this are ties (rounding only): the first column wins.
_TIE = 1e-12
# Indicator columns per matrix product: enough for BLAS to work well, few enough to waste little
# when a feature computed ahead is never chosen.
_COLUMNS_AHEAD = 40
# Table cells that cost less than another call: few features are all judged at once.
_CELLS_AHEAD = 2**18


class GreedyInformationSelector(CompleteSelector):
    """A filter that adds one feature at a time, judged against those chosen before.

    A subclass says how a pair of features is judged (:meth:`_judge_pairs`), how judgements
    over the chosen features are combined (:attr:`_combine`) and how the criterion follows
    from them (:meth:`_criterion`).
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "n_bins": [integer(2, 255), None],
        "strategy": [StrOptions({"quantile", "uniform"})],
    }

    n_bins: int | None
    strategy: Strategy
    _combine: np.ufunc = np.add
    _with_classes = False

    def _rank(self, X: NDArray[np.float64], y: NDArray[np.intp]) -> None:
        codes = discretize(X, self.n_bins, self.strategy)
        information = PairInformation(codes, y)
        candidates = np.ptp(codes, axis=0) > 0
        wanted = min(count_features(self.n_features_to_select, X.shape[1]), int(candidates.sum()))
        order, self.criterion_ = self._search(information, candidates, wanted)
        self.relevance_ = information.relevance
        self._set_order(order)

    @abstractmethod
    def _judge_pairs(
        self, information: PairInformation, others: NDArray[np.intp]
    ) -> NDArray[np.float64]:
        """Judge all features against each of `others`, shape (n_features, len(others))."""

    @abstractmethod
    def _criterion(
        self, information: PairInformation, combined: NDArray[np.float64], n_chosen: int
    ) -> NDArray[np.float64]:
        """Value of every feature given the combined judgements; the highest is chosen next."""

    def _search(
        self, information: PairInformation, candidates: NDArray[np.bool_], n_wanted: int
    ) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Choose `n_wanted` candidates one by one, then order the rest by the last criterion."""
        values = information.relevance.copy()
        criterion = values.copy()
        combined = np.full(information.n_features, np.inf)
        if self._combine is np.add:
            combined[:] = 0
        judgements = _JudgementsAhead(self, information)
        left = candidates.copy()
        chosen: list[int] = []
        for _ in range(n_wanted):
            best = first_best(values, left)
            criterion[best] = values[best]
            chosen.append(best)
            left[best] = False
            if not left.any():
                break
            combined = self._combine(combined, judgements.of(best, values, left))
            values = self._criterion(information, combined, len(chosen))
        criterion[left] = values[left]
        return search_order(chosen, values, candidates), criterion


class _JudgementsAhead:
    """Pair judgements, computed for the likely next choices too while the data is at hand."""

    def __init__(self, selector: GreedyInformationSelector, information: PairInformation) -> None:
        self._selector = selector
        self._information = information
        columns = information.n_values * (information.n_classes if selector._with_classes else 1)
        rows = information.n_values * information.n_features
        self._n_ahead = max(1, _COLUMNS_AHEAD // columns, _CELLS_AHEAD // (rows * columns))
        self._known: dict[int, NDArray[np.float64]] = {}

    def of(
        self, feature: int, values: NDArray[np.float64], left: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """Judgements of all features against `feature`; each is asked for once."""
        if feature not in self._known:
            unknown = left.copy()
            unknown[list(self._known)] = False
            likely = np.flatnonzero(unknown)
            n_more = self._n_ahead - 1
            if likely.size > n_more:
                nearest = np.argpartition(-values[likely], n_more)[:n_more]
                likely = likely[np.sort(nearest)]
            batch = np.concatenate([[feature], likely]).astype(np.intp)
            judged = self._selector._judge_pairs(self._information, batch)
            self._known.update(zip(batch.tolist(), judged.T, strict=True))
        return self._known.pop(feature)


def first_best(values: NDArray[np.float64], left: NDArray[np.bool_]) -> int:
    """Index of the highest value among those left; of equals, the first."""
    open_values = np.where(left, values, -np.inf)
    return int(np.argmax(open_values >= open_values.max() - _TIE))


def search_order(
    chosen: list[int], values: NDArray[np.float64], candidates: NDArray[np.bool_]
) -> NDArray[np.intp]:
    """Order all features: chosen ones, other candidates by value, then the rest.

    Examples
    --------
    >>> import numpy as np
    >>> search_order([3], np.array([0.1, 0.5, 0.9, 0.0]), np.array([True, True, False, True]))
    array([3, 1, 0, 2])
    """
    left = candidates.copy()
    left[chosen] = False
    rest = np.flatnonzero(left)
    rest = rest[np.argsort(-np.round(values[rest], 12), kind="stable")]
    return np.concatenate([chosen, rest, np.flatnonzero(~candidates)]).astype(np.intp)
