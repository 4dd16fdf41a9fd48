"""The protocol in words, the same under every figure and in every sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

_METRICS = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "f1": "F1",
    "roc_auc": "ROC AUC",
    "subject_accuracy": "accuracy per subject",
    "subject_balanced_accuracy": "balanced accuracy per subject",
}
_FOLDS = {
    "subject": "subject-wise folds",
    "sample": "sample-wise folds (a person is in training and test)",
}
_TUNING = {
    "nested": "nested tuning",
    "oracle": "optimistic: best setting on the test folds",
    "grid": "all settings shown, none chosen",
    "time": "default settings, none chosen",
}


def metric_name(metric: str) -> str:
    """Name of a score for readers."""
    return _METRICS.get(metric, metric.replace("_", " "))


def describe_protocol(protocol: Mapping[str, Any]) -> str:
    """One line that says which folds and whether tuning was nested or optimistic.

    Parameters
    ----------
    protocol : mapping
        ``folds``, ``tuning``, ``n_splits``, ``n_repeats`` and ``gaps`` are used.

    Returns
    -------
    str

    Examples
    --------
    >>> describe_protocol({"folds": "subject", "tuning": "nested", "n_splits": 10, "n_repeats": 3})
    'subject-wise folds · nested tuning · 10 folds x 3'
    """
    folds = protocol.get("folds")
    words = [_FOLDS.get(str(folds), f"folds: {folds or 'not recorded'}")]
    said = protocol.get("tuning")
    words.append(_TUNING.get(str(said), f"tuning: {said or 'not recorded'}"))
    n_splits, n_repeats = protocol.get("n_splits"), protocol.get("n_repeats", 1)
    if n_splits:
        words.append(f"{n_splits} folds" + (f" x {n_repeats}" if (n_repeats or 1) > 1 else ""))
    if protocol.get("gaps") == "selection":
        words.append("gaps for the selector only")
    return " · ".join(words)


def percent(value: float, digits: int = 0) -> str:
    """A share as per cent, or a dash.

    Examples
    --------
    >>> percent(0.784), percent(float("nan"))
    ('78 %', '–')
    """
    return "–" if value is None or not np.isfinite(value) else f"{100 * value:.{digits}f} %"


def points(value: float) -> str:
    """A difference of shares in percentage points, with its sign.

    Examples
    --------
    >>> points(-0.021)
    '−2.1'
    """
    return f"{100 * value:+.1f}".replace("-", "−")


def listing(words: Sequence[str], most: int = 5) -> str:
    """Words joined as in a sentence, the rest counted.

    Examples
    --------
    >>> listing(["F3", "Fz", "F4"]), listing(["F3", "Fz", "F4"], most=2)
    ('F3, Fz and F4', 'F3, Fz and 1 more')
    """
    items = [str(word) for word in words]
    if len(items) > most:
        items = [*items[:most], f"{len(items) - most} more"]
    if len(items) < 2:
        return "".join(items)
    return ", ".join(items[:-1]) + " and " + items[-1]


def seconds(value: float) -> str:
    """A duration with three significant digits.

    Examples
    --------
    >>> seconds(0.00312), seconds(256.09)
    ('3.1 ms', '256 s')
    """
    if not np.isfinite(value):
        return "–"
    if value < 0.1:
        return f"{1000 * value:.2g} ms"
    return f"{value:.3g} s" if value < 1000 else f"{value:,.0f} s".replace(",", " ")


def protocol_of(protocol: Mapping[str, Any], experiment: str) -> dict[str, Any]:
    """The protocol of one experiment: its own where it was recorded, else the main one."""
    own = (protocol.get("experiments") or {}).get(experiment, {})
    merged = {**protocol, **own}
    if own.get("seeds"):
        merged["n_repeats"] = len(own["seeds"])
    return merged


def decide_metric(protocol: Mapping[str, Any]) -> str:
    """The score that is shown: what tuning maximised, if it has a chance level."""
    metric = str(protocol.get("metric"))
    known = ("accuracy", "balanced_accuracy", "subject_accuracy", "subject_balanced_accuracy")
    return metric if metric in known else "balanced_accuracy"
