"""Confounding: acquisition variables against the diagnosis, and the EEG adjusted for them.

The unit is a subject within a label. Each variable is tested alone, by the largest distance of an
AUC from one half over its columns and the classes, with labels permuted; all together by a
logistic regression with subjects held out, likewise. The EEG is then scored among pairs of
subjects whose acquisition matches, and with the variables regressed out of its features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import rankdata
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.utils.class_weight import compute_sample_weight

from idfsmec.audit.variables import Variables, kind_of
from idfsmec.metrics import (
    Codes,
    Floats,
    auc_from_ranks,
    auc_interval,
    draw_within_classes,
    score_decisions,
    weighted_aucs,
)
from idfsmec.solver.scaling import Scaling

#: How often labels are permuted for each variable alone, and for all together.
N_PERMUTATIONS, N_PERMUTATIONS_TOGETHER = 1999, 999
#: Acquisition matches if log odds differ by less than this many standard deviations, the usual
#: caliper of matching by propensity.
CALIPER = 0.2
#: With a smaller effective number of subjects of a class, matched pairs decide nothing.
FEWEST = 8
#: A match has failed where acquisition's AUC among the pairs is farther than this from one half,
#: or its interval excludes one half.
UNMATCHED = 0.1
#: Subjects of each class that a stratum needs for an AUC.
FEWEST_IN_STRATUM = 3
# Labels x subjects that are permuted at once, and multiplications that permutations may take.
_BLOCK, _BUDGET = 2_000_000, 4e9
# Penalty of the logistic regression on standardised columns, as scikit-learn's C = 1.
_RIDGE, _STEPS = 1.0, 12
# No value counts as more than so many standard deviations: a single wild value would decide.
_FAR = 6.0


@dataclass(frozen=True)
class Subjects:
    """Subjects within labels: a subject with two labels counts once within each.

    ``member`` is the subject of each sample, ``y`` the class of each subject.
    """

    member: Codes
    y: Codes
    n_classes: int

    @classmethod
    def of(cls, y: Codes, subjects: Codes, n_classes: int) -> Subjects:
        """Find the subjects of a table."""
        cells, member = np.unique(subjects * n_classes + y, return_inverse=True)
        return cls(member.astype(np.intp), (cells % n_classes).astype(np.intp), n_classes)

    def of_subjects(self, values: NDArray) -> NDArray:
        """Give each subject the value of their samples, which all have the same."""
        by_subject = np.zeros(self.y.size, dtype=values.dtype)
        by_subject[self.member] = values
        return by_subject

    def mean(self, values: Floats) -> Floats:
        """Mean over the samples of each subject that are not NaN, shape (n_subjects, ...)."""
        total, count = np.zeros((2, self.y.size, *values.shape[1:]))
        np.add.at(total, self.member, np.nan_to_num(values))
        np.add.at(count, self.member, ~np.isnan(values))
        return np.where(count > 0, total / np.maximum(count, 1), np.nan)

    def permute(self, rng: np.random.Generator, within: NDArray | None = None) -> Codes:
        """Permute the labels of the subjects; within sites, if those of the samples are given."""
        site_of = np.zeros(self.y.size) if within is None else self.of_subjects(within)
        permuted = self.y.copy()
        for site in np.unique(site_of):
            permuted[site_of == site] = rng.permutation(self.y[site_of == site])
        return permuted


def judge_alone(
    variables: Variables,
    subjects: Subjects,
    *,
    n_permutations: int = N_PERMUTATIONS,
    seed: int = 0,
) -> list[dict[str, Any]]:
    """Test every variable alone: AUC oriented to at least 0.5, CI and two-sided p.

    ``class`` and ``higher`` say in which class it is higher or lower, ``level`` what of a text.
    """
    if not variables.names:
        return []
    ranks = rankdata(variables.values, axis=0)
    classes = np.arange(subjects.n_classes)[:, None]
    starts = np.searchsorted(variables.variable_of, np.arange(len(variables.names)))

    def largest(aucs: Floats) -> Floats:
        return np.maximum.reduceat(np.abs(aucs - 0.5).max(axis=1), starts, axis=1)

    observed = auc_from_ranks(ranks, (subjects.y == classes).astype(float)[None])
    reached = largest(observed)[0]
    beyond = np.zeros(reached.size)
    rng, block = np.random.default_rng(seed), max(1, _BLOCK // subjects.y.size)
    for first in range(0, n_permutations, block):
        count = min(block, n_permutations - first)
        permuted = rng.permuted(np.broadcast_to(subjects.y, (count, subjects.y.size)), axis=1)
        member = (permuted[:, None, :] == classes).astype(float)
        beyond += (largest(auc_from_ranks(ranks, member)) >= reached - 1e-12).sum(axis=0)
    rows = []
    for code, p in enumerate((1 + beyond) / (n_permutations + 1)):
        columns = np.flatnonzero(variables.variable_of == code)
        # With two classes both rows say the same; the one above one half is kept.
        distance = observed[0][:, columns] - 0.5
        distance = np.abs(distance) if subjects.n_classes > 2 else distance
        k, best = np.unravel_index(np.argmax(distance), distance.shape)
        value = float(observed[0][k, columns[best]])
        n_class, oriented = int((subjects.y == k).sum()), max(value, 1.0 - value)
        low, high = auc_interval(oriented, n_class, subjects.y.size - n_class)
        name, level = variables.names[code], variables.levels[columns[best]]
        about = {"variable": name, "kind": kind_of(name), "level": level}
        scores = {"auc": oriented, "low": low, "high": high, "p": float(p)}
        rows.append({**about, "class": int(k), "higher": value >= 0.5, **scores})
    return rows


def leading_decisions(
    variables: Variables, subjects: Subjects, alone: list[dict[str, Any]]
) -> list[list[float]]:
    """Give the variable that separates two classes best as decisions; none for more classes."""
    if subjects.n_classes != 2 or not alone:
        return []
    best = min(alone, key=lambda row: (row["p"], -row["auc"]))
    of_best = variables.variable_of == variables.names.index(best["variable"])
    column = np.flatnonzero(of_best & (np.array(variables.levels) == best["level"]))[0]
    decisions = np.zeros((subjects.y.size, 2))
    decisions[:, best["class"]] = variables.values[:, column]
    return decisions.tolist()


def judge_together(
    values: Floats,
    subjects: Subjects,
    fold_of: Codes,
    *,
    n_permutations: int = N_PERMUTATIONS_TOGETHER,
    seed: int = 0,
) -> dict[str, Any]:
    """Score a logistic regression of all variables on subjects held out.

    Classes weigh alike, and columns are standardised by the subjects trained on. Returns its
    ``p`` (how often permuted labels do as well), ``auc`` with its interval and decisions as
    ``logistic``. Labels are permuted within each fold, so that folds keep their shares of the
    classes, and everything is fitted again.
    """
    cost = values.shape[0] * (values.shape[1] + 1) ** 2 * _STEPS * len(np.unique(fold_of))
    n_permutations = int(np.clip(_BUDGET / cost, min(199, n_permutations), n_permutations))
    rng = np.random.default_rng(seed)
    labels = np.tile(subjects.y, (n_permutations + 1, 1))
    for fold in np.unique(fold_of):
        members = np.flatnonzero(fold_of == fold)
        labels[1:, members] = rng.permuted(labels[1:, members], axis=1)
    decisions = _held_out(values, labels, fold_of, subjects.n_classes)
    everyone, wanted = np.arange(subjects.y.size), ["roc_auc"]
    aucs = [
        score_decisions(decided, y, everyone, wanted)["roc_auc"]
        for decided, y in zip(decisions, labels, strict=True)
    ]
    p = float(np.mean(np.array(aucs) >= aucs[0] - 1e-12))
    scored = auc_of_subjects(decisions[0], subjects.y)
    return {"p": p, **scored, "logistic": decisions[0].tolist()}


def auc_of_subjects(decisions: Floats, y: Codes, n_looks: int = 1) -> dict[str, float]:
    """AUC of decisions, one row per subject, with its interval; see ``metrics.auc_interval``."""
    auc = score_decisions(decisions, y, np.arange(y.size), ["roc_auc"])["roc_auc"]
    few = int(np.bincount(y).min())
    low, high = auc_interval(auc, few, y.size - few, n_looks)
    return {"auc": auc, "low": low, "high": high}


def boosting_decisions(values: Floats, y: Codes, fold_of: Codes, n_classes: int) -> Floats:
    """Return log odds by gradient boosting of small trees, for non-linear differences."""
    probabilities = np.full((y.size, n_classes), 1e-6)
    for fold in np.unique(fold_of):
        train, test = fold_of != fold, fold_of == fold
        model = GradientBoostingClassifier(
            n_estimators=50, max_depth=2, min_samples_leaf=3, random_state=0
        )
        model.fit(values[train], y[train], compute_sample_weight("balanced", y[train]))
        probabilities[np.ix_(test, model.classes_)] = model.predict_proba(values[test])
    return np.log(np.maximum(probabilities, 1e-6))


def propensity(values: Floats, y: Codes, n_classes: int) -> Floats:
    """Log odds of every class, of shape (n_subjects, n_classes), by a model of all subjects.

    Subjects with the same values have the same log odds, which models of folds would not give.
    """
    X = _standardised(values, values)
    return _log_odds(X, y[None], X, n_classes)[0]


def _held_out(values: Floats, labels: Codes, fold_of: Codes, n_classes: int) -> Floats:
    """Decisions for many labellings at once, of shape (n_labellings, n_subjects, n_classes)."""
    decisions = np.zeros((*labels.shape, n_classes))
    for fold in np.unique(fold_of):
        train, test = fold_of != fold, fold_of == fold
        known, new = (_standardised(values[part], values[train]) for part in (train, test))
        decisions[:, test] = _log_odds(known, labels[:, train], new, n_classes)
    return decisions


def _standardised(values: Floats, train: Floats) -> Floats:
    """Columns in units of the subjects trained on, and one of ones."""
    scaled = np.clip(Scaling.learn(train).apply(values), -_FAR, _FAR)
    return np.column_stack([scaled, np.ones(len(values))])


def _log_odds(X: Floats, labels: Codes, new: Floats, n_classes: int) -> Floats:
    """Log odds of new subjects by a model of each labelling and class against the rest."""
    log_odds = np.zeros((len(labels), len(new), n_classes))
    for k in range(1 if n_classes == 2 else 0, n_classes):
        log_odds[:, :, k] = _fit(X, labels == k) @ new.T
    return log_odds


def _fit(X: Floats, positive: NDArray[np.bool_]) -> Floats:
    """Ridge logistic regressions by Newton's method, one for each row of ``positive``.

    Returns weights of shape (n_labellings, n_columns); the last column is the intercept, which
    bears no penalty.
    """
    n, d = X.shape
    share = positive.mean(axis=1, keepdims=True).clip(1 / (2 * n), 1 - 1 / (2 * n))
    importance = np.where(positive, 0.5 / share, 0.5 / (1 - share))
    squares = (X[:, :, None] * X[:, None, :]).reshape(n, -1)
    penalty = np.append(np.full(d - 1, _RIDGE), 1e-6)
    weights = np.zeros((len(positive), d))
    for _ in range(_STEPS):
        chance = expit(weights @ X.T)
        slope = (importance * (chance - positive)) @ X + penalty * weights
        curvature = ((importance * chance * (1 - chance)) @ squares).reshape(-1, d, d)
        curvature += np.diag(penalty)
        step = np.linalg.solve(curvature, slope[..., None])[..., 0]
        # Far from the solution a whole step may overshoot; near it this changes nothing.
        length = np.linalg.norm(step, axis=1, keepdims=True)
        weights -= step * np.minimum(1.0, 5.0 / np.maximum(length, 1e-12))
        if length.max() < 1e-6:
            break
    return weights


def among_matched(eeg: Floats, acquisition: Floats, y: Codes, *, seed: int = 0) -> dict[str, Any]:
    """AUC of the EEG over pairs of subjects of different classes whose acquisition matches.

    A subject's acquisition is summed up by the log odds that the associated variables give (a
    propensity score); pairs within the caliper are compared, and no others (Austin, "Optimal
    caliper widths for propensity-score matching", Pharmaceutical Statistics 10:150-161, 2011).
    ``acquisition_auc`` is that of the acquisition among the same pairs, near one half where they
    match indeed; else the match has ``failed``. ``n_subjects`` have a match, of each class;
    ``n_effective`` is Kish's effective number of them, (sum w)^2 / sum w^2 with a subject's number
    of pairs as w (Kish, Survey Sampling, 1965): few subjects who are in most of the pairs count
    as few. ``estimable`` says whether it is at least 8 in each class.

    The limit of 0.1 was judged on simulated cohorts of 60 to 240 subjects, of seeds that were not
    used to choose it. It calls 5 % of 1,500 matches failed though acquisition says nothing within
    pairs; 0.05 would call 18 %, 0.15 3 %. Of matches in which acquisition keeps a mean AUC of
    0.73, 3 % pass; of those with 0.58, 53 %. An EEG that shows acquisition alone passed with a
    CI that excludes one half in 0.6 % of these cohorts.
    """
    n_classes = eeg.shape[1]
    centred = acquisition - acquisition.mean(axis=1, keepdims=True)
    reach = CALIPER * float(np.sqrt(centred.var(axis=0).mean()))
    apart = np.sqrt(((centred[:, None] - centred[None]) ** 2).mean(axis=2))
    near = (apart <= reach) & (y[:, None] != y)
    counts = [int(near[y == k].any(axis=1).sum()) for k in range(n_classes)]
    effective = [_effective_number(near[y == k].sum(axis=1)) for k in range(n_classes)]
    matched = {
        "n_subjects": counts,
        "n_effective": effective,
        "n_pairs": int(near.sum() // 2),
        "estimable": min(effective) >= FEWEST,
    }
    if not matched["estimable"]:
        return matched
    n_resamples = int(np.clip(4e7 / y.size**2, 100, 1000))
    drawn = draw_within_classes(y, n_resamples, np.random.default_rng(seed))
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


def _effective_number(weights: NDArray) -> float:
    """Return Kish's effective number of subjects with these weights; 0 without any."""
    return float(weights.sum() ** 2 / max((weights**2).sum(), 1))


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
    X: Floats, nuisance: Floats, subjects: Subjects, train: Codes | NDArray[np.bool_]
) -> Floats:
    """Regress the nuisance variables out of every column.

    The model is fitted to the means of the subjects trained on, as far as they have the column,
    and its slopes are shrunk by how sure they are: by 1 - 1/F, and not below nothing. Slopes that
    are noise would bring into the samples held out what they should take away (Hamdan et al.,
    "Confound-leakage", GigaScience 12:giad071, 2023). A column that too few subjects have stays as
    it is.
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
