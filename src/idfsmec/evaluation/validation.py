"""Validate a model on participants of another table: what holds there of what its card says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import special

from idfsmec._files import null_for_nan
from idfsmec.errors import InputError, listing
from idfsmec.evaluation.agreement import calibration_line, measure_errors, measure_fixed
from idfsmec.evaluation.clinical import (
    AGE_GROUPS,
    calibration_groups,
    check_prevalence,
    subject_groups,
    summarise_classes,
    summarise_clinical,
)
from idfsmec.metrics import (
    SCORE_METRICS,
    Floats,
    auc_interval,
    diagnostic_scores,
    fixed_auc,
    mean_auc,
    wilson_interval,
)
from idfsmec.prediction.calibration import Calibration, log_odds
from idfsmec.prediction.subjects import (
    USUAL_SHARE,
    SubjectPrediction,
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
#: Participants with a score that a validation needs.
FEWEST_WITH_SCORE = 5

Interval = dict[str, float]


@dataclass(frozen=True, repr=False)
class Validation:
    """What a model does on participants of another table.

    Attributes
    ----------
    measured : mapping
        What ``validation.json`` holds; intervals are ``mean``, ``low`` and ``high``.

        - ``metrics``: ``roc_auc``, ``balanced_accuracy``, ``brier`` and ``scaled_brier``.
        - ``clinical``: sensitivity, specificity, predictive values and decision curve of the
          second class, ``class``, at ``prevalence``; ``groups`` by sex, age, site and condition,
          with AUC.
        - ``card``: scores of the model's card, those here, and the differences.
        - ``calibration``: ``intercept`` and ``slope`` (None if the classes are separated without
          error), and groups of participants with similar probabilities.
        - ``recalibration``: Brier score as it is and with intercept and slope fitted to the other
          participants, and the ``gain``.
        - ``case_mix``: share of participants unlike the training data, where ``expected`` is
          usual; how many get no prediction from ``predict``; ``of_usual``, the AUC (or R2)
          without the unusual ones.
        - ``events``: participants of the smaller class, and how many a validation should have.
        - ``audit``: verdict of the audit of this table.
        - ``left_out``: participants ``without_channel`` of the model, and those ``trained_on``.

        Of three or more classes ``by_class`` takes the place of ``clinical`` and
        ``recalibration``: each class against the rest, and the confusion matrix. Of a score,
        ``metrics`` are R2 against the mean of training, correlations and mean absolute error;
        ``calibration`` has intercept, slope and the mean error; ``interval`` is the share of
        participants whose score lies in their prediction interval. ``groups`` are then beside
        these.
    predictions : DataFrame
        As of :func:`~idfsmec.prediction.predict_subjects`, with the ``true`` class or score.
    """

    measured: Mapping[str, Any]
    predictions: pd.DataFrame

    def __repr__(self) -> str:
        counts = ", ".join(f"{label}: {n}" for label, n in self.measured["n_subjects"].items())
        name = "R2" if "score" in self.measured else "AUC"
        found = self.measured["metrics"]["roc_auc" if name == "AUC" else "subject_r2"]
        return (
            f"Validation({counts}; {name} {found['mean']:.2f}, 95 % CI {found['low']:.2f} to "
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
    """Measure a model on participants that it was not trained on.

    The model stays as it is. Predictions are those of
    :func:`~idfsmec.prediction.predict_subjects`, also for unusual participants. Probabilities of
    two classes are meant for classes as frequent as the model's prior; for Brier score,
    calibration and decision curve they are adjusted to the shares of the classes here.

    Parameters
    ----------
    model : Model
        Of :func:`train_model`, whose card it is compared with, or of
        :func:`~idfsmec.prediction.fit_model`.
    table : FeatureTable
        Other participants, with their labels; for a model of a score, with this column.
    prevalence : float, optional
        How frequent the second of two classes is where the model is to be used, for predictive
        values, Brier score and decision curve; by default as in this table.
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
        The table has other classes than the model or no such score, or fewer than two participants
        of a class (five with a score) with a channel of the model that it was not trained on.

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
    if prevalence is not None and len(model.classes) != 2:
        raise InputError("a prevalence is for models of two classes", argument="prevalence")
    table = with_target_of(model, table)
    true_of = _true_values(model, table)
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
    elif not model.remembered:
        notes = [
            "whether single participants were trained on is not known: the model does not "
            "remember them (train --remember-participants)"
        ]
    predicted = predict_subjects(model, table, allow_unusual=True)
    there = [subject for subject in predicted.subjects if subject.predicted is not None]
    there.sort(key=lambda subject: subject.subject)
    left_out = [s.subject for s in predicted.subjects if s.predicted is None]
    frame = predicted.frame
    true = frame["subject"].map(true_of).where(frame["predicted"].notna())
    if model.score is None:
        true = true.map(dict(enumerate(model.classes)))
    frame.insert(1, "true", true)
    made = _Made(model, tuple(there), np.array([true_of[s.subject] for s in there]), prevalence)
    made.check(len(trained_on))
    names = [subject.subject for subject in there]
    groups = {
        by: np.array([name for subject, name in zip(*pairs, strict=True) if subject in set(names)])
        for by, of in subject_groups(table).items()
        if (pairs := (np.unique(table.subjects.astype(str)), of))
    }
    parts = [
        (by, name, made.where(of == name))
        for by in ("sex", "age", "site")
        for name in (AGE_GROUPS if by == "age" else sorted(set(groups.get(by, ())) - {""}))
        if ((of := groups.get(by, np.empty(0))) == name).any()
    ]
    for condition in table.conditions if len(table.conditions) > 1 else ():
        part = predict_subjects(model, table.select_conditions([condition]), allow_unusual=True)
        seen = tuple(subject for subject in part.subjects if subject.predicted is not None)
        of_seen = np.array([true_of[subject.subject] for subject in seen])
        parts.append(("condition", str(condition), replace(made, subjects=seen, true=of_seen)))
    measured = made.measure(parts)
    unusual = np.array([subject.distance > 1 for subject in there])
    low, high = wilson_interval(int(unusual.sum()), unusual.size)
    main = made.where(~unusual).main_score()
    measured |= {
        "model": {"kind": model.kind},
        "n_subjects": made.counts,
        "audit": dict(audit or {}),
        "card": _compare_card(model, measured),
        "case_mix": {
            "unusual": {"mean": float(unusual.mean()), "low": low, "high": high},
            "expected": 1 - USUAL_SHARE,
            "n_far_outside": sum(subject.is_far_outside for subject in there),
            "of_usual": main,
        },
        "left_out": {"without_channel": left_out, "trained_on": trained_on},
        "notes": [*notes, *predicted.notes],
    }
    return Validation(null_for_nan(measured), frame)


def with_target_of(model: Model, table: FeatureTable) -> FeatureTable:
    """Return a table with the score or the grades that a model predicts; as it is for classes."""
    if model.score is None:
        return table
    if model.grades:
        return table.with_order(model.grades)
    known = table.target
    return (
        table if known.is_numeric and known.name == model.score else table.with_target(model.score)
    )


def _true_values(model: Model, table: FeatureTable) -> dict[str, float] | dict[str, int]:
    """Return the score of each participant, or the code of the class that most samples have."""
    if model.score is not None:
        means = table.scores.groupby(level=0).mean()
        return {str(name): float(value) for name, value in means.items()}
    labels, names = table.y.astype(str), [str(label) for label in model.classes]
    if others := sorted(set(labels) - set(names)):
        raise InputError(
            f"the labels are {listing(sorted(set(labels)))}, and the model predicts "
            f"{listing(names)}: rename {listing(others)}, or leave these participants out"
        )
    shares = pd.get_dummies(labels).reindex(columns=names, fill_value=False)
    counts = shares.groupby(table.subjects.astype(str).to_numpy()).sum()
    codes = counts.to_numpy().argmax(axis=1)
    return dict(zip(map(str, counts.index), map(int, codes), strict=True))


@dataclass(frozen=True)
class _Made:
    """Predictions of a model for participants, and what is true of them: classes or scores."""

    model: Model
    subjects: tuple[SubjectPrediction, ...]
    true: NDArray[Any]
    prevalence: float | None

    def where(self, rows: NDArray[np.bool_]) -> _Made:
        """Keep some of the participants."""
        kept = tuple(s for s, is_kept in zip(self.subjects, rows, strict=True) if is_kept)
        return replace(self, subjects=kept, true=self.true[rows])

    @property
    def counts(self) -> dict[str, int]:
        """Number of participants by class, or with the score."""
        if self.model.score is not None:
            return {self.model.score: self.true.size}
        counts = np.bincount(self.true.astype(int), minlength=len(self.model.classes))
        return {str(k): int(n) for k, n in zip(self.model.classes, counts, strict=True)}

    @property
    def probabilities(self) -> Floats:
        """Of each class, (n_subjects, n_classes)."""
        classes = self.model.classes
        rows = [[subject.probabilities[k] for k in classes] for subject in self.subjects]
        return np.array(rows, dtype=np.float64).reshape(-1, len(classes))

    @property
    def scores(self) -> Floats:
        """The predicted ones."""
        return np.array([subject.predicted for subject in self.subjects], dtype=np.float64)

    def check(self, n_trained_on: int) -> None:
        """Refuse too few participants."""
        least = 2 if self.model.score is None else FEWEST_WITH_SCORE
        if min(self.counts.values()) >= least:
            return
        who = "two participants of each class" if least == 2 else f"{least} participants"
        more = f"; {n_trained_on} that it was trained on do not count" if n_trained_on else ""
        counts = listing(f"{n} {name}" for name, n in self.counts.items())
        raise InputError(
            f"a validation needs {who} with a channel of the model, and there are {counts}{more}"
        )

    def main_score(self) -> Interval:
        """AUC, of several classes the mean of each against the rest; of a score R2."""
        if not self.subjects:
            return dict.fromkeys(("mean", "low", "high"), np.nan)
        if self.model.score is not None:
            return measure_fixed(self.scores, self.true, self.trained_mean)["subject_r2"]
        if len(self.model.classes) == 2:
            value, low, high = fixed_auc(self.probabilities[:, 1], self.true == 1)
            return {"mean": value, "low": low, "high": high}
        few = min(self.counts.values())
        value = mean_auc(self.probabilities, self.true) if few else np.nan
        low, high = auc_interval(value, few, self.true.size - few)
        return {"mean": value, "low": low, "high": high}

    @property
    def trained_mean(self) -> float:
        """Mean score of the participants trained on."""
        return float(self.model.data["score"]["mean"])

    def measure(self, parts: Sequence[tuple[str, str, _Made]]) -> dict[str, Any]:
        """Return all that depends on what is predicted; parts are groups of the participants."""
        share = float(np.mean(self.true == 1))
        prevalence = share if self.prevalence is None else self.prevalence
        groups = [
            {
                "by": by,
                "group": group,
                "n_subjects": list(part.counts.values()),
                **part.describe_group(prevalence),
            }
            for by, group, part in parts
        ]
        if self.model.score is not None:
            return self._of_score() | {"groups": groups}
        if len(self.model.classes) > 2:
            return self._of_classes() | {"groups": groups}
        return self._of_two(groups, share, prevalence)

    def describe_group(self, prevalence: float) -> dict[str, Any]:
        """Return the scores of a group of participants."""
        if self.model.score is not None:
            return {"scores": measure_errors(self.scores, self.true)}
        if len(self.model.classes) > 2:
            return {"scores": {}, "auc": self.main_score()}
        scores = diagnostic_scores(self.true == 1, self.probabilities[:, 1] > 0.5, prevalence)
        return {"scores": scores, "auc": self.main_score()}

    def _of_two(
        self, groups: list[dict[str, Any]], share: float, prevalence: float
    ) -> dict[str, Any]:
        classes, positive, given = self.model.classes, self.true == 1, self.probabilities[:, 1]
        prior = self.model.prior[1]
        clinical = summarise_clinical(classes[1], positive, given, prior, {}, prevalence, 1.0)
        clinical["groups"] = groups
        metrics = {
            "roc_auc": self.main_score(),
            "balanced_accuracy": _mean_share(
                [clinical["scores"][name] for name in ("sensitivity", "specificity")]
            ),
            **_brier(_adjust(given, prior, prevalence), positive, prevalence),
        }
        adjusted, smaller = _adjust(given, prior, share), min(self.counts.values())
        return {
            "classes": [str(label) for label in classes],
            "class": str(classes[1]),
            "prevalence": prevalence,
            "metrics": metrics,
            "clinical": clinical,
            "calibration": _calibration(adjusted, positive, classes),
            "recalibration": _recalibration(adjusted, positive, share),
            "events": {"smaller_class": smaller, "enough": ENOUGH},
        }

    def _of_classes(self) -> dict[str, Any]:
        classes, given, y = self.model.classes, self.probabilities, self.true.astype(np.intp)
        by_class = summarise_classes(classes, y, given, given[None], None)
        recalls = [row["scores"]["sensitivity"] for row in by_class["classes"]]
        return {
            "classes": [str(label) for label in classes],
            "metrics": {"roc_auc": self.main_score(), "balanced_accuracy": _mean_share(recalls)},
            "by_class": by_class,
            "calibration": calibration_groups(given, y, classes),
            "events": {"smaller_class": min(self.counts.values()), "enough": ENOUGH},
        }

    def _of_score(self) -> dict[str, Any]:
        ends = np.array([[subject.low, subject.high] for subject in self.subjects])
        measured: dict[str, Any] = {
            "score": self.model.score,
            "metrics": measure_fixed(self.scores, self.true, self.trained_mean),
            "calibration": calibration_line(self.scores, self.true),
        }
        known = np.isfinite(ends).all(axis=1)
        if known.any():
            inside = (ends[:, 0] <= self.true) & (self.true <= ends[:, 1])
            low, high = wilson_interval(int(inside[known].sum()), int(known.sum()))
            mean = float(inside[known].mean())
            measured["interval"] = {"mean": mean, "low": low, "high": high, "expected": 0.95}
        return measured


def _mean_share(sides: Sequence[Interval]) -> Interval:
    """Return the mean of shares of different participants; their CIs are combined (MOVER)."""
    mean = float(np.mean([side["mean"] for side in sides]))
    down, up = (
        float(np.linalg.norm([side["mean"] - side[end] for side in sides])) / len(sides)
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


def _compare_card(model: Model, measured: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return scores of the card beside those here; CIs of both are combined (MOVER)."""
    performance, here = model.performance, measured["metrics"]
    here = here | measured.get("clinical", {}).get("scores", {})
    card = {
        **performance.get("metrics", {}),
        **performance.get("clinical", {}).get("scores", {}),
    }
    rows = []
    of_classes = ("roc_auc", "balanced_accuracy", "sensitivity", "specificity")
    for name in (*of_classes, *SCORE_METRICS[:-1]):
        if name not in card or name not in here:
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
