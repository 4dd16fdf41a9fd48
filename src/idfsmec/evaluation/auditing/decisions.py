"""The EEG's own figure for people held out, and what it becomes when something is done wrongly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idfsmec.evaluation.auditing.people import People
from idfsmec.evaluation.folds import Fold, load_fold, make_folds, most_splits
from idfsmec.evaluation.methods import Method
from idfsmec.evaluation.protocol import Protocol
from idfsmec.evaluation.scoring import decide_fold
from idfsmec.evaluation.tables import TableArrays
from idfsmec.evaluation.whole_table import rank_whole
from idfsmec.metrics import Scores, score_decisions

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]

#: Features that are used; the method is not tuned, so that an audit stays cheap.
N_FEATURES = 20
#: How often labels are permuted.
N_SHUFFLES = 3


def eeg_decisions(
    method: Method,
    table: TableArrays,
    protocol: Protocol,
    seed: int,
    *,
    ranks: Codes | None = None,
    change: Callable[[int], TableArrays] | None = None,
) -> Floats:
    """Decisions for every sample from folds that held it out, of shape (n_samples, n_classes).

    Parameters
    ----------
    method : Method
        With its default setting.
    table : TableArrays
    protocol : Protocol
        Says how folds are made.
    seed : int
        Decides the folds.
    ranks : ndarray, optional
        Ranks of the features, where they were chosen before splitting.
    change : callable, optional
        From the number of a fold to the table that is used in it.
    """
    found = np.zeros((table.y.size, table.n_classes))
    for fold, (_, held_out) in enumerate(_folds(table, protocol, seed)):
        used = table if change is None else change(fold)
        data = load_fold(used, protocol, "none", 0.0, seed, fold, False)
        found[held_out] = decide_fold(method, data, protocol, fold, ranks)
    return found


def _folds(table: TableArrays, protocol: Protocol, seed: int) -> list[Fold]:
    return make_folds(table.y, table.subjects, protocol.folds, protocol.n_splits, seed)


def sample_scores(decisions: Floats, table: TableArrays) -> Scores:
    """Scores over samples and over people."""
    wanted = ["roc_auc", "balanced_accuracy", "subject_roc_auc", "subject_balanced_accuracy"]
    return score_decisions(decisions, table.y, table.subjects, wanted)


def compare_folds_by(method: Method, table: TableArrays, protocol: Protocol, seed: int) -> Scores:
    """Scores with folds by sample, in which people are on both sides."""
    spread = protocol.with_changes(folds="sample")
    return sample_scores(eeg_decisions(method, table, spread, seed), table)


def select_before(method: Method, table: TableArrays, protocol: Protocol, seed: int) -> Scores:
    """Scores with features chosen on all people, those held out among them."""
    found = rank_whole(method, method.settings[method.default_setting], table)
    if "rank" not in found:
        return {}
    ranks = np.array(found["rank"], dtype=np.intp)
    return sample_scores(eeg_decisions(method, table, protocol, seed, ranks=ranks), table)


def shuffle_labels(
    method: Method, table: TableArrays, people: People, protocol: Protocol, seed: int
) -> dict[str, Any]:
    """AUC by person with labels dealt anew to the people: one half, or something leaks."""
    found = []
    for turn in range(N_SHUFFLES):
        rng = np.random.default_rng((seed, turn))
        dealt = rng.permutation(people.y)[people.member].astype(np.intp)
        other = replace(table, y=dealt, digest=f"{table.digest}/shuffled/{seed}/{turn}")
        most = min(protocol.n_splits, most_splits(other.y, other.subjects))
        decisions = eeg_decisions(method, other, protocol.with_changes(n_splits=most), seed)
        found.append(sample_scores(decisions, other)["subject_roc_auc"])
    return {"auc": found}


def regress_out(
    method: Method,
    table: TableArrays,
    people: People,
    protocol: Protocol,
    seed: int,
    nuisance: Floats,
) -> Floats:
    """Decisions after the nuisance variables are regressed out, learned in each training fold.

    Parameters
    ----------
    nuisance : ndarray of shape (n_people, n_variables)
    """
    folds = _folds(table, protocol, seed)

    def change(fold: int) -> TableArrays:
        train = np.zeros(table.y.size, dtype=bool)
        train[folds[fold][0]] = True
        X = residuals(table.X, nuisance[people.member], train)
        return replace(table, X=X, digest=f"{table.digest}/regressed/{seed}/{fold}")

    return eeg_decisions(method, table, protocol, seed, change=change)


def residuals(X: Floats, nuisance: Floats, train: NDArray[np.bool_]) -> Floats:
    """Take out of every column what a linear model of the nuisance variables predicts.

    The model is fitted to the training samples that have the column; its own mean stays. A
    column that too few training samples have stays as it is.
    """
    spread = nuisance[train].std(axis=0)
    used = spread > 1e-12
    Z = (nuisance[:, used] - nuisance[train][:, used].mean(axis=0)) / spread[used]
    Z = np.column_stack([np.clip(Z, -6, 6), np.ones(len(Z))])
    left, there = X.copy(), ~np.isnan(X)
    patterns, pattern_of = np.unique(there, axis=1, return_inverse=True)
    small = np.diag(np.append(np.full(Z.shape[1] - 1, 1e-3), 0.0))
    for place, rows in enumerate(patterns.T):
        columns, own = np.flatnonzero(pattern_of.ravel() == place), rows & train
        if own.sum() <= 2 * Z.shape[1]:
            continue
        known = Z[own]
        products = known.T @ known + own.sum() * small
        slopes = np.linalg.solve(products, known.T @ X[np.ix_(own, columns)])
        left[np.ix_(rows, columns)] -= Z[rows, :-1] @ slopes[:-1]
    return left
