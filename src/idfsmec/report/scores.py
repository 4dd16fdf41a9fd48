"""Figures of scores: curves by missing rate and more, differences of methods, sites."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, LogLocator, NullLocator
from scipy.optimize import isotonic_regression

from idfsmec.errors import listing
from idfsmec.evaluation import Results, electrode_curve, participant_curve
from idfsmec.evaluation.results import site_scores
from idfsmec.evaluation.statistics import power
from idfsmec.metrics import SCORE_METRICS, Floats
from idfsmec.report import data, style
from idfsmec.report.data import TableResults, View
from idfsmec.report.style import MethodLook
from idfsmec.report.text import (
    SIGNIFICANT,
    describe_protocol,
    metric_name,
    percent,
    plain_records,
    points,
    seconds,
)

#: Title, note, and what stands at the axes.
_Labels = tuple[str, str, str, str]
#: So many values of x are named at most.
_MOST_TICKS = 12
_TEST = "at 5 % after Holm's correction"
_RATE = "share of channels removed, in addition to those the table lacks"
#: So many iterations have a dot.
_MOST_POINTS = 60
#: The difference whose power is stated.
_DIFFERENCE = 0.15
#: So many comparison methods are drawn with CI: more would hide each other.
_BEST = 2
#: How lines of the main method, of others and of quiet ones are drawn.
_MAIN: dict[str, Any] = {"linewidth": 2.4, "markersize": 6, "alpha": 1.0, "zorder": 5}
_OTHER: dict[str, Any] = {"linewidth": 1.2, "markersize": 4, "alpha": 1.0, "zorder": 3}
_QUIET: dict[str, Any] = {"linewidth": 0.8, "markersize": 2.5, "alpha": 0.4, "zorder": 2.5}
#: Ends of a difference, and those of the difference with the other sign.
_ENDS = {"difference": "difference", "difference_low": "high", "difference_high": "low"}
#: Electrodes are mapped for this number of them, where no smallest number is known.
_MAPPED = 4


@style.literal_text
def plot_accuracy_by_rate(
    scores: pd.DataFrame,
    *,
    methods: data.Methods | None = None,
    metric: str = "subject_balanced_accuracy",
    chance: float | None = None,
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
    metric : str, default="subject_balanced_accuracy"
        Column of ``scores``.
    chance : float, optional
        The chance level, drawn as a dotted line.
    note : str
        How the numbers were obtained: folds and tuning; see
        :func:`idfsmec.report.describe_protocol`.
    ax : Axes, optional
        Where to draw; by default on a new figure.

    Returns
    -------
    Axes
    """
    return draw_curves(**_accuracy_by_rate(scores, methods, metric, note), chance=chance, ax=ax)


def _accuracy_by_rate(
    scores: pd.DataFrame, methods: data.Methods | None, metric: str, note: str
) -> dict[str, Any]:
    """Return the arguments of curves of accuracy against the missing rate."""
    curves = data.intervals(data.task_scores(scores, metric), ["method", "rate"])
    looks, note = _curve_looks(curves, data.known_methods(methods), note)
    labels = f"{_what(metric)} by missing rate", note, _RATE, metric_name(metric)
    return {"curves": curves, "x": "rate", "looks": looks, "labels": labels}


def _what(metric: str) -> str:
    """Return what a title says is drawn."""
    of_scores = {"subject_r2": "R²"} | dict.fromkeys(SCORE_METRICS[1:], "Correlation")
    return of_scores.get(metric, "Accuracy")


def _curve_looks(
    curves: pd.DataFrame, methods: data.Methods, note: str
) -> tuple[dict[str, MethodLook], str]:
    """Give methods their looks; all but the best of many others are quiet, as the note says."""
    looks = style.method_looks(curves["method"], methods)
    means = curves.groupby("method", sort=False)["mean"].mean()
    with_ci = (data.PROPOSED, "sanity")
    others = means[[n for n in means.index if data.family_of(n, methods) not in with_ci]]
    behind = others.sort_values(ascending=False, kind="stable").index[_BEST:]
    if len(behind) > 1:
        looks |= {name: looks[name]._replace(quiet=True) for name in behind}
        note += (
            f"\n95 % CI: proposed method, best {_BEST} of the others, sanity checks; thin: means "
            f"of the other {len(behind)} methods"
        )
    return looks, note


def accuracy_by_rate_views(table: TableResults) -> Iterator[View]:
    """Yield accuracy against the missing rate, per pattern of missing channels."""
    for pattern, rows, options in table.by_pattern():
        drawn = _accuracy_by_rate(rows, **options) | {"chance": table.chance}
        yield View(drawn, drawn["curves"], pattern, _test_by_rate(table, rows))


def _test_by_rate(table: TableResults, rows: pd.DataFrame) -> str:
    """Compare with the sanity checks over all rates, and state what missing channels cost."""
    main, tasks = table.main, data.task_scores(rows, table.metric)
    scores = tasks[tasks["method"] == main]
    if scores.empty:
        return ""
    families = tasks["method"].map(lambda name: data.family_of(name, table.methods))
    paired = data.differences(tasks[(tasks["method"] == main) | (families == "sanity")], main)
    sign = np.sign(paired["difference"]) * paired["significant"]
    labels = (
        paired["method"].map(table.label) + " (" + paired["difference"].map(points) + " points)"
    )
    words = {1: "higher than", 0: "not significantly different from", -1: "lower than"}
    groups = [
        f"{word} {listing(labels[sign == side], 20)}"
        for side, word in words.items()
        if (sign == side).any()
    ]
    tested = f"Over all rates {main} is {'; '.join(groups)} {_TEST}. " if groups else ""
    return tested + _test_loss(scores, main)


def _test_loss(scores: pd.DataFrame, main: str | None) -> str:
    """State the points lost from the lowest to the highest missing rate."""
    low_rate, high_rate = scores["rate"].min(), scores["rate"].max()
    ends = scores[scores["rate"].isin([low_rate, high_rate])]
    paired = data.differences(ends, low_rate, "rate")
    if paired.empty:
        return ""
    lost, low, high = 100 * paired[["difference", "low", "high"]].iloc[0].astype(float)
    text = f"{'loses' if lost >= 0 else 'gains'} {abs(lost):.1f} points"
    if np.isfinite(low):
        low, high = (low, high) if lost >= 0 else (-high, -low)
        text += f" (95 % CI {low:.1f} to {high:.1f})".replace("-", "−")
    return f"From {percent(low_rate)} to {percent(high_rate)} missing {main} {text}."


def compare_methods(table: TableResults) -> Iterator[dict[str, Any]]:
    """Summarise for each pattern of missing channels the means per method and rate."""
    for pattern, rows in table.rows().groupby("pattern", sort=False):
        means = data.intervals(data.task_scores(rows, table.metric), ["method", "rate"])
        means["best"] = np.isclose(means["mean"], means.groupby("rate")["mean"].transform("max"))
        rates = sorted(float(rate) for rate in means["rate"].unique())
        names = data.sort_methods(means["method"], table.methods)
        cells = {(cell["method"], cell["rate"]): cell for cell in plain_records(means)}
        yield {
            "rates": rates,
            "pattern": str(pattern),
            "rows": [
                {
                    "method": table.label(name),
                    "main": name == table.main,
                    "cells": [cells.get((name, rate)) for rate in rates],
                    "mean": float(means.loc[means["method"] == name, "mean"].mean()),
                }
                for name in names
            ],
            "sentence": _nothing_compared(table.main, names),
        }


def _nothing_compared(main: str | None, names: Sequence[str]) -> str:
    """Say why no method is compared with the others; nothing where one is."""
    if main is None:
        return "No proposed method is among the methods compared here."
    if main not in names:
        return f"{main} is not among the methods compared here."
    return "" if len(names) > 1 else f"Only {main} was run, so nothing is compared."


def _paired_differences(scores: pd.DataFrame, reference: str | None, metric: str) -> pd.DataFrame:
    """Subtract each method from the reference at every rate, with Holm's correction for all."""
    paired = [
        data.differences(here, reference).assign(rate=float(str(rate)))
        for rate, here in data.task_scores(scores, metric).groupby("rate", sort=True)
        if reference in set(here["method"])
    ]
    if not paired:
        return pd.DataFrame()
    return data.add_significance(pd.concat(paired, ignore_index=True))


@style.literal_text
def plot_paired_differences(
    scores: pd.DataFrame,
    *,
    reference: str | None = None,
    methods: data.Methods | None = None,
    metric: str = "subject_balanced_accuracy",
    note: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw a method's differences to all others by missing rate, with 95 % CI.

    Parameters
    ----------
    scores : DataFrame
        Rows of one table and pattern, as in :class:`idfsmec.evaluation.Results`.
    reference : str, optional
        The method that the others are compared with; by default the proposed one.
    methods, metric, note, ax
        As for :func:`plot_accuracy_by_rate`.

    Returns
    -------
    Axes
        One row per method; within it one CI per rate, from few to many missing channels, paired
        by fold and corrected for overlapping training sets. A filled dot is a difference that is
        significant at 5 % after Holm's correction.
    """
    known = data.known_methods(methods)
    looks = style.method_looks(scores["method"], known)
    main = reference or data.main_method(looks, known)
    if main is None:
        raise ValueError("There is no proposed method among scores: name one with reference.")
    table = _paired_differences(scores, main, metric)
    others = [name for name in looks if name != main]
    rates = sorted(table["rate"].unique())
    last = len(rates) - 1
    ax = style.make_axes(ax, 7.2, 2.3 + len(others) * (0.16 + 0.08 * len(rates)))
    for row in table.to_dict("records"):
        i = rates.index(row["rate"])
        y = others.index(row["method"]) + (0.72 * (i / last - 0.5) if last else 0)
        # A t interval may leave the range of a difference of shares.
        estimate = row["difference"], *np.clip([row["low"], row["high"]], -1, 1)
        value, low, high = (points(end) for end in estimate)
        look = looks[row["method"]]
        text = f"{look.label}, {percent(row['rate'])}: {value} ({low} to {high})"
        style.draw_estimate(
            ax, y, estimate, look.color, row["significant"], text, markersize=4.2,
            alpha=1 - 0.6 * (last - i) / max(last, 1),
            gid=f"difference-{row['method']}-{row['rate']:g}",
        )  # fmt: skip
    ax.axvline(0, color=style.INK, linewidth=1)
    for line in range(1, len(others)):
        ax.axhline(line - 0.5, color=style.MUTED, linewidth=0.4, alpha=0.4)
    ax.set_yticks(range(len(others)), [looks[name].label for name in others])
    ax.set_ylim(len(others) - 0.5, -0.5)
    ends = table[["difference", "low", "high"]].to_numpy(dtype=float).clip(-1, 1)
    ax.set_xlim(min(np.nanmin(ends), -0.02) - 0.01, max(np.nanmax(ends), 0.02) + 0.01)
    ax.xaxis.set_major_formatter(lambda v, _: points(v, 0) if v else "0")
    ax.set_xlabel(f"difference in {metric_name(metric)}, points")
    order = ", ".join(percent(rate) for rate in rates)
    note += f"\nwithin a row from top (pale) to bottom: {order} missing\nfilled dot: "
    note += SIGNIFICANT if table["significant"].any() else f"{SIGNIFICANT} (none)"
    style.style_axes(ax, f"{looks[main].label} minus each method", note, grid="x")
    style.name_sides(ax, "the other is better", f"{looks[main].label} is better")
    return ax


def difference_views(table: TableResults) -> Iterator[View]:
    """Yield differences of the proposed method to all others, per pattern of missing channels."""
    methods = set(table.rows()["method"])
    if table.main in methods and len(methods) > 1:
        for pattern, rows, options in table.by_pattern():
            numbers = _paired_differences(rows, table.main, table.metric)
            arguments = {"scores": rows, "reference": table.main, **options}
            yield View(arguments, numbers, pattern, say_power(numbers, table.facts["n_subjects"]))


def say_power(paired: pd.DataFrame, n_subjects: int) -> str:
    """State how often, at most, such studies find a difference of 15 points."""
    errors = paired.loc[paired["standard_error"] > 0, ["standard_error", "df"]]
    if errors.empty:
        return ""
    shares = [
        power(_DIFFERENCE, error, df, len(paired)) for error, df in errors.itertuples(index=False)
    ]
    return (
        f"With {n_subjects} participants a difference of {100 * _DIFFERENCE:.0f} points would be "
        f"found in at most {percent(float(np.mean(shares)))} of such studies (Holm's correction "
        f"for {len(paired)} comparisons). A difference that is not significant may still be there."
    )


def accuracy_by_k_views(table: TableResults) -> Iterator[View]:
    """Yield accuracy against the number of selected features, per pattern of missing channels."""
    if table.rows()["k"].nunique() < 2:
        return
    for pattern, rows, options in table.by_pattern():
        tasks = data.task_scores(_curve_rows(rows), table.metric, by=["k"]).astype({"k": int})
        curves = data.intervals(tasks, ["method", "k"])
        # Methods that have no k (all features, boosting) run level across the others' range.
        counts = curves.groupby("method")["k"].nunique()
        level = curves["method"].isin(counts.index[(counts == 1) & (counts.max() > 1)])
        ks = pd.DataFrame({"k": sorted(curves.loc[~level, "k"].unique())})
        spread = curves[level].drop(columns="k").merge(ks, how="cross")
        curves = pd.concat([curves[~level], spread], ignore_index=True)
        looks, note = _curve_looks(curves, table.methods, options["note"])
        labels = f"{_what(table.metric)} by number of selected features", note, "selected features"
        best = _test_best(tasks[tasks["method"] == table.main], "k")
        tested = best and f"Best number of features for {table.main}: {best}"
        yield View(_curves(table, curves, "k", looks, labels), curves, pattern, tested)


def _curve_rows(scores: pd.DataFrame) -> pd.DataFrame:
    """Keep the rows of the setting that tuning chose, for every k; all where there is one."""
    chosen = scores[scores["chosen"].astype(bool)]
    setting = chosen.drop_duplicates(data.TASK).set_index(data.TASK)["params"].rename("setting")
    joined = scores.join(setting, on=data.TASK)
    several = joined.groupby([*data.TASK, "k"])["params"].transform("nunique") > 1
    return scores[~several | joined["setting"].isna() | (joined["params"] == joined["setting"])]


def _test_best(tasks: pd.DataFrame, column: str) -> str:
    """Name the value of a column with the highest mean, and those below it after Holm."""
    means = tasks.groupby(column)["value"].mean()
    if means.size < 2:
        return ""
    paired = data.differences(tasks, means.idxmax(), column)
    worse = paired[paired["significant"] & (paired["difference"] > 0)].sort_values(column)
    lower = [
        f"{value} ({points(-difference)} points)"
        for value, difference in zip(worse[column], worse["difference"], strict=True)
    ]
    tested = f"no difference to the others is {SIGNIFICANT}"
    if lower:
        tested = f"lower ({SIGNIFICANT}): {listing(lower, 12)}"
    return f"{means.idxmax()}; {tested}."


def imputation_views(table: TableResults) -> Iterator[View]:
    """Yield accuracy against the missing rate by imputer, per method."""
    rows = table.rows("imputation")
    if rows.empty:
        return
    all_tasks = data.task_scores(rows, table.metric, by=["imputer"], chosen=True)
    for name in data.sort_methods(rows["method"], table.methods):
        tasks = all_tasks[all_tasks["method"] == name]
        curves = data.intervals(tasks, ["imputer", "rate"])
        title = f"{table.label(name)}: {_what(table.metric)} by imputer"
        labels, looks = (
            (title, table.note("imputation"), _RATE),
            style.plain_looks(curves["imputer"]),
        )
        drawn = _curves(table, curves, "rate", looks, labels, line="imputer")
        most = tasks["rate"].max()
        best = _test_best(tasks[tasks["rate"] == most], "imputer")
        yield View(drawn, curves, name, best and f"Highest at {percent(most)} missing: {best}")


@style.literal_text
def plot_electrode_curve(
    results: Results, *, table: str | None = None, ax: Axes | None = None
) -> Axes:
    """Draw AUC per participant (of a score Spearman's r) against the number of electrodes.

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
    curve = summary.curve
    counts = curve.groupby("choice", sort=False)["n_electrodes"].nunique()
    weighted = str(counts.drop("random", errors="ignore").idxmax())
    names = {weighted: "by channel weights", "random": "random"}
    lines = curve[curve["choice"].isin(list(names))]
    note = describe_protocol(data.experiment_protocol(results, "electrodes"))
    measure = summary.measure
    labels = "How few electrodes?", note, "electrodes", f"{measure.name} per participant"
    ax = _draw_size(lines, "n_electrodes", names, labels, measure.chance, ax)
    every = lines[lines["choice"] == weighted].sort_values("n_electrodes")["mean"].iloc[-1]
    least = float(every) - summary.margin
    ax.axhline(least, color=style.MUTED, linewidth=1, linestyle="--")
    text = f"all electrodes − {summary.margin:g}"
    style.annotate(ax, text, (0, least), (4, -10), ("axes fraction", "data"))
    headsets = curve[~curve["choice"].isin(list(names))].to_dict("records")
    for level, row in enumerate(headsets):
        point = float(row["n_electrodes"]), float(row["mean"])
        ax.plot(*point, "D", color=style.FILTER, markersize=5, gid=f"cap-{row['choice']}")
        style.show_values(ax, *point, [f"{row['choice']}: {point[1]:.2f}"])
        # Headsets may share a number of electrodes: their names stand on different lines.
        style.annotate(ax, row["choice"], point, (0, -13 - 11 * level), ha="center", fontsize=7.5)
    return ax


@style.literal_text
def plot_participant_curve(
    results: Results, *, table: str | None = None, ax: Axes | None = None
) -> Axes:
    """Draw AUC per participant (of a score Spearman's r) against the number of those in training.

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
    summary = participant_curve(results, table)
    curve, measure = summary.curve, summary.measure
    shares = pd.DataFrame({"n_subjects": curve["n_subjects"], "mean": curve["significant"]})
    short = "AUC" if measure.chance else "correlation"
    names = {short: short, "share": f"share of repeats\nwith significant {short}"}
    lines = pd.concat([curve.assign(choice=short), shares.assign(choice="share")])
    note = describe_protocol(data.experiment_protocol(results, "participants"))
    axes = "training participants", f"{measure.name} per participant; share of repeats"
    labels = "How many participants?", note, *axes
    return _draw_size(lines, "n_subjects", names, labels, measure.chance, ax)


def _draw_size(
    lines: pd.DataFrame,
    x: str,
    names: Mapping[str, str],
    labels: _Labels,
    chance: float,
    ax: Axes | None,
) -> Axes:
    """Draw a score, and a dashed line if there is one, against the size of a study."""
    (first, main), (second, other) = names.items()
    looks = {first: MethodLook(main, style.EMPHASIS, "o", main=True)}
    if second in set(lines["choice"]):
        looks[second] = MethodLook(other, style.SANITY, "s", style.DASHES)
    return draw_curves(
        lines, x, looks, labels, line="choice", chance=chance, log="x", written="{:.2f}".format,
        ax=ax,
    )  # fmt: skip


def study_size_views(table: TableResults, experiment: str) -> Iterator[View]:
    """Yield AUC against the number of electrodes or of participants."""
    if not table.all_rows(experiment).empty:
        summarise = electrode_curve if experiment == "electrodes" else participant_curve
        summary = summarise(table.results, table.name)
        arguments = {"results": table.results, "table": table.name}
        rows = plain_records(summary.curve)
        yield View(arguments, summary.curve, tested=summary.sentence, rows=rows)


def chosen_electrode_views(table: TableResults) -> Iterator[View]:
    """Yield how often each electrode is among the first ones."""
    if table.all_rows("electrodes").empty:
        return
    summary = electrode_curve(table.results, table.name)
    wanted = summary.smallest or _MAPPED
    number = min(summary.chosen.columns.astype(int), key=lambda count: abs(count - wanted))
    shares = summary.chosen[number].sort_values(ascending=False, kind="stable")
    title = f"Chosen among the first {number}"
    labels = {"title": title, "label": "share of folds", "note": table.note("electrodes")}
    numbers = shares.rename("share").rename_axis("channel").reset_index()
    yield View({"weights": shares, "montage": table.montage, **labels}, numbers)


def ablation_views(table: TableResults) -> Iterator[View]:
    """Yield accuracy by missing rate with a part of the method taken out."""
    tasks = data.task_scores(table.rows("ablation"), table.metric)
    if tasks.empty:
        return
    variants = data.intervals(tasks, ["method"])
    whole, method = data.main_method(variants["method"], table.methods), variants["method"]
    variants["published"] = method.map(table.published("ablation")).astype(float)
    variants["whole"] = method == whole
    gains = pd.DataFrame(columns=["difference", "low", "high", "significant"])
    if whole is not None:
        gains = data.differences(tasks, whole).set_index("method")
    variants["significant"] = method.map(gains["significant"]).eq(True)
    # The variant minus the whole method, so both ends change places.
    for name, column in _ENDS.items():
        variants[name] = -method.map(gains[column]).astype(float)
    variants["method"] = method.map(table.label)
    variants = variants.sort_values("whole", ascending=False, kind="stable")
    curves = data.intervals(tasks, ["method", "rate"])
    looks = style.method_looks(curves["method"], table.methods)
    labels = "Ablation", table.note("ablation"), "share of channels removed"
    drawn = _curves(table, curves, "rate", looks, labels)
    yield View(drawn, curves, rows=plain_records(variants))


def sensitivity_views(table: TableResults) -> Iterator[View]:
    """Yield accuracy over the grid of the two parameters, averaged over folds, rates and k."""
    tasks = data.task_scores(table.rows("sensitivity"), table.metric, by=["lam", "gamma"])
    if tasks.empty:
        return
    curves = data.intervals(tasks.sort_values("gamma"), ["lam", "gamma"])
    curves["setting"] = curves["gamma"].map("γ = {:g}".format)
    title, note = f"{_what(table.metric)} over λ and γ", table.note("sensitivity")
    labels = title, note, "λ: redundancy weight"
    looks, log = style.plain_looks(curves["setting"]), "x" if curves["lam"].min() > 0 else ""
    yield View(_curves(table, curves, "lam", looks, labels, line="setting", log=log), curves)


def convergence_views(table: TableResults) -> Iterator[View]:
    """Yield the objective after each iteration on the whole table."""
    values = np.asarray(table.results.convergence.get(table.name) or [], dtype=float)
    if values.size:
        numbers = pd.DataFrame({"iteration": range(values.size), "objective": values})
        yield View({"values": values, "note": table.whole_table_note()}, numbers)


def draw_convergence(values: Floats, note: str) -> Axes:
    """Draw an objective by iteration; the dotted line is its last value."""
    ax = style.make_axes(None, 6.0, 3.2)
    shown = values / values[0]  # weights to the power of gamma make the objective tiny
    ax.plot(shown, ".-" if values.size <= _MOST_POINTS else "-", color=style.EMPHASIS, linewidth=2)
    at = np.unique(np.linspace(0, values.size - 1, _MOST_POINTS).astype(int))
    style.show_values(ax, at, shown[at], [f"iteration {i}: {values[i]:.4g}" for i in at])
    ax.axhline(shown[-1], color=style.MUTED, linewidth=0.8, linestyle=":")
    ax.set(xlabel="iteration", ylabel="objective, share of the first value")
    drop = f"from {values[0]:.4g} to {values[-1]:.4g} in {values.size - 1} iterations"
    return style.style_axes(ax, "Convergence", f"{note}\n{drop}")


def cost_views(table: TableResults) -> Iterator[View]:
    """Yield the time of one selection on the table and on parts of its channels."""
    rows = table.all_rows("cost").dropna(subset=["seconds"])
    if rows.empty:
        return
    once = rows.drop_duplicates([*data.TASK, "n_channels", "params"])
    grouped = once.groupby(["method", "n_channels"])["seconds"]
    costs = grouped.agg(mean="median", low="min", high="max").reset_index()
    # The paper timed all channels of its data set.
    published = costs["method"].map(table.published("cost")).astype(float)
    costs["published"] = published.where(costs["n_channels"] == len(table.facts["channels"]))
    # The fastest first, with the most channels.
    order = costs.groupby("method")["mean"].transform("last")
    costs = costs.assign(order=order).sort_values(["order", "n_channels"]).drop(columns="order")
    main, names = costs["method"] == table.main, costs["method"].map(table.label)
    numbers = plain_records(costs.assign(main=main, method=names))
    labels = "Seconds per selection", table.note("cost"), "channels", "one selection"
    # A selection below the resolution of the clock still has a position on the axis.
    curves = costs.assign(**costs[["mean", "low", "high"]].clip(lower=1e-6))
    drawn = {"curves": curves, "x": "n_channels", "labels": labels, "log": "y"}
    looks = style.method_looks(costs["method"], table.methods)
    yield View({**drawn, "looks": looks, "written": seconds}, costs, rows=numbers)


def summarise_sites(table: TableResults) -> dict[str, Any] | None:
    """Summarise each site left out, at the lowest missing rate; None for other folds."""
    rows = site_scores(table.results)
    rows = rows[(rows["table"] == table.name) & rows["subject_accuracy"].notna()]
    if rows.empty:
        return None
    method = table.method_of(rows["method"].unique())
    rows = data.lowest_rate(rows[rows["method"] == method])
    rows = rows[rows["imputer"] == rows["imputer"].iloc[0]]
    said = style.sentences_of(
        "sites.txt",
        n_sites=len(rows),
        above=rows.loc[rows["low"] > rows["chance"], "site"].tolist(),
        is_nested=data.experiment_protocol(table.results).get("tuning") == "nested",
    )
    return {
        "method": table.label(method),
        "rate": float(rows["rate"].iloc[0]),
        "rows": plain_records(rows),
        "sentences": list(said.values()),
    }


def _curves(
    table: TableResults,
    curves: pd.DataFrame,
    x: str,
    looks: Mapping[str, MethodLook],
    labels: tuple[str, str, str],
    **options: str,
) -> dict[str, Any]:
    """Return the arguments of curves of the score that is shown, with its chance level."""
    drawn = {"curves": curves, "x": x, "looks": looks, "chance": table.chance}
    return {**drawn, "labels": (*labels, metric_name(table.metric)), **options}


def draw_curves(
    curves: pd.DataFrame,
    x: str,
    looks: Mapping[str, MethodLook],
    labels: _Labels,
    *,
    line: str = "method",
    chance: float | None = None,
    log: str = "",
    written: Callable[[float], str] = percent,
    ax: Axes | None = None,
) -> Axes:
    """Draw ``mean`` against a column, with a CI from ``low`` to ``high``.

    ``line`` is the column that names the lines, ``looks`` says how each is drawn. ``log`` has the
    names of logarithmic axes. ``written`` formats values.
    """

    def x_text(value: float) -> str:
        return percent(value) if x == "rate" else f"{value:g}"

    ax = style.make_axes(ax)
    ticks = np.unique(curves[x].to_numpy(dtype=float))
    barred = curves[[not looks[name].quiet for name in curves[line]]]
    ax.set_ylim(_limits(curves["mean"], barred[["low", "high"]], chance, "y" in log))
    if "x" in log:
        ax.set_xscale("log")
    if "y" in log:
        ax.set_yscale("log", subs=[])
        ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 3.0), numticks=12))
    if chance is not None:
        ax.axhline(chance, color=style.MUTED, linewidth=1, linestyle=":", zorder=0.6, gid="chance")
        units = ("axes fraction", "data")
        style.annotate(ax, "chance", (0, chance), (5, 3), units, va="bottom", fontsize=8)
    # Lines with bars are moved a little, so that bars do not hide each other.
    forth, back = (np.log, np.exp) if "x" in log else (np.array, np.array)
    step = np.diff(forth(ticks)).min() if ticks.size > 1 else 1.0
    margin = max(0.5 * step, 0.05 * np.ptp(forth(ticks)))
    ax.set_xlim(*back(forth(ticks[[0, -1]]) + [-margin, margin]))
    moved = [name for name, look in looks.items() if not look.main and not look.quiet]
    width = 0.4 * step / max(len(moved), 6)
    ends = {}
    for name, look in looks.items():
        shift = (moved.index(name) - (len(moved) - 1) / 2) * width if name in moved else 0.0
        curve = curves[curves[line] == name].sort_values(x)
        at = back(forth(curve[x].to_numpy(dtype=float)) + shift)
        mean, low, high = curve[["mean", "low", "high"]].to_numpy(dtype=float).T
        color, strength = look.color, _MAIN if look.main else _QUIET if look.quiet else _OTHER
        if look.main and at.size > 1:
            ax.fill_between(at, low, high, color=color, alpha=0.14, linewidth=0, zorder=1.5)
        elif not look.quiet:
            ax.vlines(at, low, high, color=color, alpha=0.35, linewidth=1, zorder=2)
        ax.plot(
            at, mean, color=color, linestyle=look.linestyle, marker=look.marker,
            markeredgewidth=0, gid=f"line-{name}", **strength,
        )  # fmt: skip
        texts = [
            f"{look.label}, {x_text(at_x)}: {written(value)}"
            + (f" ({written(left)} to {written(right)})" if np.isfinite(left) else "")
            for at_x, value, left, right in curve[[x, "mean", "low", "high"]].itertuples(
                index=False
            )
        ]
        style.show_values(ax, at, mean, texts)
        ends[name] = (float(at[-1]), float(np.clip(mean[-1], *ax.get_ylim())))
    shown = ticks[:: -(-ticks.size // _MOST_TICKS)]
    ax.xaxis.set_major_locator(FixedLocator(shown.tolist()))
    ax.xaxis.set_major_formatter(lambda v, _: x_text(v))
    ax.yaxis.set_major_formatter(lambda v, _: written(v))
    ax.xaxis.set_minor_locator(NullLocator())
    _label_ends(ax, ends, looks)
    title, note, xlabel, ylabel = labels
    ax.set(xlabel=xlabel, ylabel=ylabel)
    return style.style_axes(ax, title, note)


def _limits(
    mean: pd.Series, ends: pd.DataFrame, chance: float | None, log: bool
) -> tuple[float, float]:
    """Return limits that show all means and chance; very wide CI run out of the axes."""
    means, bars = mean.to_numpy(dtype=float), ends.to_numpy(dtype=float)
    if log:
        return float(np.nanmin(bars) / 2), float(np.nanmax(bars) * 2)
    middle, reach = (means.min() + means.max()) / 2, np.ptp(means) / 2 + 0.1
    within = bars[np.isfinite(bars) & (np.abs(bars - middle) < reach)]
    marks = [means.min(), means.max(), *within.flat]
    if chance is not None:
        marks.append(chance - 0.03)
    lowest = -0.02 if means.min() >= 0 else -np.inf  # R2 may be below 0
    return max(min(marks) - 0.03, lowest), min(max(marks) + 0.03, 1.02)


def _label_ends(
    ax: Axes, ends: Mapping[str, tuple[float, float]], looks: Mapping[str, MethodLook]
) -> None:
    """Name each line at its last point, moved apart as little as possible; limits are final."""
    axes_of_data = ax.transData - ax.transAxes
    starts, heights = axes_of_data.transform(list(ends.values())).T
    n_points = ax.get_position().height * style.figure_of(ax).get_size_inches()[1] * 72
    gap = 11.5 / max(n_points, 1)
    order, steps = np.argsort(heights, kind="stable"), gap * np.arange(heights.size)
    most = max(1 - gap * (heights.size - 1), 0.0)
    spread = np.empty(heights.size)
    spread[order] = np.clip(isotonic_regression(heights[order] - steps).x, 0, most) + steps
    for name, start, height, at in zip(ends, starts, heights, spread, strict=True):
        look = looks[name]
        middle = height if abs(height - at) < 0.01 else (height + at) / 2
        leader = [start + 0.01, 1.015, 1.035], [height, middle, at]
        where: dict[str, Any] = {"transform": ax.transAxes, "color": look.color}
        ax.plot(*leader, linewidth=0.6, alpha=0.7, clip_on=False, gid="leader", **where)
        size, weight = (9, "bold") if look.main else (8 if look.quiet else 8.5, "normal")
        ax.text(1.045, at, look.label, va="center", fontsize=size, fontweight=weight, **where)
