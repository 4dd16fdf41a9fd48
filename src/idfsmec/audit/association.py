"""Whether facts are associated with the diagnosis, and whether the EEG's prediction carries them.

All facts of a family are tested with one null distribution: each by its values and by their
distance from the median, so that both extremes count, and every pair jointly. A fact found so is
held against the EEG's prediction within each diagnosis. Also what such tests could not have found.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from scipy import special
from scipy.stats import rankdata

from idfsmec.metrics import (
    FACT_ALPHA,
    PAIR_WEIGHT,
    POWER,
    Codes,
    Floats,
    holm,
)

#: How often the diagnosis is permuted among participants, and a fact within each diagnosis.
N_PERMUTATIONS, N_WITHIN = 1999, 999
#: Waves of a fact's rank whose products with those of another describe a pair.
N_COSINES = 3
#: With fewer ways to permute a fact within the diagnoses nothing could be found.
FEWEST_ARRANGEMENTS = 1000
#: The AUC of a fact that a study should find; with a score, the concordance of a fact that has
#: this AUC between the participants below and above the median.
AUC_TO_FIND, CONCORDANCE_TO_FIND = 0.75, 0.68


@dataclass(frozen=True)
class Fact:
    """A fact of each subject: a number, a text by level, or a number that is not always known.

    ``columns`` are (n_subjects, n_columns); the column of a number comes first, its level is "".
    """

    columns: Floats
    levels: tuple[str, ...]

    @cached_property
    def ranks(self) -> Floats:
        """Ranks within each column."""
        return np.asarray(rankdata(self.columns, axis=0))

    @property
    def is_number(self) -> bool:
        """Whether it has a column of numbers."""
        return self.levels[0] == ""

    @cached_property
    def is_ordered(self) -> bool:
        """Whether it is a number with more than two values."""
        return self.is_number and np.unique(self.columns[:, 0]).size > 2

    @cached_property
    def distance(self) -> Floats:
        """How far the rank of each number is from the middle, as ranks."""
        return distance_from_median(self.columns[:, 0])

    @property
    def shapes(self) -> dict[str, Floats]:
        """What it is tested by: its ranks or levels, and the distance from the median."""
        extremes = {"extremes": self.distance[:, None]} if self.is_ordered else {}
        return {"value": self.ranks} | extremes

    def by_rank(self, curves: Callable[[Floats], Floats]) -> Floats:
        """Return centred columns: curves of the place of a number in 0 to 1, and its levels."""
        columns = self.columns
        if self.is_number:
            columns = np.column_stack([curves(_place(columns[:, 0])), columns[:, 1:]])
        return np.asarray(columns - columns.mean(axis=0))


def facts_of(variables: pd.DataFrame) -> dict[str, Fact]:
    """Return the facts of a frame by name; its columns are (variable, level)."""
    values, columns = variables.to_numpy(dtype=float), defaultdict[str, list[int]](list)
    names, levels = (variables.columns.get_level_values(key) for key in ("variable", "level"))
    for place, name in enumerate(names):
        columns[name].append(place)
    return {
        name: Fact(values[:, places], tuple(levels[places])) for name, places in columns.items()
    }


@dataclass(frozen=True)
class FamilyTests:
    """Tests of a family of facts.

    Parameters
    ----------
    facts : list of dict
        ``variable``, ``shape`` ("value" or "extremes", whichever has the smaller p), ``p`` of the
        fact alone and ``p_corrected`` for all tests of the family.
    pairs : list of dict
        ``variables`` and ``p_corrected`` of pairs that are associated only jointly.
    critical_p : float
        The p-value that a single test had to reach.
    """

    facts: list[dict[str, Any]]
    pairs: list[dict[str, Any]]
    critical_p: float

    @property
    def found(self) -> list[str]:
        """Facts that are associated, alone or in a pair."""
        alone = [row["variable"] for row in self.facts if row["p_corrected"] <= FACT_ALPHA]
        return list(
            dict.fromkeys([*alone, *(n for pair in self.pairs for n in pair["variables"])])
        )


def judge_family(
    facts: Mapping[str, Fact],
    target: Floats,
    *,
    n_permutations: int = N_PERMUTATIONS,
    seed: int = 0,
) -> FamilyTests:
    """Test whether facts are associated with a target, corrected for all tests of the family.

    Parameters
    ----------
    facts : mapping of name to Fact
    target : array of shape (n_subjects, n_columns)
        Membership of each class, of one if there are two, or the ranks of a score.
    n_permutations, seed : int
        How often the rows of the target are permuted.

    Notes
    -----
    A fact is tested by its ranks (for a class this is the rank test, for a score Spearman's), by
    the ranks of its distance from the median, and with each other fact by a kernel statistic
    (HSIC, Gretton et al. 2005) whose kernel is the product of cosine kernels of both ranks. Each
    statistic gets an approximate p-value; the smallest of all is compared with the smallest of
    each permutation (Westfall and Young 1993), which makes the correction exact.
    """
    n, k = target.shape
    rng = np.random.default_rng(seed)
    orders = rng.permuted(np.tile(np.arange(n), (n_permutations, 1)), axis=1)
    orders = np.vstack([np.arange(n), orders])
    permuted = np.moveaxis(_standardised(target)[orders], 1, 2).reshape(-1, n)
    permuted *= np.sqrt(n - 1)  # so that products have variance 1 by permutation

    def z_values(columns: Floats) -> Floats:
        """Of shape (1 + n_permutations, k * n_columns)."""
        return np.asarray((permuted @ _standardised(columns)).reshape(n_permutations + 1, -1))

    tests: list[Floats] = []
    members: list[tuple[str, ...]] = []
    shapes: list[str] = []
    for name, fact in facts.items():
        for shape, values in fact.shapes.items():
            z = np.abs(z_values(values)).max(axis=1)
            n_different = values.shape[1] * k
            tests.append(np.asarray(-np.expm1(n_different * np.log1p(-_two_sided(z)))))
            members.append((name,))
            shapes.append(shape)
    waves = {name: fact.by_rank(_waves) for name, fact in facts.items()}
    for pair in itertools.combinations(facts, 2):
        z = z_values(products(*(waves[name] for name in pair)))
        q = np.einsum("ij,ij->i", z, z)
        if (mean := q.mean()) > 0:  # approximately a gamma distribution with these moments
            scale = q.var() / mean
            tests.append(np.minimum(PAIR_WEIGHT * special.gammaincc(mean / scale, q / scale), 1))
            members.append(pair)
            shapes.append("pair")
    if not tests:
        return FamilyTests([], [], FACT_ALPHA)
    p = np.array(tests)
    least = np.sort(p[:, 1:].min(axis=0))
    corrected = _rank_among(p[:, 0], least)
    rows: list[dict[str, Any]] = []
    for name in facts:
        own = [i for i, member in enumerate(members) if member == (name,)]
        best = min(own, key=lambda i: p[i, 0])
        alone = float(_rank_among(p[best, 0], np.sort(p[own, 1:].min(axis=0))))
        row = {"variable": name, "shape": shapes[best], "p": alone}
        rows.append({**row, "p_corrected": float(corrected[best])})
    single = {row["variable"] for row in rows if row["p_corrected"] <= FACT_ALPHA}
    pairs = [
        {"variables": list(member), "p_corrected": float(corrected[i])}
        for i, member in enumerate(members)
        if len(member) == 2 and corrected[i] <= FACT_ALPHA and not single & set(member)
    ]
    place = max(int(FACT_ALPHA * (n_permutations + 1)) - 1, 0)
    return FamilyTests(rows, pairs, float(least[min(place, least.size - 1)]))


def _rank_among(p: Floats | float, null: Floats) -> Floats:
    """Return the share of permutations, the data themselves among them, with a p as small."""
    reached = np.searchsorted(null, np.asarray(p) * (1 + 1e-9), side="right")
    return np.asarray((1 + reached) / (null.size + 1))


def _two_sided(z: Floats) -> Floats:
    return np.asarray(np.minimum(2 * special.ndtr(-np.abs(z)), 1 - 1e-12))


def _standardised(columns: Floats) -> Floats:
    centred = columns - columns.mean(axis=0)
    spread = np.sqrt((centred**2).sum(axis=0))
    return np.asarray(centred / np.where(spread > 1e-9, spread, np.inf))


def distance_from_median(values: Floats) -> Floats:
    """Return how far the rank of each value is from the middle, as ranks."""
    ranks = rankdata(values)
    return np.asarray(rankdata(np.abs(ranks - ranks.mean()).round(6)))


def _place(values: Floats) -> Floats:
    """Return the ranks of values as places in 0 to 1."""
    return np.asarray((rankdata(values) - 0.5) / len(values))


def _waves(place: Floats) -> Floats:
    """Return cosines of a place, weighted by 1 / frequency."""
    frequencies = np.arange(1, N_COSINES + 1)
    return np.asarray(np.cos(np.pi * np.outer(place, frequencies)) / frequencies)


def _cubic(place: Floats) -> Floats:
    centred = 2 * place - 1
    return np.stack([centred, centred**2, centred**3], axis=1)


def products(first: Floats, second: Floats) -> Floats:
    """Return the products of all columns of one with all of the other."""
    return np.asarray((first[:, :, None] * second[:, None, :]).reshape(len(first), -1))


def carried_facts(
    decisions: Floats,
    facts: Mapping[str, Fact],
    units: Sequence[Sequence[str]],
    y: Codes,
    *,
    score: Floats | None = None,
    n_permutations: int = N_WITHIN,
    seed: int = 0,
) -> list[dict[str, Any]]:
    """Test whether held-out decisions follow facts within each diagnosis.

    Parameters
    ----------
    decisions : array of shape (n_subjects, n_columns)
        The EEG's decision for each class on subjects held out, or its prediction of a score.
    facts : mapping of name to Fact
    units : list of (name,) or (name, name)
        Facts and pairs that are associated with the diagnosis.
    y : array
        The class of each subject, or a group of subjects with similar scores.
    score : array, optional
        The score of each subject, if that is what is predicted.

    Returns
    -------
    list of dict
        ``variables``, ``p`` and ``p_holm``; both None where the fact hardly varies within the
        diagnoses, so that the question cannot be decided.

    Notes
    -----
    The ranks of the decision are regressed on a cubic of the fact's ranks or on its levels, for a
    pair also on products, with the diagnosis held constant (of a score also a cubic of its ranks);
    the fact is permuted within each diagnosis. Of the same family as the tests of Spisak
    (GigaScience 11:giac082, 2022), which permute by a model of the fact; within classes none is
    needed.
    """
    held = _groups(y) if score is None else np.column_stack([_groups(y), _cubic(_place(score))])
    held = np.linalg.qr(held)[0]
    ranks = _without(rankdata(decisions, axis=0), held)
    rng = np.random.default_rng(seed)
    orders = np.tile(np.arange(y.size), (n_permutations + 1, 1))
    for k in np.unique(y):
        here = np.flatnonzero(y == k)
        orders[1:, here] = rng.permuted(orders[1:, here], axis=1)
    rows: list[dict[str, Any]] = []
    for unit in units:
        members = [facts[name] for name in unit]
        columns = np.column_stack([fact.columns for fact in members])
        row: dict[str, Any] = {"variables": list(unit), "p": None, "p_holm": None}
        if _log_arrangements(columns, y) >= math.log(FEWEST_ARRANGEMENTS):
            basis = _without(_flexible(members), held)
            left, spread, _ = np.linalg.svd(basis, full_matrices=False)
            left = left[:, spread > 1e-9 * spread[0]]
            # Permuting the decision within a diagnosis is permuting the fact there.
            explained = sum(
                ((column[orders] @ left) ** 2).sum(axis=1) / max((column**2).sum(), 1e-300)
                for column in ranks.T
            )
            row["p"] = float(np.mean(explained >= explained[0] * (1 - 1e-9)))
        rows.append(row)
    tested = [row for row in rows if row["p"] is not None]
    for row, p in zip(tested, holm([row["p"] for row in tested]), strict=True):
        row["p_holm"] = float(p)
    return rows


def _flexible(facts: Sequence[Fact]) -> Floats:
    """Return a cubic of each fact's ranks, or its levels; of two facts also all products."""
    bases = [
        fact.by_rank(_cubic) if fact.is_ordered else fact.columns - fact.columns.mean(axis=0)
        for fact in facts
    ]
    return np.column_stack([*bases, products(*bases)] if len(bases) == 2 else bases)


def _groups(y: Codes) -> Floats:
    return np.asarray((y[:, None] == np.unique(y)).astype(float))


def _without(columns: Floats, held: Floats) -> Floats:
    """Return what orthonormal columns leave of others."""
    return np.asarray(columns - held @ (held.T @ columns))


def _log_arrangements(columns: Floats, y: Codes) -> float:
    """Return the logarithm of the number of different ways to permute rows within classes."""
    total = 0.0
    for k in np.unique(y):
        counts = np.unique(columns[y == k], axis=0, return_counts=True)[1]
        total += math.lgamma(counts.sum() + 1) - sum(math.lgamma(c + 1) for c in counts)
    return total


def detectable_concordance(n: float, critical_p: float, power: float = POWER) -> float:
    """Return the smallest concordance of a fact and a score that a rank test finds.

    By Fisher's z of the correlation of normal values, of which Kendall's tau follows.

    Examples
    --------
    >>> round(detectable_concordance(85, 0.05), 2)
    0.6
    """
    if n <= 3:
        return 1.0
    reach = -special.ndtri(critical_p / 2) + special.ndtri(power)
    return concordance_of(float(np.tanh(reach / math.sqrt(n - 3))))


def concordance_of(correlation: float) -> float:
    """Return the concordance of normal values with this correlation."""
    return 0.5 + math.asin(correlation) / math.pi


def participants_to_find(is_found: Callable[[int], bool]) -> int:
    """Return the smallest number of participants for which this is true, from four on.

    Examples
    --------
    >>> from idfsmec.metrics import detectable_auc
    >>> participants_to_find(lambda n: detectable_auc(n / 2, n / 2, 0.05) <= 0.75)
    39
    """
    low, high = 4, 10**6
    while low < high:
        n = (low + high) // 2
        low, high = (low, n) if is_found(n) else (n + 1, high)
    return low
