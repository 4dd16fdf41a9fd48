"""Numbers and protocols as text, the same under every figure and in every sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from idfsmec._columns import split_column
from idfsmec.errors import InputError

if TYPE_CHECKING:
    from idfsmec.evaluation import Results

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
    "site": "one hospital left out at a time",
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


def experiment_protocol(results: Results, experiment: str) -> dict[str, Any]:
    """The protocol of one experiment: its own where it was recorded, else the main one."""
    own = (results.protocol.get("experiments") or {}).get(experiment, {})
    merged = {**results.protocol, **own}
    if own.get("seeds"):
        merged["n_repeats"] = len(own["seeds"])
    return merged


def describe_protocol(protocol: Mapping[str, Any]) -> str:
    """One line that says which folds and whether tuning was nested or optimistic.

    Parameters
    ----------
    protocol : mapping
        ``folds``, ``tuning``, ``n_splits``, ``n_repeats``, ``harmonize`` and ``gaps`` are used.

    Returns
    -------
    str

    Examples
    --------
    >>> describe_protocol({"folds": "subject", "tuning": "nested", "n_splits": 10, "n_repeats": 3})
    'subject-wise folds · nested tuning · 10 folds x 3'
    """
    folds, tuning = protocol.get("folds"), protocol.get("tuning")
    parts = [
        _FOLDS.get(str(folds), f"folds: {folds or 'not recorded'}"),
        _TUNING.get(str(tuning), f"tuning: {tuning or 'not recorded'}"),
    ]
    n_splits, n_repeats = protocol.get("n_splits"), protocol.get("n_repeats", 1)
    if n_splits and folds != "site":
        parts.append(f"{n_splits} folds" + (f" x {n_repeats}" if (n_repeats or 1) > 1 else ""))
    if protocol.get("harmonize"):
        parts.append("hospitals harmonized")
    if protocol.get("gaps") == "selection":
        parts.append("gaps for the selector only")
    return " · ".join(parts)


def percent(value: float | None, digits: int = 0) -> str:
    r"""A share as per cent, or a dash; the space does not break at the end of a line.

    Examples
    --------
    >>> percent(0.784) == "78\N{NO-BREAK SPACE}%", percent(float("nan"))
    (True, '–')
    """
    if value is None or not np.isfinite(value):
        return "–"
    return f"{100 * value:.{digits}f}\N{NO-BREAK SPACE}%"


def points(value: float) -> str:
    """A difference of shares in percentage points, with its sign.

    Examples
    --------
    >>> points(-0.021)
    '−2.1'
    """
    return f"{100 * value:+.1f}".replace("-", "−")


def listing(names: Sequence[str], most: int = 5) -> str:
    """Names joined as in a sentence, the rest counted.

    Examples
    --------
    >>> listing(["F3", "Fz", "F4"]), listing(["F3", "Fz", "F4"], most=2)
    ('F3, Fz and F4', 'F3, Fz and 1 more')
    """
    items = [str(name) for name in names]
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


def feature_name(column: str) -> str:
    """A column as a reader says it; a name without a channel stays as it is.

    Examples
    --------
    >>> feature_name("F3__de_alpha"), feature_name("F3")
    ('de_alpha at F3', 'F3')
    """
    try:
        channel, feature = split_column(column)
    except InputError:
        return column
    return f"{feature} at {channel}"


def plain_row(row: Mapping[Any, Any]) -> dict[str, Any]:
    """A row with Python's own numbers, and None for NaN, as JSON can hold it."""
    return {str(key): plain_number(value) for key, value in row.items()}


def plain_number(value: Any) -> Any:
    """Numpy's numbers as Python's, NaN as None, all else as text."""
    if isinstance(value, (bool, str)) or value is None:
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value) if np.isfinite(value) else None
    return str(value)
