"""All figures of a report: drawn once, kept as SVG and PNG for a paper, inlined for the page."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import matplotlib as mpl
import matplotlib.pyplot as plt
import pandas as pd
from markupsafe import Markup, escape
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from idfsmec._files import replacing
from idfsmec.evaluation.results import Results
from idfsmec.report._ablation import plot_ablation
from idfsmec.report._accuracy import plot_accuracy_by_k, plot_accuracy_by_rate
from idfsmec.report._answer import chance_of, own_ranking
from idfsmec.report._channels import plot_channel_weights, plot_score_heatmap
from idfsmec.report._comparison import rank_methods
from idfsmec.report._cost import plot_cost
from idfsmec.report._gaps import plot_missing_map
from idfsmec.report._ranks import plot_critical_difference
from idfsmec.report._settings import plot_convergence, plot_sensitivity
from idfsmec.report._style import OURS, THEME
from idfsmec.report._sureness import plot_selection_frequency
from idfsmec.report._words import decide_metric, describe_protocol, protocol_of
from idfsmec.report.summary import cost_rows, experiment_rows, main_tables


@dataclass(frozen=True)
class Picture:
    """A figure on the page, or the sentence that stands in its place.

    ``slug`` names it within the page and, with an ending, its files.
    """

    section: str
    table: str
    slug: str
    caption: str
    svg: Markup | None = None
    absent: str | None = None


#: A figure, the reason why there is none, or one of these for each pattern of gaps.
Drawing = Axes | str | dict[str, Axes]


def draw_figures(
    results: Results, folder: Path, progress: Callable[[str], None] | None = None
) -> Iterator[Picture]:
    """Draw what the results allow into ``folder``, one picture (or reason) after the other."""
    folder.mkdir(parents=True, exist_ok=True)
    endings = table_slugs(main_tables(results))
    for name, ending in endings.items():
        for section, (draw, caption) in _PER_TABLE.items():
            if progress:
                progress(f"{section}, {name}")
            drawn = draw(results, name)
            by_pattern = drawn if isinstance(drawn, dict) else {"": drawn}
            for pattern, one in by_pattern.items():
                slug = "-".join(filter(None, (section, ending, pattern)))
                yield _picture(Picture(section, name, slug, caption), one, folder)
    caption = (
        "Methods ranked in every block (a table at a missing rate). Methods joined by a bar have "
        "mean ranks closer than the critical difference (Nemenyi, 5 %)."
    )
    yield _picture(Picture("ranks", "", "ranks", caption), _draw_ranks(results), folder)


def table_slugs(names: Sequence[str]) -> dict[str, str]:
    """What the files of each table end in: nothing for a single one, else never the same twice.

    Examples
    --------
    >>> table_slugs(["Clinic A", "clinic-a"])
    {'Clinic A': 'clinic-a', 'clinic-a': 'clinic-a-2'}
    >>> table_slugs(["Clinic A"])
    {'Clinic A': ''}
    """
    slugs: dict[str, str] = {}
    for name in names:
        slug, number = slugify(name), 2
        while slug in slugs.values():
            slug, number = f"{slugify(name)}-{number}", number + 1
        slugs[name] = slug
    return slugs if len(slugs) > 1 else dict.fromkeys(slugs, "")


def _picture(empty: Picture, drawn: Axes | str, folder: Path) -> Picture:
    if isinstance(drawn, str):
        return replace(empty, absent=drawn)
    figure = cast(Figure, drawn.get_figure(root=True))
    slug = empty.slug
    try:
        # The layout is the same for all formats: found once, then left alone.
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        with replacing(folder / f"{slug}.svg", folder / f"{slug}.png") as (drawing, image):
            with mpl.rc_context({"svg.hashsalt": slug}):
                figure.savefig(drawing, facecolor="white", metadata={"Date": None})
            figure.savefig(image, dpi=300, facecolor="white", pil_kwargs={"compress_level": 4})
        svg = inline_svg(figure, slug, f"{drawn.get_title(loc='left')}. {empty.caption}")
    finally:
        plt.close(figure)
    return replace(empty, svg=svg)


def inline_svg(figure: Any, slug: str, label: str) -> Markup:
    """The figure as SVG inside HTML: text stays text, colours follow the page's look."""
    buffer = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": f"inline-{slug}"}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    width = float(re.search(r'viewBox="0 0 ([\d.]+)', svg).group(1))  # type: ignore[union-attr]
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    # 1 pt is 4/3 px: at this width letters have their size in print.
    start = f'<svg role="img" aria-label="{escape(label)}" style="width: {width * 4 / 3:.0f}px"'
    svg = svg.replace("<svg", start, 1)
    for light, (name, _) in THEME.items():
        svg = re.sub(rf"(fill|stroke): {light}\b", rf"\1: var(--fig-{name})", svg)
    # Everything in it was escaped by matplotlib's XML writer, or here.
    return Markup(svg)  # nosec B704


def slugify(name: str) -> str:
    """A file name from a table's name.

    Examples
    --------
    >>> slugify("Clinic A / 2024")
    'clinic-a-2024'
    """
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "table"


def _note(results: Results, experiment: str) -> str:
    return describe_protocol(protocol_of(results.protocol, experiment))


def _whole(results: Results, name: str, what: str = "IDFS-MEC on the whole table") -> str:
    """How a ranking that has nothing to do with folds came about."""
    rows = experiment_rows(results, "accuracy", name)
    tuned = not rows[(rows["method"] == OURS) & rows["chosen"].astype(bool)].empty
    how = {
        "nested": "setting nested tuning picked most often",
        "oracle": "setting best on the test folds (optimistic)",
    }
    tuning = protocol_of(results.protocol, "accuracy").get("tuning")
    said = how.get(str(tuning), "settings as chosen") if tuned else "default settings"
    return f"{what}, no folds\n{said}"


def _draw_channels(results: Results, name: str) -> Drawing:
    ranking = own_ranking(results, name)
    if ranking.empty:
        return "There is no ranking, so no map of channel weights."
    about = results.tables[name]
    weights = ranking.groupby("channel", sort=False)["channel_weight"].first()
    return plot_channel_weights(
        {str(channel): float(weight) for channel, weight in weights.items()},
        positions=about.get("positions"),
        montage=about.get("montage") if isinstance(about.get("montage"), str) else None,
        note=_whole(results, name),
    )


def _draw_heatmap(results: Results, name: str) -> Drawing:
    ranking = own_ranking(results, name)
    if ranking.empty:
        return "There is no ranking, so no heat map of scores."
    return plot_score_heatmap(ranking, note=_whole(results, name))


def _draw_sure_features(results: Results, name: str) -> Drawing:
    found = results.resampling.get(name)
    if not found:
        return "Halves of the subjects were not compared (run idfsmec benchmark)."
    if "reason" in found:
        return f"Halves of the subjects could not be compared: {found['reason']}"
    return plot_selection_frequency(
        found["frequency"],
        threshold=found["threshold"],
        chance=found["chance"],
        note=_halves(results, name),
        title="Features picked again",
    )


def _draw_sure_channels(results: Results, name: str) -> Drawing:
    found = results.resampling.get(name) or {}
    if "channel_frequency" not in found:
        return {}
    blind = list(found["channel_chance"].values())
    return plot_selection_frequency(
        found["channel_frequency"],
        chance=sum(blind) / len(blind),
        note=_halves(results, name),
        title="Channels picked again",
    )


def _halves(results: Results, name: str) -> str:
    found = results.resampling[name]
    what = f"first {found['n_picked']} on {found['n_resamples']} halves of the subjects"
    return _whole(results, name, what)


def _draw_missing(results: Results, name: str) -> Drawing:
    about = results.tables[name].get("missing_by_recording")
    if not about:
        return "Which recordings lack which channels was not recorded."
    shares = pd.DataFrame(about["share"], index=about["subjects"], columns=about["channels"])
    if not shares.to_numpy().any():
        return "No channel is missing in any recording."
    return plot_missing_map(shares, note="as recorded, before gaps are made; no folds, no tuning")


def _draw_by_rate(results: Results, name: str) -> Drawing:
    return _draw_accuracy(results, name, plot_accuracy_by_rate)


def _draw_by_k(results: Results, name: str) -> Drawing:
    rows = experiment_rows(results, "accuracy", name)
    if not rows.empty and rows["k"].nunique() < 2:
        return "Only one number of features was tried, so there is no curve over it."
    return _draw_accuracy(results, name, plot_accuracy_by_k)


def _draw_accuracy(results: Results, name: str, plot: Callable[..., Axes]) -> Drawing:
    rows = experiment_rows(results, "accuracy", name)
    metric = decide_metric(results.protocol)
    if rows.empty or rows[metric].isna().all():
        return "Accuracy was not measured (run idfsmec benchmark)."
    options = {"metric": metric, "chance": chance_of(results, name)}
    note = _note(results, "accuracy")
    patterns = [str(pattern) for pattern in rows["pattern"].unique()]
    if len(patterns) == 1:
        return plot(rows, note=note, **options)
    return {
        pattern: plot(rows[rows["pattern"] == pattern], note=f"{note} · {pattern} gaps", **options)
        for pattern in patterns
    }


def _draw_ablation(results: Results, name: str) -> Drawing:
    rows = experiment_rows(results, "ablation", name)
    metric = decide_metric(results.protocol)
    if rows.empty or rows[metric].isna().all():
        return "The ablation was not run (idfsmec benchmark --experiment ablation)."
    return plot_ablation(
        rows,
        metric=metric,
        n_channels=len(results.tables[name]["channels"]),
        chance=chance_of(results, name),
        note=_note(results, "ablation"),
    )


def _draw_sensitivity(results: Results, name: str) -> Drawing:
    rows = experiment_rows(results, "sensitivity", name)
    metric = decide_metric(results.protocol)
    if rows.empty or rows[[metric, "lam", "gamma"]].dropna().empty:
        return "The grid of λ and γ was not run (idfsmec benchmark --experiment sensitivity)."
    return plot_sensitivity(rows, metric=metric, note=_note(results, "sensitivity"))


def _draw_cost(results: Results, name: str) -> Drawing:
    rows = cost_rows(results, name)
    if rows.empty or rows["seconds"].isna().all():
        return "Cost was not measured (idfsmec benchmark --experiment cost)."
    return plot_cost(rows, note=_note(results, "cost"))


def _draw_convergence(results: Results, name: str) -> Drawing:
    history = results.convergence.get(name)
    if not history:
        return "The course of the objective was not recorded."
    return plot_convergence(history, note=_whole(results, name))


def _draw_ranks(results: Results) -> Axes | str:
    ranked = rank_methods(results)
    if isinstance(ranked, str):
        return ranked
    return plot_critical_difference(ranked[0], note=_note(results, "accuracy"))


_PER_TABLE: dict[str, tuple[Callable[[Results, str], Drawing], str]] = {
    "channels": (
        _draw_channels,
        "How well each channel alone tells the groups apart: the more, the darker or longer.",
    ),
    "heatmap": (
        _draw_heatmap,
        "Channel weight times feature weight. Blank cells were not computed.",
    ),
    "sure-features": (
        _draw_sure_features,
        "How often IDFS-MEC put the feature among its first when it saw only half of the people. "
        "Blind: what picks at random would reach.",
    ),
    "sure-channels": (
        _draw_sure_channels,
        "How often at least one feature of the channel was among them.",
    ),
    "missing": (
        _draw_missing,
        "Each row is a recording, each column a channel; bars on top give the rate per channel.",
    ),
    "accuracy-by-rate": (
        _draw_by_rate,
        "Mean over folds with 95 % intervals corrected for overlapping training sets. In the grey "
        "band a score is no better than guessing.",
    ),
    "accuracy-by-k": (
        _draw_by_k,
        "Mean over folds and missing rates for each number of features kept.",
    ),
    "ablation": (
        _draw_ablation,
        "IDFS-MEC with one part taken out. Bars are 95 % intervals; diamonds, where drawn, are "
        "the paper's plain accuracies on its data set with as many channels (folds not stated).",
    ),
    "sensitivity": (
        _draw_sensitivity,
        "Mean over folds, missing rates and numbers of features for every setting. The best cell "
        "was picked on test folds, so its value is optimistic.",
    ),
    "cost": (
        _draw_cost,
        "Selection alone, one thread, logarithmic scale. Published seconds come from MATLAB on "
        "another machine: compare orders of magnitude.",
    ),
    "convergence": (
        _draw_convergence,
        "The objective never rises; the dotted line is where it ends.",
    ),
}
