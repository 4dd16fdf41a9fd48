"""Whether the audit finds a second amplifier, and whether it cries where there is none.

``python -m benchmarks.quality.audit --out FILE`` simulates one cohort per seed and condition (40
people, 3 channels, 20 s each) and prints in how many the audit says that the recording goes with
the label (red or amber), and what figure the EEG reaches there. Without an illness an EEG above
one half is inflated by the amplifier. FILE keeps what is done: given again, the rest is computed.
The seeds were used for nothing else.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.stats import binomtest

from benchmarks._timing import markdown
from idfsmec.audit import audit
from idfsmec.features import extract_table
from idfsmec.recordings import simulate_cohort

SEEDS = tuple(range(1000, 1040))
#: Name to what the second amplifier does, and the illness in standard deviations.
CONDITIONS: dict[str, tuple[dict[str, float] | None, float]] = {
    "no second amplifier, no illness": (None, 0.0),
    "no second amplifier, illness of 0.8": (None, 0.8),
    "low-pass at 40 Hz, no illness": ({"lowpass": 40.0}, 0.0),
    "gain of 1.5, no illness": ({"gain": 1.5}, 0.0),
    "gain of 2, no illness": ({"gain": 2.0}, 0.0),
}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="resumes from what is there")
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    given = parser.parse_args()
    done = _read(given.out)
    known = {(one["condition"], one["seed"]) for one in done}
    todo = [(name, seed) for seed in given.seeds for name in CONDITIONS]
    todo = [one for one in todo if one not in known]
    pool = Parallel(n_jobs=given.jobs, return_as="generator_unordered")
    with given.out.open("a", encoding="utf-8") as file:
        for one in pool(delayed(judge)(*where) for where in todo):
            print(json.dumps(one), file=file, flush=True)
    table = summarise(_read(given.out))
    print(markdown(list(table.columns), table.astype(str).to_numpy().tolist()))


def judge(condition: str, seed: int) -> dict[str, Any]:
    """Simulate a cohort and audit it."""
    confound, illness = CONDITIONS[condition]
    cohort = simulate_cohort(
        40, 3, duration=20, effect_size=illness, confound=confound, random_state=seed
    )
    table = extract_table(cohort.recordings).table
    found = audit(table, n_splits=5, seed=seed, parts=["recording", "eeg"])
    return {
        "condition": condition,
        "seed": seed,
        "level": found.level,
        "eeg": found.models["eeg"]["auc"],
        "recording": found.models[found.best_model]["auc"],
        "suspects": found.suspects,
    }


def summarise(done: list[dict[str, Any]]) -> pd.DataFrame:
    """Count verdicts by condition."""
    rows = []
    for name in CONDITIONS:
        own = [one for one in done if one["condition"] == name]
        if not own:
            continue
        found = sum(one["level"] in {"red", "amber"} for one in own)
        interval = binomtest(found, len(own)).proportion_ci(method="wilson")
        rows.append(
            {
                "condition": name,
                "cohorts": len(own),
                "EEG's AUC": f"{np.mean([one['eeg'] for one in own]):.2f}",
                "recording's AUC": f"{np.mean([one['recording'] for one in own]):.2f}",
                "found": found,
                "share": f"{found / len(own):.0%} ({interval.low:.0%} to {interval.high:.0%})",
                "red": sum(one["level"] == "red" for one in own),
            }
        )
    return pd.DataFrame(rows)


def _read(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


if __name__ == "__main__":
    main()
