"""A score that is predicted: agreement by participant, residuals, what reliability allows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from idfsmec.evaluation.agreement import agree_on_grades, calibrate
from idfsmec.metrics import SCORE_METRICS
from idfsmec.report import data, style
from idfsmec.report.data import TableResults, View
from idfsmec.report.text import (
    capitalise,
    exceeds,
    format_score,
    metric_name,
    percent,
    say_removed,
    score_with_ci,
)

if TYPE_CHECKING:
    from idfsmec.prediction import Model

#: Test-retest reliability that features of EEG power have.
EEG_RELIABILITY = (0.6, 0.9)
_NO_REACH = "too few participants to say"
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
    scored: dict[str, Any] = {
        metric: data.intervals(data.task_scores(every.fillna({metric: 0}), metric), ["method"])
        .set_index("method")[["mean", "low", "high"]]
        .to_dict("index")
        for metric in SCORE_METRICS
    }
    methods = data.sort_methods(every["method"], table.methods)
    main = table.method_of(methods)
    r2, slope = scored["subject_r2"][main], _calibration(_by_participant(table, main))
    of_mean = SCORE_METRICS[-1]
    rows = [
        {"Method": table.label(method)}
        | {metric_name(name): score_with_ci(name, of[method]) for name, of in scored.items()}
        | {metric_name(of_mean): format_score(of_mean, scored[of_mean][method]["mean"])}
        for method in methods
    ]
    error, error_of_mean = (
        format_score(name, scored[name][main]["mean"]) for name in SCORE_METRICS[-2:]
    )
    return {
        **style.tabulate("scores of all methods", rows=rows),
        "name": table.target["name"],
        "method": table.label(main),
        "better": exceeds(r2["low"], 0),
        "r2": r2,
        "sentence": f"{table.label(main)}: R² {score_with_ci('subject_r2', r2)}, "
        f"{relate_to_mean(r2['low'])}; Spearman's correlation "
        f"{score_with_ci('subject_spearman', scored['subject_spearman'][main])}; mean absolute "
        f"error {error}, that of the mean {error_of_mean}.",
        "calibration": "" if slope is None else say_slope(slope[0]),
        "grades": _say_grades(table, main),
        "ceiling": _ceiling(table),
    }


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


def relate_to_mean(low: float | None) -> str:
    """Say how R2 relates to the mean, by the lower end of its CI."""
    return _RELATIONS[exceeds(low, 0)]


def agreement(
    title: str, frame: pd.DataFrame, score: str, name: str, more: str = ""
) -> dict[str, Any]:
    """Return the part of a page about observed and predicted scores; Markdown has ``more``."""
    picture = style.make_figure(plot_observed(frame, score), name, frame, "observed")
    return style.tabulate(title, f"{picture['caption']} {more}", picture=picture)


def agreement_parts(model: Model) -> list[dict[str, Any]]:
    """Return the parts of a card about a score that is predicted."""
    measured, name = model.performance, str(model.score)
    held_out = measured["held_out"]
    frame = pd.DataFrame({"true": held_out["true"], "predicted": held_out["left"][0]})
    slope = say_slope(measured["calibration"]["slope"])
    rows = [
        {
            "channels left": percent(share["share"]),
            "score within": f"± {reach:.1f}" if np.isfinite(reach) else _NO_REACH,
            "Spearman's correlation (95 % CI)": score_with_ci("subject_spearman", share),
        }
        for share, reach in zip(measured["by_share"], held_out["reach"], strict=True)
    ]
    return [
        agreement("Observed and predicted", frame, name, "observed", slope),
        style.tabulate("Prediction intervals", style.captions()["prediction-intervals"], rows),
    ]


def say_slope(slope: float) -> str:
    """Return the calibration slope in words."""
    if np.isnan(slope):
        return "All predictions are equal."
    text, what = f"Calibration slope {slope:.2f}".replace("-", "−"), ""
    if slope < 0.8:
        what = ": predictions are further apart than the scores they stand for"
    if slope > 1.25:
        what = ": predictions are closer together than they could be"
    return f"{text}{what}."


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
    texts = [f"predicted {p:.1f}, observed {t:g}" for p, t in zip(x, y, strict=True)]
    _draw_points(ax, x, y, texts)
    if (line := _calibration(means)) is not None:
        at = np.array([x.min(), x.max()])
        label = f"calibration, slope {line[0]:.2f}".replace("-", "−")
        ax.plot(at, line[0] * at + line[1], color=style.EMPHASIS, linewidth=2, label=label)
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
    against = name if by == "true" else by
    texts = [f"{against} {v:g}: {r:+.1f}" for v, r in zip(known[by], residual, strict=True)]
    _draw_points(ax, known[by], residual, texts)
    ax.set(xlabel=against, ylabel="observed minus predicted")
    return style.style_axes(ax, f"Residuals against {against}", note)


def _draw_points(ax: Axes, x: pd.Series, y: pd.Series, texts: list[str]) -> None:
    ax.scatter(x, y, s=22, color=style.EMPHASIS, alpha=0.6, linewidth=0)
    style.show_values(ax, x, y, texts)


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
    method = table.method_of(methods)
    note = f"{table.label(method)} · {table.note()}{say_removed(kept['rate'].min())}"
    yield _by_participant(table, method), {"name": table.target["name"], "note": note}
