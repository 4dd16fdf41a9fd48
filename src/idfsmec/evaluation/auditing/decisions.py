"""The EEG's own figure for people held out, and what it becomes when something is done wrongly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idfsmec.evaluation.auditing.people import People
from idfsmec.evaluation.fold_data import load_fold
from idfsmec.evaluation.folds import Fold, make_folds, most_splits
from idfsmec.evaluation.method import Method
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
    how = protocol.folds, protocol.n_splits, seed
    return make_folds(table.y, table.subjects, *how, sites=table.sites)


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
    """AUC by person with labels dealt anew to the people: one half, or something leaks.

    With folds by site they are dealt within sites, so that each keeps its share of the classes.
    """
    found, within = [], table.sites if protocol.folds == "site" else None
    for turn in range(N_SHUFFLES):
        rng = np.random.default_rng((seed, turn))
        dealt = people.deal(rng, within)[people.member].astype(np.intp)
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
        X = residuals(table.X, nuisance, people.member, train)
        return replace(table, X=X, digest=f"{table.digest}/regressed/{seed}/{fold}")

    return eeg_decisions(method, table, protocol, seed, change=change)


def residuals(X: Floats, nuisance: Floats, member: Codes, train: NDArray[np.bool_]) -> Floats:
    """Take out of every column what a linear model of the nuisance variables predicts.

    The model is fitted to the means of the people trained on, as far as they have the column,
    and its slopes are shrunk by how sure they are: by 1 - 1/F, and not below nothing. Slopes that
    are noise would bring into the samples held out what they should take away [1]_. A column that
    too few people have stays as it is.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        NaN where missing.
    nuisance : ndarray of shape (n_people, n_variables)
    member : ndarray of shape (n_samples,)
        The person of each sample.
    train : ndarray of shape (n_samples,)
        Which samples may be learned from.

    References
    ----------
    .. [1] Hamdan et al. (2023), "Confound-leakage: confound removal in machine learning leads to
       leakage", GigaScience 12:giad071.
    """
    known = np.zeros(len(nuisance), dtype=bool)
    known[member[train]] = True
    Z, means = _standardised(nuisance, known), _person_means(X, member, len(nuisance))
    left, there = X.copy(), ~np.isnan(means) & known[:, None]
    patterns, pattern_of = np.unique(there, axis=1, return_inverse=True)
    for place, own in enumerate(patterns.T):
        columns = np.flatnonzero(pattern_of.ravel() == place)
        if own.sum() > 2 * Z.shape[1] + 2:
            left[:, columns] -= (Z @ _slopes(Z[own], means[np.ix_(own, columns)]))[member]
    return left


def _standardised(nuisance: Floats, known: NDArray[np.bool_]) -> Floats:
    spread = nuisance[known].std(axis=0)
    used = spread > 1e-12
    centred = nuisance[:, used] - nuisance[known][:, used].mean(axis=0)
    return np.clip(centred / spread[used], -6, 6)


def _person_means(X: Floats, member: Codes, n_people: int) -> Floats:
    total, count = np.zeros((n_people, X.shape[1])), np.zeros((n_people, X.shape[1]))
    np.add.at(total, member, np.nan_to_num(X))
    np.add.at(count, member, ~np.isnan(X))
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _slopes(Z: Floats, values: Floats) -> Floats:
    """Slopes of each column on the nuisance variables, shrunk by their F statistic."""
    centred, Z = values - values.mean(axis=0), Z - Z.mean(axis=0)
    # A little ridge, for variables that say the same.
    products = Z.T @ Z + 1e-3 * len(Z) * np.eye(Z.shape[1])
    slopes = np.linalg.solve(products, Z.T @ centred)
    left = ((centred - Z @ slopes) ** 2).sum(axis=0)
    explained = np.maximum((centred**2).sum(axis=0) - left, 1e-300)
    freedom = len(Z) - Z.shape[1] - 1
    shrunk: Floats = slopes * np.maximum(0.0, 1 - Z.shape[1] * left / (freedom * explained))
    return shrunk
