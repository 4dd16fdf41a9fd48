"""Halves of the subjects, and the ranks that a selector gives features on each."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from idfsmec.selection.grid import rank_grid, training_samples
from idfsmec.solver import Cells, Scaling

Indices = NDArray[np.intp]


def complementary_halves(
    subjects: NDArray, codes: Indices, n_pairs: int, random_state: np.random.RandomState
) -> list[Indices]:
    """Samples of ``2 * n_pairs`` random halves of the subjects, each followed by its rest.

    Each class (of a subject's first sample) is halved on its own; where its number of subjects is
    odd, the one left over goes to either half with equal chance.

    Examples
    --------
    >>> halves = complementary_halves(
    ...     np.array([7, 7, 8, 8, 9, 5]), np.array([0, 0, 0, 0, 1, 1]), 1,
    ...     np.random.RandomState(0))
    >>> sorted(np.concatenate(halves).tolist())
    [0, 1, 2, 3, 4, 5]
    """
    _, first, member = np.unique(subjects, return_index=True, return_inverse=True)
    label = codes[first]
    for code in np.unique(codes):
        if np.sum(label == code) < 2:
            raise ValueError(
                f"Halves of the subjects need at least 2 subjects of each class, but class "
                f"number {code} has {np.sum(label == code)}."
            )
    halves = []
    for _ in range(n_pairs):
        inside = np.zeros(first.size, dtype=bool)
        for code in np.unique(label):
            own = random_state.permutation(np.flatnonzero(label == code))
            extra = random_state.randint(2) if own.size % 2 else 0
            inside[own[: own.size // 2 + extra]] = True
        halves += [np.flatnonzero(inside[member]), np.flatnonzero(~inside[member])]
    return halves


def half_ranks(
    selector: BaseEstimator,
    X: NDArray,
    codes: Indices,
    groups: NDArray | None,
    left_out: list[Indices],
    fill: bool,
) -> NDArray[np.intp]:
    """Ranks on several halves, each given by the samples it leaves out."""
    if not fill:
        return rank_grid(selector, X, codes, [{}], held_out=left_out, groups=groups)[:, 0]
    found = []
    for kept in training_samples(codes.size, left_out):
        filled = Scaling.learn(X[kept]).filled(X[kept])
        own = None if groups is None else groups[kept]
        found.append(rank_grid(selector, filled, codes[kept], [{}], groups=own)[0, 0])
    return np.array(found)


def fold_halves(cells: Cells) -> list[Cells]:
    """Halves of the people that the folds of every deal make, each followed by its rest.

    Left out are deals that repeat the first one, and pairs of which one half lacks a class.
    """
    halves = []
    n_deals, n_folds, _ = cells.total.shape
    for deal in range(n_deals):
        if deal and np.array_equal(cells.total[deal], cells.total[0]):
            continue
        for own in combinations(range(n_folds), n_folds // 2):
            rest = [fold for fold in range(n_folds) if fold not in own]
            # The first fold is in one half of each pair.
            if 0 not in own:
                continue
            pair = [cells.only(deal, list(own)), cells.only(deal, rest)]
            if all((half.total.sum(axis=(0, 1)) > 0).all() for half in pair):
                halves += pair
    return halves
