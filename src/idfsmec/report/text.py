"""Write numbers, names and protocols as text, the same in every figure and sentence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from idfsmec.errors import listing
from idfsmec.metrics import SCORE_METRICS
from idfsmec.table.columns import feature_label

#: Words for differences with a corrected test.
SIGNIFICANT = "significant at 5 % after Holm's correction"

#: In place of a number that these participants do not define, such as an AUC of one class.
NOT_DEFINED = "not defined"

_METRICS = {
    "f1": "F1",
    "roc_auc": "AUC",
    "subject_accuracy": "accuracy per participant",
    "subject_balanced_accuracy": "balanced accuracy per participant",
    "subject_roc_auc": "AUC per participant",
    "subject_r2": "R² against the mean",
    "subject_spearman": "Spearman's correlation",
    "subject_pearson": "Pearson's correlation",
    "subject_mae": "mean absolute error",
    "grade_kappa": "weighted kappa of grades",
    "grade_auc": "AUC of cuts between grades",
    "subject_mae_of_mean": "mean absolute error of the mean",
}
_FOLDS = {
    "subject": "subject-wise folds",
    "sample": "sample-wise folds (a participant is in training and test)",
    "site": "one site left out at a time",
}
_TUNING = {
    "nested": "nested tuning",
    "oracle": "optimistic: best setting on the test folds",
    "grid": "all settings shown, none chosen",
    "time": "default settings, none chosen",
}


def metric_name(metric: str) -> str:
    """Return the name of a score for readers."""
    return _METRICS.get(metric, metric.replace("_", " "))


def describe_metric(metric: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a score with ``name``, ``value``, ``ci``, ``chance_level`` as text."""
    return {
        **values,
        "name": metric_name(metric),
        "value": format_score(metric, values["mean"]),
        "ci": format_range(metric, values["low"], values["high"]),
        "chance_level": format_score(metric, values.get("chance", np.nan)),
        "scale": metric not in (*SCORE_METRICS, "grade_kappa", "grade_auc"),
    }


def describe_protocol(protocol: Mapping[str, Any]) -> str:
    """Describe in one line which folds were used and whether tuning was nested or optimistic.

    Parameters
    ----------
    protocol : mapping
        Uses ``folds``, ``tuning``, ``n_splits``, ``n_repeats``, ``harmonize``, ``missing_in``.

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
    if harmonize := protocol.get("harmonize"):
        by = f" by {harmonize}" if isinstance(harmonize, str) else ""
        parts.append(f"sites harmonized{by}")
    if protocol.get("missing_in") == "selection":
        parts.append("missing channels for the selector only")
    return " · ".join(parts)


def percent(value: float | None, digits: int = 0) -> str:
    """Write a share as per cent, or a dash; the space does not break at the end of a line."""
    if value is None or not np.isfinite(value):
        return "–"
    return f"{100 * value:z.{digits}f}\N{NO-BREAK SPACE}%".replace("-", "−")


def share_with_ci(values: Mapping[str, float], name: str = "mean") -> str:
    """Write a share with its 95 % CI, or a dash where it is not there; it does not break."""
    if name not in values:
        return percent(None)
    if not np.isfinite([values[name], values["low"], values["high"]]).all():
        return NOT_DEFINED
    text = f"{percent(values[name])} ({100 * values['low']:.0f} to {100 * values['high']:.0f})"
    return text.replace(" ", "\N{NO-BREAK SPACE}")


def format_score(metric: str, value: float, digits: int = 0) -> str:
    """Write a score: AUC and those of a score as numbers, all others as per cent.

    >>> format_score("roc_auc", 0.814), format_range("roc_auc", 0.7, 0.91)
    ('0.81', '0.70 to 0.91')
    """
    if not np.isfinite(value):
        return NOT_DEFINED
    plain = metric.endswith(("_auc", "_kappa")) or metric in SCORE_METRICS[1:]
    return (f"{value:z.2f}" if plain else percent(value, digits)).replace("-", "−")


def format_range(metric: str, low: float, high: float) -> str:
    """Write the ends of an interval of a score within its range: a t interval may leave it."""
    if not np.isfinite([low, high]).all():
        return NOT_DEFINED
    from_minus_1 = ("subject_spearman", "subject_pearson", "grade_kappa")
    lowest = -np.inf if metric == "subject_r2" else -1 if metric in from_minus_1 else 0
    highest = np.inf if "mae" in metric else 1
    ends = (float(np.clip(end, lowest, highest)) for end in (low, high))
    return " to ".join(format_score(metric, end) for end in ends)


def score_with_ci(metric: str, values: Mapping[str, Any]) -> str:
    """Write a score with its 95 % CI, without it where it is not known.

    >>> score_with_ci("roc_auc", {"mean": 0.814, "low": 0.7, "high": 0.91})
    '0.81 (0.70 to 0.91)'
    """
    if values["mean"] is None:
        return "–"
    text, low, high = format_score(metric, values["mean"]), values["low"], values["high"]
    known = low is not None and np.isfinite([low, high]).all()
    if not known:
        return text
    ends = format_range(metric, low, high).replace("\N{NO-BREAK SPACE}%", "")
    return f"{text} ({ends})"


def number_with_ci(values: Mapping[str, Any], digits: int = 2, sign: str = "z") -> str:
    """Write a number with its 95 % CI, without it where it is not known.

    >>> number_with_ci({"mean": -0.001, "low": -0.11, "high": 0.24})
    '0.00 (−0.11 to 0.24)'
    """
    if values["mean"] is None:
        return "–"
    numbers = [values[end] for end in ("mean", "low", "high") if values[end] is not None]
    mean, *ends = (f"{value:{sign}.{digits}f}".replace("-", "−") for value in numbers)
    if not np.isfinite(numbers).all() or not ends:
        return mean if np.isfinite(numbers[0]) else NOT_DEFINED
    return f"{mean} ({' to '.join(ends)})"


def first_that_fits(
    rows: Iterable[tuple[Mapping[str, str], str]], answers: Mapping[str, str]
) -> str:
    """Return the text of the first row whose answers are among those given."""
    return next(text for expected, text in rows if expected.items() <= answers.items())


def exceeds(low: float | None, level: float) -> str:
    """Say whether the lower end of a CI is above a level: "yes", "no" or "unknown"."""
    return "unknown" if low is None or np.isnan(low) else "yes" if low > level else "no"


def points(value: float, digits: int = 1) -> str:
    """Write a difference of shares in percentage points, with its sign."""
    return f"{100 * value:+.{digits}f}".replace("-", "−")


def seconds(value: float | None) -> str:
    """Write a duration with three significant digits."""
    if value is None or not np.isfinite(value):
        return "–"
    if value < 0.1:
        return f"{1000 * value:.3g} ms"
    return f"{value:.3g} s" if value < 999.5 else f"{value:,.0f} s".replace(",", " ")


def say_counts(counts: Mapping[str, int]) -> str:
    """Write how many there are of each."""
    return ", ".join(f"{name}: {count}" for name, count in counts.items())


def say_removed(rate: float) -> str:
    """Say which share of channels was removed; nothing where none was."""
    return f", {percent(rate)} of channels removed" if rate else ""


def capitalise(text: str) -> str:
    """Write the first letter large, and leave the others as they are."""
    return f"{text[:1].upper()}{text[1:]}"


def escape_markdown(text: object) -> str:
    """Escape what Markdown would read as markup: names come from files of others."""
    if hasattr(text, "__html__"):  # escaped already, by a macro of a template
        return str(text)
    return "".join(f"\\{c}" if c in r"\`*_{}[]<>#|!$~" else c for c in str(text))


def name_features(ranking: pd.DataFrame) -> str:
    """Name the features of a ranking, each with all its channels.

    >>> name_features(pd.DataFrame({"feature": ["c0", "c0"], "channel": ["F3", "F4"]}))
    'C0 complexity at F3 and F4'
    """
    channels = ranking.groupby("feature", sort=False)["channel"]
    return "; ".join(f"{feature_label(str(name))} at {listing(at, 8)}" for name, at in channels)


def slugify(name: str) -> str:
    """Make a file name from any name, no longer than file systems allow."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower())[:100].strip("-") or "table"


def unique_slugs(names: Sequence[str]) -> list[str]:
    """Make a different file name for each of the names.

    >>> unique_slugs(["Clinic A", "clinic-a"])
    ['clinic-a', 'clinic-a-2']
    """
    slugs: list[str] = []
    for name in names:
        slug, number = slugify(name), 2
        while slug in slugs:
            slug, number = f"{slugify(name)}-{number}", number + 1
        slugs.append(slug)
    return slugs


def plain_records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return rows as dicts of Python's own numbers, with None for NaN, as JSON can hold them."""
    known = frame.replace([np.inf, -np.inf], np.nan).astype(object)
    return [
        {str(key): value for key, value in row.items()}
        for row in known.where(known.notna(), None).to_dict("records")
    ]
