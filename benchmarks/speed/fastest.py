"""All eleven methods on the same data in one run: which ranks the features the soonest.

``python -m benchmarks fastest`` times 64 and 128 channels of 18 features with 30 % of the
channel-samples missing. IDFS-MEC gets the gaps, the others the same table filled with means; every
method has the defaults of its registry entry and ranks for 50 features. Processor seconds with one
thread, the least of several fits in turns: so a busy machine can tell, too. Each fit runs in a
process of its own, so that one that takes more than the cap can be ended and reported as "more
than". ``--cap`` sets the cap in seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import time
import warnings

import numpy as np

from benchmarks._data import channel_table
from benchmarks._timing import markdown

CAP = 25.0
N_SAMPLES = 1000
N_FEATURES = 50
# Fits of this length are repeated; a longer one is told apart from the rest by a single run.
SHORT = 4.0
REPEATS = 3
_START = 10.0


def main(cap: float = CAP) -> None:
    """Print one table for each number of channels."""
    for n_channels in (64, 128):
        print(f"## {n_channels} channels x 18 features x {N_SAMPLES} samples\n")
        print(table(n_channels, cap), flush=True)
        print()


def table(n_channels: int, cap: float = CAP) -> str:
    """Processor seconds of every method and how many times those of IDFS-MEC."""
    from idfsmec.prediction.methods import COMPARED, METHODS

    compared = [name for name, one in METHODS.items() if one.family in COMPARED[:-1]]
    seconds = {name: once(name, n_channels, cap) for name in compared}
    short = [name for name, found in seconds.items() if found and found[0] < SHORT]
    for _ in range(REPEATS - 1):  # in turns
        for name in short:
            seconds[name] += once(name, n_channels, cap)
    own = min(seconds["IDFS-MEC"])
    rows = []
    for name in sorted(seconds, key=lambda name: min(seconds[name], default=np.inf)):
        found = seconds[name]
        if not found:
            rows.append([name, f"more than {cap:g}", "", f"more than {cap / own:.0f}"])
            continue
        spread = f"{max(found) / min(found) - 1:.0%}" if len(found) > 1 else "one run"
        rows.append([name, f"{min(found):.3f}", spread, f"{min(found) / own:.1f}"])
    return markdown(["method", "processor s (least)", "slowest beyond", "times IDFS-MEC"], rows)


def once(name: str, n_channels: int, cap: float) -> list[float]:
    """Processor seconds of one fit in a new process; nothing if it takes longer than the cap."""
    command = [sys.executable, "-m", "benchmarks.speed.fastest", "--fit", name, str(n_channels)]
    environment = {
        **os.environ, "PYTHONPATH": os.pathsep.join(["src", "."]), "OMP_NUM_THREADS": "1"
    }  # fmt: skip
    # Starting Python and making the table takes a few seconds too.
    command += ["--cap", str(cap + _START)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode == -signal.SIGXCPU:
        return []
    done.check_returncode()
    found = json.loads(done.stdout)
    return [found] if found <= cap else []


def fit(name: str, n_channels: int) -> float:
    """Processor seconds of one fit, after a small one that loads what the method needs."""
    from idfsmec.prediction import METHODS

    X, y, channels = channel_table(n_channels, n_samples=N_SAMPLES)
    method = METHODS[name]
    if not method.takes_missing:
        X = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    corner = channel_table(2, n_samples=60, missing=0.0)
    selector = method.build(random_state=0, n_features_to_select=5)
    warnings.simplefilter("ignore")
    if name != "PS-NSGA":
        selector.fit(corner[0], corner[1])
    selector = method.build(random_state=0, n_features_to_select=N_FEATURES)
    if "channels" in selector.get_params():
        selector.set_params(channels=channels)
    start = time.process_time()
    selector.fit(X, y)
    return time.process_time() - start


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cap", type=float, default=CAP)
    parser.add_argument("--fit", nargs=2, metavar=("METHOD", "CHANNELS"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.fit:
        most = int(arguments.cap)
        resource.setrlimit(resource.RLIMIT_CPU, (most, most + 5))
        print(json.dumps(fit(arguments.fit[0], int(arguments.fit[1]))))
    else:
        main(arguments.cap)
