"""The ten comparison methods: seconds by size, and ratios to other people's programs.

``python -m benchmarks methods`` runs all of it; ``python -m benchmarks.speed.methods 500 ReliefF``
only the tables with 500 samples and the methods named. A pair that takes long is run once.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable

import numpy as np
from sklearn.base import BaseEstimator
from threadpoolctl import threadpool_limits

from benchmarks._data import channel_table
from benchmarks._timing import Timing, markdown, time_in_turns
from idfsmec.prediction import METHODS
from idfsmec.selection import MRMR, RRCT, ReliefF
from idfsmec.selection.baselines.filters import discretize

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # old syntax in the peers' dependencies
    from fast_select import ReliefF as FastReliefF
    from fast_select import mRMR as FastMRMR
    from rrct.algorithm import RRCTFeatureSelection

_N_SAMPLES = (500, 2000)
_N_CHANNELS = (3, 64, 128)  # of 18 features
_K = 50
# The rrct package needs minutes for 50 features: both are timed for the first 10 or 2 only.
_K_OF_SLOW_PEER = 2
# Seconds published for 3, 64 and 128 channels (MATLAB, Ryzen 7 4800H; other data and sizes).
_PUBLISHED = {
    "mRMR": (0.008, 0.370, 1.484),
    "CMIM": (0.003, 0.093, 0.364),
    "ReliefF": (0.090, 0.284, 1.181),
    "RRCT": (0.139, 4.468, 15.317),
    "MRMSR": (1.288, 39.401, 256.088),
    "PS-NSGA": (1.740, 24.633, 51.938),
    "RFS": (0.017, 0.055, 0.063),
    "FSOR": (0.009, 0.063, 0.066),
    "GRMOR": (0.275, 8.235, 47.173),
    "CD-LSR": (0.014, 6.063, 4461.149),
    "IDFS-MEC": (0.143, 0.682, 6.256),
}
_PSNSGA_GENERATIONS = 5
_SECONDS_PER_PAIR = 10
_MOST_REPEATS = 15


def main(n_samples: tuple[int, ...] = _N_SAMPLES, methods: tuple[str, ...] = ()) -> None:
    """Print all tables of this module, of all methods or those named."""
    sizes = [(n, channels) for n in n_samples for channels in _N_CHANNELS]
    print(f"## Against other programs, {_K} features chosen: medians (range relative to it)\n")
    rows = [row for size in sizes for row in against_peers(*size, methods)]
    headings = ["samples", "features", "method", "peer", "ours, s", "peer, s", "peer / ours"]
    print(markdown(headings, rows), flush=True)
    print(f"\n## All methods, {_K} features chosen, processor seconds with one thread\n")
    rows = [row for size in sizes for row in all_methods(*size, methods)]
    print(markdown(["samples", "features", "method", "seconds", "times mRMR", "published"], rows))


def against_peers(
    n_samples: int, n_channels: int, methods: tuple[str, ...] = ()
) -> list[list[str]]:
    """Ratios to fast-select (after its JIT) and rrct, each pair in turns."""
    X, y, _ = channel_table(n_channels, n_samples=n_samples, missing=0.0)
    codes = discretize(X)
    n_features = X.shape[1]
    slow_k = 10 if n_features < 100 else _K_OF_SLOW_PEER
    fast_relieff = FastReliefF(n_features_to_select=_K, n_neighbors=10, backend="cpu")
    fast_mrmr = FastMRMR(n_features_to_select=_K, backend="cpu")
    pairs: dict[str, tuple[str, Callable[[], object], Callable[[], object]]] = {
        "ReliefF": (
            "fast-select",
            lambda: ReliefF(n_jobs=-1).fit(X, y),
            lambda: fast_relieff.fit(X, y),
        ),
        "mRMR": (
            "fast-select (codes given)",
            lambda: MRMR(n_features_to_select=_K).fit(X, y),
            lambda: fast_mrmr.fit(codes, y),
        ),
        "RRCT": (
            f"rrct (K = {slow_k})",
            lambda: RRCT(n_features_to_select=slow_k).fit(X, y),
            lambda: _quietly(RRCTFeatureSelection(K=slow_k).apply, X=X, y=y),
        ),
    }
    # Compile the peers on a corner of the data, so that no large run is spent on it.
    fast_relieff.fit(X[:60, :60], y[:60])
    fast_mrmr.fit(codes[:60, :60], y[:60])
    rows = []
    for method, (peer, ours, theirs) in pairs.items():
        if methods and method not in methods:
            continue
        timings = time_for_seconds({"ours": ours, "peer": theirs})
        own, other = timings["ours"], timings["peer"]
        seconds = [f"{one.median:.4f} (± {one.spread / 2:.0%})" for one in (own, other)]
        ratio = f"{other.median / own.median:.2f}"
        rows.append([str(n_samples), str(n_features), method, peer, *seconds, ratio])
    return rows


def time_for_seconds(programs: dict[str, Callable[[], object]]) -> dict[str, Timing]:
    """Time in turns: at least once, more often the sooner they are done, after a first turn."""
    first = time_in_turns(programs, repeats=1, warm_up=False)
    seconds = sum(timing.best for timing in first.values())
    repeats = min(_MOST_REPEATS, int(_SECONDS_PER_PAIR / seconds))
    return time_in_turns(programs, repeats, warm_up=False) if repeats > 1 else first


def all_methods(n_samples: int, n_channels: int, methods: tuple[str, ...] = ()) -> list[list[str]]:
    """Processor seconds of every registered method with one thread: a busy machine can tell."""
    X, y, channels = channel_table(n_channels, n_samples=n_samples, missing=0.0)
    parameters: dict[str, dict[str, object]] = {
        "PS-NSGA": {"n_generations": _PSNSGA_GENERATIONS},
        "IDFS-MEC": {"channels": channels},
    }
    left_out = {"PS-NSGA"} if n_samples * n_channels > 500 * 64 else set()
    programs = {
        name: _fitting(
            method.build(n_features_to_select=_K, random_state=0, **parameters.get(name, {})), X, y
        )
        for name, method in METHODS.items()
        if name in _PUBLISHED
        and name not in left_out
        and (not methods or name in methods or name == "mRMR")
    }
    with threadpool_limits(1):
        timings = {name: _processor_seconds(program) for name, program in programs.items()}
    place = _N_CHANNELS.index(n_channels)
    rows = []
    for name, timing in timings.items():
        label = f"{name} ({_PSNSGA_GENERATIONS} of 70 generations)" if name == "PS-NSGA" else name
        ratio = timing / timings["mRMR"]
        seconds = [f"{timing:.3f}", f"{ratio:.1f}", f"{_PUBLISHED[name][place]:.3f}"]
        rows.append([str(n_samples), str(X.shape[1]), label, *seconds])
    return rows


def _processor_seconds(program: Callable[[], object]) -> float:
    """The lesser of two runs: the first may load what the method needs."""
    seconds = []
    for _ in range(2):
        start = time.process_time()
        program()
        seconds.append(time.process_time() - start)
    return min(seconds)


def _fitting(selector: BaseEstimator, X: np.ndarray, y: np.ndarray) -> Callable[[], object]:
    return lambda: _quietly(selector.fit, X, y)


def _quietly(function: Callable[..., object], *args: object, **kwargs: object) -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args, **kwargs)


if __name__ == "__main__":
    numbers = tuple(int(argument) for argument in sys.argv[1:] if argument.isdigit())
    main(numbers or _N_SAMPLES, tuple(one for one in sys.argv[1:] if not one.isdigit()))
