"""What ``make bench-compare`` times: workloads, each several times; least processor seconds.

Runs against whichever revision of idfsmec is first on the path, so it uses public names only, and
knows where they lived before they moved.
"""

from __future__ import annotations

import importlib
import inspect
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd

from benchmarks._data import channel_table

REPEATS = 3
Program = Callable[[], object]


def first(name: str, *modules: str) -> Any:
    """Find a public name in the first module that has it."""
    for module in modules:
        with suppress(ImportError, AttributeError):
            return getattr(importlib.import_module(module), name)
    raise AttributeError(f"{name} is in none of {', '.join(modules)}")


def accepted(function: Callable, **options: Any) -> dict[str, Any]:
    """Keep the options that a function of this revision takes; one of two names for one thing."""
    parameters = inspect.signature(function).parameters
    return {name: value for name, value in options.items() if name in parameters}


def selection() -> Iterator[tuple[str, Program]]:
    """Fits of IDFS-MEC, its path, its search, its stability and its classifier."""
    from idfsmec import IDFSMEC, IDFSMECCV, IDFSMECClassifier, StabilitySelector, idfs_path

    X, y, channels = channel_table(64)
    small, labels, own = channel_table(19)
    counts = accepted(IDFSMECCV, n_features=[5, 20], n_features_to_select=[5, 20])
    search = IDFSMECCV(own, lams=[0.01, 1.0], gammas=[1.1, 2.0], **counts)
    yield "fit of 64 channels", lambda: IDFSMEC(channels).fit(X, y)
    yield "path of 19 channels", lambda: idfs_path(small, labels, channels=own)
    yield "search of 19 channels", lambda: search.fit(small, labels)
    halves = StabilitySelector(IDFSMEC(), channels=own, n_resamples=20, random_state=0)
    yield "20 halves of 19 channels", lambda: halves.fit(small, labels)
    classifier = IDFSMECClassifier(own)
    yield "classifier of 19 channels", lambda: classifier.fit(small, labels).predict(small)


def baselines() -> Iterator[tuple[str, Program]]:
    """The comparison methods that end within a second."""
    X, y, _ = channel_table(19, n_samples=500, missing=0.0)
    for name in ("CDLSR", "CMIM", "FSOR", "MRMR", "MRMSR", "RFS", "RRCT", "ReliefF"):
        selector = first(name, "idfsmec.selection")(n_features_to_select=20)
        yield f"{name} of 19 channels", lambda selector=selector: selector.fit(X, y)


def features() -> Iterator[tuple[str, Program]]:
    """From arrays and from recordings to rows."""
    extract_features = first("extract_features", "idfsmec.features")
    epochs = np.random.default_rng(0).normal(size=(12, 64, 2500))
    yield "features of 64 channels x 2 min", lambda: extract_features(epochs, sfreq=250.0)
    simulate = first("simulate_cohort", "idfsmec.recordings", "idfsmec.data")
    extract = first("extract_table", "idfsmec.extraction", "idfsmec.features")
    recordings = simulate(2, 64, duration=60.0, random_state=0).recordings
    one = accepted(extract, jobs=1, n_jobs=1)
    yield "2 recordings x 64 channels x 1 min", lambda: extract(recordings, **one)


def evaluation() -> Iterator[tuple[str, Program]]:
    """A small comparison from the table to the exported files."""
    from idfsmec import FeatureTable
    from idfsmec.evaluation import Protocol, accuracy

    X, _, channels = channel_table(19, n_samples=240, missing=0.0)
    columns = [f"{channel}__f{j % 18}" for j, channel in enumerate(channels)]
    people = np.arange(240) // 6
    labels = np.array(["HC", "MDD"])[people % 2]
    X[labels == "MDD"] += 0.1
    table = FeatureTable(pd.DataFrame(X, columns=columns), labels, [f"s{i}" for i in people])
    protocol = Protocol(rates=(0.3,), n_splits=3, ks=(10, 20))
    for method in ("IDFS-MEC", "mRMR", "CD-LSR", "all features"):

        def compare(method: str = method) -> None:
            with tempfile.TemporaryDirectory() as out:
                accuracy(table, out, methods=[method], protocol=protocol, n_jobs=1)

        yield f"benchmark of {method}", compare


def start() -> Iterator[tuple[str, Program]]:
    """What a user waits for before any work."""
    for words in ("--version", "select --help"):
        command = [sys.executable, "-m", "idfsmec", *words.split()]
        yield (
            f"idfsmec {words}",
            lambda command=command: subprocess.run(command, capture_output=True, check=True),
        )


def main() -> None:
    """Print the seconds of all workloads that this revision has."""
    seconds = {}
    for room in (selection, baselines, features, evaluation, start):
        try:
            for name, program in room():
                seconds[name] = min(processor_seconds(program) for _ in range(1 + REPEATS))
        except (AttributeError, ImportError) as error:
            print(f"{room.__name__}: left out, {error}", file=sys.stderr)
    print(json.dumps(seconds))


def processor_seconds(program: Program) -> float:
    """What a program takes of the processor, with the processes it starts."""

    def used() -> float:
        who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        return sum(u.ru_utime + u.ru_stime for u in map(resource.getrusage, who))

    before = used()
    program()
    return used() - before


if __name__ == "__main__":
    main()
