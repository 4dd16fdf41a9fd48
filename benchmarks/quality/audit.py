"""How often the audit's verdict is wrong: studies whose confounding is known.

``python -m benchmarks.quality.audit --out FILE --tables TABLE ...`` draws studies from tables of
EEG features and prints how often each cell is green, grey, amber and red. Participants are
mixtures of two participants of a table, so that any number has the correlations of real EEG; their
groups are made here. Without ``--tables`` the features are simulated. Decisions are those of 20
features with the largest t and a ridge regression, both of the training folds (``--decisions
idfsmec``: the audit's own, 100 times slower); tests and levels are those of :mod:`idfsmec.audit`.
FILE keeps what is done: given again, the rest is computed. ``--store`` writes the rates into
``benchmarks/results/audit.json``.

``--generator design`` was used to choose the tests; ``fresh`` (other facts, effects, decisions,
seeds and shares of patients) only to measure them.
"""

from __future__ import annotations

import argparse
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.stats import rankdata

from benchmarks._timing import markdown
from idfsmec import FeatureTable
from idfsmec.audit.association import Fact, carried_facts
from idfsmec.audit.audit_tasks import _Parts
from idfsmec.audit.confounding import (
    LabelledSubjects,
    adjusting_columns,
    auc_of_folds,
    held_out_auc,
    judge_facts,
    separation_p,
)
from idfsmec.audit.levels import answers_of, found_units, judge, what_was_missed
from idfsmec.audit.variables import FAMILIES
from idfsmec.evaluation.run import method_or_ours
from idfsmec.metrics import wilson_interval
from idfsmec.prediction.samples import Samples

N_FOLDS = 10
N_FEATURES = 20
LEVELS = ("green", "grey", "amber", "red")
KNOWN = ("device", "cap", "age", "sex", "site")
RESULTS = Path(__file__).parents[1] / "results" / "audit.json"
STORED = (
    "python -m benchmarks.quality.audit --out audit.jsonl --store --tables "
    "mumtaz_eo_features.csv.gz ds003478_features.csv.gz ds005356_features.csv.gz"
)
FIRST_SEED = {"design": 0, "fresh": 1_000_000}


@dataclass
class Study:
    """What is being made of a study: facts are (n_subjects, n_columns) by name."""

    rng: np.random.Generator
    n: int
    features: np.ndarray
    facts: dict[str, np.ndarray] = field(default_factory=dict)
    y: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=int))
    fresh: bool = True
    scored: bool = False

    @property
    def n_controls(self) -> int:
        """Half of the participants, or 60 %."""
        return round(0.6 * self.n) if self.fresh else self.n // 2

    def warp(self, values: np.ndarray) -> np.ndarray:
        """Give a fact heavy tails and the steps of an instrument."""
        return np.round(4 * np.sinh(values)) / 4 if self.fresh else values

    def normal(self) -> np.ndarray:
        """Draw a standard normal value for each participant."""
        return self.rng.normal(size=self.n)

    def act(self, cause: np.ndarray, size: float) -> None:
        """Let a cause act on 15 % of the features, in standard deviations of the cause.

        The features are any, or a block: a part of the scalp or some bands.
        """
        spread, n_features = cause.std(), self.features.shape[1]
        on = self.rng.random(n_features) < 0.15
        weights = self.rng.choice([-1, 1], n_features) * self.rng.uniform(0.3, 1, n_features)
        if self.fresh:
            start = self.rng.integers(n_features)
            on = (np.arange(n_features) - start) % n_features < 0.15 * n_features
            weights = self.rng.normal(0.5, 0.5, n_features)
        self.features += np.outer((cause - cause.mean()) / max(spread, 1e-9), size * on * weights)

    def label(self, cause: np.ndarray, strength: float) -> None:
        """Make participants patients, or give them a score; ``strength`` is a correlation."""
        cause = (cause - cause.mean()) / max(cause.std(), 1e-9)
        liability = strength * cause + np.sqrt(1 - strength**2) * self.normal()
        self.y = (rankdata(liability) > self.n_controls).astype(int)
        if self.scored:
            self.y = liability

    def level(self, shares: Sequence[float]) -> np.ndarray:
        """Draw a level for each participant."""
        return self.rng.choice(len(shares), size=self.n, p=shares)


def nothing(study: Study, strength: float, size: float) -> None:
    """No fact is associated with anything."""
    study.label(study.normal(), 0.0)


def linear(
    study: Study, strength: float, size: float, fact: str = "gain", reliability: float = 1.0
) -> None:
    """One fact acts on label and EEG; it may be measured with error."""
    cause = study.normal()
    study.label(cause, strength)
    study.act(cause, size)
    measured = np.sqrt(reliability) * cause + np.sqrt(1 - reliability) * study.normal()
    study.facts[fact] = study.warp(measured)[:, None]


def extremes(study: Study, strength: float, size: float, fact: str = "gain") -> None:
    """Patients are at both extremes of a fact, and so is the EEG."""
    cause = study.normal()
    distance = rankdata(np.abs(cause))
    study.label(distance, strength)
    study.act(distance, size)
    study.facts[fact] = study.warp(cause)[:, None]


def levels(
    study: Study, strength: float, size: float, fact: str, effects: Sequence[float]
) -> None:
    """A fact with levels, each of which acts on label and EEG in its own way."""
    level = study.level(np.full(len(effects), 1 / len(effects)).tolist())
    study.label(np.array(effects)[level], strength)
    for each in range(len(effects)):
        study.act((level == each).astype(float), size / 2)
    study.facts[fact] = np.eye(len(effects))[level]


def device(study: Study, strength: float, size: float) -> None:
    """Two devices; the correlation ``strength`` is 0.5 for 75 against 25 %."""
    first = np.zeros(study.n)
    n_controls = study.n_controls
    study.y = (np.arange(study.n) >= n_controls).astype(int)
    share = (1 + strength) / 2
    for k, size_of_class in ((0, n_controls), (1, study.n - n_controls)):
        n_first = round(size_of_class * (share if k else 1 - share))
        first[np.flatnonzero(study.y == k)[:n_first]] = 1.0
    study.act(first, size)
    study.facts["device"] = first[:, None]


def xor(study: Study, strength: float, size: float, kind: str = "signs") -> None:
    """Two facts act only jointly: by the product of their signs, of their ranks, or as levels."""
    a, b = study.normal(), study.normal()
    cause = np.sign(a * b)
    if kind == "ranks":
        cause = rankdata((rankdata(a) - study.n / 2) * (rankdata(b) - study.n / 2))
    study.label(cause, strength)
    study.act(cause, size)
    if kind == "levels":
        a, b = (a > 0).astype(float), (b > 0).astype(float)
    study.facts |= {"gain": study.warp(a)[:, None], "offset": study.warp(b)[:, None]}


def harmless(study: Study, strength: float, size: float) -> None:
    """An illness in the EEG, and a fact (AUC 0.76) that differs between groups alone."""
    study.label(study.normal(), 0.0)
    study.act(study.y - 0.5, size)
    noise = (1.55 if study.scored else 1.0) * study.normal()
    study.facts["gain"] = study.warp(study.y + noise)[:, None]


@dataclass(frozen=True)
class Cell:
    """A cell of the table of errors: a generator with its strengths, and what is wrong."""

    make: Callable[..., None]
    wrong: str
    at_most: float
    strengths: tuple[tuple[float, float], ...] = ((0.8, 0.6), (0.6, 0.6))
    sizes: tuple[int, ...] = (40, 80, 160)
    options: Mapping[str, Any] = field(default_factory=dict)
    only_where_shown: bool = True
    named: str = ""
    scored: bool = False


_CONFOUNDED = "green"
_JOINT = "two facts, by "
_STRONG, _WEAK = ((0.8, 0.6),), ((0.6, 0.6),)
CELLS = {
    "linear": Cell(linear, _CONFOUNDED, 0.07, named="linear"),
    "U": Cell(extremes, _CONFOUNDED, 0.07, named="both extremes"),
    "three caps": Cell(
        levels, _CONFOUNDED, 0.07, options={"fact": "cap", "effects": (-1.0, 0.0, 1.0)}
    ),
    "device": Cell(device, _CONFOUNDED, 0.07, ((0.8, 0.8), (0.5, 0.8)), named="two devices"),
    "four sites": Cell(
        levels, _CONFOUNDED, 0.07, options={"fact": "site", "effects": (-1.3, 0.4, -0.4, 1.3)}
    ),
    "age": Cell(linear, _CONFOUNDED, 0.07, _WEAK, options={"fact": "age"}),
    "age U": Cell(
        extremes, _CONFOUNDED, 0.07, _WEAK, options={"fact": "age"}, named="age, both extremes"
    ),
    "reliability 0.5": Cell(
        linear,
        _CONFOUNDED,
        0.07,
        options={"reliability": 0.5},
        named="reliability 0.5",
    ),
    "reliability 0.26": Cell(
        linear,
        _CONFOUNDED,
        0.07,
        sizes=(160,),
        options={"reliability": 0.26},
        named="reliability 0.26",
    ),
    "XOR": Cell(xor, _CONFOUNDED, 0.07, sizes=(80, 160), named=_JOINT + "signs"),
    "XOR ranks": Cell(
        xor, _CONFOUNDED, 0.07, _STRONG, (80, 160), {"kind": "ranks"}, named=_JOINT + "ranks"
    ),
    "XOR levels": Cell(
        xor, _CONFOUNDED, 0.07, _STRONG, (80, 160), {"kind": "levels"}, named=_JOINT + "levels"
    ),
    "nothing": Cell(nothing, "red or amber", 0.07, ((0.0, 0.0),), only_where_shown=False),
    "random labels": Cell(nothing, "green", 0.0, ((0.0, 0.0),), (20,), only_where_shown=False),
    "harmless fact": Cell(
        harmless,
        "red",
        0.10,
        ((0.0, 0.3), (0.0, 0.15)),
        named="harmless fact",
    ),
    "balanced device": Cell(
        device,
        "red",
        0.07,
        ((0.0, 0.8),),
        only_where_shown=False,
        named="balanced device",
    ),
    "score, linear": Cell(linear, _CONFOUNDED, 0.07, named="score: linear", scored=True),
    "score, U": Cell(extremes, _CONFOUNDED, 0.07, named="score: both extremes", scored=True),
    "score, nothing": Cell(
        nothing,
        "red or amber",
        0.07,
        ((0.0, 0.0),),
        only_where_shown=False,
        named="score: nothing",
        scored=True,
    ),
    "score, harmless": Cell(
        harmless,
        "red",
        0.10,
        ((0.0, 0.3),),
        named="score: harmless fact",
        scored=True,
    ),
}


def read_features(path: Path | None) -> np.ndarray:
    """Read one row per participant, groups brought to the same mean; or simulate them."""
    if path is None:
        rng = np.random.default_rng(0)
        return rng.normal(size=(90, 20)) @ rng.normal(size=(20, 300)) / 4 + rng.normal(
            size=(90, 300)
        )
    frame = pd.read_csv(path) if ".csv" in path.name else pd.read_parquet(path)
    subject, label = (
        next(name for name in names if name in frame)
        for names in (("subject", "subject_id"), ("label", "group"))
    )
    means = (
        frame.groupby(subject)
        .mean(numeric_only=True)
        .drop(columns=[label, "BDI"], errors="ignore")
    )
    groups = pd.factorize(frame.groupby(subject)[label].first())[0]
    values = rankdata(means, axis=0) / len(means)
    for group in np.unique(groups):
        values[groups == group] -= values[groups == group].mean(axis=0)
    return np.asarray(values / values.std(axis=0).clip(1e-9))


def draw_study(
    features: np.ndarray, cell: Cell, n: int, strength: tuple[float, float], rng: Any, fresh: bool
) -> Study:
    """Draw participants, facts of no importance, and what the cell is about."""
    i, j = rng.integers(0, len(features), (2, n))
    angle = rng.uniform(0, np.pi / 2, n)[:, None]
    mixed = np.cos(angle) * features[i] + np.sin(angle) * features[j]
    study = Study(rng, n, mixed, fresh=fresh, scored=cell.scored)
    if fresh:  # outliers, and one cause of all facts
        noise = 0.7 * rng.standard_t(4, (n, 1)) + rng.standard_t(4, (n, 8))
    else:
        noise = 0.4 * rng.normal(size=(n, 4)) @ rng.normal(size=(4, 8)) + rng.normal(size=(n, 8))
    study.facts = {f"fact {k}": study.warp(noise[:, k])[:, None] for k in range(8)}
    study.facts["device"] = (rng.random((n, 1)) < 0.5).astype(float)
    study.facts["cap"] = np.eye(3)[study.level([0.4, 0.4, 0.2])]
    study.facts["age"] = rng.integers(18, 66, (n, 1)).astype(float)
    study.facts["sex"] = (rng.random((n, 1)) < 0.6).astype(float)
    cell.make(study, *strength, **cell.options)
    return study


def decide(study: Study, fold_of: np.ndarray) -> np.ndarray:
    """Return decisions for both classes of a ridge regression on held-out participants.

    It has all features, or those 20 with the largest t in the training folds.
    """
    decisions = np.zeros((study.n, 2))
    for fold in np.unique(fold_of):
        train = fold_of != fold
        mean, spread = study.features[train].mean(axis=0), study.features[train].std(axis=0)
        X = (study.features - mean) / spread.clip(1e-9)
        target = study.y[train] - study.y[train].mean()
        if study.fresh:
            X = X[:, np.argsort(-np.abs(target @ X[train]), kind="stable")[:N_FEATURES]]
        products = X[train] @ X[train].T
        ridge = products + np.trace(products) / train.sum() * np.eye(train.sum())
        decisions[~train, 1] = X[~train] @ (X[train].T @ np.linalg.solve(ridge, target))
    return decisions


def decide_as_audit(study: Study, fold_of: np.ndarray) -> np.ndarray:
    """Return the decisions of the audit itself."""
    names = [f"c{i // 16}__f{i % 16}" for i in range(study.features.shape[1])]
    X = pd.DataFrame(study.features, columns=names)
    table = FeatureTable(X, pd.Series(study.y), pd.Series([f"s{i:03d}" for i in range(study.n)]))
    method = method_or_ours(None).resolve()
    parts = _Parts(Samples.of("", table), method, X.iloc[:, :0], {}, 2, "subject", 0)
    folds = [(np.flatnonzero(fold_of != k), np.flatnonzero(fold_of == k)) for k in set(fold_of)]
    return parts.decide(parts.table, folds)


def audit_study(
    features: Sequence[np.ndarray], name: str, n: int, which: int, seed: int, decisions: str
) -> dict[str, Any]:
    """Draw a study and judge it as ``idfsmec audit`` would."""
    cell, fresh = CELLS[name], seed >= FIRST_SEED["fresh"]
    rng = np.random.default_rng([zlib.crc32(name.encode()), n, which, seed])
    of_table = features[seed % len(features)]
    study = draw_study(of_table, cell, n, cell.strengths[which], rng, fresh)
    order = rng.permutation(n)
    study.features, study.y = study.features[order], study.y[order]
    study.facts = {fact: values[order] for fact, values in study.facts.items()}
    fold_of = np.argsort(np.argsort(study.y)) % N_FOLDS  # of a score
    for k in () if cell.scored else (0, 1):
        members = np.flatnonzero(study.y == k)
        fold_of[members] = np.arange(members.size) % min(N_FOLDS, n // 4)
    # Names that the audit does not know would describe participants: these are about recordings.
    facts = {
        name if name in KNOWN else f"gaps: {name}": Fact(
            values, ("",) if values.shape[1] == 1 else tuple(map(str, range(values.shape[1])))
        )
        for name, values in study.facts.items()
    }
    y = study.y if cell.scored else study.y.astype(np.intp)
    subjects = LabelledSubjects(np.arange(n), y, 1 if cell.scored else 2)
    decided = (decide if decisions == "ridge" else decide_as_audit)(study, fold_of)
    followed = decided[:, 1:] - decided[:, :1]
    if cell.scored:
        decided = followed
    tests = judge_facts(facts, subjects, n_permutations=999, seed=seed)
    coincide = None
    if units := found_units(tests, "acquisition"):
        columns = adjusting_columns(facts, units)
        coincide = held_out_auc(columns, y, fold_of, subjects.n_classes)
    carried = [
        {**row, "family": family}
        for family in FAMILIES
        for row in carried_facts(
            followed,
            facts,
            found_units(tests, family),
            subjects.alike,
            score=y if cell.scored else None,
            seed=seed,
        )
    ]
    eeg = auc_of_folds(decided, y, fold_of)
    eeg["p"] = separation_p(decided, y)
    recording = {**tests, "coincide": coincide, "described": True, "score": cell.scored}
    counts = [n] if cell.scored else np.bincount(y).tolist()
    missed = what_was_missed(recording, counts, eeg)
    level, why = judge(answers_of(recording, eeg, carried, missed))
    found = [" x ".join(unit) for unit in found_units(tests)]
    known = {"auc": eeg["auc"], "low": eeg["low"], "p": eeg["p"], "detectable": missed["auc"]}
    known = {key: round(float(value), 5) for key, value in known.items()} | {"found": found}
    where = {"cell": name, "n": n, "which": which, "seed": seed}
    return where | {"level": level, "why": why} | known


def summarise(done: list[dict[str, Any]]) -> pd.DataFrame:
    """Return how often each level was given by cell, size and strength, and how often wrongly.

    ``low`` and ``high`` are the 95 % CI of the share of wrong ones.
    """
    rows = []
    frame = pd.DataFrame(done)
    for name, cell in CELLS.items():
        of_cell = frame[frame["cell"] == name]
        for (n, which), group in of_cell.groupby(["n", "which"]):
            # Confounding that the EEG shows: the CI of its AUC excludes 0.5.
            used = group[group["low"] > 0.5] if cell.only_where_shown else group
            strength, size = cell.strengths[int(str(which))]
            n_wrong = int(used["level"].isin(cell.wrong.split(" or ")).sum())
            low, high = wilson_interval(n_wrong, len(used)) if len(used) else (0.0, 1.0)
            row = {"cell": name, "n": n, "strength": strength, "effect": size}
            row |= {"drawn": len(group), "studies": len(used), "auc": group["auc"].mean()}
            row |= {level: (used["level"] == level).mean() for level in LEVELS}
            share = n_wrong / max(len(used), 1)
            row |= {"wrong": cell.wrong, "share": share, "low": low, "high": high}
            rows.append(row | {"at_most": cell.at_most})
    return pd.DataFrame(rows)


def as_page(table: pd.DataFrame) -> str:
    """Return the table of docs/guarantees.md: how often a level is wrong by number of subjects.

    A row has both strengths of a cell together; the AUCs of the EEG are those of each.
    """
    sizes = (20, 40, 80, 160)
    headings = ["simulated", "AUC of EEG", "wrong", "aim", *map(str, sizes)]
    rows = []
    for name, cell in CELLS.items():
        of_cell, shares = table[table["cell"] == name], []
        if of_cell.empty:
            continue
        for n in sizes:
            group = of_cell[of_cell["n"] == n]
            studies = int(group["studies"].sum())
            n_wrong = round(float((group["share"] * group["studies"]).sum()))
            low, high = wilson_interval(n_wrong, studies) if studies else (0.0, 1.0)
            share = f"{n_wrong}/{studies} ({100 * low:.0f}–{100 * high:.0f} %)"
            shares.append(share if len(group) else "")
        aucs = f"{of_cell['auc'].min():.2f}–{of_cell['auc'].max():.2f}"
        rows.append(
            [cell.named or name, aucs, cell.wrong, f"≤ {100 * cell.at_most:.0f} %", *shares]
        )
    return markdown(headings, rows)


def main() -> None:
    """Print the table of errors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="resumes from what is there")
    parser.add_argument("--tables", type=Path, nargs="+", default=[None], help="EEG features")
    parser.add_argument("--generator", choices=FIRST_SEED, default="fresh")
    parser.add_argument("--decisions", choices=("ridge", "idfsmec"), default="ridge")
    parser.add_argument("--cells", nargs="+", choices=CELLS, default=list(CELLS))
    parser.add_argument("--studies", type=int, default=400)
    parser.add_argument("--first", type=int, default=0, help="the first of the studies' seeds")
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--store", action="store_true", help="write benchmarks/results/audit.json")
    options = parser.parse_args()
    features = [read_features(path) for path in options.tables]
    done = _read(options.out)
    known = {(row["cell"], row["n"], row["which"], row["seed"]) for row in done}
    first = FIRST_SEED[options.generator] + options.first
    todo = [
        (name, n, which, first + seed)
        for seed in range(options.studies)
        for name in options.cells
        for n in CELLS[name].sizes
        for which in range(len(CELLS[name].strengths))
    ]
    pool = Parallel(n_jobs=options.jobs, return_as="generator_unordered")
    with options.out.open("a", encoding="utf-8") as file:
        tasks = (
            delayed(audit_study)(features, *each, options.decisions)
            for each in todo
            if each not in known
        )
        for row in pool(tasks):
            print(json.dumps(row), file=file, flush=True)
    table = summarise(_read(options.out))
    print(as_page(table))
    if options.store:
        cells = json.loads(table.round(4).to_json(orient="records"))
        kept = {"date": f"{datetime.now(UTC):%Y-%m-%d}", "command": STORED, "cells": cells}
        RESULTS.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def _read(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


if __name__ == "__main__":
    main()
