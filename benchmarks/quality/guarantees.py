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
from benchmarks.quality import calibration, effects, intervals, multiverse, scores, validation

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


def measure_scores(n_studies: int, n_jobs: int) -> dict[str, Any]:
    """Prediction intervals and CIs of scores, of models in training and of fixed ones."""
    return scores.summarise(scores.run(n_studies, n_jobs), scores.fixed(50 * n_studies))


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
    "shares": Part("Sensitivity and specificity", intervals.measure_shares, 400, 100),
    "train": Part(
        "`train` and `predict`, default model",
        lambda n, jobs: calibration.summarise(calibration.run(n, jobs)),
        100,
        5,
    ),
    "tuned": Part("`train --method IDFS-MEC`, tuned", measure_tuned, 100, 5),
    "validate": Part(
        "CIs of `validate`, two generators",
        lambda n, jobs: validation.summarise(validation.run(n, jobs)),
        2000,
        200,
    ),
    "card": Part(
        "`validate` minus card",
        lambda n, jobs: validation.summarise_models(validation.run_models(n, jobs)),
        200,
        15,
    ),
    "effects": Part(
        "`select`: sizes of effects",
        lambda n, _: measure_effects(["hedges", "classes", "discoveries", "adjusted"], n),
        4000,
        1000,
    ),
    "missing": Part(
        "Missing channels and the diagnosis",
        lambda n, _: measure_effects(["missing"], 10 * n),
        400,
        50,
    ),
    "scores": Part("`--target`", measure_scores, 40, 4),
    "stable": Part(
        "`select --resamples`", lambda n, _: measure_effects(["stable"], 100 * n), 40, 5
    ),
    "multiverse": Part(
        "`multiverse`",
        lambda n, jobs: multiverse.summarise(multiverse.run(n, jobs)),
        1000,
        300,
    ),
}


class Row(NamedTuple):
    """A statement of the page: its nominal rate, and where the measured ones are.

    Several of them are separated by ``; ``, in ``of`` or in ``mean`` and ``worst``.
    """

    part: str
    text: str
    nominal: str
    of: str
    mean: str = "mean"
    worst: str = "worst"
    note: str = ""

    def measured(self, values: dict[str, Any], column: str) -> str:
        """Return the numbers of a column, of each statement."""
        statements, keys = self.of.split("; "), getattr(self, column).split("; ")
        known = statements * (len(keys) if len(statements) == 1 else 1)
        pairs = zip(known, keys * (len(known) if len(keys) == 1 else 1), strict=True)
        return " / ".join(f"{values[of][key]:.3f}" for of, key in pairs if key)


_FEW, _WIDTH = "≤ 0.05", "width {width:.2f}"
_BOTH = "{0}, 1 repeats; {0}, 5 repeats"
_POWER = "AUC: power at 0.15, 5 repeats"
ROWS = [
    *(
        Row("intervals", f"CI of {score}, 1 / 5 repeats", "0.95", _BOTH.format(f"{of}: CI"),
            note=_WIDTH)
        for score, of in (
            ("AUC", "AUC"),
            ("balanced accuracy", "balanced accuracy"),
            ("difference of AUC", "AUC, difference"),
        )
    ),
    Row("intervals", "AUC / balanced accuracy above chance", "≤ 0.025",
        "AUC: CI, 5 repeats; balanced accuracy: CI, 5 repeats", "above chance",
        "above chance, worst"),
    Row("intervals", "test of two methods, 1 / 5 repeats", _FEW,
        _BOTH.format("AUC: test, no signal"), "wrong", "wrong, worst"),
    Row("intervals", "any of eight after Holm", _FEW, _BOTH.format("AUC: test, no signal"),
        "family wrong", "family wrong, worst"),
    Row("intervals", "difference of 0.15 found, 40 / 80 / 200 participants",
        "at most {stated, 40:.2f} / {stated, 80:.2f} / {stated, 200:.2f}", _POWER,
        "found, 40; found, 80; found, 200", ""),
    Row("intervals", "not inferior by 0.03, loses 0.03 to 0.06 / nothing", "≤ 0.025 / ",
        "AUC: not inferior, loses 0.03 to 0.06, 5 repeats; "
        "AUC: not inferior, loses nothing, 5 repeats", "found, 200", ""),
    Row("shares", "CI of sensitivity, specificity", "0.95", "CI", note=_WIDTH),
    *(
        Row(part, f"CI of {name}", "0.95", of, note=_WIDTH)
        for part in ("train", "tuned")
        for name, of in (
            ("a participant's probability", "probability"),
            ("AUC", "AUC"),
            ("balanced accuracy", "balanced accuracy"),
        )
    ),
    *(
        Row(part, "AUC / balanced accuracy above chance", "≤ 0.025", "AUC; balanced accuracy",
            "above chance", "above chance, worst")
        for part in ("train", "tuned")
    ),
    *(
        Row("validate", name, "0.95",
            f"{of}, shapes chosen on; {of}, shapes new")
        for name, of in (
            ("AUC", "AUC"),
            ("balanced accuracy", "balanced accuracy"),
            ("Brier score", "Brier score"),
            ("calibration intercept", "intercept"),
            ("calibration slope", "slope"),
        )
    ),
    Row("validate", "gain by recalibrating stated where there is none", "≤ 0.025",
        "gain, shapes chosen on"),
    Row("card", "CI of the difference", "0.95", "difference"),
    Row("card", "difference stated, same population", _FEW, "differs, effect 0.7 of 0.7",
        "mean", "most"),
    Row("card", "difference stated, half of the effects", "",
        "differs, effect 0.35 of 0.7", "mean", "most"),
    *(
        Row("effects", f"CI of {name}, {' / '.join(effects.NOISE)} values", "0.95",
            "; ".join(f"{of}, {noise}" for noise in effects.NOISE), "mean", "min")
        for name, of in (("Hedges' g", "g"), ("a feature's AUC", "AUC"))
    ),
    Row("effects", "CI of eta squared", "0.95", "eta squared", "mean", "min"),
    Row("effects", "p of a feature", _FEW, "p < 0.05", "mean", "max"),
    Row("effects", "p adjusted for age and sex", _FEW, "p adjusted < 0.05", "mean", "max"),
    Row("effects", "false share of q < 0.05", _FEW, "q < 0.05", "mean", "max"),
    Row("missing", "missing in 35 % of patients' epochs: found", "", "missing channel, found",
        "mean", "min"),
    Row("missing", "false alarm, 16 channels", _FEW, "missing channel, false alarm", "mean",
        "max"),
    Row("stable", "false selections", "≤ 1", "false selections", "mean", "max"),
    Row("stable", "CI of stability, these participants", "0.95", "stability, same participants",
        "mean", "min"),
    Row("stable", "the same, others", "not stated", "stability, others", "mean", "min"),
]  # fmt: skip
ROWS += [
    Row("scores", f"prediction interval, {' / '.join(map(str, scores.SIZES))}", "0.95",
        "; ".join(f"interval, {n}" for n in scores.SIZES)),
    Row("scores", "`train`: CI of R² / Spearman", "0.95", "R2; spearman"),
    Row("scores", "`validate`: R² / Spearman / Pearson / absolute error / slope / bias", "0.95",
        "; ".join(f"fixed: {name}" for name in scores.NAMES.values())),
]  # fmt: skip


ROWS += [
    Row("multiverse", "no difference: joint p, median / share", _FEW, "median; share"),
    Row("multiverse", "no difference: q, default / any of 16 specifications",
        f"{_FEW} / not stated", "default alone; some specification"),
    Row("multiverse", "1.2 SD in all / with one reference: found", "",
        "found; found, one reference"),
]  # fmt: skip


def page_rows(results: dict[str, Any]) -> str:
    """Return the tables of the page, a part each."""
    blocks = []
    for name, part in PARTS.items():
        if not (stored := results.get(name)):
            continue
        lines = [
            f"**{part.title}**: {stored['date']}, `--parts {name}`, {stored['studies']} studies\n",
            "| statement | nominal | measured | worst population |",
            "|---|---|---|---|",
        ]
        for row in (row for row in ROWS if row.part == name):
            values = stored["measured"]
            of = [values[name] for name in row.of.split("; ")]
            notes = " / ".join(row.note.format(**each) for each in of if row.note)
            cells = [f"{row.text}{', ' if notes else ''}{notes}", row.nominal.format(**of[-1])]
            cells += [row.measured(values, column) for column in ("mean", "worst")]
            lines.append(f"| {' | '.join(cells)} |")
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
