"""All variables of the recording together: logistic regression, boosting, people held out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import rankdata

from idfsmec.evaluation.auditing.people import People
from idfsmec.solver.scaling import Scaling

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]

N_PERMUTATIONS = 999
# Penalty of the logistic regression on standardised columns, as scikit-learn's C = 1.
_RIDGE, _STEPS = 1.0, 12
# Multiplications that all permutations may take, roughly: a second or two.
_BUDGET = 4e9


def logistic_decisions(values: Floats, y: Codes, fold_of: Codes, n_classes: int) -> Floats:
    """Log odds of every class for people held out, of shape (n_people, n_classes).

    Classes weigh alike. Columns are standardised by the people trained on.
    """
    return _held_out(values, y[None], fold_of, n_classes)[0]


def propensity(values: Floats, y: Codes, n_classes: int) -> Floats:
    """Log odds of every class, of shape (n_people, n_classes), by a model of all people.

    People with the same values have the same log odds, which models of folds would not give.
    """
    # Nobody is held out: everybody is both fitted and asked.
    known = _standardised(values, values)
    found = np.zeros((y.size, n_classes))
    for k in range(1 if n_classes == 2 else 0, n_classes):
        found[:, k] = (_fit(known, (y == k)[None]) @ known.T)[0]
    return found


def judge_together(
    values: Floats,
    people: People,
    fold_of: Codes,
    *,
    n_permutations: int = N_PERMUTATIONS,
    seed: int = 0,
) -> float:
    """How often the logistic regression tells shuffled labels apart as well: a p-value.

    Labels are dealt anew within each fold, so that folds keep their shares of the classes, and
    everything is fitted again.
    """
    cost = values.shape[0] * (values.shape[1] + 1) ** 2 * _STEPS * len(np.unique(fold_of))
    n_permutations = int(np.clip(_BUDGET / cost, min(199, n_permutations), n_permutations))
    rng = np.random.default_rng(seed)
    dealt = np.tile(people.y, (n_permutations + 1, 1))
    for fold in np.unique(fold_of):
        own = np.flatnonzero(fold_of == fold)
        dealt[1:, own] = rng.permuted(dealt[1:, own], axis=1)
    decisions = _held_out(values, dealt, fold_of, people.n_classes)
    found = _areas(decisions, dealt)
    return float((found >= found[0] - 1e-12).mean())


def boosting_decisions(values: Floats, y: Codes, fold_of: Codes, n_classes: int) -> Floats:
    """Log odds by gradient boosting of small trees: also what no straight line separates."""
    from sklearn.ensemble import GradientBoostingClassifier
    from sklearn.utils.class_weight import compute_sample_weight

    found = np.zeros((y.size, n_classes))
    for fold in np.unique(fold_of):
        train, test = fold_of != fold, fold_of == fold
        model = GradientBoostingClassifier(
            n_estimators=50, max_depth=2, min_samples_leaf=3, random_state=0
        )
        model.fit(values[train], y[train], compute_sample_weight("balanced", y[train]))
        chances = np.full((int(test.sum()), n_classes), 1e-6)
        chances[:, model.classes_] = model.predict_proba(values[test])
        found[test] = np.log(np.maximum(chances, 1e-6))
    return found


def _areas(decisions: Floats, labels: Codes) -> Floats:
    """AUC of each labelling's own decisions, mean over one class against the rest."""
    n_classes = decisions.shape[2]
    if n_classes == 2:
        decisions, wanted = decisions[:, :, 1:] - decisions[:, :, :1], [1]
    else:
        wanted = list(range(n_classes))
    member = labels[:, :, None] == np.array(wanted)
    own = member.sum(axis=1)
    above = (rankdata(decisions, axis=1) * member).sum(axis=1) - own * (own + 1) / 2
    found: Floats = (above / (own * (labels.shape[1] - own))).mean(axis=1)
    return found


def _held_out(values: Floats, labels: Codes, fold_of: Codes, n_classes: int) -> Floats:
    """Decisions for many labellings at once, of shape (n_labellings, n_people, n_classes)."""
    found = np.zeros((*labels.shape, n_classes))
    for fold in np.unique(fold_of):
        train, test = fold_of != fold, fold_of == fold
        known, new = (_standardised(values[part], values[train]) for part in (train, test))
        if n_classes == 2:
            weights = _fit(known, labels[:, train] == 1)
            found[:, test, 1] = weights @ new.T
            continue
        for k in range(n_classes):
            found[:, test, k] = _fit(known, labels[:, train] == k) @ new.T
    return found


def _standardised(values: Floats, train: Floats) -> Floats:
    """Columns in units of the people trained on, and one of ones.

    No value counts as more than six deviations: one wild one would decide.
    """
    scaled = np.clip(Scaling.learn(train).apply(values), -6, 6)
    return np.column_stack([scaled, np.ones(len(values))])


def _fit(known: Floats, positive: NDArray[np.bool_]) -> Floats:
    """Ridge logistic regressions by Newton's method, one for each row of ``positive``.

    Returns weights of shape (n_labellings, n_columns); the last column is the intercept, which
    bears no penalty.
    """
    n, d = known.shape
    share = positive.mean(axis=1, keepdims=True).clip(1 / (2 * n), 1 - 1 / (2 * n))
    importance = np.where(positive, 0.5 / share, 0.5 / (1 - share))
    squares = (known[:, :, None] * known[:, None, :]).reshape(n, -1)
    penalty = np.append(np.full(d - 1, _RIDGE), 1e-6)
    weights = np.zeros((len(positive), d))
    for _ in range(_STEPS):
        chance = expit(weights @ known.T)
        slope = (importance * (chance - positive)) @ known + penalty * weights
        curvature = ((importance * chance * (1 - chance)) @ squares).reshape(-1, d, d)
        curvature += np.diag(penalty)
        step = np.linalg.solve(curvature, slope[..., None])[..., 0]
        # Far from the solution a whole step may overshoot; near it this changes nothing.
        length = np.linalg.norm(step, axis=1, keepdims=True)
        weights -= step * np.minimum(1.0, 5.0 / np.maximum(length, 1e-12))
        if length.max() < 1e-6:
            break
    return weights
