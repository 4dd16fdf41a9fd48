"""Clinical scores of held-out subjects, for model cards and benchmarks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit, logit

from idfsmec.errors import InputError
from idfsmec.metrics import (
    CROSS_VALIDATED,
    Codes,
    Floats,
    auc,
    diagnostic_scores,
    fixed_auc,
    fold_interval,
    net_benefit,
    wilson_interval,
)
from idfsmec.prediction.calibration import Calibration

if TYPE_CHECKING:
    from idfsmec.evaluation.results import Results
    from idfsmec.table import FeatureTable

_AGES = (30, 45, 60)
AGE_GROUPS = ("under 30", "30 to 44", "45 to 59", "60 and over")
# Probabilities from which on one may want to act.
_THRESHOLDS = tuple(round(0.05 * step, 2) for step in range(1, 20))
_MOST_BINS, _LEAST_IN_BIN = 5, 5
# Predictive values are stated for these prevalences, too: a study has far more patients than most
# places where a model would be used.
_PREVALENCES = (0.05, 0.1, 0.2)


def check_prevalence(prevalence: float | None) -> None:
    """Refuse a prevalence outside of 0 to 1."""
    if prevalence is not None and not 0 < prevalence < 1:
        raise InputError(
            f"prevalence is {prevalence}: give a share above 0 and below 1", argument="prevalence"
        )


def subject_groups(table: FeatureTable) -> dict[str, list[str]]:
    """Return sex, age group and site of subjects, in order of their names; "" where not known."""
    first = np.unique(table.subjects.to_numpy().astype(str), return_index=True)[1]
    subjects = table.take(first)
    rows = pd.DataFrame() if subjects.rows is None else subjects.rows
    known = {"sex": rows["sex"]} if "sex" in rows else {}
    if "age" in rows:
        ages = pd.to_numeric(rows["age"], errors="coerce")
        known["age"] = pd.cut(ages, [0, *_AGES, np.inf], right=False, labels=AGE_GROUPS)
    if subjects.sites is not None:
        known["site"] = subjects.sites
    return {
        by: [str(name) for name in of.astype(object).where(of.notna(), "")]
        for by, of in known.items()
    }


def summarise_clinical(
    label: object,
    positive: NDArray[np.bool_],
    probability: NDArray[np.float64],
    prior: float,
    groups: Mapping[str, Sequence[str]],
    prevalence: float | None,
    inflation: float = CROSS_VALIDATED,
) -> dict[str, Any]:
    """Return sensitivity, specificity, predictive values and decision curve of ``label``.

    Probabilities are those of subjects held out, for a class as frequent as ``prior``; the
    prevalence is by default that among them. ``inflation`` is 1 for a fixed model.
    """
    prevalence = float(positive.mean()) if prevalence is None else prevalence
    scored, score = [], partial(diagnostic_scores, inflation=inflation)
    for by in ("sex", "age", "site"):
        of = groups.get(by, ())
        order = AGE_GROUPS if by == "age" else sorted(set(of) - {""})
        for name in (name for name in order if name in of):
            here = np.array([each == name for each in of])
            counts = np.bincount(positive[here], minlength=2).tolist()
            scores = score(positive[here], probability[here] > 0.5, prevalence)
            scored.append({"by": by, "group": name, "n_subjects": counts, "scores": scores})
    # Probabilities are meant for the prior; where the class is rarer, they are lower.
    there = expit(logit(probability) + logit(prevalence) - logit(prior))
    flagged = probability > 0.5
    at_prevalence = [
        {"prevalence": at, "scores": score(positive, flagged, at)} for at in _PREVALENCES
    ]
    return {
        "class": str(label),
        "prevalence": prevalence,
        "at_prevalence": at_prevalence,
        "scores": score(positive, flagged, prevalence),
        "groups": scored,
        "decision_curve": [
            net_benefit(positive, there, at, prevalence, inflation) for at in _THRESHOLDS
        ],
    }


def summarise_classes(
    classes: Sequence[Any], y: Codes, calibrated: Floats, decisions: Floats, fold_of: Codes | None
) -> dict[str, Any]:
    """Return each of several classes against the rest, and the confusion matrix, by subject.

    Parameters
    ----------
    classes : sequence
        In the order of the columns.
    y : ndarray of shape (n_subjects,)
    calibrated : ndarray of shape (n_subjects, n_classes)
        The largest is the class predicted.
    decisions : ndarray of shape (n_repeats, n_subjects, n_classes)
        For the AUC.
    fold_of : ndarray of shape (n_repeats, n_subjects), optional
        The fold that held out each subject; None where the model is fixed.

    Returns
    -------
    dict
        ``classes``: for each its ``class``, ``n_subjects``, ``auc`` and ``scores`` (predictive
        values at its share of the subjects). ``confusion``: true classes in rows, predicted ones
        in columns.
    """
    predicted, rows = calibrated.argmax(axis=1), []
    confusion = np.zeros((len(classes), len(classes)), dtype=np.intp)
    np.add.at(confusion, (y, predicted), 1)
    for k, label in enumerate(classes):
        is_k, share = y == k, float((y == k).mean())
        if fold_of is None:
            value, *ends = fixed_auc(decisions[0][:, k], is_k)
        else:
            by_fold = [
                [auc(of[folds == fold, k], is_k[folds == fold]) for fold in np.unique(fold_of)]
                for of, folds in zip(decisions, fold_of, strict=True)
            ]
            ci = fold_interval(by_fold, y.size) if np.isfinite(by_fold).any() else None
            value, *ends = [np.nan] * 3 if ci is None else [ci.mean, ci.low, ci.high]
        inflation = 1.0 if fold_of is None else CROSS_VALIDATED
        known = is_k, predicted == k, share, inflation
        scores = diagnostic_scores(*known) if 0 < share < 1 else {}
        interval = {"mean": value, "low": ends[0], "high": ends[1]}
        row = {"class": str(label), "n_subjects": int(is_k.sum()), "auc": interval}
        rows.append({**row, "scores": scores})
    return {"classes": rows, "confusion": confusion.tolist()}


def calibration_groups(calibrated: Floats, y: Codes, classes: Sequence[Any]) -> dict[str, Any]:
    """Group participants by probability: of the second of two classes, else of the predicted."""
    label, probability, hit = str(classes[1]), calibrated[:, 1], y == 1
    if len(classes) > 2:
        label, probability, hit = "", calibrated.max(axis=1), calibrated.argmax(axis=1) == y
    n_bins = int(np.clip(probability.size // _LEAST_IN_BIN, 1, _MOST_BINS))
    bins = []
    for rows in np.array_split(np.argsort(probability, kind="stable"), n_bins):
        low, high = wilson_interval(int(hit[rows].sum()), rows.size)
        predicted, observed = float(probability[rows].mean()), float(hit[rows].mean())
        limits = {"low": low, "high": high, "n": int(rows.size)}
        bins.append({"predicted": predicted, "observed": observed, **limits})
    return {"class": label, "bins": bins, "brier": float(np.mean((probability - hit) ** 2))}


def clinical_scores(
    results: Results, table: str | None = None, method: str | None = None
) -> dict[str, Any] | None:
    """Return the clinical scores of a benchmark, at its lowest missing rate.

    Subjects are pooled over folds; their probabilities are means over repeats, each calibrated by
    the other subjects, as in the card of :func:`train_model`.

    Parameters
    ----------
    results : Results
        Of :func:`accuracy` with nested tuning and folds by subject or site.
    table, method : str, optional
        By default the first table, and the proposed method or else the first.

    Returns
    -------
    dict or None
        ``method``, ``rate``, ``classes``, ``n_subjects`` of each, ``class`` (the second),
        ``prevalence``, ``scores`` (sensitivity, specificity, PPV and NPV, each with its 95 % CI),
        ``at_prevalence`` (the same at 5, 10 and 20 %), ``groups`` (by sex, age group and site)
        and ``decision_curve``. None where there are not two classes or nothing was held out so;
        :func:`class_scores` is for more.

    Examples
    --------
    >>> import tempfile
    >>> from idfsmec import FeatureTable
    >>> from idfsmec.evaluation import accuracy
    >>> y = np.repeat(["HC", "MDD"], 40)
    >>> X = pd.DataFrame({"F3__a": np.arange(80) % 7, "O1__a": np.arange(80.0)})
    >>> table = FeatureTable(X, pd.Series(y), pd.Series(np.arange(80) // 4))
    >>> protocol = {"rates": [0.0], "n_splits": 4, "ks": [2]}
    >>> with tempfile.TemporaryDirectory() as out:
    ...     results = accuracy(table, out, methods=["ANOVA F"], protocol=protocol, n_jobs=1)
    >>> clinical_scores(results)["scores"]["specificity"]["mean"]
    1.0
    """
    table = next(iter(results.tables)) if table is None else table
    # A classifier of a user's own may give NaN.
    method, rows = _rows_of(results, results.held_out.dropna(), table, method)
    subjects = rows.groupby("subject")[["true", "probability"]].mean()
    if subjects["true"].nunique() < 2:
        return None
    described, true = results.tables[table], subjects["true"].to_numpy().astype(np.intp)
    left = np.column_stack([1 - subjects["probability"], subjects["probability"]])
    prior = [0.5, 0.5]  # classes count alike in the benchmark
    held_out = {"true": true, "prior": prior, "shares": [1.0], "left": [left]}
    groups = {by: [of[i] for i in subjects.index] for by, of in described["groups"].items()}
    probability = Calibration(held_out).leave_one_out()[:, 1]
    prevalence, classes = results.protocol.get("prevalence"), list(described["labels"])
    return {
        "method": method,
        "rate": float(rows["rate"].iloc[0]),
        "classes": classes,
        "n_subjects": np.bincount(true).tolist(),
        **summarise_clinical(classes[1], true == 1, probability, prior[1], groups, prevalence),
    }


def class_scores(
    results: Results, table: str | None = None, method: str | None = None
) -> dict[str, Any] | None:
    """Return each of three or more classes against the rest, at the lowest missing rate.

    Parameters as of :func:`clinical_scores`. AUCs are means over folds and repeats; all else is
    of subjects pooled over folds, with calibrated probabilities.

    Returns
    -------
    dict or None
        ``method``, ``rate``; ``classes``: for each its ``class``, ``n_subjects``, ``auc`` and
        ``scores``, each with its 95 % CI; ``confusion``, true classes in rows, predicted ones in
        columns. None where there are not so many classes or nothing was held out so.

    Examples
    --------
    >>> import tempfile
    >>> from idfsmec import FeatureTable
    >>> from idfsmec.evaluation import accuracy, class_scores
    >>> y = np.repeat(["BD", "HC", "MDD"], 20)
    >>> X = pd.DataFrame({"F3__a": np.arange(60) % 7, "O1__a": np.arange(60.0)})
    >>> table = FeatureTable(X, pd.Series(y), pd.Series(np.arange(60) // 2))
    >>> protocol = {"rates": [0.0], "n_splits": 4, "ks": [2]}
    >>> with tempfile.TemporaryDirectory() as out:
    ...     results = accuracy(table, out, methods=["ANOVA F"], protocol=protocol, n_jobs=1)
    >>> scored = class_scores(results)
    >>> [row["class"] for row in scored["classes"]], sum(map(sum, scored["confusion"]))
    (['BD', 'HC', 'MDD'], 30)
    """
    table = next(iter(results.tables)) if table is None else table
    method, rows = _rows_of(results, results.of_classes, table, method)
    if rows.empty:
        return None
    values = np.array(rows["probabilities"].tolist(), dtype=np.float64)
    finite = np.flatnonzero(np.isfinite(values).all(axis=1))
    rows = rows.assign(place=np.arange(len(rows))).iloc[finite]
    wide = rows.pivot(index="seed", columns="subject", values=["place", "fold"]).dropna(axis=1)
    if wide.empty:
        return None
    places, fold_of = wide["place"], wide["fold"]
    decisions = values[places.to_numpy().astype(np.intp)]
    true = rows.drop_duplicates("subject").set_index("subject")["true"]
    y, classes = true[places.columns].to_numpy().astype(np.intp), results.tables[table]["labels"]
    prior = [1 / len(classes)] * len(classes)  # classes count alike in the benchmark
    left = [decisions.mean(axis=0)]
    held_out = {"true": y, "prior": prior, "shares": [1.0], "left": left}
    calibrated = Calibration(held_out).leave_one_out()
    measured = summarise_classes(list(classes), y, calibrated, decisions, fold_of.to_numpy())
    return {"method": method, "rate": float(rows["rate"].iloc[0]), **measured}


def _rows_of(
    results: Results, rows: pd.DataFrame, table: str, method: str | None
) -> tuple[str | None, pd.DataFrame]:
    """Return the rows of a table and method, by default the proposed one or else the first."""
    rows = rows[rows["table"] == table]
    ran = rows["method"].unique().tolist()
    ours = [name for name in ran if results.methods.get(name, {}).get("family") == "proposed"]
    method = next(iter(ours or ran), None) if method is None else method
    return method, rows[rows["method"] == method]


def clinical_frame(results: Results) -> pd.DataFrame:
    """Return the same of all tables in long form, a row per score and group, for a file."""
    rows: list[dict[str, Any]] = []
    for name in results.tables:
        if (classes := class_scores(results, name)) is not None:
            rows += _class_rows(name, classes)
        if (scored := clinical_scores(results, name)) is None:
            continue
        same = {key: scored[key] for key in ("method", "rate", "class", "prevalence")}
        for group in ({"by": "all", "group": "", **scored}, *scored["groups"]):
            n_other, n_class = group["n_subjects"]
            where = {"table": name, **same, "by": group["by"], "group": group["group"]}
            where |= {"n_other": n_other, "n_class": n_class}
            scores = [{"score": score, **ci} for score, ci in group["scores"].items()]
            curve = [{"score": "net benefit", **at} for at in group.get("decision_curve", [])]
            rows += [where | row for row in (*scores, *curve)]
    return pd.DataFrame(rows).rename(columns={"mean": "value", "all": "acting_on_all"})


def _class_rows(table: str, scored: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return scores of each class against the rest, and counts of the classes predicted."""
    rows, n = [], sum(map(sum, scored["confusion"]))
    for row, counts in zip(scored["classes"], scored["confusion"], strict=True):
        known = {"method": scored["method"], "rate": scored["rate"], "class": row["class"]}
        n_class = row["n_subjects"]
        where = {"table": table, **known, "prevalence": n_class / n, "by": "all", "group": ""}
        where |= {"n_other": n - n_class, "n_class": n_class}
        scores = [
            {"score": name, **ci} for name, ci in {"AUC": row["auc"], **row["scores"]}.items()
        ]
        predicted = [
            {"score": f"predicted {other['class']}", "mean": count}
            for other, count in zip(scored["classes"], counts, strict=True)
        ]
        rows += [where | score for score in (*scores, *predicted)]
    return rows
