"""Which recordings lack which channels: a map with the rates per channel on top."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from idfsmec.report._channels import _scale
from idfsmec.report._style import BAND, EMPHASIS, MUTED, SEQUENTIAL, dress, entitle, own_axes


def plot_missing_map(
    shares: pd.DataFrame,
    *,
    note: str = "",
    title: str = "Where channels are missing",
    ax: Axes | None = None,
) -> Axes:
    """Draw the share of samples in which a recording lacks a channel.

    Parameters
    ----------
    shares : DataFrame of shape (n_recordings, n_channels)
        0 where the channel is always there, 1 where it is never there. For a table, one row per
        subject: ``(~table.observed).groupby(table.subjects).mean()``.
    note, title : str
    ax : Axes, optional
        The rates per channel are drawn in a child of it.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import pandas as pd
    >>> shares = pd.DataFrame({"F3": [0.0, 0.5], "O2": [0.0, 1.0]}, index=["sub-01", "sub-02"])
    >>> plot_missing_map(shares).get_ylabel()
    'recording'
    """
    n_rows, n_columns = shares.shape
    height = float(np.clip(1.9 + 0.11 * n_rows, 3.0, 6.5))
    ax = own_axes(ax, float(np.clip(3 + 0.2 * n_columns, 6.2, 9)), height)
    values = shares.to_numpy(dtype=float)
    image = ax.imshow(
        values, cmap=SEQUENTIAL, vmin=0, vmax=1, aspect="auto", interpolation="nearest"
    )
    every = -(-n_columns // 40)
    ax.set_xticks(np.arange(0, n_columns, every), [str(c) for c in shares.columns[::every]])
    ax.tick_params(axis="x", rotation=90 if n_columns > 10 else 0)
    step = -(-n_rows // 20)
    ax.set_yticks(np.arange(0, n_rows, step), [str(r) for r in shares.index[::step]])
    ax.set_ylabel("recording")
    dress(ax, "", "", grid=None)
    for spine in ax.spines.values():
        spine.set_visible(False)
    rates = ax.inset_axes((0, 1.02, 1, 0.16), sharex=ax)
    rates.bar(np.arange(n_columns), values.mean(axis=0), color=EMPHASIS, width=0.7)
    dress(rates, "", "", grid="y")
    rates.tick_params(labelbottom=False, bottom=False, labelsize=8)
    rates.spines["left"].set_visible(False)
    rates.spines["bottom"].set_color(BAND)
    rates.yaxis.set_major_locator(MaxNLocator(2))
    rates.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:.0%}"))
    rates.set_ylim(0, max(float(values.mean(axis=0).max()) * 1.15, 0.01))
    rates.set_ylabel("rate", color=MUTED, size=8.5)
    overall = f"{values.mean():.1%} of all missing".replace("%", " %")
    entitle(rates, title, f"{note}\n{overall}".strip())
    _scale(ax, image, "share of samples missing")
    return ax
