"""The page of a multiverse: what is said first, specification curves, and tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from idfsmec._files import write_csv, write_json
from idfsmec.audit.association import detectable_concordance
from idfsmec.errors import listing
from idfsmec.metrics import detectable_auc
from idfsmec.multiverse import ALPHA
from idfsmec.report import style
from idfsmec.report.text import (
    capitalise,
    first_that_fits,
    number_with_ci,
    percent,
    plain_records,
    slugify,
)
from idfsmec.table.columns import column_label

if TYPE_CHECKING:
    from idfsmec.multiverse import Multiverse

#: What is written into a folder.
FILES = (
    *("multiverse.html", "multiverse.json", "specifications.csv", "features.csv"),
    *("effects.csv", "choices.csv"),
)
#: A study that finds only a feature with a larger AUC, or concordance with a score, decides
#: nothing (power of 80 %).
_DECIDES_AUC, _DECIDES_SCORE = 0.9, 0.75
#: From this share of specifications on a direction is kept.
_KEPT = 0.9
_CLAIM = "In {n_kept} of {n} specifications {feature} {is_} (joint p = {p})"
#: The sentence on top, by answers; the first row that fits holds.
HEADLINES: tuple[tuple[Mapping[str, str], str], ...] = (
    ({"participants": "few"},
     "{n_subjects} participants decide nothing: a single feature is found with a power of 80 % "
     "only if its {measure} is {detectable:.2f} or more. What follows shows how results move."),
    ({"joint": "no", "default": "yes"},
     "{default_feature} {default_is} under the default specification and significant in "
     "{n_default} of {n}, but over all specifications no {association} is shown (joint p = "
     "{default_p}): the result depends on {default_choice}."),
    ({"joint": "no"},
     "Over {n} specifications no {association} is shown (smallest joint p = {p}: {feature})."),
    ({"audit": "all red"},
     f"{_CLAIM}; the audit is red in all: this may be an effect of acquisition."),
    ({"audit": "some red"},
     f"{_CLAIM}; the audit is {{levels}}: the result depends on {{audit_choice}}."),
    ({"steady": "no"},
     f"{_CLAIM}, but {{weaker}}: the result depends on {{choice}}. The audit is {{levels}}."),
    ({}, f"{_CLAIM}; the audit is {{levels}}: the result survives these choices."),
)  # fmt: skip
_MOST_FEATURES, _CURVES = 50, 3


def answer_multiverse(multiverse: Multiverse) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the answers that choose the headline, and the values in its text."""
    table, features, counts = multiverse.specifications, multiverse.features, multiverse.n_subjects
    detectable = detectable_auc(counts[0], counts[-1], ALPHA)
    enough, measure, association = _DECIDES_AUC, "AUC", "difference"
    if not multiverse.classes:
        detectable = detectable_concordance(counts[0], ALPHA)
        enough, measure = _DECIDES_SCORE, "concordance with the score"
        association = "association with the score"
    first, levels, red = features.iloc[0], Counter(table["level"]), table["level"] == "red"
    effects = multiverse.effects
    default = effects[effects["specification"] == 0].sort_values("p", kind="stable").iloc[0]
    of_default = features[features["feature"] == default["feature"]].iloc[0]
    significant = multiverse.effect_of(default["feature"], "q") <= ALPHA
    choice, option = multiverse.depends_on(first["feature"])
    weaker = f"with {choice}: {option} it is less than half as large"
    answers = {
        "participants": "few" if detectable > enough else "enough",
        "joint": "yes" if first["p_median"] <= ALPHA else "no",
        "default": "yes" if default["q"] <= ALPHA else "no",
        "audit": "all red" if red.all() else "some red" if red.any() else "not red",
        "steady": "no" if choice or first["share_direction"] < _KEPT else "yes",
    }
    said = [f"{level} in {n if len(levels) > 1 else 'all'}" for level, n in levels.most_common()]
    return answers, {
        "n": len(table),
        "n_subjects": sum(counts),
        "measure": measure,
        "association": association,
        "detectable": detectable,
        "feature": column_label(first["feature"]),
        "is_": _say_direction(first["direction"]),
        "p": _p(first["p_median"]),
        "n_kept": round(len(table) * first["share_direction"]),
        "weaker": weaker if choice else "in the others the other way round",
        "choice": _name(choice),
        "levels": listing(said),
        "audit_choice": _name(multiverse.decisive(red)),
        "default_feature": column_label(default["feature"]),
        "default_is": _say_direction(of_default["direction"]),
        "n_default": int(significant.sum()),
        "default_p": _p(of_default["p_median"]),
        "default_choice": _name(multiverse.decisive(significant)),
    }


def describe_multiverse(multiverse: Multiverse) -> list[str]:
    """Return what was found as sentences, the first as a headline."""
    answers, values = answer_multiverse(multiverse)
    table, moves = multiverse.specifications, multiverse.moves
    tested = len(moves) and np.isfinite(moves["p"].iloc[0])
    said = style.sentences_of(
        "multiverse.txt",
        table=table,
        classes=multiverse.classes,
        default=_estimate(table.iloc[0], "score"),
        most=moves.iloc[0] if tested else None,
        difference=_estimate(moves.iloc[0], "difference", "+") if tested else "",
        p=_p(moves["p"].iloc[0]) if tested else "",
        alpha=ALPHA,
    )
    headline = capitalise(first_that_fits(HEADLINES, answers).format(**values))
    return [headline, *said.values()]


def _name(choice: str) -> str:
    return f"the choice of {choice}" if choice else "several choices"


def _say_direction(direction: str) -> str:
    return f"is {direction}" if direction.startswith("higher") else direction


def _p(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.2g}"


def _estimate(row: Any, name: str, sign: str = "z") -> str:
    values = {"mean": row[name], "low": row["low"], "high": row["high"]}
    is_known = np.isfinite(list(values.values())).all()
    return number_with_ci(values, sign=sign) if is_known else "–"


@style.literal_text
def plot_specification_curve(multiverse: Multiverse, feature: str | None = None) -> Axes:
    """Draw results in the order of their size, and below which options they have.

    Parameters
    ----------
    multiverse : Multiverse
    feature : str, optional
        Whose effects to draw; by default the score of the model.

    Returns
    -------
    Axes
        Of the curve; those of the options are the second ones of its figure.
    """
    table = multiverse.specifications
    drawn = table[["score", "low", "high"]].set_axis(["value", "low", "high"], axis=1)
    chance, label = (0.5, "AUC") if multiverse.classes else (0.0, "Spearman's correlation")
    title, filled = f"{label} of the model", (drawn["low"] > chance)
    if feature is not None:
        of_feature = multiverse.effects[multiverse.effects["feature"] == feature]
        drawn = of_feature[["effect", "low", "high"]].reset_index(drop=True)
        drawn.columns = pd.Index(["value", "low", "high"])
        filled = pd.Series(of_feature["q"].to_numpy() <= ALPHA)
        label = "Hedges' g" if multiverse.classes else label
        chance, title = 0.0, column_label(feature)
    order = drawn["value"].sort_values(kind="stable", na_position="first").index
    rows = [(name, option) for name, of in multiverse.choices.items() for option in of]
    _, (ax, below) = plt.subplots(
        *(2, 1),
        figsize=(2.6 + 0.16 * len(order), 2.6 + 0.17 * len(rows)),
        sharex=True,
        height_ratios=[2.4, 0.17 * len(rows)],
        layout="constrained",
    )
    for place, number in enumerate(order):
        value, low, high = drawn.loc[number]
        color = style.EMPHASIS if table["level"][number] == "red" else style.INK
        ax.vlines(place, low, high, color=color, linewidth=1.2, alpha=0.6)
        face = color if filled[number] else style.PAPER
        marker = "D" if number == 0 else "o"
        ax.plot(place, value, marker, markeredgecolor=color, markerfacecolor=face)
    ax.axhline(chance, color=style.MUTED, linewidth=1, linestyle=":")
    ax.set(ylabel=label)
    texts = [_describe_specification(multiverse, number, drawn) for number in order]
    style.show_values(ax, np.arange(len(order)), drawn["value"][order], texts)
    for height, (name, option) in enumerate(rows):
        used = (table[name][order] == option).to_numpy()
        below.plot(np.flatnonzero(used), np.full(used.sum(), height), ".", color=style.INK)
    below.set_yticks(range(len(rows)), [f"{name}: {option}" for name, option in rows])
    below.set(xticks=[], ylim=(len(rows) - 0.5, -0.5))
    style.style_axes(below, "", grid="x")
    return style.style_axes(ax, title)


def _describe_specification(multiverse: Multiverse, number: int, drawn: pd.DataFrame) -> str:
    row = multiverse.specifications.loc[number]
    changed = [str(row[name]) for name, of in multiverse.choices.items() if row[name] != of[0]]
    named = f"{number}, {', '.join(changed) or 'default'}"
    return f"{named}: {_estimate(drawn.loc[number], 'value')}; audit {row['level']}"


def write_multiverse(
    multiverse: Multiverse,
    folder: str | PathLike[str],
    *,
    name: str = "study",
    overwrite: bool = False,
) -> Path:
    """Write ``multiverse.html``, its tables as CSV, and all of it as JSON.

    Parameters
    ----------
    multiverse : Multiverse
        Of :func:`idfsmec.multiverse.run_multiverse`.
    folder : path-like
        Made if need be.
    name : str
        What the page calls the study.
    overwrite : bool
        Whether to replace existing files.

    Returns
    -------
    Path
        The page.
    """
    page, data, *paths = (Path(folder) / file for file in FILES)
    style.refuse_existing(overwrite, page, data, *paths)
    headline, *sentences = describe_multiverse(multiverse)
    counts = dict(zip(multiverse.classes, multiverse.n_subjects, strict=False))  # none for a score
    text = style.render(
        "multiverse.html",
        brand="idfsmec multiverse",
        title=name,
        chips=[
            f"{len(multiverse.specifications)} specifications",
            *(f"{label}: {count}" for label, count in counts.items()),
            f"{sum(multiverse.n_subjects)} participants",
        ],
        headline=headline,
        sentences=sentences,
        parts=list(_parts(multiverse)),
    )
    style.write_texts({page: text})
    kept: dict[str, Any] = {"sentences": [headline, *sentences], "options": multiverse.choices}
    frames = ("specifications", "features", "effects", "moves")
    for path, frame in zip(paths, (getattr(multiverse, name) for name in frames), strict=True):
        write_csv(path, frame)
        kept[path.stem] = plain_records(frame)
    write_json(data, kept)
    return page


def _parts(multiverse: Multiverse) -> Iterator[dict[str, Any]]:
    """Yield figures and tables of the page."""
    table, features, effects = multiverse.specifications, multiverse.features, multiverse.effects
    curves = {None: table} | {
        feature: effects[effects["feature"] == feature]
        for feature in features["feature"][:_CURVES]
    }
    for feature, numbers in curves.items():
        ax, slug = plot_specification_curve(multiverse, feature), slugify(feature or "model")
        name = "curve-of-feature" if feature else "curve-of-model"
        picture = style.make_figure(ax, name, numbers, f"curve-{slug}")
        yield style.tabulate(column_label(feature or "Model"), picture=picture)
    size = "Hedges' g" if multiverse.classes else "correlation"
    rows = [
        {
            "feature": column_label(row["feature"]),
            "direction": row["direction"],
            size: f"{row['effect']:+.2f}".replace("-", "−"),
            "direction kept": percent(row["share_direction"]),
            "first": percent(row["share_first"]),
            "significant": percent(row["share_significant"]),
            "p (median)": _p(row["p_median"]),
            "p (share)": _p(row["p_share"]),
            "depends on": multiverse.depends_on(row["feature"])[0]
            if row["share_significant"]
            else "",
        }
        for row in features.head(_MOST_FEATURES).to_dict("records")
    ]
    yield style.tabulate("Features", style.captions()["features"], rows)
    moves = [
        {
            "choice": row["choice"],
            "option": row["option"],
            "instead of": row["instead_of"],
            "difference (95 % CI)": _estimate(row, "difference", "+"),
            "p": _p(row["p"]),
        }
        for row in multiverse.moves.to_dict("records")
    ]
    yield style.tabulate("Choices", style.captions()["choices"], moves)
    last = ("score (95 % CI)", "audit", "participants", "missing", "significant features")
    each = [
        [
            *(number, *(row[name] for name in multiverse.choices), _estimate(row, "score")),
            *(row["level"], row["n_subjects"], percent(row["missing"], 1), row["n_significant"]),
        ]
        for number, row in enumerate(table.to_dict("records"))
    ]
    # A choice may have the name of another column.
    rows = [{str(place): cell for place, cell in enumerate(row)} for row in each]
    part = style.tabulate("Specifications", style.captions()["specifications"], rows)
    yield part | {"header": ["number", *multiverse.choices, *last]}
