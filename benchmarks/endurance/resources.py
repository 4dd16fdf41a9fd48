"""Memory and open files of ``idfsmec features`` while it works through many recordings.

``python -m benchmarks.endurance.resources [--figure FILE.svg] [counts ...]`` (default 20 and 100
recordings) writes simulated recordings, every one of another person, to real FIF files of 19
channels x 1 min, runs the command on the first so many of them and looks at it from outside ten
times a second. The figure shows the longest run.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.endurance._watch import Watched, watch_command
from idfsmec.recordings import simulate_cohort

SECONDS = 60


def write_study(folder: Path, count: int) -> None:
    """One FIF file per simulated person, and ``study.csv``."""
    cohort = simulate_cohort(count, 19, duration=SECONDS, random_state=0)
    lines = ["path,subject,label"]
    for recording in cohort.recordings:
        name = f"{recording.subject}_raw.fif"
        recording.load().save(folder / name, verbose="error")
        lines.append(f"{name},{recording.subject},{recording.label}")
    (folder / "study.csv").write_text("\n".join(lines) + "\n")


def first(folder: Path, count: int) -> Path:
    """The manifest of the first ``count`` recordings."""
    lines = (folder / "study.csv").read_text().splitlines()
    manifest = folder / f"first{count}.csv"
    manifest.write_text("\n".join(lines[: count + 1]) + "\n")
    return manifest


def halves(values: Sequence[float]) -> str:
    """The most in the first and in the second half of a run: a leak makes the second higher."""
    middle = len(values) // 2
    return f"{max(values[:middle]):.0f}, {max(values[middle:]):.0f}"


def draw(seen: Watched, count: int, path: Path) -> None:
    """Memory and open files against time."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    from idfsmec.report import use_style

    use_style()
    mpl.rcParams["svg.hashsalt"] = "idfsmec"  # the same picture gives the same file
    figure = Figure(figsize=(7, 3.4), layout="constrained")
    above, below = figure.subplots(2, sharex=True, height_ratios=[2, 1])
    # Open files change faster than a picture can show: the most in each second.
    whole, starts = np.unique(np.array(seen.seconds, dtype=int), return_index=True)
    handles = np.maximum.reduceat(seen.handles, starts)
    above.plot(seen.seconds, seen.megabytes, color="C1", linewidth=1)
    above.set(ylabel="resident\nmemory (MiB)", ylim=(0, 1.15 * max(seen.megabytes)))
    above.set_title(f"idfsmec features, {count} recordings of 19 channels x 1 min", fontsize=10)
    below.plot(whole, handles, color="C0", linewidth=1, drawstyle="steps-post")
    below.set(ylabel="open files", xlabel="seconds since the start", ylim=(0, max(handles) + 1))
    below.yaxis.get_major_locator().set_params(integer=True)
    for axes in (above, below):
        axes.grid(axis="y")
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def main(arguments: Sequence[str] = ()) -> None:
    """Print what was seen for several numbers of recordings."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.endurance.resources")
    parser.add_argument("counts", nargs="*", type=int, default=[20, 100])
    parser.add_argument("--figure", type=Path)
    asked = parser.parse_args(list(arguments))
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_study(folder, max(asked.counts))
        print("recordings  peak MiB  MiB in 1st, 2nd half  open files in 1st, 2nd half  seconds")
        for count in sorted(asked.counts):
            table = folder / f"table{count}.parquet"
            seen = watch_command("features", str(first(folder, count)), "-o", str(table))
            print(
                f"{count:10d}  {seen.peak:8.0f}  {halves(seen.megabytes):>20}  "
                f"{halves(seen.handles):>26}  {seen.duration:7.0f}",
                flush=True,
            )
        if asked.figure:
            draw(seen, count, asked.figure)


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
