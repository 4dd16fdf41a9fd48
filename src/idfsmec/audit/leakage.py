"""Leakage: the EEG's score for subjects held out, and what mistakes would make of it.

Sample-wise folds, features selected before splitting, and labels permuted go the same way as the
honest score. Subjects under two names and rows that come twice put one brain on both sides.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idfsmec.audit.confounding import Subjects, residuals
from idfsmec.evaluation.protocol import Protocol, make_folds, most_splits
from idfsmec.evaluation.tasks import load_fold, method_pipeline
from idfsmec.metrics import Scores, score_decisions
from idfsmec.prediction.methods import Method
from idfsmec.prediction.pipeline import TableArrays
from idfsmec.solver import Scaling

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]

#: Features that are used; the method is not tuned, so that an audit stays cheap.
N_FEATURES = 20
#: How often labels are permuted.
N_PERMUTATIONS = 3
#: Two names look like one subject if a sample of each is hardly farther from the other's nearest
#: sample than from its own subject's: by this factor, in the median. On a public table of 59
#: subjects the nearest two differ by 1.29, and most that were split in two by less than 1.1.
RATIO = 1.15
#: With fewer samples a subject's own neighbours cannot be told from others'.
FEWEST_SAMPLES = 8
# Samples that are compared with each other at most: distances grow with their square.
_MOST_SAMPLES, _ROWS = 3000, 500


def eeg_decisions(
    method: Method,
    table: TableArrays,
    protocol: Protocol,
    seed: int,
    *,
    ranks: Codes | None = None,
    regress_out: tuple[Subjects, Floats] | None = None,
) -> Floats:
    """Decisions for every sample from folds that held it out, of shape (n_samples, n_classes).

    The method is not tuned. ``ranks`` are those of features that were selected before splitting;
    variables of the subjects to regress out are learned in each fold.
    """
    decisions = np.zeros((table.y.size, table.n_classes))
    kind = protocol.folds, protocol.n_splits, seed
    folds = make_folds(table.y, table.subjects, *kind, sites=table.sites)
    for fold, (train, held_out) in enumerate(folds):
        used = table
        if regress_out is not None:
            subjects, nuisance = regress_out
            X = residuals(table.X, nuisance, subjects, train)
            used = replace(table, X=X, digest=f"{table.digest}/regressed/{seed}/{fold}")
        samples = load_fold(used, protocol, "none", 0.0, seed, fold, False)
        decisions[held_out] = method_pipeline(method, protocol, fold).decide(samples, ranks)
    return decisions


def sample_scores(decisions: Floats, table: TableArrays) -> Scores:
    """Scores over samples and over subjects."""
    wanted = ["roc_auc", "balanced_accuracy", "subject_roc_auc", "subject_balanced_accuracy"]
    return score_decisions(decisions, table.y, table.subjects, wanted)


def permuted_aucs(
    method: Method, table: TableArrays, protocol: Protocol, seed: int, subjects: Subjects
) -> list[float]:
    """AUC by subject with labels permuted between subjects: one half, or something leaks.

    With folds by site they are permuted within sites, so that each keeps its share of the classes.
    """
    aucs, within = [], table.sites if protocol.folds == "site" else None
    for turn in range(N_PERMUTATIONS):
        rng = np.random.default_rng((seed, turn))
        y = subjects.permute(rng, within)[subjects.member].astype(np.intp)
        permuted = replace(table, y=y, digest=f"{table.digest}/shuffled/{seed}/{turn}")
        n_splits = min(protocol.n_splits, most_splits(y, table.subjects))
        fewer = protocol.with_changes(n_splits=n_splits)
        decisions = eeg_decisions(method, permuted, fewer, seed)
        aucs.append(sample_scores(decisions, permuted)["subject_roc_auc"])
    return aucs


def repeated_rows(table: TableArrays) -> dict[str, Any]:
    """Count samples that are equal to an earlier one in every feature, also across subjects."""
    X = np.ascontiguousarray(np.nan_to_num(table.X, nan=np.inf) + 0.0)  # -0.0 becomes 0.0
    rows = X.view(np.dtype((np.void, X.shape[1] * 8))).ravel()
    _, first, group = np.unique(rows, return_index=True, return_inverse=True)
    earlier = first[group]
    observed = ~np.isnan(table.X).all(axis=1)
    repeated = (earlier != np.arange(len(rows))) & observed
    across = repeated & (table.subjects[earlier] != table.subjects)
    pairs = np.sort(np.column_stack([table.subjects[earlier], table.subjects])[across], axis=1)
    return {
        "n_repeated": int(repeated.sum()),
        "n_across": int(across.sum()),
        "pairs": np.unique(pairs, axis=0)[:10].tolist(),
    }


def two_names(table: TableArrays) -> dict[str, Any]:
    """Find subjects whose samples are as near to each other's as to their own.

    ``estimable`` says whether subjects have samples enough, ``own_share`` how many samples have
    their nearest neighbour in the same subject; ``pairs`` are codes of two subjects and how much
    farther the other's nearest sample is than one's own, the surest first.
    """
    kept = _spread_samples(table.subjects)
    codes, member, counts = np.unique(
        table.subjects[kept], return_inverse=True, return_counts=True
    )
    enough = counts >= FEWEST_SAMPLES
    if enough.sum() < 2:
        return {"estimable": False}
    X = _whitened(np.nan_to_num(Scaling.learn(table.X[kept]).apply(table.X[kept])))
    distances = _distances_to_subjects(X, member, codes.size)
    own = distances[np.arange(member.size), member]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.nan_to_num(distances / own[:, None], nan=1.0)
    farther = np.stack([np.median(ratios[member == k], axis=0) for k in range(codes.size)])
    farther = np.maximum(farther, farther.T)
    farther[~np.outer(enough, enough) | np.eye(codes.size, dtype=bool)] = np.inf
    pairs = sorted(np.argwhere(np.triu(farther <= RATIO)).tolist(), key=lambda p: farther[*p])
    at_home = distances.argmin(axis=1) == member
    return {
        "estimable": True,
        "own_share": float(at_home[enough[member]].mean()),
        "pairs": [[int(codes[a]), int(codes[b]), float(farther[a, b])] for a, b in pairs[:10]],
    }


def _spread_samples(subjects: Codes) -> Codes:
    """All samples, or of every subject so few, evenly, that distances can be computed."""
    codes = np.unique(subjects)
    most = max(FEWEST_SAMPLES, _MOST_SAMPLES // codes.size)
    kept = []
    for code in codes:
        own = np.flatnonzero(subjects == code)
        places = np.linspace(0, own.size - 1, min(own.size, most)).round().astype(np.intp)
        kept.append(own[places])
    return np.sort(np.concatenate(kept))


def _whitened(X: Floats) -> Floats:
    """Clipped, and on their main directions at equal size: many features say the same."""
    X = np.clip(X, -4, 4)
    left, sizes, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    used = np.cumsum(sizes**2) <= 0.95 * (sizes**2).sum()
    used[0] = True
    return np.asarray(left[:, used] * np.sqrt(sizes[used]))


def _distances_to_subjects(X: Floats, member: Codes, n_subjects: int) -> Floats:
    """Distance of each sample to every subject's nearest other one, (n_samples, n_subjects)."""
    order = np.argsort(member, kind="stable")
    starts = np.searchsorted(member[order], np.arange(n_subjects))
    squares = (X**2).sum(axis=1)
    nearest = np.zeros((len(X), n_subjects))
    for first in range(0, len(X), _ROWS):
        rows = np.arange(first, min(first + _ROWS, len(X)))
        distances = squares[rows, None] + squares - 2 * X[rows] @ X.T
        distances[np.arange(rows.size), rows] = np.inf
        nearest[rows] = np.minimum.reduceat(distances[:, order], starts, axis=1)
    return np.sqrt(np.maximum(nearest, 0.0))
