"""A summary in words: all that is in it, for those who decide whether it may leave the house."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from idfsmec._columns import SEPARATOR
from idfsmec.solver import PatternSums

if TYPE_CHECKING:
    from idfsmec.summaries.summary import Summary


def in_words(summary: Summary) -> str:
    """Say in words all that is in a summary."""
    samples = summary.class_total[0].sum(axis=0).astype(int)
    products = sum(one.shift.size * (one.shift.size + 1) // 2 for one in summary.sums)
    cells = int((summary.class_total > 0).sum())
    settings = [f"{key} = {value}" for key, value in sorted(summary.settings.items())]
    lines = [
        f"Tables summed up: {summary.n_tables}.",
        *(
            f"Class {label}: {n} people, {count} samples, of which {seen} have any channel."
            for label, n, count, seen in zip(
                summary.labels, summary.people, samples, summary.seen, strict=True
            )
        ),
        f"Channels: {len(summary.channels)} ({', '.join(summary.channels)}).",
        f"Features: {len(summary.columns)} columns, with their names.",
        f"Folds of people, by the SHA-256 of their names, which are not here: {summary.n_folds}, "
        f"in {len(summary.class_total)} deals, each of which sends all people to folds.",
        f"For each of {cells} cells (deal, fold and class): the numbers of people and of "
        "samples, and for each channel, over the samples that have it: their number, "
        f"{len(summary.columns)} sums of features and {products} sums of products of two "
        "features of one channel; and as much again over people, each of them the mean of "
        "their samples.",
        "For each channel and class: how many people have it in at least half of their samples.",
        f"Sums over fewer than {summary.min_people} people of a class are withheld: "
        + ("; ".join(summary.withheld) if summary.withheld else "there were none")
        + ".",
        "Where sums of one deal less sums of the other would be over fewer, the second deal "
        "is the first again; where sums over samples less sums over people would be, people "
        "count by their samples.",
        *_patterns(summary.patterns, summary.labels),
        "Feature settings: " + ("; ".join(settings) if settings else "none known") + ".",
        "Not in it: names, rows, values of single people, minima, maxima, dates, files.",
    ]
    return "\n".join(lines)


def _patterns(patterns: Sequence[PatternSums], labels: Sequence[Any]) -> list[str]:
    """Say what is told of products between channels."""
    if not patterns:
        return ["Not in it: products between channels."]
    lines = [
        f"Sums by which channels samples have, over all folds, for {len(patterns)} patterns of "
        "channels: the numbers of people and of samples, sums of the features of these channels "
        "and of products of any two of them."
    ]
    for one in patterns:
        channels = dict.fromkeys(column.rpartition(SEPARATOR)[0] for column in one.columns)
        told = ", ".join(
            f"{people} people and {int(count)} samples of class {label}"
            for label, people, count in zip(labels, one.people, one.count, strict=True)
            if people
        )
        products = len(one.columns) * (len(one.columns) + 1) // 2
        lines.append(f"Exactly {', '.join(channels)}: {told}; {products} products for each class.")
    if any(0 < n < len(one.columns) for one in patterns for n in one.count):
        lines.append(
            "Some of these have fewer samples of a class than columns: products then hold the "
            "samples but for a rotation."
        )
    return lines
