"""How the time of a fit grows with channels, samples, features and classes; a figure for the docs.

``python -m benchmarks scaling`` changes one size at a time from 32 channels x 18 features x 1000
samples x 2 classes with 30 % of the channel-samples missing, and writes
``benchmarks/results/scaling.svg`` (``python -m benchmarks.speed.scaling FILE`` another file). The
peers get the same tables, imputed with means. A peer's curve ends where a fit takes more than 5 s.
"""

from __future__ import annotations

import statistics
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from sklearn.ensemble import RandomForestClassifier

from benchmarks._data import channel_table
from benchmarks._timing import markdown
from idfsmec import IDFSMEC
from idfsmec.report import use_style
from idfsmec.report.style import EMBEDDED, EMPHASIS, FILTER, SANITY
from idfsmec.selection import MRMR, ReliefF

FIGURE = Path(__file__).parents[1] / "results" / "scaling.svg"
BASE = {"n_channels": 32, "n_features": 18, "n_samples": 1000, "n_classes": 2}
SIZES = {
    "n_channels": [8, 16, 32, 64, 128, 256],
    "n_samples": [250, 500, 1000, 2000, 4000, 8000],
    "n_features": [4, 9, 18, 36, 72],
    "n_classes": [2, 3, 5, 10],
}
NAMES = {
    "n_channels": "channels",
    "n_samples": "samples",
    "n_features": "features per channel",
    "n_classes": "classes",
}
REPEATS = 3
LONG = 5.0
# Colours of the report, and marks, that differ in print and for colour-blind readers.
LOOKS = {
    "IDFSMEC": (EMPHASIS, "o"),
    "mRMR, 50 features": (FILTER, "s"),
    "ReliefF": (EMBEDDED, "^"),
    "random forest, 300 trees": (SANITY, "v"),
}
Seconds = dict[str, dict[str, list[float]]]


def programs(sizes: dict[str, int]) -> dict[str, Callable[[], object]]:
    """Fits on one table, by name."""
    X, y, channels = channel_table(**sizes)
    filled = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    return {
        "IDFSMEC": lambda: IDFSMEC(channels).fit(X, y),
        "mRMR, 50 features": lambda: MRMR(n_features_to_select=50).fit(filled, y),
        "ReliefF": lambda: ReliefF(n_jobs=-1).fit(filled, y),
        "random forest, 300 trees": lambda: RandomForestClassifier(
            300, n_jobs=-1, random_state=0
        ).fit(filled, y),
    }


def measure() -> Seconds:
    """Medians of every program along each size, NaN where it would take too long."""
    for program in programs({**BASE, "n_samples": 200}).values():
        program()
    found: Seconds = {}
    for size, values in SIZES.items():
        curves: dict[str, list[float]] = {name: [] for name in LOOKS}
        for value in values:
            fits = programs({**BASE, size: value})
            going = {
                name: fit
                for name, fit in fits.items()
                if name == "IDFSMEC" or not curves[name] or curves[name][-1] < LONG
            }
            medians = _medians(going)
            for name, curve in curves.items():
                curve.append(medians.get(name, np.nan))
        found[size] = curves
    return found


def _medians(fits: dict[str, Callable[[], object]]) -> dict[str, float]:
    """In turns; a fit that takes long is run once."""
    seconds: dict[str, list[float]] = {name: [] for name in fits}
    for _ in range(REPEATS):
        for name, fit in fits.items():
            if seconds[name] and seconds[name][0] > LONG / 3:
                continue
            start = time.perf_counter()
            fit()
            seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in seconds.items()}


def draw(found: Seconds, path: Path) -> None:
    """Four panels with logarithmic axes."""
    style = {"svg.hashsalt": "idfsmec", "svg.fonttype": "none", "font.size": 9}
    with mpl.rc_context():
        use_style()
        mpl.rcParams.update(style)
        figure = Figure(figsize=(8.0, 5.6), layout="constrained")
        panels = figure.subplots(2, 2, sharey=True).ravel()
        for panel, (size, curves) in zip(panels, found.items(), strict=True):
            for name, curve in curves.items():
                colour, mark = LOOKS[name]
                width = 2.2 if name == "IDFSMEC" else 1.2
                panel.plot(
                    SIZES[size], curve, color=colour, marker=mark, ms=4, lw=width, label=name
                )
            panel.set(xscale="log", yscale="log", xlabel=NAMES[size])
            panel.set_xticks(SIZES[size], [str(value) for value in SIZES[size]])
            panel.minorticks_off()
            panel.grid()
        for panel in panels[::2]:
            panel.set_ylabel("seconds of one fit")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=4)
        path.parent.mkdir(parents=True, exist_ok=True)
        plain = {"Date": None} if path.suffix == ".svg" else {}
        figure.savefig(path, metadata=plain, dpi=150)


def table(size: str, curves: dict[str, list[float]]) -> str:
    """Seconds along one size."""
    rows = [
        [str(value), *("" if np.isnan(t) else f"{t:.3f}" for t in at)]
        for value, *at in zip(SIZES[size], *curves.values(), strict=True)
    ]
    return markdown([NAMES[size], *curves], rows)


def main(path: Path = FIGURE) -> None:
    """Print the seconds and draw them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = measure()
    for size, curves in found.items():
        print(f"## {NAMES[size]}\n\n{table(size, curves)}\n")
    draw(found, path)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FIGURE)
