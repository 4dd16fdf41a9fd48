"""Confounding: subjects with their target, facts against it, and the EEG adjusted for facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import special
from scipy.stats import rankdata

from idfsmec.audit.association import N_PERMUTATIONS, Fact, judge_family, products
from idfsmec.audit.variables import FAMILIES, family_of, kind_of
from idfsmec.metrics import (
    Codes,
    Floats,
    auc_by_fold,
    auc_from_ranks,
    auc_interval,
    concordance,
    concordance_interval,
    draw_within_classes,
    fold_interval,
    mean_auc,
    weighted_aucs,
)
from idfsmec.prediction.samples import Samples
from idfsmec.solver.logistic import fit_logistic
from idfsmec.solver.scaling import Scaling

#: Acquisition matches if log odds differ by less than this many standard deviations, the usual
#: caliper of matching by propensity.
CALIPER = 0.2
#: With a smaller effective number of subjects of a class, matched pairs decide nothing.
FEWEST = 8
#: A match has failed where acquisition's AUC among the pairs is farther than this from one half,
#: or its interval excludes one half. In simulated cohorts this calls 5 % of 1,500 good matches
#: failed (0.05 would call 18 %, 0.15 3 %); 3 % with a mean AUC of 0.73 pass, 53 % with 0.58.
UNMATCHED = 0.1
#: Subjects of each class that a stratum needs for an AUC.
FEWEST_IN_STRATUM = 3
# Penalty of the logistic regression on standardised columns, as scikit-learn's C = 1.
_RIDGE, _STEPS = 1.0, 12
# No value counts as more than so many standard deviations: a single wild value would decide.
_FAR = 6.0


@dataclass(frozen=True)
class LabelledSubjects:
    """Subjects within labels: a subject with two labels counts once within each.

    ``member`` is the subject of each sample, ``y`` the class or score of each subject;
    ``n_classes`` is 1 for a score.
    """

    member: Codes
    y: NDArray[Any]
    n_classes: int

    @classmethod
    def of(cls, table: Samples) -> LabelledSubjects:
        """Find the subjects of a table."""
        if table.numeric:
            return cls(table.subjects, table.subject_scores, 1)
        cells, member = np.unique(table.subjects * table.n_classes + table.y, return_inverse=True)
        y = (cells % table.n_classes).astype(np.intp)
        return cls(member.astype(np.intp), y, table.n_classes)

    @property
    def is_scored(self) -> bool:
        """Whether y is a score."""
        return self.n_classes == 1

    @property
    def target(self) -> Floats:
        """What facts are tested against: each class, one of two, or the ranks of the score."""
        if self.is_scored:
            return np.asarray(rankdata(self.y)[:, None])
        classes = np.arange(self.n_classes == 2, self.n_classes)
        return np.asarray((self.y[:, None] == classes).astype(float))

    @property
    def alike(self) -> Codes:
        """The class of each subject, or the quarter of the scores."""
        if not self.is_scored:
            return self.y
        return np.asarray((rankdata(self.y) - 0.5) * 4 // self.y.size, dtype=np.intp)

    def of_subjects(self, values: NDArray[Any]) -> NDArray[Any]:
        """Give each subject the value of their samples, which all have the same."""
        return values[np.unique(self.member, return_index=True)[1]]

    def mean(self, values: Floats) -> Floats:
        """Mean over the samples of each subject that are not NaN, (n_subjects, n_columns)."""
        return pd.DataFrame(values).groupby(self.member).mean().to_numpy()

    def permute(
        self, rng: np.random.Generator, within: NDArray[Any] | None = None
    ) -> NDArray[Any]:
        """Permute the labels of the subjects; within sites, if those of the samples are given."""
        site_of = np.zeros(self.y.size) if within is None else self.of_subjects(within)
        permuted = self.y.copy()
        for site in np.unique(site_of):
            permuted[site_of == site] = rng.permutation(self.y[site_of == site])
        return permuted


def judge_facts(
    known: Mapping[str, Fact],
    subjects: LabelledSubjects,
    *,
    n_permutations: int = N_PERMUTATIONS,
    seed: int = 0,
) -> dict[str, Any]:
    """Test all facts by family, and describe each by its AUC between a class and the rest.

    A fact whose extremes are associated more strongly than its values is described by its
    distance from the median. ``critical_p`` is what a single test of a family had to reach.
    """
    facts: list[dict[str, Any]] = []
    pairs: list[dict[str, Any]] = []
    critical: dict[str, float] = {}
    for family in FAMILIES:
        of_family = {name: fact for name, fact in known.items() if family_of(name) == family}
        if not of_family:
            continue
        tests = judge_family(of_family, subjects.target, n_permutations=n_permutations, seed=seed)
        critical[family] = tests.critical_p
        pairs += [{**pair, "family": family} for pair in tests.pairs]
        for test in tests.facts:
            described = _describe_fact(known[test["variable"]], test["shape"], subjects)
            kind = kind_of(test["variable"])
            facts.append({**test, "family": family, "kind": kind, **described})
    return {"facts": facts, "pairs": pairs, "critical_p": critical}


def _describe_fact(fact: Fact, shape: str, subjects: LabelledSubjects) -> dict[str, Any]:
    """Return the AUC of a fact, oriented to at least 0.5, by the class and level that differ most.

    ``class`` and ``higher`` say in which class it is higher or lower.
    """
    ranks, y = fact.shapes[shape], subjects.y
    if subjects.is_scored:
        aucs = np.array([[concordance(column, y) for column in ranks.T]])
    else:
        member = (y == np.arange(subjects.n_classes)[:, None]).astype(float)
        aucs = auc_from_ranks(ranks, member)
    # With two classes both rows say the same; the one above one half is kept.
    distance = aucs - 0.5 if subjects.n_classes == 2 else np.abs(aucs - 0.5)
    k, best = np.unravel_index(np.argmax(distance), distance.shape)
    auc = float(aucs[k, best])
    oriented = max(auc, 1.0 - auc)
    low, high = _auc_interval(oriented, y == k, subjects.is_scored)
    where = {"level": fact.levels[best], "class": int(k), "higher": auc >= 0.5}
    return {**where, "auc": oriented, "low": low, "high": high}


def _auc_interval(value: float, member: NDArray[np.bool_], is_scored: bool) -> tuple[float, float]:
    n, n_class = member.size, int(member.sum())
    if is_scored:
        return concordance_interval(value, n)
    return auc_interval(value, n_class, n - n_class)


def adjusting_columns(facts: Mapping[str, Fact], units: Sequence[Sequence[str]]) -> Floats:
    """Return columns of facts and pairs for models that adjust for them.

    Each number enters with its distance from the median, each pair with its products.
    """
    columns: list[Floats] = []
    for unit in units:
        members = [facts[name] for name in unit]
        for fact in members:
            columns += [fact.columns, *([fact.distance[:, None]] if fact.is_number else [])]
        if len(members) == 2:
            columns.append(products(*(fact.ranks - fact.ranks.mean(axis=0) for fact in members)))
    return np.column_stack(columns)


def held_out_auc(values: Floats, y: NDArray[Any], fold_of: Codes, n_classes: int) -> float:
    """Return the AUC of facts together, by a logistic regression on held-out subjects.

    Of a score (``n_classes`` is 1) the concordance, by a ridge regression.
    """
    decisions = np.zeros((y.size, n_classes))
    for fold in np.unique(fold_of):
        train, test = fold_of != fold, fold_of == fold
        if n_classes == 1:
            decisions[test, 0] = _predicted(values[train], rankdata(y[train]), values[test])
        else:
            decisions[test] = _log_odds(values[train], y[None, train], values[test], n_classes)[0]
    return auc_of_subjects(decisions, y)["auc"]


def auc_of_subjects(decisions: Floats, y: NDArray[Any]) -> dict[str, float]:
    """AUC of decisions, one row per subject, with its interval; see ``metrics.auc_interval``.

    With one column y is a score, and the AUC the concordance.
    """
    is_scored = decisions.shape[1] == 1
    auc = concordance(decisions[:, 0], y) if is_scored else mean_auc(decisions, y)
    least = 0 if is_scored else np.bincount(y).argmin()
    low, high = _auc_interval(auc, y == least, is_scored)
    return {"auc": auc, "low": low, "high": high}


def auc_of_folds(decisions: Floats, y: NDArray[Any], fold_of: Codes) -> dict[str, float]:
    """AUC of decisions on held-out subjects, mean over folds; see ``metrics.fold_interval``.

    Where fewer than two folds have more than one class or score, it is that of all subjects.
    """
    aucs = auc_by_fold(decisions, y, fold_of)
    if np.isfinite(aucs).sum() < 2:
        return auc_of_subjects(decisions, y)
    interval = fold_interval(aucs, n_subjects=y.size)
    return {"auc": interval.mean, "low": interval.low, "high": interval.high}


def separation_p(decisions: Floats, y: NDArray[Any]) -> float:
    """Return the one-sided p-value of the rank test of held-out decisions between the classes.

    The smallest of the classes against the rest counts, times their number. With one column y is a
    score.
    """
    (n, k), p = decisions.shape, []
    target = LabelledSubjects(np.arange(n), y, k).target
    values = decisions[:, 1:] - decisions[:, :1] if k == 2 else decisions
    for ranks, member in zip(rankdata(values, axis=0).T, target.T, strict=True):
        if ranks.std() > 0 < member.std():
            p.append(special.ndtr(-np.sqrt(n - 1) * np.corrcoef(ranks, member)[0, 1]))
    return float(min(1.0, len(p) * min(p))) if p else 1.0


def propensity(values: Floats, y: Codes, n_classes: int) -> Floats:
    """Log odds of every class, of shape (n_subjects, n_classes), by a model of all subjects.

    Subjects with the same values have the same log odds, which models of folds would not give.
    """
    return np.asarray(_log_odds(values, y[None], values, n_classes)[0])


def _log_odds(values: Floats, labels: Codes, new: Floats, n_classes: int) -> Floats:
    """Log odds of new subjects by a model of each labelling and class against the rest."""
    scaling = Scaling.learn(values)
    scaled = (np.clip(scaling.apply(rows), -_FAR, _FAR) for rows in (values, new))
    X, Z = (np.column_stack([rows, np.ones(len(rows))]) for rows in scaled)
    log_odds = np.zeros((len(labels), len(new), n_classes))
    for k in range(1 if n_classes == 2 else 0, n_classes):
        log_odds[:, :, k] = _fit(X, labels == k) @ Z.T
    return log_odds


def _predicted(values: Floats, ranks: Floats, new: Floats) -> Floats:
    """Predict the ranks of a score for new subjects by a ridge regression."""
    scaling = Scaling.learn(values)
    X, Z = (np.clip(scaling.apply(rows), -_FAR, _FAR) for rows in (values, new))
    products = X.T @ X + _RIDGE * np.eye(X.shape[1])
    return np.asarray(Z @ np.linalg.solve(products, X.T @ (ranks - ranks.mean())))


def _fit(X: Floats, positive: NDArray[np.bool_]) -> Floats:
    """Weights of ridge logistic regressions, one for each row of ``positive``.

    Classes weigh alike; the last column is the intercept, which bears no penalty.
    """
    n, d = X.shape
    share = positive.mean(axis=1, keepdims=True).clip(1 / (2 * n), 1 - 1 / (2 * n))
    importance = np.where(positive, 0.5 / share, 0.5 / (1 - share))
    penalty = np.append(np.full(d - 1, _RIDGE), 1e-6)
    return fit_logistic(X, positive, importance, penalty, max_iter=_STEPS)[0]


def among_matched(eeg: Floats, acquisition: Floats, y: Codes) -> dict[str, Any]:
    """AUC of the EEG over pairs of subjects of different classes whose acquisition matches.

    A subject's acquisition is summed up by the log odds that the associated variables give (a
    propensity score); pairs within the caliper are compared, and no others (Austin, "Optimal
    caliper widths for propensity-score matching", Pharmaceutical Statistics 10:150-161, 2011).
    ``acquisition_auc`` is that of the acquisition among the same pairs, near one half where they
    match indeed; else the match has ``failed``. ``n_subjects`` have a match, of each class;
    ``n_effective`` is Kish's effective number of them, (sum w)^2 / sum w^2 with a subject's number
    of pairs as w (Kish, Survey Sampling, 1965): few subjects who are in most of the pairs count
    as few. ``estimable`` says whether it is at least 8 in each class.
    """
    centred = acquisition - acquisition.mean(axis=1, keepdims=True)
    reach = CALIPER * float(np.sqrt(centred.var(axis=0).mean()))
    apart = np.sqrt(((centred[:, None] - centred[None]) ** 2).mean(axis=2))
    near = (apart <= reach) & (y[:, None] != y)
    n_pairs = [near[y == k].sum(axis=1) for k in range(eeg.shape[1])]
    effective = [float(n.sum() ** 2 / max((n**2).sum(), 1)) for n in n_pairs]
    matched = {
        "n_subjects": [int((n > 0).sum()) for n in n_pairs],
        "n_effective": effective,
        "n_pairs": int(near.sum() // 2),
        "estimable": min(effective) >= FEWEST,
    }
    if not matched["estimable"]:
        return matched
    n_resamples = int(np.clip(4e7 / y.size**2, 100, 1000))
    drawn = draw_within_classes(y, n_resamples, np.random.default_rng(0))
    weights = np.vstack([np.ones(y.size), drawn])
    aucs = weighted_aucs(eeg, y, weights, near)
    of_acquisition = weighted_aucs(acquisition, y, weights, near)
    low, high = np.nanquantile(aucs, [0.025, 0.975])
    least, most = np.nanquantile(of_acquisition, [0.025, 0.975])
    return matched | {
        "auc": float(aucs[0]),
        "low": float(low),
        "high": float(high),
        "acquisition_auc": float(of_acquisition[0]),
        "failed": bool(abs(of_acquisition[0] - 0.5) > UNMATCHED or not least <= 0.5 <= most),
    }


def auc_in_strata(eeg: Floats, levels: Sequence[str], y: Codes) -> list[dict[str, Any]]:
    """AUC of the EEG among subjects of one level each, with its interval; None for too few."""
    rows = []
    for level in dict.fromkeys(sorted(levels)):
        here = np.array([each == level for each in levels])
        counts = np.bincount(y[here], minlength=eeg.shape[1])
        row: dict[str, Any] = {"level": level, "n_subjects": counts.tolist(), "auc": None}
        if counts.min() >= FEWEST_IN_STRATUM:
            row |= auc_of_subjects(eeg[here], y[here])
        rows.append(row)
    return rows


def residuals(
    X: Floats, nuisance: Floats, subjects: LabelledSubjects, train: Codes | NDArray[np.bool_]
) -> Floats:
    """Regress the nuisance variables out of every column that enough subjects have.

    Slopes are those of the means of the subjects trained on, shrunk by 1 - 1/F: slopes that are
    noise would bring into the samples held out what they should take away (Hamdan et al.,
    "Confound-leakage", GigaScience 12:giad071, 2023).
    """
    known = np.zeros(len(nuisance), dtype=bool)
    known[subjects.member[train]] = True
    spread = nuisance[known].std(axis=0)
    used = spread > 1e-12
    centred = nuisance[:, used] - nuisance[known][:, used].mean(axis=0)
    Z = np.clip(centred / spread[used], -_FAR, _FAR)
    means, left = subjects.mean(X), X.copy()
    patterns, pattern_of = np.unique(
        ~np.isnan(means) & known[:, None], axis=1, return_inverse=True
    )
    for pattern, there in enumerate(patterns.T):
        columns = np.flatnonzero(pattern_of.ravel() == pattern)
        if there.sum() > 2 * Z.shape[1] + 2:
            slopes = _shrunk_slopes(Z[there], means[np.ix_(there, columns)])
            left[:, columns] -= (Z @ slopes)[subjects.member]
    return left


def _shrunk_slopes(Z: Floats, values: Floats) -> Floats:
    """Slopes of each column on the nuisance variables, shrunk by their F statistic."""
    centred, Z = values - values.mean(axis=0), Z - Z.mean(axis=0)
    # A little ridge, for variables that say the same.
    products = Z.T @ Z + 1e-3 * len(Z) * np.eye(Z.shape[1])
    slopes = np.linalg.solve(products, Z.T @ centred)
    left = ((centred - Z @ slopes) ** 2).sum(axis=0)
    explained = np.maximum((centred**2).sum(axis=0) - left, 1e-300)
    freedom = len(Z) - Z.shape[1] - 1
    return np.asarray(slopes * np.maximum(0.0, 1 - Z.shape[1] * left / (freedom * explained)))
