"""Memory and open files of one process that uses the package for an hour.

``python -m benchmarks.endurance.hour [--minutes 60] [--out FILE.csv]`` simulates cohorts and, in
one process, extracts features, ranks, trains, saves, loads, predicts, compares two methods in two
workers, audits, draws the report, validates and ranks for a score, until the time is over. After
each round it notes the resident memory and the open files of the process and its children; at the
end it compares rounds 5 to 10 with the last six.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
import time
from pathlib import Path

import numpy as np
import psutil

from idfsmec import cli
from idfsmec.features import extract_table
from idfsmec.recordings import simulate_cohort


def use_everything(seed: int, folder: Path) -> None:
    """Go once from recordings to report and prediction."""
    cohort = simulate_cohort(24, duration=20.0, n_channels=19, random_state=seed)
    table = folder / "table.parquet"
    extract_table(cohort.recordings).table.write(table)
    cli.select(table, output=folder / "ranking.csv", resamples=10)
    cli.train(table, output=folder / "model.skops")
    cli.predict(folder / "model.skops", table, output=folder / "predictions.csv")
    compared = {"methods": "IDFS-MEC,ANOVA F", "rates": "0.1", "folds": 3, "jobs": 2}
    cli.benchmark(table, out=folder / "results", **compared)
    cli.report(folder / "results")
    others = simulate_cohort(16, duration=20.0, n_channels=19, score=True, random_state=seed + 1)
    extract_table(others.recordings).table.write(folder / "others.parquet")
    cli.validate(folder / "model.skops", folder / "others.parquet", out=folder / "validation")
    cli.select(folder / "others.parquet", output=folder / "scores.csv", target="bdi")


def measure() -> tuple[float, int]:
    """Resident MiB and open files of this process and its children."""
    process = psutil.Process()
    family = [process, *process.children(recursive=True)]
    memory = sum(member.memory_info().rss for member in family) / 2**20
    return memory, sum(member.num_fds() for member in family)


def main() -> None:
    """Go round until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--out", default="endurance.csv")
    given = parser.parse_args()
    began, rounds = time.monotonic(), []
    with Path(given.out).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["round", "minutes", "MiB", "open files"])
        while (minutes := (time.monotonic() - began) / 60) < given.minutes:
            with tempfile.TemporaryDirectory() as folder:
                use_everything(len(rounds), Path(folder))
            rounds.append(measure())
            writer.writerow([len(rounds), f"{minutes:.1f}", f"{rounds[-1][0]:.0f}", rounds[-1][1]])
            file.flush()
    seen = np.array(rounds)
    early, late = np.median(seen[4:10], axis=0), np.median(seen[-6:], axis=0)
    print(f"{len(rounds)} rounds in {given.minutes:.0f} minutes")
    print(f"rounds 5 to 10: {early[0]:.0f} MiB, {early[1]:.0f} open files")
    print(f"last six:       {late[0]:.0f} MiB, {late[1]:.0f} open files")


if __name__ == "__main__":
    main()
