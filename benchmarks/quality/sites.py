"""What making hospitals alike gains at a hospital never seen, and where it harms.

``python -m benchmarks.quality.sites --out FOLDER`` simulates studies of 64 people (half of them
depressed, differences planted in five of 19 channels) at two, four or eight hospitals, each with
an amplifier of its own (gain, noise, hum), and once with one amplifier for all. One hospital is
left out at a time; the first 20 features of a method go to a linear SVM, untuned, with and without
``SiteHarmonizer`` learned from the other hospitals. FOLDER keeps the tables. The seeds were used
for nothing else; seeds 0 to 2 served to write this.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from benchmarks._timing import markdown
from idfsmec.evaluation import Protocol, find_methods, make_folds
from idfsmec.evaluation.fold_data import FoldData, Rows
from idfsmec.evaluation.scoring import decide_fold
from idfsmec.evaluation.tables import TableArrays
from idfsmec.features import extract_table
from idfsmec.metrics import mean_decisions, score_decisions
from idfsmec.recordings import Recording, simulate_cohort
from idfsmec.table import FeatureTable

SEEDS = tuple(range(300, 307))
METHODS = ["IDFS-MEC", "ANOVA F", "all features"]
RATES = (0.0, 0.3)
N_PEOPLE, EFFECT = 64, 0.8
PROTOCOL = Protocol(ks=(20,))
Codes = np.ndarray


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="where tables are kept")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few samples of a class, entangled sites: on purpose
        for seed in given.seeds:
            rows += study(seed, given.out)
            pd.DataFrame(rows).to_csv(given.out / "scores.csv", index=False)
    scores = pd.DataFrame(rows)
    for about, own in scores.groupby("about", sort=False):
        print(f"\n{about}\n")
        table = summarise(own)
        print(markdown(list(table.columns), table.to_numpy().tolist()))


def study(seed: int, folder: Path) -> Iterator[dict[str, Any]]:
    """All comparisons of one seed."""
    for n_sites, same in ((4, True), (2, False), (4, False), (8, False)):
        table = load(folder, seed, n_sites, same)
        name = f"{n_sites} hospitals, {'one amplifier' if same else 'each its own'}"
        yield from by_site(table, name, "A. Left-out hospitals, as many of each class", seed)
        if n_sites == 4 and not same:
            yield from entangled(table, seed)
            yield from one_class(table, seed)


def load(folder: Path, seed: int, n_sites: int, same: bool) -> FeatureTable:
    """Simulate a study, or read the one that is there."""
    path = folder / f"{seed}_{n_sites}_{same}.parquet"
    if path.exists():
        return FeatureTable.read(path)
    rng = np.random.default_rng((seed, n_sites))
    recordings: list[Recording] = []
    for site in range(n_sites):
        recordings += hospital(rng, seed * 100 + site, N_PEOPLE // n_sites, f"H{site + 1}", same)
    table = extract_table(recordings).table
    table.write(path)
    return table


def hospital(
    rng: np.random.Generator, seed: int, n_people: int, name: str, same: bool
) -> list[Recording]:
    """People of both groups, all recorded with the hospital's amplifier."""
    gain, noise, mains = 2 ** rng.uniform([-1, -1, -2], [1, 1.5, 2])
    amplifier = None if same else {"gain": gain, "noise": noise, "line": mains}
    found = []
    for share, group in ((0.0, "control"), (1.0, "depressed")):
        # By the share, it is the controls' amplifier, or that of the depressed.
        cohort = simulate_cohort(
            n_people,
            19,
            duration=20,
            effect_size=EFFECT,
            confound=amplifier,
            confound_share=share,
            random_state=seed,
        )
        found += [one for one in cohort.recordings if one.label == group]
    return [
        Recording(f"{name}-{one.subject}", one.label, one.load, one.source, site=name)
        for one in found
    ]


def by_site(
    table: FeatureTable, case: str, about: str, seed: int, rates: tuple[float, ...] = RATES
) -> Iterator[dict[str, Any]]:
    """Leave out one hospital at a time; means over hospitals."""
    arrays = TableArrays.of("table", table)
    where = arrays.sites
    for rate in rates:
        for method in METHODS:
            for harmonize in (False, True):
                found = [
                    judge(arrays, where != site, where == site, method, harmonize, rate, seed)
                    for site in np.unique(where)
                ]
                yield {
                    "about": about,
                    "case": case,
                    "seed": seed,
                    "rate": rate,
                    "method": method,
                    "harmonize": harmonize,
                    **pd.DataFrame(found).mean().to_dict(),
                }


def judge(
    arrays: TableArrays,
    train: Codes,
    test: Codes,
    method: str,
    harmonize: bool,
    rate: float,
    seed: int,
) -> dict[str, float]:
    """Balanced accuracy and area by person."""
    said = decisions(arrays, train, test, method, harmonize, rate, seed)
    wanted = ["subject_balanced_accuracy", "subject_roc_auc"]
    return score_decisions(said, arrays.y[test], arrays.subjects[test], wanted)


def decisions(
    arrays: TableArrays,
    train: Codes,
    test: Codes,
    method: str,
    harmonize: bool,
    rate: float,
    seed: int,
) -> np.ndarray:
    """What the method says of the samples left out."""
    sides = (Rows(arrays, np.flatnonzero(side)) for side in (train, test))
    gappy = [side.with_gaps("recording", rate, seed) for side in sides]
    (one,) = find_methods([method])
    data = FoldData(*gappy, True, harmonize)
    return decide_fold(one, data, PROTOCOL, seed)


def entangled(table: FeatureTable, seed: int) -> Iterator[dict[str, Any]]:
    """Ten people a hospital: half of each group, or eight of the one and two of the other."""
    about = "B. Site and label entangled, ten people at each of four hospitals"
    for name, sizes in (("5 and 5", (5, 5)), ("8 and 2, or 2 and 8", (8, 2))):
        kept = np.zeros(len(table), dtype=bool)
        for place, site in enumerate(sorted(table.sites.unique())):
            counts = sizes if place % 2 else sizes[::-1]
            for label, n in zip(("control", "depressed"), counts, strict=True):
                own = (table.sites == site) & (table.y == label)
                people = table.subjects[own].unique()[:n]
                kept |= table.subjects.isin(people).to_numpy()
        some = table.take(kept)
        yield from by_site(some, f"{name}, left-out hospitals", about, seed, (0.0,))
        yield from by_person(some, f"{name}, left-out people", about, seed)


def by_person(table: FeatureTable, case: str, about: str, seed: int) -> Iterator[dict[str, Any]]:
    """The same with five folds of people, of hospitals that are known."""
    arrays = TableArrays.of("table", table)
    folds = make_folds(arrays.y, arrays.subjects, "subject", 5, seed)
    for method in METHODS:
        for harmonize in (False, True):
            said = np.zeros((arrays.y.size, 2))
            for _, held_out in folds:
                test = np.isin(np.arange(arrays.y.size), held_out)
                said[test] = decisions(arrays, ~test, test, method, harmonize, 0.0, seed)
            wanted = ["subject_balanced_accuracy", "subject_roc_auc"]
            yield {
                "about": about,
                "case": case,
                "seed": seed,
                "rate": 0.0,
                "method": method,
                "harmonize": harmonize,
                **score_decisions(said, arrays.y, arrays.subjects, wanted),
            }


def one_class(table: FeatureTable, seed: int) -> Iterator[dict[str, Any]]:
    """The left-out hospital sends patients only, or controls only: how many are seen right."""
    about = "C. The left-out hospital has one class alone: share of its people seen right"
    arrays = TableArrays.of("table", table)
    for method in METHODS:
        for harmonize in (False, True):
            right: dict[str, list[float]] = {"both at once": [], "each class alone": []}
            for site in np.unique(arrays.sites):
                here = arrays.sites == site
                for kind in right:
                    sides = (
                        [here]
                        if kind == "both at once"
                        else [here & (arrays.y == k) for k in (0, 1)]
                    )
                    for test in sides:
                        said = decisions(
                            arrays, arrays.sites != site, test, method, harmonize, 0.0, seed
                        )
                        mean, codes = mean_decisions(said, arrays.y[test], arrays.subjects[test])
                        right[kind].append(float((mean.argmax(axis=1) == codes).mean()))
            for kind, values in right.items():
                yield {
                    "about": about,
                    "case": kind,
                    "seed": seed,
                    "rate": 0.0,
                    "method": method,
                    "harmonize": harmonize,
                    "subject_balanced_accuracy": float(np.mean(values)),
                }


def summarise(scores: pd.DataFrame) -> pd.DataFrame:
    """Means over seeds without and with, and the paired difference with its standard error."""
    rows = []
    for (case, rate, method), own in scores.groupby(["case", "rate", "method"], sort=False):
        row: dict[str, Any] = {"case": case, "missing": f"{100 * rate:.0f} %", "method": method}
        for metric, short in (("subject_balanced_accuracy", "right"), ("subject_roc_auc", "AUC")):
            if metric not in own or own[metric].isna().all():
                continue
            wide = own.pivot(index="seed", columns="harmonize", values=metric) * 100
            gain = wide[True] - wide[False]
            row[f"{short}, as it is"] = f"{wide[False].mean():.1f}"
            row[f"{short}, harmonized"] = f"{wide[True].mean():.1f}"
            row[f"{short}, gain"] = f"{gain.mean():+.1f} ± {gain.sem():.1f}"
        rows.append(row)
    return pd.DataFrame(rows).dropna(axis="columns", how="all")


if __name__ == "__main__":
    main()
