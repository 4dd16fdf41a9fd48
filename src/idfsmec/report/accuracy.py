"""Draw and describe accuracy by missing rate, features, imputer, electrodes, participants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from idfsmec.evaluation import Results, electrode_curve, participant_curve
from idfsmec.report import data, style
from idfsmec.report.channels import plot_channel_weights
from idfsmec.report.curves import draw_curves
from idfsmec.report.data import TableResults
from idfsmec.report.style import MethodLook, PageFigure
from idfsmec.report.text import (
    SIGNIFICANT,
    describe_protocol,
    listing,
    metric_name,
    percent,
    plain_records,
    points,
)

_TEST = "(5 %, Holm's correction)"
_RATE = "share of channels removed, in addition to those the table lacks"
#: So many comparison methods are drawn with CI: more would hide each other.
_BEST = 2
#: How curves of AUC per participant are drawn.
_AUC: Any = {"chance": {"chance": 0.5, "low": 0.5, "high": 0.5}, "written": "{:.2f}".format}
_AUC |= {"line": "choice", "log": "x"}
#: Electrodes are mapped for this number of them, where no smallest number is known.
_MAPPED = 4


@style.literal_text
def plot_accuracy_by_rate(
    scores: pd.DataFrame,
    *,
    methods: data.Methods | None = None,
    metric: str = "balanced_accuracy",
    chance: Mapping[str, Any] | None = None,
    note: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw accuracy against the missing rate for all methods.

    The proposed method, the two best of the others (by their mean) and the sanity checks have
    95 % confidence intervals. All further methods are thin, pale lines without.

    Parameters
    ----------
    scores : DataFrame
        Rows of one table and pattern, as in :class:`idfsmec.evaluation.Results`.
    methods : mapping, optional
        Name of a method to its ``family`` and ``label``, as in ``Results.methods``; by default
        those of the registry.
    metric : str, default="balanced_accuracy"
        Column of ``scores``.
    chance : mapping, optional
        ``chance``, ``low`` and ``high``: chance level and its 95 % band, drawn as a band.
    note : str
        How the numbers were obtained: folds and tuning; see
        :func:`idfsmec.report.describe_protocol`.
    ax : Axes, optional
        Where to draw; by default on a new figure.

    Returns
    -------
    Axes
    """
    curves = data.intervals(data.task_scores(scores, metric), ["method", "rate"])
    looks = _curve_looks(curves, data.known_methods(methods))
    labels = "Accuracy by missing rate", note + _explain(looks), _RATE, metric_name(metric)
    return draw_curves(curves, "rate", looks, labels, chance=chance, ax=ax)


def _curve_looks(curves: pd.DataFrame, methods: data.Methods) -> dict[str, MethodLook]:
    """Give methods their looks; all but the best of many others are quiet."""
    looks = style.method_looks(data.sort_methods(curves["method"], methods), methods)
    means = curves.groupby("method", sort=False)["mean"].mean()
    kept = (data.PROPOSED, "sanity")
    others = means[[name for name in means.index if data.family_of(name, methods) not in kept]]
    behind = others.sort_values(ascending=False, kind="stable").index[_BEST:]
    for name in behind if len(behind) > 1 else ():
        looks[name] = looks[name]._replace(quiet=True)
    return looks


def _explain(looks: Mapping[str, MethodLook]) -> str:
    """Explain which methods have CI, where not all have."""
    n_quiet = sum(look.quiet for look in looks.values())
    text = f"\n95 % CI: proposed method, best {_BEST} of the others, sanity checks; thin: means of"
    return f"{text} the other {n_quiet} methods" if n_quiet else ""


def accuracy_by_rate_figures(table: TableResults) -> Iterator[PageFigure]:
    """Accuracy against the missing rate, per pattern of missing channels."""
    caption = (
        "Mean over folds with 95 % CI corrected for overlapping training sets. Grey: 95 % band of "
        "chance."
    )
    for pattern, rows, note in table.by_pattern():
        draw = partial(
            plot_accuracy_by_rate,
            rows,
            methods=table.methods,
            metric=table.metric,
            chance=table.chance(),
            note=note,
        )
        sentences = _describe_by_rate(table, rows)
        yield PageFigure("accuracy-by-rate", draw, caption, sentences, pattern)


def _describe_by_rate(table: TableResults, rows: pd.DataFrame) -> list[str]:
    """Compare with chance and the sanity checks, and state what missing channels cost."""
    main, tasks = table.main, data.task_scores(rows, table.metric)
    scores = tasks[tasks["method"] == main]
    if scores.empty:
        return []
    sentences = []
    if (chance := table.chance()) is not None:
        means = scores.groupby("rate")["value"].mean()
        above, within = (
            listing([percent(rate) for rate in means.index[where]], 10)
            for where in (means > chance["high"], means <= chance["high"])
        )
        where = f"{above} missing, and within it at {within}"
        if not above or not within:
            where = f"{'every' if above else 'no'} missing rate"
        sentences.append(f"{main} is above the chance band at {where}.")
    families = tasks["method"].map(lambda name: data.family_of(name, table.methods))
    paired = data.differences(tasks[(tasks["method"] == main) | (families == "sanity")], main)
    sign = np.sign(paired["difference"]) * paired["significant"]
    labels = paired["method"].map(table.label) + " (" + paired["difference"].map(points) + ")"
    words = {1: "higher than", 0: "not significantly different from", -1: "lower than"}
    groups = [
        f"{word} {listing(labels[sign == side], 20)}"
        for side, word in words.items()
        if (sign == side).any()
    ]
    if groups:
        sentences.append(f"Over all rates, in points, it is {'; '.join(groups)} {_TEST}.")
    return [*sentences, *_describe_loss(scores)]


def _describe_loss(scores: pd.DataFrame) -> list[str]:
    """State the points lost from the lowest to the highest missing rate."""
    low_rate, high_rate = scores["rate"].min(), scores["rate"].max()
    ends = scores[scores["rate"].isin([low_rate, high_rate])]
    paired = data.differences(ends, low_rate, "rate")
    if paired.empty:
        return []
    lost, low, high = 100 * paired[["difference", "low", "high"]].iloc[0].astype(float)
    text = f"{'loses' if lost >= 0 else 'gains'} {abs(lost):.1f} points"
    if np.isfinite(low):
        low, high = (low, high) if lost >= 0 else (-high, -low)
        text += f" (95 % CI {low:.1f} to {high:.1f})".replace("-", "−")
    return [f"From {percent(low_rate)} to {percent(high_rate)} missing it {text}."]


def accuracy_by_k_figures(table: TableResults) -> Iterator[PageFigure]:
    """Accuracy against the number of selected features, per pattern of missing channels."""
    if table.rows()["k"].nunique() < 2:
        return
    caption = "Mean over folds and missing rates for each number of selected features."
    for pattern, rows, note in table.by_pattern():
        tasks = data.task_scores(_curve_rows(rows), table.metric, by=["k"])
        draw, sentences = partial(_draw_by_k, table, tasks, note), _describe_by_k(table, tasks)
        yield PageFigure("accuracy-by-k", draw, caption, sentences, pattern)


def _curve_rows(scores: pd.DataFrame) -> pd.DataFrame:
    """Keep the rows of the setting that tuning chose, for every k; all where there is one."""
    chosen = scores[scores["chosen"].astype(bool)]
    setting = chosen.drop_duplicates(data.TASK).set_index(data.TASK)["params"].rename("setting")
    joined = scores.join(setting, on=data.TASK)
    several = joined.groupby([*data.TASK, "k"])["params"].transform("nunique") > 1
    return scores[~several | joined["setting"].isna() | (joined["params"] == joined["setting"])]


def _draw_by_k(table: TableResults, tasks: pd.DataFrame, note: str) -> Axes:
    curves = data.intervals(data.fold_scores(tasks, ["method", "k"]), ["method", "k"])
    # Methods that have no k (all features, boosting) run level across the others' range.
    counts = curves.groupby("method")["k"].nunique()
    level = curves["method"].isin(counts.index[(counts == 1) & (counts.max() > 1)])
    ks = pd.DataFrame({"k": sorted(curves.loc[~level, "k"].unique())})
    spread = curves[level].drop(columns="k").merge(ks, how="cross")
    curves = pd.concat([curves[~level], spread], ignore_index=True)
    looks = _curve_looks(curves, table.methods)
    title, note = "Accuracy by number of selected features", note + _explain(looks)
    labels = title, note, "selected features", metric_name(table.metric)
    return draw_curves(curves, "k", looks, labels, chance=table.chance())


def _describe_by_k(table: TableResults, tasks: pd.DataFrame) -> list[str]:
    """State how many features are needed."""
    scores = tasks[tasks["method"] == table.main]
    if scores["k"].nunique() < 2:
        return []
    means = scores.groupby("k")["value"].mean()
    best = int(str(means.idxmax()))
    paired = data.differences(scores, best, "k")
    worse = paired.loc[paired["significant"] & (paired["difference"] > 0), "k"]
    text = f"lower with {listing(sorted(map(int, worse)), 12)} ({SIGNIFICANT})"
    if worse.empty:
        span = 100 * (means.max() - means.min())
        text = f"no difference to other numbers is {SIGNIFICANT}; all lie within {span:.1f} points"
    first = f"The mean of {table.main} is highest with {best} features"
    return [f"{first} ({percent(means[best], 1)}); {text}."]


def imputation_figures(table: TableResults) -> Iterator[PageFigure]:
    """Accuracy against the missing rate by imputer, per method."""
    rows = table.rows("imputation")
    if rows.empty:
        return
    tasks = data.task_scores(rows, table.metric, by=["imputer"], chosen=True)
    caption = (
        "Mean over folds with 95 % CI, one line for each imputer applied before the classifier. "
        "A good imputer loses little where much is missing."
    )
    for name in data.sort_methods(rows["method"], table.methods):
        by_imputer = tasks[tasks["method"] == name]
        curves = data.intervals(by_imputer, ["imputer", "rate"])
        title, note = f"{table.label(name)}: accuracy by imputer", table.note("imputation")
        how: Any = {"labels": (title, note, _RATE, metric_name(table.metric)), "line": "imputer"}
        looks = style.plain_looks(curves["imputer"])
        draw = partial(draw_curves, curves, "rate", looks, chance=table.chance(), **how)
        sentences = [_describe_imputers(by_imputer), *_describe_losses(by_imputer)]
        yield PageFigure("imputation", draw, caption, sentences, name)


def _describe_imputers(tasks: pd.DataFrame) -> str:
    """Name the imputer with the highest score where most is missing, and those below it."""
    here = tasks[tasks["rate"] == tasks["rate"].max()]
    means = here.groupby("imputer")["value"].mean()
    best = str(means.idxmax())
    paired = data.differences(here, best, "imputer")
    each = [
        f"{row['imputer']} ({points(-row['difference'])} points)"
        for row in paired[paired["significant"] & (paired["difference"] > 0)].to_dict("records")
    ]
    others = f"no difference to the others is {SIGNIFICANT}"
    if each:
        others = f"lower ({SIGNIFICANT}): {listing(each, 8)}"
    rate, score = percent(here["rate"].iloc[0]), percent(means[best], 1)
    return f"At {rate} missing {best} is highest ({score}); {others}."


def _describe_losses(tasks: pd.DataFrame) -> list[str]:
    """State the points that each imputer loses, the least first."""
    low, high = tasks["rate"].min(), tasks["rate"].max()
    means = tasks.pivot_table(index="imputer", columns="rate", values="value")
    losses = (100 * (means[low] - means[high])).dropna().sort_values(kind="stable")
    each = [f"{imputer} {lost:.1f}".replace("-", "−") for imputer, lost in losses.items()]
    if low == high or not each:
        return []
    return [f"Points lost from {percent(low)} to {percent(high)} missing: {listing(each, 12)}."]


@style.literal_text
def plot_electrode_curve(
    results: Results, *, table: str | None = None, ax: Axes | None = None
) -> Axes:
    """Draw AUC per participant against the number of electrodes.

    Parameters
    ----------
    results : Results
        With the experiment :func:`idfsmec.evaluation.electrodes`.
    table : str, optional
        By default the first one.
    ax : Axes, optional
        By default a new figure.

    Returns
    -------
    Axes
        Electrodes by channel weights with their 95 % CI, random sets, headsets as diamonds. The
        dashed line lies the margin below the AUC of all electrodes.
    """
    summary = electrode_curve(results, table)
    curve, ax = summary.curve, style.make_axes(ax)
    counts = curve.groupby("choice", sort=False)["n_electrodes"].nunique()
    weighted = str(counts.drop("random", errors="ignore").idxmax())
    looks = {
        weighted: MethodLook("by channel weights", style.EMPHASIS, "o", main=True),
        "random": MethodLook("random", style.SANITY, "s", style.DASHES),
    }
    looks = {name: look for name, look in looks.items() if name in counts}
    lines = curve[curve["choice"].isin(list(looks))]
    note = describe_protocol(data.experiment_protocol(results, "electrodes"))
    labels = "How few electrodes?", note, "electrodes", "AUC per participant"
    draw_curves(lines, "n_electrodes", looks, labels, ax=ax, **_AUC)
    every = lines[lines["choice"] == weighted].sort_values("n_electrodes")["mean"].iloc[-1]
    least = float(every) - summary.margin
    ax.axhline(least, color=style.MUTED, linewidth=1, linestyle="--")
    text = f"all electrodes − {summary.margin:g}"
    style.annotate(ax, text, (0, least), (4, -10), ("axes fraction", "data"))
    headsets = curve[~curve["choice"].isin(list(looks))].to_dict("records")
    for level, row in enumerate(headsets):
        point = float(row["n_electrodes"]), float(row["mean"])
        ax.plot(*point, "D", color=style.FILTER, markersize=5, gid=f"cap-{row['choice']}")
        # Headsets may share a number of electrodes: their names stand on different lines.
        style.annotate(ax, row["choice"], point, (0, -13 - 11 * level), ha="center", fontsize=7.5)
    return ax


def electrode_figures(table: TableResults) -> Iterator[PageFigure]:
    """AUC against the number of electrodes, and how often each electrode is chosen."""
    if table.all_rows("electrodes").empty:
        return
    summary = electrode_curve(table.results, table.name)
    caption = (
        "Electrodes are chosen in each training fold by channel weights; all their features are "
        "used. Diamonds: headsets whose electrodes the table has. Dotted: chance."
    )
    draw = partial(plot_electrode_curve, table.results, table=table.name)
    numbers = plain_records(summary.curve)
    yield PageFigure("electrodes", draw, caption, [summary.sentence], numbers=numbers)
    wanted = summary.smallest or _MAPPED
    number = min(summary.chosen.columns.astype(int), key=lambda count: abs(count - wanted))
    shares = summary.chosen[number].sort_values(ascending=False, kind="stable")
    draw = partial(
        plot_channel_weights,
        shares,
        title=f"Chosen among the first {number}",
        label="share of folds",
        note=table.note("electrodes"),
        **table.layout,
    )
    each = [f"{name} ({percent(share)})" for name, share in shares[shares > 0].items()]
    sentence = f"Among the first {number} electrodes: {listing(each, 8)} of folds."
    if np.isclose(shares.iloc[:number], 1.0).all():
        sentence = f"All folds chose {listing(shares.index[:number], 20)}."
    caption = "Share of training folds that chose an electrode."
    yield PageFigure("electrodes-chosen", draw, caption, [sentence])


@style.literal_text
def plot_participant_curve(
    results: Results, *, table: str | None = None, ax: Axes | None = None
) -> Axes:
    """Draw AUC per participant against the number of training participants.

    Parameters
    ----------
    results : Results
        With the experiment :func:`idfsmec.evaluation.participants`.
    table : str, optional
        By default the first one.
    ax : Axes, optional
        By default a new figure.

    Returns
    -------
    Axes
        The AUC with its 95 % CI, and the share of repeats whose AUC is significant.
    """
    curve = participant_curve(results, table).curve
    shares = pd.DataFrame({"n_subjects": curve["n_subjects"], "mean": curve["significant"]})
    share = "share of repeats\nwith significant AUC"
    looks = {
        "AUC": MethodLook("AUC", style.EMPHASIS, "o", main=True),
        "share": MethodLook(share, style.SANITY, "s", style.DASHES),
    }
    lines = pd.concat([curve.assign(choice="AUC"), shares.assign(choice="share")])
    note = describe_protocol(data.experiment_protocol(results, "participants"))
    axes = "training participants", "AUC per participant; share of repeats"
    labels = "How many participants?", note, *axes
    return draw_curves(lines, "n_subjects", looks, labels, ax=ax, **_AUC)


def participant_figures(table: TableResults) -> Iterator[PageFigure]:
    """AUC against the number of training participants."""
    if table.all_rows("participants").empty:
        return
    summary = participant_curve(table.results, table.name)
    caption = (
        "Subsets of the training participants, drawn in each fold; the participants held out are "
        "the same for all numbers. Dotted: chance."
    )
    draw = partial(plot_participant_curve, table.results, table=table.name)
    numbers = plain_records(summary.curve)
    yield PageFigure("participants", draw, caption, [summary.sentence], numbers=numbers)
