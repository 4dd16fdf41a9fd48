"""The paper's whole grid (5 rates x 10 folds x 7 lambdas x 128 channels) with and without a GPU.

``python -m benchmarks gpu`` uses a GPU if PyTorch sees one.
"""

from __future__ import annotations

import time

import numpy as np

from benchmarks._data import channel_table
from benchmarks._timing import markdown
from idfsmec.solver.solve import ChannelFits, Options, solve_channels
from idfsmec.solver.sums import Moments, table_sums

LAMS = [1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3]


def paper_grid(
    n_channels: int = 128, rates: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.5)
) -> list[list[Moments]]:
    """Moments of ten training folds at every missing rate."""
    tables = []
    for rate in rates:
        X, y, _ = channel_table(n_channels, missing=rate)
        columns = list(np.arange(X.shape[1]).reshape(n_channels, -1))
        folds = np.random.default_rng(0).permutation(np.arange(len(y)) % 10)[None]
        sums = table_sums(X, columns, y, folds, 2, n_folds=10)
        tables += [sums.moments(split.train) for split in sums.splits()]
    return tables


def timed(tables: list[list[Moments]], device: str | None = None) -> tuple[float, ChannelFits]:
    """Seconds to solve all problems, transfers included."""
    start = time.perf_counter()
    fits = solve_channels(tables, LAMS, Options(device=device))
    return time.perf_counter() - start, fits


def main() -> None:
    """Print the seconds with NumPy, and on a GPU where there is one."""
    tables = paper_grid()
    n_problems = len(tables) * len(LAMS) * 128
    seconds, reference = timed(tables)
    worst = f"residual at most {reference.kkt_residuals.max():.0e}"
    rows = [[f"{n_problems} problems, NumPy", f"{seconds:.2f}", worst]]
    if name := gpu_name():
        first, _ = timed(tables[:1], "cuda")
        rows.append([f"{n_problems // len(tables)} problems, first call", f"{first:.2f}", ""])
        seconds, fits = min((timed(tables, "cuda") for _ in range(5)), key=lambda run: run[0])
        rows.append([f"{n_problems} problems, {name}", f"{seconds:.2f}", apart(fits, reference)])
    print(markdown(["what", "seconds", "result"], rows))


def apart(fits: ChannelFits, reference: ChannelFits) -> str:
    """How far objectives are from NumPy's."""
    ratio = fits.objectives / reference.objectives - 1
    far = np.abs(ratio) > 1e-9
    return (
        f"objective apart from NumPy's: median {np.median(np.abs(ratio)):.0e}, 99 % "
        f"{np.quantile(np.abs(ratio), 0.99):.0e}, above 1e-9 {far.sum()} of {far.size} "
        f"({(ratio[far] < 0).sum()} lower); residual at most {fits.kkt_residuals.max():.0e}"
    )


def gpu_name() -> str:
    """Name of the GPU, empty if there is none."""
    try:
        import torch
    except ImportError:
        return ""
    return torch.cuda.get_device_name() if torch.cuda.is_available() else ""


if __name__ == "__main__":
    main()
