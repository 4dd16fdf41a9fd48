"""Orders of features for all settings of a contestant, with shared work done once."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idfsmec.evaluation._fold_data import FoldData
from idfsmec.evaluation.methods import Contestant
from idfsmec.selection import IDFSMEC, IDFSPath, idfs_path
from idfsmec.selection.idfsmec.path import idfs_fold_paths

Order = NDArray[np.intp]
#: From (position of the setting in the grid, k) to column indices, best first.
Ranked = dict[tuple[int, int], Order]


def rank_inner(
    contestant: Contestant, data: FoldData, ks: Sequence[int], seed: int
) -> list[Ranked]:
    """Rank the features of every inner fold with every setting: :func:`rank_all` of each.

    All inner folds of IDFS-MEC are one batch, and their moments are those of the whole training
    fold minus those of the held-out samples. That is exact up to rounding as long as features
    are standardised by the selector and every inner fold has all classes.
    """
    shared = _shares_a_path(contestant) and contestant.selector.get_params()["standardize"]
    classes = np.unique(data.y_train).size
    if shared and all(np.unique(part.y_train).size == classes for part in data.inner):
        paths = _inner_path_orders(contestant, data)
        return [_for_all_k(orders, ks) for orders in paths]
    return [rank_all(contestant, part, ks, seed) for part in data.inner]


def rank_all(contestant: Contestant, data: FoldData, ks: Sequence[int], seed: int) -> Ranked:
    """Rank the features of a training fold with every setting of a contestant.

    Returns
    -------
    dict
        From (position of the setting in the grid, k) to column indices, best first.
    """
    if _shares_a_path(contestant):
        return _for_all_k(_path_orders(contestant, data), ks)
    ranked: Ranked = {}
    for s, setting in enumerate(contestant.grid):
        found = rank_timed(contestant, data, setting, ks, seed)
        ranked.update({(s, k): order for k, (order, _) in found.items()})
    return ranked


def rank_timed(
    contestant: Contestant,
    data: FoldData,
    setting: Mapping[str, Any],
    ks: Sequence[int],
    seed: int,
) -> dict[int, tuple[Order, float]]:
    """Rank with one setting; also give the seconds that the selection alone takes for each k."""
    X = data.gappy if contestant.takes_gaps else data.filled
    if not contestant.depends_on_k:
        selector = contestant.build(setting, max(ks), seed, data.channel_of)
        seconds = _seconds(partial(selector.fit, X, data.y_train))
        return dict.fromkeys(ks, (_order(selector.ranking_), seconds))
    found = {}
    for k in ks:
        selector = contestant.build(setting, k, seed, data.channel_of)
        seconds = _seconds(partial(selector.fit, X, data.y_train))
        found[k] = _order(selector.ranking_), seconds
    return found


def _seconds(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _shares_a_path(contestant: Contestant) -> bool:
    """Whether all settings come from one solve: they differ in lam and gamma only."""
    return isinstance(contestant.selector, IDFSMEC) and all(
        setting.keys() == {"lam", "gamma"} for setting in contestant.grid
    )


def _path_orders(contestant: Contestant, data: FoldData) -> list[Order]:
    """Orders of one training fold, for every setting."""
    lams, gammas, options = _path_options(contestant)
    path = idfs_path(
        data.gappy,
        data.y_train,
        channels=data.channel_of,
        lams=lams,
        gammas=gammas,
        **options,
    )
    return _of_settings(contestant, path)


def _inner_path_orders(contestant: Contestant, data: FoldData) -> list[list[Order]]:
    """Orders of every inner fold, for every setting, all from one batch."""
    lams, gammas, options = _path_options(contestant)
    paths = idfs_fold_paths(
        data.gappy,
        data.y_train,
        data.held_out,
        channels=data.channel_of,
        lams=lams,
        gammas=gammas,
        **options,
    )
    return [_of_settings(contestant, path) for path in paths]


def _path_options(contestant: Contestant) -> tuple[list[float], list[float], dict[str, Any]]:
    lams = list(dict.fromkeys(setting["lam"] for setting in contestant.grid))
    gammas = list(dict.fromkeys(setting["gamma"] for setting in contestant.grid))
    options = contestant.selector.get_params()
    for own in ("channels", "n_features_to_select", "lam", "gamma"):
        options.pop(own)
    return lams, gammas, options


def _of_settings(contestant: Contestant, path: IDFSPath) -> list[Order]:
    lams, gammas = path.lams.tolist(), path.gammas.tolist()
    return [
        _order(path.rankings[lams.index(setting["lam"]), gammas.index(setting["gamma"])])
        for setting in contestant.grid
    ]


def _for_all_k(orders: Sequence[Order], ks: Sequence[int]) -> Ranked:
    return {(s, k): order for s, order in enumerate(orders) for k in ks}


def _order(ranking: Order) -> Order:
    return np.argsort(ranking, kind="stable")
