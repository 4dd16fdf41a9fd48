"""Interpolation of bad channels against leaving them missing, on cohorts whose truth is known.

``python -m benchmarks.quality.interpolation --out FILE.csv`` simulates one cohort per seed (40
participants, 19 channels, 60 s), takes electrodes off the signal at several rates, and computes
features from the same recordings: with bad channels missing, with MNE's spherical splines in
their place (``bad_channels = "interpolate"``), and with the field of sources of minimum norm
(``"interpolate-fields"``). All tables go the same way from there:
nested tuning of IDFS-MEC, its imputer and classifier, subject-wise folds. Printed are means over
cohorts of the AUC per participant, of the share of the first 20 features that were planted, and of
the share of the first five channels that were planted, with the paired differences.

All settings are the package's defaults. The seeds were used for nothing else.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from idfsmec.evaluation import Protocol, accuracy
from idfsmec.features import FeatureSettings, extract_table
from idfsmec.recordings import SimulatedCohort, simulate_cohort
from idfsmec.selection import IDFSMEC
from idfsmec.table import FeatureTable
from idfsmec.table.columns import split_column

SEEDS = tuple(range(400, 424))
RATES = (0.1, 0.3, 0.5)
WAYS = ("missing", "interpolate", "interpolate-fields")
PROTOCOL = Protocol(n_splits=5, rates=[0.0], ks=[20], metric="subject_roc_auc")
SCORES = ("AUC per participant", "planted features", "planted channels")


def main() -> None:
    """Print the means and paired differences; cohorts in the file are not computed again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    given = parser.parse_args()
    rows = pd.read_csv(given.out).to_dict("records") if given.out.exists() else []
    done = {(row["seed"], row["rate"]) for row in rows}
    for seed in given.seeds:
        for rate in RATES:
            if (seed, rate) not in done:
                rows += compare(seed, rate)
                pd.DataFrame(rows).to_csv(given.out, index=False)
    print(summarise(pd.DataFrame(rows)).to_markdown(index=False))


def compare(seed: int, rate: float) -> list[dict[str, object]]:
    """Score all ways on one cohort."""
    cohort = simulate_cohort(duration=60, detached=rate, random_state=seed)
    rows = []
    for way in WAYS:
        settings = FeatureSettings(bad_channels=way)
        table = extract_table(cohort.recordings, settings).table
        missing = 1 - float(table.observed.to_numpy().mean())
        about = {"seed": seed, "rate": rate, "way": way, "missing": missing}
        rows.append(about | score(table, cohort))
        print(rows[-1], flush=True)
    return rows


def score(table: FeatureTable, cohort: SimulatedCohort) -> dict[str, float]:
    """Return the AUC per participant, and what of the truth is ranked first."""
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")  # missing channels may be associated with the label
        results = accuracy(
            {"table": table}, folder, methods=["IDFS-MEC"], protocol=PROTOCOL, n_jobs=1
        )
        selector = IDFSMEC().fit(table.X, table.y)
    scores = results.scores
    folds = scores[scores["chosen"]]["subject_roc_auc"]
    order = np.argsort(selector.ranking_, kind="stable")
    features = [table.X.columns[i] for i in order[:20]]
    channels = list(dict.fromkeys(split_column(table.X.columns[i])[0] for i in order))[:5]
    return {
        SCORES[0]: float(folds.mean()),
        SCORES[1]: float(np.mean(np.isin(features, cohort.informative_features))),
        SCORES[2]: float(np.mean(np.isin(channels, cohort.informative_channels))),
    }


def summarise(rows: pd.DataFrame) -> pd.DataFrame:
    """Return means by rate and way, and paired differences from missing with their 95 % CI."""
    lines = []
    for rate, of_rate in rows.groupby("rate"):
        for name in SCORES:
            ways = of_rate.pivot(index="seed", columns="way", values=name)
            line = {"electrodes off": f"{rate:.0%}", "score": name}
            line |= {way: f"{ways[way].mean():.3f}" for way in WAYS}
            for way in WAYS[1:]:
                difference = ways[way] - ways["missing"]
                mean, reach = difference.mean(), stats.t.ppf(0.975, len(ways) - 1)
                low, high = mean + np.array([-1, 1]) * reach * difference.sem()
                line[f"{way} - missing"] = f"{mean:+.3f} [{low:+.3f}, {high:+.3f}]"
            lines.append(line)
    return pd.DataFrame(lines)


if __name__ == "__main__":
    main()
