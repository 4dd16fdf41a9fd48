"""Orders of features for all settings of a contestant, with shared work done once."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idfsmec.evaluation._fold_data import FoldData
from idfsmec.evaluation.contestants import Contestant
from idfsmec.selection import IDFSMEC, idfs_path

Order = NDArray[np.intp]


def rank_all(
    contestant: Contestant, data: FoldData, ks: Sequence[int], seed: int
) -> dict[tuple[int, int], Order]:
    """Rank the features of a training fold with every setting of a contestant.

    Returns
    -------
    dict
        From (position of the setting in the grid, k) to column indices, best first.
    """
    if _shares_a_path(contestant):
        orders = _path_orders(contestant, data)
        return {(s, k): order for s, order in enumerate(orders) for k in ks}
    ranked: dict[tuple[int, int], Order] = {}
    for s, setting in enumerate(contestant.grid):
        if contestant.depends_on_k:
            for k in ks:
                ranked[s, k], _ = rank_timed(contestant, data, setting, k, seed)
        else:
            order, _ = rank_timed(contestant, data, setting, max(ks), seed)
            ranked.update({(s, k): order for k in ks})
    return ranked


def rank_timed(
    contestant: Contestant, data: FoldData, setting: Mapping[str, Any], k: int, seed: int
) -> tuple[Order, float]:
    """Rank with one setting; also give the seconds of the selection alone."""
    selector = contestant.build(setting, k, seed, data.channel_of)
    X = data.gappy if contestant.takes_gaps else data.filled
    began = time.perf_counter()
    selector.fit(X, data.y_train)
    seconds = time.perf_counter() - began
    return np.argsort(selector.ranking_, kind="stable"), seconds


def _shares_a_path(contestant: Contestant) -> bool:
    """Whether all settings come from one solve: they differ in lam and gamma only."""
    return isinstance(contestant.selector, IDFSMEC) and all(
        setting.keys() == {"lam", "gamma"} for setting in contestant.grid
    )


def _path_orders(contestant: Contestant, data: FoldData) -> list[Order]:
    lams = list(dict.fromkeys(setting["lam"] for setting in contestant.grid))
    gammas = list(dict.fromkeys(setting["gamma"] for setting in contestant.grid))
    options = contestant.selector.get_params()
    for own in ("channels", "n_features_to_select", "lam", "gamma"):
        options.pop(own)
    path = idfs_path(
        data.gappy,
        data.y_train,
        channels=data.channel_of,
        lams=lams,
        gammas=gammas,
        **options,
    )
    return [
        np.argsort(
            path.rankings[lams.index(setting["lam"]), gammas.index(setting["gamma"])],
            kind="stable",
        )
        for setting in contestant.grid
    ]
