"""Gain and harm of harmonizing sites, by all samples and by controls only.

``python -m benchmarks.quality.sites --out FOLDER`` simulates studies (differences planted in five
of 19 channels) at four hospitals, each with an amplifier of its own (gain, noise, line noise). The
first 20 features of a method go to a linear SVM, untuned: as recorded, after ``SiteHarmonizer()``
and after ``SiteHarmonizer(reference="control")``, learned from the training samples. Hospitals
have equal shares of patients in training, or some have many patients and others many controls
(confounded). Tested are 20 other subjects of each class at every hospital, so that the amplifier
tells nothing about the class. FOLDER keeps the tables.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.impute import SimpleImputer
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from benchmarks._timing import markdown
from idfsmec import IDFSMEC, FeatureTable
from idfsmec.features import extract_table
from idfsmec.prediction import SiteHarmonizer
from idfsmec.recordings import Recording, simulate_cohort

SEEDS = tuple(range(400, 407))
N_SITES, PER_CLASS, TESTED, EFFECT = 4, 60, 20, 0.8
#: Training subjects of the rarer and of the commoner class at each hospital; they alternate.
SHARES = {"20 and 20": (20, 20), "10 and 30": (10, 30), "5 and 35": (5, 35), "0 and 40": (0, 40)}
ARMS: dict[str, dict[str, Any] | None] = {
    "as recorded": None,
    "all samples": {},
    "controls": {"reference": "control"},
    "controls, others kept": {"reference": "control", "unseen": "keep"},
}
METHODS = ("IDFS-MEC", "all features")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="where tables are kept")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # confounded sites, few controls: on purpose
        for seed in given.seeds:
            rows += study(seed, given.out)
            pd.DataFrame(rows).to_csv(given.out / "scores.csv", index=False)
    scores = pd.DataFrame(rows)
    for test, part in scores.groupby("test", sort=False):
        print(f"\n{test}\n")
        table = summarise(part)
        print(markdown(list(table.columns), table.to_numpy().tolist()))


def study(seed: int, folder: Path) -> Iterator[dict[str, Any]]:
    """Score all arms and methods on one simulated study."""
    whole = load(folder, seed)
    asked = subsample(whole, TESTED, TESTED, last=True)
    for case, (rare, common) in SHARES.items():
        table = subsample(whole, rare, common)
        for method in METHODS:
            for arm, options in ARMS.items():
                known = decide(table, asked, method, options)
                new = []
                for site in sorted(whole.sites.unique()):
                    others = table.take((table.sites != site).to_numpy())
                    here = asked.take((asked.sites == site).to_numpy())
                    new.append(decide(others, here, method, options))
                for test, decisions in {
                    "Other subjects of the same hospitals": known,
                    "A hospital left out of training": pd.concat(new),
                }.items():
                    yield {
                        "test": test, "case": case, "method": method, "arm": arm, "seed": seed,
                        **score(decisions, asked),
                    }  # fmt: skip


def load(folder: Path, seed: int) -> FeatureTable:
    """Simulate a study, or read the one that is there."""
    path = folder / f"{seed}.parquet"
    if path.exists():
        return FeatureTable.read(path)
    rng = np.random.default_rng(seed)
    recordings: list[Recording] = []
    for site in range(N_SITES):
        recordings += hospital(rng, 100 * seed + site, f"H{site + 1}")
    table = extract_table(recordings).table
    table.write(path)
    return table


def hospital(rng: np.random.Generator, seed: int, name: str) -> list[Recording]:
    """Subjects of both groups, all recorded with the hospital's amplifier."""
    gain, noise, line = 2 ** rng.uniform([-1, -1, -2], [1, 1.5, 2])
    amplifier = {"gain": gain, "noise": noise, "line": line}
    recordings = []
    for share, group in ((0.0, "control"), (1.0, "depressed")):
        # By the share, it is the controls' amplifier, or that of the depressed.
        cohort = simulate_cohort(
            2 * PER_CLASS,
            19,
            duration=20,
            effect_size=EFFECT,
            confound=amplifier,
            confound_share=share,
            random_state=seed,
        )
        recordings += [one for one in cohort.recordings if one.label == group]
    return [
        Recording(f"{name}-{one.subject}", one.label, one.load, one.source, site=name)
        for one in recordings
    ]


def subsample(table: FeatureTable, rare: int, common: int, *, last: bool = False) -> FeatureTable:
    """Keep so many subjects; patients are the rarer class at every other hospital."""
    kept: list[str] = []
    for place, site in enumerate(sorted(table.sites.unique())):
        counts = (rare, common) if place % 2 else (common, rare)
        for label, n in zip(("control", "depressed"), counts, strict=True):
            rows = (table.sites == site) & (table.y == label)
            subjects = table.subjects[rows].unique().tolist()
            kept += subjects[len(subjects) - n :] if last else subjects[:n]
    return table.take(table.subjects.isin(kept).to_numpy())


def decide(
    train: FeatureTable, test: FeatureTable, method: str, options: dict[str, Any] | None
) -> pd.Series:
    """Mean decision on every subject of the test samples."""
    X, T = train.X.reset_index(drop=True), test.X.reset_index(drop=True)
    if options is not None:
        harmonizer = SiteHarmonizer(**options).set_output(transform="pandas")
        harmonizer.fit(X, train.y.to_numpy(), sites=train.sites.to_numpy())
        X, T = (
            harmonizer.transform(part, sites=table.sites.to_numpy())
            for part, table in ((X, train), (T, test))
        )
    if method == "IDFS-MEC":
        selector = IDFSMEC(n_features_to_select=20)
        selector.fit(X, train.y.to_numpy(), groups=train.subjects.to_numpy())
        X, T = X.loc[:, selector.support_], T.loc[:, selector.support_]
    steps = [SimpleImputer(keep_empty_features=True), StandardScaler()]
    if method == "ANOVA F":
        steps.append(SelectKBest(f_classif, k=20))
    model = make_pipeline(*steps, LinearSVC(C=0.01, class_weight="balanced"))
    model.fit(X, train.y.to_numpy())
    return pd.Series(model.decision_function(T)).groupby(test.subjects.to_numpy()).mean()


def score(decisions: pd.Series, table: FeatureTable) -> dict[str, float]:
    """AUC over all subjects and within hospitals, and balanced accuracy, all by subject."""
    facts = pd.DataFrame({"y": table.y.to_numpy() == "depressed", "site": table.sites.to_numpy()})
    facts = facts.groupby(table.subjects.to_numpy()).first().loc[decisions.index]
    within = [roc_auc_score(part["y"], decisions[part.index]) for _, part in facts.groupby("site")]
    return {
        "AUC": float(roc_auc_score(facts["y"], decisions)),
        "AUC within hospitals": float(np.mean(within)),
        "balanced accuracy": float(balanced_accuracy_score(facts["y"], decisions > 0)),
    }


def summarise(scores: pd.DataFrame) -> pd.DataFrame:
    """Means over seeds, and the paired gain over the samples as recorded."""
    rows = []
    for (case, method), part in scores.groupby(["case", "method"], sort=False):
        for metric in ("AUC", "AUC within hospitals", "balanced accuracy"):
            wide = part.pivot(index="seed", columns="arm", values=metric) * 100
            row = {"subjects per class": case, "method": method, "score": metric}
            for arm in ARMS:
                gain = wide[arm] - wide["as recorded"]
                row[arm] = f"{wide[arm].mean():.1f}"
                if arm != "as recorded":
                    row[arm] += f" ({gain.mean():+.1f} ± {gain.sem():.1f})"
            rows.append(row)
    return pd.DataFrame(rows)


if __name__ == "__main__":
    main()
