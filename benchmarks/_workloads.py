"""What ``make bench-compare`` times: one run of every workload, seconds as JSON.

Runs against whichever revision of idfsmec is first on the path, so it uses public names only.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import numpy as np

from benchmarks._data import channel_table


def workloads() -> dict[str, Callable[[], object]]:
    """Programs by name; those a revision does not have yet are left out."""
    import idfsmec

    X, y, channels = channel_table(64)
    programs: dict[str, Callable[[], object]] = {
        "fit of 64 channels": lambda: idfsmec.IDFSMEC(channels).fit(X, y)
    }
    if hasattr(idfsmec, "idfs_path"):
        small, labels, own = channel_table(19)
        programs["path of 19 channels"] = lambda: idfsmec.idfs_path(small, labels, channels=own)
    if hasattr(idfsmec, "IDFSMECCV"):
        search = idfsmec.IDFSMECCV(own, lams=[0.01, 1.0], gammas=[1.1, 2.0], n_features=[5, 20])
        programs["search of 19 channels"] = lambda: search.fit(small, labels)
    try:
        from idfsmec.features import extract_features
    except ImportError:
        return programs
    epochs = np.random.default_rng(0).normal(size=(12, 64, 2500))
    programs["features of 64 channels x 2 min"] = lambda: extract_features(epochs, sfreq=250.0)
    return programs


def main() -> None:
    seconds = {}
    for name, program in workloads().items():
        program()
        best = []
        for _ in range(3):
            start = time.perf_counter()
            program()
            best.append(time.perf_counter() - start)
        seconds[name] = min(best)
    print(json.dumps(seconds))


if __name__ == "__main__":
    main()
