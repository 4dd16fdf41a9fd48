"""The best rival of what is proposed, found by training people alone."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterable

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from idfsmec._jobs import count_jobs
from idfsmec._random import derive_seed
from idfsmec.evaluation.fold_data import load_fold
from idfsmec.evaluation.method import Method
from idfsmec.evaluation.protocol import Protocol
from idfsmec.evaluation.scoring import inner_score
from idfsmec.evaluation.tables import TableArrays, Tables, name_tables
from idfsmec.progress import Listener, Progress

#: Missing rate at which rivals are compared.
RIVAL_RATE = 0.3


def best_rival(
    tables: Tables,
    methods: Iterable[Method],
    protocol: Protocol,
    *,
    n_jobs: int | None = None,
    progress: Listener | None = None,
) -> Method | None:
    """Find the selection that does best on inner folds of training people.

    Each method that selects and is not proposed is tuned on the training people of the first
    fold, with 30 % of the channels missing; the best mean over the tables of what tuning reaches
    on its inner folds wins. No person of that fold's test takes part.

    Parameters
    ----------
    tables : FeatureTable or mapping of name to FeatureTable
    methods : iterable of Method
    protocol : Protocol
        Folds, gaps and tuning.
    n_jobs : int, optional
        Processes, as in joblib; by default one per core.
    progress : callable, optional

    Returns
    -------
    Method or None
        None if there is no rival.
    """
    rivals = [one for one in methods if one.family != "proposed" and not one.all_features]
    if len(rivals) < 2:
        return rivals[0] if rivals else None
    named = name_tables(tables)
    arrays = [
        TableArrays.of(name, table, any(one.filling.needs_positions for one in rivals))
        for name, table in named.items()
    ]
    work = list(itertools.product(arrays, (one.resolve() for one in rivals)))
    found = Parallel(n_jobs=count_jobs(n_jobs), return_as="generator")(
        delayed(_score)(table, rival, protocol) for table, rival in work
    )
    scores = []
    for score in found:
        scores.append(score)
        if progress is not None:
            progress(Progress("rivals", len(scores), len(work)))
    means = np.array(scores).reshape(len(arrays), len(rivals)).mean(axis=0)
    return rivals[int(np.argmax(np.nan_to_num(means, nan=-np.inf)))]


def _score(table: TableArrays, method: Method, protocol: Protocol) -> float:
    seed, pattern = protocol.seeds[0], protocol.patterns[0]
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # said again, and kept, when the method is evaluated
        try:
            data = load_fold(table, protocol, pattern, RIVAL_RATE, seed, 0, with_inner=True)
            return inner_score(method, data, protocol, derive_seed("rival", seed, method.name))
        except Exception:  # who fails here is no rival
            return float("nan")
