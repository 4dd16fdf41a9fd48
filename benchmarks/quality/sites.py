"""Gain and harm of harmonizing sites, by all samples and by controls only.

``python -m benchmarks.quality.sites`` simulates feature tables of subjects at four hospitals, each
of which shifts and stretches every feature. 12 channels have 5 features each that share factors,
three channels carry a difference of 0.6 standard deviations, 10 % of channels are missing. The
first 20 features of IDFS-MEC, or all, go to a linear SVM, untuned: as recorded, after
``SiteHarmonizer()`` and after ``SiteHarmonizer(reference="HC")``, learned from training samples.
In training, hospitals have equal shares of patients or are confounded with the diagnosis. Tested
are 40 other subjects of each class at every hospital, so that the site tells nothing about the
class; once with these hospitals in training, once with each left out.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.impute import SimpleImputer
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from benchmarks._timing import markdown
from idfsmec import IDFSMEC, FeatureTable
from idfsmec.prediction import SiteHarmonizer

SEEDS = tuple(range(400, 410))
N_SITES, N_TESTED, N_EPOCHS, EFFECT = 4, 40, 4, 0.6
N_CHANNELS, N_FEATURES, N_FACTORS, N_INFORMATIVE = 12, 5, 4, 3
#: Training subjects as (controls, patients) at hospitals 1 and 3, and at hospitals 2 and 4.
CASES = {
    "equal shares: 30 and 30": ((30, 30), (30, 30)),
    "15 and 45, or 45 and 15": ((15, 45), (45, 15)),
    "30 and 10, or 30 and 90": ((30, 10), (30, 90)),
    "6 and 54, or 54 and 6": ((6, 54), (54, 6)),
    "0 and 60, or 60 and 0": ((0, 60), (60, 0)),
}
ARMS: dict[str, dict[str, Any] | None] = {
    "as recorded": None,
    "all samples": {},
    "controls": {"reference": "HC"},
    "controls, others kept": {"reference": "HC", "unseen": "keep"},
}
METHODS = ("IDFS-MEC", "all features")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    rows: list[dict[str, Any]] = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # confounded sites, few controls: on purpose
        for seed in parser.parse_args().seeds:
            rows += study(seed)
    for test, part in pd.DataFrame(rows).groupby("test", sort=False):
        print(f"\n{test}\n")
        table = summarise(part)
        print(markdown(list(table.columns), table.to_numpy().tolist()))


def study(seed: int) -> Iterator[dict[str, Any]]:
    """Score all arms and methods on simulated studies of one seed."""
    for case, counts in CASES.items():
        train, asked = simulate(seed, counts)
        for method in METHODS:
            for arm, options in ARMS.items():
                left_out = []
                for site in np.unique(train.sites):
                    others = train.take((train.sites != site).to_numpy())
                    here = asked.take((asked.sites == site).to_numpy())
                    left_out.append(decide(others, here, method, options))
                for test, decisions in {
                    "Other subjects of the same hospitals": decide(train, asked, method, options),
                    "A hospital left out of training": pd.concat(left_out),
                }.items():
                    about = {"test": test, "case": case, "method": method, "arm": arm}
                    yield about | {"seed": seed} | score(decisions, asked)


def simulate(seed: int, counts: Sequence[tuple[int, int]]) -> tuple[FeatureTable, FeatureTable]:
    """Training subjects with these counts at the hospitals, and balanced ones to test with."""
    rng = np.random.default_rng(seed)
    shape = N_CHANNELS, N_FEATURES
    loadings = 0.6 * rng.normal(size=(N_FACTORS, *shape))
    effect = np.zeros(shape)
    effect[:N_INFORMATIVE] = EFFECT * rng.choice([-1, 1], (N_INFORMATIVE, N_FEATURES))
    shift = 1.5 * rng.normal(size=(N_SITES, *shape))
    stretch = np.exp(0.3 * rng.normal(size=(N_SITES, *shape)))
    tables = []
    for sizes in (counts, [(N_TESTED, N_TESTED)]):
        site, y = np.array(
            [
                (place, code)
                for place in range(N_SITES)
                for code, n in enumerate(sizes[place % len(sizes)])
                for _ in range(n)
            ]
        ).T
        subject = np.repeat(np.arange(y.size), N_EPOCHS)
        X = np.einsum("nq,qvf->nvf", rng.normal(size=(y.size, N_FACTORS)), loadings)
        X += 0.7 * rng.normal(size=X.shape) + effect * y[:, None, None]
        X = X[subject] + 0.7 * rng.normal(size=(subject.size, *shape))
        X = shift[site[subject]] + stretch[site[subject]] * X
        X[(rng.random((y.size, N_CHANNELS)) < 0.1)[subject]] = np.nan
        columns = [f"E{v}__f{j}" for v in range(N_CHANNELS) for j in range(N_FEATURES)]
        tables.append(
            FeatureTable(
                pd.DataFrame(X.reshape(subject.size, -1), columns=columns),
                np.array(["HC", "MDD"])[y[subject]],
                subject.astype(str),
                sites=pd.Series(np.char.add("H", (site[subject] + 1).astype(str))),
            )
        )
    return tables[0], tables[1]


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
    svm = LinearSVC(C=0.01, class_weight="balanced")
    model = make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler(), svm)
    model.fit(X, train.y.to_numpy())
    return pd.Series(model.decision_function(T)).groupby(test.subjects.to_numpy()).mean()


def score(decisions: pd.Series, table: FeatureTable) -> dict[str, float]:
    """AUC over all subjects and within hospitals, and balanced accuracy, all by subject."""
    facts = pd.DataFrame({"y": table.y.to_numpy() == "MDD", "site": table.sites.to_numpy()})
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
            row = {"controls and patients": case, "method": method, "score": metric}
            for arm in ARMS:
                gain = wide[arm] - wide["as recorded"]
                row[arm] = f"{wide[arm].mean():.1f}"
                if arm != "as recorded":
                    row[arm] += f" ({gain.mean():+.1f} ± {gain.sem():.1f})"
            rows.append(row)
    return pd.DataFrame(rows)


if __name__ == "__main__":
    main()
