"""Choosing settings: inner folds decide, or every setting is scored and kept."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idfsmec.evaluation._classify import boosting_decisions
from idfsmec.evaluation._fold_data import FoldData
from idfsmec.evaluation._rank import Order, rank_all, rank_inner, rank_timed
from idfsmec.evaluation.methods import Contestant
from idfsmec.evaluation.protocol import METRICS, Protocol
from idfsmec.metrics import Scores, score_decisions
from idfsmec.selection import IDFSMEC
from idfsmec.selection.linear_svm import svm_decisions


@dataclass
class UnitResult:
    """What one unit gives: a row per k (and setting), its order of features, timings apart.

    ``rankings`` holds column indices, best first, cut at the largest k; a row's ``order`` says
    which of them it is scored with.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    rankings: list[list[int]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def chosen_row(self) -> dict[str, Any] | None:
        """The row that tuning picked, if it picked one."""
        return next((row for row in self.rows if row["chosen"]), None)


class _Scorer:
    """Scores of feature sets on one split; a set that comes twice is fitted once."""

    def __init__(
        self,
        data: FoldData,
        contestant: Contestant,
        protocol: Protocol,
        seed: int,
        wanted: Sequence[str] = METRICS,
    ) -> None:
        self._data = data
        self._contestant = contestant
        self._protocol = protocol
        self._seed = seed
        self._wanted = wanted
        self._known: dict[tuple[bytes, float], Scores] = {}

    def score(self, order: Order, k: int, C: float) -> Scores:
        # Sorted columns: the result must not depend on the order inside the set.
        columns = np.sort(order[:k])
        key = (columns.tobytes(), C)
        if key not in self._known:
            self._known[key] = self._fit(columns, C)
        return self._known[key]

    def _fit(self, columns: NDArray[np.intp], C: float) -> Scores:
        data, weight = self._data, self._protocol.class_weight
        if self._contestant.classifier == "boosting":
            decisions = boosting_decisions(
                data.train_gappy[:, columns],
                data.y_train,
                data.test_gappy[:, columns],
                n_classes=data.n_classes,
                class_weight=weight,
                seed=self._seed,
            )
        else:
            decisions = svm_decisions(
                data.train[:, columns],
                data.y_train,
                data.test[:, columns],
                n_classes=data.n_classes,
                C=C,
                class_weight=weight,
            )
        return score_decisions(decisions, data.y_test, data.subjects_test, self._wanted)


def evaluate(contestant: Contestant, data: FoldData, protocol: Protocol, seed: int) -> UnitResult:
    """Select, classify and score one contestant on one outer fold."""
    ks = contestant.ks(protocol.ks, data.gappy.shape[1])
    if protocol.tuning == "nested":
        result = _nested(contestant, data, protocol, ks, seed)
    elif protocol.tuning == "time":
        result = _time(contestant, data, ks, seed)
    else:
        result = _everything(contestant, data, protocol, ks, seed)
    sizes = {
        "n_train": data.y_train.size,
        "n_test": data.y_test.size,
        "n_channels": int(data.channel_of.max()) + 1,
    }
    for row in result.rows:
        row.update(sizes)
    return result


def _nested(
    contestant: Contestant, data: FoldData, protocol: Protocol, ks: Sequence[int], seed: int
) -> UnitResult:
    """Let inner folds pick the setting and C for each k, and k itself."""
    costs, middle = _costs(contestant, protocol)
    settings = range(len(contestant.grid))
    if len(contestant.grid) * len(ks) * len(costs) == 1:
        picks, best_k = {ks[0]: (0, costs[0])}, ks[0]
    else:
        rankings = rank_inner(contestant, data, ks, seed)
        wanted = [protocol.metric]
        scorers = [_Scorer(part, contestant, protocol, seed, wanted) for part in data.inner]

        def inner_score(setting: int, k: int, C: float) -> float:
            values = [
                scorer.score(ranked[setting, k], k, C)[protocol.metric]
                for scorer, ranked in zip(scorers, rankings, strict=True)
            ]
            return float(np.nanmean(values)) if np.isfinite(values).any() else -np.inf

        picks, reached = {}, {}
        for k in ks:
            # max() keeps the first of equals: earlier settings, smaller C, smaller k.
            setting = max(settings, key=lambda s: inner_score(s, k, middle))
            C = max(costs, key=lambda c: inner_score(setting, k, c))
            picks[k], reached[k] = (setting, C), inner_score(setting, k, C)
        best_k = max(ks, key=reached.__getitem__)
    outer = _Scorer(data, contestant, protocol, seed)
    result = UnitResult()
    timed = _time_picks(contestant, data, {k: setting for k, (setting, _) in picks.items()}, seed)
    for k in ks:
        setting, C = picks[k]
        order, seconds = timed[k]
        row = _row(contestant, setting, k, C, outer.score(order, k, C), k == best_k)
        _add(result, row, seconds, order[: max(ks)])
    return result


def _time_picks(
    contestant: Contestant, data: FoldData, picks: dict[int, int], seed: int
) -> dict[int, tuple[Order, float]]:
    """Rank the whole training fold with the setting picked for each k, and take the time."""
    timed: dict[int, tuple[Order, float]] = {}
    for setting in dict.fromkeys(picks.values()):
        ks = [k for k, own in picks.items() if own == setting]
        # An order that holds for all k is computed as far as the largest one.
        wanted = ks if contestant.depends_on_k else [*ks, max(picks)]
        found = rank_timed(contestant, data, contestant.grid[setting], wanted, seed)
        timed.update({k: found[k] for k in ks})
    return timed


def _everything(
    contestant: Contestant, data: FoldData, protocol: Protocol, ks: Sequence[int], seed: int
) -> UnitResult:
    """Score all settings on the held-out fold; who is chosen is decided over all folds."""
    costs, middle = _costs(contestant, protocol)
    if protocol.tuning == "grid":
        costs = (middle,)
    began = time.perf_counter()
    rankings = rank_all(contestant, data, ks, seed)
    each = (time.perf_counter() - began) / len(contestant.grid)
    scorer = _Scorer(data, contestant, protocol, seed)
    result = UnitResult()
    for setting in range(len(contestant.grid)):
        for k in ks:
            for C in costs:
                order = rankings[setting, k]
                row = _row(contestant, setting, k, C, scorer.score(order, k, C), False)
                _add(result, row, each, order[: max(ks)])
    return result


def _time(contestant: Contestant, data: FoldData, ks: Sequence[int], seed: int) -> UnitResult:
    """Only select, with the first setting, and look at the clock."""
    order, seconds = rank_timed(contestant, data, contestant.grid[0], [max(ks)], seed)[max(ks)]
    nothing = dict.fromkeys(METRICS, float("nan"))
    result = UnitResult()
    row = _row(contestant, 0, max(ks), float("nan"), nothing, False)
    _add(result, row, seconds, order[: max(ks)])
    return result


def _costs(contestant: Contestant, protocol: Protocol) -> tuple[tuple[float, ...], float]:
    if contestant.classifier == "boosting":
        return (float("nan"),), float("nan")
    if contestant.svm_costs is None:
        return tuple(protocol.svm_costs), protocol.middle_cost
    return contestant.svm_costs, contestant.svm_costs[(len(contestant.svm_costs) - 1) // 2]


def _row(
    contestant: Contestant, setting: int, k: int, C: float, scores: Scores, chosen: bool
) -> dict[str, Any]:
    params = dict(contestant.grid[setting])
    if np.isfinite(C):
        params["C"] = C
    row = {"k": k, "params": json.dumps(params, sort_keys=True), "chosen": chosen, **scores}
    for name in ("lam", "gamma"):  # other methods may call something else gamma
        row[name] = params.get(name) if isinstance(contestant.selector, IDFSMEC) else None
    return row


def _add(result: UnitResult, row: dict[str, Any], seconds: float, order: Order) -> None:
    """Add a row; rows with the same order of features share it."""
    ranking = order.tolist()
    if ranking not in result.rankings:
        result.rankings.append(ranking)
    result.rows.append({**row, "order": result.rankings.index(ranking)})
    result.seconds.append(seconds)
