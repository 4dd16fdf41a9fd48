"""The paper's whole grid (5 rates x 10 folds x 7 lambdas x 128 channels) on a device and without.

``python -m benchmarks gpu`` uses a GPU if PyTorch sees one. The solver needs nothing but NumPy,
SciPy, PyTorch and array_api_compat.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from benchmarks._data import channel_table
from benchmarks._timing import markdown
from idfsmec._jobs import Processes
from idfsmec._parallel import available_threads, one_blas_thread
from idfsmec.solver import ChannelFits, Options, TableMoments, fold_moments, solve_channels

LAMS = [1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3]


def paper_grid(
    n_channels: int = 128, rates: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.5)
) -> list[TableMoments]:
    """Moments of ten training folds at every missing rate."""
    tables = []
    for rate in rates:
        X, y, _ = channel_table(n_channels, missing=rate)
        columns = list(np.arange(X.shape[1]).reshape(n_channels, -1))
        folds = np.array_split(np.random.default_rng(0).permutation(len(y)), 10)
        tables += fold_moments(X, y, 2, columns, folds)
    return tables


def timed(
    tables: list[TableMoments], device: str | None = None, n_workers: int = 1
) -> tuple[float, ChannelFits]:
    """Seconds to solve all problems, transfers included."""
    start = time.perf_counter()
    with one_blas_thread():
        fits = solve_channels(tables, LAMS, Options(device=device), Processes(n_workers))
    return time.perf_counter() - start, fits


def main() -> None:
    """Print the seconds with one process, with one per core, and on a GPU where there is one."""
    start = time.perf_counter()
    tables = paper_grid()
    made = time.perf_counter() - start
    n_problems = len(tables) * len(LAMS) * tables[0].n_channels
    rows = [["making 5 tables and their fold moments", f"{made:.2f}", ""]]
    for n_workers in sorted({1, available_threads()}):
        seconds, reference = timed(tables, n_workers=n_workers)
        worst = f"residual at most {reference.kkt_residuals.max():.0e}"
        workers = "1 process" if n_workers == 1 else f"{n_workers} processes, started for it"
        rows.append([f"{n_problems} problems, NumPy, {workers}", f"{seconds:.2f}", worst])
    if _has_gpu():
        first, _ = timed(tables[:1], "cuda")
        rows.append([f"{n_problems // len(tables)} problems, first call", f"{first:.2f}", ""])
        seconds, fits = min((timed(tables, "cuda") for _ in range(3)), key=lambda one: one[0])
        what = f"{n_problems} problems, {_name_of_gpu()}"
        rows.append([what, f"{seconds:.2f}", apart(fits, reference)])
    print(markdown(["what", "seconds", "result"], rows))
    if _has_gpu():
        print(f"\n## Other numbers of features\n\n{by_features()}")
        print(f"\n## Who asks for many problems\n\n{by_user()}")


def apart(fits: ChannelFits, reference: ChannelFits) -> str:
    """How far objectives are from NumPy's."""
    ratio = fits.objectives / reference.objectives - 1
    far = np.abs(ratio) > 1e-9
    return (
        f"objective apart from NumPy's: median {np.median(np.abs(ratio)):.0e}, 99 % "
        f"{np.quantile(np.abs(ratio), 0.99):.0e}, above 1e-9 {far.sum()} of {far.size} "
        f"({(ratio[far] < 0).sum()} lower); residual at most {fits.kkt_residuals.max():.0e}"
    )


def by_features() -> str:
    """Ten folds of 32 channels at every redundancy weight, for several sizes of channels."""
    rows = []
    for n_features in (4, 9, 16, 24, 32):
        X, y, _ = channel_table(32, n_features, n_samples=1500)
        columns = list(np.arange(X.shape[1]).reshape(32, -1))
        tables = fold_moments(X, y, 2, columns, np.array_split(np.arange(len(y)), 10))
        one, reference = timed(tables)
        other, fits = min((timed(tables, "cuda") for _ in range(3)), key=lambda one: one[0])
        rows.append([str(n_features), f"{one:.2f}", f"{other:.2f}", apart(fits, reference)])
    return markdown(["features", "1 process, s", "GPU, s", "result"], rows)


def by_user(n_halves: int = 1000) -> str:
    """Stability over many halves and the search over a grid, with and without the GPU."""
    rows = []
    for name, fit in _users(n_halves).items():
        seconds, found = {}, {}
        for device in (None, "cuda"):
            start = time.perf_counter()
            found[device] = fit(device)
            seconds[device] = time.perf_counter() - start
        away = np.abs(found["cuda"] - found[None]).max()
        rows.append([name, f"{seconds[None]:.1f}", f"{seconds['cuda']:.1f}", f"{away:.0e}"])
    return markdown(["what", "all cores, s", "GPU, s", "largest difference"], rows)


def _users(n_halves: int) -> dict[str, Callable[[str | None], np.ndarray]]:
    from idfsmec import IDFSMEC, IDFSMECCV, StabilitySelector

    X, y, channels = channel_table(19, n_samples=240)
    X_search, y_search, _ = channel_table(19, n_samples=1650)

    def stability(device: str | None) -> np.ndarray:
        own = IDFSMEC(channels, device=device)
        many = StabilitySelector(own, n_resamples=n_halves, threshold=0.6, random_state=0)
        return many.fit(X, y).frequencies_

    def search(device: str | None) -> np.ndarray:
        return IDFSMECCV(channels, device=device, cv=5).fit(X_search, y_search).scores_

    return {
        f"StabilitySelector, {n_halves} halves of 240 samples, 19 channels": stability,
        "IDFSMECCV, 1650 samples, 19 channels": search,
    }


def _has_gpu() -> bool:
    try:
        import torch
    except ImportError:
        return False
    return torch.cuda.is_available()


def _name_of_gpu() -> str:
    import torch

    return torch.cuda.get_device_name()


if __name__ == "__main__":
    main()
