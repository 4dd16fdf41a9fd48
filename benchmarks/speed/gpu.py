"""The paper's whole grid (5 rates x 10 folds x 7 lambdas x 128 channels) on a device and without.

``python -m benchmarks gpu`` uses a GPU if PyTorch sees one. The solver needs nothing but NumPy,
SciPy, PyTorch and array_api_compat.
"""

from __future__ import annotations

import time

import numpy as np

from benchmarks._data import channel_table
from benchmarks._timing import markdown
from idfsmec._jobs import Processes, available_threads, one_blas_thread
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
        timed(tables[:1], "cuda")  # the first call starts the device
        for _ in range(2):
            seconds, fits = timed(tables, "cuda")
        apart = np.abs(fits.objectives / reference.objectives - 1)
        agreement = (
            f"objective apart from NumPy's: median {np.median(apart):.0e}, 99 % "
            f"{np.quantile(apart, 0.99):.0e}; residual at most {fits.kkt_residuals.max():.0e}"
        )
        rows.append([f"{n_problems} problems, {_name_of_gpu()}", f"{seconds:.2f}", agreement])
    print(markdown(["what", "seconds", "result"], rows))


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
