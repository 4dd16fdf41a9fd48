"""What the two parameters do, and how the solver came to its end."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import ArrayLike

from idfsmec.report._channels import _scale
from idfsmec.report._curves import unit_scores
from idfsmec.report._style import EMPHASIS, INK, MUTED, PAPER, SEQUENTIAL, dress, own_axes
from idfsmec.report._words import metric_name


def sensitivity_surface(scores: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Mean score over folds, rates and k: gammas (rows) x lambdas (columns)."""
    units = unit_scores(scores, metric, by=["lam", "gamma"])
    return units.pivot_table(index="gamma", columns="lam", values="value", aggfunc="mean")


def plot_sensitivity(
    scores: pd.DataFrame,
    *,
    metric: str = "balanced_accuracy",
    note: str = "",
    title: str = "Accuracy over λ and γ",
    ax: Axes | None = None,
) -> Axes:
    """Draw the accuracy of IDFS-MEC over the grid of its two parameters.

    Parameters
    ----------
    scores : DataFrame
        Rows with ``lam`` and ``gamma``; averaged over folds, rates and numbers of features.
    metric : str, default="balanced_accuracy"
    note, title : str
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    surface = sensitivity_surface(scores, metric)
    values = surface.to_numpy(dtype=float)
    n_rows, n_columns = values.shape
    ax = own_axes(ax, float(np.clip(3 + 0.7 * n_columns, 6.2, 8.5)), 1.9 + 0.38 * n_rows)
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    # At least three points of range: noise must not look like a landscape.
    middle, half = (low + high) / 2, max((high - low) / 2, 0.015)
    image = ax.pcolormesh(
        np.ma.masked_invalid(values), cmap=SEQUENTIAL, vmin=middle - half, vmax=middle + half,
        edgecolors=PAPER, linewidth=0.8,
    )  # fmt: skip
    for (row, column), value in np.ndenumerate(values):
        if np.isfinite(value):
            dark = value > middle + 0.3 * half
            ax.text(
                column + 0.5, row + 0.5, f"{100 * value:.1f}", ha="center", va="center",
                fontsize=8, color="#ffffff" if dark else "#1b1b1b",
            )  # fmt: skip
    row, column = divmod(int(np.nanargmax(values)), n_columns)
    ax.add_patch(
        Rectangle((column, row), 1, 1, fill=False, edgecolor=INK, linewidth=2, gid="best")
    )
    ax.set_xticks(np.arange(n_columns) + 0.5, [f"{lam:g}" for lam in surface.columns])
    ax.set_yticks(np.arange(n_rows) + 0.5, [f"{gamma:g}" for gamma in surface.index])
    ax.set_xlabel("λ: price of redundancy")
    ax.set_ylabel("γ: evenness of channels")
    spread = f"all settings within {100 * (high - low):.1f} points; best one framed"
    dress(ax, title, f"{note}\n{spread}".strip(), grid=None)
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.tick_params(length=0)
    _scale(ax, image, metric_name(metric))
    return ax


def plot_convergence(
    history: ArrayLike,
    *,
    note: str = "",
    title: str = "Convergence",
    ax: Axes | None = None,
) -> Axes:
    """Draw the objective after each iteration.

    Parameters
    ----------
    history : array-like of shape (n_iter + 1,)
        ``objective_history_`` of a fitted :class:`idfsmec.IDFSMEC`.
    note, title : str
    ax : Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> plot_convergence([10.0, 4.0, 3.5, 3.4]).get_xlabel()
    'iteration'
    """
    values = np.asarray(history, dtype=float)
    ax = own_axes(ax, 6.0, 3.2)
    # Weights to the power of gamma make it tiny: the power of ten goes into the label, not into
    # the corner where the note is.
    power = 3 * int(np.floor(np.log10(max(abs(values[0]), 1e-300)) / 3))
    power = 0 if -3 <= power <= 3 else power
    shown = values / 10.0**power
    ax.plot(np.arange(values.size), shown, color=EMPHASIS, linewidth=2, marker="o",
            markersize=4 if values.size < 60 else 0)  # fmt: skip
    ax.axhline(shown[-1], color=MUTED, linewidth=0.8, linestyle=":")
    ax.set_xlabel("iteration")
    ax.set_ylabel(f"objective, 1e{power}" if power else "objective")
    ax.ticklabel_format(axis="y", style="plain", useOffset=False)
    if values.size > 60:
        ax.set_xscale("symlog", linthresh=1, linscale=0.4)
        ax.set_xlim(0, values.size)
        ax.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:.0f}"))
    else:
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    drop = f"from {values[0]:.4g} to {values[-1]:.4g} in {values.size - 1} iterations"
    return dress(ax, title, f"{note}\n{drop}".strip())
