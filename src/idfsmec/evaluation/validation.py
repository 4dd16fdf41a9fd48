"""Validate a model on participants of another table: what holds there of what its card says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import special

from idfsmec._files import null_for_nan
from idfsmec.errors import InputError, listing
from idfsmec.evaluation.clinical import (
    calibration_groups,
    check_prevalence,
    subject_groups,
    summarise_clinical,
)
from idfsmec.metrics import Floats, auc, auc_interval, diagnostic_scores, wilson_interval
from idfsmec.prediction.calibration import Calibration, log_odds
from idfsmec.prediction.subjects import (
    USUAL_SHARE,
    Predictions,
    find_training_subjects,
    predict_subjects,
)
from idfsmec.solver.logistic import fit_logistic

if TYPE_CHECKING:
    from idfsmec.prediction import Model
    from idfsmec.table import FeatureTable

#: Participants of the smaller class that a validation should have (Collins, Ogundimu and Altman,
#: Statistics in Medicine 35, 214-226, 2016).
ENOUGH = 100

Interval = dict[str, float]


@dataclass(frozen=True, repr=False)
class Validation:
    """What a model does on participants of another table.

    Attributes
    ----------
    measured : mapping
        What ``validation.json`` holds; intervals are ``mean``, ``low`` and ``high``. ``class`` is
        the second class, which scores are about.

        - ``metrics``: ``roc_auc``, ``balanced_accuracy``, ``brier`` and ``scaled_brier``.
        - ``clinical``: sensitivity, specificity, predictive values and decision curve at
          ``prevalence``; ``groups`` by sex, age, site and condition, with AUC.
        - ``card``: scores of the model's card, those here, and the differences.
        - ``calibration``: ``intercept`` and ``slope`` (None if the classes are separated without
          error), and groups of participants with similar probabilities.
        - ``recalibration``: Brier score as it is and with intercept and slope fitted to the other
          participants, and the ``gain``.
        - ``case_mix``: share of participants unlike the training data, where ``expected`` is
          usual; how many get no probability from ``predict``; AUC without the unusual ones.
        - ``events``: participants of the smaller class, and how many a validation should have.
        - ``audit``: verdict of the audit of this table.
        - ``left_out``: participants ``without_channel`` of the model, and those ``trained_on``.
    predictions : DataFrame
        As of :func:`~idfsmec.prediction.predict_subjects`, with the ``true`` class.
    """

    measured: Mapping[str, Any]
    predictions: pd.DataFrame

    def __repr__(self) -> str:
        counts = ", ".join(f"{label}: {n}" for label, n in self.measured["n_subjects"].items())
        found = self.measured["metrics"]["roc_auc"]
        return (
            f"Validation({counts}; AUC {found['mean']:.2f}, 95 % CI {found['low']:.2f} to "
            f"{found['high']:.2f})"
        )


def validate(
    model: Model,
    table: FeatureTable,
    *,
    prevalence: float | None = None,
    include_training: bool = False,
    audit: Mapping[str, str] | None = None,
) -> Validation:
    """Measure a model of two classes on participants that it was not trained on.

    The model stays as it is. Probabilities are those of
    :func:`~idfsmec.prediction.predict_subjects`, also for unusual participants. They are meant for
    classes as frequent as the model's prior; for Brier score, calibration and decision curve they
    are adjusted to the shares of the classes here.

    Parameters
    ----------
    model : Model
        Of :func:`train_model`, whose card it is compared with, or of
        :func:`~idfsmec.prediction.fit_model`.
    table : FeatureTable
        Other participants, with their labels.
    prevalence : float, optional
        How frequent the second class is where the model is to be used, for predictive values,
        Brier score and decision curve; by default as in this table.
    include_training : bool, default=False
        Whether to score participants that the model is known to be trained on, too
        (:func:`~idfsmec.prediction.find_training_subjects`).
    audit : mapping, optional
        The verdict of an audit of this table, :attr:`idfsmec.audit.Audit.verdict`.

    Returns
    -------
    Validation

    Raises
    ------
    InputError
        The model has more than two classes, the table other ones, or fewer than two participants
        of a class with a channel of the model that it was not trained on.

    Examples
    --------
    >>> from idfsmec import FeatureTable
    >>> from idfsmec.evaluation import train_model, validate
    >>> rng = np.random.default_rng(0)
    >>> def make_clinic(n):
    ...     y = np.repeat(["HC", "MDD"], n)
    ...     X = pd.DataFrame(rng.normal(size=(2 * n, 2)), columns=["F3__a", "Pz__a"])
    ...     X["F3__a"] += 2 * (y == "MDD")
    ...     return FeatureTable(X, y, np.arange(2 * n))
    >>> model = train_model(make_clinic(20), n_splits=2, n_repeats=1)
    >>> validation = validate(model, make_clinic(30))
    >>> validation.measured["n_subjects"], validation.measured["metrics"]["roc_auc"]["mean"] > 0.8
    ({'HC': 30, 'MDD': 30}, True)
    """
    check_prevalence(prevalence)
    if len(model.classes) != 2:
        raise InputError(
            f"the model has {len(model.classes)} classes; a validation takes models of two"
        )
    positive_of = _labels(model, table)
    trained_on, notes = find_training_subjects(model, table), []
    if trained_on and include_training:
        notes = [f"{len(trained_on)} were trained on: the scores say nothing about others"]
        trained_on = []
    elif trained_on:
        others = ~table.subjects.astype(str).isin(trained_on).to_numpy()
        if not others.any():
            raise InputError(
                f"the model was trained on all {len(trained_on)} participants of this table; "
                "validate it on others, or include them to see the optimism"
            )
        table = table.take(others)
    predicted = predict_subjects(model, table, allow_unusual=True)
    there = [subject for subject in predicted.subjects if subject.predicted is not None]
    there.sort(key=lambda subject: subject.subject)
    positive = np.array([positive_of[subject.subject] for subject in there], dtype=bool)
    counts = [int((~positive).sum()), int(positive.sum())]
    if min(counts) < 2:
        raise InputError(
            f"a validation needs two participants of each class with a channel of the model, and "
            f"there are {listing(f'{n} {k}' for n, k in zip(counts, model.classes, strict=True))}"
            + (f"; {len(trained_on)} that it was trained on do not count" if trained_on else "")
        )
    given = np.array([subject.probabilities[model.classes[1]] for subject in there])
    share, prior = counts[1] / sum(counts), model.prior[1]
    prevalence = share if prevalence is None else prevalence
    left_out = [s.subject for s in predicted.subjects if s.predicted is None]
    names = [subject.subject for subject in there]
    groups = {
        by: [name for subject, name in zip(*pairs, strict=True) if subject not in set(left_out)]
        for by, of in subject_groups(table).items()
        if (pairs := (np.unique(table.subjects.astype(str)), of))
    }
    clinical = summarise_clinical(model.classes[1], positive, given, prior, groups, prevalence)
    for group in clinical["groups"]:
        here = np.array(groups[group["by"]]) == group["group"]
        group["auc"] = _auc(given[here], positive[here])
    clinical["groups"] += _by_condition(model, table, positive_of, prevalence)
    metrics = {
        "roc_auc": _auc(given, positive),
        "balanced_accuracy": _balanced_accuracy(clinical["scores"]),
        **_brier(_adjust(given, prior, prevalence), positive, prevalence),
    }
    adjusted = _adjust(given, prior, share)
    unusual = np.array([subject.distance > 1 for subject in there])
    low, high = wilson_interval(int(unusual.sum()), unusual.size)
    measured = {
        "model": {"kind": model.kind},
        "classes": [str(label) for label in model.classes],
        "class": str(model.classes[1]),
        "n_subjects": {str(k): n for k, n in zip(model.classes, counts, strict=True)},
        "prevalence": prevalence,
        "audit": dict(audit or {}),
        "metrics": metrics,
        "card": _compare_card(model, metrics | clinical["scores"]),
        "clinical": clinical,
        "calibration": _calibration(adjusted, positive, model.classes),
        "recalibration": _recalibration(adjusted, positive, share),
        "case_mix": {
            "unusual": {"mean": float(unusual.mean()), "low": low, "high": high},
            "expected": 1 - USUAL_SHARE,
            "n_far_outside": sum(subject.is_far_outside for subject in there),
            "auc_of_usual": _auc(given[~unusual], positive[~unusual]),
        },
        "events": {"smaller_class": min(counts), "enough": ENOUGH},
        "left_out": {"without_channel": left_out, "trained_on": trained_on},
        "notes": [*notes, *predicted.notes],
    }
    return Validation(null_for_nan(measured), _frame(predicted, names, positive, model.classes))


def _labels(model: Model, table: FeatureTable) -> dict[str, bool]:
    """Return whether each participant, by most samples, is of the model's second class."""
    labels, names = table.y.astype(str), [str(label) for label in model.classes]
    if others := sorted(set(labels) - set(names)):
        raise InputError(
            f"the labels are {listing(sorted(set(labels)))}, and the model predicts "
            f"{listing(names)}: rename {listing(others)}, or leave these participants out"
        )
    share = (labels == names[1]).groupby(table.subjects.astype(str).to_numpy()).mean()
    return {str(name): bool(value > 0.5) for name, value in share.items()}


def _frame(
    predicted: Predictions, names: Sequence[str], positive: NDArray[np.bool_], classes: list[Any]
) -> pd.DataFrame:
    """Return the predictions with the true class behind the participant."""
    frame = predicted.frame
    true = dict(zip(names, (classes[int(code)] for code in positive), strict=True))
    frame.insert(1, "true", frame["subject"].map(true))
    return frame


def _by_condition(
    model: Model, table: FeatureTable, positive_of: Mapping[str, bool], prevalence: float
) -> list[dict[str, Any]]:
    """Predict participants from the samples of one condition at a time, if there are several."""
    rows = []
    for condition in table.conditions if len(table.conditions) > 1 else ():
        part = table.select_conditions([condition])
        made = predict_subjects(model, part, allow_unusual=True).subjects
        made = tuple(subject for subject in made if subject.predicted is not None)
        given = np.array([subject.probabilities[model.classes[1]] for subject in made])
        positive = np.array([positive_of[subject.subject] for subject in made], dtype=bool)
        rows.append(
            {
                "by": "condition",
                "group": str(condition),
                "n_subjects": np.bincount(positive, minlength=2).tolist(),
                "scores": diagnostic_scores(positive, given > 0.5, prevalence),
                "auc": _auc(given, positive),
            }
        )
    return rows


def _auc(values: Floats, positive: NDArray[np.bool_]) -> Interval:
    """Return the AUC with Newcombe's CI; benchmarks/quality/validation.py has its coverage."""
    found, n_positive = auc(values, positive), int(positive.sum())
    low, high = auc_interval(found, n_positive, positive.size - n_positive)
    return {"mean": found, "low": low, "high": high}


def _balanced_accuracy(scores: Mapping[str, Interval]) -> Interval:
    """Return the mean of sensitivity and specificity; their Wilson CIs are combined (MOVER)."""
    sides = [scores[name] for name in ("sensitivity", "specificity")]
    mean = float(np.mean([side["mean"] for side in sides]))
    down, up = (
        float(np.linalg.norm([side["mean"] - side[end] for side in sides])) / 2
        for end in ("low", "high")
    )
    return {"mean": mean, "low": mean - down, "high": mean + up}


def _adjust(probability: Floats, prior: float, share: float) -> Floats:
    """Return probabilities for a population in which the class is as frequent as ``share``."""
    shift = special.logit(share) - special.logit(prior)
    return np.asarray(special.expit(log_odds(probability) + shift))


def _class_mean(values: Floats, positive: NDArray[np.bool_], share: float) -> Interval:
    """Return the mean where the class has a share, with Welch's 95 % CI over participants."""
    sides = [(1 - share, values[~positive]), (share, values[positive])]
    mean = sum(weight * side.mean() for weight, side in sides)
    variances = np.array([weight**2 * side.var(ddof=1) / side.size for weight, side in sides])
    sizes = np.array([side.size for _, side in sides])
    total = variances.sum()
    freedom = total**2 / (variances**2 / (sizes - 1)).sum() if total else 1.0
    half = special.stdtrit(freedom, 0.975) * np.sqrt(total)
    return {"mean": float(mean), "low": float(mean - half), "high": float(mean + half)}


def _brier(
    probability: Floats, positive: NDArray[np.bool_], prevalence: float
) -> dict[str, Interval]:
    """Return the Brier score at a prevalence, and 1 minus its ratio to that of the prevalence."""
    score = _class_mean((probability - positive) ** 2, positive, prevalence)
    score["low"] = max(score["low"], 0.0)
    low, mean, high = (
        1 - score[end] / (prevalence * (1 - prevalence)) for end in ("high", "mean", "low")
    )
    return {"brier": score, "scaled_brier": {"mean": mean, "low": low, "high": high}}


def _calibration(
    probability: Floats, positive: NDArray[np.bool_], classes: Sequence[Any]
) -> dict[str, Any]:
    """Return intercept (slope 1) and slope of a logistic regression on log odds, and groups.

    Without error between the classes there is no slope. Variances are those of the scores within
    the classes, whose sizes are given (a sandwich; White, Econometrica 50, 1-25, 1982): Wald's
    intervals hold too often for the intercept, and too rarely where log odds are not linear. See
    benchmarks/quality/validation.py.
    """
    both = np.column_stack([1 - probability, probability])
    values = log_odds(probability)
    fits: dict[str, Interval | None] = {}
    ill, well = values[positive], values[~positive]
    separated = ill.min() >= well.max() or ill.max() <= well.min()
    design = np.column_stack([np.ones(values.size), values])
    everyone, held = np.ones((1, values.size)), 1e9  # a precision that holds the slope at 1
    for place, (name, precision) in enumerate({"intercept": held, "slope": 0.0}.items()):
        if name == "slope" and separated:
            fits[name] = None
            continue
        coefs, curvatures = fit_logistic(
            design, positive, everyone, np.array([0.0, precision]), np.array([0.0, 1.0]), 50
        )
        free = slice(place + 1)
        inverse = np.linalg.inv(curvatures[0, free, free])
        scores = (positive - special.expit(design @ coefs[0]))[:, None] * design[:, free]
        sides = [scores[~positive], scores[positive]]
        spread = sum(len(side) * np.atleast_2d(np.cov(side, rowvar=False)) for side in sides)
        error = np.sqrt((inverse @ spread @ inverse)[place, place])
        mean = float(coefs[0, place])
        half = float(special.stdtrit(min(map(len, sides)) - 1, 0.975) * error)
        fits[name] = {"mean": mean, "low": mean - half, "high": mean + half}
        line = coefs[0].tolist()
    groups = calibration_groups(both, positive.astype(np.intp), classes)
    return {**groups, **fits, "line": None if separated else line}


def _recalibration(
    probability: Floats, positive: NDArray[np.bool_], share: float
) -> dict[str, Any]:
    """Return what intercept and slope, fitted to the other participants, take off the Brier."""
    left = [np.column_stack([1 - probability, probability])]
    true, prior = positive.astype(np.intp), [1 - share, share]
    fitted = Calibration({"true": true, "prior": prior, "shares": [1.0], "left": left})
    after = fitted.leave_one_out()[:, 1]
    before, now = (probability - positive) ** 2, (after - positive) ** 2
    gain = _class_mean(before - now, positive, share)
    return {"brier": float(before.mean()), "recalibrated": float(now.mean()), "gain": gain}


def _compare_card(model: Model, here: Mapping[str, Interval]) -> list[dict[str, Any]]:
    """Return scores of the card beside those here; CIs of both are combined (MOVER)."""
    performance = model.performance
    card = {
        **performance.get("metrics", {}),
        **performance.get("clinical", {}).get("scores", {}),
    }
    rows = []
    for name in ("roc_auc", "balanced_accuracy", "sensitivity", "specificity"):
        if name not in card:
            continue
        there, now = card[name], here[name]
        mean = now["mean"] - there["mean"]
        down = np.hypot(now["mean"] - now["low"], there["high"] - there["mean"])
        up = np.hypot(now["high"] - now["mean"], there["mean"] - there["low"])
        rows.append(
            {
                "score": name,
                "card": {end: there[end] for end in ("mean", "low", "high")},
                "here": now,
                "difference": {"mean": mean, "low": float(mean - down), "high": float(mean + up)},
            }
        )
    return rows
