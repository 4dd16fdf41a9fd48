"""A score that is predicted: agreement by participant, residuals, what reliability allows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from idfsmec.evaluation.agreement import agree_on_grades, calibrate
from idfsmec.evaluation.statistics import interval_by_fold
from idfsmec.metrics import SCORE_METRICS
from idfsmec.report import data, style
from idfsmec.report.data import TableResults, View
from idfsmec.report.text import (
    capitalise,
    format_score,
    metric_name,
    percent,
    score_with_ci,
)

if TYPE_CHECKING:
    from idfsmec.prediction import Model

#: Test-retest reliability that features of EEG power have.
EEG_RELIABILITY = (0.6, 0.9)
_LINES = (
    "Grey: both are equal. Coloured: the regression of the score on its prediction, whose slope "
    "is 1 where predictions are as wide apart as they should be."
)
OBSERVED = (
    "Each point is a participant: the mean of predictions while held out against the score. "
    + _LINES
)
OBSERVED_HERE = f"Each point is another participant: the prediction against the score. {_LINES}"
RESIDUALS = (
    "Score minus prediction of each participant. Predictions that are drawn to the mean leave "
    "residuals that rise with the score; a trend with age is what the prediction missed or took "
    "from age."
)
#: What is said of R2, by whether its CI lies above 0.
_RELATIONS = {
    "yes": "better than the mean of the participants trained on",
    "no": "not shown to be better than the mean of the participants trained on",
    "unknown": "whether it is better than the mean is open",
}


def summarise_prediction(table: TableResults) -> dict[str, Any] | None:
    """Summarise how well methods predict a score at the lowest missing rate; None for classes.

    ``better`` is "yes" where the CI of R2 of the proposed method lies above 0, and ``sentence``
    says it; ``header`` and ``rows`` have the scores of all methods.
    """
    if table.target is None:
        return None
    every = table.rows()
    if every.empty:
        return None
    every = data.lowest_rate(every)
    scored = {
        method: _scores(every[every["method"] == method])
        for method in data.sort_methods(every["method"], table.methods)
    }
    main = table.main if table.main in scored else next(iter(scored))
    r2, low = scored[main]["subject_r2"], scored[main]["subject_r2"]["low"]
    better = "unknown" if low is None or np.isnan(low) else "yes" if low > 0 else "no"
    rows = [
        [
            table.label(method),
            *(score_with_ci(metric, values[metric]) for metric in SCORE_METRICS[:-1]),
        ]
        + [format_score("subject_mae", values["subject_mae_of_mean"]["mean"])]
        for method, values in scored.items()
    ]
    header = ["Method", *(metric_name(metric) for metric in SCORE_METRICS)]
    slope = _calibration(_by_participant(table, main))
    return {
        "name": table.target["name"],
        "method": table.label(main),
        "better": better,
        "r2": r2,
        "sentence": _sentence(table, main, scored[main], better),
        "calibration": "" if slope is None else say_slope(slope[0]),
        "grades": _say_grades(table, main),
        "ceiling": _ceiling(table),
        "header": header,
        "rows": rows,
    }


def _scores(rows: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Return mean and 95 % CI of each metric over folds and repeats."""
    found = {}
    for metric in SCORE_METRICS:
        folds = data.task_scores(rows.assign(**{metric: rows[metric].fillna(0)}), metric)
        ci = interval_by_fold(folds.groupby(["seed", "fold"], sort=False)["value"].mean())
        found[metric] = {"mean": ci.mean, "low": ci.low, "high": ci.high}
    return found


def _sentence(table: TableResults, method: str, values: Mapping[str, Any], better: str) -> str:
    errors = [
        format_score("subject_mae", values[name]["mean"])
        for name in ("subject_mae", "subject_mae_of_mean")
    ]
    return (
        f"{table.label(method)}: R² {score_with_ci('subject_r2', values['subject_r2'])}, "
        f"{_RELATIONS[better]}; Spearman's correlation "
        f"{score_with_ci('subject_spearman', values['subject_spearman'])}; mean absolute error "
        f"{errors[0]}, that of the mean {errors[1]}."
    )


def _say_grades(table: TableResults, method: str) -> str:
    """Say how well grades are predicted; nothing for a score."""
    kept, n_grades = table.results.predicted, len((table.target or {}).get("order") or [])
    kept = kept[(kept["table"] == table.name) & (kept["method"] == method)]
    wide = kept.pivot(index="seed", columns="subject", values=["predicted", "true", "fold"])
    wide = wide.dropna(axis=1)
    if not n_grades or wide.empty:
        return ""
    predicted, true, fold_of = (wide[name].to_numpy() for name in ("predicted", "true", "fold"))
    found = agree_on_grades(predicted, true[0], fold_of, n_grades)
    said = [f"{metric_name(name)} {score_with_ci(name, values)}" for name, values in found.items()]
    return f"{capitalise('; '.join(said))}."


def _ceiling(table: TableResults) -> str:
    """Say which correlation a score of this reliability allows; nothing where it is not known."""
    reliability = table.reliability
    if reliability is None:
        return ""
    worst, best = EEG_RELIABILITY
    most, low, high = (np.sqrt(reliability * of_eeg) for of_eeg in (1.0, worst, best))
    return (
        f"With a reliability of {reliability:g} a perfect prediction of the true score would "
        f"correlate with the observed one by {most:.2f}; from features of the EEG, "
        f"whose reliabilities are {worst:g} to {best:g}, by {low:.2f} to {high:.2f}."
    )


def _by_participant(table: TableResults, method: str | None) -> pd.DataFrame:
    """Return true and mean predicted scores of participants, with their ages where known."""
    kept = table.results.predicted
    kept = kept[(kept["table"] == table.name) & (kept["method"] == method)]
    means = kept.groupby("subject")[["true", "predicted", "mean"]].mean()
    ages = (table.target or {}).get("ages") or []
    return means.assign(age=[ages[subject] if ages else np.nan for subject in means.index])


def _calibration(means: pd.DataFrame) -> tuple[float, float] | None:
    """Return slope and intercept of the regression of scores on predictions; None without any."""
    if len(means) < 3:
        return None
    line = calibrate(means["predicted"].to_numpy(), means["true"].to_numpy())
    return None if np.isnan(line["slope"]) else (line["slope"], line["intercept"])


def held_out_frame(held_out: Mapping[str, Any]) -> pd.DataFrame:
    """Return true and predicted scores of the participants a model was measured on."""
    return pd.DataFrame({"true": held_out["true"], "predicted": held_out["left"][0]})


def describe_model(model: Model) -> str:
    """Return the headline of a card: what is predicted, and whether better than the mean."""
    metrics = model.performance.get("metrics")
    if not metrics:
        return f"{model.kind} predicts {model.score}; its performance was not measured."
    r2 = metrics["subject_r2"]
    said = _RELATIONS["yes" if r2["low"] > 0 else "no"]
    return (
        f"{model.kind} predicts {model.score} with an R² of {score_with_ci('subject_r2', r2)} on "
        f"held-out participants: {said}."
    )


def interval_rows(model: Model) -> tuple[str, tuple[str, ...], list[list[str]]]:
    """Return text, header and rows of the intervals and correlations by share of channels."""
    text = (
        "The score of 95 in 100 new participants is expected within so much of its prediction: an "
        "interval from the errors on held-out participants, who kept a random share of their "
        "channels."
    )
    header = ("channels left", "score within", "Spearman's correlation (95 % CI)")
    reaches = model.performance["held_out"]["reach"]
    rows = [
        [
            percent(share["share"]),
            f"± {reach:.1f}" if np.isfinite(reach) else "too few participants to say",
            score_with_ci("subject_spearman", share),
        ]
        for share, reach in zip(model.performance["by_share"], reaches, strict=True)
    ]
    return text, header, rows


def say_slope(slope: float) -> str:
    """Return the calibration slope in words."""
    if np.isnan(slope):
        return "All predictions are equal."
    text = f"Calibration slope {slope:.2f}".replace("-", "−")
    if slope < 0.8:
        return f"{text}: predictions are further apart than the scores they stand for."
    if slope > 1.25:
        return f"{text}: predictions are closer together than they could be."
    return f"{text}."


def plot_observed(means: pd.DataFrame, name: str, note: str = "", ax: Axes | None = None) -> Axes:
    """Draw observed against predicted scores of participants, with identity and calibration.

    Parameters
    ----------
    means : DataFrame
        One row for each participant: ``true`` and ``predicted``.
    name : str
        Of the score.
    note : str
        The line under the title.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    ax = style.make_axes(ax, 4.6, 4.4)
    x, y = means["predicted"], means["true"]
    ends = np.array([min(x.min(), y.min()), max(x.max(), y.max())])
    ax.plot(ends, ends, color=style.MUTED, linewidth=1, linestyle=":", label="identity")
    ax.scatter(x, y, s=22, color=style.EMPHASIS, alpha=0.6, linewidth=0)
    if (line := _calibration(means)) is not None:
        at = np.array([x.min(), x.max()])
        label = f"calibration, slope {line[0]:.2f}".replace("-", "−")
        ax.plot(at, line[0] * at + line[1], color=style.EMPHASIS, linewidth=2, label=label)
    texts = [f"predicted {p:.1f}, observed {t:g}" for p, t in zip(x, y, strict=True)]
    style.show_values(ax, x, y, texts)
    ax.set(xlabel=f"predicted {name}", ylabel=f"observed {name}")
    ax.legend(frameon=False, labelcolor=style.INK)
    return style.style_axes(ax, f"Observed against predicted {name}", note)


def plot_residuals(
    means: pd.DataFrame, by: str, name: str, note: str = "", ax: Axes | None = None
) -> Axes:
    """Draw residuals of participants against the score (``by="true"``) or against age.

    Parameters as of :func:`plot_observed`, and a column ``age``.
    """
    ax = style.make_axes(ax, 4.6, 3.6)
    known = means.dropna(subset=[by])
    residual = known["true"] - known["predicted"]
    ax.axhline(0, color=style.MUTED, linewidth=1, linestyle=":")
    ax.scatter(known[by], residual, s=22, color=style.EMPHASIS, alpha=0.6, linewidth=0)
    against = name if by == "true" else by
    texts = [f"{against} {v:g}: {r:+.1f}" for v, r in zip(known[by], residual, strict=True)]
    style.show_values(ax, known[by], residual, texts)
    ax.set(xlabel=against, ylabel="observed minus predicted")
    return style.style_axes(ax, f"Residuals against {against}", note)


def observed_views(table: TableResults) -> Iterator[View]:
    """Yield observed against predicted scores of the proposed method, or of the first one."""
    for means, options in _predicted(table):
        yield View({"means": means, **options}, means[["true", "predicted"]])


def residual_views(table: TableResults) -> Iterator[View]:
    """Yield residuals against the score, and against age where it is known and differs."""
    for means, options in _predicted(table):
        for by, variant in (("true", "score"), ("age", "age")):
            if means[by].nunique() > 2:
                arguments = {"means": means, "by": by, **options}
                yield View(arguments, means[["true", "predicted", "age"]], variant)


def _predicted(table: TableResults) -> Iterator[tuple[pd.DataFrame, dict[str, Any]]]:
    kept = table.results.predicted
    methods = list(dict.fromkeys(kept.loc[kept["table"] == table.name, "method"]))
    if table.target is None or not methods:
        return
    method = table.main if table.main in methods else methods[0]
    rate = kept["rate"].min()
    removed = f" · {percent(rate)} of channels removed" if rate else ""
    note = f"{table.label(method)} · {table.note()}{removed}"
    yield _by_participant(table, method), {"name": table.target["name"], "note": note}
