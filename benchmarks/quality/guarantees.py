"""Measure what statistical statements keep, and store it: the numbers of docs/guarantees.md.

``python -m benchmarks.quality.guarantees`` runs the grid of all parts, for many cores;
``--subset`` runs fewer studies of each cell, in about 30 minutes on two cores; ``--parts`` names
parts. Results are in ``benchmarks/results/guarantees.json``, each part with its date, version,
command and seconds; parts that were not run keep theirs. ``--page`` writes their rows into the
page.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import idfsmec
from benchmarks.quality import calibration, effects, intervals, multiverse

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "guarantees.json"
PAGE = ROOT / "docs" / "guarantees.md"
BEGIN, END = "<!-- rows of guarantees.json -->", "<!-- end of rows -->"


def measure_effects(parts: Sequence[str], n_studies: int) -> dict[str, Any]:
    """Mean, lowest and highest rate of each statement over cells."""
    rates = effects.run(n_studies, seed=2, parts=parts).groupby("statement", sort=False)["rate"]
    return rates.agg(["mean", "min", "max"]).round(4).to_dict("index")


def measure_tuned(n_studies: int, n_jobs: int) -> dict[str, Any]:
    """CIs of a tuned pipeline."""
    few = {"sizes": (40, 80), "epochs": (1,), "method": "IDFS-MEC"}
    return calibration.summarise(calibration.run(n_studies, n_jobs, 6000, **few))


class Part(NamedTuple):
    """What is measured together: ``measure(n_studies, n_jobs)``, studies of each cell."""

    title: str
    measure: Callable[[int, int], dict[str, Any]]
    whole: int
    subset: int


PARTS = {
    "intervals": Part(
        "Scores and tests, linear discriminants",
        lambda n, jobs: intervals.summarise(intervals.run(n, jobs)),
        400,
        60,
    ),
    "train": Part(
        "`train` and `predict`, default model",
        lambda n, jobs: calibration.summarise(calibration.run(n, jobs)),
        100,
        5,
    ),
    "tuned": Part("`train --method IDFS-MEC`, tuned", measure_tuned, 100, 5),
    "effects": Part(
        "`select`: sizes of effects",
        lambda n, _: measure_effects(["hedges", "discoveries", "adjusted"], n),
        4000,
        1000,
    ),
    "missing": Part(
        "Missing channels and the diagnosis",
        lambda n, _: measure_effects(["missing"], 10 * n),
        400,
        50,
    ),
    "stable": Part(
        "`select --resamples`", lambda n, _: measure_effects(["stable"], 100 * n), 40, 5
    ),
    "multiverse": Part(
        "`multiverse`: the joint test",
        lambda n, jobs: multiverse.summarise(multiverse.run(n, jobs)),
        1000,
        300,
    ),
}


class Row(NamedTuple):
    """A statement of the page: its nominal rate, and where the measured ones are."""

    part: str
    text: str
    nominal: str
    of: str
    mean: str = "mean"
    worst: str = "worst"
    note: str = ""


_CI, _FEW = "95 % CI of {}", "≤ 0.05"
ROWS = [
    Row(
        "intervals",
        f"{_CI.format(score)}, {repeats} x 5 or 10 folds",
        "0.95",
        f"{of}: CI, {repeats} repeats",
        note="width {width:.2f}",
    )
    for score, of in (
        ("an AUC", "AUC"),
        ("balanced accuracy", "balanced accuracy"),
        ("a difference of AUC", "AUC, difference"),
    )
    for repeats in (1, 5)
]
ROWS += [
    Row("intervals", f"{name} above chance", "≤ 0.025", f"{name}: CI, 5 repeats", "above chance",
        "above chance, worst")
    for name in ("AUC", "balanced accuracy")
]  # fmt: skip
ROWS += [
    Row("intervals", f"test between two methods, no signal, {repeats} x 5 or 10 folds", _FEW,
        f"AUC: test, no signal, {repeats} repeats", "wrong", "wrong, worst")
    for repeats in (1, 5)
]  # fmt: skip
ROWS += [
    Row("intervals", "any of eight after Holm, 5 repeats", _FEW,
        "AUC: test, no signal, 5 repeats", "family wrong", "family wrong, worst"),
    Row("intervals", "sensitivity (Wilson)", "0.95", "sensitivity: Wilson, pooled, 1 repeats"),
    Row("train", "95 % CI of a participant's probability", "0.95", "probability",
        note="width {width:.2f}"),
    Row("train", _CI.format("AUC"), "0.95", "AUC", note="width {width:.2f}"),
    Row("train", _CI.format("balanced accuracy"), "0.95", "balanced accuracy",
        note="width {width:.2f}"),
    Row("tuned", "95 % CI of a participant's probability", "0.95", "probability",
        note="width {width:.2f}"),
    Row("tuned", _CI.format("AUC"), "0.95", "AUC", note="width {width:.2f}"),
    Row("tuned", _CI.format("balanced accuracy"), "0.95", "balanced accuracy",
        note="width {width:.2f}"),
    *(
        Row("effects", f"95 % CI of Hedges' g, {noise} values", "0.95", f"g, {noise}", "mean",
            "min")
        for noise in effects.NOISE
    ),
    Row("effects", "p of a feature without difference", _FEW, "p < 0.05", "mean", "max"),
    Row("effects", "false share of features with q < 0.05", _FEW, "q < 0.05", "mean", "max"),
    Row("effects", "p adjusted for age and sex", _FEW, "p adjusted < 0.05", "mean", "max"),
    Row("missing", "35 % of patients' epochs lack a channel: found", "",
        "missing channel, found", "mean", "min"),
    Row("missing", "any false alarm of 16 channels", _FEW, "missing channel, false alarm", "mean",
        "max"),
    Row("stable", "false selections per study", "≤ 1", "false selections", "mean", "max"),
    Row("stable", "CI of stability holds that of many halves", "0.95",
        "stability, same participants", "mean", "min"),
    Row("stable", "it holds that of other participants", "not stated", "stability, others", "mean",
        "min"),
    Row("multiverse", "nothing differs: joint p of any median effect below 0.05", _FEW, "median"),
    Row("multiverse", "nothing differs: joint p of any share below 0.05", _FEW, "share"),
    Row("multiverse", "nothing differs: any q below 0.05 in the default", _FEW, "default alone"),
    Row("multiverse", "nothing differs: any q below 0.05 in one of 16 specifications",
        "not stated", "some specification"),
    Row("multiverse", "a feature differs by 1.2 SD in all specifications: found", "", "found"),
    Row("multiverse", "one differs under one of two references: joint p below 0.05", "not stated",
        "found, one reference"),
]  # fmt: skip


def page_rows(results: dict[str, Any]) -> str:
    """Return the tables of the page, a part each."""
    blocks = []
    for name, part in PARTS.items():
        if not (stored := results.get(name)):
            continue
        lines = [
            f"**{part.title}**: {stored['date']}, `--parts {name}`, {stored['studies']} studies "
            "per cell\n",
            "| statement | nominal | measured | worst cell |",
            "|---|---|---|---|",
        ]
        for row in (row for row in ROWS if row.part == name):
            of = stored["measured"][row.of]
            note = f", {row.note.format(**of)}" if row.note else ""
            lines.append(
                f"| {row.text}{note} | {row.nominal} | {of[row.mean]:.3f} | {of[row.worst]:.3f} |"
            )
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def write_page(results: dict[str, Any], page: Path = PAGE) -> None:
    """Put the rows between the two comments of the page."""
    before, _, rest = page.read_text("utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    page.write_text(f"{before}{BEGIN}\n\n{page_rows(results)}\n\n{END}{after}", "utf-8")


def store(results: dict[str, Any], name: str, measured: dict[str, Any], studies: int) -> None:
    """Keep what was measured, with its date, version and command."""
    results[name] = {
        "date": datetime.now(UTC).date().isoformat(),
        "version": idfsmec.__version__,
        "command": f"python -m benchmarks.quality.guarantees --parts {name}",
        "studies": studies,
        "measured": measured,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=list(PARTS))
    parser.add_argument("--subset", action="store_true")
    parser.add_argument("--page", action="store_true", help="write the rows of the page, too")
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    results = json.loads(options.out.read_text("utf-8")) if options.out.exists() else {}
    for name in options.parts:
        part = PARTS[name]
        n_studies = part.subset if options.subset else part.whole
        store(results, name, part.measure(n_studies, options.jobs), n_studies)
        options.out.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
        print(json.dumps(results[name], indent=1))
    if options.page:
        write_page(results)


if __name__ == "__main__":
    main()
