"""What the figures that compare methods show, in sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from idfsmec.evaluation import Results
from idfsmec.report.comparison import rank_methods
from idfsmec.report.differences import paired_differences
from idfsmec.report.formatting import listing, percent, points
from idfsmec.report.scores import (
    chance_of,
    differences,
    proposed_method,
    setting_curves,
    shown_metric,
    unit_scores,
)
from idfsmec.report.style import family_of, label_of

#: An interval that holds zero is no proof that two methods are alike.
_EVEN = "as far as folds tell level"
_LEVEL = f"{_EVEN} with"


def say_ranks(results: Results) -> list[str]:
    """What the diagram of mean ranks shows."""
    ranked, main = rank_methods(results), proposed_method(results)
    if isinstance(ranked, str) or main not in ranked[0].methods:
        return []
    found, known = ranked[0], results.methods
    place = found.methods.index(str(main))
    gaps = found.mean_ranks - found.mean_ranks[place]
    reach = found.critical_difference
    behind = [label_of(m, known) for m, gap in zip(found.methods, gaps, strict=True)
              if gap >= reach]  # fmt: skip
    ahead = [label_of(m, known) for m, gap in zip(found.methods, gaps, strict=True)
             if gap <= -reach]  # fmt: skip
    sentences = [
        f"{main} has place {place + 1} of {len(found.methods)} (mean rank "
        f"{found.mean_ranks[place]:.2f} over {found.n_blocks} blocks)."
    ]
    if ahead:
        sentences.append(f"Surely ahead of it: {listing(ahead)}.")
    if behind:
        sentences.append(f"Surely behind it: {listing(behind)}.")
    level = len(found.methods) - 1 - len(ahead) - len(behind)
    if level:
        which = f"The {level} others cannot" if ahead or behind else "None of the others can"
        sentences.append(f"{which} be told apart from it by their ranks.")
    return sentences


def say_by_rate(results: Results, table: str, rows: pd.DataFrame) -> list[str]:
    """Where accuracy stands to guessing and to the sanity lines, and what gaps cost."""
    main, units = proposed_method(results), unit_scores(rows, shown_metric(results))
    if main not in set(units["method"]):
        return []
    return [
        *_against_chance(str(main), units, chance_of(results, table)),
        *_against_lines(results, str(main), units),
        *_loss(units[units["method"] == main]),
    ]


def _against_chance(
    main: str, units: pd.DataFrame, chance: Mapping[str, float] | None
) -> list[str]:
    if chance is None:
        return []
    means = units[units["method"] == main].groupby("rate")["value"].mean()
    above = [percent(rate) for rate in means.index[means > chance["high"]]]
    within = [percent(rate) for rate in means.index[means <= chance["high"]]]
    if not within:
        return [f"{main} is above what guessing reaches at every missing rate."]
    if not above:
        return [f"{main} is nowhere above what guessing reaches."]
    return [
        f"{main} is above what guessing reaches at {listing(above, 10)} missing, and within it at "
        f"{listing(within, 10)}."
    ]


def _against_lines(results: Results, main: str, units: pd.DataFrame) -> list[str]:
    """Where the proposed method stands to the simple lines, over all rates."""
    known = results.methods
    lines = [m for m in dict.fromkeys(units["method"]) if family_of(m, known) == "sanity"]
    if not lines:
        return []
    found = differences(units[units["method"].isin([main, *lines])], "method", main)
    parts = _split(found, [label_of(m, known) for m in found["method"]])
    return [f"Over all rates, paired by fold, it is {parts}."] if parts else []


def _split(found: pd.DataFrame, names: Sequence[str]) -> str:
    """Names with differences in points: surely above, level with, surely below."""
    texts = [f"{n} ({points(d)})" for n, d in zip(names, found["difference"], strict=True)]
    groups: dict[str, list[str]] = {"surely above": [], _LEVEL: [], "surely below": []}
    for text, sure, difference in zip(texts, found["sure"], found["difference"], strict=True):
        key = _LEVEL if not sure else "surely above" if difference > 0 else "surely below"
        groups[key].append(text)
    return "; ".join(f"{how} {listing(these, 20)}" for how, these in groups.items() if these)


def _loss(own: pd.DataFrame) -> list[str]:
    """Points lost from the lowest to the highest missing rate."""
    rates = sorted(own["rate"].unique())
    if len(rates) < 2:
        return []
    ends = own[own["rate"].isin([rates[0], rates[-1]])]
    paired = differences(ends, "rate", rates[0])
    if paired.empty:
        return []
    found: dict[str, Any] = dict(paired.iloc[0])
    lost, low, high = (float(found[key]) for key in ("difference", "low", "high"))
    way = "loses" if lost >= 0 else "gains"
    how = f"{way} {100 * abs(lost):.1f} points"
    if np.isfinite(low):
        ends_of = (low, high) if lost >= 0 else (-high, -low)
        low_text, high_text = (f"{100 * end:.1f}".replace("-", "−") for end in ends_of)
        unsure = "" if found["sure"] else ": not sure"
        how += f" (95 % interval {low_text} to {high_text}{unsure})"
    return [f"From {percent(rates[0])} to {percent(rates[-1])} missing it {how}."]


def say_differences(results: Results, table: str, rows: pd.DataFrame) -> list[str]:
    """Which of the differences are sure, and how many would seem so by chance."""
    main, known = proposed_method(results), results.methods
    if main not in set(rows["method"]) or rows["method"].nunique() < 2:
        return []
    found = paired_differences(rows, str(main), shown_metric(results))
    found = found[found["p_value"].notna()]
    if found.empty:
        return ["With one fold there are no intervals: no difference is sure."]
    n, out = len(found), int(found["sure"].sum())
    if not out:
        return [f"None of the {n} intervals leaves zero out: no difference is sure."]
    sentences = [
        f"{out} of {n} intervals {'leaves' if out == 1 else 'leave'} zero out; about "
        f"{max(round(0.05 * n), 1)} would if no method differed."
    ]
    kept = found[found["p_holm"] < 0.05]
    if kept.empty:
        sentences.append("None holds when all comparisons are counted (Holm): take none as sure.")
        return sentences
    for better, word in ((True, "ahead of"), (False, "behind")):
        these = kept[(kept["difference"] > 0) == better]
        each = [
            f"{label_of(str(name), known)} at {listing([percent(r) for r in sorted(own)], 10)}"
            for name, own in these.groupby("method", sort=False)["rate"]
        ]
        if each:
            sentences.append(
                f"Sure also when all comparisons are counted (Holm): {main} is {word} "
                f"{'; '.join(each)} missing."
            )
    return sentences


def say_by_k(results: Results, table: str, rows: pd.DataFrame) -> list[str]:
    """How many features it takes, and where selecting them matters."""
    main, metric = proposed_method(results), shown_metric(results)
    curves = unit_scores(setting_curves(rows), metric, by=["k"])
    own = curves[curves["method"] == main]
    if own["k"].nunique() < 2:
        return []
    return [*_best_k(str(main), own), *_k_against_line(results, str(main), curves)]


def _best_k(main: str, own: pd.DataFrame) -> list[str]:
    """From which number of features on the score is level with its highest."""
    means = own.groupby("k")["value"].mean()
    best = int(str(means.idxmax()))
    found = differences(own, "k", best)
    worse = sorted(int(k) for k in found.loc[found["sure"] & (found["difference"] > 0), "k"])
    first = f"The mean of {main} is highest with {best} features ({percent(means[best], 1)})"
    if not worse:
        span = 100 * (means.max() - means.min())
        return [f"{first}, but no other number is surely worse: all lie within {span:.1f} points."]
    return [f"{first}; surely worse: {listing([str(k) for k in worse], 12)}."]


def _k_against_line(results: Results, main: str, curves: pd.DataFrame) -> list[str]:
    """At which numbers of features selecting is better than the lowest of the sanity lines."""
    known = results.methods
    counts = curves.groupby("method")["k"].nunique()
    lines = [m for m in counts.index[counts > 1] if family_of(m, known) == "sanity"]
    if not lines:
        return []
    means = curves[curves["method"].isin(lines)].groupby("method")["value"].mean()
    lowest = str(means.idxmin())
    ks: dict[str, list[str]] = {"surely better": [], _EVEN: [], "surely worse": []}
    for k, here in curves[curves["method"].isin([main, lowest])].groupby("k"):
        if main not in set(here["method"]):
            continue
        for one in differences(here, "method", main).to_dict("records"):
            way = "surely better" if one["difference"] > 0 else "surely worse"
            ks[way if one["sure"] else _EVEN].append(str(k))
    name = label_of(lowest, known)
    parts = [f"{how} with {listing(these, 12)} features" for how, these in ks.items() if these]
    # Whoever selects at random finds the good features too, if enough are kept.
    return [f"Against {name}, the lowest sanity line, it is {'; '.join(parts)}."] if parts else []
